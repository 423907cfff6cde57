//! A loaded project: every section and field of the language as closed types, defaults filled in, conversions done
//! (`columns` from `schema.fields`, `owner` from `owners`, `connector` → `sink`, the `from` shorthand).

use std::collections::BTreeMap;
use std::path::PathBuf;

use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value};

use super::origin::Origin;
use super::secret::Secret;

/// A project bound to one environment, ready for validation and compilation. Immutable.
#[derive(Clone, Debug)]
pub struct Project {
    /// Canonical directory; the base of every relative path.
    pub root: PathBuf,
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub environment: Environment,
    pub runtime: Runtime,
    pub runtime_document: RuntimeDocument,
    pub deployment_state: DeploymentState,
    pub state_variables: StateVariables,
    pub defaults: Defaults,
    pub rules: Rules,
    pub connector_removals: Vec<ConnectorRemoval>,
    pub gateway_rule_removals: Vec<GatewayRuleRemoval>,
    pub connections: BTreeMap<String, Connection>,
    pub sources: Vec<Source>,
    pub models: Vec<Model>,
    pub tests: Vec<Test>,
    pub exposures: Vec<Exposure>,
    pub udfs: Vec<Udf>,
    /// Macro templates by name: text of `macros/<name>.sql.j2`.
    pub macros: BTreeMap<String, String>,
}

/// `runtime` as written, after interpolation: what the environment fingerprint covers. It holds secrets, so `Debug` prints
/// nothing of it; redact before printing.
#[derive(Clone, Default)]
pub struct RuntimeDocument(Value);

impl RuntimeDocument {
    pub fn new(document: Value) -> Self {
        Self(document)
    }

    pub fn expose(&self) -> &Value {
        &self.0
    }
}

impl std::fmt::Debug for RuntimeDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RuntimeDocument(**********)")
    }
}

/// The effective environment and its policy. Names never imply policy.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The name in identities; `default` in a project without `environments/`.
    pub name: String,
    /// False in a project without `environments/`.
    pub multi: bool,
    pub description: String,
    pub protected: bool,
    pub confirm_apply: bool,
    pub allow_destructive: bool,
    pub require_reviewed_plan: bool,
    pub require_remote_state: bool,
    /// Minutes, 1..525600; none = no limit.
    pub reviewed_plan_max_age_minutes: Option<u32>,
}

impl Environment {
    pub fn requires_reviewed_plan(&self) -> bool {
        self.protected || self.require_reviewed_plan
    }

    pub fn requires_confirmation(&self) -> bool {
        self.protected || self.confirm_apply
    }

    /// The name a user asked for: none in a project without environments.
    pub fn requested(&self) -> Option<&str> {
        self.multi.then_some(self.name.as_str())
    }
}

#[derive(Clone, Debug, Default)]
pub struct Runtime {
    pub kafka: Option<KafkaRuntime>,
    pub schema_registry: Option<SchemaRegistryRuntime>,
    pub flink: Option<FlinkRuntime>,
    pub connect: Option<ConnectRuntime>,
    pub gateway: Option<GatewayRuntime>,
    pub kafka_streams: Option<KafkaStreamsRuntime>,
}

/// TLS files as written; relative ones are relative to the project root.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    pub ca_location: Option<PathBuf>,
    pub certificate_location: Option<PathBuf>,
    pub key_location: Option<PathBuf>,
    pub key_password: Option<Secret>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SaslMechanism {
    Plain,
    ScramSha256,
    ScramSha512,
    OAuthBearer,
    AwsMskIam,
}

#[derive(Clone, Debug)]
pub struct KafkaRuntime {
    pub bootstrap_servers: String,
    pub bootstrap_servers_internal: Option<String>,
    pub security_protocol: Option<SecurityProtocol>,
    pub sasl_mechanism: Option<SaslMechanism>,
    pub sasl_username: Option<String>,
    pub sasl_password: Option<Secret>,
    pub sasl_oauth_token_url: Option<String>,
    pub sasl_oauth_client_id: Option<String>,
    pub sasl_oauth_client_secret: Option<Secret>,
    pub sasl_oauth_scope: Option<String>,
    pub aws_region: Option<String>,
    pub tls: Tls,
}

impl KafkaRuntime {
    /// A cluster that asks for no authentication.
    pub fn plain(bootstrap_servers: impl Into<String>) -> Self {
        Self {
            bootstrap_servers: bootstrap_servers.into(),
            bootstrap_servers_internal: None,
            security_protocol: None,
            sasl_mechanism: None,
            sasl_username: None,
            sasl_password: None,
            sasl_oauth_token_url: None,
            sasl_oauth_client_id: None,
            sasl_oauth_client_secret: None,
            sasl_oauth_scope: None,
            aws_region: None,
            tls: Tls::default(),
        }
    }
}

/// `username` and `password` of an HTTP service; half of a pair is refused when the client is built.
#[derive(Clone, Debug, Default)]
pub struct BasicAuth {
    pub username: Option<String>,
    pub password: Option<Secret>,
}

#[derive(Clone, Debug)]
pub struct SchemaRegistryRuntime {
    pub url: String,
    pub auth: BasicAuth,
    /// Bearer token; excludes `auth`.
    pub token: Option<Secret>,
    pub tls: Tls,
}

#[derive(Clone, Debug)]
pub struct FlinkRuntime {
    pub default: Option<String>,
    pub clusters: BTreeMap<String, FlinkCluster>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlinkClusterType {
    Rest,
    Confluent,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KafkaConnectorFlavour {
    Sql,
    Plain,
}

#[derive(Clone, Debug)]
pub struct FlinkCluster {
    pub cluster_type: FlinkClusterType,
    pub rest_url: Option<String>,
    pub sql_gateway_url: Option<String>,
    pub version: Option<String>,
    pub environment: Option<String>,
    pub kafka_connector: KafkaConnectorFlavour,
    pub api_key: Option<Secret>,
    pub api_secret: Option<Secret>,
    pub auth: BasicAuth,
    pub tls: Tls,
    /// Confluent only: `organization_id`, `environment_id`, `compute_pool_id`, `catalog`, `database`, `principal`.
    pub confluent: BTreeMap<String, String>,
    /// Seconds.
    pub timeout: u32,
    pub retries: u32,
    /// Seconds.
    pub statement_timeout: u32,
}

#[derive(Clone, Debug)]
pub struct ConnectRuntime {
    pub default: Option<String>,
    pub clusters: BTreeMap<String, ConnectCluster>,
}

#[derive(Clone, Debug)]
pub struct ConnectCluster {
    pub rest_url: String,
    pub auth: BasicAuth,
    pub tls: Tls,
}

#[derive(Clone, Debug)]
pub struct GatewayRuntime {
    pub admin_url: Option<String>,
    pub proxy_bootstrap: Option<String>,
    pub auth: BasicAuth,
    pub virtual_cluster: Option<String>,
    pub tls: Tls,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InitialOffset {
    Earliest,
    Latest,
}

#[derive(Clone, Debug)]
pub struct KafkaStreamsRuntime {
    pub image: String,
    pub network: String,
    pub initial_offset: InitialOffset,
    /// Seconds.
    pub startup_timeout: u32,
    /// Seconds.
    pub stop_timeout: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeploymentState {
    Local {
        /// Seconds.
        lock_timeout: u32,
    },
    Postgres(PostgresState),
}

/// Names of variables, never values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PostgresState {
    pub namespace: String,
    /// Seconds.
    pub lock_timeout: u32,
    pub dsn_env: String,
    pub writer_dsn_env: Option<String>,
    pub writer_role_env: Option<String>,
    pub schema: String,
}

/// The values of the variables that [`PostgresState`] names, for whoever connects. `Debug` prints none.
#[derive(Clone, Default)]
pub struct StateVariables {
    values: BTreeMap<String, Secret>,
    redirecting: Option<&'static str>,
}

impl StateVariables {
    /// Variables of a process with which other clients of PostgreSQL replace what a connection string says.
    const REDIRECTING: [&str; 5] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE", "PGSERVICEFILE"];

    /// `variables` = of the process and of the project's files; `process` = of the process alone.
    pub fn of(
        state: &DeploymentState,
        variables: &BTreeMap<String, String>,
        process: &BTreeMap<String, String>,
    ) -> Self {
        let DeploymentState::Postgres(postgres) = state else { return Self::default() };
        let names = [Some(&postgres.dsn_env), postgres.writer_dsn_env.as_ref(), postgres.writer_role_env.as_ref()];
        let values = names
            .into_iter()
            .flatten()
            .filter_map(|name| Some((name.clone(), Secret::new(variables.get(name)?.as_str()))))
            .collect();
        Self { values, redirecting: Self::REDIRECTING.into_iter().find(|name| process.contains_key(*name)) }
    }

    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.values.get(name)
    }

    /// The name of a variable of the process that must not be set.
    pub fn redirecting(&self) -> Option<&'static str> {
        self.redirecting
    }
}

impl std::fmt::Debug for StateVariables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateVariables(**********)")
    }
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TopicDefaults {
    pub partitions: Option<u32>,
    pub replication_factor: Option<u16>,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Defaults {
    pub topic: TopicDefaults,
    pub model_topic: TopicDefaults,
    pub model_cluster: Option<String>,
    pub test_flink_cluster: Option<String>,
}

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

#[derive(Clone, Debug, Default)]
pub struct ModelRules {
    pub require_description: bool,
    pub require_owner: bool,
    pub require_tests: bool,
    pub valid_owners: Vec<String>,
    pub max_dependencies: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct ConnectorRemoval {
    pub logical_owner: String,
    pub name: String,
    pub cluster: String,
    pub origin: Origin,
}

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

#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    #[serde(rename = "type")]
    pub kind: String,
    pub config: Map<String, Value>,
    #[serde(skip)]
    pub origin: Origin,
}

/// Who owns a resource: only `managed` and `adopted` may be written to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnershipMode {
    External,
    Managed,
    Adopted,
}

impl OwnershipMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Managed => "managed",
            Self::Adopted => "adopted",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct OwnershipBlock {
    pub mode: OwnershipMode,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaFormat {
    Avro,
    Json,
    Protobuf,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Compatibility {
    None,
    Backward,
    BackwardTransitive,
    Forward,
    ForwardTransitive,
    Full,
    FullTransitive,
}

impl Compatibility {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Backward => "BACKWARD",
            Self::BackwardTransitive => "BACKWARD_TRANSITIVE",
            Self::Forward => "FORWARD",
            Self::ForwardTransitive => "FORWARD_TRANSITIVE",
            Self::Full => "FULL",
            Self::FullTransitive => "FULL_TRANSITIVE",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchemaVersion {
    Latest,
    Number(u32),
}

impl Serialize for SchemaVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Latest => serializer.serialize_str("latest"),
            Self::Number(number) => serializer.serialize_u32(*number),
        }
    }
}

/// A schema that a text imports: `name` is the import name, `version` a positive number, never `latest`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaReference {
    pub name: String,
    pub subject: String,
    pub version: u32,
}

#[derive(Clone, Debug, Serialize)]
pub struct SchemaBlock {
    pub registry: Option<String>,
    pub subject: Option<String>,
    pub version: SchemaVersion,
    pub format: Option<SchemaFormat>,
    pub definition: Option<String>,
    pub fields: Option<Vec<Column>>,
    pub compatibility: Option<Compatibility>,
    pub references: Vec<SchemaReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_format: Option<TimestampFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampFormat {
    Sql,
    #[serde(rename = "iso_8601")]
    Iso8601,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Classification {
    Public,
    Internal,
    Confidential,
    Sensitive,
    HighlySensitive,
}

impl Classification {
    pub fn is_sensitive(self) -> bool {
        matches!(self, Self::Sensitive | Self::HighlySensitive)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Column {
    pub name: String,
    /// Flink SQL type text.
    #[serde(rename = "type")]
    pub data_type: Option<String>,
    pub classification: Option<Classification>,
    pub description: Option<String>,
    pub required: bool,
    pub proctime: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Freshness {
    pub max_lag_seconds: Option<i64>,
    pub warn_after_seconds: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WatermarkStrategy {
    BoundedOutOfOrderness,
    MonotonouslyIncreasing,
    Custom,
}

#[derive(Clone, Debug, Serialize)]
pub struct Watermark {
    pub strategy: WatermarkStrategy,
    pub max_out_of_orderness_ms: u64,
    pub expression: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct EventTime {
    pub column: String,
    pub watermark: Option<Watermark>,
    pub allowed_lateness_ms: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Source {
    pub name: String,
    pub topic: String,
    pub description: Option<String>,
    pub owner: Option<String>,
    pub region: Option<String>,
    pub cluster: Option<String>,
    pub tags: Vec<String>,
    pub ownership: OwnershipBlock,
    #[serde(rename = "schema_")]
    pub schema: Option<SchemaBlock>,
    pub columns: Vec<Column>,
    pub freshness: Option<Freshness>,
    pub event_time: Option<EventTime>,
    #[serde(skip)]
    pub origin: Origin,
}

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

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangelogMode {
    Append,
    Upsert,
}

#[derive(Clone, Debug, Serialize)]
pub struct GatewayBlock {
    pub virtual_topic: Option<VirtualTopicBlock>,
}

#[derive(Clone, Debug, Serialize)]
pub struct VirtualTopicBlock {
    pub name: Option<String>,
    pub compression: Option<String>,
}

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

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Private,
    Protected,
    Public,
}

#[derive(Clone, Debug, Serialize)]
pub struct ContractColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: Option<String>,
    pub nullable: Option<bool>,
    pub description: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Contract {
    pub enforced: bool,
    pub columns: Vec<ContractColumn>,
}

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

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TestType {
    Schema,
    Sample,
    Continuous,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

#[derive(Clone, Debug, Serialize)]
pub struct OnFailure {
    pub severity: Severity,
    /// As authored: `{"dlq": true}` or `{"dlq": {"model"?, "topic"?}}`.
    pub actions: Vec<Value>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Test {
    pub name: String,
    pub model: String,
    #[serde(rename = "type")]
    pub test_type: TestType,
    /// As authored: one-key maps, shapes checked at load.
    pub assertions: Vec<Value>,
    pub sample_size: Option<u32>,
    pub flink_cluster: Option<String>,
    pub on_failure: Option<OnFailure>,
    #[serde(skip)]
    pub origin: Origin,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExposureType {
    Application,
    Dashboard,
    MlTraining,
    MlInference,
    Api,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExposureRole {
    Producer,
    Consumer,
    Both,
}

#[derive(Clone, Debug, Serialize)]
pub struct ExposureColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Exposure {
    pub name: String,
    #[serde(rename = "type")]
    pub exposure_type: ExposureType,
    pub role: Option<ExposureRole>,
    pub description: Option<String>,
    pub owner: Option<String>,
    pub owners: Vec<BTreeMap<String, String>>,
    pub url: Option<String>,
    pub repo: Option<String>,
    pub language: Option<String>,
    pub tool: Option<String>,
    pub consumer_group: Option<String>,
    pub schedule: Option<String>,
    /// Entries that named neither or both of `source` and `ref` are kept as none, for E113.
    pub produces: Vec<Option<Reference>>,
    pub consumes: Vec<Option<Reference>>,
    pub depends_on: Vec<Option<Reference>>,
    pub columns: Vec<ExposureColumn>,
    pub sla: Option<Map<String, Value>>,
    pub contracts: Option<Map<String, Value>>,
    pub access: Option<Map<String, Value>>,
    pub freshness: Option<Freshness>,
    pub data_requirements: Option<Map<String, Value>>,
    #[serde(skip)]
    pub origin: Origin,
}

#[derive(Clone, Debug, Serialize)]
pub struct Udf {
    pub name: String,
    pub return_type: String,
    pub class: Option<String>,
    pub language: Option<String>,
    #[serde(skip)]
    pub origin: Origin,
}
