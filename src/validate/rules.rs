//! Pass 11: the project's own rules. Each finding stands at the declaration that breaks the rule and names the rule's path.

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::TopicShape;
use crate::project::model::{Materialized, Model, ModelRules, OwnershipMode, Rules, Source, TopicRules};
use crate::project::origin::Origin;

use super::context::{Ctx, quoted};
use super::facts::Facts;
use super::masking;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let rules = &ctx.project.rules;
    if !rules.declared {
        return;
    }
    for source in &ctx.project.sources {
        source_rules(rules, source, findings);
    }
    for facts in &ctx.facts {
        match facts.materialized() {
            Materialized::Topic | Materialized::Flink => topic_rules(ctx, &rules.topics, facts.model, findings),
            Materialized::VirtualTopic | Materialized::Sink => {}
        }
        model_rules(ctx, &rules.models, facts, findings);
        region(rules, "Model", &facts.model.name, facts.model.region.as_deref(), &facts.model.origin, findings);
    }
    if rules.sensitive_columns_require_masking {
        masking::check(ctx, findings);
    }
}

/// A finding at `field`, with the rule to satisfy or change.
pub(super) fn broken(origin: &Origin, field: &str, code: Code, rule: &str, message: String) -> Diagnostic {
    origin.mark(field, Diagnostic::new(code, message)).suggest(format!("Satisfy or change rules.{rule}"))
}

fn source_rules(rules: &Rules, source: &Source, findings: &mut Diagnostics) {
    let name = &source.name;
    if let Some(pattern) = &rules.topics.naming_pattern
        && source.ownership.mode != OwnershipMode::External
        && !matches_from_start(pattern, &source.topic)
    {
        let message = format!("Source '{name}': topic '{}' does not match '{pattern}'", source.topic);
        findings.push(broken(&source.origin, "topic", Code::E601NamingViolation, "topics.naming_pattern", message));
    }
    if rules.require_source_schema && source.schema.is_none() {
        let message = format!("Source '{name}' has no schema");
        findings.push(broken(&source.origin, "name", Code::E616RuleRequireSchema, "sources.require_schema", message));
    }
    if rules.require_source_freshness && source.freshness.is_none() {
        let message = format!("Source '{name}' has no freshness");
        findings.push(broken(
            &source.origin,
            "name",
            Code::E617RuleRequireFreshness,
            "sources.require_freshness",
            message,
        ));
    }
    if rules.require_classification {
        for (index, column) in source.columns.iter().enumerate() {
            if column.classification.is_none() {
                let message = format!("Source '{name}': column '{}' has no classification", column.name);
                findings.push(broken(
                    &source.origin,
                    &format!("columns.{index}"),
                    Code::E618RuleRequireClassification,
                    "security.require_classification",
                    message,
                ));
            }
        }
    }
    region(rules, "Source", name, source.region.as_deref(), &source.origin, findings);
}

fn region(rules: &Rules, kind: &str, name: &str, region: Option<&str>, origin: &Origin, findings: &mut Diagnostics) {
    let Some(region) = region else { return };
    if rules.allowed_regions.is_empty() || rules.allowed_regions.iter().any(|allowed| allowed == region) {
        return;
    }
    let allowed = quoted(rules.allowed_regions.iter().map(String::as_str));
    let message = format!("{kind} '{name}': region '{region}' is not one of {allowed}");
    findings.push(broken(origin, "region", Code::E620RuleDataResidency, "data_residency.allowed_regions", message));
}

fn topic_rules(ctx: &Ctx, rules: &TopicRules, model: &Model, findings: &mut Diagnostics) {
    counts(ctx, rules, model, findings);
    let (name, topic) = (&model.name, model.topic_name());
    let config = model.topic.as_ref().map(|topic| &topic.config);
    let mut raise = |field: &str, code, rule: &str, message: String| {
        findings.push(broken(&model.origin, field, code, rule, message));
    };
    if let Some(maximum) = rules.max_retention_ms
        && let Some(retention) = config.and_then(|config| config.get("retention.ms")).and_then(as_integer)
        && retention > maximum
    {
        let message = format!("Model '{name}': retention.ms is {retention}, at most {maximum} is allowed");
        raise("topic.config", Code::E606RuleMaxRetention, "topics.max_retention_ms", message);
    }
    for key in &rules.required_config {
        if !config.is_some_and(|config| config.contains_key(key)) {
            let message = format!("Model '{name}': topic.config does not set '{key}'");
            raise("topic.config", Code::E607RuleRequiredConfig, "topics.required_config", message);
        }
    }
    let named = if model.topic.as_ref().is_some_and(|topic| topic.name.is_some()) { "topic.name" } else { "name" };
    if let Some(pattern) = &rules.naming_pattern
        && model.ownership.mode != OwnershipMode::External
        && !matches_from_start(pattern, topic)
    {
        let message = format!("Model '{name}': topic '{topic}' does not match '{pattern}'");
        raise(named, Code::E608RuleNamingPattern, "topics.naming_pattern", message);
    }
    for prefix in rules.forbidden_prefixes.iter().filter(|prefix| topic.starts_with(prefix.as_str())) {
        let message = format!("Model '{name}': topic '{topic}' begins with '{prefix}'");
        raise(named, Code::E609RuleForbiddenPrefix, "topics.forbidden_prefixes", message);
    }
    for suffix in rules.forbidden_suffixes.iter().filter(|suffix| topic.ends_with(suffix.as_str())) {
        let message = format!("Model '{name}': topic '{topic}' ends with '{suffix}'");
        raise(named, Code::E610RuleForbiddenSuffix, "topics.forbidden_suffixes", message);
    }
}

/// Partitions and replicas as they will be, defaults included.
fn counts(ctx: &Ctx, rules: &TopicRules, model: &Model, findings: &mut Diagnostics) {
    let shape = TopicShape::of_model(ctx.project, model);
    let bounds = [
        (
            "partitions",
            "partitions",
            i64::from(shape.partitions),
            (rules.min_partitions, Code::E602RuleMinPartitions),
            (rules.max_partitions, Code::E603RuleMaxPartitions),
        ),
        (
            "replication_factor",
            "replicas",
            i64::from(shape.replication_factor),
            (rules.min_replication_factor, Code::E604RuleMinReplication),
            (rules.max_replication_factor, Code::E605RuleMaxReplication),
        ),
    ];
    for (field, noun, value, (minimum, too_few), (maximum, too_many)) in bounds {
        let place = format!("topic.{field}");
        if let Some(minimum) = minimum.filter(|minimum| value < *minimum) {
            let message = format!("Model '{}' has {value} {noun}, at least {minimum} are required", model.name);
            findings.push(broken(&model.origin, &place, too_few, &format!("topics.min_{field}"), message));
        }
        if let Some(maximum) = maximum.filter(|maximum| value > *maximum) {
            let message = format!("Model '{}' has {value} {noun}, at most {maximum} are allowed", model.name);
            findings.push(broken(&model.origin, &place, too_many, &format!("topics.max_{field}"), message));
        }
    }
}

fn model_rules(ctx: &Ctx, rules: &ModelRules, facts: &Facts, findings: &mut Diagnostics) {
    let model = facts.model;
    let name = &model.name;
    let blank = |text: &Option<String>| text.as_ref().is_none_or(|text| text.trim().is_empty());
    let mut raise = |field: &str, code, rule: &str, message: String| {
        findings.push(broken(&model.origin, field, code, rule, message));
    };
    if rules.require_description && blank(&model.description) {
        let message = format!("Model '{name}' has no description");
        raise("name", Code::E611RuleRequireDescription, "models.require_description", message);
    }
    if rules.require_owner && blank(&model.owner) {
        let message = format!("Model '{name}' has no owner");
        raise("name", Code::E612RuleRequireOwner, "models.require_owner", message);
    }
    if rules.require_tests && !ctx.tested.contains(name.as_str()) {
        let message = format!("Model '{name}' has no test");
        raise("name", Code::E613RuleRequireTests, "models.require_tests", message);
    }
    if let Some(owner) = &model.owner
        && !rules.valid_owners.is_empty()
        && !rules.valid_owners.contains(owner)
    {
        let message = format!("Model '{name}': '{owner}' is not a valid owner");
        raise("owner", Code::E614RuleInvalidOwner, "models.valid_owners", message);
    }
    let count = facts.dependencies().len();
    if let Some(maximum) = rules.max_dependencies
        && count > maximum as usize
    {
        let message = format!("Model '{name}' reads {count} inputs, at most {maximum} are allowed");
        raise("name", Code::E615RuleMaxDependencies, "models.max_dependencies", message);
    }
}

fn matches_from_start(pattern: &regex::Regex, text: &str) -> bool {
    pattern.find(text).is_some_and(|found| found.start() == 0)
}

/// An integer, or a text that is one.
fn as_integer(value: &serde_json::Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}
