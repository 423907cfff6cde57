//! The artifacts a project compiles to, one type per kind, and the manifest that holds them. The constructors that check an
//! artifact are also its strict readers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
            Self::Schema | Self::Topic => true,
            Self::FlinkJob | Self::KafkaStreamsJob | Self::Connector | Self::GatewayRule => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnerType {
    Model,
    Source,
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

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaArtifact {
    pub subject: String,
    /// A JSON value for AVRO and JSON, the text in a string for PROTOBUF.
    pub schema: Value,
    pub schema_type: SchemaType,
    /// None = the level is not managed.
    pub compatibility: Option<Compatibility>,
    /// Sorted by (name, subject, version).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<SchemaReference>,
    pub ownership: Ownership,
}

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

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlinkJobArtifact {
    pub name: String,
    pub sql: String,
    pub cluster: Option<String>,
    pub parallelism: Option<u32>,
    pub checkpoint_interval_ms: Option<u64>,
    pub state_backend: Option<String>,
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

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interceptor {
    #[serde(rename = "type")]
    pub interceptor_type: String,
    pub config: Map<String, Value>,
}

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

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectorRemovalArtifact {
    #[serde(rename = "logicalOwner")]
    pub logical_owner: String,
    pub name: String,
    pub cluster: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayRuleRemovalArtifact {
    #[serde(rename = "logicalOwner")]
    pub logical_owner: String,
    #[serde(rename = "priorArtifact")]
    pub prior_artifact: GatewayRuleArtifact,
}

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
