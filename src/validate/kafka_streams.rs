//! Pass 14: models that run on Kafka Streams, by the compiler's own rules.

use crate::codes::Diagnostics;

use super::context::Ctx;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    for facts in &ctx.facts {
        if let Some(Err(mistakes)) = ctx.plans.get(facts.model.name.as_str()) {
            findings.extend(mistakes.iter().cloned());
        }
    }
    findings.extend(ctx.circles.iter().cloned());
}
