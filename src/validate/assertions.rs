//! Pass 5: tests.

use crate::assertions::{executes, type_word};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::model::{Test, TestType};

use super::context::Ctx;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    for test in &ctx.project.tests {
        target(ctx, test, findings);
        kind(ctx, test, findings);
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
        let model = action.get("dlq").and_then(|dlq| dlq.get("model")).and_then(|model| model.as_str());
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
