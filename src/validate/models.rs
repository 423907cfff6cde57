//! Pass 4: what a model needs from the runtime, and what it may refer to.

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::model::{Access, ChangelogMode, Executor, FlinkClusterType, Materialized, Model, Reference};

use super::context::Ctx;
use super::facts::Facts;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    for facts in &ctx.facts {
        processor(ctx, facts, findings);
        flink_settings(facts.model, findings);
        super::sql::check(ctx, facts, findings);
        super::query::check(facts, findings);
        super::refusals::check(ctx, facts, findings);
        unused_from(facts, findings);
        policies(facts.model, findings);
        access(ctx, facts, findings);
    }
}

/// Whether the runtime has what the effective materialization needs.
fn processor(ctx: &Ctx, facts: &Facts, findings: &mut Diagnostics) {
    let model = facts.model;
    let runtime = &ctx.project.runtime;
    let name = &model.name;
    let inferred_virtual = facts.resolved.inferred == Materialized::VirtualTopic && runtime.gateway.is_none();
    let gateway_could = facts.outline().is_some_and(|outline| outline.gateway_filter().is_ok());
    let mut raise = |field: &str, code, message: String, suggestion: &str| {
        findings.push(model.origin.mark(field, Diagnostic::new(code, message)).suggest(suggestion));
    };
    match facts.materialized() {
        Materialized::VirtualTopic if runtime.gateway.is_none() => {
            let field = if model.materialized.is_some() { "materialized" } else { "gateway.virtual_topic" };
            raise(
                field,
                Code::E201GatewayRequired,
                format!("Model '{name}' is a virtual topic, and the runtime has no Gateway"),
                "Add runtime.conduktor.gateway, or materialize the model as flink",
            );
        }
        Materialized::VirtualTopic => {}
        Materialized::Flink if inferred_virtual => match runtime.flink {
            // What a Gateway could not run either is no matter of choice.
            Some(_) if !gateway_could => {}
            Some(_) => raise(
                "name",
                Code::W205AmbiguousMaterialization,
                format!("Model '{name}' is a plain filter: Flink will run it, as there is no Gateway"),
                "Write materialized: flink, or configure runtime.conduktor.gateway",
            ),
            None => raise(
                "name",
                Code::W206NoProcessingRuntime,
                format!("Model '{name}' has SQL, and the runtime has neither Flink nor a Gateway"),
                "Add runtime.flink before deploying",
            ),
        },
        Materialized::Flink if runtime.flink.is_none() => {
            let field = if model.materialized.is_some() { "materialized" } else { "name" };
            raise(
                field,
                Code::E202FlinkRequired,
                format!("Model '{name}' is run by Flink, and the runtime has no Flink cluster"),
                "Add runtime.flink with a cluster",
            );
        }
        Materialized::Flink => {}
        Materialized::Topic => {
            let has_sql = model.sql.is_some() || model.macro_name.is_some();
            if has_sql && model.executor != Some(Executor::KafkaStreams) && runtime.flink.is_none() {
                raise(
                    "name",
                    Code::W206NoProcessingRuntime,
                    format!("Model '{name}' has SQL, and the runtime has no Flink cluster"),
                    "Add runtime.flink before deploying",
                );
            }
        }
        Materialized::Sink => {
            if model.sink.is_none() {
                raise(
                    if model.materialized.is_some() { "materialized" } else { "from" },
                    Code::E204MissingSinkConfig,
                    format!("Model '{name}' is a sink and has no sink block"),
                    "Add sink with connector and config",
                );
            }
            if runtime.connect.is_none() {
                raise(
                    if model.sink.is_some() { "sink" } else { "name" },
                    Code::E205ConnectRequired,
                    format!("Model '{name}' is a sink, and the runtime has no Connect cluster"),
                    "Add runtime.connect with a cluster and default",
                );
            }
        }
    }
}

fn flink_settings(model: &Model, findings: &mut Diagnostics) {
    let Some(flink) = &model.flink else { return };
    if let Some(ttl) = flink.state_ttl_ms {
        let place = "flink.state_ttl_ms";
        if ttl <= 0 {
            let message = format!("Model '{}': state_ttl_ms is {ttl}, and must be greater than 0", model.name);
            findings.push(
                model
                    .origin
                    .mark(place, Diagnostic::new(Code::E301InvalidStateTtl, message))
                    .suggest("Write milliseconds, or remove the field to keep state for ever"),
            );
        } else if ttl < 1000 {
            let message = format!("Model '{}': state_ttl_ms is {ttl}, which is less than a second", model.name);
            findings.push(
                model
                    .origin
                    .mark(place, Diagnostic::new(Code::W207StateTtlTooShort, message))
                    .suggest("The unit is milliseconds"),
            );
        }
    }
    let keyed = model.primary_key.as_ref().is_some_and(|key| !key.is_empty());
    if flink.changelog_mode == Some(ChangelogMode::Upsert) && !keyed {
        let message = format!("Model '{}': changelog_mode upsert needs primary_key", model.name);
        findings.push(
            model
                .origin
                .mark("flink.changelog_mode", Diagnostic::new(Code::E208MissingConfig, message))
                .suggest("Add primary_key with the columns that identify a row"),
        );
    }
}

/// `from` beside SQL is a cross-check only.
fn unused_from(facts: &Facts, findings: &mut Diagnostics) {
    let model = facts.model;
    if facts.outline().is_none() {
        return;
    }
    for (index, entry) in model.from.iter().flatten().enumerate() {
        if facts.dependencies().iter().any(|dependency| dependency == entry) {
            continue;
        }
        let (code, kind, key) = match entry {
            Reference::Source(_) => (Code::W208UnusedFromSource, "source", "source"),
            Reference::Model(_) => (Code::W209UnusedFromRef, "model", "ref"),
        };
        let message =
            format!("Model '{}' lists {kind} '{}' under from, and its SQL does not read it", model.name, entry.name());
        findings.push(
            model
                .origin
                .mark(&format!("from.{index}.{key}"), Diagnostic::new(code, message))
                .suggest("Remove the entry: beside sql it has no effect"),
        );
    }
}

fn policies(model: &Model, findings: &mut Diagnostics) {
    for (index, policy) in model.security.iter().flat_map(|security| &security.policies).enumerate() {
        for kind in ["allow", "deny"] {
            if policy.get(kind).is_some() {
                let message =
                    format!("Model '{}': the {kind} policy is kept for documents and not enforced", model.name);
                findings.push(model.origin.mark(
                    &format!("security.policies.{index}.{kind}"),
                    Diagnostic::new(Code::W210SecurityPoliciesNotEnforced, message),
                ));
            }
        }
    }
}

/// A private model of a group is for that group.
fn access(ctx: &Ctx, facts: &Facts, findings: &mut Diagnostics) {
    let model = facts.model;
    for dependency in facts.dependencies() {
        let Reference::Model(name) = dependency else { continue };
        let Some(upstream) = ctx.models.get(name.as_str()) else { continue };
        let Some(group) = &upstream.group else { continue };
        let restricted = match upstream.access {
            Access::Private => true,
            Access::Protected | Access::Public => false,
        };
        if !restricted || model.group.as_ref() == Some(group) {
            continue;
        }
        let of = model.group.as_ref().map_or("no group".to_owned(), |group| format!("group '{group}'"));
        let message =
            format!("Model '{}' ({of}) may not read '{name}', which is private to group '{group}'", model.name);
        findings.push(
            facts
                .mark_dependency(dependency, Diagnostic::new(Code::E106AccessDenied, message))
                .suggest(format!("Give '{}' the group '{group}', or '{name}' access: protected", model.name)),
        );
    }
}

/// Whether the runtime has a cluster that knows ML functions.
pub(super) fn has_confluent_flink(ctx: &Ctx) -> bool {
    let clusters = ctx.project.runtime.flink.iter().flat_map(|flink| flink.clusters.values());
    clusters.into_iter().any(|cluster| cluster.cluster_type == FlinkClusterType::Confluent)
}
