//! Models that run on Kafka Streams: their SQL is of the runner's subset, over one input of plain JSON whose columns and types
//! are declared. E218 names the place of what is not.

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Process;
use crate::project::model::{Column, Model, Reference, SchemaFormat};
use crate::sql::runner::{self, Query, Test};
use crate::sql::{Span, SqlError};

use super::context::Ctx;
use super::facts::Facts;

/// Types that the runner knows, spelled so.
const TYPES: [&str; 3] = ["STRING", "BOOLEAN", "BIGINT"];

/// Models between an input and the source that it comes from.
const MAX_HOPS: usize = 64;

pub(super) fn check(ctx: &Ctx, facts: &Facts, findings: &mut Diagnostics) {
    if facts.resolved.process != Some(Process::KafkaStreams) {
        return;
    }
    let Some(sql) = facts.resolved.sql.as_deref() else { return };
    let refuse = |span: Span, message: String| {
        facts
            .mark_sql(
                span,
                Diagnostic::new(Code::E218KafkaStreamsInvalid, format!("Model '{}': {message}", facts.model.name)),
            )
            .suggest("Select and rename columns, and filter with AND; other SQL needs `executor: flink`")
    };
    let query = match runner::parse(sql) {
        Ok(query) => query,
        Err(SqlError { offset, width, message, .. }) => {
            // What is no query at all has its finding.
            if facts.outline().is_some() {
                findings.push(refuse(Span::new(offset, offset + width), message));
            }
            return;
        }
    };
    let Some(input) = facts.dependencies().first() else { return };
    if !ctx.declares(input) {
        return;
    }
    let schema = match schema(ctx, input, MAX_HOPS) {
        Ok(schema) => schema,
        Err(why) => {
            let place = facts.resolved.calls.first().map_or(Span::new(0, 0), |call| call.name_span);
            findings.push(refuse(place, format!("'{}' {why}", input.name())));
            return;
        }
    };
    for (span, message) in mistakes(&query, &schema) {
        findings.push(refuse(span, message));
    }
    output(facts, &query, &schema, findings);
}

type Schema = Vec<(String, String)>;

/// Names and types of an input, or why they do not hold.
fn schema(ctx: &Ctx, input: &Reference, hops: usize) -> Result<Schema, &'static str> {
    match input {
        Reference::Source(name) => {
            let Some(source) = ctx.sources.get(name.as_str()) else { return Err("is not declared") };
            let plain = source.schema.as_ref().is_none_or(|schema| {
                schema.format == Some(SchemaFormat::Json)
                    && schema.registry.is_none()
                    && schema.subject.is_none()
                    && schema.definition.is_none()
            });
            let timestamps = source.schema.as_ref().is_some_and(|schema| {
                schema.format.is_none() && schema.timestamp_format.is_some() && schema.subject.is_none()
            });
            if source.cluster.is_some() {
                return Err("names a cluster, and the runner reads the project's own");
            }
            if !plain && !timestamps {
                return Err("is not raw JSON: its schema is of a registry or of another format");
            }
            columns(&source.columns)
        }
        Reference::Model(name) => {
            let Some(model) = ctx.models.get(name.as_str()) else { return Err("is not declared") };
            if let Some(found) = proven(ctx, model, hops)? {
                return Ok(found);
            }
            if !model.columns.is_empty() {
                return columns(&model.columns);
            }
            let promised = model.contract.iter().flat_map(|contract| &contract.columns);
            typed(promised.map(|column| (column.name.as_str(), column.data_type.as_deref())))
        }
    }
}

/// The output of a model that the runner executes too.
fn proven(ctx: &Ctx, model: &Model, hops: usize) -> Result<Option<Schema>, &'static str> {
    let facts = ctx.facts.iter().find(|facts| facts.model.name == model.name);
    let Some(facts) = facts.filter(|facts| facts.resolved.process == Some(Process::KafkaStreams)) else {
        return Ok(None);
    };
    let Some(hops) = hops.checked_sub(1) else { return Err("stands in a chain that is too long") };
    let query = facts.resolved.sql.as_deref().and_then(|sql| runner::parse(sql).ok());
    let (Some(query), Some(input)) = (query, facts.dependencies().first()) else {
        return Err("has SQL that the runner does not know");
    };
    let schema = schema(ctx, input, hops)?;
    let column = |column: &str| schema.iter().find(|(name, _)| name == column).map(|(_, data_type)| data_type.clone());
    let projected = query.projection.iter().map(|item| Some((item.output.clone(), column(&item.column)?)));
    projected.collect::<Option<Schema>>().map(Some).ok_or("uses a column that its input does not have")
}

fn columns(columns: &[Column]) -> Result<Schema, &'static str> {
    if columns.iter().any(|column| column.proctime || column.metadata.is_some() || column.expression.is_some()) {
        return Err("has columns that are not in the record");
    }
    typed(columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref())))
}

fn typed<'a>(columns: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Result<Schema, &'static str> {
    let mut schema = Schema::new();
    for (name, data_type) in columns {
        match data_type.filter(|data_type| TYPES.contains(data_type)) {
            Some(data_type) => schema.push((name.to_owned(), data_type.to_owned())),
            None => return Err("has a column whose type is not STRING, BOOLEAN or BIGINT"),
        }
    }
    if schema.is_empty() { Err("declares no columns") } else { Ok(schema) }
}

fn mistakes(query: &Query, schema: &Schema) -> Vec<(Span, String)> {
    let mut mistakes = Vec::new();
    let type_of =
        |column: &str| schema.iter().find(|(name, _)| name == column).map(|(_, data_type)| data_type.as_str());
    for item in &query.projection {
        if type_of(&item.column).is_none() {
            mistakes.push((item.span, format!("the input has no column '{}'", item.column)));
        }
    }
    for predicate in &query.predicates {
        let Some(data_type) = type_of(&predicate.column) else {
            mistakes.push((predicate.span, format!("the input has no column '{}'", predicate.column)));
            continue;
        };
        let Test::Compare(comparison, literal) = &predicate.test else { continue };
        if literal.type_name() != data_type {
            let message =
                format!("column '{}' is {data_type}, the literal is {}", predicate.column, literal.type_name());
            mistakes.push((predicate.span, message));
        } else if comparison.is_ordering() && data_type != "BIGINT" {
            mistakes
                .push((predicate.span, format!("column '{}' is {data_type}, which has no order", predicate.column)));
        }
    }
    mistakes
}

/// Declared columns are the projection, no more and no less.
fn output(facts: &Facts, query: &Query, schema: &Schema, findings: &mut Diagnostics) {
    let model = facts.model;
    let given: Vec<(&str, Option<&str>)> = query
        .projection
        .iter()
        .map(|item| {
            let data_type =
                schema.iter().find(|(name, _)| *name == item.column).map(|(_, data_type)| data_type.as_str());
            (item.output.as_str(), data_type)
        })
        .collect();
    let declared = model.columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref()));
    let promised = model.contract.iter().flat_map(|contract| &contract.columns);
    let promised = promised.map(|column| (column.name.as_str(), column.data_type.as_deref()));
    for (field, columns) in [("columns", declared.collect::<Vec<_>>()), ("contract.columns", promised.collect())] {
        if columns.is_empty() {
            continue;
        }
        let same = columns.len() == given.len()
            && columns.iter().all(|(name, data_type)| {
                given.iter().any(|(own, of)| own == name && (data_type.is_none() || of.is_none() || data_type == of))
            });
        if !same {
            let message = format!("Model '{}': {field} are not the columns that its SQL gives", model.name);
            let finding = Diagnostic::new(Code::E218KafkaStreamsInvalid, message)
                .suggest("Declare each output column with its type, or none");
            findings.push(model.origin.mark(field, finding));
        }
    }
}
