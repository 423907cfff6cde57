//! Pass 5: tests.

use serde_json::Value;

use crate::assertions::{executes, type_word};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::model::{Test, TestType};

use super::context::Ctx;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    for test in &ctx.project.tests {
        target(ctx, test, findings);
        kind(ctx, test, findings);
        columns(ctx, test, findings);
        dead_letters(ctx, test, findings);
    }
}

fn target(ctx: &Ctx, test: &Test, findings: &mut Diagnostics) {
    if ctx.models.contains_key(test.model.as_str()) || ctx.sources.contains_key(test.model.as_str()) {
        return;
    }
    let names = ctx.models.keys().chain(ctx.sources.keys()).copied();
    findings.push(
        test.origin
            .mark(
                "model",
                Diagnostic::new(
                    Code::E107TestModelNotFound,
                    format!("Test '{}' names '{}', which is neither a model nor a source", test.name, test.model),
                ),
            )
            .suggest_opt(crate::codes::suggest::hint(&test.model, "model", names)),
    );
}

fn kind(ctx: &Ctx, test: &Test, findings: &mut Diagnostics) {
    if test.test_type == TestType::Continuous && ctx.project.runtime.flink.is_none() {
        let message = format!("Continuous test '{}' needs Flink, and the runtime has none", test.name);
        findings.push(
            test.origin
                .mark("type", Diagnostic::new(Code::E207ContinuousTestWithoutFlink, message))
                .suggest("Add runtime.flink, or make the test type: sample"),
        );
    }
    if test.sample_size.is_some() && test.test_type != TestType::Sample {
        let message = format!("Test '{}': sample_size has no effect on this type of test", test.name);
        findings.push(
            test.origin
                .mark("sample_size", Diagnostic::new(Code::W211SampleSizeIgnored, message))
                .suggest("Remove sample_size, or make the test type: sample"),
        );
    }
    for (index, assertion) in test.assertions.iter().enumerate() {
        let Some(name) = assertion.as_object().and_then(|map| map.keys().next()) else { continue };
        if executes(test.test_type, name) {
            continue;
        }
        let message = format!("Test '{}': {name} is not executed by a {} test", test.name, type_word(test.test_type));
        findings.push(
            test.origin.mark(&format!("assertions.{index}"), Diagnostic::new(Code::W228AssertionNotExecuted, message)),
        );
    }
}

fn dead_letters(ctx: &Ctx, test: &Test, findings: &mut Diagnostics) {
    let actions = test.on_failure.iter().flat_map(|on_failure| &on_failure.actions);
    for (index, action) in actions.enumerate() {
        let Some(dead_letters) = action.get("dlq") else { continue };
        let named = dead_letters.get("topic").and_then(Value::as_str).map(str::to_owned);
        let topic = named.unwrap_or_else(|| format!("{}__dlq", test.model));
        let message = format!("Test '{}': nothing writes to its dead-letter topic '{topic}'", test.name);
        findings.push(
            test.origin
                .mark(
                    &format!("on_failure.actions.{index}.dlq"),
                    Diagnostic::new(Code::W237DeadLettersNotWritten, message),
                )
                .suggest("Take the action out, or let an application of yours write there"),
        );
        let model = dead_letters.get("model").and_then(Value::as_str);
        let Some(model) = model.filter(|model| !ctx.models.contains_key(model)) else { continue };
        findings.push(
            test.origin
                .mark(
                    &format!("on_failure.actions.{index}.dlq.model"),
                    Diagnostic::new(
                        Code::E112DlqModelNotFound,
                        format!("Test '{}': dead-letter model '{model}' not found", test.name),
                    ),
                )
                .suggest_opt(ctx.model_hint(model)),
        );
    }
}

/// W102, W103: an assertion over a column that is nowhere looks at nothing.
fn columns(ctx: &Ctx, test: &Test, findings: &mut Diagnostics) {
    for (index, assertion) in test.assertions.iter().enumerate() {
        let Some((kind, body)) = assertion.as_object().and_then(|map| map.iter().next()) else { continue };
        for (field, column) in named(kind, body) {
            let table = match field.as_str() {
                "ref_key" => body.get("ref_model").and_then(Value::as_str).unwrap_or_default(),
                _ => test.model.as_str(),
            };
            let Some(known) = known(ctx, table).filter(|known| !known.contains(&column)) else { continue };
            let (code, what) = match ctx.models.contains_key(table) {
                true => (Code::W103MissingRefColumn, "model"),
                false => (Code::W102MissingSourceColumn, "source"),
            };
            let message =
                format!("Test '{}': {kind} names column '{column}', which {what} '{table}' does not have", test.name);
            findings.push(
                test.origin
                    .mark(&format!("assertions.{index}.{kind}.{field}"), Diagnostic::new(code, message))
                    .suggest_opt(crate::codes::suggest::hint(column, "column", known)),
            );
        }
    }
}

/// The columns that an assertion names, and where in its body. The condition of `custom_sql` is Flink's to judge.
fn named<'a>(kind: &str, body: &'a Value) -> Vec<(String, &'a str)> {
    let one = |field: &str| body.get(field).and_then(Value::as_str).map(|column| (field.to_owned(), column));
    match kind {
        "not_null" => {
            let columns = body.get("columns").and_then(Value::as_array).into_iter().flatten().enumerate();
            columns.filter_map(|(at, column)| Some((format!("columns.{at}"), column.as_str()?))).collect()
        }
        "accepted_types" => {
            let types = body.get("types").and_then(Value::as_object).into_iter().flatten();
            types.map(|(column, _)| (format!("types.{column}"), column.as_str())).collect()
        }
        "unique_key" => one("key").into_iter().collect(),
        "custom_sql" => one("detail_column").into_iter().collect(),
        "foreign_key" => one("column").into_iter().chain(one("ref_key")).collect(),
        _ => one("column").into_iter().collect(),
    }
}

/// All columns of a source or model; none when there may be others.
fn known<'a>(ctx: &Ctx<'a>, table: &str) -> Option<Vec<&'a str>> {
    if let Some(facts) = ctx.facts.iter().find(|facts| facts.model.name == table)
        && facts.has_sql()
    {
        return facts.analysis()?.ok()?.names();
    }
    let columns = ctx.columns.table(table)?.columns.as_ref()?.iter().map(|column| &*column.name);
    let promised = ctx.models.get(table).and_then(|model| model.contract.as_ref());
    let promised = promised.into_iter().flat_map(|contract| &contract.columns).map(|column| column.name.as_str());
    Some(columns.chain(promised).collect())
}
