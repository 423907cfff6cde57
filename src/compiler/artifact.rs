//! The artifacts a project compiles to, one type per kind. [`read`] is their one strict reader: what it refuses, nothing that
//! plans, exports or recovers ever sees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::canonical::numbers_in_range;
use crate::project::model::{Compatibility, OwnershipMode, SchemaReference};

/// The six kinds in the one order of the product: actions, blockers, risks, diffs. One row per kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Schema,
    Topic,
    FlinkJob,
    KafkaStreamsJob,
    Connector,
    GatewayRule,
}

impl Kind {
    pub const ALL: [Kind; 6] =
        [Kind::Schema, Kind::Topic, Kind::FlinkJob, Kind::KafkaStreamsJob, Kind::Connector, Kind::GatewayRule];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Topic => "topic",
            Self::FlinkJob => "flink_job",
            Self::KafkaStreamsJob => "kafka_streams_job",
            Self::Connector => "connector",
            Self::GatewayRule => "gateway_rule",
        }
    }

    pub fn parse(text: &str) -> Option<Kind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether this version can deploy the kind; `plan` refuses the others with E221.
    pub const fn deployable(self) -> bool {
        match self {
            Self::Schema | Self::Topic | Self::FlinkJob | Self::Connector => true,
            Self::KafkaStreamsJob | Self::GatewayRule => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What kind of declaration an artifact comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnerType {
    Model,
    Source,
}

impl OwnerType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Source => "source",
        }
    }
}

/// Who declared an artifact, and with which authority over the live resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ownership {
    pub mode: OwnershipMode,
    pub project: String,
    #[serde(rename = "type")]
    pub owner_type: OwnerType,
    pub name: String,
}

/// The schema languages of a registry, as it spells them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SchemaType {
    Avro,
    Json,
    Protobuf,
}

impl SchemaType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Avro => "AVRO",
            Self::Json => "JSON",
            Self::Protobuf => "PROTOBUF",
        }
    }
}

/// A subject to register.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaArtifact {
    pub subject: String,
    /// A JSON value for AVRO and JSON, the text in a string for PROTOBUF.
    pub schema: Value,
    pub schema_type: SchemaType,
    /// None = the level is not managed.
    #[serde(deserialize_with = "present")]
    pub compatibility: Option<Compatibility>,
    /// Sorted by (name, subject, version).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<SchemaReference>,
    pub ownership: Ownership,
}

/// A topic to create or alter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicArtifact {
    pub name: String,
    /// 1..=2147483647.
    pub partitions: u32,
    /// 1..=32767.
    pub replication_factor: u16,
    pub config: BTreeMap<String, String>,
    pub ownership: Ownership,
}

/// A Flink SQL job to submit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlinkJobArtifact {
    pub name: String,
    pub sql: String,
    #[serde(deserialize_with = "present")]
    pub cluster: Option<String>,
    #[serde(deserialize_with = "present")]
    pub parallelism: Option<u32>,
    #[serde(deserialize_with = "present")]
    pub checkpoint_interval_ms: Option<u64>,
    #[serde(deserialize_with = "present")]
    pub state_backend: Option<String>,
    #[serde(deserialize_with = "present")]
    pub state_ttl_ms: Option<u64>,
    pub ownership: Ownership,
}

/// `Debug` shows names only: a connector's config may hold anything.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectorArtifact {
    pub name: String,
    pub connector_class: String,
    pub topics: Vec<String>,
    #[serde(deserialize_with = "present")]
    pub cluster: Option<String>,
    /// Strings only; includes `name`, `connector.class`, `topics`.
    pub config: BTreeMap<String, String>,
    pub ownership: Ownership,
}

impl fmt::Debug for ConnectorArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorArtifact").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One rule of a virtual topic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interceptor {
    #[serde(rename = "type")]
    pub interceptor_type: String,
    pub config: Map<String, Value>,
}

/// A virtual topic and what happens between it and its physical one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayRuleArtifact {
    pub name: String,
    #[serde(rename = "virtualTopic")]
    pub virtual_topic: String,
    #[serde(rename = "physicalTopic")]
    pub physical_topic: String,
    pub interceptors: Vec<Interceptor>,
    pub ownership: Ownership,
}

/// The runner's job; its plan is compiled by a later version of the SQL subset.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaStreamsJobArtifact {
    pub name: String,
    pub application_id: String,
    pub image: String,
    pub network: String,
    pub initial_offset: String,
    pub plan: Value,
    pub ownership: Ownership,
}

/// A connector that the project asks to delete.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectorRemovalArtifact {
    #[serde(rename = "logicalOwner")]
    pub logical_owner: String,
    pub name: String,
    pub cluster: String,
}

/// A Gateway rule that the project asks to delete, as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayRuleRemovalArtifact {
    #[serde(rename = "logicalOwner")]
    pub logical_owner: String,
    #[serde(rename = "priorArtifact")]
    pub prior_artifact: GatewayRuleArtifact,
}

/// All that a project compiles to; each list in the order in which the manifest has it.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifacts {
    pub schemas: Vec<SchemaArtifact>,
    pub topics: Vec<TopicArtifact>,
    pub flink_jobs: Vec<FlinkJobArtifact>,
    pub test_jobs: Vec<FlinkJobArtifact>,
    pub connectors: Vec<ConnectorArtifact>,
    pub gateway_rules: Vec<GatewayRuleArtifact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kafka_streams_jobs: Vec<KafkaStreamsJobArtifact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connector_removals: Vec<ConnectorRemovalArtifact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway_rule_removals: Vec<GatewayRuleRemovalArtifact>,
}

/// Config keys of a connector that repeat its artifact: name, class, topics joined by `,`.
pub const RESERVED_CONFIG: [&str; 3] = ["name", "connector.class", "topics"];

/// An optional field whose key must be there: null is a value, absence is not.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// Why an artifact was refused. It never holds a value of the artifact.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the {kind} artifact {why}")]
pub struct ArtifactError {
    pub kind: &'static str,
    pub why: &'static str,
}

/// One kind of artifact and the rules that its fields' types cannot say.
pub trait Artifact: Serialize + DeserializeOwned {
    const KIND: &'static str;

    fn check(&self, project: &str) -> Result<(), &'static str>;
}

/// Reads an artifact strictly: every key present, none unknown, every rule of its kind kept, owned by `project`.
pub fn read<A: Artifact>(value: Value, project: &str) -> Result<A, ArtifactError> {
    let refused = |why| ArtifactError { kind: A::KIND, why };
    let artifact: A = serde_json::from_value(value).map_err(|_| refused("does not have the expected shape"))?;
    artifact.check(project).map_err(refused)?;
    Ok(artifact)
}

impl Ownership {
    fn check(&self, project: &str) -> Result<(), &'static str> {
        if self.project.is_empty() || self.name.is_empty() {
            return Err("names no owner");
        }
        if self.project == project { Ok(()) } else { Err("belongs to another project") }
    }
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// `[A-Za-z0-9._-]{1,249}`, neither `.` nor `..`.
pub fn is_topic_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=249).contains(&name.len()) && name.chars().all(legal) && name != "." && name != ".."
}

impl Artifact for SchemaArtifact {
    const KIND: &'static str = "schema";

    fn check(&self, project: &str) -> Result<(), &'static str> {
        if blank(&self.subject) {
            return Err("has a blank subject");
        }
        if self.schema_type == SchemaType::Protobuf && !self.schema.is_string() {
            return Err("has a body of another type");
        }
        if !numbers_in_range(&self.schema) {
            return Err("holds a number out of range");
        }
        if self
            .references
            .iter()
            .any(|reference| blank(&reference.name) || blank(&reference.subject) || reference.version == 0)
        {
            return Err("has an incomplete reference");
        }
        if !self.references.is_sorted() {
            return Err("has references out of order");
        }
        self.ownership.check(project)
    }
}

impl Artifact for TopicArtifact {
    const KIND: &'static str = "topic";

    fn check(&self, project: &str) -> Result<(), &'static str> {
        if !is_topic_name(&self.name) {
            return Err("has no legal topic name");
        }
        if !(1..=i32::MAX as u32).contains(&self.partitions)
            || !(1..=i16::MAX as u16).contains(&self.replication_factor)
        {
            return Err("has partitions or a replication factor out of range");
        }
        self.ownership.check(project)
    }
}

impl Artifact for FlinkJobArtifact {
    const KIND: &'static str = "flink_job";

    fn check(&self, project: &str) -> Result<(), &'static str> {
        if blank(&self.name) || blank(&self.sql) {
            return Err("has a blank name or no SQL");
        }
        self.ownership.check(project)
    }
}

impl Artifact for ConnectorArtifact {
    const KIND: &'static str = "connector";

    fn check(&self, project: &str) -> Result<(), &'static str> {
        if blank(&self.name) || blank(&self.connector_class) {
            return Err("has a blank name or class");
        }
        if self.topics.is_empty() || self.topics.iter().any(|topic| blank(topic)) {
            return Err("has no topics or a blank one");
        }
        let canonical = [self.name.clone(), self.connector_class.clone(), self.topics.join(",")];
        if RESERVED_CONFIG.iter().zip(&canonical).any(|(key, value)| self.config.get(*key) != Some(value)) {
            return Err("contradicts its own config");
        }
        if self.config.keys().any(|key| blank(key)) || self.cluster.as_deref().is_some_and(blank) {
            return Err("has a blank config key or cluster");
        }
        self.ownership.check(project)
    }
}

impl Artifact for GatewayRuleArtifact {
    const KIND: &'static str = "gateway_rule";

    fn check(&self, project: &str) -> Result<(), &'static str> {
        if [&self.name, &self.virtual_topic, &self.physical_topic].iter().any(|name| blank(name)) {
            return Err("has a blank name");
        }
        if !self.interceptors.iter().all(Interceptor::is_known) {
            return Err("has an interceptor of another form");
        }
        self.ownership.check(project)
    }
}

impl Interceptor {
    /// `filter {where}` or `mask {field, method, forRoles}`; roles are distinct.
    fn is_known(&self) -> bool {
        let text = |key: &str| self.config.get(key).and_then(Value::as_str).is_some_and(|text| !blank(text));
        let only = |keys: &[&str]| self.config.keys().all(|key| keys.contains(&key.as_str()));
        match self.interceptor_type.as_str() {
            "filter" => text("where") && only(&["where"]),
            "mask" => {
                let roles = match self.config.get("forRoles") {
                    None => true,
                    Some(Value::Array(roles)) => {
                        let names: BTreeSet<&str> =
                            roles.iter().filter_map(Value::as_str).filter(|role| !blank(role)).collect();
                        names.len() == roles.len()
                    }
                    Some(_) => false,
                };
                text("field") && text("method") && only(&["field", "method", "forRoles"]) && roles
            }
            _ => false,
        }
    }
}

impl Artifact for KafkaStreamsJobArtifact {
    const KIND: &'static str = "kafka_streams_job";

    fn check(&self, project: &str) -> Result<(), &'static str> {
        let mut letters = self.name.chars();
        let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if !first || !letters.all(legal) || self.name.len() > 128 {
            return Err("has no legal name");
        }
        let hex = |digits: &str| {
            digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        if !self.application_id.strip_prefix("streamt-").is_some_and(hex) {
            return Err("has no legal application id");
        }
        if self.ownership.owner_type != OwnerType::Model || self.ownership.name != self.name {
            return Err("is not owned by its model");
        }
        self.ownership.check(project)
    }
}

impl Artifact for ConnectorRemovalArtifact {
    const KIND: &'static str = "connector removal";

    fn check(&self, _project: &str) -> Result<(), &'static str> {
        let within = |text: &str, limit: usize| {
            !blank(text) && text.chars().count() <= limit && !text.chars().any(char::is_control)
        };
        let whole = within(&self.logical_owner, 128) && !self.logical_owner.contains('/');
        if whole && within(&self.name, 256) && within(&self.cluster, 128) {
            Ok(())
        } else {
            Err("is out of its limits")
        }
    }
}

impl Artifact for GatewayRuleRemovalArtifact {
    const KIND: &'static str = "gateway rule removal";

    fn check(&self, project: &str) -> Result<(), &'static str> {
        let owner = &self.prior_artifact.ownership;
        let managed = owner.mode == OwnershipMode::Managed && owner.owner_type == OwnerType::Model;
        if blank(&self.logical_owner)
            || self.logical_owner.contains('/')
            || !managed
            || owner.name != self.logical_owner
        {
            return Err("does not name the rule's owner");
        }
        self.prior_artifact.check(project)
    }
}

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;
