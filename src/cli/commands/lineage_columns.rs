//! `streamt lineage --columns`: the columns of one model, and the columns of its inputs that each is made of.

use serde_json::{Value, json};

use crate::cli::doc::Doc;
use crate::cli::outcome::{Failure, Outcome};
use crate::cli::project;
use crate::codes::{Code, Diagnostic, Location};
use crate::compiler::ResolvedModel;
use crate::compiler::columns::{Analysis, Columns, Dependency, Gap, Input, Reading};
use crate::project::Project;
use crate::project::model::{Model, Reference};

/// What is known of a model's columns.
struct Lineage {
    entries: Vec<Value>,
    indirect: Vec<Value>,
    gaps: Vec<&'static str>,
}

pub(super) fn outcome(project: &Project, models: &[ResolvedModel], name: &str, json: bool) -> Result<Outcome, Failure> {
    let declared = project.models.iter().find(|model| model.name == name);
    let resolved = models.iter().find(|model| model.name == name);
    let (Some(model), Some(resolved)) = (declared, resolved) else {
        let known = project.models.iter().map(|model| model.name.as_str());
        return Err(project::not_found(Code::E102ModelNotFound, "model", name, known));
    };
    let columns = Columns::of(project, models);
    let lineage = match columns.reading(name) {
        Some(reading) => of_sql(model, reading),
        None => passed_on(&columns, resolved),
    };
    let complete = lineage.gaps.is_empty();
    let data = json!({
        "model": name, "complete": complete, "column_lineage": lineage.entries, "indirect": lineage.indirect,
    });
    let text = match json {
        true => Doc::document(format!("{}\n", serde_json::to_string_pretty(&data).unwrap_or_default())),
        false => text(name, &lineage),
    };
    let warnings = lineage.gaps.iter().map(|reason| {
        Diagnostic::new(Code::W124ColumnLineageIncomplete, format!("Column lineage is incomplete: {reason}"))
            .at(Location::named(format!("models/{name}")))
    });
    Ok(Outcome::new(&data, text).warn(warnings))
}

fn of_sql(model: &Model, reading: &Reading) -> Lineage {
    let analysis = match &reading.analysis {
        Ok(analysis) => analysis,
        Err(_) => return Lineage { entries: Vec::new(), indirect: Vec::new(), gaps: vec![Gap::UnparsedSql.as_str()] },
    };
    let input = |index: usize| reading.inputs.get(index).map_or("", |input: &Input| input.name.as_str());
    let masked =
        |column: &str| model.security.iter().any(|security| security.masks().any(|(_, masked, _)| masked == column));
    let entries = analysis.columns.iter().enumerate().map(|(index, column)| {
        let name = column.name.as_deref().map_or_else(|| format!("EXPR${index}"), str::to_owned);
        let upstream = column.origins.as_ref().map(|origins| {
            let origin = |origin: &Dependency| {
                json!({
                    "source": input(origin.base.input), "column": &*origin.base.column, "kind": origin.kind.as_str(),
                })
            };
            origins.iter().map(origin).collect::<Vec<Value>>()
        });
        let mut entry = json!({ "column": name, "upstream": upstream });
        if masked(&name) {
            entry["masked"] = json!(true);
        }
        entry
    });
    let indirect = analysis
        .influences
        .iter()
        .map(|(base, reason)| json!({ "source": input(base.input), "column": &*base.column, "kind": reason.as_str() }));
    Lineage { entries: entries.collect(), indirect: indirect.collect(), gaps: gaps(analysis) }
}

fn gaps(analysis: &Analysis) -> Vec<&'static str> {
    if analysis.lineage_is_complete() {
        return Vec::new();
    }
    let mut gaps: Vec<&str> = analysis.gaps.iter().map(|gap| gap.as_str()).collect();
    if gaps.is_empty() {
        gaps.push(Gap::InputColumnsUnknown.as_str());
    }
    gaps
}

/// A model without SQL passes on what it reads.
fn passed_on(columns: &Columns, resolved: &ResolvedModel) -> Lineage {
    let mut lineage = Lineage { entries: Vec::new(), indirect: Vec::new(), gaps: Vec::new() };
    if resolved.sql.is_some() {
        lineage.gaps.push(Gap::UnparsedSql.as_str());
        return lineage;
    }
    for dependency in &resolved.dependencies {
        let (Reference::Source(name) | Reference::Model(name)) = dependency;
        match columns.table(name).and_then(|table| table.columns.as_ref()) {
            Some(known) => lineage.entries.extend(known.iter().map(|column| {
                let upstream = json!([{ "source": name, "column": &*column.name, "kind": "identity" }]);
                json!({ "column": &*column.name, "upstream": upstream })
            })),
            None => lineage.gaps = vec![Gap::InputColumnsUnknown.as_str()],
        }
    }
    lineage
}

fn text(model: &str, lineage: &Lineage) -> Doc {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let origin =
        |origin: &Value| format!("{}.{} ({})", word(&origin["source"]), word(&origin["column"]), word(&origin["kind"]));
    let mut doc = Doc::new();
    doc.heading(format!("Columns of {model}"));
    for entry in &lineage.entries {
        let upstream = match entry["upstream"].as_array() {
            None => "unknown".to_owned(),
            Some(origins) if origins.is_empty() => "no column".to_owned(),
            Some(origins) => origins.iter().map(origin).collect::<Vec<_>>().join(", "),
        };
        let masked = if entry.get("masked").is_some() { " [masked]" } else { "" };
        doc.line(format!("  {}{masked} <- {upstream}", word(&entry["column"])));
    }
    if !lineage.indirect.is_empty() {
        let all: Vec<String> = lineage.indirect.iter().map(origin).collect();
        doc.line(format!("  decided by {}", all.join(", ")));
    }
    doc
}
