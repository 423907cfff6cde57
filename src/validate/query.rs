//! Pass 4, the meaning of a model's SQL: what its analysis found of state, time, updates and types.

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Process;
use crate::compiler::columns::output_type;
use crate::project::model::ChangelogMode;
use crate::sql::Span;
use crate::sql::analysis::{Analysis, Oddity, OutputColumn, Refusal};
use crate::sql::types::SqlType;

use super::context::quoted;
use super::facts::Facts;

pub(super) fn check(facts: &Facts, findings: &mut Diagnostics) {
    if facts.resolved.process != Some(Process::Flink) {
        return;
    }
    match facts.analysis() {
        None => {}
        Some(Err(error)) => {
            let quote = facts
                .outline()
                .is_some_and(|outline| outline.tokens().iter().any(|token| token.is_symbol(outline.text(), "\"")));
            // It has its own finding.
            if !quote {
                let message = format!("Model '{}': the SQL is not understood here: {error}", facts.model.name);
                findings.push(
                    facts
                        .mark_sql(error.span, Diagnostic::new(Code::W201SqlParseWarning, message))
                        .suggest("Flink decides; columns, lineage and state of this model are not checked"),
                );
            }
        }
        Some(Ok(analysis)) => {
            oddities(facts, analysis, findings);
            updates(facts, analysis, findings);
            state(facts, analysis, findings);
            untyped(facts, analysis, findings);
        }
    }
}

fn oddities(facts: &Facts, analysis: &Analysis, findings: &mut Diagnostics) {
    let model = &facts.model.name;
    for (oddity, span) in &analysis.oddities {
        let (code, message, hint) = match oddity {
            Oddity::WindowWithoutGroupBy => (
                Code::W214WindowNoGroupBy,
                format!("Model '{model}' selects a window's bound beside an aggregate, without GROUP BY"),
                "Group by window_start and window_end",
            ),
            Oddity::GroupByWithoutWindow => (
                Code::W215WindowGroupByMissingTvf,
                format!("Model '{model}' selects a window's bound, and its GROUP BY holds no window"),
                "Add window_start and window_end to GROUP BY",
            ),
            Oddity::HavingAlias(names) => (
                Code::W216HavingSelectAlias,
                format!(
                    "Model '{model}': HAVING uses {}, which is an alias of the SELECT list",
                    quoted(names.iter().map(String::as_str))
                ),
                "Repeat the expression: Flink knows no alias in HAVING",
            ),
            Oddity::NoTimeAttribute { column, user } => (
                Code::W232NoTimeAttribute,
                format!("Model '{model}': {user} needs a time attribute, and '{column}' is none"),
                "Declare event_time of the source, or pass its column on unchanged",
            ),
        };
        findings.push(facts.mark_sql(*span, Diagnostic::new(code, message)).suggest(hint));
    }
}

fn updates(facts: &Facts, analysis: &Analysis, findings: &mut Diagnostics) {
    let mode = facts.model.flink.as_ref().and_then(|flink| flink.changelog_mode);
    let (Some(construct), false) = (&analysis.updating, mode == Some(ChangelogMode::Upsert)) else { return };
    let message = format!(
        "Model '{}' updates rows that it has given ({}), and its topic takes appends only",
        facts.model.name, construct.what
    );
    findings.push(
        facts
            .mark_sql(construct.span, Diagnostic::new(Code::W230UpdatingResult, message))
            .suggest("Write flink.changelog_mode: upsert with a primary_key, or aggregate over windows"),
    );
}

fn state(facts: &Facts, analysis: &Analysis, findings: &mut Diagnostics) {
    let limited = facts.model.flink.as_ref().is_some_and(|flink| flink.state_ttl_ms.is_some());
    let (Some(construct), false) = (&analysis.unbounded, limited) else { return };
    let message = format!("Model '{}' keeps state for ever: {}", facts.model.name, construct.what);
    findings.push(
        facts
            .mark_sql(construct.span, Diagnostic::new(Code::W101StateTtlRecommended, message))
            .suggest("Set flink.state_ttl_ms"),
    );
}

/// Columns whose type nobody says.
fn untyped(facts: &Facts, analysis: &Analysis, findings: &mut Diagnostics) {
    // Of tables that declare nothing no type can be told; that is a finding of its own.
    if facts.inputs().iter().any(|input| input.columns.is_none()) || !analysis.unnamed.is_empty() {
        return;
    }
    // Of a column that is nowhere, and of what Flink refuses, that is what there is to say.
    let missing = |column: &OutputColumn| {
        analysis.missing.iter().any(|missing| column.span.covers(missing.span))
            || analysis.refusals.iter().any(|(refusal, span)| {
                column.span.covers(*span) || matches!(refusal, Refusal::UnlikeTypes { .. } | Refusal::Widths { .. })
            })
    };
    let unknown = analysis.columns.iter().filter(|column| output_type(facts.model, column) == SqlType::Unknown);
    let unknown = unknown.filter(|column| !missing(column));
    let columns: Vec<(&str, Span)> =
        unknown.filter_map(|column| Some((column.name.as_deref()?, column.span))).collect();
    let Some((_, span)) = columns.first() else { return };
    let names = quoted(columns.iter().map(|(name, _)| *name));
    let message = format!("Model '{}': the type of {names} cannot be told and is written as STRING", facts.model.name);
    findings.push(
        facts
            .mark_sql(*span, Diagnostic::new(Code::W201SqlParseWarning, message))
            .suggest("Declare the type under columns, or CAST the expression"),
    );
}
