//! Recovery plans: the reviewed evidence by which a person ends one blocked operation. The file binds store, address, state,
//! control, every target and the result; any change of it is seen (E408). It holds no provider answer, only digests.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::control::{
    AcceptedAs, Control, Presence, RecoveryIntent, Resolution, ResolutionRecord, Target, check_targets, in_version,
};
use super::model::{BackendKind, OwnershipState, StateAddress, StoreIdentity};
use super::plan_file;
use super::recovery::Proof;
use super::scalar::{Timestamp, uuid_text};
use super::sealed::{Seal, unread};
use super::store::Snapshot;
use crate::codes::redact::is_credential_like;
use crate::codes::{Code, Diagnostic, Location};
use crate::compiler::artifact::Kind;
use crate::compiler::canonical::Checksum;
use crate::planner::model::Verb;

pub const KIND: &str = "streamt.recovery-plan";
/// What is written.
pub const FORMAT: u8 = 3;
/// What is read.
pub const FORMATS: [u64; 3] = [1, 2, 3];
const SEAL: Seal = Seal {
    kind: KIND,
    what: "recovery plan",
    formats: &FORMATS,
    key: "evidence_checksum",
    name: "evidence checksum",
    other_format: unread,
};
const AGAIN: &str = "make another recovery plan at a new path and review that; never edit one";

/// Which project the targets were judged by. Absent for an abandoned operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Basis {
    pub environment_fingerprint: Checksum,
    pub manifest_checksum: Checksum,
}

/// A recovery plan as it was saved or will be.
#[derive(Clone, PartialEq, Debug)]
pub struct RecoveryPlan {
    /// An earlier format has the actions of the control version of that number, and ends operations of no later one.
    pub format: u8,
    pub streamt_version: String,
    pub resolution: Resolution,
    pub recovery_operation_id: Uuid,
    pub store: StoreIdentity,
    pub address: StateAddress,
    /// Ownership before the recovery.
    pub state: OwnershipState,
    pub state_checksum: Checksum,
    /// The blocked control.
    pub control: Control,
    pub targets: Vec<Target>,
    /// The ownership that `observed` leaves.
    pub candidate: Option<OwnershipState>,
    pub basis: Option<Basis>,
    pub evidence_checksum: Checksum,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotDocument {
    store: StoreIdentity,
    address: String,
    state: OwnershipState,
    state_checksum: Checksum,
    control: Value,
    control_checksum: Checksum,
}

/// The document without its checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    kind: String,
    format_version: u8,
    streamt_version: String,
    resolution: Resolution,
    #[serde(with = "uuid_text")]
    blocked_operation_id: Uuid,
    #[serde(with = "uuid_text")]
    recovery_operation_id: Uuid,
    snapshot: SnapshotDocument,
    targets: Vec<Target>,
    candidate_state: Option<OwnershipState>,
    environment_fingerprint: Option<Checksum>,
    manifest_checksum: Option<Checksum>,
}

impl RecoveryPlan {
    /// `proof` = the targets, and the project that they were judged by; none for an abandoned operation. E408 when they do not
    /// make a plan of this resolution.
    pub fn of(
        snapshot: &Snapshot,
        resolution: Resolution,
        recovery_operation_id: Uuid,
        proof: Option<(Proof, Basis)>,
    ) -> Result<Self, Diagnostic> {
        let (proof, basis) = match proof {
            Some((proof, basis)) => (proof, Some(basis)),
            None => (Proof { targets: Vec::new(), candidate: None }, None),
        };
        let mut plan = Self {
            format: FORMAT,
            streamt_version: env!("CARGO_PKG_VERSION").to_owned(),
            resolution,
            recovery_operation_id,
            store: snapshot.state.store.clone(),
            address: snapshot.state.address.clone(),
            state: (*snapshot.state.state).clone(),
            state_checksum: snapshot.state.checksum.clone(),
            control: snapshot.control.control.clone(),
            targets: proof.targets,
            candidate: proof.candidate,
            basis,
            evidence_checksum: Checksum::of_bytes(&[]),
        };
        plan.check().map_err(invalid)?;
        plan.evidence_checksum = Checksum::of(&plan.document()?).map_err(|_| invalid(NO_FORM))?;
        Ok(plan)
    }

    pub fn blocked_operation_id(&self) -> Uuid {
        self.control.operation_id().unwrap_or_default()
    }

    /// Serial and digest of the ownership that it leaves.
    fn result(&self) -> Result<(u64, Checksum), &'static str> {
        match &self.candidate {
            None => Ok((self.state.serial, self.state_checksum.clone())),
            Some(next) => {
                Ok((next.serial, next.checked(&self.address).map_err(|_| "its candidate state is malformed")?))
            }
        }
    }

    /// The ownership to write; none when it stays as it is.
    pub fn next_state(&self) -> Option<&OwnershipState> {
        self.candidate.as_ref().filter(|next| next.serial != self.state.serial)
    }

    /// What becomes durable when it is carried out.
    pub fn intent(&self, resolved_at: Timestamp) -> Result<RecoveryIntent, Diagnostic> {
        let (result_state_serial, result_state_checksum) = self.result().map_err(invalid)?;
        Ok(RecoveryIntent {
            control_checksum: self.control.checksum().clone(),
            record: ResolutionRecord {
                address: self.address.to_string(),
                blocked_operation_id: self.blocked_operation_id(),
                evidence_checksum: self.evidence_checksum.clone(),
                prior_state_checksum: self.state_checksum.clone(),
                prior_state_serial: self.state.serial,
                recovery_operation_id: self.recovery_operation_id,
                resolution: self.resolution,
                resolved_at,
                result_state_checksum,
                result_state_serial,
                state_changed: self.next_state().is_some(),
            },
            targets: self.targets.clone(),
        })
    }

    /// Whether an archived record is the execution of exactly this plan.
    pub fn was_carried_out_by(&self, record: &ResolutionRecord) -> bool {
        self.intent(record.resolved_at.clone()).is_ok_and(|intent| intent.record == *record)
    }

    fn document(&self) -> Result<Value, Diagnostic> {
        let envelope = Envelope {
            kind: KIND.to_owned(),
            format_version: self.format,
            streamt_version: self.streamt_version.clone(),
            resolution: self.resolution,
            blocked_operation_id: self.blocked_operation_id(),
            recovery_operation_id: self.recovery_operation_id,
            snapshot: SnapshotDocument {
                store: self.store.clone(),
                address: self.address.to_string(),
                state: self.state.clone(),
                state_checksum: self.state_checksum.clone(),
                control: self.control.to_value(),
                control_checksum: self.control.checksum().clone(),
            },
            targets: self.targets.clone(),
            candidate_state: self.candidate.clone(),
            environment_fingerprint: self.basis.as_ref().map(|basis| basis.environment_fingerprint.clone()),
            manifest_checksum: self.basis.as_ref().map(|basis| basis.manifest_checksum.clone()),
        };
        let mut document = serde_json::to_value(envelope).map_err(|_| invalid(NO_FORM))?;
        if let Some(Value::Array(targets)) = document.get_mut("targets") {
            for action in targets.iter_mut().filter_map(|target| target.get_mut("action")) {
                in_version(action, self.format);
            }
        }
        Ok(document)
    }

    /// The bytes of the file: two-space indent, sorted keys, final newline.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        SEAL.bytes(self.document()?, &self.evidence_checksum).ok_or_else(|| invalid(NO_FORM))
    }

    /// Strict: E408 for anything but a file of format 1 to 3 whose checksum and cross checks hold (REC-026, REC-069).
    pub fn parse(bytes: &[u8]) -> Result<Self, Diagnostic> {
        let (document, checksum) = SEAL.open(bytes).map_err(|why| invalid(&why))?;
        let malformed = || invalid("it is not of the form that streamt writes");
        let envelope: Envelope = serde_json::from_value(document.clone()).map_err(|_| malformed())?;
        let plan = Self::from_envelope(envelope, checksum).map_err(invalid)?;
        // What reads back differently was written by something else: a missing key, another blocked operation.
        if plan.document()? != document {
            return Err(malformed());
        }
        Ok(plan)
    }

    fn from_envelope(envelope: Envelope, evidence_checksum: Checksum) -> Result<Self, &'static str> {
        let snapshot = envelope.snapshot;
        let address = StateAddress::parse(&snapshot.address).ok_or("its state address is malformed")?;
        let control = Control::read(&address, &snapshot.control).map_err(|error| error.0)?;
        if *control.checksum() != snapshot.control_checksum {
            return Err("its control checksum does not match");
        }
        let basis = match (envelope.environment_fingerprint, envelope.manifest_checksum) {
            (Some(environment_fingerprint), Some(manifest_checksum)) => {
                Some(Basis { environment_fingerprint, manifest_checksum })
            }
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err("it names a part of its project only"),
        };
        let plan = Self {
            format: envelope.format_version,
            streamt_version: envelope.streamt_version,
            resolution: envelope.resolution,
            recovery_operation_id: envelope.recovery_operation_id,
            store: snapshot.store,
            address,
            state: snapshot.state,
            state_checksum: snapshot.state_checksum,
            control,
            targets: envelope.targets,
            candidate: envelope.candidate_state,
            basis,
            evidence_checksum,
        };
        plan.check()?;
        Ok(plan)
    }

    /// What its parts must say of each other.
    fn check(&self) -> Result<(), &'static str> {
        let blocked = self.control.intent().ok_or("nothing is pending in it")?;
        if self.recovery_operation_id == blocked.operation_id || self.recovery_operation_id.get_version_num() != 4 {
            return Err("its recovery id is not one of its own");
        }
        let state = self.state.checked(&self.address).map_err(|_| "its state is malformed")?;
        if state != self.state_checksum
            || (blocked.prior_state_serial, &blocked.prior_state_checksum) != (self.state.serial, &state)
        {
            return Err("its state is not the one that its operation started from");
        }
        // The replacement of a runner is only ever abandoned, and then no action is written.
        if self.control.version() > self.format && (self.format < FORMAT || self.resolution.observes()) {
            return Err("its format is older than the operation that it ends");
        }
        if self.streamt_version.is_empty() || self.basis.is_some() != self.resolution.observes() {
            return Err("it names its project exactly when targets were observed");
        }
        check_targets(self.resolution, blocked, self.control.is_unstarted(), &self.targets).map_err(|error| error.0)?;
        self.targets.iter().try_for_each(|target| self.check_target(target))?;
        self.check_candidate()?;
        let texts = [&self.streamt_version, &blocked.actor];
        let records =
            self.state.resources.values().chain(self.candidate.iter().flat_map(|next| next.resources.values()));
        let names = records.flat_map(|record| [&record.physical_name, &record.backend]);
        if texts.into_iter().chain(names).any(|text| is_credential_like(text)) {
            return Err("it holds text that looks like a credential");
        }
        Ok(())
    }

    fn check_target(&self, target: &Target) -> Result<(), &'static str> {
        let id = &target.action.resource_id;
        let deletes_connector = (id.kind(), target.action.action) == (Kind::Connector, Verb::Delete);
        if deletes_connector
            && (target.action.connector_evidence.is_none() || self.store.backend != BackendKind::Postgres)
        {
            return Err("it resolves the deletion of a connector without the evidence or the store of one");
        }
        let creates = match target.action.action {
            Verb::Create | Verb::Register | Verb::Submit | Verb::Adopt => true,
            Verb::Update | Verb::Delete | Verb::Cancel => false,
        };
        let present = target.presence == Presence::Present;
        let fits = match target.accepted_as {
            AcceptedAs::Prior => present == (!creates && self.state.resources.contains_key(id)),
            AcceptedAs::Candidate => {
                present == self.candidate.as_ref().is_some_and(|next| next.resources.contains_key(id))
            }
        };
        if fits { Ok(()) } else { Err("the presence of a target contradicts its states") }
    }

    fn check_candidate(&self) -> Result<(), &'static str> {
        let next = match (self.resolution, &self.candidate) {
            (Resolution::Observed, Some(next)) => next,
            (Resolution::RolledBack | Resolution::AbandonedBeforeMutation, None) => return Ok(()),
            (Resolution::Observed, None) | (Resolution::RolledBack | Resolution::AbandonedBeforeMutation, Some(_)) => {
                return Err("it has a candidate state exactly when it records what was observed");
            }
        };
        self.result()?;
        let changed = next.resources != self.state.resources;
        if next.serial != self.state.serial + u64::from(changed) {
            return Err("the serial of its candidate state does not follow from its state");
        }
        let accepted = self.targets.iter().filter(|target| target.accepted_as == AcceptedAs::Candidate);
        let accepted: BTreeSet<_> = accepted.map(|target| &target.action.resource_id).collect();
        let ids: BTreeSet<_> = self.state.resources.keys().chain(next.resources.keys()).collect();
        let kept = |id| accepted.contains(id) || self.state.resources.get(id) == next.resources.get(id);
        if ids.into_iter().all(kept) { Ok(()) } else { Err("its candidate state changes what is no candidate") }
    }
}

const NO_FORM: &str = "it holds a value that a recovery plan cannot carry";

fn invalid(why: &str) -> Diagnostic {
    Diagnostic::new(Code::E408PlanFileInvalid, format!("the recovery plan is not accepted: {why}")).suggest(AGAIN)
}

/// Creates the file, mode 0600, durable on return. E408 when anything stands at the path, a link included (REC-022, REC-023).
pub fn write(path: &Path, plan: &RecoveryPlan) -> Result<(), Diagnostic> {
    plan_file::create_new(path, &plan.to_bytes()?)
}

/// E408 when something stands at the path: asked before the lock is waited for.
pub fn refuse_existing(path: &Path) -> Result<(), Diagnostic> {
    plan_file::refuse_existing(path)
}

/// Reads a regular file of at most 64 MiB that is reached by no link; E408 for anything else and for any defect inside.
pub fn read(path: &Path) -> Result<RecoveryPlan, Diagnostic> {
    let bytes = plan_file::read_bytes(path)?;
    RecoveryPlan::parse(&bytes).map_err(|error| error.at(Location::named(path.to_string_lossy())))
}

#[cfg(test)]
#[path = "recovery_plan_tests.rs"]
mod tests;
