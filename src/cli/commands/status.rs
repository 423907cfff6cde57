//! `streamt status`: whether what is declared exists, and looks as declared.

use std::cell::LazyCell;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::glob::Glob;
use crate::cli::outcome::{CmdResult, Failure, Outcome, exit};
use crate::cli::{console, live, project};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::compiler::artifact::Kind;
use crate::messages::status::{ObserveRequest, Observed};
use crate::planner::connector::ConnectorName;
use crate::planner::observation::EvidenceStatus;
use crate::state::control::{OperationStatus, Status};

use super::connector_rows::{self, ConnectorRow};
use super::group_rows::{self, GroupRow};
use super::job_rows::{self, JobRow};
use super::schema_rows::{self, SchemaRow};
use super::status_scope::Scope;
use super::topic_rows::{self, SourceRow, TopicRow};
use super::why;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Show whether the declared resources exist and look as declared
#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Also how many records each topic holds
    #[arg(long)]
    lag: bool,

    /// Also the consumer groups of the topics, with their lag
    #[arg(long)]
    consumer_groups: bool,

    /// Also sources and other external resources
    #[arg(long)]
    include_external: bool,

    /// Fail when anything is missing, drifted or not readable
    #[arg(long)]
    health: bool,

    /// The bare data object instead of text
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Only resources whose physical name matches
    #[arg(long, value_name = "GLOB")]
    filter: Option<String>,

    /// Repeat every N seconds, on a terminal
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    watch: Option<u64>,
}

#[derive(Serialize)]
struct StatusData {
    project: String,
    schemas: Vec<SchemaRow>,
    topics: Vec<TopicRow>,
    flink_jobs: Vec<JobRow>,
    connectors: Vec<ConnectorRow>,
    gateway_rules: Vec<Value>,
    observation_scope: &'static str,
    /// The operation of this environment, when it had to be read to tell causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_status: Option<OperationStatus>,
    external_resources: Vec<ExternalRow>,
    source_topics: Vec<SourceRow>,
    /// With `--consumer-groups`; null when they could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_groups: Option<Option<Vec<GroupRow>>>,
    /// Every group was read.
    #[serde(skip)]
    groups_complete: bool,
}

#[derive(Serialize)]
struct ExternalRow {
    kind: Kind,
    name: String,
    observation: &'static str,
}

pub fn run(context: &Context, args: &StatusArgs) -> CmdResult {
    match args.watch {
        None => once(context, args),
        Some(_) if context.json || !context.stdout.terminal => {
            Err(Failure::usage("--watch needs text on a terminal").hint("Leave --watch out"))
        }
        Some(seconds) => loop {
            let outcome = once(context, args)?;
            console::write_screen(&outcome.text.render(context.stdout.colour));
            std::thread::sleep(Duration::from_secs(seconds));
        },
    }
}

fn once(context: &Context, args: &StatusArgs) -> CmdResult {
    let filter = args.filter.as_deref().map(Glob::new);
    let opened = project::open(context, &args.project)?;
    let (compiled, mut warnings) = project::checked(opened)?;
    let scope = Scope::of(&compiled, filter.as_ref());
    let external = |kind: Kind| scope.external.iter().filter(move |(own, _)| *own == kind).map(|(_, name)| *name);
    let mut others: Vec<String> = match args.include_external {
        false => Vec::new(),
        true => scope.sources.iter().map(|(_, topic)| *topic).chain(external(Kind::Topic)).map(str::to_owned).collect(),
    };
    others.sort();
    others.dedup();
    let request = ObserveRequest {
        project: compiled.project.clone(),
        topics: scope.topics.iter().map(|topic| topic.name.clone()).collect(),
        source_topics: others,
        subjects: scope.schemas.iter().map(|schema| schema.subject.clone()).collect(),
        connectors: scope.connectors.iter().filter_map(|connector| ConnectorName::new(&connector.name)).collect(),
        jobs: scope.jobs.iter().copied().cloned().collect(),
        failures: true,
        consumers: args.consumer_groups,
        counts: args.lag,
    };
    let nothing = request.topics.is_empty()
        && request.source_topics.is_empty()
        && request.subjects.is_empty()
        && request.connectors.is_empty()
        && request.jobs.is_empty();
    let seen = match nothing {
        true => None,
        false => Some(live::observe(context, "status", request)?),
    };
    warnings.extend(not_observed(&compiled));
    let (data, errors, healthy) = assemble(&compiled, &scope, args, seen, &mut warnings);
    let text = match args.format {
        Format::Text => text(&data),
        Format::Json => Doc::document(format!("{}\n", serde_json::to_string_pretty(&data).unwrap_or_default())),
    };
    let outcome = Outcome::new(&data, text).warn(warnings);
    if !errors.is_empty() {
        return Err(outcome.fail(errors));
    }
    if args.health && !healthy {
        return Ok(outcome.exit(exit::FAILURE));
    }
    Ok(outcome)
}

/// W147: without the right to read configs, nothing is said about them.
pub fn configs_not_read() -> Diagnostic {
    Diagnostic::new(
        Code::W147ObservationIncomplete,
        "The topic configs are not readable with these credentials; only existence and partitions were compared",
    )
}

/// One warning for the processes that this version does not look at.
fn not_observed(compiled: &Compiled) -> Option<Diagnostic> {
    let artifacts = &compiled.artifacts;
    let count = artifacts.gateway_rules.len() + artifacts.kafka_streams_jobs.len();
    (count > 0).then(|| {
        Diagnostic::new(
            Code::W147ObservationIncomplete,
            match count {
                1 => "1 Gateway rule or runner job is not looked at by this version".to_owned(),
                _ => format!("{count} Gateway rules or runner jobs are not looked at by this version"),
            },
        )
    })
}

fn assemble(
    compiled: &Compiled,
    scope: &Scope<'_>,
    args: &StatusArgs,
    seen: Option<Observed>,
    warnings: &mut Diagnostics,
) -> (StatusData, Diagnostics, bool) {
    let mut errors = Diagnostics::new();
    let mut keep = |error: Diagnostic| project::merge(&mut errors, [error]);
    let (mut live_topics, mut live_others, mut live_subjects, mut live_connectors) = (None, None, None, None);
    let (mut consumers, mut counts, mut live_jobs) = (None, None, None);
    if let Some(seen) = seen {
        live_topics = seen.topics.map_err(&mut keep).ok();
        live_others = seen.source_topics.map_err(&mut keep).ok();
        live_subjects = seen.subjects.map_err(&mut keep).ok();
        live_connectors = seen.connectors.map_err(&mut keep).ok();
        live_jobs = seen.jobs.map_err(&mut keep).ok();
        consumers = seen.consumers.and_then(|found| found.map_err(&mut keep).ok());
        counts = seen.counts.and_then(|found| found.map_err(&mut keep).ok());
    }
    let configs_read = live_topics.as_ref().is_none_or(|live| live.configs_read);
    if !configs_read {
        warnings.push(configs_not_read());
    }
    let live_topics = live_topics.map(|live| live.topics);
    let mut topics: Vec<TopicRow> = (scope.topics.iter())
        .map(|topic| TopicRow::of(topic, live_topics.as_ref().and_then(|live| live.get(&topic.name)), configs_read))
        .collect();
    if args.lag {
        for row in &mut topics {
            row.message_count = Some(None);
            match counts.as_mut().and_then(|counts| counts.remove(&row.name)) {
                Some(Ok(count)) => row.message_count = Some(Some(count)),
                Some(Err(why)) => warnings.push(Diagnostic { code: Code::W147ObservationIncomplete, ..why }),
                None => {}
            }
        }
    }
    let mut schemas: Vec<SchemaRow> = (scope.schemas.iter())
        .map(|schema| SchemaRow::of(schema, live_subjects.as_ref().and_then(|live| live.get(&schema.subject))))
        .collect();
    let mut connectors: Vec<ConnectorRow> = (scope.connectors.iter())
        .map(|sink| ConnectorRow::of(sink, live_connectors.as_ref().and_then(|live| live.get(&sink.name))))
        .collect();
    let mut jobs: Vec<JobRow> = Vec::new();
    let classified = LazyCell::new(|| compiled.classified());
    for job in &scope.jobs {
        let seen = live_jobs.as_ref().and_then(|live| live.get(&job.name));
        let why = seen.and_then(|seen| job_rows::why(&job.name, seen, || classified.read_by(job, &compiled.models)));
        warnings.extend(why);
        jobs.push(JobRow::of(&job.name, seen));
    }
    let mut differing: Vec<why::Differing<'_>> = Vec::new();
    differing.extend(schemas.iter_mut().filter_map(SchemaRow::differing));
    differing.extend(topics.iter_mut().filter_map(TopicRow::differing));
    differing.extend(connectors.iter_mut().filter_map(|row| {
        let live = live_connectors.as_ref().and_then(|live| live.get(&row.name)).map(|seen| &seen.live)?;
        row.differing(live)
    }));
    differing.extend(jobs.iter_mut().filter_map(|row| {
        let seen = live_jobs.as_ref().and_then(|live| live.get(&row.name))?;
        Some(row.differing(seen))
    }));
    let operation = why::explain(compiled, differing, warnings);
    let observed =
        |topic: &str| live_others.as_ref().filter(|_| args.include_external).and_then(|live| live.get(topic));
    let sources: Vec<SourceRow> =
        scope.sources.iter().map(|(name, topic)| SourceRow::of(name, topic, observed(topic))).collect();
    let external = (scope.external.iter())
        .map(|(kind, name)| ExternalRow {
            kind: *kind,
            name: (*name).to_owned(),
            observation: if *kind == Kind::Topic && observed(name).is_some() { "verified" } else { "not_requested" },
        })
        .collect();
    if let Some(evidence) = consumers.as_ref().filter(|evidence| evidence.status != EvidenceStatus::Verified) {
        let reason = evidence.reason.as_deref().unwrap_or("some groups could not be read");
        let message = format!("The consumer groups are not complete: {reason}");
        warnings.push(Diagnostic::new(Code::W147ObservationIncomplete, message));
    }
    schemas.sort_by(|a, b| a.subject.cmp(&b.subject));
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    connectors.sort_by(|a, b| a.name.cmp(&b.name));
    jobs.sort_by(|a, b| a.name.cmp(&b.name));
    let healthy = topics.iter().all(TopicRow::is_healthy)
        && schemas.iter().all(|schema| schema.exists == Some(true))
        && jobs.iter().all(JobRow::is_healthy)
        && connectors.iter().all(ConnectorRow::is_healthy)
        && sources.iter().all(|source| !args.include_external || source.exists == Some(true));
    let data = StatusData {
        project: compiled.project.name.clone(),
        schemas,
        topics,
        flink_jobs: jobs,
        connectors,
        gateway_rules: Vec::new(),
        observation_scope: if args.include_external { "managed_and_external" } else { "managed" },
        operation_status: operation,
        external_resources: external,
        source_topics: sources,
        consumer_groups: args.consumer_groups.then(|| consumers.as_ref().map(group_rows::rows)),
        groups_complete: consumers.as_ref().is_some_and(|evidence| evidence.status == EvidenceStatus::Verified),
    };
    (data, errors, healthy)
}

fn text(data: &StatusData) -> Doc {
    let mut doc = Doc::new();
    doc.heading(format!("Project {}", data.project));
    let nothing = data.schemas.is_empty() && data.topics.is_empty() && data.connectors.is_empty();
    if nothing && data.flink_jobs.is_empty() {
        doc.line("No topic, schema, Flink job or connector to look at.");
    }
    schema_rows::table(&mut doc, &data.schemas);
    topic_rows::table(&mut doc, &data.topics);
    job_rows::table(&mut doc, &data.flink_jobs);
    connector_rows::table(&mut doc, &data.connectors);
    if data.operation_status.as_ref().is_some_and(|operation| operation.status != Status::Clear) {
        doc.blank().line(
            Line::new().tone(Tone::Warning, "An operation is unfinished: `streamt state status` tells how to go on."),
        );
    }
    if data.observation_scope == "managed_and_external" {
        topic_rows::sources(&mut doc, &data.source_topics);
    }
    if data.groups_complete && data.consumer_groups.iter().flatten().all(Vec::is_empty) {
        doc.blank().line("No consumer group has committed offsets on these topics.");
    }
    group_rows::tables(&mut doc, data.consumer_groups.iter().flatten().flatten());
    doc
}
