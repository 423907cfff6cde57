//! Pass 4, what stands in a query and is surely wrong: tables that the project does not name, and what Flink refuses.

use crate::codes::{Code, Diagnostic, Diagnostics, suggest};
use crate::compiler::Process;
use crate::sql::CallKind;
use crate::sql::analysis::{Folding, Refusal, Unnamed};

use super::context::{Ctx, quoted};
use super::facts::Facts;

pub(super) fn check(ctx: &Ctx, facts: &Facts, findings: &mut Diagnostics) {
    let Some(Ok(analysis)) = facts.analysis() else { return };
    // The runner's own subset says it of its models.
    if facts.resolved.process == Some(Process::KafkaStreams) {
        return;
    }
    for table in &analysis.unnamed {
        unnamed(ctx, facts, table, findings);
    }
    if facts.resolved.process != Some(Process::Flink) {
        return;
    }
    for (refusal, span) in &analysis.refusals {
        let (reason, hint) = told(refusal);
        let message = format!("Model '{}': Flink refuses this: {reason}", facts.model.name);
        findings.push(facts.mark_sql(*span, Diagnostic::new(Code::W235SqlRefused, message)).suggest_opt(hint));
    }
}

fn unnamed(ctx: &Ctx, facts: &Facts, table: &Unnamed, findings: &mut Diagnostics) {
    let message = format!(
        "Model '{}' reads table '{}', which neither source() nor ref() names: it is no dependency of the model, and Flink \
         finds only tables of its own catalogs",
        facts.model.name, table.name
    );
    let exact = match table.bare {
        true if ctx.sources.contains_key(table.name.as_str()) => Some(call(CallKind::Source, &table.name)),
        true if ctx.models.contains_key(table.name.as_str()) => Some(call(CallKind::Ref, &table.name)),
        true | false => None,
    };
    let similar = || {
        let sources = ctx.sources.keys().map(|name| (*name, CallKind::Source));
        let models = ctx.models.keys().filter(|name| **name != facts.model.name);
        let known: Vec<(&str, CallKind)> = sources.chain(models.map(|name| (*name, CallKind::Ref))).collect();
        let found =
            *suggest::closest(&table.name, known.iter().map(|(name, _)| *name)).first().filter(|_| table.bare)?;
        let (name, kind) = known.iter().find(|(name, _)| *name == found)?;
        Some(call(*kind, name))
    };
    let hint = match (exact, similar()) {
        (Some(call), _) => format!("Write {call}"),
        (None, Some(call)) => format!("Did you mean {call}?"),
        (None, None) => {
            "Declare its topic as a source and write {{ source(\"…\") }}; a table of a catalog that the cluster \
                         has may stay as it is"
                .to_owned()
        }
    };
    findings.push(facts.mark_sql(table.span, Diagnostic::new(Code::W234TableNotDeclared, message)).suggest(hint));
}

fn call(kind: CallKind, name: &str) -> String {
    format!("{{{{ {}(\"{name}\") }}}}", kind.as_str())
}

/// Why, and what to do.
fn told(refusal: &Refusal) -> (String, Option<String>) {
    let hint = |text: &str| Some(text.to_owned());
    match refusal {
        Refusal::Misplaced { what: Folding::Aggregate, clause: "WHERE" } => (
            "an aggregate cannot stand in WHERE, which is read before rows are folded".to_owned(),
            hint("Write the condition in HAVING, behind GROUP BY"),
        ),
        Refusal::Misplaced { what: Folding::Aggregate, clause } => (
            format!("an aggregate cannot stand in {clause}, which is read before rows are folded"),
            hint("Aggregate in a query of its own, in FROM or WITH"),
        ),
        Refusal::Misplaced { what: Folding::Over, clause } => (
            format!("a call with OVER cannot stand in {clause}"),
            hint("Select it in a query of its own, in FROM or WITH, and use its column outside"),
        ),
        Refusal::NestedAggregate => (
            "an aggregate stands in another one".to_owned(),
            hint("Aggregate in a query of its own, in FROM or WITH, and fold its column outside"),
        ),
        Refusal::NotGrouped { column, keys: true } => (
            format!("'{column}' is no key of GROUP BY and stands outside an aggregate"),
            hint("Add it to GROUP BY, or take one of its values: MIN, MAX, FIRST_VALUE, LAST_VALUE"),
        ),
        Refusal::NotGrouped { column, keys: false } => (
            format!("'{column}' stands beside an aggregate, and there is no GROUP BY"),
            Some(format!("Write GROUP BY {column}, or take the aggregate with OVER")),
        ),
        Refusal::GroupByAlias { alias } => (
            format!("GROUP BY uses '{alias}', which is an alias of the SELECT list"),
            hint("Repeat the expression: Flink knows no alias in GROUP BY"),
        ),
        Refusal::Widths { what: "VALUES", first, other } => {
            (format!("the first row of VALUES has {}, this one {other}", columns(*first)), None)
        }
        Refusal::Widths { what, first, other } => (
            format!("{what} has {} on its left and {other} on its right", columns(*first)),
            hint("Select the same columns on both sides; a missing one may be CAST(NULL AS …)"),
        ),
        Refusal::UnlikeTypes { what, place, first, other } => (
            format!("column {place} of {what} is {first} on its left and {other} on its right"),
            hint("CAST one of them"),
        ),
        Refusal::NoValue { columns: count } => {
            (format!("a query that stands for one value has {}", columns(*count)), hint("Select one column in it"))
        }
        Refusal::UnlikeSearch { wanted, columns: count } => (
            format!(
                "{} searched for in a query that has {}",
                if *wanted == 1 { "1 value is".to_owned() } else { format!("{wanted} values are") },
                columns(*count)
            ),
            hint("Select as many columns in it"),
        ),
        Refusal::Ambiguous { column, tables } => {
            let written: Vec<String> = tables.iter().map(|table| format!("{table}.{column}")).collect();
            (
                format!("'{column}' is a column of each of {}", quoted(tables.iter().map(String::as_str))),
                Some(format!("Write {}", written.join(" or "))),
            )
        }
        Refusal::NoNumber { function, given } => {
            (format!("{function} takes a number, and this is {given}"), hint("CAST it, or TRY_CAST it to get NULL"))
        }
        Refusal::NoCondition { clause, given } => {
            (format!("{clause} takes a condition, and this is {given}"), hint("Compare it with something"))
        }
        Refusal::ArgumentCount { function, given, least, most } => {
            let takes = match most - least {
                0 => least.to_string(),
                1 => format!("{least} or {most}"),
                _ => format!("{least} to {most}"),
            };
            let noun = if *most == 1 { "argument" } else { "arguments" };
            (format!("{function} takes {takes} {noun}, and here it has {given}"), None)
        }
    }
}

fn columns(count: usize) -> String {
    if count == 1 { "1 column".to_owned() } else { format!("{count} columns") }
}
