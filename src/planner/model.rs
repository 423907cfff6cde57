//! The plan: what would change, what may not, and why.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::compiler::artifact::Kind;
use crate::project::model::OwnershipMode;
use crate::state::model::ResourceId;

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

/// A resource and what the plan does to it; `verb` none = unchanged or observed only.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub kind: Kind,
    /// Physical name.
    pub name: String,
    pub resource_id: Option<ResourceId>,
    pub mode: OwnershipMode,
    pub verb: Option<Verb>,
    /// Field → `{from, to}` and the like; sensitive values already `<redacted>`.
    pub changes: Map<String, Value>,
    /// What the diff said before ownership neutralised it.
    pub observed_verb: Option<Verb>,
    /// A record exists but the live resource differs from it through no change of the declaration, or is gone.
    pub drift: bool,
}

/// One durable action, in order. The typed tuple used by plan file, intent, dispatcher and projection alike.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub index: u32,
    pub resource_id: ResourceId,
    pub action: Verb,
    /// Control version 3 keys; always null for topics and schemas.
    pub gateway_evidence: Option<Value>,
    pub connector_evidence: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequirementReason {
    External,
    InvalidOwnership,
    OwnershipMismatch,
    RequiresAdoption,
    StateMismatch,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnershipRequirement {
    pub resource_id: String,
    pub kind: Kind,
    pub logical_name: String,
    pub physical_name: String,
    pub reason: RequirementReason,
    /// `none` or a verb.
    pub observed_action: String,
    pub ownership_mode: String,
    pub message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockerCode {
    KafkaPartitionReduction,
    SchemaIncompatible,
    FlinkUpdateRequiresSavepoint,
    FlinkResubmitRequiresStateEvidence,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyBlocker {
    pub code: BlockerCode,
    pub kind: Kind,
    pub resource: String,
    pub action: String,
    pub message: String,
    pub details: Map<String, Value>,
}
