//! Connectors in `status`: how they run, and which configuration keys are not as declared.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::doc::{Doc, Line, Tone};
use crate::compiler::artifact::{ConnectorArtifact, Kind};
use crate::messages::status::ObservedConnector;
use crate::planner::connector::{ConnectorDiff, ManagedConnectorObservation};
use crate::planner::{Cause, Live};
use crate::providers::connect::RunState;

use super::why::{self, Differing};

#[derive(Serialize)]
pub struct ConnectorRow {
    pub name: String,
    pub exists: Option<bool>,
    /// The worker's word; `DEGRADED` when a task failed, `MISSING` when there is no connector, `UNKNOWN` when it was not read.
    pub status: &'static str,
    /// Why it is not as declared, when that could be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<Tasks>,
    /// Key → what happened to it; never a value.
    #[serde(skip_serializing_if = "Map::is_empty")]
    drifts: Map<String, Value>,
}

#[derive(Serialize)]
struct Tasks {
    total: usize,
    failed: usize,
}

impl ConnectorRow {
    pub fn of(desired: &ConnectorArtifact, seen: Option<&ObservedConnector>) -> Self {
        let diff = seen.filter(|seen| seen.live.exists()).map(|seen| ConnectorDiff::of(desired, &seen.live));
        let running = seen.and_then(|seen| seen.status.as_ref());
        let failed = running.map_or(0, |status| status.tasks.iter().filter(|task| **task == RunState::Failed).count());
        let status = match (seen, running) {
            (None, _) => "UNKNOWN",
            (Some(_), None) => "MISSING",
            (Some(_), Some(status)) if failed > 0 && status.state != RunState::Failed => "DEGRADED",
            (Some(_), Some(status)) => status.state.as_str(),
        };
        Self {
            name: desired.name.clone(),
            exists: seen.map(|_| running.is_some()),
            status,
            cause: None,
            tasks: running.map(|status| Tasks { total: status.tasks.len(), failed }),
            drifts: diff.map(|diff| diff.changes()).unwrap_or_default(),
        }
    }

    /// None when the connector is as declared, or was not read.
    pub fn differing<'a>(&'a mut self, live: &'a ManagedConnectorObservation) -> Option<Differing<'a>> {
        let exists = self.exists?;
        let differs = !exists || !self.drifts.is_empty();
        let Self { name, cause, .. } = self;
        differs.then_some(Differing { kind: Kind::Connector, name, exists, live: Some(Live::Connector(live)), cause })
    }

    pub fn is_healthy(&self) -> bool {
        self.status == RunState::Running.as_str() && self.drifts.is_empty()
    }
}

pub fn table(doc: &mut Doc, rows: &[ConnectorRow]) {
    if rows.is_empty() {
        return;
    }
    let cells = rows.iter().map(|row| {
        let tasks = row.tasks.as_ref().map_or_else(
            || "-".to_owned(),
            |tasks| match tasks.failed {
                0 => tasks.total.to_string(),
                failed => format!("{} ({failed} failed)", tasks.total),
            },
        );
        vec![row.name.clone(), why::told(row.status, row.cause), tasks]
    });
    doc.blank().table(&["CONNECTOR", "STATUS", "TASKS"], cells.collect());
    for row in rows.iter().filter(|row| !row.drifts.is_empty()) {
        doc.line(Line::new().tone(Tone::Update, format!("~ {}", row.name)));
        let drifts = row.drifts.iter().map(|(key, change)| {
            let live = match change["change"].as_str() {
                Some("added") => "declared, not live",
                Some("removed") => "live, not declared",
                Some(_) | None => "another value",
            };
            (key.clone(), live.to_owned())
        });
        doc.pairs(4, drifts);
    }
}
