//! `streamt diff`: declared topics, Flink jobs and connectors against the live ones.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::outcome::{CmdResult, Failure, Outcome, exit};
use crate::cli::{live, project};
use crate::codes::{Code, Diagnostic};
use crate::compiler::Compiled;
use crate::compiler::artifact::{ConnectorArtifact, FlinkJobArtifact, Kind, OwnerType, TopicArtifact};
use crate::messages::status::{ObserveRequest, ObservedConnector, ObservedJob};
use crate::planner::connector::{ConnectorDiff, ConnectorName};
use crate::planner::observation::TopicObservation;
use crate::planner::topic::TopicDiff;
use crate::planner::{Cause, Live};
use crate::project::model::OwnershipMode;

use super::job_rows::{self, JobDiff};
use super::status;
use super::why::{self, Differing};

/// Compare the declared topics, Flink jobs and connectors with the live ones
///
/// Of what differs it tells the cause, as `status` does: declared and not applied, changed by somebody else or no longer running, or
/// not ours.
#[derive(Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Exit 0 without differences, 2 with differences
    #[arg(long)]
    detailed_exitcode: bool,
}

#[derive(Serialize)]
struct DiffData {
    resources: Vec<Row>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    NotDeployed,
    Drift,
    InSync,
}

impl Status {
    const fn shown(self) -> (&'static str, Tone, &'static str) {
        match self {
            Self::NotDeployed => ("+", Tone::Create, "not deployed"),
            Self::Drift => ("~", Tone::Update, "drift"),
            Self::InSync => ("=", Tone::Unchanged, "in sync"),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Row {
    Model {
        name: String,
        topic: String,
        status: Status,
        /// Why it differs, when that could be told.
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        diffs: Vec<Difference>,
    },
    Connector {
        name: String,
        connector: String,
        status: Status,
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// Key and what is to happen to it; values are never shown.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        diffs: Vec<KeyDifference>,
    },
    /// Whether it runs; what it runs, its record says and a live job does not show.
    #[serde(rename = "flink_job")]
    Job(JobDiff),
    Source {
        name: String,
        topic: String,
        exists: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        partitions: Option<u32>,
    },
}

#[derive(Serialize)]
struct Difference {
    field: String,
    declared: Value,
    actual: Value,
}

#[derive(Serialize)]
struct KeyDifference {
    field: String,
    change: Value,
}

pub fn run(context: &Context, args: &DiffArgs) -> CmdResult {
    let opened = project::open(context, &args.project)?;
    let (compiled, mut warnings) = project::checked(opened)?;
    let models = model_topics(&compiled);
    let sinks = own_connectors(&compiled);
    let mut jobs: Vec<FlinkJobArtifact> = job_rows::own(&compiled).cloned().collect();
    jobs.sort_by(|a, b| a.name.cmp(&b.name));
    let request = ObserveRequest {
        project: compiled.project.clone(),
        topics: models.iter().map(|topic| topic.name.clone()).collect(),
        source_topics: compiled.project.sources.iter().map(|source| source.topic.clone()).collect(),
        subjects: Vec::new(),
        connectors: sinks.iter().filter_map(|sink| ConnectorName::new(&sink.name)).collect(),
        jobs: jobs.clone(),
        failures: false,
        consumers: false,
        counts: false,
    };
    let mut configs_read = true;
    let nothing = request.topics.is_empty()
        && request.source_topics.is_empty()
        && request.connectors.is_empty()
        && request.jobs.is_empty();
    let (live_topics, live_sources, live_connectors, live_jobs) = match nothing {
        true => Default::default(),
        false => {
            let seen = live::observe(context, "diff", request)?;
            let before = warnings.clone();
            let failed = |service: &'static str| {
                let before = before.clone();
                move |error| unreadable(error, service).warn(before)
            };
            let topics = seen.topics.map_err(failed("kafka"))?;
            if !topics.configs_read {
                warnings.push(status::configs_not_read());
            }
            configs_read = topics.configs_read;
            let sources = seen.source_topics.map_err(failed("kafka"))?;
            let connectors = seen.connectors.map_err(failed("kafka_connect"))?;
            (topics.topics, sources, connectors, seen.jobs.map_err(failed("flink"))?)
        }
    };
    let absent = |name: &str| TopicObservation::absent(name);
    let mut rows: Vec<Row> = (models.iter())
        .map(|topic| model_row(topic, live_topics.get(&topic.name).unwrap_or(&absent(&topic.name)), configs_read))
        .collect();
    rows.extend(jobs.iter().map(|job| Row::Job(JobDiff::of(&job.name, live_jobs.get(&job.name)))));
    rows.extend(sinks.iter().map(|sink| {
        let (status, diffs) = sink_compared(sink, live_connectors.get(&sink.name));
        Row::Connector { name: sink.ownership.name.clone(), connector: sink.name.clone(), status, cause: None, diffs }
    }));
    rows.extend(compiled.project.sources.iter().map(|source| {
        let live = live_sources.get(&source.topic);
        Row::Source {
            name: source.name.clone(),
            topic: source.topic.clone(),
            exists: live.is_some_and(|live| live.exists),
            partitions: live.and_then(|live| live.partitions),
        }
    }));
    let differing = rows.iter_mut().filter_map(|row| row.differing(&live_connectors, &live_jobs)).collect();
    why::explain(&compiled, differing, &mut warnings);
    let differs = rows.iter().any(|row| match row {
        Row::Model { status, .. } | Row::Connector { status, .. } => *status != Status::InSync,
        Row::Job(job) => !job.is_as_declared(),
        Row::Source { exists, .. } => !exists,
    });
    let data = DiffData { resources: rows };
    let code = if args.detailed_exitcode && differs { exit::CHANGES } else { exit::OK };
    Ok(Outcome::new(&data, text(&data)).warn(warnings).exit(code))
}

impl Row {
    /// None when it is as declared, or is a source.
    fn differing<'a>(
        &'a mut self,
        connectors: &'a BTreeMap<String, ObservedConnector>,
        jobs: &'a BTreeMap<String, ObservedJob>,
    ) -> Option<Differing<'a>> {
        let (kind, name, status, cause) = match self {
            Self::Model { topic, status, cause, .. } => (Kind::Topic, topic, status, cause),
            Self::Connector { connector, status, cause, .. } => (Kind::Connector, connector, status, cause),
            Self::Job(job) => {
                let seen = jobs.get(&job.name)?;
                return Some(job.differing(seen));
            }
            Self::Source { .. } => return None,
        };
        let exists = match status {
            Status::NotDeployed => false,
            Status::Drift => true,
            Status::InSync => return None,
        };
        let live = connectors.get(name.as_str()).filter(|_| kind == Kind::Connector);
        let live = live.map(|seen| Live::Connector(&seen.live));
        Some(Differing { kind, name, exists, live, cause })
    }
}

/// The code of a classified failure stays; any other read failure is E523.
fn unreadable(error: Diagnostic, service: &str) -> Failure {
    let classified = matches!(
        error.code,
        Code::E404AuthFailed | Code::E405SslError | Code::E406ConnectionRefused | Code::E208MissingConfig
    );
    let unavailable = error.code == Code::E406ConnectionRefused;
    let error = match classified {
        true => error,
        false => Diagnostic { code: Code::E523DiffObservationFailed, ..error },
    };
    let failure = Failure::new(error);
    match unavailable {
        true => failure.data(&json!({ "resources": [], "warning": format!("{service}_unavailable") })),
        false => failure,
    }
}

fn model_topics(compiled: &Compiled) -> Vec<&TopicArtifact> {
    let models = compiled.artifacts.topics.iter().filter(|topic| topic.ownership.owner_type == OwnerType::Model);
    let mut topics: Vec<&TopicArtifact> = models.collect();
    topics.sort_by(|a, b| a.ownership.name.cmp(&b.ownership.name));
    topics
}

/// Fields that differ, secrets masked as in a plan.
fn differences(topic: &TopicArtifact, live: &TopicObservation) -> Vec<Difference> {
    let diff = TopicDiff::of(topic, live);
    let row = |field: String, actual: Value, declared: Value| Difference { field, declared, actual };
    let mut rows = Vec::new();
    for change in [&diff.partitions, &diff.reduction].into_iter().flatten() {
        rows.push(row("partitions".to_owned(), json!(change.from), json!(change.to)));
    }
    if let Some(change) = &diff.replication_factor {
        rows.push(row("replication_factor".to_owned(), json!(change.from), json!(change.to)));
    }
    for (field, change) in diff.changes() {
        if field.starts_with("config.") {
            let side = |name: &str| change.get(name).cloned().unwrap_or_else(|| change.clone());
            rows.push(row(field.clone(), side("from"), side("to")));
        }
    }
    rows
}

pub fn own_connectors(compiled: &Compiled) -> Vec<&ConnectorArtifact> {
    let ours = |connector: &&ConnectorArtifact| connector.ownership.mode != OwnershipMode::External;
    let mut sinks: Vec<&ConnectorArtifact> = compiled.artifacts.connectors.iter().filter(ours).collect();
    sinks.sort_by(|a, b| a.ownership.name.cmp(&b.ownership.name));
    sinks
}

fn sink_compared(sink: &ConnectorArtifact, seen: Option<&ObservedConnector>) -> (Status, Vec<KeyDifference>) {
    let Some(seen) = seen.filter(|seen| seen.live.exists()) else { return (Status::NotDeployed, Vec::new()) };
    let changes = ConnectorDiff::of(sink, &seen.live).changes();
    let status = if changes.is_empty() { Status::InSync } else { Status::Drift };
    let diffs = changes.into_iter().map(|(field, change)| KeyDifference { field, change: change["change"].clone() });
    (status, diffs.collect())
}

/// `{name, status, diffs}` of one connector.
pub fn of_connector(sink: &ConnectorArtifact, seen: Option<&ObservedConnector>) -> Value {
    let (status, diffs) = sink_compared(sink, seen);
    json!({ "name": sink.name, "status": status, "diffs": diffs })
}

/// `{status, diffs}` of one topic.
pub fn of_topic(topic: &TopicArtifact, live: &TopicObservation, configs_read: bool) -> Value {
    let (status, diffs) = compared(topic, live, configs_read);
    json!({ "status": status, "diffs": diffs })
}

fn model_row(topic: &TopicArtifact, live: &TopicObservation, configs_read: bool) -> Row {
    let (status, diffs) = compared(topic, live, configs_read);
    Row::Model { name: topic.ownership.name.clone(), topic: topic.name.clone(), status, cause: None, diffs }
}

fn compared(topic: &TopicArtifact, live: &TopicObservation, configs_read: bool) -> (Status, Vec<Difference>) {
    let mut diffs = if live.exists { differences(topic, live) } else { Vec::new() };
    diffs.retain(|diff| configs_read || !diff.field.starts_with("config."));
    let status = match (live.exists, diffs.is_empty()) {
        (false, _) => Status::NotDeployed,
        (true, true) => Status::InSync,
        (true, false) => Status::Drift,
    };
    (status, diffs)
}

fn text(data: &DiffData) -> Doc {
    let mut doc = Doc::new();
    for row in &data.resources {
        match row {
            Row::Model { name, topic, status, cause, diffs } => {
                let (sign, tone, word) = status.shown();
                let word = why::told(word, *cause);
                doc.line(Line::new().tone(tone, format!("{sign} model {name}")).plain(format!(" ({topic}): {word}")));
                let shown = |value: &Value| match value {
                    Value::Null => "(not set)".to_owned(),
                    Value::String(text) => text.clone(),
                    Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
                };
                doc.pairs(
                    4,
                    diffs.iter().map(|d| (d.field.clone(), format!("{} -> {}", shown(&d.actual), shown(&d.declared)))),
                );
            }
            Row::Connector { name, connector, status, cause, diffs } => {
                let (sign, tone, word) = status.shown();
                let word = why::told(word, *cause);
                doc.line(
                    Line::new().tone(tone, format!("{sign} sink {name}")).plain(format!(" ({connector}): {word}")),
                );
                let told = |change: &Value| match change.as_str() {
                    Some("added") => "(not set) -> declared",
                    Some("removed") => "set -> not declared",
                    Some(_) | None => "another value -> declared",
                };
                doc.pairs(4, diffs.iter().map(|diff| (diff.field.clone(), told(&diff.change).to_owned())));
            }
            Row::Job(job) => {
                let (sign, tone) = match (job.is_as_declared(), job.exists) {
                    (true, _) => ("=", Tone::Unchanged),
                    (false, true) => ("!", Tone::Update),
                    (false, false) => ("+", Tone::Create),
                };
                let state = job_rows::told(job.state.unwrap_or("not deployed"), job.cause);
                doc.line(Line::new().tone(tone, format!("{sign} job {}", job.name)).plain(format!(": {state}")));
            }
            Row::Source { name, topic, exists, partitions } => {
                let found = match (exists, partitions) {
                    (true, Some(count)) => format!("exists, {count} partitions"),
                    (true, None) => "exists".to_owned(),
                    (false, _) => "missing".to_owned(),
                };
                let tone = if *exists { Tone::Unchanged } else { Tone::Delete };
                doc.line(Line::new().tone(tone, format!("= source {name}")).plain(format!(" ({topic}): {found}")));
            }
        }
    }
    if data.resources.is_empty() {
        doc.line("No topics, jobs or connectors are declared.");
    }
    doc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_failed_for_no_known_reason_is_e523_and_a_known_reason_stays() {
        let of = |code| {
            unreadable(Diagnostic::new(code, "reading topics failed"), "kafka").errors.iter().next().unwrap().code
        };
        assert_eq!(of(Code::E407DeployError), Code::E523DiffObservationFailed);
        for known in [Code::E404AuthFailed, Code::E405SslError, Code::E406ConnectionRefused, Code::E208MissingConfig] {
            assert_eq!(of(known), known);
        }
    }
}
