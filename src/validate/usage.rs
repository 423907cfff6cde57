//! Pass 13: sources that nothing uses, and used ones that say nothing of their columns.

use std::collections::HashSet;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::model::Reference;

use super::context::Ctx;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let mut used: HashSet<&str> = HashSet::new();
    let use_source = |reference: &'_ Reference| match reference {
        Reference::Source(name) => ctx.sources.get_key_value(name.as_str()).map(|(name, _)| *name),
        Reference::Model(_) => None,
    };
    for facts in &ctx.facts {
        used.extend(facts.dependencies().iter().filter_map(&use_source));
    }
    for exposure in &ctx.project.exposures {
        let references = exposure.consumes.iter().chain(&exposure.produces).chain(&exposure.depends_on).flatten();
        used.extend(references.filter_map(use_source));
    }
    used.extend(ctx.project.tests.iter().map(|test| test.model.as_str()));

    for source in &ctx.project.sources {
        if !used.contains(source.name.as_str()) {
            let message = format!("Source '{}' is not used by any model, test or exposure", source.name);
            findings.push(source.origin.mark("name", Diagnostic::new(Code::W202UnusedSource, message)));
        } else if source.columns.is_empty() {
            let message = format!("Source '{}' declares no columns, so nothing read from it is checked", source.name);
            findings.push(
                source
                    .origin
                    .mark("name", Diagnostic::new(Code::W203SourceNoColumns, message))
                    .suggest("Declare columns, or schema.fields"),
            );
        }
    }
}
