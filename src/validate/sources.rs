//! Pass 2: sources, and the order in which schemas can be registered.

use std::collections::BTreeMap;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::{Process, cycle};
use crate::project::model::{Reference, SchemaBlock, SchemaReference, Source};
use crate::project::origin::Origin;
use crate::sql::types::parse_type;

use super::context::Ctx;
use super::facts::Facts;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    for source in &ctx.project.sources {
        if source.topic.trim().is_empty() {
            let message = format!("Source '{}' has an empty topic", source.name);
            findings.push(
                source
                    .origin
                    .mark("topic", Diagnostic::new(Code::E208MissingConfig, message))
                    .suggest("Write the name of the Kafka topic"),
            );
        }
        if let Some(event_time) = &source.event_time
            && !source.columns.is_empty()
            && !source.columns.iter().any(|column| column.name == event_time.column)
        {
            let message =
                format!("Source '{}' has no column '{}', which is its event time", source.name, event_time.column);
            let names = source.columns.iter().map(|column| column.name.as_str());
            findings.push(
                source
                    .origin
                    .mark("event_time.column", Diagnostic::new(Code::E120EventTimeColumnNotFound, message))
                    .suggest_opt(crate::codes::suggest::hint(&event_time.column, "column", names)),
            );
        }
    }
    for source in &ctx.project.sources {
        numeric_event_time(ctx, source, findings);
    }
    reference_cycles(ctx, findings);
}

/// A number is no time attribute of Flink: a job that reads it so would fail at its first record.
fn numeric_event_time(ctx: &Ctx, source: &Source, findings: &mut Diagnostics) {
    let Some(event_time) = &source.event_time else { return };
    let Some(index) = source.columns.iter().position(|column| column.name == event_time.column) else { return };
    let column = &source.columns[index];
    let in_the_record = column.expression.is_none() && column.metadata.is_none() && !column.proctime;
    let data_type = column.data_type.as_deref().filter(|_| in_the_record);
    let Some(data_type) = data_type.filter(|text| parse_type(text).is_ok_and(|of| of.is_number())) else { return };
    let reads = |facts: &&Facts| {
        let named = |dependency: &Reference| matches!(dependency, Reference::Source(name) if *name == source.name);
        facts.resolved.process == Some(Process::Flink) && facts.dependencies().iter().any(named)
    };
    let Some(reader) = ctx.facts.iter().find(reads) else { return };
    let message = format!(
        "Source '{}': its event time '{}' is {data_type}, a number, and the Flink job of model '{}' reads it",
        source.name, column.name, reader.model.name
    );
    let hint = format!(
        "Add a column with `expression: TO_TIMESTAMP_LTZ({}, 3)` (of milliseconds), and name it as the event time",
        column.name
    );
    let place = format!("columns.{index}.type");
    findings
        .push(source.origin.mark(&place, Diagnostic::new(Code::E120EventTimeColumnNotFound, message)).suggest(hint));
}

struct Subject<'a> {
    references: &'a [SchemaReference],
    origin: &'a Origin,
}

/// A subject is registered after those it refers to, so declared subjects must form no circle.
fn reference_cycles(ctx: &Ctx, findings: &mut Diagnostics) {
    let mut subjects: BTreeMap<String, Subject> = BTreeMap::new();
    let declare = |schema: &'_ Option<SchemaBlock>, topic: &str| -> Option<String> {
        let schema = schema.as_ref()?;
        Some(schema.subject.clone().unwrap_or_else(|| format!("{topic}-value")))
    };
    for source in &ctx.project.sources {
        if let (Some(subject), Some(schema)) = (declare(&source.schema, &source.topic), &source.schema) {
            subjects.entry(subject).or_insert(Subject { references: &schema.references, origin: &source.origin });
        }
    }
    for model in &ctx.project.models {
        if let (Some(subject), Some(schema)) = (declare(&model.schema, model.topic_name()), &model.schema) {
            subjects.entry(subject).or_insert(Subject { references: &schema.references, origin: &model.origin });
        }
    }
    let edges: BTreeMap<&str, Vec<&str>> = subjects
        .iter()
        .map(|(name, subject)| {
            let targets = subject.references.iter().map(|reference| reference.subject.as_str());
            (name.as_str(), targets.filter(|target| subjects.contains_key(*target)).collect())
        })
        .collect();
    for path in cycle::find(&edges) {
        let Some(subject) = subjects.get(path[0]) else { continue };
        let next = path.get(1).copied().unwrap_or(path[0]);
        let index = subject.references.iter().position(|reference| reference.subject == next).unwrap_or_default();
        let message = format!("Schema references form a cycle: {}", path.join(" -> "));
        findings.push(
            subject
                .origin
                .mark(
                    &format!("schema.references.{index}.subject"),
                    Diagnostic::new(Code::E121SchemaReferenceCycle, message),
                )
                .suggest("Move the shared part into a subject that refers to neither"),
        );
    }
}
