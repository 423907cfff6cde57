//! `CREATE TABLE` of what a job reads and of what it writes.

use serde_json::Value;

use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::SchemaArtifact;
use crate::compiler::columns::{Strategy, Table, Watermark};
use crate::compiler::context::Context;
use crate::compiler::resolve::Output;
use crate::project::model::{ChangelogMode, FlinkCluster, Model, Reference, SchemaBlock, SchemaFormat};
use crate::sql::types::quoted;

use super::with::{Endpoint, Format, NoFormat, Options, Role, format, options};
use super::{Refusal, SinkColumn, Sources, described};

/// Where a dependency's records are and how they are written.
pub(super) struct Place<'a> {
    pub topic: &'a str,
    /// The brokers that serve an alias.
    pub servers: Option<&'a str>,
    pub block: Option<&'a SchemaBlock>,
    pub definition: Option<&'a Value>,
}

/// The place of a source or a model; none for what has no topic.
pub(super) fn place<'a>(
    context: &Context<'a>,
    schemas: &'a [SchemaArtifact],
    dependency: &Reference,
) -> Option<Place<'a>> {
    match dependency {
        Reference::Source(name) => {
            let source = context.names.source(name)?;
            let block = source.schema.as_ref();
            Some(Place {
                topic: &source.topic,
                servers: None,
                block,
                definition: definition(schemas, block, &source.topic),
            })
        }
        Reference::Model(name) => {
            let model = context.names.model(name)?;
            let output = context.resolved(name)?.output.as_ref()?;
            let gateway = context.project.runtime.gateway.as_ref();
            let servers = match output {
                Output::Kafka(_) => None,
                Output::Gateway(_) => gateway.and_then(|gateway| gateway.proxy_bootstrap.as_deref()),
            };
            let block = model.schema.as_ref();
            Some(Place { topic: output.name(), servers, block, definition: definition(schemas, block, output.name()) })
        }
    }
}

/// The compiled Avro definition of a subject.
pub(super) fn definition<'a>(
    schemas: &'a [SchemaArtifact],
    block: Option<&SchemaBlock>,
    topic: &str,
) -> Option<&'a Value> {
    let block = block?;
    if !matches!(block.format, Some(SchemaFormat::Avro) | None) {
        return None;
    }
    let default = format!("{topic}-value");
    let subject = block.subject.as_deref().unwrap_or(&default);
    schemas.iter().find(|schema| schema.subject == subject).map(|schema| &schema.schema)
}

fn refused(model: &Model, what: &str, why: NoFormat) -> Refusal {
    let code = match why {
        NoFormat::Protobuf | NoFormat::AvroWithoutRegistry => Code::E119CompileFailed,
        NoFormat::IamNeedsPlainConnector => Code::E501ParseError,
    };
    let message = format!("the Flink job of model '{}' cannot be written: {what} {}", model.name, why.why());
    Box::new(model.origin.mark("", Diagnostic::new(code, message)))
}

/// The table of a dependency.
pub(super) fn input(
    context: &Context<'_>,
    sources: &Sources<'_>,
    dependency: &Reference,
    cluster: Option<&FlinkCluster>,
    model: &Model,
) -> Result<String, Refusal> {
    let what = described(dependency);
    let Some(place) = place(context, sources.schemas, dependency) else {
        let message = format!("the Flink job of model '{}' cannot be written: {what} has no topic to read", model.name);
        return Err(Box::new(model.origin.mark("", Diagnostic::new(Code::E119CompileFailed, message))));
    };
    let runtime = &context.project.runtime;
    let endpoint = Endpoint {
        kafka: runtime.kafka.as_ref(),
        servers: place.servers,
        registry: runtime.schema_registry.as_ref(),
        cluster,
    };
    let unknown = Table::default();
    let table = sources.columns.table(dependency.name()).unwrap_or(&unknown);
    let format =
        format(place.block, endpoint.registry, place.definition, None).map_err(|why| refused(model, &what, why))?;
    let options = options(&endpoint, place.topic, Role::Input, table.key.is_some(), &format)
        .map_err(|why| refused(model, &what, why))?;
    Ok(create(dependency.name(), &lines(table), &options))
}

/// Column lines of a table that is read.
fn lines(table: &Table) -> Vec<String> {
    let Some(columns) = &table.columns else { return vec!["`_raw` STRING".to_owned()] };
    let mut lines: Vec<String> =
        columns.iter().map(|column| format!("{} {}", quoted(&column.name), column.ddl)).collect();
    lines.extend(table.watermark.as_ref().map(watermark));
    lines.extend(table.key.as_ref().map(|key| primary_key(key)));
    lines
}

fn primary_key(key: &[String]) -> String {
    let names: Vec<String> = key.iter().map(|name| quoted(name)).collect();
    format!("PRIMARY KEY ({}) NOT ENFORCED", names.join(", "))
}

fn watermark(watermark: &Watermark) -> String {
    let column = quoted(&watermark.column);
    match &watermark.strategy {
        Strategy::Bounded(milliseconds) => {
            format!("WATERMARK FOR {column} AS {column} - {}", interval(*milliseconds))
        }
        Strategy::Monotonous => format!("WATERMARK FOR {column} AS {column}"),
        Strategy::Custom(expression) => format!("WATERMARK FOR {column} AS {expression}"),
    }
}

/// Flink reads at most two digits in `SECOND`.
fn interval(milliseconds: u64) -> String {
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    if seconds < 100 {
        return match rest {
            0 => format!("INTERVAL '{seconds}' SECOND"),
            rest => format!("INTERVAL '{seconds}.{rest:03}' SECOND"),
        };
    }
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    format!("INTERVAL '{days} {hours:02}:{minutes:02}:{:02}.{rest:03}' DAY TO SECOND", seconds % 60)
}

/// The table that a model's INSERT fills.
pub(super) fn sink(
    context: &Context<'_>,
    sources: &Sources<'_>,
    model: &Model,
    name: &str,
    topic: &str,
    columns: &[SinkColumn],
    cluster: Option<&FlinkCluster>,
) -> Result<String, Refusal> {
    let runtime = &context.project.runtime;
    let block = model.schema.as_ref();
    let definition = definition(sources.schemas, block, topic);
    let subject = block.and_then(|block| block.subject.clone()).filter(|subject| *subject != format!("{topic}-value"));
    let what = format!("model '{}'", model.name);
    let endpoint =
        Endpoint { kafka: runtime.kafka.as_ref(), servers: None, registry: runtime.schema_registry.as_ref(), cluster };
    let format = format(block, endpoint.registry, definition, subject).map_err(|why| refused(model, &what, why))?;
    let required = match &format {
        Format::AvroConfluent { definition: Some(definition), .. } => required_fields(model, definition, columns)?,
        Format::AvroConfluent { definition: None, .. } | Format::Json { .. } => Vec::new(),
    };
    let upsert = model.flink.as_ref().and_then(|flink| flink.changelog_mode) == Some(ChangelogMode::Upsert);
    let options = options(&endpoint, topic, Role::Sink, upsert, &format).map_err(|why| refused(model, &what, why))?;
    let mut lines: Vec<String> = columns
        .iter()
        .map(|column| {
            let not_null = if required.contains(&column.name) { " NOT NULL" } else { "" };
            format!("{} {}{not_null}", quoted(&column.name), column.data_type)
        })
        .collect();
    if upsert && let Some(key) = &model.primary_key {
        lines.push(primary_key(key));
    }
    Ok(create(name, &lines, &options))
}

/// Fields that take no null. E119 when the record is not the table: Flink wants the same names in the same order.
fn required_fields(model: &Model, definition: &Value, columns: &[SinkColumn]) -> Result<Vec<String>, Refusal> {
    let fields = definition.get("fields").and_then(Value::as_array);
    let names: Option<Vec<&str>> =
        fields.map(|fields| fields.iter().filter_map(|field| field.get("name").and_then(Value::as_str)).collect());
    let wanted: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    if names.as_deref() != Some(wanted.as_slice()) {
        let message = format!(
            "the Avro schema of model '{}' has other fields than its SQL gives: {} instead of {}",
            model.name,
            names.map_or("no record".to_owned(), |names| names.join(", ")),
            wanted.join(", ")
        );
        let finding = Diagnostic::new(Code::E119CompileFailed, message)
            .suggest("Give schema and SELECT the same columns in the same order");
        return Err(Box::new(model.origin.mark("schema", finding)));
    }
    let nullable = |field: &Value| match field.get("type") {
        Some(Value::Array(union)) => union.iter().any(|part| part == "null"),
        Some(_) | None => false,
    };
    let required = fields.into_iter().flatten().filter(|field| !nullable(field));
    Ok(required.filter_map(|field| field.get("name")?.as_str().map(str::to_owned)).collect())
}

pub(super) fn create(name: &str, lines: &[String], options: &Options) -> String {
    let options: Vec<String> = options
        .iter()
        .map(|(key, value)| format!("    '{}' = '{}'", key.replace('\'', "''"), value.replace('\'', "''")))
        .collect();
    let lines: Vec<String> = lines.iter().map(|line| format!("    {line}")).collect();
    format!(
        "CREATE TABLE IF NOT EXISTS {} (\n{}\n) WITH (\n{}\n);",
        quoted(name),
        lines.join(",\n"),
        options.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_a_watermark_is_written_as_flink_reads_it() {
        for (milliseconds, text) in [
            (0, "INTERVAL '0' SECOND"),
            (2_000, "INTERVAL '2' SECOND"),
            (1_500, "INTERVAL '1.500' SECOND"),
            (99_999, "INTERVAL '99.999' SECOND"),
            (100_000, "INTERVAL '0 00:01:40.000' DAY TO SECOND"),
            (604_800_500, "INTERVAL '7 00:00:00.500' DAY TO SECOND"),
            (8_639_999_999, "INTERVAL '99 23:59:59.999' DAY TO SECOND"),
        ] {
            assert_eq!(interval(milliseconds), text);
        }
    }
}
