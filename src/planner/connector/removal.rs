//! Explicit removals: what each tombstone means before anything is asked of a worker, and what an observation makes of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::Desired;
use super::evidence::ConnectorActionEvidence;
use super::identity::{BindingError, ClusterAlias, ConnectClusterBinding, ConnectorName, EndpointDigest};
use super::observation::{ManagedConnectorObservation, NotRebuilt};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::artifact::{ConnectorRemovalArtifact, Kind};
use crate::compiler::canonical::Checksum;
use crate::ownership::model::{OwnershipRecord, OwnershipState, ResourceId};
use crate::project::model::{ConnectRuntime, OwnershipMode};

/// A tombstone with every identity that needs no worker: it is no action yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedConnectorRemoval {
    resource_id: ResourceId,
    logical_owner: String,
    connector_name: ConnectorName,
    binding: ConnectClusterBinding,
    prior_record: Option<OwnershipRecord>,
}

impl ResolvedConnectorRemoval {
    pub fn resource_id(&self) -> &ResourceId {
        &self.resource_id
    }

    pub fn logical_owner(&self) -> &str {
        &self.logical_owner
    }

    pub fn connector_name(&self) -> &ConnectorName {
        &self.connector_name
    }

    pub fn binding(&self) -> &ConnectClusterBinding {
        &self.binding
    }

    pub fn prior_record(&self) -> Option<&OwnershipRecord> {
        self.prior_record.as_ref()
    }
}

/// Why a tombstone makes no action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovalStatus {
    /// Neither recorded nor live: nothing to do.
    AlreadyAbsent,
    /// The record and what is live contradict each other.
    StateProviderDrift,
    /// Live, and not recorded.
    OwnershipRequired,
}

impl RemovalStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyAbsent => "already_absent",
            Self::StateProviderDrift => "state_provider_drift",
            Self::OwnershipRequired => "ownership_required",
        }
    }
}

/// A tombstone that makes no action, as plans and results show it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectorRemovalAssessment {
    pub resource_id: ResourceId,
    pub logical_owner: String,
    pub connector_name: ConnectorName,
    pub backend_identity: ConnectClusterBinding,
    pub status: RemovalStatus,
}

/// What an observation makes of a resolved removal.
pub(in crate::planner) enum Outcome {
    Delete(ConnectorActionEvidence),
    Assessed(ConnectorRemovalAssessment),
}

/// The cluster that connectors run on. E205 without a usable one, E209 when the default cannot be bound.
pub fn default_binding(runtime: Option<&ConnectRuntime>) -> Result<ConnectClusterBinding, Diagnostic> {
    ConnectClusterBinding::of_default(runtime).map_err(|error| match error {
        BindingError::NoRuntime => Diagnostic::new(Code::E205ConnectRequired, "no Kafka Connect cluster is configured")
            .suggest("set runtime.connect.clusters and runtime.connect.default"),
        BindingError::NoDefault => Diagnostic::new(Code::E205ConnectRequired, "runtime.connect has no default cluster")
            .suggest("set runtime.connect.default"),
        BindingError::Endpoint(endpoint) => {
            let text = format!("the URL of the default Connect cluster cannot be used: it {}", endpoint.problem());
            Diagnostic::new(Code::E205ConnectRequired, text).suggest("correct its rest_url in runtime.connect.clusters")
        }
        BindingError::UnknownDefault => {
            Diagnostic::new(Code::E209InvalidClusterRef, "runtime.connect.default names no cluster")
        }
        BindingError::Alias => {
            let text = "the alias of the default Connect cluster does not begin with a letter or a digit";
            Diagnostic::new(Code::E209InvalidClusterRef, text).suggest("rename it in runtime.connect")
        }
    })
}

/// Every identity and collision check that no worker is needed for: E205, E209, E427. One resolved removal a declaration.
pub fn resolve(desired: &Desired<'_>, state: &OwnershipState) -> Result<Vec<ResolvedConnectorRemoval>, Diagnostics> {
    let removals = &desired.artifacts.connector_removals;
    if removals.is_empty() {
        return Ok(Vec::new());
    }
    let binding = default_binding(desired.connect)?;
    let mut context = Preflight { desired, state, binding, claimed: Claims::of_desired(desired) };
    let mut errors = Diagnostics::new();
    let mut resolved = Vec::with_capacity(removals.len());
    for removal in removals {
        match context.resolve(removal) {
            Ok(removal) => resolved.push(removal),
            Err(error) => {
                errors.push(error.at_opt(desired.declared.removal_places.get(&removal.logical_owner).cloned()))
            }
        }
    }
    if errors.has_errors() { Err(errors) } else { Ok(resolved) }
}

/// A provider object whatever its alias.
type Locator = (EndpointDigest, String);

/// Who claims what: by identity, and by the object at the provider.
struct Claims {
    ids: BTreeMap<ResourceId, &'static str>,
    locators: BTreeMap<Locator, &'static str>,
}

const DECLARED: &str = "the project still declares this connector";
const REMOVED_TWICE: &str = "another removal names the same connector";

impl Claims {
    fn of_desired(desired: &Desired<'_>) -> Self {
        let mut claims = Self { ids: BTreeMap::new(), locators: BTreeMap::new() };
        for connector in &desired.artifacts.connectors {
            let owner = &connector.ownership.name;
            if let Some(id) = ResourceId::new(desired.project, desired.environment, Kind::Connector, owner) {
                claims.ids.insert(id, DECLARED);
            }
            let alias = connector.cluster.as_deref().or(desired.connect.and_then(|connect| connect.default.as_deref()));
            let cluster = alias.and_then(|alias| desired.connect?.clusters.get(alias));
            if let Some(Ok(endpoint)) = cluster.map(|cluster| EndpointDigest::of(&cluster.rest_url)) {
                claims.locators.insert((endpoint, connector.name.clone()), DECLARED);
            }
        }
        claims
    }

    fn claim(&mut self, id: &ResourceId, locator: Locator) -> Result<(), &'static str> {
        let taken = self.ids.get(id).or_else(|| self.locators.get(&locator)).copied();
        self.ids.insert(id.clone(), REMOVED_TWICE);
        self.locators.insert(locator, REMOVED_TWICE);
        taken.map_or(Ok(()), Err)
    }
}

struct Preflight<'a> {
    desired: &'a Desired<'a>,
    state: &'a OwnershipState,
    binding: ConnectClusterBinding,
    claimed: Claims,
}

impl Preflight<'_> {
    fn resolve(&mut self, removal: &ConnectorRemovalArtifact) -> Result<ResolvedConnectorRemoval, Diagnostic> {
        let ConnectorRemovalArtifact { logical_owner, name, cluster } = removal;
        let refuse = |why: &str| {
            let text = format!("removal of connector '{name}' (owner '{logical_owner}'): {why}");
            Diagnostic::new(Code::E427ConnectorRemovalInvalid, text)
        };
        if ClusterAlias::new(cluster).as_ref() != Some(self.binding.alias()) {
            let text = format!("the removal of connector '{name}' names a cluster that is not runtime.connect.default");
            return Err(Diagnostic::new(Code::E209InvalidClusterRef, text)
                .suggest("connectors are removed from the default cluster only: name it, or change the default"));
        }
        let id = ResourceId::new(self.desired.project, self.desired.environment, Kind::Connector, logical_owner)
            .filter(|id| id.logical_name() == logical_owner)
            .ok_or_else(|| refuse("its identity is no resource id"))?;
        let connector_name = ConnectorName::new(name).ok_or_else(|| refuse("no URL can hold its name"))?;
        self.claimed.claim(&id, (self.binding.endpoint().clone(), name.clone())).map_err(refuse)?;
        let prior_record = self.prior(&id, &connector_name).map_err(refuse)?;
        Ok(ResolvedConnectorRemoval {
            resource_id: id,
            logical_owner: logical_owner.clone(),
            connector_name,
            binding: self.binding.clone(),
            prior_record,
        })
    }

    /// The one record that may be removed. A record without an endpoint could mean the same object and proves nothing.
    fn prior(&self, id: &ResourceId, name: &ConnectorName) -> Result<Option<OwnershipRecord>, &'static str> {
        let claims_target = |record: &OwnershipRecord| {
            record.physical_name == name.as_str()
                && ConnectClusterBinding::parse(&record.backend)
                    .is_none_or(|bound| bound.endpoint() == self.binding.endpoint())
        };
        let connectors = self.state.resources.iter().filter(|(other, _)| other.kind() == Kind::Connector);
        if connectors.into_iter().any(|(other, record)| other != id && claims_target(record)) {
            return Err("the state records this connector under another identity");
        }
        let Some(record) = self.state.resources.get(id) else { return Ok(None) };
        if record.ownership != OwnershipMode::Managed {
            return Err("the state records it as adopted, and only a managed connector is ever deleted");
        }
        if ConnectClusterBinding::parse(&record.backend).is_none() {
            return Err("the state records it without an endpoint, in a form that grants no authority");
        }
        if record.physical_name != name.as_str() || record.backend != self.binding.identity().as_str() {
            return Err("the state records another connector name or another cluster");
        }
        Ok(Some(record.clone()))
    }
}

/// The outcome of the one strict observation. E427 when what is live forms no artifact at all.
pub(in crate::planner) fn judge(
    removal: &ResolvedConnectorRemoval,
    live: &ManagedConnectorObservation,
    project: &str,
) -> Result<Outcome, Diagnostic> {
    let assessed = |status| {
        Ok(Outcome::Assessed(ConnectorRemovalAssessment {
            resource_id: removal.resource_id.clone(),
            logical_owner: removal.logical_owner.clone(),
            connector_name: removal.connector_name.clone(),
            backend_identity: removal.binding.clone(),
            status,
        }))
    };
    let record = match (&removal.prior_record, live.exists()) {
        (None, false) => return assessed(RemovalStatus::AlreadyAbsent),
        (None, true) => return assessed(RemovalStatus::OwnershipRequired),
        (Some(_), false) => return assessed(RemovalStatus::StateProviderDrift),
        (Some(record), true) => record,
    };
    let rebuilt = live.rebuild(project, &removal.logical_owner).map_err(|why| not_rebuilt(removal, why))?;
    if Checksum::of(&rebuilt).ok().as_ref() != Some(&record.artifact_checksum) {
        return assessed(RemovalStatus::StateProviderDrift);
    }
    match ConnectorActionEvidence::of_deletion(live, record.artifact_checksum.clone()) {
        Some(evidence) => Ok(Outcome::Delete(evidence)),
        None => assessed(RemovalStatus::StateProviderDrift),
    }
}

fn not_rebuilt(removal: &ResolvedConnectorRemoval, why: NotRebuilt) -> Diagnostic {
    let what = match why {
        NotRebuilt::Absent => "it does not exist".to_owned(),
        NotRebuilt::ReservedKey(key) => format!("its live configuration has no text under '{key}'"),
        NotRebuilt::Form => "its live configuration has not the form of a compiled one".to_owned(),
    };
    let text = format!(
        "removal of connector '{}' (owner '{}'): what was recorded cannot be proved, because {what}",
        removal.connector_name, removal.logical_owner
    );
    Diagnostic::new(Code::E427ConnectorRemovalInvalid, text)
        .suggest("a worker that hides or rewrites configurations does not support removal")
}

impl ConnectorRemovalAssessment {
    /// One sentence for the reviewer.
    pub fn message(&self) -> String {
        let name = &self.connector_name;
        match self.status {
            RemovalStatus::AlreadyAbsent => {
                format!("connector '{name}' is neither recorded nor live: nothing is removed")
            }
            RemovalStatus::StateProviderDrift => {
                format!(
                    "connector '{name}' is recorded, and is gone or has another configuration than recorded: it is not removed"
                )
            }
            RemovalStatus::OwnershipRequired => {
                format!("connector '{name}' exists without a record of this project: it is not removed")
            }
        }
    }
}

/// Which records claim which connector, whatever the alias they name its cluster by.
#[derive(Default)]
pub(in crate::planner) struct ConnectorClaims<'a>(BTreeMap<Locator, Vec<&'a ResourceId>>);

impl<'a> ConnectorClaims<'a> {
    pub fn of(state: &'a OwnershipState) -> Self {
        let mut claims = Self::default();
        for (id, record) in state.resources.iter().filter(|(id, _)| id.kind() == Kind::Connector) {
            if let Some(bound) = ConnectClusterBinding::parse(&record.backend) {
                let locator = (bound.endpoint().clone(), record.physical_name.clone());
                claims.0.entry(locator).or_default().push(id);
            }
        }
        claims
    }

    /// Another resource that is recorded as this connector.
    pub fn other(&self, backend: &str, name: &str, own: &ResourceId) -> Option<&'a ResourceId> {
        let bound = ConnectClusterBinding::parse(backend)?;
        let claims = self.0.get(&(bound.endpoint().clone(), name.to_owned()))?;
        claims.iter().copied().find(|id| *id != own)
    }
}
