//! Sources, tests, exposures, user-defined functions, and the blocks that sources and models share.

use serde_json::Value;

use crate::codes::Code;

use super::super::check::choose;
use super::super::model::{
    Classification, Column, Compatibility, EventTime, Exposure, ExposureColumn, ExposureRole, ExposureType, Freshness,
    OnFailure, OwnershipBlock, OwnershipMode, Reference, SchemaBlock, SchemaFormat, SchemaReference, SchemaVersion,
    Severity, Source, Test, TestType, TimestampFormat, Udf, Watermark, WatermarkStrategy,
};
use super::super::origin::Origin;
use super::super::parse::printable;
use super::super::shape::Fold;
use super::super::value::{Node, Resolved};
use super::{
    Findings, boolean, integer, items, object, ownership, repeated, required, string_map, strings, text, written,
};

pub fn source(node: &Node, origin: Origin, findings: &mut Findings) -> Source {
    let schema = node.get("schema").map(|schema_node| schema(schema_node, &origin, findings));
    let mut columns = columns(node, "columns", "columns", &origin, findings);
    if columns.is_empty()
        && let Some(fields) = schema.as_ref().and_then(|schema| schema.fields.as_ref())
    {
        columns.clone_from(fields);
    }
    let moved = node.get("advanced").and_then(|advanced| advanced.get("event_time"));
    if moved.is_some() {
        renamed(node, "event_time", "advanced.event_time", &origin, findings);
    }
    Source {
        name: required(node, "name"),
        topic: required(node, "topic"),
        description: text(node, "description"),
        owner: text(node, "owner"),
        region: text(node, "region"),
        cluster: text(node, "cluster"),
        tags: strings(node, "tags"),
        ownership: OwnershipBlock { mode: ownership(node, OwnershipMode::External) },
        schema,
        columns,
        freshness: node.get("freshness").map(freshness),
        event_time: node.get("event_time").or(moved).map(|node| event_time(node, &origin, findings)),
        origin,
    }
}

/// W229 for a field under its older name; E501 when the new one is there too.
pub(super) fn renamed(node: &Node, new: &str, old: &str, origin: &Origin, findings: &mut Findings) {
    if written(node, new) {
        let message = format!("'{old}' is the older name of '{new}', and both are written");
        findings.refuse(origin, old, message, format!("keep '{new}'"));
    } else {
        let message = format!("'{old}' has moved to '{new}'");
        findings.warn(
            Code::W229FieldRenamed,
            origin,
            old,
            message,
            format!("write '{new}'; the older name will be refused"),
        );
    }
}

pub(super) fn classification(text: &str) -> Option<Classification> {
    match text {
        "public" => Some(Classification::Public),
        "internal" => Some(Classification::Internal),
        "confidential" => Some(Classification::Confidential),
        "sensitive" => Some(Classification::Sensitive),
        "highly_sensitive" => Some(Classification::HighlySensitive),
        _ => None,
    }
}

/// The columns under `key` of `node`; `path` is where that is within the declaration.
pub(super) fn columns(node: &Node, key: &str, path: &str, origin: &Origin, findings: &mut Findings) -> Vec<Column> {
    let columns = items(node, key, |node| Column {
        name: required(node, "name"),
        data_type: text(node, "type"),
        classification: text(node, "classification").as_deref().and_then(classification),
        description: text(node, "description"),
        required: boolean(node, "required", false),
        proctime: boolean(node, "proctime", false),
        metadata: text(node, "metadata"),
        expression: text(node, "expression"),
    });
    for (index, column) in columns.iter().enumerate() {
        let kinds = [column.proctime, column.metadata.is_some(), column.expression.is_some()];
        if kinds.into_iter().filter(|set| *set).count() > 1 {
            let message = "a column is at most one of 'proctime', 'metadata' and 'expression'";
            findings.refuse(origin, &format!("{path}.{index}"), message, "keep one of them");
        }
        if column.metadata.is_some() && column.data_type.is_none() {
            let message = "a 'metadata' column needs 'type'";
            findings.refuse(origin, &format!("{path}.{index}"), message, "add 'type:', for example 'TIMESTAMP_LTZ(3)'");
        }
    }
    unique_names(columns.iter().map(|column| column.name.as_str()), "column", path, origin, findings);
    columns
}

pub(super) fn unique_names<'a>(
    names: impl Iterator<Item = &'a str>,
    noun: &str,
    path: &str,
    origin: &Origin,
    findings: &mut Findings,
) {
    for (index, name) in repeated(names) {
        let message = format!("the {noun} '{}' is declared twice", printable(&name));
        findings.refuse(origin, &format!("{path}.{index}.name"), message, "keep one of them, or rename one");
    }
}

pub(super) fn schema(node: &Node, origin: &Origin, findings: &mut Findings) -> SchemaBlock {
    const LEVELS: [&str; 7] =
        ["NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"];
    let format = text(node, "format").and_then(|text| match text.to_ascii_lowercase().as_str() {
        "avro" => Some(SchemaFormat::Avro),
        "json" => Some(SchemaFormat::Json),
        "protobuf" => Some(SchemaFormat::Protobuf),
        _ => None,
    });
    let level = node.get("compatibility").and_then(Node::as_str);
    let compatibility = level.and_then(|text| choose(&LEVELS, Fold::Upper, text)).and_then(|level| match level {
        "NONE" => Some(Compatibility::None),
        "BACKWARD" => Some(Compatibility::Backward),
        "BACKWARD_TRANSITIVE" => Some(Compatibility::BackwardTransitive),
        "FORWARD" => Some(Compatibility::Forward),
        "FORWARD_TRANSITIVE" => Some(Compatibility::ForwardTransitive),
        "FULL" => Some(Compatibility::Full),
        "FULL_TRANSITIVE" => Some(Compatibility::FullTransitive),
        _ => None,
    });
    let fields = written(node, "fields").then(|| columns(node, "fields", "schema.fields", origin, findings));
    let definition = text(node, "definition");
    if definition.is_some() && fields.is_some() {
        let hint = "keep the schema's text, or the list of columns";
        findings.refuse(origin, "schema.fields", "'definition' and 'fields' exclude each other", hint);
    }
    let references = items(node, "references", |node| SchemaReference {
        name: required(node, "name"),
        subject: required(node, "subject"),
        version: integer(node, "version").unwrap_or(1),
    });
    if !references.is_empty() && definition.is_none() {
        let hint = "add the text that imports them, or remove the references";
        findings.refuse(origin, "schema.references", "'references' needs 'definition'", hint);
    }
    let names = references.iter().map(|reference| reference.name.as_str());
    unique_names(names, "reference", "schema.references", origin, findings);
    let timestamp_format = text(node, "timestamp_format").and_then(|text| match text.as_str() {
        "sql" => Some(TimestampFormat::Sql),
        "iso_8601" => Some(TimestampFormat::Iso8601),
        _ => None,
    });
    if timestamp_format.is_some() && matches!(format, Some(SchemaFormat::Avro | SchemaFormat::Protobuf)) {
        let hint = "remove it, or set 'format: json'";
        findings.refuse(origin, "schema.timestamp_format", "'timestamp_format' is for JSON only", hint);
    }
    SchemaBlock {
        registry: text(node, "registry"),
        subject: text(node, "subject"),
        version: integer(node, "version").map_or(SchemaVersion::Latest, SchemaVersion::Number),
        format,
        definition,
        fields,
        compatibility,
        references,
        timestamp_format,
    }
}

fn freshness(node: &Node) -> Freshness {
    Freshness {
        max_lag_seconds: integer(node, "max_lag_seconds"),
        warn_after_seconds: integer(node, "warn_after_seconds"),
    }
}

fn event_time(node: &Node, origin: &Origin, findings: &mut Findings) -> EventTime {
    let watermark = node.get("watermark").map(|node| Watermark {
        strategy: match node.get("strategy").and_then(Node::as_str) {
            Some("monotonously_increasing") => WatermarkStrategy::MonotonouslyIncreasing,
            Some("custom") => WatermarkStrategy::Custom,
            Some(_) | None => WatermarkStrategy::BoundedOutOfOrderness,
        },
        max_out_of_orderness_ms: integer(node, "max_out_of_orderness_ms").unwrap_or(5000),
        expression: text(node, "expression"),
    });
    if let Some(watermark) = &watermark {
        match (watermark.strategy, &watermark.expression) {
            (WatermarkStrategy::Custom, None) => findings.refuse(
                origin,
                "event_time.watermark",
                "'strategy: custom' needs 'expression'",
                "add 'expression:' with the SQL of the watermark",
            ),
            (WatermarkStrategy::BoundedOutOfOrderness | WatermarkStrategy::MonotonouslyIncreasing, Some(_)) => findings
                .refuse(
                    origin,
                    "event_time.watermark.expression",
                    "'expression' is for 'strategy: custom' only",
                    "set 'strategy: custom', or remove the expression",
                ),
            (WatermarkStrategy::Custom, Some(_))
            | (WatermarkStrategy::BoundedOutOfOrderness | WatermarkStrategy::MonotonouslyIncreasing, None) => {}
        }
    }
    EventTime { column: required(node, "column"), watermark, allowed_lateness_ms: integer(node, "allowed_lateness_ms") }
}

pub fn test(node: &Node, origin: Origin, findings: &mut Findings) -> Test {
    for (index, assertion) in node.get("assertions").map(Node::items).unwrap_or_default().iter().enumerate() {
        assertion_rules(assertion, index, &origin, findings);
    }
    Test {
        name: required(node, "name"),
        model: required(node, "model"),
        test_type: match node.get("type").and_then(Node::as_str) {
            Some("sample") => TestType::Sample,
            Some("continuous") => TestType::Continuous,
            Some(_) | None => TestType::Schema,
        },
        assertions: items(node, "assertions", Node::to_json),
        sample_size: integer(node, "sample_size"),
        flink_cluster: text(node, "flink_cluster"),
        on_failure: node.get("on_failure").map(|node| OnFailure {
            severity: match node.get("severity").and_then(Node::as_str) {
                Some("warning") => Severity::Warning,
                Some(_) | None => Severity::Error,
            },
            actions: items(node, "actions", Node::to_json),
        }),
        origin,
    }
}

fn assertion_rules(assertion: &Node, index: usize, origin: &Origin, findings: &mut Findings) {
    let [entry] = assertion.entries() else { return };
    let path = format!("assertions.{index}.{}", entry.key);
    match &*entry.key {
        "range" if !written(&entry.value, "min") && !written(&entry.value, "max") => {
            findings.refuse(origin, &path, "'range' needs 'min' or 'max'", "add at least one of them");
        }
        "accepted_values" => {
            findings.free_scalars(origin, &format!("{path}.values"), entry.value.get("values"), false);
        }
        _ => {}
    }
}

/// None when not exactly one of the two is named.
pub(super) fn reference(node: &Node) -> Option<Reference> {
    let name = |key: &str| text(node, key).filter(|name| !name.trim().is_empty());
    match (name("source"), name("ref"), written(node, "source"), written(node, "ref")) {
        (Some(source), None, true, false) => Some(Reference::Source(source)),
        (None, Some(model), false, true) => Some(Reference::Model(model)),
        _ => None,
    }
}

pub fn exposure(node: &Node, origin: Origin) -> Exposure {
    let block = |key: &str| node.get(key).map(|node| object(Some(node)));
    let owners = items(node, "owners", |node| string_map(Some(node)));
    Exposure {
        name: required(node, "name"),
        exposure_type: match node.get("type").and_then(Node::as_str) {
            Some("dashboard") => ExposureType::Dashboard,
            Some("ml_training") => ExposureType::MlTraining,
            Some("ml_inference") => ExposureType::MlInference,
            Some("api") => ExposureType::Api,
            Some(_) | None => ExposureType::Application,
        },
        role: node.get("role").and_then(Node::as_str).and_then(|role| match role {
            "producer" => Some(ExposureRole::Producer),
            "consumer" => Some(ExposureRole::Consumer),
            "both" => Some(ExposureRole::Both),
            _ => None,
        }),
        description: text(node, "description"),
        owner: text(node, "owner").or_else(|| owners.first().and_then(|owner| owner.get("name").cloned())),
        owners,
        url: text(node, "url"),
        repo: text(node, "repo"),
        language: text(node, "language"),
        tool: text(node, "tool"),
        consumer_group: text(node, "consumer_group"),
        schedule: text(node, "schedule"),
        produces: items(node, "produces", reference),
        consumes: items(node, "consumes", reference),
        depends_on: items(node, "depends_on", reference),
        columns: items(node, "columns", |node| ExposureColumn {
            name: required(node, "name"),
            data_type: text(node, "type"),
        }),
        sla: block("sla"),
        contracts: block("contracts"),
        access: block("access"),
        freshness: node.get("freshness").map(freshness),
        data_requirements: block("data_requirements"),
        origin,
    }
}

pub fn udf(node: &Node, origin: Origin) -> Udf {
    Udf {
        name: required(node, "name"),
        return_type: required(node, "return_type"),
        class: text(node, "class"),
        language: text(node, "language"),
        origin,
    }
}

/// As JSON, with the bare null of a mask method read as the word.
pub(super) fn policy(node: &Node) -> Value {
    let mut policy = node.to_json();
    if let Some(method) = policy.get_mut("mask").and_then(|mask| mask.get_mut("method"))
        && matches!(node.nearest("mask.method").value(), Resolved::Null)
    {
        *method = Value::from("null");
    }
    policy
}
