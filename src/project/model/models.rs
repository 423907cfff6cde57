//! Models, their blocks and their references.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::origin::Origin;
use super::sources::{Classification, Column, OwnershipBlock, SchemaBlock};

/// What a model becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Materialized {
    Topic,
    VirtualTopic,
    Flink,
    Sink,
}

impl Materialized {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::VirtualTopic => "virtual_topic",
            Self::Flink => "flink",
            Self::Sink => "sink",
        }
    }
}

/// What runs a model's SQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    Flink,
    KafkaStreams,
}

/// A dependency by name: a source or a model.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reference {
    Source(String),
    Model(String),
}

impl Reference {
    pub fn name(&self) -> &str {
        match self {
            Self::Source(name) | Self::Model(name) => name,
        }
    }
}

/// `{"source": …, "ref": …}`, the absent one null.
impl Serialize for Reference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let (source, model) = match self {
            Self::Source(name) => (Some(name), None),
            Self::Model(name) => (None, Some(name)),
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("source", &source)?;
        map.serialize_entry("ref", &model)?;
        map.end()
    }
}

/// The `topic` block: what is written overrides the defaults.
#[derive(Clone, Debug, Serialize)]
pub struct TopicBlock {
    pub name: Option<String>,
    pub partitions: Option<u32>,
    pub replication_factor: Option<u16>,
    /// As authored: string, integer or boolean.
    pub config: Map<String, Value>,
}

/// The `flink` block: values as authored, checked against the field table; see `language` 10.4.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlinkBlock {
    pub parallelism: Option<u32>,
    pub state_ttl_ms: Option<i64>,
    pub state_backend: Option<String>,
    pub checkpoint_interval_ms: Option<u64>,
    pub checkpoint: Option<Map<String, Value>>,
    pub rocksdb: Option<Map<String, Value>>,
    pub resources: Option<Map<String, Value>>,
    pub restart_strategy: Option<Map<String, Value>>,
    pub changelog_mode: Option<ChangelogMode>,
}

/// How a Flink table tells updates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangelogMode {
    Append,
    Upsert,
}

/// The `gateway` block.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayBlock {
    pub virtual_topic: Option<VirtualTopicBlock>,
}

/// A topic that only exists at the Gateway.
#[derive(Clone, Debug, Serialize)]
pub struct VirtualTopicBlock {
    pub name: Option<String>,
    pub compression: Option<String>,
}

/// The `sink` block: a connector and its configuration.
#[derive(Clone, Debug, Serialize)]
pub struct SinkBlock {
    pub connector: String,
    pub connection: Option<String>,
    pub config: Map<String, Value>,
}

/// The class that a short connector name stands for, or the text itself.
pub fn connector_class(connector: &str) -> &str {
    match connector {
        "snowflake-sink" => "com.snowflake.kafka.connector.SnowflakeSinkConnector",
        "jdbc-sink" => "io.confluent.connect.jdbc.JdbcSinkConnector",
        "s3-sink" => "io.confluent.connect.s3.S3SinkConnector",
        "elasticsearch-sink" => "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        "bigquery-sink" => "com.wepay.kafka.connect.bigquery.BigQuerySinkConnector",
        class => class,
    }
}

/// The `security` block: classifications and policies.
#[derive(Clone, Debug, Serialize)]
pub struct SecurityBlock {
    pub classification: BTreeMap<String, Classification>,
    /// As authored: one-key maps `mask`, `allow`, `deny`.
    pub policies: Vec<Value>,
}

impl SecurityBlock {
    /// The columns and methods of the `mask` policies, with their index in the whole policy list.
    pub fn masks(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        self.policies.iter().enumerate().filter_map(|(index, policy)| {
            let mask = policy.get("mask")?;
            Some((index, mask.get("column")?.as_str()?, mask.get("method").and_then(Value::as_str).unwrap_or("null")))
        })
    }
}

/// Who may refer to a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Private,
    Protected,
    Public,
}

/// A column that a contract promises.
#[derive(Clone, Debug, Serialize)]
pub struct ContractColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: Option<String>,
    pub nullable: Option<bool>,
    pub description: Option<String>,
}

/// What a model promises to its readers.
#[derive(Clone, Debug, Serialize)]
pub struct Contract {
    pub enforced: bool,
    pub columns: Vec<ContractColumn>,
}

/// A model: a topic, and what fills it.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    pub name: String,
    pub description: Option<String>,
    pub owner: Option<String>,
    pub group: Option<String>,
    pub region: Option<String>,
    pub key: Option<String>,
    pub sql: Option<String>,
    #[serde(rename = "macro")]
    pub macro_name: Option<String>,
    pub params: BTreeMap<String, String>,
    #[serde(rename = "from_")]
    pub from: Option<Vec<Reference>>,
    pub columns: Vec<Column>,
    pub primary_key: Option<Vec<String>>,
    pub ownership: OwnershipBlock,
    pub tags: Vec<String>,
    pub materialized: Option<Materialized>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    pub topic: Option<TopicBlock>,
    pub flink: Option<FlinkBlock>,
    pub flink_cluster: Option<String>,
    pub connect_cluster: Option<String>,
    pub gateway: Option<GatewayBlock>,
    pub sink: Option<SinkBlock>,
    #[serde(rename = "schema_", skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaBlock>,
    pub security: Option<SecurityBlock>,
    /// As authored: model name → `{columns, description?}`.
    pub ml_outputs: Option<Map<String, Value>>,
    pub access: Access,
    pub version: Option<i64>,
    pub contract: Option<Contract>,
    #[serde(skip)]
    pub origin: Origin,
}

impl Model {
    /// The physical output topic, whatever kind of model this is.
    pub fn topic_name(&self) -> &str {
        self.topic.as_ref().and_then(|topic| topic.name.as_deref()).unwrap_or(&self.name)
    }

    /// The alias of a virtual topic.
    pub fn alias(&self) -> &str {
        self.gateway
            .as_ref()
            .and_then(|gateway| gateway.virtual_topic.as_ref())
            .and_then(|virtual_topic| virtual_topic.name.as_deref())
            .unwrap_or_else(|| self.topic_name())
    }
}
