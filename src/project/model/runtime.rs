//! `runtime`: the services, and how each is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::super::secret::Secret;

/// What runs a project: one block for each service, absent where it is not configured.
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

/// `security.protocol` of Kafka clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

/// `sasl.mechanism` of Kafka clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SaslMechanism {
    Plain,
    ScramSha256,
    ScramSha512,
    OAuthBearer,
    AwsMskIam,
}

/// How the cluster is reached.
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

/// How the registry is reached; `token` instead of a login is a bearer token.
#[derive(Clone, Debug)]
pub struct SchemaRegistryRuntime {
    pub url: String,
    pub auth: BasicAuth,
    /// Bearer token; excludes `auth`.
    pub token: Option<Secret>,
    pub tls: Tls,
}

/// The Flink clusters by alias, and the one of models that name none.
#[derive(Clone, Debug)]
pub struct FlinkRuntime {
    pub default: Option<String>,
    pub clusters: BTreeMap<String, FlinkCluster>,
}

/// Who runs a Flink cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlinkClusterType {
    Rest,
    Confluent,
}

/// Which Kafka connector a Flink job reads and writes with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KafkaConnectorFlavour {
    Sql,
    Plain,
}

/// One Flink cluster.
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

/// The Connect clusters by alias, and the default one.
#[derive(Clone, Debug)]
pub struct ConnectRuntime {
    pub default: Option<String>,
    pub clusters: BTreeMap<String, ConnectCluster>,
}

/// One Kafka Connect cluster.
#[derive(Clone, Debug)]
pub struct ConnectCluster {
    pub rest_url: String,
    pub auth: BasicAuth,
    pub tls: Tls,
}

/// How the Gateway and its admin API are reached.
#[derive(Clone, Debug)]
pub struct GatewayRuntime {
    pub admin_url: Option<String>,
    pub proxy_bootstrap: Option<String>,
    pub auth: BasicAuth,
    pub virtual_cluster: Option<String>,
    pub tls: Tls,
}

/// Where a runner without committed offsets begins to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InitialOffset {
    Earliest,
    Latest,
}

/// The container in which Kafka Streams models run.
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
