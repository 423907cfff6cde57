//! Pass 7: models that read each other in a circle. A model that reads itself is the resolution's finding.

use std::collections::BTreeMap;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::cycle;
use crate::project::model::Reference;

use super::context::Ctx;
use super::facts::Facts;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut facts_of: BTreeMap<&str, &Facts> = BTreeMap::new();
    for facts in &ctx.facts {
        for dependency in facts.dependencies() {
            match dependency {
                Reference::Model(name) => edges.entry(name).or_default().push(&facts.model.name),
                Reference::Source(_) => {}
            }
        }
        facts_of.entry(&facts.model.name).or_insert(facts);
    }
    for path in cycle::find(&edges).into_iter().filter(|path| path.len() > 2) {
        let (upstream, reader) = (path[0], path[1]);
        let Some(facts) = facts_of.get(reader) else { continue };
        let message = format!("Dependency cycle: {}", path.join(" -> "));
        findings.push(
            facts
                .mark_dependency(
                    &Reference::Model(upstream.to_owned()),
                    Diagnostic::new(Code::E104CycleDetected, message),
                )
                .suggest("Remove one of these references"),
        );
    }
}
