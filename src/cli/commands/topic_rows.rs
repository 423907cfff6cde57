//! Topics in `status`: those of the project beside their declarations, and those of its sources.

use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::outcome;
use crate::compiler::artifact::{Kind, TopicArtifact};
use crate::planner::Cause;
use crate::planner::observation::TopicObservation;
use crate::planner::topic::TopicDiff;

use super::cells::{existence, number};
use super::why::{self, Differing};

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum TopicStatus {
    Ok,
    Missing,
    Drift,
    Unknown,
}

#[derive(Serialize)]
pub struct TopicRow {
    pub name: String,
    exists: Option<bool>,
    partitions: Option<u32>,
    replication_factor: Option<u16>,
    status: TopicStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    /// With `--lag`; null when it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_count: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drifts: Vec<DriftRow>,
}

#[derive(Serialize)]
struct DriftRow {
    field: String,
    actual: Value,
    desired: Value,
}

impl TopicRow {
    pub fn of(topic: &TopicArtifact, live: Option<&TopicObservation>, configs_read: bool) -> Self {
        let mut drifts = live.filter(|live| live.exists).map(|live| drifts(topic, live)).unwrap_or_default();
        drifts.retain(|drift| configs_read || !drift.field.starts_with("config."));
        Self {
            name: topic.name.clone(),
            exists: live.map(|live| live.exists),
            partitions: live.and_then(|live| live.partitions),
            replication_factor: live.and_then(|live| live.replication_factor),
            status: match live {
                None => TopicStatus::Unknown,
                Some(live) if !live.exists => TopicStatus::Missing,
                Some(_) if drifts.is_empty() => TopicStatus::Ok,
                Some(_) => TopicStatus::Drift,
            },
            cause: None,
            message_count: None,
            drifts,
        }
    }

    /// None when the topic is as declared, or was not read.
    pub fn differing(&mut self) -> Option<Differing<'_>> {
        let exists = match self.status {
            TopicStatus::Missing => false,
            TopicStatus::Drift => true,
            TopicStatus::Ok | TopicStatus::Unknown => return None,
        };
        Some(Differing { kind: Kind::Topic, name: &self.name, exists, live: None, cause: &mut self.cause })
    }

    pub fn is_healthy(&self) -> bool {
        self.status == TopicStatus::Ok
    }
}

/// What differs from the declaration, secrets masked as in a plan.
fn drifts(topic: &TopicArtifact, live: &TopicObservation) -> Vec<DriftRow> {
    let diff = TopicDiff::of(topic, live);
    let row = |field: &str, actual: Value, desired: Value| DriftRow { field: field.to_owned(), actual, desired };
    let mut rows = Vec::new();
    for change in [&diff.partitions, &diff.reduction].into_iter().flatten() {
        rows.push(row("partitions", json!(change.from), json!(change.to)));
    }
    if let Some(change) = &diff.replication_factor {
        rows.push(row("replication_factor", json!(change.from), json!(change.to)));
    }
    for (field, change) in diff.changes() {
        if let Some(key) = field.strip_prefix("config.") {
            match change.as_object() {
                Some(sides) => rows.push(row(&format!("config.{key}"), sides["from"].clone(), sides["to"].clone())),
                None => rows.push(row(&field, change.clone(), change)),
            }
        }
    }
    rows
}

pub fn table(doc: &mut Doc, rows: &[TopicRow]) {
    if rows.is_empty() {
        return;
    }
    let counted = rows.iter().any(|row| row.message_count.is_some());
    let mut header = vec!["TOPIC", "STATUS", "PARTITIONS", "REPLICATION"];
    header.extend(counted.then_some("MESSAGES"));
    let cells = rows.iter().map(|row| {
        let status = why::told(outcome::json(&row.status).as_str().unwrap_or_default(), row.cause);
        let mut cells = vec![row.name.clone(), status, number(row.partitions), number(row.replication_factor)];
        cells.extend(row.message_count.map(number));
        cells
    });
    doc.blank().table(&header, cells.collect());
    for row in rows.iter().filter(|row| !row.drifts.is_empty()) {
        doc.line(Line::new().tone(Tone::Update, format!("~ {}", row.name)));
        let shown = |value: &Value| match value {
            Value::Null => "(not set)".to_owned(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
        };
        let drifts = row.drifts.iter().map(|drift| {
            (drift.field.clone(), format!("{}, declared {}", shown(&drift.actual), shown(&drift.desired)))
        });
        doc.pairs(4, drifts);
    }
}

#[derive(Serialize)]
pub struct SourceRow {
    name: String,
    topic: String,
    pub exists: Option<bool>,
    partitions: Option<u32>,
    observation: &'static str,
}

impl SourceRow {
    pub fn of(name: &str, topic: &str, live: Option<&TopicObservation>) -> Self {
        Self {
            name: name.to_owned(),
            topic: topic.to_owned(),
            exists: live.map(|live| live.exists),
            partitions: live.and_then(|live| live.partitions),
            observation: if live.is_some() { "verified" } else { "not_requested" },
        }
    }
}

pub fn sources(doc: &mut Doc, rows: &[SourceRow]) {
    if rows.is_empty() {
        return;
    }
    let cells = rows
        .iter()
        .map(|row| vec![row.name.clone(), row.topic.clone(), existence(row.exists).to_owned(), number(row.partitions)]);
    doc.blank().table(&["SOURCE", "TOPIC", "STATUS", "PARTITIONS"], cells.collect());
}
