//! Models.

use std::collections::BTreeMap;

use super::super::model::{
    Access, ChangelogMode, Contract, ContractColumn, Executor, FlinkBlock, GatewayBlock, Materialized, Model,
    OwnershipBlock, OwnershipMode, Reference, SecurityBlock, SinkBlock, TopicBlock, VirtualTopicBlock, connector_class,
};
use super::super::origin::Origin;
use super::super::parse::printable;
use super::super::value::Node;
use super::declarations::{classification, columns, policy, reference, renamed, schema, unique_names};
use super::{
    Findings, boolean, integer, items, list_of_strings, object, ownership, required, string_map, strings, text, written,
};

pub fn model(node: &Node, origin: Origin, findings: &mut Findings) -> Model {
    for field in ["flink", "topic", "flink_cluster", "connect_cluster"] {
        if node.get("advanced").is_some_and(|advanced| written(advanced, field)) {
            renamed(node, field, &format!("advanced.{field}"), &origin, findings);
        }
    }
    let moved = |field: &str| node.get(field).or_else(|| node.get("advanced").and_then(|advanced| advanced.get(field)));
    if written(node, "connector") {
        renamed(node, "sink", "connector", &origin, findings);
    }
    executor_rules(node, &origin, findings);
    if written(node, "sql") && written(node, "macro") {
        findings.refuse(&origin, "macro", "'sql' and 'macro' exclude each other", "keep one of them");
    }
    let topic = moved("topic").map(|node| topic_block(node, &origin, findings));
    let gateway = node.get("gateway").map(|node| GatewayBlock {
        virtual_topic: node
            .get("virtual_topic")
            .map(|node| VirtualTopicBlock { name: text(node, "name"), compression: text(node, "compression") }),
    });
    let alias =
        gateway.as_ref().and_then(|gateway| gateway.virtual_topic.as_ref()).and_then(|topic| topic.name.as_ref());
    let physical = topic.as_ref().and_then(|topic| topic.name.as_ref());
    if let (Some(alias), Some(physical)) = (alias, physical)
        && alias != physical
    {
        let message = "'gateway.virtual_topic.name' must equal 'topic.name'";
        findings.refuse(&origin, "gateway.virtual_topic.name", message, "write the same name, or remove one of them");
    }
    let model = Model {
        name: required(node, "name"),
        description: text(node, "description"),
        owner: text(node, "owner"),
        group: text(node, "group"),
        region: text(node, "region"),
        key: text(node, "key"),
        sql: text(node, "sql"),
        macro_name: text(node, "macro"),
        params: string_map(node.get("params")),
        from: node.get("from").map(|from| inputs(from, &origin, findings)),
        columns: columns(node, "columns", "columns", &origin, findings),
        primary_key: node.get("primary_key").map(list_of_strings),
        ownership: OwnershipBlock { mode: ownership(node, OwnershipMode::Managed) },
        tags: strings(node, "tags"),
        materialized: node.get("materialized").and_then(Node::as_str).and_then(materialized),
        executor: node.get("executor").and_then(Node::as_str).and_then(executor),
        topic,
        flink: moved("flink").map(flink_block),
        flink_cluster: moved("flink_cluster").and_then(Node::as_str).map(str::to_owned),
        connect_cluster: moved("connect_cluster").and_then(Node::as_str).map(str::to_owned),
        gateway,
        sink: sink(node, &origin, findings),
        schema: node.get("schema").map(|node| schema(node, &origin, findings)),
        security: node.get("security").map(security),
        ml_outputs: node.get("ml_outputs").map(|node| object(Some(node))),
        access: match node.get("access").and_then(Node::as_str) {
            Some("protected") => Access::Protected,
            Some("public") => Access::Public,
            Some(_) | None => Access::Private,
        },
        version: integer(node, "version"),
        contract: node.get("contract").map(|node| contract(node, &origin, findings)),
        origin,
    };
    schema_target(&model, findings);
    model
}

fn materialized(text: &str) -> Option<Materialized> {
    match text {
        "topic" => Some(Materialized::Topic),
        "virtual_topic" => Some(Materialized::VirtualTopic),
        "flink" => Some(Materialized::Flink),
        "sink" => Some(Materialized::Sink),
        _ => None,
    }
}

fn executor(text: &str) -> Option<Executor> {
    match text {
        "flink" => Some(Executor::Flink),
        "kafka_streams" => Some(Executor::KafkaStreams),
        _ => None,
    }
}

fn executor_rules(node: &Node, origin: &Origin, findings: &mut Findings) {
    const NOT_WITH_STREAMS: [&str; 11] = [
        "flink",
        "flink_cluster",
        "gateway",
        "sink",
        "connector",
        "connect_cluster",
        "key",
        "primary_key",
        "schema",
        "security",
        "ml_outputs",
    ];
    const NOT_WITH_FLINK: [&str; 3] = ["gateway", "sink", "connector"];
    let Some(executor) = node.get("executor").and_then(Node::as_str).and_then(executor) else { return };
    let (word, forbidden, allowed): (_, &[&str], &[Materialized]) = match executor {
        Executor::KafkaStreams => ("kafka_streams", &NOT_WITH_STREAMS, &[Materialized::Topic]),
        Executor::Flink => ("flink", &NOT_WITH_FLINK, &[Materialized::Topic, Materialized::Flink]),
    };
    if !written(node, "sql") && !written(node, "macro") {
        let message = format!("'executor: {word}' needs 'sql' or 'macro'");
        findings.refuse(origin, "executor", message, "add the query, or remove the executor");
    }
    if let Some(target) = node.get("materialized").and_then(Node::as_str).and_then(materialized)
        && !allowed.contains(&target)
    {
        let message = format!("'executor: {word}' cannot be materialized as '{}'", target.as_str());
        let allowed: Vec<&str> = allowed.iter().map(|target| target.as_str()).collect();
        findings.refuse(
            origin,
            "materialized",
            message,
            format!("remove 'materialized', or set it to {}", allowed.join(" or ")),
        );
    }
    let moved = |field: &str| node.get("advanced").is_some_and(|advanced| written(advanced, field));
    let streams_only = (executor == Executor::KafkaStreams).then_some("from");
    for field in forbidden.iter().copied().chain(streams_only) {
        if written(node, field) || moved(field) {
            let message = format!("'executor: {word}' and '{field}' exclude each other");
            findings.refuse(origin, field, message, format!("remove '{field}', or the executor"));
        }
    }
}

/// A schema belongs to a Kafka topic that this model writes.
fn schema_target(model: &Model, findings: &mut Findings) {
    if model.schema.is_none() || model.executor == Some(Executor::KafkaStreams) {
        return;
    }
    let has_query = model.sql.is_some() || model.macro_name.is_some();
    let virtual_topic = model.gateway.as_ref().is_some_and(|gateway| gateway.virtual_topic.is_some());
    let target = match (model.executor, model.materialized) {
        (Some(_), _) => return,
        (None, Some(target)) => target,
        (None, None) if model.from.is_some() && !has_query => Materialized::Sink,
        (None, None) if virtual_topic => Materialized::VirtualTopic,
        (None, None) => return,
    };
    match target {
        Materialized::Topic | Materialized::Flink => {}
        Materialized::VirtualTopic | Materialized::Sink => findings.refuse(
            &model.origin,
            "schema",
            format!("a '{}' model has no schema of its own", target.as_str()),
            "declare the schema at the model that writes the topic",
        ),
    }
}

fn inputs(node: &Node, origin: &Origin, findings: &mut Findings) -> Vec<Reference> {
    if let Some(name) = node.as_str() {
        return vec![Reference::Model(name.to_owned())];
    }
    let mut inputs = Vec::new();
    for (index, item) in node.items().iter().enumerate() {
        match reference(item) {
            Some(reference) => inputs.push(reference),
            None => findings.refuse(
                origin,
                &format!("from.{index}"),
                "an entry of 'from' names exactly one of 'source' and 'ref'",
                "write '- source: name' or '- ref: name'",
            ),
        }
    }
    inputs
}

fn topic_block(node: &Node, origin: &Origin, findings: &mut Findings) -> TopicBlock {
    findings.free_scalars(origin, "topic.config", node.get("config"), false);
    TopicBlock {
        name: text(node, "name"),
        partitions: integer(node, "partitions"),
        replication_factor: integer(node, "replication_factor"),
        config: object(node.get("config")),
    }
}

fn flink_block(node: &Node) -> FlinkBlock {
    let block = |key: &str| node.get(key).map(|node| object(Some(node)));
    FlinkBlock {
        parallelism: integer(node, "parallelism"),
        state_ttl_ms: integer(node, "state_ttl_ms"),
        state_backend: text(node, "state_backend"),
        checkpoint_interval_ms: integer(node, "checkpoint_interval_ms"),
        checkpoint: block("checkpoint"),
        rocksdb: block("rocksdb"),
        resources: block("resources"),
        restart_strategy: block("restart_strategy"),
        changelog_mode: node.get("changelog_mode").and_then(Node::as_str).and_then(|mode| match mode {
            "append" => Some(ChangelogMode::Append),
            "upsert" => Some(ChangelogMode::Upsert),
            _ => None,
        }),
    }
}

fn sink(node: &Node, origin: &Origin, findings: &mut Findings) -> Option<SinkBlock> {
    let (block, connector) = match (node.get("sink"), node.get("connector")) {
        (Some(sink), _) => (sink, required(sink, "connector")),
        (None, Some(old)) => (old, required(old, "type")),
        (None, None) => return None,
    };
    let config = block.get("config");
    findings.free_scalars(origin, "sink.config", config, true);
    let canonical = [("name", required(node, "name")), ("connector.class", connector_class(&connector).to_owned())];
    for (key, expected) in canonical {
        let written = config.and_then(|config| config.entry(key));
        if written.is_some_and(|entry| entry.value.as_str() != Some(&expected)) {
            let message = format!("'{key}' is set by the program and may only repeat '{}'", printable(&expected));
            findings.refuse(origin, &format!("sink.config.{key}"), message, format!("remove '{key}'"));
        }
    }
    Some(SinkBlock { connector, connection: text(block, "connection"), config: object(config) })
}

fn security(node: &Node) -> SecurityBlock {
    let levels: BTreeMap<_, _> = string_map(node.get("classification"));
    SecurityBlock {
        classification: levels
            .into_iter()
            .filter_map(|(column, level)| Some((column, classification(&level)?)))
            .collect(),
        policies: items(node, "policies", policy),
    }
}

fn contract(node: &Node, origin: &Origin, findings: &mut Findings) -> Contract {
    let columns = items(node, "columns", |node| ContractColumn {
        name: required(node, "name"),
        data_type: text(node, "type"),
        nullable: node.get("nullable").map(|_| boolean(node, "nullable", false)),
        description: text(node, "description"),
    });
    unique_names(columns.iter().map(|column| column.name.as_str()), "column", "contract.columns", origin, findings);
    Contract { enforced: boolean(node, "enforced", true), columns }
}
