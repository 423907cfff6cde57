//! `runtime`, after interpolation.

use std::path::{Path, PathBuf};

use crate::codes::{Code, Diagnostic, suggest};

use super::super::fs::ProjectFs;
use super::super::model::{
    BasicAuth, ConnectCluster, ConnectRuntime, FlinkCluster, FlinkClusterType, FlinkRuntime, GatewayRuntime,
    InitialOffset, KafkaConnectorFlavour, KafkaRuntime, KafkaStreamsRuntime, Runtime, SaslMechanism,
    SchemaRegistryRuntime, SecurityProtocol, Tls,
};
use super::super::value::Node;
use super::{Findings, integer, required, secret, text, written};

pub fn runtime(node: &Node, findings: &mut Findings) -> Runtime {
    Runtime {
        kafka: node.get("kafka").map(|node| kafka(node, findings)),
        schema_registry: node.get("schema_registry").map(|node| schema_registry(node, findings)),
        flink: node.get("flink").map(|node| flink(node, findings)),
        connect: node.get("connect").map(|node| connect(node, findings)),
        gateway: node.get("conduktor").and_then(|node| node.get("gateway")).map(gateway),
        kafka_streams: node.get("kafka_streams").map(kafka_streams),
    }
}

fn kafka(node: &Node, findings: &mut Findings) -> KafkaRuntime {
    let kafka = KafkaRuntime {
        bootstrap_servers: required(node, "bootstrap_servers"),
        bootstrap_servers_internal: text(node, "bootstrap_servers_internal"),
        security_protocol: folded(node, "security_protocol").as_deref().and_then(|protocol| match protocol {
            "PLAINTEXT" => Some(SecurityProtocol::Plaintext),
            "SSL" => Some(SecurityProtocol::Ssl),
            "SASL_PLAINTEXT" => Some(SecurityProtocol::SaslPlaintext),
            "SASL_SSL" => Some(SecurityProtocol::SaslSsl),
            _ => None,
        }),
        sasl_mechanism: folded(node, "sasl_mechanism").as_deref().and_then(|mechanism| match mechanism {
            "PLAIN" => Some(SaslMechanism::Plain),
            "SCRAM-SHA-256" => Some(SaslMechanism::ScramSha256),
            "SCRAM-SHA-512" => Some(SaslMechanism::ScramSha512),
            "OAUTHBEARER" => Some(SaslMechanism::OAuthBearer),
            "AWS_MSK_IAM" => Some(SaslMechanism::AwsMskIam),
            _ => None,
        }),
        sasl_username: text(node, "sasl_username"),
        sasl_password: secret(node, "sasl_password"),
        sasl_oauth_token_url: text(node, "sasl_oauth_token_url"),
        sasl_oauth_client_id: text(node, "sasl_oauth_client_id"),
        sasl_oauth_client_secret: secret(node, "sasl_oauth_client_secret"),
        sasl_oauth_scope: text(node, "sasl_oauth_scope"),
        aws_region: text(node, "aws_region"),
        tls: tls(node),
    };
    sasl(node, &kafka, findings);
    kafka
}

fn folded(node: &Node, key: &str) -> Option<String> {
    text(node, key).map(|text| text.to_ascii_uppercase())
}

fn sasl(node: &Node, kafka: &KafkaRuntime, findings: &mut Findings) {
    let origin = findings.origin("", "runtime");
    let field = |name: &str| format!("kafka.{name}");
    if let (Some(protocol), Some(mechanism)) = (kafka.security_protocol, kafka.sasl_mechanism) {
        let fits = match (mechanism, protocol) {
            (_, SecurityProtocol::Plaintext | SecurityProtocol::Ssl) => false,
            (SaslMechanism::AwsMskIam, SecurityProtocol::SaslPlaintext) => false,
            (_, SecurityProtocol::SaslPlaintext | SecurityProtocol::SaslSsl) => true,
        };
        if !fits {
            let needed = if mechanism == SaslMechanism::AwsMskIam { "SASL_SSL" } else { "SASL_SSL or SASL_PLAINTEXT" };
            findings.refuse(
                &origin,
                &field("security_protocol"),
                format!("'security_protocol' does not fit 'sasl_mechanism', which needs {needed}"),
                format!("set 'security_protocol' to {needed}, or remove 'sasl_mechanism'"),
            );
        }
    }
    const OAUTH: [&str; 4] =
        ["sasl_oauth_token_url", "sasl_oauth_client_id", "sasl_oauth_client_secret", "sasl_oauth_scope"];
    let mut group = |mechanism: SaslMechanism, word: &str, fields: &[&str], optional: &str| {
        for name in fields {
            if kafka.sasl_mechanism == Some(mechanism) {
                if !written(node, name) && *name != optional {
                    let message = format!("'sasl_mechanism: {word}' needs '{name}'");
                    findings.error(
                        Code::E208MissingConfig,
                        &origin,
                        &field(name),
                        message,
                        format!("add '{name}:' to 'kafka'"),
                    );
                }
            } else if written(node, name) {
                let message = format!("'{name}' belongs to 'sasl_mechanism: {word}'");
                findings.refuse(
                    &origin,
                    &field(name),
                    message,
                    format!("set 'sasl_mechanism: {word}', or remove '{name}'"),
                );
            }
        }
    };
    group(SaslMechanism::OAuthBearer, "OAUTHBEARER", &OAUTH, "sasl_oauth_scope");
    group(SaslMechanism::AwsMskIam, "AWS_MSK_IAM", &["aws_region"], "");
}

fn tls(node: &Node) -> Tls {
    let path = |key: &str| text(node, key).map(PathBuf::from);
    Tls {
        ca_location: path("ssl_ca_location"),
        certificate_location: path("ssl_certificate_location"),
        key_location: path("ssl_key_location"),
        key_password: secret(node, "ssl_key_password"),
    }
}

fn auth(node: &Node) -> BasicAuth {
    BasicAuth { username: text(node, "username"), password: secret(node, "password") }
}

fn schema_registry(node: &Node, findings: &mut Findings) -> SchemaRegistryRuntime {
    if written(node, "token") && (written(node, "username") || written(node, "password")) {
        let origin = findings.origin("", "runtime");
        findings.refuse(
            &origin,
            "schema_registry.token",
            "'token' and 'username'/'password' exclude each other",
            "keep the bearer token, or the user name with its password",
        );
    }
    SchemaRegistryRuntime { url: required(node, "url"), auth: auth(node), token: secret(node, "token"), tls: tls(node) }
}

/// E209 when `default` names no cluster.
fn default_cluster(node: &Node, section: &str, findings: &mut Findings) -> Option<String> {
    let default = text(node, "default")?;
    let clusters = node.get("clusters").map(Node::entries).unwrap_or_default();
    let known: Vec<&str> = clusters.iter().map(|entry| &*entry.key).collect();
    if !known.contains(&default.as_str()) {
        let origin = findings.origin("", "runtime");
        let hint = suggest::hint(&default, "cluster", known)
            .unwrap_or_else(|| format!("add the cluster under 'runtime.{section}.clusters'"));
        let message = format!("'default' names no cluster of 'runtime.{section}.clusters'");
        findings.error(Code::E209InvalidClusterRef, &origin, &format!("{section}.default"), message, hint);
    }
    Some(default)
}

fn flink(node: &Node, findings: &mut Findings) -> FlinkRuntime {
    let clusters = node.get("clusters").map(Node::entries).unwrap_or_default();
    FlinkRuntime {
        default: default_cluster(node, "flink", findings),
        clusters: clusters.iter().map(|entry| (entry.key.to_string(), flink_cluster(&entry.value))).collect(),
    }
}

fn flink_cluster(node: &Node) -> FlinkCluster {
    const CONFLUENT: [&str; 6] =
        ["organization_id", "environment_id", "compute_pool_id", "catalog", "database", "principal"];
    FlinkCluster {
        cluster_type: match node.get("type").and_then(Node::as_str) {
            Some("confluent") => FlinkClusterType::Confluent,
            Some(_) | None => FlinkClusterType::Rest,
        },
        rest_url: text(node, "rest_url"),
        sql_gateway_url: text(node, "sql_gateway_url"),
        version: text(node, "version"),
        environment: text(node, "environment"),
        kafka_connector: match node.get("kafka_connector").and_then(Node::as_str) {
            Some("plain") => KafkaConnectorFlavour::Plain,
            Some(_) | None => KafkaConnectorFlavour::Sql,
        },
        api_key: secret(node, "api_key"),
        api_secret: secret(node, "api_secret"),
        auth: auth(node),
        tls: tls(node),
        confluent: CONFLUENT.iter().filter_map(|key| Some(((*key).to_owned(), text(node, key)?))).collect(),
        timeout: integer(node, "timeout").unwrap_or(30),
        retries: integer(node, "retries").unwrap_or(3),
        statement_timeout: integer(node, "statement_timeout").unwrap_or(60),
    }
}

fn connect(node: &Node, findings: &mut Findings) -> ConnectRuntime {
    let clusters = node.get("clusters").map(Node::entries).unwrap_or_default();
    let cluster =
        |node: &Node| ConnectCluster { rest_url: required(node, "rest_url"), auth: auth(node), tls: tls(node) };
    ConnectRuntime {
        default: default_cluster(node, "connect", findings),
        clusters: clusters.iter().map(|entry| (entry.key.to_string(), cluster(&entry.value))).collect(),
    }
}

fn gateway(node: &Node) -> GatewayRuntime {
    GatewayRuntime {
        admin_url: text(node, "admin_url"),
        proxy_bootstrap: text(node, "proxy_bootstrap"),
        auth: auth(node),
        virtual_cluster: text(node, "virtual_cluster"),
        tls: tls(node),
    }
}

fn kafka_streams(node: &Node) -> KafkaStreamsRuntime {
    KafkaStreamsRuntime {
        image: required(node, "image"),
        network: text(node, "network").unwrap_or_else(|| "bridge".to_owned()),
        initial_offset: match node.get("initial_offset").and_then(Node::as_str) {
            Some("latest") => InitialOffset::Latest,
            Some(_) | None => InitialOffset::Earliest,
        },
        startup_timeout: integer(node, "startup_timeout").unwrap_or(60),
        stop_timeout: integer(node, "stop_timeout").unwrap_or(30),
    }
}

/// W224 for TLS files that do not exist; E501 when `strict`.
pub fn check_tls(fs: &dyn ProjectFs, runtime: &Node, strict: bool, findings: &mut Findings) {
    check_tls_below(fs, runtime, "", strict, findings);
}

fn check_tls_below(fs: &dyn ProjectFs, node: &Node, path: &str, strict: bool, findings: &mut Findings) {
    for entry in node.entries() {
        let field = if path.is_empty() { entry.key.to_string() } else { format!("{path}.{}", entry.key) };
        check_tls_below(fs, &entry.value, &field, strict, findings);
        let is_file = matches!(&*entry.key, "ssl_ca_location" | "ssl_certificate_location" | "ssl_key_location");
        let Some(file) = entry.value.as_str().filter(|_| is_file) else { continue };
        if fs.exists(Path::new(file)) {
            continue;
        }
        let code = if strict { Code::E501ParseError } else { Code::W224SslFileMissing };
        let origin = findings.origin("", "runtime");
        let message = format!("the file that '{}' names does not exist", entry.key);
        let hint = "create it, or correct the path; relative paths begin at the project directory";
        let diagnostic = origin.mark(&field, Diagnostic::new(code, message).suggest(hint));
        if strict { findings.errors.push(diagnostic) } else { findings.warnings.push(diagnostic) }
    }
}
