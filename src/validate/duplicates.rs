//! Pass 1: names that are taken twice.

use std::collections::HashMap;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::origin::Origin;

use super::context::Ctx;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let project = ctx.project;
    within("source", project.sources.iter().map(|d| (d.name.as_str(), &d.origin)), findings);
    within("model", project.models.iter().map(|d| (d.name.as_str(), &d.origin)), findings);
    within("test", project.tests.iter().map(|d| (d.name.as_str(), &d.origin)), findings);
    within("exposure", project.exposures.iter().map(|d| (d.name.as_str(), &d.origin)), findings);
    within("function", project.udfs.iter().map(|d| (d.name.as_str(), &d.origin)), findings);
    for model in &project.models {
        if let Some(source) = ctx.sources.get(model.name.as_str()) {
            let message = format!("Model '{}' has the name of a source{}", model.name, place(&source.origin));
            findings.push(
                model
                    .origin
                    .mark("name", Diagnostic::new(Code::E111NameCollision, message))
                    .suggest("Rename the model or the source"),
            );
        }
    }
}

fn within<'a>(kind: &str, declarations: impl Iterator<Item = (&'a str, &'a Origin)>, findings: &mut Diagnostics) {
    let mut first: HashMap<&str, &Origin> = HashMap::new();
    for (name, origin) in declarations {
        match first.get(name) {
            None => {
                first.insert(name, origin);
            }
            Some(earlier) => {
                let message = format!("Duplicate {kind} name '{name}': first declared{}", place(earlier));
                findings.push(
                    origin
                        .mark("name", Diagnostic::new(Code::E103DuplicateName, message))
                        .suggest("Rename one of the two"),
                );
            }
        }
    }
}

/// ` at file:line:column`, when it is known.
pub(super) fn place(origin: &Origin) -> String {
    origin.location().map_or_else(|| " earlier".to_owned(), |location| format!(" at {location}"))
}
