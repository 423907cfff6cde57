//! A declared topic against the live one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::codes::redact::{REDACTED, is_sensitive_key};
use crate::compiler::artifact::TopicArtifact;

use super::model::Verb;
use super::observation::TopicObservation;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FromTo<T> {
    pub from: T,
    pub to: T,
}

/// What an update has to do, and what it must not.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TopicDiff {
    pub exists: bool,
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
            return Self::default();
        }
        let mut diff = Self { exists: true, ..Self::default() };
        if let Some(from) = live.partitions {
            let change = FromTo { from, to: desired.partitions };
            match desired.partitions.cmp(&from) {
                std::cmp::Ordering::Greater => diff.partitions = Some(change),
                std::cmp::Ordering::Less => diff.reduction = Some(change),
                std::cmp::Ordering::Equal => {}
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

    pub fn verb(&self) -> Option<Verb> {
        match self.exists {
            false => Some(Verb::Create),
            true => self.differs().then_some(Verb::Update),
        }
    }

    fn differs(&self) -> bool {
        self.partitions.is_some() || self.reduction.is_some() || !self.config.is_empty()
    }

    pub fn changes(&self) -> Map<String, Value> {
        let mut changes = Map::new();
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

pub fn reduction_message(reduction: &FromTo<u32>) -> String {
    format!("partitions cannot be reduced from {} to {} (E401)", reduction.from, reduction.to)
}
