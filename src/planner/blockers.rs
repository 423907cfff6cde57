//! Migrations that no flag permits. They come from the comparison of a change that ownership left standing.

use serde_json::{Map, Value, json};

use super::model::{BlockerCode, Change, Diff, SafetyBlocker};
use super::topic::reduction_message;

/// Sorted by kind, resource, code, action.
pub(super) fn blockers(changes: &[Change]) -> Vec<SafetyBlocker> {
    let mut blockers: Vec<SafetyBlocker> = changes.iter().filter_map(blocker).collect();
    blockers.sort_by(|a, b| {
        (a.kind, &a.resource, a.code.as_str(), a.action.as_str()).cmp(&(
            b.kind,
            &b.resource,
            b.code.as_str(),
            b.action.as_str(),
        ))
    });
    blockers
}

fn blocker(change: &Change) -> Option<SafetyBlocker> {
    let action = change.verb?;
    let (code, message, details) = match &change.diff {
        Diff::None => return None,
        Diff::Topic(diff) => {
            let reduction = diff.reduction.as_ref()?;
            let details = json!({"field": "partitions", "current": reduction.from, "desired": reduction.to});
            (BlockerCode::KafkaPartitionReduction, reduction_message(reduction), details)
        }
        Diff::Schema(diff) => {
            let content = diff.content.as_ref().filter(|_| diff.is_incompatible())?;
            let details =
                json!({"current_version": content.from_version, "compatibility": diff.effective_compatibility});
            (BlockerCode::SchemaIncompatible, diff.incompatible_message(), details)
        }
    };
    let details = match details {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    Some(SafetyBlocker { code, kind: change.kind, resource: change.name.clone(), action, message, details })
}
