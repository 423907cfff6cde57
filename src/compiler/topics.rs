//! Topic artifacts: the output of every model that writes to Kafka, dead-letter topics, the topic of test failures.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::codes::{Code, Diagnostic, suggest};
use crate::project::Project;
use crate::project::model::{Model, OwnershipMode, Reference, TestType, TopicBlock, TopicDefaults};

use super::artifact::{OwnerType, Ownership, TopicArtifact};
use super::context::Context;
use super::resolve::Output;

/// Where continuous tests report; one for all of them.
pub const TEST_FAILURES: &str = "_streamt_test_failures";

/// A broker hangs up on a longer string instead of refusing it.
const MAX_KAFKA_STRING: usize = i16::MAX as usize;
const MAX_SHOWN_KEY: usize = 249;

/// Topics in topological order of their models, then the topic of test failures, then dead-letter topics.
pub(super) fn compile(context: &mut Context<'_>, order: &[&str]) -> Vec<TopicArtifact> {
    let mut topics = Vec::new();
    for name in order {
        let (Some(resolved), Some(model)) = (context.resolved(name), context.names.model(name)) else { continue };
        let Some(Output::Kafka(topic)) = &resolved.output else { continue };
        let topic = topic.clone();
        let config = match &model.topic {
            None => BTreeMap::new(),
            Some(block) => match config(&block.config) {
                Ok(config) => config,
                Err((key, must)) => {
                    let key: String = key.chars().take(MAX_SHOWN_KEY).collect();
                    let message = format!("topic config '{key}' of model '{name}' must be {must}");
                    let finding = Diagnostic::new(Code::E501ParseError, message);
                    context.findings.push(model.origin.mark("topic.config", finding));
                    continue;
                }
            },
        };
        let shape = Shape::of_model(context.project, model);
        let ownership = context.ownership(OwnerType::Model, name, model.ownership.mode);
        topics.push(shape.topic(topic, config, ownership));
    }
    topics
}

/// Topics that tests need; one that exists already is not added again.
pub(super) fn compile_for_tests(context: &mut Context<'_>, topics: &mut Vec<TopicArtifact>) -> BTreeMap<String, usize> {
    let mut known: BTreeSet<String> = topics.iter().map(|topic| topic.name.clone()).collect();
    let mut declared_by = BTreeMap::new();
    let mut wanted = Vec::new();
    let project = context.project;
    let continuous =
        |test: &&crate::project::model::Test| test.test_type == TestType::Continuous && has_condition(&test.assertions);
    if let Some(index) = project.tests.iter().position(|test| continuous(&test)) {
        wanted.push((index, TEST_FAILURES.to_owned()));
    }
    for (index, test) in project.tests.iter().enumerate() {
        let actions = test.on_failure.iter().flat_map(|on_failure| &on_failure.actions);
        for dead_letters in actions.filter_map(|action| action.get("dlq")).filter(|dlq| **dlq != Value::Bool(false)) {
            if let Some(model) = dead_letters.get("model").and_then(Value::as_str)
                && context.names.model(model).is_none()
            {
                let known = project.models.iter().map(|model| model.name.as_str());
                let finding = Diagnostic::new(Code::E112DlqModelNotFound, format!("DLQ model '{model}' not found"))
                    .suggest_opt(suggest::hint(model, "model", known));
                context.findings.push(test.origin.mark("on_failure.actions", finding));
            }
            let named = dead_letters.get("topic").and_then(Value::as_str).map(str::to_owned);
            wanted.push((index, named.unwrap_or_else(|| format!("{}__dlq", test.model))));
        }
    }
    for (index, name) in wanted {
        let test = &project.tests[index];
        let Some(ownership) = owner_of_test(context, &test.model) else {
            let known = project
                .models
                .iter()
                .map(|model| &*model.name)
                .chain(project.sources.iter().map(|source| &*source.name));
            let message =
                format!("test '{}' targets '{}', which is neither a model nor a source", test.name, test.model);
            let finding = Diagnostic::new(Code::E107TestModelNotFound, message).suggest_opt(suggest::hint(
                &test.model,
                "model",
                known,
            ));
            context.findings.push(test.origin.mark("model", finding));
            continue;
        };
        if !known.insert(name.clone()) {
            continue;
        }
        declared_by.insert(name.clone(), index);
        topics.push(Shape::of(None, &[&project.defaults.topic]).topic(name, BTreeMap::new(), ownership));
    }
    declared_by
}

/// Whether a continuous test has anything that a job can check.
pub(super) fn has_condition(assertions: &[Value]) -> bool {
    let compiled = ["not_null", "accepted_values", "range", "accepted_types", "custom_sql"];
    assertions.iter().any(|assertion| compiled.iter().any(|kind| assertion.get(kind).is_some()))
}

fn owner_of_test(context: &Context<'_>, target: &str) -> Option<Ownership> {
    let owner_type = match (context.names.model(target), context.names.source(target)) {
        (Some(_), _) => OwnerType::Model,
        (None, Some(_)) => OwnerType::Source,
        (None, None) => return None,
    };
    Some(context.ownership(owner_type, target, OwnershipMode::Managed))
}

/// Partitions and replication after all defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub partitions: u32,
    pub replication_factor: u16,
}

impl Shape {
    /// Of a model's output topic: its own values, else the defaults for models, for topics, 1.
    pub fn of_model(project: &Project, model: &Model) -> Self {
        Self::of(model.topic.as_ref(), &[&project.defaults.model_topic, &project.defaults.topic])
    }

    /// What the declaration says, else the first of the defaults that says it, else 1.
    fn of(block: Option<&TopicBlock>, defaults: &[&TopicDefaults]) -> Self {
        let partitions = block.and_then(|block| block.partitions);
        let replication_factor = block.and_then(|block| block.replication_factor);
        Self {
            partitions: partitions.or_else(|| defaults.iter().find_map(|level| level.partitions)).unwrap_or(1),
            replication_factor: replication_factor
                .or_else(|| defaults.iter().find_map(|level| level.replication_factor))
                .unwrap_or(1),
        }
    }

    fn topic(self, name: String, config: BTreeMap<String, String>, ownership: Ownership) -> TopicArtifact {
        TopicArtifact {
            name,
            partitions: self.partitions,
            replication_factor: self.replication_factor,
            config,
            ownership,
        }
    }
}

/// Values as the broker returns them: strings. The first key that cannot be used, and what it must be, is the error.
fn config(written: &Map<String, Value>) -> Result<BTreeMap<String, String>, (&str, &'static str)> {
    written
        .iter()
        .map(|(key, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(flag) => flag.to_string(),
                Value::Number(number) if !number.is_f64() => number.to_string(),
                Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => {
                    return Err((key.as_str(), "a string, an integer or a boolean"));
                }
            };
            match key.len().max(text.len()) > MAX_KAFKA_STRING {
                true => {
                    Err((key.as_str(), "at most 32767 bytes long, name and value each: Kafka carries no longer text"))
                }
                false => Ok((key.clone(), text)),
            }
        })
        .collect()
}

/// The topics and aliases that a reference can be read from; none for a sink.
pub(super) fn topic_of<'a>(context: &'a Context<'_>, reference: &Reference) -> Option<&'a str> {
    match reference {
        Reference::Source(name) => context.names.source(name).map(|source| source.topic.as_str()),
        Reference::Model(name) => context.resolved(name)?.output.as_ref().map(Output::name),
    }
}
