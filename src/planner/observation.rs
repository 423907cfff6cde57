//! What providers saw, as values: the planner's only knowledge of the live world.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::connector::ManagedConnectorObservation;
use super::flink::JobObservation;
use crate::compiler::artifact::SchemaType;
use crate::project::model::{Compatibility, SchemaReference};

/// A topic as read from metadata and configs. `config` holds only overrides set on the topic itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TopicObservation {
    pub name: String,
    pub exists: bool,
    /// Present iff the topic exists.
    pub partitions: Option<u32>,
    /// Replica count of the partition with the lowest id.
    pub replication_factor: Option<u16>,
    pub config: BTreeMap<String, String>,
}

impl TopicObservation {
    pub fn absent(name: impl Into<String>) -> Self {
        Self { name: name.into(), exists: false, partitions: None, replication_factor: None, config: BTreeMap::new() }
    }
}

/// The latest version of a subject and its level.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SchemaObservation {
    pub subject: String,
    pub exists: bool,
    pub version: Option<u32>,
    pub schema_id: Option<u32>,
    /// Parsed JSON for AVRO and JSON, the text in a string for PROTOBUF.
    pub schema: Option<Value>,
    pub schema_type: Option<SchemaType>,
    /// The effective level: the subject's own, else the registry's.
    pub compatibility: Option<Compatibility>,
    /// The subject's own level, when it has one.
    pub own_compatibility: Option<Compatibility>,
    /// Sorted by (name, subject, version).
    pub references: Vec<SchemaReference>,
}

impl SchemaObservation {
    pub fn absent(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            exists: false,
            version: None,
            schema_id: None,
            schema: None,
            schema_type: None,
            compatibility: None,
            own_compatibility: None,
            references: Vec::new(),
        }
    }
}

/// The registry's verdict on a candidate that differs from the latest version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompatibilityVerdict {
    Compatible,
    Incompatible,
    /// The candidate references a version that this plan creates first; the registry cannot be asked yet.
    Unproven,
}

/// How far something outside is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceStatus {
    Verified,
    Partial,
    Unavailable,
    Failed,
}

/// Lag of one consumer group on one topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLag {
    pub group_id: String,
    /// Records; the sum over partitions with a committed offset.
    pub lag: u64,
    /// Those with a committed offset, by number.
    pub partitions: Vec<PartitionLag>,
}

/// How far one consumer group is on one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionLag {
    pub partition: i32,
    /// Committed offset: the next record to read.
    pub committed: i64,
    /// The next record to be written; none when it cannot be read.
    pub end: Option<i64>,
}

impl PartitionLag {
    /// Records; a commit behind the end of a truncated partition is no lag.
    pub fn lag(&self) -> Option<u64> {
        self.end.map(|end| u64::try_from(end.saturating_sub(self.committed)).unwrap_or(0))
    }
}

/// A part that could not be read: which, by what code, and why.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct EvidenceFailure {
    pub scope: String,
    pub code: String,
    pub message: String,
}

/// Who consumes the changed topics. Never read as "no consumers" unless `status` is verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConsumerEvidence {
    pub status: EvidenceStatus,
    pub reason: Option<String>,
    pub failures: Vec<EvidenceFailure>,
    /// By topic; groups sorted.
    pub groups: BTreeMap<String, Vec<GroupLag>>,
}

/// One version of one subject.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SubjectVersion {
    pub subject: String,
    pub version: u32,
}

/// Everything observed for one plan. A desired resource missing here was not asked for (external, or another provider's).
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Observations {
    pub topics: BTreeMap<String, TopicObservation>,
    pub subjects: BTreeMap<String, SchemaObservation>,
    /// By connector name.
    pub connectors: BTreeMap<String, ManagedConnectorObservation>,
    /// By job name.
    pub jobs: BTreeMap<String, JobObservation>,
    /// By subject, for those whose content differs from the desired one.
    pub verdicts: BTreeMap<String, CompatibilityVerdict>,
    /// By subject: the version a register would create (highest number ever used + 1).
    pub next_versions: BTreeMap<String, u32>,
    /// Of the referenced versions that were asked for, those that exist.
    pub live_versions: BTreeSet<SubjectVersion>,
    /// Of the inputs that were asked for, those that certainly do not exist.
    pub absent_inputs: BTreeSet<String>,
    /// None when no topic of the plan is watched.
    pub consumers: Option<ConsumerEvidence>,
}
