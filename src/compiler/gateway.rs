//! Gateway rules of virtual topics, and the removals of rules that the project declares.

use serde_json::{Map, Value};

use crate::codes::{Code, Diagnostic};
use crate::project::model::{Materialized, OwnershipMode, Reference};

use super::artifact::{GatewayRuleArtifact, GatewayRuleRemovalArtifact, Interceptor, OwnerType};
use super::context::Context;
use super::topics::topic_of;

/// One for each virtual topic, in topological order.
pub(super) fn compile(context: &mut Context<'_>, order: &[&str]) -> Vec<GatewayRuleArtifact> {
    let mut rules = Vec::new();
    for name in order {
        let (Some(resolved), Some(model)) = (context.resolved(name), context.names.model(name)) else { continue };
        if resolved.materialized != Materialized::VirtualTopic {
            continue;
        }
        let readable = resolved.dependencies.first().and_then(|input: &Reference| topic_of(context, input));
        let Some(physical_topic) = readable.map(str::to_owned) else {
            let message = format!("virtual topic '{name}' reads no topic");
            let finding =
                Diagnostic::new(Code::E119CompileFailed, message).suggest("Name its input with source() or ref().");
            context.findings.push(model.origin.mark("sql", finding));
            continue;
        };
        let filter = resolved.filter.as_ref().map(|predicate| Interceptor {
            interceptor_type: "filter".to_owned(),
            config: Map::from_iter([("where".to_owned(), Value::String(predicate.clone()))]),
        });
        rules.push(GatewayRuleArtifact {
            name: (*name).to_owned(),
            virtual_topic: model.alias().to_owned(),
            physical_topic,
            interceptors: filter.into_iter().collect(),
            ownership: context.ownership(OwnerType::Model, name, model.ownership.mode),
        });
    }
    rules
}

/// The declared removals in declaration order, with the ownership that the removed rule had.
pub(super) fn removals(context: &mut Context<'_>) -> Vec<GatewayRuleRemovalArtifact> {
    let mut removals = Vec::new();
    for removal in &context.project.gateway_rule_removals {
        let interceptors: Option<Vec<Interceptor>> =
            removal.interceptors.iter().map(|item| serde_json::from_value(item.clone()).ok()).collect();
        let Some(mut interceptors) = interceptors else {
            let message = format!("an interceptor of the removed rule '{}' is not of the expected form", removal.name);
            let finding = Diagnostic::new(Code::E501ParseError, message);
            context.findings.push(removal.origin.mark("prior_artifact.interceptors", finding));
            continue;
        };
        for mask in interceptors.iter_mut().filter(|item| item.interceptor_type == "mask") {
            mask.config.entry("forRoles").or_insert_with(|| Value::Array(Vec::new()));
        }
        removals.push(GatewayRuleRemovalArtifact {
            logical_owner: removal.logical_owner.clone(),
            prior_artifact: GatewayRuleArtifact {
                name: removal.name.clone(),
                virtual_topic: removal.virtual_topic.clone(),
                physical_topic: removal.physical_topic.clone(),
                interceptors,
                ownership: context.ownership(OwnerType::Model, &removal.logical_owner, OwnershipMode::Managed),
            },
        });
    }
    removals
}
