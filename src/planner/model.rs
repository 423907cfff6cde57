//! The plan: what would change, what may not, and why.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::codes::Diagnostics;
use crate::compiler::artifact::Kind;
use crate::ownership::model::{OwnershipRecord, ResourceId};
use crate::ownership::runner;
use crate::project::model::OwnershipMode;

use super::cause::Cause;
use super::connector::{ConnectorActionEvidence, ConnectorDiff, ConnectorRemovalAssessment};
use super::flink::JobDiff;
use super::impact::ImpactEntry;
use super::payload::PlanPayload;
use super::risk::{ChangeRisk, RiskSummary};
use super::schema::SchemaDiff;
use super::topic::TopicDiff;

/// The verbs of durable actions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Register,
    Create,
    Update,
    Submit,
    Delete,
    Cancel,
    Adopt,
}

impl Verb {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Create => "create",
            Self::Update => "update",
            Self::Submit => "submit",
            Self::Delete => "delete",
            Self::Cancel => "cancel",
            Self::Adopt => "adopt",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Verb {
    const ALL: [Self; 7] =
        [Self::Register, Self::Create, Self::Update, Self::Submit, Self::Delete, Self::Cancel, Self::Adopt];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }

    /// `create`, `register` and `submit` all bring something into being.
    pub const fn creates(self) -> bool {
        match self {
            Self::Register | Self::Create | Self::Submit => true,
            Self::Update | Self::Delete | Self::Cancel | Self::Adopt => false,
        }
    }

    /// `none` or the verb.
    pub fn text(verb: Option<Self>) -> &'static str {
        verb.map_or("none", Self::as_str)
    }
}

/// What the comparison of a declaration with its live resource gave.
#[derive(Clone, PartialEq, Debug)]
pub enum Diff {
    /// Not compared: external, or of a kind without a comparison here.
    None,
    Topic(TopicDiff),
    Schema(SchemaDiff),
    Connector(ConnectorDiff),
    Job(JobDiff),
    /// A tombstone, a managed record and a matching observation: what the deletion carries.
    ConnectorRemoval(Box<ConnectorActionEvidence>),
}

/// A resource and what the plan does to it; `verb` none = unchanged or observed only.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub kind: Kind,
    /// Physical name.
    pub name: String,
    pub resource_id: ResourceId,
    pub mode: OwnershipMode,
    pub verb: Option<Verb>,
    /// Field → `{from, to}` and the like, in the order of comparison; sensitive values are `<redacted>`. Kept when
    /// ownership neutralised the verb.
    pub changes: Map<String, Value>,
    /// The comparison behind `changes`, typed, with real values: what a mutation works from. Never printed.
    pub diff: Diff,
    /// What the diff said before ownership neutralised it.
    pub observed_verb: Option<Verb>,
    /// Why ownership neutralised it.
    pub requirement: Option<RequirementReason>,
    /// Why the comparison found something to do; none when it found nothing.
    pub(super) difference: Option<Cause>,
    /// The record that a successful plan leaves; none for external and neutralised resources.
    pub record: Option<OwnershipRecord>,
}

impl Change {
    /// Why it is not as declared: none when it is, and for what is external.
    pub fn cause(&self) -> Option<Cause> {
        match self.requirement {
            Some(reason) => reason.blocks().then_some(Cause::Blocked),
            None => self.difference,
        }
    }

    /// The live resource is not what is recorded, whether or not the declaration changed too.
    pub fn is_drift(&self) -> bool {
        matches!(self.cause(), Some(Cause::Drift | Cause::IntendedAndDrift))
    }

    /// `topic:orders.v1`.
    pub fn label(&self) -> String {
        format!("{}:{}", self.kind, self.name)
    }
}

/// One durable action, in order. The typed tuple used by plan file, intent, dispatcher and projection alike.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub index: u32,
    pub resource_id: ResourceId,
    pub action: Verb,
    /// Control version 3 keys. At most one is set: a connector's for its deletion, a Gateway rule's always.
    pub gateway_evidence: Option<Value>,
    pub connector_evidence: Option<ConnectorActionEvidence>,
    /// Control version 4: exactly of the replacement of a runner; elsewhere the key does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kafka_streams_evidence: Option<Box<runner::Evidence>>,
}

/// Why a resource is not this project's to change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequirementReason {
    External,
    InvalidOwnership,
    OwnershipMismatch,
    RequiresAdoption,
    StateMismatch,
}

impl RequirementReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::InvalidOwnership => "invalid_ownership",
            Self::OwnershipMismatch => "ownership_mismatch",
            Self::RequiresAdoption => "requires_adoption",
            Self::StateMismatch => "state_mismatch",
        }
    }

    /// `external` informs; every other reason blocks apply.
    pub const fn blocks(self) -> bool {
        match self {
            Self::External => false,
            Self::InvalidOwnership | Self::OwnershipMismatch | Self::RequiresAdoption | Self::StateMismatch => true,
        }
    }
}

/// A resource that has to be handed over, or left alone, before the plan can be applied.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnershipRequirement {
    pub resource_id: ResourceId,
    pub kind: Kind,
    pub logical_name: String,
    pub physical_name: String,
    pub reason: RequirementReason,
    #[serde(with = "super::payload::verb_or_none")]
    pub observed_action: Option<Verb>,
    pub ownership_mode: OwnershipMode,
    pub message: String,
}

/// Why a change is not made without a decision that this version cannot take.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockerCode {
    KafkaPartitionReduction,
    SchemaIncompatible,
    FlinkUpdateRequiresSavepoint,
    FlinkResubmitRequiresStateEvidence,
    FlinkInputMissing,
    ConnectorRemovalStateProviderDrift,
    ConnectorRemovalOwnershipRequired,
    DeletionForbidden,
}

impl BlockerCode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KafkaPartitionReduction => "kafka_partition_reduction",
            Self::SchemaIncompatible => "schema_incompatible",
            Self::FlinkUpdateRequiresSavepoint => "flink_update_requires_savepoint",
            Self::FlinkResubmitRequiresStateEvidence => "flink_resubmit_requires_state_evidence",
            Self::FlinkInputMissing => "flink_input_missing",
            Self::ConnectorRemovalStateProviderDrift => "connector_removal_state_provider_drift",
            Self::ConnectorRemovalOwnershipRequired => "connector_removal_ownership_required",
            Self::DeletionForbidden => "deletion_forbidden",
        }
    }
}

/// A migration that no flag permits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyBlocker {
    pub code: BlockerCode,
    pub kind: Kind,
    /// Physical name.
    pub resource: String,
    pub action: Verb,
    pub message: String,
    pub details: Map<String, Value>,
}

impl SafetyBlocker {
    /// Whether it stops the resource of this physical name.
    pub fn stops(&self, kind: Kind, name: &str) -> bool {
        self.kind == kind && self.resource == name
    }
}

/// A record whose resource is no longer declared. Reported for information; nothing acts on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RemovalCandidate {
    pub resource_id: ResourceId,
    pub kind: Kind,
    pub physical_name: String,
    pub ownership: OwnershipMode,
}

/// A decided plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    pub project: String,
    pub environment: String,
    pub offline: bool,
    /// Every desired resource, unchanged ones included, and every deletion, in kind order; inside a kind in the order of
    /// application, deletions last.
    pub changes: Vec<Change>,
    /// Empty when blocked or offline.
    pub actions: Vec<Action>,
    /// Sorted by resource id, reason, observed action.
    pub requirements: Vec<OwnershipRequirement>,
    /// Sorted by kind, resource, code, action.
    pub blockers: Vec<SafetyBlocker>,
    /// Sorted by kind, resource, action.
    pub risks: Vec<ChangeRisk>,
    pub risk_summary: RiskSummary,
    /// Sorted by resource, change type.
    pub impact: Vec<ImpactEntry>,
    /// Tombstones that make no action, in the order of their declaration.
    pub connector_assessments: Vec<ConnectorRemovalAssessment>,
    /// Sorted by resource id; empty in a selected plan.
    pub removal_candidates: Vec<RemovalCandidate>,
    /// W146.
    pub warnings: Diagnostics,
}

impl Plan {
    /// The changes that do something.
    pub fn active(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.verb.is_some())
    }

    fn count(&self, wanted: impl Fn(Verb) -> bool) -> usize {
        self.changes.iter().filter_map(|change| change.verb).filter(|verb| wanted(*verb)).count()
    }

    pub fn creates(&self) -> usize {
        self.count(Verb::creates)
    }

    pub fn updates(&self) -> usize {
        self.count(|verb| verb == Verb::Update)
    }

    pub fn deletes(&self) -> usize {
        self.count(|verb| matches!(verb, Verb::Delete | Verb::Cancel))
    }

    pub fn has_changes(&self) -> bool {
        self.active().next().is_some()
    }

    /// There is something to do, and all of it puts back what somebody else changed.
    pub fn is_drift_alone(&self) -> bool {
        self.has_changes() && self.active().all(|change| change.cause() == Some(Cause::Drift))
    }

    /// Every requirement but the informational `external`.
    pub fn blocking_requirements(&self) -> impl Iterator<Item = &OwnershipRequirement> {
        self.requirements.iter().filter(|requirement| requirement.reason.blocks())
    }

    pub fn is_apply_blocked(&self) -> bool {
        !self.blockers.is_empty() || self.blocking_requirements().next().is_some()
    }

    pub fn blockers_of(&self, change: &Change) -> &[SafetyBlocker] {
        let key = |blocker: &SafetyBlocker| (blocker.kind, blocker.resource.as_str()).cmp(&(change.kind, &change.name));
        equal_range(&self.blockers, key)
    }

    pub fn risk_of(&self, change: &Change) -> Option<&ChangeRisk> {
        let key = |risk: &ChangeRisk| (risk.kind, risk.resource.as_str()).cmp(&(change.kind, &change.name));
        equal_range(&self.risks, key).first()
    }

    /// Each action with the change that it carries out; a reviewed plan's actions pair up by index.
    pub fn work(&self) -> impl Iterator<Item = (&Action, &Change)> {
        self.actions.iter().zip(self.active())
    }

    /// Topics that would be updated: read the lag of their consumer groups, then plan again with that evidence.
    pub fn watched_topics(&self) -> Vec<String> {
        let watched = self.active().filter(|c| c.kind == Kind::Topic && c.verb == Some(Verb::Update));
        watched.map(|change| change.name.clone()).collect()
    }

    /// The `plan` object of a reviewed plan and of the JSON output.
    pub fn payload(&self) -> PlanPayload {
        PlanPayload::of(self)
    }
}

/// The items of a sorted list that compare equal.
fn equal_range<T>(sorted: &[T], compare: impl Fn(&T) -> Ordering) -> &[T] {
    let start = sorted.partition_point(|item| compare(item) == Ordering::Less);
    let end = sorted.partition_point(|item| compare(item) != Ordering::Greater);
    &sorted[start..end]
}
