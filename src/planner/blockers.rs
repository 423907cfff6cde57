//! What no flag permits: migrations, which come from the comparison of a change that ownership left standing, tombstones that
//! prove nothing, and deletions in an environment that forbids them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Desired;
use super::connector::{ConnectorRemovalAssessment, RemovalStatus};
use super::flink::JobDiff;
use super::model::{BlockerCode, Change, Diff, SafetyBlocker, Verb};
use super::topic::reduction_message;
use crate::compiler::artifact::Kind;

/// Sorted by kind, resource, code, action.
pub(super) fn blockers(
    changes: &[Change],
    removals: &[ConnectorRemovalAssessment],
    desired: &Desired<'_>,
    absent_inputs: &BTreeSet<String>,
) -> Vec<SafetyBlocker> {
    let forbidden = changes.iter().filter(|_| desired.forbids_deletion);
    let mut blockers: Vec<SafetyBlocker> = changes
        .iter()
        .filter_map(blocker)
        .chain(removals.iter().filter_map(unproved_removal))
        .chain(changes.iter().filter_map(|change| missing_input(change, changes, desired, absent_inputs)))
        .chain(forbidden.filter_map(|change| forbidden_deletion(change, desired.environment)))
        .collect();
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
        Diff::None | Diff::Connector(_) | Diff::ConnectorRemoval(_) => return None,
        Diff::Job(diff) => return job_blocker(change, diff, action),
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

/// A job that lives is never replaced and one that has ended is never started again: nothing says what becomes of its state.
fn job_blocker(change: &Change, diff: &JobDiff, action: Verb) -> Option<SafetyBlocker> {
    let (state, name) = (diff.state?, &change.name);
    let mut details = Map::new();
    let (code, message) = match action {
        Verb::Update => {
            let message = format!(
                "flink_job '{name}' runs, and not what is declared: replacing it needs a savepoint that this version does not take"
            );
            (BlockerCode::FlinkUpdateRequiresSavepoint, message)
        }
        Verb::Register | Verb::Create | Verb::Submit | Verb::Delete | Verb::Cancel | Verb::Adopt => {
            details.insert("current_status".to_owned(), json!(state.as_str()));
            let message = format!(
                "flink_job '{name}' is {state}: submitting it again could lose or repeat its state, and nothing proves that it does not"
            );
            (BlockerCode::FlinkResubmitRequiresStateEvidence, message)
        }
    };
    Some(SafetyBlocker { code, kind: change.kind, resource: name.clone(), action, message, details })
}

/// Flink would fail such a job at once, and what has ended is never started again.
fn missing_input(
    change: &Change,
    changes: &[Change],
    desired: &Desired<'_>,
    absent: &BTreeSet<String>,
) -> Option<SafetyBlocker> {
    let action = change.verb?;
    let Diff::Job(JobDiff { state: None, .. }) = &change.diff else { return None };
    let job = desired.artifacts.flink_jobs.iter().find(|job| job.name == change.name)?;
    let made = |topic: &str| {
        changes.iter().any(|other| other.kind == Kind::Topic && other.verb.is_some() && other.name == topic)
    };
    let inputs = desired.external_inputs(&job.ownership);
    let missing: Vec<&str> = inputs.into_iter().filter(|topic| absent.contains(*topic) && !made(topic)).collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!(
        "flink_job '{}' reads {}, which does not exist and which nothing here creates: the job would fail at once",
        change.name,
        missing.iter().map(|topic| format!("topic '{topic}'")).collect::<Vec<_>>().join(" and "),
    );
    Some(SafetyBlocker {
        code: BlockerCode::FlinkInputMissing,
        kind: change.kind,
        resource: change.name.clone(),
        action,
        message,
        details: Map::from_iter([("topics".to_owned(), json!(missing))]),
    })
}

fn unproved_removal(removal: &ConnectorRemovalAssessment) -> Option<SafetyBlocker> {
    let code = match removal.status {
        RemovalStatus::AlreadyAbsent => return None,
        RemovalStatus::StateProviderDrift => BlockerCode::ConnectorRemovalStateProviderDrift,
        RemovalStatus::OwnershipRequired => BlockerCode::ConnectorRemovalOwnershipRequired,
    };
    Some(SafetyBlocker {
        code,
        kind: Kind::Connector,
        resource: removal.connector_name.as_str().to_owned(),
        action: Verb::Delete,
        message: removal.message(),
        details: Map::new(),
    })
}

/// SAF-069: of whatever kind; a job that is cancelled is gone as one that is deleted.
fn forbidden_deletion(change: &Change, environment: &str) -> Option<SafetyBlocker> {
    let action = change.verb?;
    match action {
        Verb::Delete | Verb::Cancel => {}
        Verb::Register | Verb::Create | Verb::Submit | Verb::Update | Verb::Adopt => return None,
    }
    Some(SafetyBlocker {
        code: BlockerCode::DeletionForbidden,
        kind: change.kind,
        resource: change.name.clone(),
        action,
        message: format!(
            "{} '{}' would be deleted, and the environment '{environment}' forbids every deletion",
            change.kind, change.name
        ),
        details: Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::{DagNode, NodeType};
    use crate::ownership::model::ResourceId;
    use crate::planner::fixtures::{World, job, topic};
    use crate::planner::flink::JobState;
    use crate::planner::needed;
    use crate::project::model::OwnershipMode;

    /// Unless something here makes it, or nobody knows whether it exists.
    #[test]
    fn a_job_whose_input_does_not_exist_is_not_submitted() {
        let codes = |world: &World| world.plan().blockers.iter().map(|blocker| blocker.code).collect::<Vec<_>>();
        let mut world = World::new().with_job(job("clean"), None);
        let node = |name: &str, node_type, upstream: &[&str]| {
            let upstream = upstream.iter().map(|name| (*name).to_owned()).collect();
            (
                name.to_owned(),
                DagNode { name: name.to_owned(), node_type, materialized: None, upstream, downstream: vec![] },
            )
        };
        world.dag.nodes.extend([
            node("raw", NodeType::Source, &[]),
            node("theirs", NodeType::Model, &[]),
            node("clean", NodeType::Model, &["raw", "theirs"]),
        ]);
        world.declared.source_topics.insert("raw".into(), "raw.v1".into());
        let mut external = topic("theirs.v1", 1, &[]);
        external.ownership.mode = OwnershipMode::External;
        world.artifacts.topics.push(external);
        assert_eq!(needed(&world.desired(), None).inputs, ["raw.v1", "theirs.v1"]);
        assert_eq!(codes(&world), []);
        for name in ["raw.v1", "theirs.v1"] {
            world.observations.absent_inputs = [name.to_owned()].into();
            assert_eq!(codes(&world), [BlockerCode::FlinkInputMissing], "{name}");
            assert!(world.plan().blockers[0].message.contains(name));
        }
        world.observations.absent_inputs = ["raw.v1".to_owned()].into();
        let made = world.with_topic(topic("raw.v1", 1, &[]), None);
        assert_eq!(codes(&made), [], "a model of this project makes it");
        let mut running = World::new().with_job(job("clean"), Some(JobState::Running)).owned();
        running.declared.source_topics.insert("raw".into(), "raw.v1".into());
        running.dag.nodes.extend([node("raw", NodeType::Source, &[]), node("clean", NodeType::Model, &["raw"])]);
        running.observations.absent_inputs = ["raw.v1".to_owned()].into();
        assert_eq!(codes(&running), [], "it runs");
    }

    fn change(kind: Kind, verb: Verb) -> Change {
        Change {
            kind,
            name: "orders".to_owned(),
            resource_id: ResourceId::new("shop", "prod", kind, "orders").expect("an id"),
            mode: OwnershipMode::Managed,
            verb: Some(verb),
            changes: Map::new(),
            diff: Diff::None,
            observed_verb: Some(verb),
            requirement: None,
            difference: None,
            record: None,
        }
    }

    /// SAF-069: topics, stateful jobs and whatever else is ever planned to be deleted; nothing but that.
    #[test]
    fn a_deletion_of_any_kind_is_blocked_where_the_environment_forbids_it() {
        let kinds =
            [Kind::Schema, Kind::Topic, Kind::FlinkJob, Kind::KafkaStreamsJob, Kind::Connector, Kind::GatewayRule];
        for kind in kinds {
            for (verb, deletes) in [
                (Verb::Delete, true),
                (Verb::Cancel, true),
                (Verb::Register, false),
                (Verb::Create, false),
                (Verb::Update, false),
                (Verb::Submit, false),
                (Verb::Adopt, false),
            ] {
                let found = |forbids_deletion| {
                    let world = World { forbids_deletion, ..World::new() };
                    blockers(&[change(kind, verb)], &[], &world.desired(), &BTreeSet::new())
                };
                assert_eq!(found(false), [], "{kind} {verb}");
                let codes: Vec<BlockerCode> = found(true).iter().map(|blocker| blocker.code).collect();
                assert_eq!(codes, vec![BlockerCode::DeletionForbidden; usize::from(deletes)], "{kind} {verb}");
            }
        }
    }
}
