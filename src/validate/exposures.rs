//! Pass 6: exposures, and circles that close through an application.

use std::collections::BTreeMap;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::cycle;
use crate::project::model::{Exposure, Reference};

use super::context::Ctx;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let before = findings.errors().count();
    for exposure in &ctx.project.exposures {
        if exposure.sla.is_some() {
            let message = format!("Exposure '{}': its sla is kept for documents and not measured", exposure.name);
            findings.push(exposure.origin.mark("sla", Diagnostic::new(Code::W212SlaNotEnforced, message)));
        }
        references(ctx, exposure, "consumes", &exposure.consumes, findings);
        references(ctx, exposure, "produces", &exposure.produces, findings);
        references(ctx, exposure, "depends_on", &exposure.depends_on, findings);
    }
    if findings.errors().count() == before {
        cycles(ctx, findings);
    }
}

fn references(ctx: &Ctx, exposure: &Exposure, field: &str, entries: &[Option<Reference>], findings: &mut Diagnostics) {
    for (index, entry) in entries.iter().enumerate() {
        let place = format!("{field}.{index}");
        let Some(reference) = entry else {
            let message =
                format!("Exposure '{}': an entry of {field} needs exactly one of source and ref", exposure.name);
            findings.push(
                exposure
                    .origin
                    .mark(&place, Diagnostic::new(Code::E113ExposureReferenceInvalid, message))
                    .suggest("Keep one of the two; write two entries for two references"),
            );
            continue;
        };
        if ctx.declares(reference) {
            continue;
        }
        let (code, kind, key, hint) = match reference {
            Reference::Source(name) => (Code::E109ExposureSourceNotFound, "source", "source", ctx.source_hint(name)),
            Reference::Model(name) => (Code::E108ExposureModelNotFound, "model", "ref", ctx.model_hint(name)),
        };
        let code = if field == "depends_on" { Code::E110ExposureDependencyNotFound } else { code };
        let message =
            format!("Exposure '{}' {field} {kind} '{}', which is not declared", exposure.name, reference.name());
        let message = message.replace(" depends_on ", " depends on ");
        findings
            .push(exposure.origin.mark(&format!("{place}.{key}"), Diagnostic::new(code, message)).suggest_opt(hint));
    }
}

/// Sources, models and exposures together: what an application consumes stands before it, what it produces after it.
fn cycles(ctx: &Ctx, findings: &mut Diagnostics) {
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for facts in &ctx.facts {
        for dependency in facts.dependencies() {
            edges.entry(dependency.name()).or_default().push(&facts.model.name);
        }
    }
    for exposure in &ctx.project.exposures {
        for input in exposure.consumes.iter().chain(&exposure.depends_on).flatten() {
            edges.entry(input.name()).or_default().push(&exposure.name);
        }
        let outputs = exposure.produces.iter().flatten().map(Reference::name);
        edges.entry(&exposure.name).or_default().extend(outputs);
    }
    for path in cycle::find(&edges) {
        let through = ctx.project.exposures.iter().find(|exposure| path.contains(&exposure.name.as_str()));
        let Some(exposure) = through else { continue };
        let message = format!("Dependency cycle: {}", path.join(" -> "));
        findings.push(
            exposure
                .origin
                .mark("produces", Diagnostic::new(Code::E104CycleDetected, message))
                .suggest("Remove one edge of the cycle"),
        );
    }
}
