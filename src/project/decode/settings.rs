//! `deployment_state`, `defaults`, `rules`, `lifecycle`, `connections`.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

use crate::codes::{Code, Diagnostic};

use super::super::model::{
    Connection, ConnectorRemoval, Defaults, DeploymentState, GatewayRuleRemoval, ModelRules, PostgresState, Rules,
    TopicDefaults, TopicRules,
};
use super::super::value::Node;
use super::{Findings, boolean, integer, object, repeated, required, strings, text};

const DEFAULT_LOCK_TIMEOUT: u32 = 30;

pub const fn local_state() -> DeploymentState {
    DeploymentState::Local { lock_timeout: DEFAULT_LOCK_TIMEOUT }
}

/// `code`: E501 in the project file, E503 in an environment file.
pub fn deployment_state(node: Option<&Node>, code: Code, findings: &mut Findings) -> DeploymentState {
    let Some(node) = node.filter(|node| node.get("backend").and_then(Node::as_str) == Some("postgres")) else {
        return local_state();
    };
    let postgres = node.nearest("postgres");
    let dsn_env = required(postgres, "dsn_env");
    let writer_dsn_env = text(postgres, "writer_dsn_env");
    if writer_dsn_env.as_deref() == Some(&dsn_env) {
        let origin = findings.origin("", "deployment_state");
        findings.error(
            code,
            &origin,
            "postgres.writer_dsn_env",
            "'writer_dsn_env' must be another variable than 'dsn_env'",
            "name the variable of the writer's own connection, or remove it",
        );
    }
    DeploymentState::Postgres(PostgresState {
        namespace: required(node, "namespace"),
        lock_timeout: integer(node, "lock_timeout_seconds").unwrap_or(DEFAULT_LOCK_TIMEOUT),
        dsn_env,
        writer_dsn_env,
        writer_role_env: text(postgres, "writer_role_env"),
        schema: text(postgres, "schema").unwrap_or_else(|| "streamt".to_owned()),
    })
}

pub fn defaults(node: Option<&Node>) -> Defaults {
    let Some(node) = node else { return Defaults::default() };
    let topic = |node: Option<&Node>| TopicDefaults {
        partitions: node.and_then(|node| integer(node, "partitions")),
        replication_factor: node.and_then(|node| integer(node, "replication_factor")),
    };
    let models = node.get("models");
    Defaults {
        topic: topic(node.get("topic")),
        model_topic: topic(models.and_then(|models| models.get("topic"))),
        model_cluster: models.and_then(|models| text(models, "cluster")),
        test_flink_cluster: node.get("tests").and_then(|tests| text(tests, "flink_cluster")),
    }
}

pub fn rules(node: Option<&Node>, findings: &mut Findings) -> Rules {
    let Some(node) = node else { return Rules::default() };
    let mut rules = Rules { declared: true, ..Rules::default() };
    if let Some(topics) = node.get("topics") {
        rules.topics = TopicRules {
            min_partitions: integer(topics, "min_partitions"),
            max_partitions: integer(topics, "max_partitions"),
            min_replication_factor: integer(topics, "min_replication_factor"),
            max_replication_factor: integer(topics, "max_replication_factor"),
            max_retention_ms: integer(topics, "max_retention_ms"),
            required_config: strings(topics, "required_config"),
            naming_pattern: naming_pattern(topics, findings),
            forbidden_prefixes: strings(topics, "forbidden_prefixes"),
            forbidden_suffixes: strings(topics, "forbidden_suffixes"),
        };
    }
    if let Some(models) = node.get("models") {
        rules.models = ModelRules {
            require_description: boolean(models, "require_description", false),
            require_owner: boolean(models, "require_owner", false),
            require_tests: boolean(models, "require_tests", false),
            valid_owners: strings(models, "valid_owners"),
            max_dependencies: integer(models, "max_dependencies"),
        };
    }
    let flag = |section: &str, field: &str| node.get(section).is_some_and(|section| boolean(section, field, false));
    rules.require_source_schema = flag("sources", "require_schema");
    rules.require_source_freshness = flag("sources", "require_freshness");
    rules.require_classification = flag("security", "require_classification");
    rules.sensitive_columns_require_masking = flag("security", "sensitive_columns_require_masking");
    rules.allowed_regions = node.get("data_residency").map(|node| strings(node, "allowed_regions")).unwrap_or_default();
    rules
}

fn naming_pattern(topics: &Node, findings: &mut Findings) -> Option<Regex> {
    let pattern = text(topics, "naming_pattern")?;
    match Regex::new(&format!("^(?:{pattern})")) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let origin = findings.origin("", "rules");
            let unsupported = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|construct| pattern.contains(construct));
            let hint = match error {
                _ if unsupported => {
                    "look-around is not supported: the engine runs in linear time; say it with 'forbidden_prefixes' or 'forbidden_suffixes'"
                }
                regex::Error::CompiledTooBig(_) => "the expression is too large; use smaller repetition counts",
                _ => "correct the expression; back references and look-around are not supported",
            };
            findings.refuse(
                &origin,
                "topics.naming_pattern",
                "'naming_pattern' is not a regular expression that can be used",
                hint,
            );
            None
        }
    }
}

pub fn connections(node: Option<&Node>, findings: &mut Findings) -> BTreeMap<String, Connection> {
    let mut connections = BTreeMap::new();
    for entry in node.map(Node::entries).unwrap_or_default() {
        let origin = findings.origin("connections", &*entry.key);
        let config = entry.value.get("config");
        findings.free_scalars(&origin, "config", config, true);
        let connection = Connection { kind: required(&entry.value, "type"), config: object(config), origin };
        connections.insert(entry.key.to_string(), connection);
    }
    connections
}

/// No message here repeats a value of `lifecycle`.
pub fn lifecycle(node: Option<&Node>, findings: &mut Findings) -> (Vec<ConnectorRemoval>, Vec<GatewayRuleRemoval>) {
    let Some(node) = node else { return (Vec::new(), Vec::new()) };
    let connectors: Vec<ConnectorRemoval> = list(node, "connector_removals")
        .iter()
        .enumerate()
        .map(|(index, item)| ConnectorRemoval {
            logical_owner: required(item, "logical_owner"),
            name: required(item, "name"),
            cluster: required(item, "cluster"),
            origin: findings.origin("lifecycle.connector_removals", index.to_string()),
        })
        .collect();
    unique(
        findings,
        "lifecycle.connector_removals",
        "logical_owner",
        connectors.iter().map(|r| r.logical_owner.clone()),
    );
    unique(
        findings,
        "lifecycle.connector_removals",
        "name",
        connectors.iter().map(|r| format!("{}\0{}", r.cluster, r.name)),
    );

    let rules: Vec<GatewayRuleRemoval> = list(node, "gateway_rule_removals")
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let prior = item.nearest("prior_artifact");
            let origin = findings.origin("lifecycle.gateway_rule_removals", index.to_string());
            GatewayRuleRemoval {
                logical_owner: required(item, "logical_owner"),
                name: required(prior, "name"),
                virtual_topic: required(prior, "virtualTopic"),
                physical_topic: required(prior, "physicalTopic"),
                interceptors: list(prior, "interceptors")
                    .iter()
                    .enumerate()
                    .map(|(at, item)| interceptor(item, at, &origin, findings))
                    .collect(),
                origin,
            }
        })
        .collect();
    let section = "lifecycle.gateway_rule_removals";
    unique(findings, section, "logical_owner", rules.iter().map(|rule| rule.logical_owner.clone()));
    unique(findings, section, "prior_artifact.name", rules.iter().map(|rule| rule.name.clone()));
    unique(findings, section, "prior_artifact.virtualTopic", rules.iter().map(|rule| rule.virtual_topic.clone()));
    (connectors, rules)
}

fn list<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    node.get(key).map(Node::items).unwrap_or_default()
}

fn interceptor(item: &Node, at: usize, origin: &super::Origin, findings: &mut Findings) -> Value {
    let config = item.nearest("config");
    match item.get("type").and_then(Node::as_str) {
        Some("mask") => {
            let roles = strings(config, "forRoles");
            if !repeated(roles.iter().map(String::as_str)).is_empty() {
                let field = format!("prior_artifact.interceptors.{at}.config.forRoles");
                findings.refuse(origin, &field, "'forRoles' names a role twice", "name each role once");
            }
            let (field, method) = (required(config, "field"), required(config, "method"));
            json!({"type": "mask", "config": {"field": field, "method": method, "forRoles": roles}})
        }
        Some(_) | None => json!({"type": "filter", "config": {"where": required(config, "where")}}),
    }
}

fn unique(findings: &mut Findings, section: &'static str, field: &str, values: impl Iterator<Item = String>) {
    let values: Vec<String> = values.collect();
    for (index, _) in repeated(values.iter().map(String::as_str)) {
        let origin = findings.origin(section, index.to_string());
        let last = field.rsplit('.').next().unwrap_or(field);
        let message = match (section, field) {
            ("lifecycle.connector_removals", "name") => "this connector of this cluster is removed twice".to_owned(),
            _ => format!("the same '{last}' stands in an earlier entry"),
        };
        findings.errors.push(
            origin.mark(field, Diagnostic::new(Code::E501ParseError, message).suggest("keep one of the entries")),
        );
    }
}
