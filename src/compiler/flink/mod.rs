//! Flink jobs: the text that makes a model's tables, its sink and its INSERT, and the settings before them. A text holds no
//! secret: where one belongs it says `***`, and whoever submits the job fills it in by the option's key.

mod checks;
mod masks;
mod settings;
mod tables;
mod with;

use serde_json::Value;

use crate::codes::{Code, Diagnostic};
use crate::project::model::{FlinkCluster, Model, Reference};
use crate::sql::types::{SqlType, quoted};
use crate::sql::{Outline, Span, TokenKind};

use super::artifact::{FlinkJobArtifact, OwnerType, SchemaArtifact};
use super::columns::{Columns, outline_names, output_type};
use super::context::Context;
use super::resolve::{Output, Process, ResolvedModel, at_sql};
use super::unique::flink_job_name;

pub(super) use checks::compile as compile_tests;

/// What stands where a secret belongs.
pub const SECRET: &str = "***";

/// What every job is written from.
pub(super) struct Sources<'a> {
    pub columns: &'a Columns,
    pub schemas: &'a [SchemaArtifact],
}

/// One for each model that Flink runs, in topological order.
pub(super) fn compile(context: &mut Context<'_>, order: &[&str], sources: &Sources<'_>) -> Vec<FlinkJobArtifact> {
    let mut jobs = Vec::new();
    for name in order {
        let (Some(resolved), Some(model)) = (context.resolved(name), context.names.model(name)) else { continue };
        if resolved.process != Some(Process::Flink) {
            continue;
        }
        match job(context, sources, model, resolved) {
            Ok(job) => jobs.push(job),
            Err(finding) => context.findings.push(*finding),
        }
    }
    jobs
}

type Refusal = Box<Diagnostic>;

fn job(
    context: &mut Context<'_>,
    sources: &Sources<'_>,
    model: &Model,
    resolved: &ResolvedModel,
) -> Result<FlinkJobArtifact, Refusal> {
    let sql = resolved.sql.as_deref().unwrap_or_default();
    let (Some(name), Some(Output::Kafka(topic))) = (flink_job_name(resolved), &resolved.output) else {
        let message = format!("model '{}' has no topic for its Flink job", model.name);
        return Err(Box::new(model.origin.mark("", Diagnostic::new(Code::E119CompileFailed, message))));
    };
    let sink = sink_columns(sources.columns, model, resolved, sql)?;
    let select = select(context, model, sql, &sink)?;
    let cluster = cluster(context, model.flink_cluster.as_deref());
    let mut blocks = Vec::new();
    let mut first = settings::lines(model);
    first.extend(functions(context, sql));
    if !first.is_empty() {
        blocks.push(first.join("\n"));
    }
    for dependency in &resolved.dependencies {
        blocks.push(tables::input(context, sources, dependency, cluster, model)?);
    }
    let table = format!("{}_sink", topic.replace(['.', '-'], "_"));
    blocks.push(tables::sink(context, sources, model, &table, topic, &sink, cluster)?);
    blocks.push(format!("INSERT INTO {}\n{select};", quoted(&table)));
    let flink = model.flink.as_ref();
    Ok(FlinkJobArtifact {
        name,
        sql: blocks.join("\n\n"),
        cluster: model.flink_cluster.clone(),
        parallelism: flink.and_then(|flink| flink.parallelism),
        checkpoint_interval_ms: flink.and_then(|flink| flink.checkpoint_interval_ms),
        state_backend: flink.and_then(|flink| flink.state_backend.clone()),
        state_ttl_ms: flink.and_then(|flink| flink.state_ttl_ms).and_then(|ttl| u64::try_from(ttl).ok()),
        ownership: context.ownership(OwnerType::Model, &model.name, model.ownership.mode),
    })
}

/// The cluster that runs a job: the named one, else the defaults.
fn cluster<'a>(context: &Context<'a>, alias: Option<&str>) -> Option<&'a FlinkCluster> {
    let flink = context.project.runtime.flink.as_ref()?;
    let default = context.project.defaults.model_cluster.as_deref().or(flink.default.as_deref());
    flink.clusters.get(alias.or(default)?)
}

/// A column of a sink: its name, its type and the item of the select list that fills it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SinkColumn {
    pub name: String,
    pub data_type: SqlType,
}

/// The columns that the INSERT fills, in order. E119 when they cannot be told.
fn sink_columns(
    columns: &Columns,
    model: &Model,
    resolved: &ResolvedModel,
    sql: &str,
) -> Result<Vec<SinkColumn>, Refusal> {
    let refuse = |span: Span, message: String, hint: &str| {
        let finding = Diagnostic::new(Code::E119CompileFailed, message).suggest(hint);
        Box::new(at_sql(model, span, finding))
    };
    let analysis = columns.reading(&resolved.name).and_then(|reading| reading.analysis.as_ref().ok());
    let mut found = Vec::new();
    if let Some(analysis) = analysis.filter(|analysis| analysis.complete) {
        for column in &analysis.columns {
            let Some(name) = &column.name else {
                let message = format!("model '{}': a column of the result has no name", model.name);
                return Err(refuse(column.span, message, "Give it one with AS"));
            };
            if found.iter().any(|known: &SinkColumn| known.name == **name) {
                let message = format!("model '{}' gives two columns the name '{name}'", model.name);
                return Err(refuse(column.span, message, "Give one of them another name with AS"));
            }
            found.push(SinkColumn { name: name.to_string(), data_type: output_type(model, column) });
        }
        return Ok(found);
    }
    if let Some(names) = outline_names(sql) {
        let table = columns.table(&resolved.name).and_then(|table| table.columns.as_deref()).unwrap_or_default();
        for name in names {
            let data_type = table.iter().find(|column| *column.name == *name).map(|column| column.data_type.clone());
            found.push(SinkColumn { name, data_type: data_type.unwrap_or(SqlType::Unknown) });
        }
        return Ok(found);
    }
    let outline = Outline::parse(sql).ok();
    let items = outline.as_ref().and_then(|outline| outline.select()).map(|select| select.items.as_slice());
    match items {
        // A copy of tables that declare nothing.
        Some([only]) if only.expression.of(sql).ends_with('*') => {
            Ok(vec![SinkColumn { name: "_raw".to_owned(), data_type: SqlType::String }])
        }
        items => {
            let span = items.and_then(|items| items.first()).map_or(Span::new(0, 0), |item| item.span);
            let message = format!("model '{}': the columns of the result cannot be told from the SQL", model.name);
            Err(refuse(
                span,
                message,
                "Name every column of the outermost SELECT with AS, and declare the columns of what it reads",
            ))
        }
    }
}

/// The query with table names in place of the calls, masked, without what stands behind its last word.
fn select(context: &mut Context<'_>, model: &Model, sql: &str, sink: &[SinkColumn]) -> Result<String, Refusal> {
    let unread = |error: crate::sql::SqlError| Box::new(super::resolve::sql_finding(model, &error));
    let outline = Outline::parse(sql).map_err(unread)?;
    let tokens = outline.tokens();
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return Ok(String::new()) };
    let mut text = String::with_capacity(sql.len());
    // A comment in front of the query is kept, as everything inside it.
    let start = sql.len() - sql.trim_start().len();
    let mut end = start.min(first.span.start);
    for token in tokens {
        let TokenKind::Call(kind) = token.kind else { continue };
        let call = crate::sql::lex::call_of(sql, token.span, kind);
        text.push_str(&sql[end..token.span.start]);
        text.push_str(&quoted(&call.name));
        end = token.span.end;
    }
    text.push_str(&sql[end..last.span.end]);
    masks::apply(context, model, text, sink)
}

/// `CREATE FUNCTION` for the declared functions with a class that the SQL calls.
fn functions(context: &Context<'_>, sql: &str) -> Vec<String> {
    let Ok(outline) = Outline::parse(sql) else { return Vec::new() };
    let tokens = outline.tokens();
    let called = |name: &str| {
        tokens.windows(2).any(|pair| {
            let word = pair[0].span.of(sql).trim_matches('`');
            word.eq_ignore_ascii_case(name) && pair[1].is_symbol(sql, "(")
        })
    };
    let declared = context.project.udfs.iter().filter(|udf| called(&udf.name));
    declared
        .filter_map(|udf| {
            let class = udf.class.as_deref()?.replace('\'', "''");
            let language = udf.language.as_deref().unwrap_or("java").to_ascii_uppercase();
            let name = quoted(&udf.name);
            Some(format!("CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS {name} AS '{class}' LANGUAGE {language};"))
        })
        .collect()
}

/// A value of a map that the author wrote.
fn number(map: &serde_json::Map<String, Value>, key: &str) -> Option<String> {
    match map.get(key)? {
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The declaration that a dependency names, for messages.
fn described(dependency: &Reference) -> String {
    match dependency {
        Reference::Source(name) => format!("source '{name}'"),
        Reference::Model(name) => format!("model '{name}'"),
    }
}

#[cfg(test)]
mod job_tests;
