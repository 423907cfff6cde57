//! Pass 12: names of topics that Kafka keeps for itself or cannot tell apart.

use std::collections::HashMap;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::resolve::Output;
use crate::project::model::OwnershipMode;
use crate::project::origin::Origin;

use super::context::Ctx;

struct Topic<'a> {
    name: &'a str,
    declared: String,
    origin: &'a Origin,
    field: &'static str,
    mode: OwnershipMode,
}

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let sources = ctx.project.sources.iter().map(|source| Topic {
        name: &source.topic,
        declared: format!("Source '{}'", source.name),
        origin: &source.origin,
        field: "topic",
        mode: source.ownership.mode,
    });
    let models = ctx.facts.iter().filter_map(|facts| match &facts.resolved.output {
        Some(Output::Kafka(name)) => Some(Topic {
            name,
            declared: format!("Model '{}'", facts.model.name),
            origin: &facts.model.origin,
            field: if facts.model.topic.as_ref().is_some_and(|topic| topic.name.is_some()) {
                "topic.name"
            } else {
                "name"
            },
            mode: facts.model.ownership.mode,
        }),
        Some(Output::Gateway(_)) | None => None,
    });
    let topics: Vec<Topic<'_>> = sources.chain(models).collect();
    internal(&topics, findings);
    collisions(&topics, findings);
}

fn internal(topics: &[Topic<'_>], findings: &mut Diagnostics) {
    for topic in topics.iter().filter(|topic| topic.name.starts_with("__") && topic.mode != OwnershipMode::External) {
        let message = format!("{}: topic '{}' has a name that is kept for the cluster", topic.declared, topic.name);
        let finding = topic.origin.mark(topic.field, Diagnostic::new(Code::E122InternalTopic, message));
        findings.push(finding.suggest("Give it a name without '__' in front, or declare it external"));
    }
}

/// Metric names hold `_` where a topic's name holds `.`; brokers refuse to create a topic that collides so (KAFKA-1481).
fn collisions(topics: &[Topic<'_>], findings: &mut Diagnostics) {
    let mut first: HashMap<String, &Topic<'_>> = HashMap::new();
    for topic in topics.iter().filter(|topic| topic.name.contains(['.', '_'])) {
        let other = *first.entry(topic.name.replace('.', "_")).or_insert(topic);
        if other.name != topic.name {
            let message = format!(
                "{}: topic '{}' and topic '{}' of {} differ in '.' and '_' alone, which Kafka's metrics cannot tell apart",
                topic.declared, topic.name, other.name, other.declared
            );
            let finding = topic.origin.mark(topic.field, Diagnostic::new(Code::W233TopicNamesCollide, message));
            findings.push(finding.suggest("Use one of the two characters in all names"));
        }
    }
}
