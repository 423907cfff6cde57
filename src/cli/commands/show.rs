//! `streamt show`: one declaration, with what is derived from it.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::lineage::Graph;
use crate::cli::live;
use crate::cli::outcome::{self, CmdResult, Failure, Outcome};
use crate::cli::project;
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::{OwnerType, TopicArtifact};
use crate::compiler::{ResolvedModel, compile};
use crate::messages::status::ObserveRequest;
use crate::planner::connector::ConnectorName;
use crate::planner::observation::TopicObservation;
use crate::project::Project;
use crate::project::model::{Exposure, Model, Reference, Source, Test, connector_class};

use super::diff;
use super::job_rows::{self, JobDiff};

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ShownType {
    Source,
    Model,
    Test,
    Exposure,
}

/// Show one source, model, test or exposure
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub project: ProjectArgs,

    /// What it is
    #[arg(value_enum, value_name = "TYPE")]
    pub shown: ShownType,

    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Also compare it with the live topic, Flink job and connector (source, model)
    #[arg(long)]
    pub diff: bool,

    /// Only the Flink SQL that it compiles to (model)
    #[arg(long, conflicts_with = "diff")]
    pub sql: bool,
}

pub fn run(context: &Context, args: &ShowArgs) -> CmdResult {
    let opened = project::open(context, &args.project)?;
    let project = &opened.project;
    if args.diff && !matches!(args.shown, ShownType::Source | ShownType::Model) {
        return Err(Failure::usage("--diff is for sources and models").hint("Leave --diff out"));
    }
    if args.sql {
        return flink_sql(&opened, args);
    }
    let (models, graph) = project::graph(project);
    let mut data = describe(project, &models, &graph, args)?;
    let mut failed = None;
    if args.diff {
        match live_diff(context, project, args)? {
            Ok(diff) => {
                data.insert("diff".to_owned(), diff);
            }
            Err(error) => {
                data.insert("diff".to_owned(), json!({ "status": "unavailable" }));
                failed = Some(error);
            }
        }
    }
    let outcome = Outcome::new(&data, text(&data)).warn(opened.warnings);
    match failed {
        None => Ok(outcome),
        Some(error) => Err(outcome.fail(error)),
    }
}

/// The text of a model's Flink job.
fn flink_sql(opened: &project::Opened, args: &ShowArgs) -> CmdResult {
    if args.shown != ShownType::Model {
        return Err(Failure::usage("--sql is for models").hint("Leave --sql out"));
    }
    let own: fn(&Model) -> &str = |model| &model.name;
    find(&opened.project.models, &args.name, own, Code::E102ModelNotFound, "model")?;
    let compiled = compile(opened.project.clone())?;
    let Some(job) = compiled.artifacts.flink_jobs.iter().find(|job| job.ownership.name == args.name) else {
        return Err(Failure::usage(format!("model '{}' is not run by Flink", args.name)).hint("Leave --sql out"));
    };
    let data = json!({ "resource_type": "model", "name": args.name, "job": job.name, "flink_sql": job.sql });
    Ok(Outcome::new(&data, Doc::document(format!("{}\n", job.sql))).warn(opened.warnings.iter().cloned()))
}

/// The declaration against its live topic; the inner error is a provider's.
fn live_diff(context: &Context, project: &Arc<Project>, args: &ShowArgs) -> Result<Result<Value, Diagnostic>, Failure> {
    let mut request = ObserveRequest {
        project: project.clone(),
        topics: Vec::new(),
        source_topics: Vec::new(),
        subjects: Vec::new(),
        connectors: Vec::new(),
        jobs: Vec::new(),
        failures: false,
        consumers: false,
        counts: false,
    };
    if args.shown == ShownType::Source {
        let source = project.sources.iter().find(|source| source.name == args.name);
        request.source_topics.extend(source.map(|source| source.topic.clone()));
        let seen = live::observe(context, "show", request)?.source_topics;
        return Ok(seen.map(|found| {
            let topic = found.values().next();
            json!({
                "exists": topic.is_some_and(|topic| topic.exists), "partitions": topic.and_then(|topic| topic.partitions),
            })
        }));
    }
    let compiled = compile(project.clone())?;
    let own =
        |topic: &&TopicArtifact| topic.ownership.owner_type == OwnerType::Model && topic.ownership.name == args.name;
    let topic = compiled.artifacts.topics.iter().find(own);
    let sink = diff::own_connectors(&compiled).into_iter().find(|sink| sink.ownership.name == args.name);
    request.topics.extend(topic.map(|topic| topic.name.clone()));
    request.connectors.extend(sink.and_then(|sink| ConnectorName::new(&sink.name)));
    let job = job_rows::own(&compiled)
        .find(|job| job.ownership.owner_type == OwnerType::Model && job.ownership.name == args.name);
    request.jobs.extend(job.cloned());
    if request.topics.is_empty() && request.connectors.is_empty() && request.jobs.is_empty() {
        return Ok(Ok(json!({ "status": "no_topic", "diffs": [] })));
    }
    let seen = live::observe(context, "show", request)?;
    let (topics, connectors, jobs) = match (seen.topics, seen.connectors, seen.jobs) {
        (Ok(topics), Ok(connectors), Ok(jobs)) => (topics, connectors, jobs),
        (Err(error), ..) | (Ok(_), Err(error), _) | (Ok(_), Ok(_), Err(error)) => return Ok(Err(error)),
    };
    let mut found = match topic {
        None => json!({ "status": "no_topic", "diffs": [] }),
        Some(topic) => {
            let absent = TopicObservation::absent(topic.name.clone());
            diff::of_topic(topic, topics.topics.get(&topic.name).unwrap_or(&absent), topics.configs_read)
        }
    };
    if let Some(job) = job {
        found["flink_job"] = json!(JobDiff::of(&job.name, jobs.get(&job.name)));
    }
    if let Some(sink) = sink {
        found["connector"] = diff::of_connector(sink, connectors.get(&sink.name));
    }
    Ok(Ok(found))
}

fn find<'a, T>(list: &'a [T], name: &str, own: fn(&T) -> &str, code: Code, noun: &str) -> Result<&'a T, Failure> {
    list.iter()
        .find(|entry| own(entry) == name)
        .ok_or_else(|| project::not_found(code, noun, name, list.iter().map(own)))
}

fn describe(
    project: &Project,
    models: &[ResolvedModel],
    graph: &Graph,
    args: &ShowArgs,
) -> Result<Map<String, Value>, Failure> {
    let name = args.name.as_str();
    let data = match args.shown {
        ShownType::Source => {
            let own: fn(&Source) -> &str = |source| &source.name;
            source(find(&project.sources, name, own, Code::E101SourceNotFound, "source")?, graph)
        }
        ShownType::Model => {
            let own: fn(&Model) -> &str = |model| &model.name;
            let model = find(&project.models, name, own, Code::E102ModelNotFound, "model")?;
            describe_model(model, models.iter().find(|resolved| resolved.name == name), graph)
        }
        ShownType::Test => {
            let own: fn(&Test) -> &str = |test| &test.name;
            let test = find(&project.tests, name, own, Code::E107TestModelNotFound, "test")?;
            json!({
                "resource_type": "test", "name": test.name, "model": test.model,
                "type": outcome::json(&test.test_type), "assertions": test.assertions, "sample_size": test.sample_size,
            })
        }
        ShownType::Exposure => {
            let own: fn(&Exposure) -> &str = |exposure| &exposure.name;
            exposure(find(&project.exposures, name, own, Code::E108ExposureModelNotFound, "exposure")?)
        }
    };
    Ok(match data {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    })
}

fn neighbours(graph: &Graph, name: &str) -> (Vec<String>, Vec<String>) {
    match graph.find(name) {
        Some(index) => (graph.nodes[index].upstream.clone(), graph.nodes[index].downstream.clone()),
        None => (Vec::new(), Vec::new()),
    }
}

fn source(source: &Source, graph: &Graph) -> Value {
    let (_, downstream) = neighbours(graph, &source.name);
    let columns: Vec<Value> = (source.columns.iter())
        .map(|c| json!({"name": c.name, "type": c.data_type, "classification": c.classification}))
        .collect();
    json!({
        "resource_type": "source", "name": source.name, "topic": source.topic, "description": source.description,
        "owner": source.owner, "tags": source.tags, "has_schema": source.schema.is_some(),
        "schema_format": source.schema.as_ref().and_then(|schema| schema.format),
        "columns": columns, "downstream": downstream,
        "event_time": source.event_time.as_ref().map(|time| json!({"column": time.column})),
    })
}

fn describe_model(model: &Model, resolved: Option<&ResolvedModel>, graph: &Graph) -> Value {
    let (upstream, downstream) = neighbours(graph, &model.name);
    let materialized = resolved.map(|resolved| resolved.materialized).or(model.materialized);
    let mut data = Map::new();
    let mut set = |key: &str, value: Value| {
        data.insert(key.to_owned(), value);
    };
    set("resource_type", json!("model"));
    set("name", json!(model.name));
    set("materialized", json!(materialized));
    set("description", json!(model.description));
    set("sql", json!(model.sql));
    set("upstream", json!(upstream));
    set("downstream", json!(downstream));
    set("tags", json!(model.tags));
    set("access", json!(model.access));
    set("group", json!(model.group));
    set("owner", json!(model.owner));
    if let Some(flink) = &model.flink {
        set(
            "flink",
            json!({
                "parallelism": flink.parallelism, "checkpoint_interval_ms": flink.checkpoint_interval_ms,
                "state_ttl_ms": flink.state_ttl_ms,
            }),
        );
    }
    if let Some(topic) = &model.topic {
        set(
            "topic",
            json!({
                "name": model.topic_name(), "partitions": topic.partitions, "replication_factor": topic.replication_factor,
            }),
        );
    }
    if let Some(sink) = &model.sink {
        let keys: Vec<&String> = sink.config.keys().collect();
        set(
            "connector",
            json!({
                "name": model.name, "class": connector_class(&sink.connector), "connection": sink.connection,
                "config_keys": keys,
            }),
        );
    }
    if let Some(contract) = &model.contract {
        set("contract", json!({"enforced": contract.enforced, "columns": contract.columns}));
    }
    if let Some(sql) = resolved.and_then(|resolved| resolved.sql.as_ref()).filter(|_| model.macro_name.is_some()) {
        set("compiled_sql", json!(sql));
    }
    Value::Object(data)
}

fn exposure(exposure: &Exposure) -> Value {
    let references = |list: &[Option<Reference>]| outcome::json(&list.iter().flatten().collect::<Vec<_>>());
    json!({
        "resource_type": "exposure", "name": exposure.name, "type": outcome::json(&exposure.exposure_type),
        "description": exposure.description, "owner": exposure.owner, "role": exposure.role,
        "consumes": references(&exposure.consumes), "produces": references(&exposure.produces),
        "depends_on": references(&exposure.depends_on), "consumer_group": exposure.consumer_group,
        "columns": exposure.columns, "repo": exposure.repo,
    })
}

/// Key by key; SQL as a block, lists of maps one a line.
fn text(data: &Map<String, Value>) -> Doc {
    let mut doc = Doc::new();
    let (kind, name) = (word(&data["resource_type"]), word(&data["name"]));
    doc.heading(format!("{kind} {name}"));
    fields(&mut doc, 2, data.iter().skip(2));
    doc
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn fields<'a>(doc: &mut Doc, indent: usize, map: impl Iterator<Item = (&'a String, &'a Value)>) {
    let margin = " ".repeat(indent);
    for (key, value) in map {
        match value {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::String(sql) if key == "sql" || key == "compiled_sql" => {
                doc.line(format!("{margin}{key}:")).text(indent + 2, sql.trim_end().to_owned());
            }
            Value::Array(items) if items.iter().all(Value::is_string) => {
                doc.line(format!("{margin}{key}: {}", items.iter().map(word).collect::<Vec<_>>().join(", ")));
            }
            Value::Array(items) => {
                doc.line(format!("{margin}{key}:"));
                for item in items {
                    doc.line(format!("{margin}  - {}", flat(item)));
                }
            }
            Value::Object(map) if map.values().any(|part| part.is_array() || part.is_object()) => {
                doc.line(format!("{margin}{key}:"));
                fields(doc, indent + 2, map.iter());
            }
            Value::Object(_) => {
                doc.line(format!("{margin}{key}: {}", flat(value)));
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                doc.line(format!("{margin}{key}: {}", word(value)));
            }
        }
    }
}

fn flat(value: &Value) -> String {
    let Value::Object(map) = value else { return value.to_string() };
    let parts: Vec<String> = (map.iter())
        .filter(|(_, part)| !part.is_null())
        .map(|(key, part)| match part {
            Value::String(text) => format!("{key} {text}"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                format!("{key} {part}")
            }
        })
        .collect();
    parts.join(", ")
}
