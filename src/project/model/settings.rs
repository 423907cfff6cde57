//! Defaults, rules, removals and connections.

use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::origin::Origin;

/// Counts for topics that give none.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TopicDefaults {
    pub partitions: Option<u32>,
    pub replication_factor: Option<u16>,
}

/// Defaults of the project, and of its models alone.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Defaults {
    pub topic: TopicDefaults,
    pub model_topic: TopicDefaults,
    pub model_cluster: Option<String>,
    pub test_flink_cluster: Option<String>,
}

/// Governance rules of the project.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// True when a `rules` block was written.
    pub declared: bool,
    pub topics: TopicRules,
    pub models: ModelRules,
    pub require_source_schema: bool,
    pub require_source_freshness: bool,
    pub require_classification: bool,
    pub sensitive_columns_require_masking: bool,
    pub allowed_regions: Vec<String>,
}

/// Rules about topics.
#[derive(Clone, Debug, Default)]
pub struct TopicRules {
    pub min_partitions: Option<i64>,
    pub max_partitions: Option<i64>,
    pub min_replication_factor: Option<i64>,
    pub max_replication_factor: Option<i64>,
    pub max_retention_ms: Option<i64>,
    pub required_config: Vec<String>,
    /// Anchored at the start.
    pub naming_pattern: Option<Regex>,
    pub forbidden_prefixes: Vec<String>,
    pub forbidden_suffixes: Vec<String>,
}

/// Rules about models.
#[derive(Clone, Debug, Default)]
pub struct ModelRules {
    pub require_description: bool,
    pub require_owner: bool,
    pub require_tests: bool,
    pub valid_owners: Vec<String>,
    pub max_dependencies: Option<u32>,
}

/// A connector that the project gives up, as declared under `lifecycle`.
#[derive(Clone, Debug)]
pub struct ConnectorRemoval {
    pub logical_owner: String,
    pub name: String,
    pub cluster: String,
    pub origin: Origin,
}

/// A Gateway rule that the project gives up, as declared under `lifecycle`.
#[derive(Clone, Debug)]
pub struct GatewayRuleRemoval {
    pub logical_owner: String,
    pub name: String,
    pub virtual_topic: String,
    pub physical_topic: String,
    /// Tagged items in author's order, `forRoles` filled: `{"type","config"}`.
    pub interceptors: Vec<Value>,
    pub origin: Origin,
}

/// Settings that sinks share by name.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    #[serde(rename = "type")]
    pub kind: String,
    pub config: Map<String, Value>,
    #[serde(skip)]
    pub origin: Origin,
}
