//! The document: shape, canonical checksum, strict parsing.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::codes::redact::{redact_keys, redact_value};
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::Kind;
use crate::compiler::canonical::Checksum;
use crate::planner::Plan;
use crate::planner::model::{Action, Verb};
use crate::planner::payload::PlanPayload;
use crate::state::model::{BackendKind, StateAddress, StoreIdentity};
use crate::state::scalar::{Timestamp, uuid_text};
use crate::state::sealed::Seal;
use crate::state::store::StateObservation;

pub(super) const KIND: &str = "streamt.reviewed-plan";
const FORMAT: u64 = 5;
const SEAL: Seal =
    Seal { kind: KIND, what: "reviewed plan", formats: &[FORMAT], key: "checksum", name: "checksum", other_format };
const AGAIN: &str = "make the plan again with this version of streamt; never edit a plan file";

/// The state that a plan was made against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateReference {
    pub store: StoreIdentity,
    pub address: StateAddress,
    pub serial: u64,
    pub checksum: Checksum,
}

impl StateReference {
    pub fn of(observed: &StateObservation) -> Self {
        Self {
            store: observed.store.clone(),
            address: observed.address.clone(),
            serial: observed.state.serial,
            checksum: observed.checksum.clone(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateDocument {
    backend: BackendKind,
    #[serde(with = "uuid_text")]
    store_id: Uuid,
    address: String,
    serial: u64,
    checksum: Checksum,
}

impl Serialize for StateReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document = StateDocument {
            backend: self.store.backend,
            store_id: self.store.store_id,
            address: self.address.to_string(),
            serial: self.serial,
            checksum: self.checksum.clone(),
        };
        document.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StateReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = StateDocument::deserialize(deserializer)?;
        let address = StateAddress::parse(&document.address).ok_or_else(|| de::Error::custom("not a state address"))?;
        Ok(Self {
            store: StoreIdentity { backend: document.backend, store_id: document.store_id },
            address,
            serial: document.serial,
            checksum: document.checksum,
        })
    }
}

/// Everything in a plan file that is not the plan itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    pub streamt_version: String,
    /// Whole seconds: `2026-09-06T09:30:00Z`.
    pub created_at: Timestamp,
    pub environment_fingerprint: Checksum,
    pub manifest_checksum: Checksum,
    /// None for an offline plan.
    pub state: Option<StateReference>,
}

/// A plan as it was saved or will be: redacted, checksummed.
#[derive(Clone, PartialEq, Debug)]
pub struct ReviewedPlan {
    pub origin: Origin,
    pub project: String,
    pub environment: String,
    pub plan: PlanPayload,
    pub actions: Vec<Action>,
    pub checksum: Checksum,
}

/// The document without its checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    kind: String,
    format_version: u64,
    streamt_version: String,
    created_at: Timestamp,
    project: String,
    environment: String,
    environment_fingerprint: Checksum,
    manifest_checksum: Checksum,
    state: Option<StateReference>,
    selection: (),
    offline: bool,
    plan: PlanPayload,
    actions: Vec<Action>,
}

impl ReviewedPlan {
    /// E408 when a value has no canonical form; E901 when an online plan has no state to refer to, or an offline one has.
    pub fn of(plan: &Plan, origin: Origin) -> Result<Self, Diagnostic> {
        if plan.offline != origin.state.is_none() {
            return Err(Diagnostic::new(Code::E901Internal, "a plan is saved with a state exactly when it is online"));
        }
        let mut reviewed = Self {
            plan: redacted(plan.payload())?,
            actions: plan.actions.clone(),
            project: plan.project.clone(),
            environment: plan.environment.clone(),
            checksum: Checksum::of_bytes(&[]),
            origin,
        };
        reviewed.checksum = Checksum::of(&reviewed.envelope()?).map_err(|_| unsupported())?;
        Ok(reviewed)
    }

    /// Strict: E408 for anything but a format 5 file whose checksum holds.
    pub fn parse(bytes: &[u8]) -> Result<Self, Diagnostic> {
        let (document, checksum) = SEAL.open(bytes).map_err(|why| invalid(&why))?;
        let mut covered = document.clone();
        redact_keys(&mut covered);
        if covered != document {
            return Err(invalid("it shows a value under a sensitive key"));
        }
        let malformed = || invalid("it is not of the form that streamt writes");
        let envelope: Envelope = serde_json::from_value(covered).map_err(|_| malformed())?;
        let reviewed = Self::checked(envelope, checksum)?;
        // What reads back differently was written by something else: a missing key, a list out of order.
        if reviewed.envelope()? != document {
            return Err(malformed());
        }
        Ok(reviewed)
    }

    fn checked(envelope: Envelope, checksum: Checksum) -> Result<Self, Diagnostic> {
        let texts = [&envelope.streamt_version, &envelope.project, &envelope.environment];
        if texts.iter().any(|text| text.is_empty()) {
            return Err(invalid("a name in it is empty"));
        }
        if envelope.created_at.as_str().contains('.') {
            return Err(invalid("its creation time is not in whole seconds"));
        }
        if envelope.offline != envelope.state.is_none() {
            return Err(invalid("it refers to a state exactly when it is online"));
        }
        let here =
            |project: &str, environment: &str| project == envelope.project && environment == envelope.environment;
        if envelope.state.as_ref().is_some_and(|state| !here(&state.address.project, &state.address.environment)) {
            return Err(invalid("its state address is of another project or environment"));
        }
        let mut seen = BTreeSet::new();
        for (index, action) in (0..).zip(&envelope.actions) {
            let id = &action.resource_id;
            if action.index != index || !here(id.project(), id.environment()) || !seen.insert(id) {
                return Err(invalid("its actions are not one ordered list of this project and environment"));
            }
            if !can_be_planned(id.kind(), action.action) || action.gateway_evidence.is_some() {
                return Err(invalid(&format!(
                    "it plans to {} a {}, which this version cannot do",
                    action.action,
                    id.kind()
                )));
            }
        }
        if !envelope.actions.iter().all(|action| evidence_fits(action, &envelope.plan)) {
            return Err(invalid("a connector deletion and its evidence do not fit"));
        }
        let summary = &envelope.plan.summary;
        let planned = envelope.plan.resources.iter().filter(|resource| resource.action.is_some()).count();
        let carried_out = if envelope.offline || summary.is_apply_blocked { 0 } else { planned };
        if envelope.actions.len() != carried_out {
            return Err(invalid("its actions are not those of its plan"));
        }
        Ok(Self {
            origin: Origin {
                streamt_version: envelope.streamt_version,
                created_at: envelope.created_at,
                environment_fingerprint: envelope.environment_fingerprint,
                manifest_checksum: envelope.manifest_checksum,
                state: envelope.state,
            },
            project: envelope.project,
            environment: envelope.environment,
            plan: envelope.plan,
            actions: envelope.actions,
            checksum,
        })
    }

    /// The document without its checksum.
    fn envelope(&self) -> Result<Value, Diagnostic> {
        let envelope = Envelope {
            kind: KIND.to_owned(),
            format_version: FORMAT,
            streamt_version: self.origin.streamt_version.clone(),
            created_at: self.origin.created_at.clone(),
            project: self.project.clone(),
            environment: self.environment.clone(),
            environment_fingerprint: self.origin.environment_fingerprint.clone(),
            manifest_checksum: self.origin.manifest_checksum.clone(),
            state: self.origin.state.clone(),
            selection: (),
            offline: self.is_offline(),
            plan: self.plan.clone(),
            actions: self.actions.clone(),
        };
        serde_json::to_value(envelope).map_err(|_| unsupported())
    }

    /// The bytes of the file: two-space indent, sorted keys, final newline.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        SEAL.bytes(self.envelope()?, &self.checksum).ok_or_else(unsupported)
    }

    pub const fn format_version(&self) -> u64 {
        FORMAT
    }

    pub fn is_offline(&self) -> bool {
        self.origin.state.is_none()
    }

    /// Whether `apply --plan` may ever carry it out: online and unblocked.
    pub fn authorizes_apply(&self) -> bool {
        !self.is_offline() && !self.plan.summary.is_apply_blocked
    }

    /// E408 for an offline plan: it assumed that nothing exists and authorises nothing.
    pub fn require_online(&self) -> Result<(), Diagnostic> {
        if self.is_offline() {
            let error =
                Diagnostic::new(Code::E408PlanFileInvalid, "the plan was made offline and cannot authorise an apply");
            return Err(error.suggest("make the plan without --offline"));
        }
        Ok(())
    }
}

/// A payload as it may be stored and compared: sensitive values gone.
pub(super) fn redacted(payload: PlanPayload) -> Result<PlanPayload, Diagnostic> {
    let mut value = serde_json::to_value(payload).map_err(|_| unsupported())?;
    redact_value(&mut value);
    serde_json::from_value(value).map_err(|_| unsupported())
}

fn can_be_planned(kind: Kind, verb: Verb) -> bool {
    match kind {
        Kind::Schema => matches!(verb, Verb::Register | Verb::Update),
        Kind::Topic => matches!(verb, Verb::Create | Verb::Update),
        Kind::Connector => matches!(verb, Verb::Create | Verb::Update | Verb::Delete),
        // An update would replace what runs: it is blocked in every plan (SAF-070).
        Kind::FlinkJob => verb == Verb::Submit,
        Kind::KafkaStreamsJob | Kind::GatewayRule => false,
    }
}

/// A connector deletion carries the evidence of one planned resource; nothing else carries any.
fn evidence_fits(action: &Action, plan: &PlanPayload) -> bool {
    let deletes = (action.resource_id.kind(), action.action) == (Kind::Connector, Verb::Delete);
    match &action.connector_evidence {
        None => !deletes,
        Some(evidence) => {
            let name = evidence.connector_name().as_str();
            deletes
                && plan.resources.iter().any(|resource| {
                    resource.kind == Kind::Connector && resource.name == name && resource.action == Some(Verb::Delete)
                })
        }
    }
}

fn other_format(format: u64) -> String {
    match format {
        1..=4 => format!("its format {format} is no longer accepted"),
        6 => "its format 6 replaces a Kafka Streams job, which this version cannot do".to_owned(),
        other => format!("its format {other} is unknown to this version"),
    }
}

pub(super) fn invalid(why: &str) -> Diagnostic {
    Diagnostic::new(Code::E408PlanFileInvalid, format!("the plan file is not accepted: {why}")).suggest(AGAIN)
}

fn unsupported() -> Diagnostic {
    Diagnostic::new(Code::E408PlanFileInvalid, "the plan holds a value that a plan file cannot carry")
}

/// Digest over environment name and runtime configuration, secrets replaced first: a changed password keeps it.
pub fn environment_fingerprint(environment: &str, runtime: &Value) -> Result<Checksum, Diagnostic> {
    let mut runtime = runtime.clone();
    redact_value(&mut runtime);
    Checksum::of(&json!({"environment": environment, "runtime": runtime})).map_err(|_| unsupported())
}
