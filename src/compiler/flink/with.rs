//! Connector options of Kafka tables, in the one order of the language.

use serde_json::Value;

use crate::compiler::canonical::canonical_value;
use crate::project::model::{
    FlinkCluster, KafkaConnectorFlavour, KafkaRuntime, SaslMechanism, SchemaBlock, SchemaFormat, SchemaRegistryRuntime,
    SecurityProtocol, TimestampFormat,
};

use super::SECRET;

/// Options in order.
pub(super) type Options = Vec<(String, String)>;

/// What a table is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Read from the beginning.
    Input,
    /// Read from now on.
    Watched,
    Sink,
}

/// How records are written.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Format {
    Json {
        iso_timestamps: bool,
    },
    /// Avro of a registry; the definition and a subject of another name are for sinks.
    AvroConfluent {
        definition: Option<Value>,
        subject: Option<String>,
    },
}

/// Why a table cannot be declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoFormat {
    Protobuf,
    AvroWithoutRegistry,
    IamNeedsPlainConnector,
}

impl NoFormat {
    pub const fn why(self) -> &'static str {
        match self {
            Self::Protobuf => "has Protobuf records, for which Flink SQL has no format",
            Self::AvroWithoutRegistry => "has Avro records, and the runtime has no schema registry to read them with",
            Self::IamNeedsPlainConnector => {
                "is reached with AWS_MSK_IAM, which needs a Flink cluster with `kafka_connector: plain`"
            }
        }
    }
}

/// The format that a schema block asks for; without one, JSON.
pub(super) fn format(
    block: Option<&SchemaBlock>,
    registry: Option<&SchemaRegistryRuntime>,
    definition: Option<&Value>,
    subject: Option<String>,
) -> Result<Format, NoFormat> {
    let json = |block: Option<&SchemaBlock>| Format::Json {
        iso_timestamps: block.and_then(|block| block.timestamp_format) == Some(TimestampFormat::Iso8601),
    };
    let avro = || Format::AvroConfluent { definition: definition.cloned(), subject: subject.clone() };
    match (block.and_then(|block| block.format), registry) {
        (Some(SchemaFormat::Protobuf), _) => Err(NoFormat::Protobuf),
        (Some(SchemaFormat::Avro), None) => Err(NoFormat::AvroWithoutRegistry),
        (Some(SchemaFormat::Avro), Some(_)) => Ok(avro()),
        // A subject is registered as Avro when nothing else is said.
        (None, Some(_)) if definition.is_some() => Ok(avro()),
        (Some(SchemaFormat::Json) | None, _) => Ok(json(block)),
    }
}

/// One table's place.
pub(super) struct Endpoint<'a> {
    pub kafka: Option<&'a KafkaRuntime>,
    /// In place of the brokers of the runtime.
    pub servers: Option<&'a str>,
    pub registry: Option<&'a SchemaRegistryRuntime>,
    pub cluster: Option<&'a FlinkCluster>,
}

pub(super) fn options(
    endpoint: &Endpoint<'_>,
    topic: &str,
    role: Role,
    upsert: bool,
    format: &Format,
) -> Result<Options, NoFormat> {
    let mut options = Options::new();
    let mut put = |key: &str, value: &str| options.push((key.to_owned(), value.to_owned()));
    put("connector", if upsert { "upsert-kafka" } else { "kafka" });
    put("topic", topic);
    let servers =
        endpoint.kafka.map(|kafka| kafka.bootstrap_servers_internal.as_ref().unwrap_or(&kafka.bootstrap_servers));
    put("properties.bootstrap.servers", endpoint.servers.or(servers.map(String::as_str)).unwrap_or_default());
    if let Some(kafka) = endpoint.kafka {
        let flavour = endpoint.cluster.map_or(KafkaConnectorFlavour::Sql, |cluster| cluster.kafka_connector);
        for (key, value) in security(kafka, flavour)? {
            put(&key, &value);
        }
    }
    match (role, upsert) {
        (Role::Input, false) => put("scan.startup.mode", "earliest-offset"),
        (Role::Watched, false) => put("scan.startup.mode", "latest-offset"),
        (Role::Sink, false) => {}
        (Role::Input | Role::Watched | Role::Sink, true) => put("key.format", "json"),
    }
    let prefix = if upsert { "value." } else { "" };
    match format {
        Format::Json { iso_timestamps } => {
            put(&format!("{prefix}format"), "json");
            if *iso_timestamps {
                put(&format!("{prefix}json.timestamp-format.standard"), "ISO-8601");
            }
        }
        Format::AvroConfluent { definition, subject } => {
            put(&format!("{prefix}format"), "avro-confluent");
            let mut option = |key: &str, value: &str| put(&format!("{prefix}avro-confluent.{key}"), value);
            if let Some(registry) = endpoint.registry {
                option("url", &registry.url);
            }
            if role == Role::Sink {
                if let Some(subject) = subject {
                    option("subject", subject);
                }
                let text = definition.as_ref().and_then(|value| canonical_value(value).ok());
                if let Some(text) = text.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    option("schema", &text);
                }
            }
            if let Some(registry) = endpoint.registry {
                if registry.auth.username.is_some() && registry.auth.password.is_some() {
                    option("basic-auth.credentials-source", "USER_INFO");
                    option("basic-auth.user-info", SECRET);
                }
                if let Some(ca) = &registry.tls.ca_location {
                    option("ssl.truststore.location", &ca.to_string_lossy());
                }
            }
        }
    }
    Ok(options)
}

fn security(kafka: &KafkaRuntime, flavour: KafkaConnectorFlavour) -> Result<Options, NoFormat> {
    let Some(protocol) = kafka.security_protocol else { return Ok(Vec::new()) };
    let mut options = Options::new();
    let mut put = |key: &str, value: &str| options.push((format!("properties.{key}"), value.to_owned()));
    put(
        "security.protocol",
        match protocol {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        },
    );
    let class = |name: &str| match flavour {
        KafkaConnectorFlavour::Sql => format!("org.apache.flink.kafka.shaded.{name}"),
        KafkaConnectorFlavour::Plain => name.to_owned(),
    };
    match kafka.sasl_mechanism {
        None => {}
        Some(mechanism @ (SaslMechanism::Plain | SaslMechanism::ScramSha256 | SaslMechanism::ScramSha512)) => {
            put(
                "sasl.mechanism",
                match mechanism {
                    SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
                    SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
                    SaslMechanism::Plain | SaslMechanism::OAuthBearer | SaslMechanism::AwsMskIam => "PLAIN",
                },
            );
            if kafka.sasl_username.is_some() && kafka.sasl_password.is_some() {
                put("sasl.jaas.config", SECRET);
            }
        }
        Some(SaslMechanism::OAuthBearer) => {
            put("sasl.mechanism", "OAUTHBEARER");
            put("sasl.jaas.config", SECRET);
            if let Some(url) = &kafka.sasl_oauth_token_url {
                put("sasl.oauthbearer.token.endpoint.url", url);
            }
            let handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler";
            put("sasl.login.callback.handler.class", &class(handler));
        }
        Some(SaslMechanism::AwsMskIam) => {
            if flavour != KafkaConnectorFlavour::Plain {
                return Err(NoFormat::IamNeedsPlainConnector);
            }
            put("sasl.mechanism", "AWS_MSK_IAM");
            put("sasl.jaas.config", "software.amazon.msk.auth.iam.IAMLoginModule required;");
            put("sasl.client.callback.handler.class", "software.amazon.msk.auth.iam.IAMClientCallbackHandler");
        }
    }
    let pem = |path: &std::path::Path| {
        path.extension()
            .is_some_and(|extension| ["pem", "crt", "key"].iter().any(|pem| extension.eq_ignore_ascii_case(pem)))
    };
    if let Some(ca) = &kafka.tls.ca_location {
        put("ssl.truststore.location", &ca.to_string_lossy());
        if pem(ca) {
            put("ssl.truststore.type", "PEM");
        }
    }
    if let Some(certificate) = &kafka.tls.certificate_location {
        put("ssl.keystore.location", &certificate.to_string_lossy());
        if pem(certificate) {
            put("ssl.keystore.type", "PEM");
        }
    }
    if let Some(key) = &kafka.tls.key_location {
        put("ssl.key.location", &key.to_string_lossy());
    }
    if kafka.tls.key_password.is_some() {
        put("ssl.key.password", SECRET);
    }
    Ok(options)
}
