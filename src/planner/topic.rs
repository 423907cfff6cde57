//! A declared topic against the live one.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::codes::redact::{REDACTED, is_sensitive_key};
use crate::compiler::artifact::TopicArtifact;

use super::model::Verb;
use super::observation::TopicObservation;

/// A value as it is and as it shall be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FromTo<T> {
    pub from: T,
    pub to: T,
}

/// What an update has to do, and what it must not.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TopicDiff {
    pub exists: bool,
    /// What a create makes, field by field; empty for a topic that exists.
    pub attributes: Map<String, Value>,
    /// Growth.
    pub partitions: Option<FromTo<u32>>,
    /// Fewer partitions declared than live: a blocker, never an action.
    pub reduction: Option<FromTo<u32>>,
    /// Key → live override and declared value; `to` none = take the override away.
    pub config: BTreeMap<String, FromTo<Option<String>>>,
    /// Differs: a warning, never an action.
    pub replication_factor: Option<FromTo<u16>>,
}

impl TopicDiff {
    pub fn of(desired: &TopicArtifact, live: &TopicObservation) -> Self {
        if !live.exists {
            return Self { attributes: attributes(desired), ..Self::default() };
        }
        let mut diff = Self { exists: true, ..Self::default() };
        if let Some(from) = live.partitions {
            let change = FromTo { from, to: desired.partitions };
            match desired.partitions.cmp(&from) {
                Ordering::Greater => diff.partitions = Some(change),
                Ordering::Less => diff.reduction = Some(change),
                Ordering::Equal => {}
            }
        }
        for key in desired.config.keys().chain(live.config.keys()) {
            let change = FromTo { from: live.config.get(key).cloned(), to: desired.config.get(key).cloned() };
            if change.from != change.to {
                diff.config.insert(key.clone(), change);
            }
        }
        diff.replication_factor = live
            .replication_factor
            .filter(|from| *from != desired.replication_factor)
            .map(|from| FromTo { from, to: desired.replication_factor });
        diff
    }

    pub(super) fn verb(&self) -> Option<Verb> {
        let differs = self.partitions.is_some() || self.reduction.is_some() || !self.config.is_empty();
        match self.exists {
            false => Some(Verb::Create),
            true => differs.then_some(Verb::Update),
        }
    }

    /// Field → `{from, to}` of an update, field → value of a create; sensitive values are `<redacted>`.
    pub fn changes(&self) -> Map<String, Value> {
        let mut changes = self.attributes.clone();
        if let Some(FromTo { from, to }) = &self.partitions {
            changes.insert("partitions".to_owned(), json!({"from": from, "to": to}));
        }
        if let Some(reduction) = &self.reduction {
            changes.insert("partitions_error".to_owned(), json!({"message": reduction_message(reduction)}));
        }
        for (key, FromTo { from, to }) in &self.config {
            let shown = match is_sensitive_key(key) {
                true => Value::String(REDACTED.to_owned()),
                false => json!({"from": from, "to": to}),
            };
            changes.insert(format!("config.{key}"), shown);
        }
        changes
    }
}

fn attributes(desired: &TopicArtifact) -> Map<String, Value> {
    let config = desired.config.iter().map(|(key, value)| {
        let shown = if is_sensitive_key(key) { REDACTED } else { value };
        (format!("config.{key}"), json!(shown))
    });
    let shape = [("partitions", json!(desired.partitions)), ("replication_factor", json!(desired.replication_factor))];
    shape.into_iter().map(|(field, value)| (field.to_owned(), value)).chain(config).collect()
}

pub(super) fn reduction_message(reduction: &FromTo<u32>) -> String {
    format!("partitions cannot be reduced from {} to {} (E401_CANNOT_REDUCE_PARTITIONS)", reduction.from, reduction.to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::fixtures::{live_topic, topic};

    fn diff(desired: (u32, &[(&str, &str)]), live: (u32, &[(&str, &str)])) -> TopicDiff {
        TopicDiff::of(&topic("orders.v1", desired.0, desired.1), &live_topic("orders.v1", live.0, live.1))
    }

    /// SAF-033
    #[test]
    fn an_absent_topic_is_created_and_its_attributes_are_shown_for_review() {
        let diff = TopicDiff::of(&topic("t", 3, &[("a", "1"), ("x.password", "p")]), &TopicObservation::absent("t"));
        assert_eq!(diff.verb(), Some(Verb::Create));
        let shown =
            json!({"partitions": 3, "replication_factor": 1, "config.a": "1", "config.x.password": "<redacted>"});
        assert_eq!(Value::Object(diff.changes()), shown);
    }

    /// SAF-034
    #[test]
    fn an_equal_topic_is_left_alone() {
        let diff = diff((3, &[("retention.ms", "1")]), (3, &[("retention.ms", "1")]));
        assert_eq!((diff.verb(), diff.changes()), (None, Map::new()));
    }

    #[test]
    fn partitions_grow() {
        let diff = diff((6, &[]), (3, &[]));
        assert_eq!(diff.verb(), Some(Verb::Update));
        assert_eq!(Value::Object(diff.changes()), json!({"partitions": {"from": 3, "to": 6}}));
    }

    /// SAF-041
    #[test]
    fn fewer_declared_partitions_are_an_error_and_no_change_of_partitions() {
        let diff = diff((3, &[]), (6, &[]));
        assert_eq!(diff.verb(), Some(Verb::Update));
        assert_eq!((diff.partitions.clone(), diff.reduction.clone()), (None, Some(FromTo { from: 6, to: 3 })));
        assert_eq!(
            Value::Object(diff.changes()),
            json!({"partitions_error": {"message":
                "partitions cannot be reduced from 6 to 3 (E401_CANNOT_REDUCE_PARTITIONS)"}})
        );
    }

    #[test]
    fn configs_are_compared_as_exact_strings() {
        let spelled = diff((1, &[("cleanup.policy", "Compact"), ("x", "1")]), (1, &[("cleanup.policy", "compact")]));
        assert_eq!(
            Value::Object(spelled.changes()),
            json!({"config.cleanup.policy": {"from": "compact", "to": "Compact"}, "config.x": {"from": null, "to": "1"}})
        );
    }

    #[test]
    fn an_override_that_is_not_declared_is_taken_away() {
        let diff = diff((1, &[]), (1, &[("retention.ms", "5")]));
        assert_eq!(diff.verb(), Some(Verb::Update));
        assert_eq!(Value::Object(diff.changes()), json!({"config.retention.ms": {"from": "5", "to": null}}));
    }

    #[test]
    fn another_replication_factor_is_noted_and_is_no_action() {
        let mut live = live_topic("orders.v1", 1, &[]);
        live.replication_factor = Some(3);
        let diff = TopicDiff::of(&topic("orders.v1", 1, &[]), &live);
        assert_eq!((diff.verb(), diff.changes()), (None, Map::new()));
        assert_eq!(diff.replication_factor, Some(FromTo { from: 3, to: 1 }));
    }

    #[test]
    fn sensitive_config_values_are_not_shown() {
        let diff = diff((1, &[("x.password", "hunter2")]), (1, &[("x.password", "hunter1")]));
        assert_eq!(Value::Object(diff.changes()), json!({"config.x.password": "<redacted>"}));
    }
}
