//! Who is downstream of a changed topic: by the declared graph, and by the consumer groups that were seen.

use serde::{Deserialize, Serialize};

use super::observation::{EvidenceFailure, EvidenceStatus};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeType {
    TopicCreate,
    TopicUpdate,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactedExposure {
    pub name: String,
    pub owners: Vec<String>,
    pub consumer_group: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactedConsumer {
    pub group_id: String,
    /// Records. Shown and kept in the file, never a reason for a stale plan.
    pub lag: u64,
    /// Whether a downstream exposure names exactly this group.
    pub declared: bool,
    pub declared_exposures: Vec<String>,
}

/// How far one part of an entry is known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactEvidence {
    pub status: EvidenceStatus,
    pub source: Option<String>,
    pub reason: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsumerImpactEvidence {
    pub status: EvidenceStatus,
    pub source: String,
    pub reason: Option<String>,
    pub failures: Vec<EvidenceFailure>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactEntry {
    /// Topic.
    pub resource: String,
    pub logical_type: Option<String>,
    pub logical_name: Option<String>,
    /// `model/<name>`.
    pub logical_resource: Option<String>,
    pub change_type: ChangeType,
    pub downstream_models: Vec<String>,
    pub exposures: Vec<ImpactedExposure>,
    pub owners: Vec<String>,
    pub consumers: Vec<ImpactedConsumer>,
    pub identity_evidence: ImpactEvidence,
    pub graph_evidence: ImpactEvidence,
    /// "No consumers" may be said only when this is verified.
    pub consumer_evidence: ConsumerImpactEvidence,
}
