//! Pass 8: type texts of columns, columns that the SQL names and that are nowhere, declared types that the SQL does not give.

use crate::codes::{Code, Diagnostic, Diagnostics, suggest};
use crate::project::origin::Origin;
use crate::sql::analysis::{Input, SeenTable};
use crate::sql::types::{SqlType, parse_type};

use super::context::Ctx;
use super::contracts::family;
use super::facts::Facts;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let project = ctx.project;
    for source in &project.sources {
        let owner = format!("Source '{}'", source.name);
        let columns = source.columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref()));
        types(&owner, &source.origin, "columns", columns, findings);
    }
    for model in &project.models {
        let owner = format!("Model '{}'", model.name);
        let columns = model.columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref()));
        types(&owner, &model.origin, "columns", columns, findings);
        let promised = model.contract.iter().flat_map(|contract| &contract.columns);
        let promised = promised.map(|column| (column.name.as_str(), column.data_type.as_deref()));
        types(&owner, &model.origin, "contract.columns", promised, findings);
    }
    for exposure in &project.exposures {
        let owner = format!("Exposure '{}'", exposure.name);
        let columns = exposure.columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref()));
        types(&owner, &exposure.origin, "columns", columns, findings);
    }
    for facts in &ctx.facts {
        missing(facts, findings);
        declared(facts, findings);
    }
}

/// W102, W103.
fn missing(facts: &Facts, findings: &mut Diagnostics) {
    let Some(Ok(analysis)) = facts.analysis() else { return };
    let inputs = facts.inputs();
    for missing in &analysis.missing {
        let input = missing.input.and_then(|index| inputs.get(index));
        let of_models = match input {
            Some(input) => input.model,
            None => inputs.iter().all(|input| input.model),
        };
        let code = if of_models { Code::W103MissingRefColumn } else { Code::W102MissingSourceColumn };
        let whose = match input {
            Some(input) if input.model => format!("model '{}' does not have", input.name),
            Some(input) => format!("source '{}' does not have", input.name),
            None => "no table of the query has".to_owned(),
        };
        let (model, name) = (&facts.model.name, &missing.name);
        let known = missing.known.iter().map(|name| &**name);
        let (message, hint) = match &missing.tables {
            None => {
                (format!("Model '{model}' uses column '{name}', which {whose}"), suggest::hint(name, "column", known))
            }
            Some(tables) => (
                format!("Model '{model}' uses '{name}' as a table, and its query calls none so here"),
                table_hint(name, tables, inputs, known),
            ),
        };
        let cased = missing.known.iter().any(|known| known.eq_ignore_ascii_case(name));
        let hint = hint.map(|hint| match cased {
            true => format!("{hint} Flink tells upper and lower case apart"),
            false => hint,
        });
        findings.push(facts.mark_sql(missing.span, Diagnostic::new(code, message)).suggest_opt(hint));
    }
}

/// What the tables are called, or the column of rows that may be meant.
fn table_hint<'a>(
    name: &str,
    tables: &'a [SeenTable],
    inputs: &[Input],
    columns: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let of_input =
        |table: &&SeenTable| table.input.and_then(|at| inputs.get(at)).is_some_and(|input| input.name == name);
    if let Some(table) = tables.iter().find(of_input) {
        return Some(format!("'{name}' is called '{}' here", table.name));
    }
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    suggest::did_you_mean(name, names.iter().copied().chain(columns)).or_else(|| suggest::hint(name, "table", names))
}

/// W301: a declared type of another family than the SQL gives.
fn declared(facts: &Facts, findings: &mut Diagnostics) {
    let Some(Ok(analysis)) = facts.analysis() else { return };
    for (index, column) in facts.model.columns.iter().enumerate() {
        let given = analysis.columns.iter().find(|given| given.name.as_deref() == Some(column.name.as_str()));
        let (Some(given), Some(wanted)) = (given, column.data_type.as_deref()) else { continue };
        if given.data_type == SqlType::Unknown {
            continue;
        }
        let text = given.data_type.to_string();
        if let (Some(had), Some(want)) = (family(&text), family(wanted))
            && had != want
        {
            let message = format!(
                "Model '{}' declares column '{}' as {wanted}, and its SQL gives {text}",
                facts.model.name, column.name
            );
            let finding = Diagnostic::new(Code::W301ColumnTypeMismatch, message);
            findings.push(
                facts
                    .model
                    .origin
                    .mark(&format!("columns.{index}.type"), finding)
                    .suggest("CAST the column, or declare its type"),
            );
        }
    }
}

fn types<'a>(
    owner: &str,
    origin: &Origin,
    field: &str,
    columns: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    findings: &mut Diagnostics,
) {
    for (index, (name, data_type)) in columns.enumerate() {
        let Some(data_type) = data_type else { continue };
        if let Err(error) = parse_type(data_type) {
            let message = format!("{owner}: '{data_type}' of column '{name}' is not a type that Flink knows");
            let place = format!("{field}.{index}.type");
            let diagnostic = Diagnostic::new(Code::W302UnknownTypeText, message).suggest(error.to_string());
            findings.push(origin.mark(&place, diagnostic));
        }
    }
}
