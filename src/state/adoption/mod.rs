//! Adoption: which declared resource may be claimed, whether somebody claims it already, what a claim shows for review, and
//! the saved selection of several. Pure: it asks nobody and writes nothing. A claim changes ownership alone; what is live stays
//! as it is until a plan of its own is applied.

mod review;
mod selection;

use std::collections::BTreeMap;

use super::model::{KAFKA_BACKEND, OwnershipRecord, OwnershipState, ResourceId, SCHEMA_REGISTRY_BACKEND};
use crate::codes::{Code, Diagnostic, suggest};
use crate::compiler::artifact::{ConnectorArtifact, Kind, Ownership, SchemaArtifact, TopicArtifact};
use crate::compiler::canonical::Checksum;
use crate::planner::Desired;
use crate::planner::connector::{ConnectClusterBinding, ManagedConnectorObservation, default_binding};
use crate::planner::observation::{Observations, SchemaObservation, TopicObservation};
use crate::project::model::OwnershipMode;

pub use review::Review;
pub use selection::{FORMAT, KIND, MAX_RESOURCES, Selected, Selection, read, refuse_existing, write};

/// The kinds that can be adopted.
pub const KINDS: [Kind; 3] = [Kind::Topic, Kind::Schema, Kind::Connector];

/// The compiled form of a declaration that claims something.
#[derive(Clone, PartialEq, Debug)]
pub enum Form {
    Topic(TopicArtifact),
    Schema(SchemaArtifact),
    /// With its cluster named, and what that cluster is.
    Connector(ConnectorArtifact, ConnectClusterBinding),
}

/// One declared resource of mode `adopted`, complete.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    pub resource_id: ResourceId,
    pub logical_name: String,
    pub physical_name: String,
    pub backend: String,
    /// The digest that the planner records and compares.
    pub artifact_checksum: Checksum,
    pub form: Form,
}

/// What was seen of a target.
#[derive(Clone, PartialEq, Debug)]
pub enum Live {
    Topic(TopicObservation),
    Schema(SchemaObservation),
    Connector(ManagedConnectorObservation),
}

/// Whether a target still has to be claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    New,
    /// Exactly this claim stands already.
    Owned,
}

impl Target {
    /// E412 unless the name means exactly one declared resource of this project that says `ownership.mode: adopted`; E205 and E209
    /// for a connector that no cluster can be named for.
    pub fn find(desired: &Desired<'_>, kind: Kind, name: &str) -> Result<Self, Diagnostic> {
        if !KINDS.contains(&kind) {
            let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.as_str()).collect();
            return Err(Diagnostic::new(
                Code::E412AdoptionTargetInvalid,
                format!("a {kind} cannot be adopted by this version of streamt"),
            )
            .suggest(format!("kinds that can be adopted: {}", kinds.join(", "))));
        }
        let named =
            || desired.resources.iter().filter(|resource| resource.kind == kind && resource.logical_name == name);
        let resource = match (named().next(), named().count()) {
            (Some(resource), 1) => resource,
            (Some(_), count) => {
                let text = format!("'{name}' owns {count} resources of kind {kind}, and an adoption names exactly one");
                return Err(Diagnostic::new(Code::E412AdoptionTargetInvalid, text)
                    .suggest("give each of them a declaration of its own"));
            }
            (None, _) => {
                let known = desired.resources.iter().filter(|resource| resource.kind == kind);
                let hint = suggest::hint(name, kind.as_str(), known.map(|resource| resource.logical_name.as_str()));
                let hint = hint.unwrap_or_else(|| format!("this project declares no {kind}: declare it first"));
                let text = format!("nothing named '{name}' declares a {kind}");
                return Err(Diagnostic::new(Code::E412AdoptionTargetInvalid, text).suggest(hint));
            }
        };
        let invalid = |text: String, hint: &str| {
            Err(Diagnostic::new(Code::E412AdoptionTargetInvalid, text).at_opt(resource.location()).suggest(hint))
        };
        if resource.mode != OwnershipMode::Adopted {
            let mode = resource.mode.as_str();
            return invalid(
                format!("the {kind} of '{name}' is declared {mode}, not adopted"),
                "say `ownership: {mode: adopted}` in its declaration",
            );
        }
        let physical = resource.physical_name.as_str();
        let form = match kind {
            Kind::Topic => find(&desired.artifacts.topics, |topic| topic.name == physical).map(Form::Topic),
            Kind::Schema => find(&desired.artifacts.schemas, |schema| schema.subject == physical).map(Form::Schema),
            Kind::Connector => match find(&desired.artifacts.connectors, |connector| connector.name == physical) {
                Some(connector) => Some(bound(connector, desired)?),
                None => None,
            },
            Kind::FlinkJob | Kind::KafkaStreamsJob | Kind::GatewayRule => None,
        };
        let Some(form) = form else {
            return invalid(
                format!("the {kind} of '{name}' is not compiled"),
                "compile the project and read what it says",
            );
        };
        let ownership = form.ownership();
        if ownership.project != desired.project || ownership.mode != OwnershipMode::Adopted || ownership.name != name {
            return invalid(
                format!("the {kind} '{physical}' belongs to another declaration or project than '{name}'"),
                "adopt it where it is declared",
            );
        }
        let Some(resource_id) = ResourceId::new(desired.project, desired.environment, kind, name) else {
            return invalid(format!("'{name}' makes no resource id"), "give it a shorter name without `/`");
        };
        Ok(Self {
            resource_id,
            logical_name: name.to_owned(),
            physical_name: physical.to_owned(),
            backend: form.backend(),
            artifact_checksum: resource.artifact_checksum.clone(),
            form,
        })
    }

    pub fn kind(&self) -> Kind {
        self.resource_id.kind()
    }

    /// What ownership holds once it is adopted.
    pub fn record(&self) -> OwnershipRecord {
        OwnershipRecord {
            physical_name: self.physical_name.clone(),
            ownership: OwnershipMode::Adopted,
            artifact_checksum: self.artifact_checksum.clone(),
            backend: self.backend.clone(),
        }
    }

    /// E415 when this id or this resource is recorded otherwise.
    pub fn claim(&self, state: &OwnershipState) -> Result<Claim, Diagnostic> {
        let conflict = |text: String, hint: &str| {
            Err(Diagnostic::new(Code::E415AdoptionStateConflict, text).suggest(hint.to_owned()))
        };
        let (kind, name) = (self.kind(), &self.physical_name);
        if let Some(record) = state.resources.get(&self.resource_id) {
            let wanted = self.record();
            let same = OwnershipRecord { ownership: wanted.ownership, ..record.clone() } == wanted;
            if same {
                return Ok(Claim::Owned);
            }
            return match (record.physical_name == *name, record.backend == self.backend) {
                (true, true) => conflict(
                    format!("{} is recorded already, from another declaration of it", self.resource_id),
                    "an owned resource is changed by a plan: run `streamt plan`",
                ),
                (false, _) | (true, false) => conflict(
                    format!("{} is recorded as '{}' on {}", self.resource_id, record.physical_name, record.backend),
                    "give the declaration its recorded form again, or another name",
                ),
            };
        }
        let same = |(id, record): &(&ResourceId, &OwnershipRecord)| {
            id.kind() == kind && record.physical_name == *name && self.form.is_on(&record.backend)
        };
        match state.resources.iter().find(same) {
            Some((other, _)) => conflict(
                format!("the {kind} '{name}' is recorded as {other}, and two records cannot own one resource"),
                "adopt it under the name that owns it, or keep that declaration",
            ),
            None => Ok(Claim::New),
        }
    }

    /// What was seen of it; none when it was not asked for.
    pub fn seen(&self, observations: &Observations) -> Option<Live> {
        match &self.form {
            Form::Topic(topic) => observations.topics.get(&topic.name).cloned().map(Live::Topic),
            Form::Schema(schema) => observations.subjects.get(&schema.subject).cloned().map(Live::Schema),
            Form::Connector(connector, _) => observations.connectors.get(&connector.name).cloned().map(Live::Connector),
        }
    }
}

impl Form {
    fn ownership(&self) -> &Ownership {
        match self {
            Self::Topic(topic) => &topic.ownership,
            Self::Schema(schema) => &schema.ownership,
            Self::Connector(connector, _) => &connector.ownership,
        }
    }

    fn backend(&self) -> String {
        match self {
            Self::Topic(_) => KAFKA_BACKEND.to_owned(),
            Self::Schema(_) => SCHEMA_REGISTRY_BACKEND.to_owned(),
            Self::Connector(_, binding) => binding.identity().as_str().to_owned(),
        }
    }

    /// Whether a record of this backend speaks of the same place. A connector is one object whatever its cluster is called, and
    /// a record without an endpoint may mean any.
    fn is_on(&self, backend: &str) -> bool {
        match self {
            Self::Topic(_) | Self::Schema(_) => backend == self.backend(),
            Self::Connector(_, binding) => {
                ConnectClusterBinding::parse(backend).is_none_or(|other| other.endpoint() == binding.endpoint())
            }
        }
    }
}

/// The form of every checksum and comparison. E205, E209.
fn bound(connector: ConnectorArtifact, desired: &Desired<'_>) -> Result<Form, Diagnostic> {
    let binding = default_binding(desired.connect)?;
    let alias = binding.alias().as_str();
    match &connector.cluster {
        Some(named) if named != alias => Err(Diagnostic::new(
            Code::E209InvalidClusterRef,
            format!(
                "connector '{}' names the cluster '{named}', and only the default '{alias}' is deployed to",
                connector.name
            ),
        )
        .suggest("leave `connect_cluster` out, or make that cluster the default")),
        Some(_) | None => {
            let cluster = Some(alias.to_owned());
            Ok(Form::Connector(ConnectorArtifact { cluster, ..connector }, binding))
        }
    }
}

fn find<T: Clone>(all: &[T], wanted: impl Fn(&T) -> bool) -> Option<T> {
    all.iter().find(|one| wanted(one)).cloned()
}

/// Every declared resource of mode `adopted` of these kinds, as kind and logical name, in kind order, then physical name.
pub fn adoptable(desired: &Desired<'_>, kinds: &[Kind]) -> Vec<(Kind, String)> {
    let wanted = desired
        .resources
        .iter()
        .filter(|resource| resource.mode == OwnershipMode::Adopted && kinds.contains(&resource.kind));
    wanted.map(|resource| (resource.kind, resource.logical_name.clone())).collect()
}

/// Ownership with these targets recorded: every other record stays as it is, and the serial steps once.
pub fn claimed(prior: &OwnershipState, targets: &[Target]) -> OwnershipState {
    let mut resources: BTreeMap<_, _> = prior.resources.clone();
    resources.extend(targets.iter().map(|target| (target.resource_id.clone(), target.record())));
    OwnershipState { serial: prior.serial + 1, resources, ..prior.clone() }
}

#[cfg(test)]
mod tests;
