//! `streamt list`: what a project declares.

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::outcome::{self, CmdResult, Failure, Outcome};
use crate::cli::project;
use crate::codes::Location;
use crate::compiler::{Process, ResolvedModel};
use crate::project::Project;
use crate::project::model::{OwnershipMode, TestType, connector_class};

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ResourceType {
    Sources,
    Models,
    Tests,
    Exposures,
    Jobs,
    Connectors,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum SortBy {
    Name,
    Type,
    Upstream,
}

/// List sources, models, tests, exposures, Flink jobs or connectors
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// What to list; counts of everything without it
    #[arg(value_enum, value_name = "TYPE")]
    resource_type: Option<ResourceType>,

    /// Only sources or models with a tag: tag:<t>
    #[arg(short, long, value_name = "EXPR")]
    select: Option<String>,

    /// Order of models
    #[arg(long, value_enum, default_value = "name")]
    sort_by: SortBy,
}

#[derive(Serialize)]
struct ListData {
    resource_type: &'static str,
    count: usize,
    items: Vec<Value>,
}

pub fn run(context: &Context, args: &ListArgs) -> CmdResult {
    let tag = match args.select.as_deref().map(|text| (text, text.strip_prefix("tag:"))) {
        None => None,
        Some((_, Some(tag))) if !tag.is_empty() => Some(tag),
        Some((text, _)) => {
            return Err(Failure::usage(format!("--select {text} is not a selector")).hint("Write --select tag:<t>"));
        }
    };
    let opened = project::open(context, &args.project)?;
    let project = &opened.project;
    let Some(resource_type) = args.resource_type else {
        return Ok(summary(project).warn(opened.warnings));
    };
    if tag.is_some() && !matches!(resource_type, ResourceType::Sources | ResourceType::Models) {
        return Err(Failure::usage("--select is for sources and models").hint("Leave --select out"));
    }
    let (name, header, items, rows) = match resource_type {
        ResourceType::Sources => sources(project, tag),
        ResourceType::Models => models(project, tag, args.sort_by),
        ResourceType::Tests => tests(project),
        ResourceType::Exposures => exposures(project),
        ResourceType::Jobs => jobs(project),
        ResourceType::Connectors => connectors(project),
    };
    let data = ListData { resource_type: name, count: items.len(), items };
    let mut text = Doc::new();
    if rows.is_empty() {
        text.line(format!("No {name}."));
    }
    text.table(header, rows);
    Ok(Outcome::new(&data, text).warn(opened.warnings))
}

fn summary(project: &Project) -> Outcome {
    let counts = [
        ("sources", project.sources.len()),
        ("models", project.models.len()),
        ("tests", project.tests.len()),
        ("exposures", project.exposures.len()),
        ("jobs", jobs(project).2.len()),
        ("connectors", connectors(project).2.len()),
    ];
    let map: serde_json::Map<String, Value> =
        counts.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
    let mut text = Doc::new();
    text.pairs(0, counts.map(|(name, count)| (name, count.to_string())));
    Outcome::new(&json!({ "summary": map }), text)
}

type Listing = (&'static str, &'static [&'static str], Vec<Value>, Vec<Vec<String>>);

fn place(location: Option<Location>) -> Value {
    json!(location.map(|location| location.to_string()))
}

fn selected(tags: &[String], tag: Option<&str>) -> bool {
    tag.is_none_or(|tag| tags.iter().any(|own| own == tag))
}

fn sources(project: &Project, tag: Option<&str>) -> Listing {
    let mut list: Vec<_> = project.sources.iter().filter(|source| selected(&source.tags, tag)).collect();
    list.sort_by(|a, b| a.name.cmp(&b.name));
    let items = (list.iter())
        .map(|source| {
            json!({
                "name": source.name, "topic": source.topic, "description": source.description,
                "has_schema": source.schema.is_some(), "columns": source.columns.len(), "tags": source.tags,
                "ownership": source.ownership.mode.as_str(), "location": place(source.origin.location()),
            })
        })
        .collect();
    let rows =
        list.iter().map(|s| vec![s.name.clone(), s.topic.clone(), s.ownership.mode.as_str().to_owned()]).collect();
    ("sources", &["SOURCE", "TOPIC", "OWNERSHIP"], items, rows)
}

fn models(project: &Project, tag: Option<&str>, sort_by: SortBy) -> Listing {
    let (resolved, graph) = project::graph(project);
    let upstream = |name: &str| graph.find(name).map(|index| graph.nodes[index].upstream.clone()).unwrap_or_default();
    let declared = |model: &ResolvedModel| project.models.iter().find(|declared| declared.name == model.name);
    let mut list: Vec<_> = (resolved.iter())
        .filter_map(|model| Some((model, declared(model)?, upstream(&model.name))))
        .filter(|(_, declared, _)| selected(&declared.tags, tag))
        .collect();
    match sort_by {
        SortBy::Name => list.sort_by(|a, b| a.0.name.cmp(&b.0.name)),
        SortBy::Type => list.sort_by_key(|(model, _, _)| (model.materialized.as_str(), model.name.clone())),
        SortBy::Upstream => list.sort_by_key(|(model, _, up)| (std::cmp::Reverse(up.len()), model.name.clone())),
    }
    let items = (list.iter())
        .map(|(model, declared, upstream)| {
            json!({
                "name": model.name, "materialized": model.materialized.as_str(), "description": declared.description,
                "upstream": upstream, "tags": declared.tags, "has_sql": declared.sql.is_some() || declared.macro_name.is_some(),
                "ownership": declared.ownership.mode.as_str(), "location": place(declared.origin.location()),
            })
        })
        .collect();
    let rows = (list.iter())
        .map(|(model, _, upstream)| {
            vec![model.name.clone(), model.materialized.as_str().to_owned(), upstream.join(", ")]
        })
        .collect();
    ("models", &["MODEL", "MATERIALIZED", "UPSTREAM"], items, rows)
}

fn tests(project: &Project) -> Listing {
    let mut list: Vec<_> = project.tests.iter().collect();
    list.sort_by(|a, b| a.name.cmp(&b.name));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = (list.iter())
        .map(|test| {
            json!({
                "name": test.name, "model": test.model, "type": outcome::json(&test.test_type),
                "assertions": test.assertions.len(), "location": place(test.origin.location()),
            })
        })
        .collect();
    let rows = list
        .iter()
        .map(|test| vec![test.name.clone(), test.model.clone(), word(&outcome::json(&test.test_type))])
        .collect();
    ("tests", &["TEST", "MODEL", "TYPE"], items, rows)
}

fn exposures(project: &Project) -> Listing {
    let mut list: Vec<_> = project.exposures.iter().collect();
    list.sort_by(|a, b| a.name.cmp(&b.name));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = (list.iter())
        .map(|exposure| {
            json!({
                "name": exposure.name, "type": outcome::json(&exposure.exposure_type),
                "description": exposure.description, "owner": exposure.owner,
                "location": place(exposure.origin.location()),
            })
        })
        .collect();
    let rows = (list.iter())
        .map(|exposure| {
            let owner = exposure.owner.clone().unwrap_or_default();
            vec![exposure.name.clone(), word(&outcome::json(&exposure.exposure_type)), owner]
        })
        .collect();
    ("exposures", &["EXPOSURE", "TYPE", "OWNER"], items, rows)
}

/// The jobs of models, then those of continuous tests.
fn jobs(project: &Project) -> Listing {
    let default = project.runtime.flink.as_ref().and_then(|flink| flink.default.as_deref());
    let (resolved, _) = project::graph(project);
    let runs = |name: &str| resolved.iter().any(|own| own.name == name && own.process == Some(Process::Flink));
    let models = project.models.iter().filter(|model| runs(&model.name)).map(|model| {
        let cluster = model.flink_cluster.as_deref();
        (model.name.clone(), "model", model.name.as_str(), cluster, model.ownership.mode, model.origin.location())
    });
    let tests = project.tests.iter().filter(|test| test.test_type == TestType::Continuous).map(|test| {
        let cluster = test.flink_cluster.as_deref();
        (
            format!("test_{}", test.name),
            "test",
            test.model.as_str(),
            cluster,
            OwnershipMode::Managed,
            test.origin.location(),
        )
    });
    let (mut models, mut tests): (Vec<_>, Vec<_>) = (models.collect(), tests.collect());
    models.sort_by(|a, b| a.0.cmp(&b.0));
    tests.sort_by(|a, b| a.0.cmp(&b.0));
    let mut items = Vec::new();
    let mut rows = Vec::new();
    for (name, declared, model, cluster, mode, location) in models.into_iter().chain(tests) {
        let cluster = cluster.or(default);
        items.push(json!({
            "name": name, "model": model, "cluster": cluster, "declared": declared, "ownership": mode.as_str(),
            "location": place(location),
        }));
        let cluster = cluster.unwrap_or("-").to_owned();
        rows.push(vec![name, declared.to_owned(), cluster, mode.as_str().to_owned()]);
    }
    ("jobs", &["JOB", "DECLARED", "CLUSTER", "OWNERSHIP"], items, rows)
}

/// The connectors of sinks, then those that are declared to be removed.
fn connectors(project: &Project) -> Listing {
    let default = project.runtime.connect.as_ref().and_then(|connect| connect.default.as_deref());
    let mut list: Vec<_> = project.models.iter().filter_map(|model| Some((model, model.sink.as_ref()?))).collect();
    list.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    let mut items = Vec::new();
    let mut rows = Vec::new();
    for (model, sink) in list {
        let (class, mode) = (connector_class(&sink.connector), model.ownership.mode.as_str());
        let cluster = model.connect_cluster.as_deref().or(default);
        items.push(json!({
            "name": model.name, "model": model.name, "class": class, "connection": sink.connection, "cluster": cluster,
            "declared": "sink", "ownership": mode, "location": place(model.origin.at("sink")),
        }));
        let cluster = cluster.unwrap_or("-").to_owned();
        rows.push(vec![model.name.clone(), "sink".to_owned(), cluster, class.to_owned(), mode.to_owned()]);
    }
    for removal in &project.connector_removals {
        items.push(json!({
            "name": removal.name, "model": removal.logical_owner, "class": null, "connection": null,
            "cluster": removal.cluster, "declared": "removal", "ownership": null,
            "location": place(removal.origin.location()),
        }));
        let none = || "-".to_owned();
        rows.push(vec![removal.name.clone(), "removal".to_owned(), removal.cluster.clone(), none(), none()]);
    }
    ("connectors", &["CONNECTOR", "DECLARED", "CLUSTER", "CLASS", "OWNERSHIP"], items, rows)
}
