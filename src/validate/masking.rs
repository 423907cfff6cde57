//! Rule E619: a sensitive column is masked wherever it is passed on. For a source's column that is each model that reads the
//! source and outputs the column; for a column that a model classifies, that model.

use crate::codes::{Code, Diagnostics};
use crate::project::model::{Model, Reference, Source};

use super::context::Ctx;
use super::facts::Facts;
use super::rules::broken;

const RULE: &str = "security.sensitive_columns_require_masking";

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    for facts in &ctx.facts {
        for dependency in facts.dependencies() {
            if let Reference::Source(name) = dependency
                && let Some(source) = ctx.sources.get(name.as_str())
            {
                passed_on(source, facts, findings);
            }
        }
        classified(facts.model, findings);
    }
}

fn passed_on(source: &Source, facts: &Facts, findings: &mut Diagnostics) {
    let sensitive =
        source.columns.iter().filter(|column| column.classification.is_some_and(|level| level.is_sensitive()));
    for column in sensitive {
        if masks(facts.model, &column.name) || !facts.passes_on(&source.name, &column.name) {
            continue;
        }
        let message = format!(
            "Model '{}' passes on the sensitive column '{}' of source '{}' unmasked",
            facts.model.name, column.name, source.name
        );
        let field = if facts.model.security.is_some() { "security" } else { "name" };
        findings.push(broken(&facts.model.origin, field, Code::E619RuleSensitiveRequiresMasking, RULE, message));
    }
}

fn classified(model: &Model, findings: &mut Diagnostics) {
    let Some(security) = &model.security else { return };
    for (column, level) in &security.classification {
        if level.is_sensitive() && !masks(model, column) {
            let message =
                format!("Model '{}' classifies column '{column}' as sensitive and does not mask it", model.name);
            findings.push(broken(
                &model.origin,
                "security.classification",
                Code::E619RuleSensitiveRequiresMasking,
                RULE,
                message,
            ));
        }
    }
}

fn masks(model: &Model, column: &str) -> bool {
    model.security.iter().any(|security| security.masks().any(|(_, masked, _)| masked == column))
}
