//! The ownership state that a completed plan leaves.

use std::collections::BTreeSet;

use crate::compiler::canonical::Checksum;
use crate::planner::Plan;
use crate::planner::connector::{ConnectClusterBinding, ConnectorActionEvidence, ConnectorName};
use crate::planner::model::{Action, Verb};
use crate::project::model::OwnershipMode;

use super::control::{Control, ProgressEntry, ProgressStatus};
use super::error::StateError;
use super::model::{OwnershipRecord, OwnershipState, ResourceId};

/// A connector that was deleted, as its durable completion proves: the one thing that takes a record away.
///
/// ```compile_fail
/// use streamt::state::projection::ManagedConnectorResourceDeletion;
/// let by_hand = ManagedConnectorResourceDeletion { evidence: unimplemented!(), resource_id: unimplemented!() };
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagedConnectorResourceDeletion {
    resource_id: ResourceId,
    evidence: ConnectorActionEvidence,
}

impl ManagedConnectorResourceDeletion {
    /// Of every connector deletion that this operation durably completed.
    pub fn completed(control: &Control) -> Vec<Self> {
        let Some(intent) = control.intent() else { return Vec::new() };
        let succeeded =
            |entry: &&ProgressEntry| entry.status == ProgressStatus::Completed && entry.succeeded == Some(true);
        let actions = control.progress().iter().filter(succeeded).filter_map(|entry| {
            let action = intent.actions.get(entry.action_index as usize)?;
            (action.resource_id == entry.resource_id && action.action == entry.action).then_some(action)
        });
        actions.filter_map(Self::of).collect()
    }

    fn of(action: &Action) -> Option<Self> {
        let evidence = action.connector_evidence.clone().filter(|_| action.action == Verb::Delete)?;
        Some(Self { resource_id: action.resource_id.clone(), evidence })
    }

    pub fn resource_id(&self) -> &ResourceId {
        &self.resource_id
    }

    pub fn backend_identity(&self) -> &ConnectClusterBinding {
        self.evidence.binding()
    }

    pub fn connector_name(&self) -> &ConnectorName {
        self.evidence.connector_name()
    }

    pub fn prior_artifact_checksum(&self) -> &Checksum {
        self.evidence.prior_artifact_checksum()
    }

    /// Exactly one record, equal in all four facts.
    fn proves(&self, record: &OwnershipRecord) -> bool {
        record.ownership == OwnershipMode::Managed
            && record.backend == self.backend_identity().identity().as_str()
            && record.physical_name == self.connector_name().as_str()
            && record.artifact_checksum == *self.prior_artifact_checksum()
    }

    fn shares_locator(&self, record: &OwnershipRecord) -> bool {
        let bound = ConnectClusterBinding::parse(&record.backend);
        record.physical_name == self.connector_name().as_str()
            && bound.is_some_and(|bound| bound.endpoint() == self.backend_identity().endpoint())
    }
}

/// Prior records overlaid with those that the plan leaves, without those of proved deletions; prior records that are not
/// declared any more stay as they are. What the plan acts on changes its record only when its id is in `completed`, the ids
/// of actions that succeeded: a failed create leaves no record (SAF-013). None when nothing changes: nothing is written and
/// the serial stays. E411 when a deletion does not fit the one record that it is about.
pub fn project(
    prior: &OwnershipState,
    plan: &Plan,
    completed: &BTreeSet<ResourceId>,
    deletions: &[ManagedConnectorResourceDeletion],
) -> Result<Option<OwnershipState>, StateError> {
    let mut resources = prior.resources.clone();
    for change in &plan.changes {
        let Some(record) = &change.record else { continue };
        let stands = match change.verb {
            Some(_) => completed.contains(&change.resource_id),
            None => resources.contains_key(&change.resource_id),
        };
        if stands {
            resources.insert(change.resource_id.clone(), record.clone());
        }
    }
    for deletion in deletions {
        let id = &deletion.resource_id;
        let proved = prior.resources.get(id).is_some_and(|record| deletion.proves(record));
        let claimed = prior.resources.iter().any(|(other, record)| other != id && deletion.shares_locator(record));
        let wanted = plan.changes.iter().any(|change| {
            change.record.as_ref().is_some_and(|record| change.resource_id == *id || deletion.shares_locator(record))
        });
        let gone = proved && !claimed && !wanted && resources.remove(id).is_some();
        if !gone {
            return Err(StateError::invalid("a deletion does not fit the one record that it is about".to_owned()));
        }
    }
    let next = OwnershipState { serial: prior.serial + 1, resources, ..prior.clone() };
    Ok((next.resources != prior.resources).then_some(next))
}

/// The state that is left when every action succeeds, before any is started: whether it can be formed at all.
pub fn foresee(prior: &OwnershipState, plan: &Plan, actions: &[Action]) -> Result<Option<OwnershipState>, StateError> {
    let all = actions.iter().map(|action| action.resource_id.clone()).collect();
    let deletions: Vec<_> = actions.iter().filter_map(ManagedConnectorResourceDeletion::of).collect();
    project(prior, plan, &all, &deletions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::artifact::Kind;
    use crate::planner::Selection;
    use crate::planner::connector::testing as connectors;
    use crate::planner::fixtures::{World, id, live_topic, topic};
    use crate::state::control::Event;

    fn after(prior: &OwnershipState, plan: &Plan, completed: &BTreeSet<ResourceId>) -> Option<OwnershipState> {
        project(prior, plan, completed, &[]).unwrap()
    }

    fn all(plan: &Plan) -> BTreeSet<ResourceId> {
        plan.actions.iter().map(|action| action.resource_id.clone()).collect()
    }

    /// SAF-013, SAF-022
    #[test]
    fn a_created_resource_is_recorded_and_the_serial_steps_once() {
        let world = World::new().with_topic(topic("a.v1", 1, &[]), None).with_topic(topic("b.v1", 1, &[]), None);
        let plan = world.plan();
        let next = after(&world.state, &plan, &all(&plan)).unwrap();
        assert_eq!((next.serial, next.resources.len()), (1, 2));
        let record = &next.resources[&id(Kind::Topic, "a")];
        assert_eq!((record.physical_name.as_str(), record.backend.as_str()), ("a.v1", "direct-kafka"));
        assert_eq!(record.ownership, OwnershipMode::Managed);
        assert_eq!(record.artifact_checksum, Checksum::of(&world.artifacts.topics[0]).unwrap());

        let one = [id(Kind::Topic, "b")].into();
        let next = after(&world.state, &plan, &one).unwrap();
        assert_eq!(
            next.resources.keys().collect::<Vec<_>>(),
            [&id(Kind::Topic, "b")],
            "a failed create leaves no record"
        );
        assert_eq!(after(&world.state, &plan, &BTreeSet::new()), None);
    }

    #[test]
    fn an_unchanged_state_is_not_written_and_a_changed_declaration_is_remembered() {
        let mut world = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
        assert_eq!(after(&world.state, &world.plan(), &BTreeSet::new()), None);
        // The factor is part of the declaration, but never an action.
        world.artifacts.topics[0].replication_factor = 2;
        let plan = world.plan();
        assert!(!plan.has_changes());
        let next = after(&world.state, &plan, &BTreeSet::new()).unwrap();
        let checksum = Checksum::of(&world.artifacts.topics[0]).unwrap();
        assert_eq!(next.resources[&id(Kind::Topic, "a")].artifact_checksum, checksum);
        assert_eq!(next.serial, world.state.serial + 1);
    }

    /// SAF-002, SAF-020, SAF-036
    #[test]
    fn undeclared_external_and_unselected_records_stay_byte_for_byte() {
        let live = |name| Some(live_topic(name, 1, &[]));
        let mut world = World::new()
            .with_topic(topic("a.v1", 1, &[]), live("a.v1"))
            .with_topic(topic("b.v1", 1, &[]), live("b.v1"))
            .with_topic(topic("c.v1", 1, &[]), live("c.v1"))
            .with_topic(topic("d.v1", 4, &[]), live("d.v1"))
            .owned();
        world.artifacts.topics[3].partitions = 2;
        world.artifacts.topics[2].partitions = 2;
        world.artifacts.topics[1].ownership.mode = OwnershipMode::External;
        world.artifacts.topics.remove(0);
        world.selection = Some(Selection { models: ["d".to_owned()].into(), sources: BTreeSet::new() });
        let plan = world.plan();
        let next = after(&world.state, &plan, &all(&plan)).unwrap();
        for kept in ["a", "b", "c"] {
            let kept = id(Kind::Topic, kept);
            assert_eq!(next.resources[&kept], world.state.resources[&kept]);
        }
        let changed = id(Kind::Topic, "d");
        assert_ne!(next.resources[&changed], world.state.resources[&changed]);
    }

    /// SAF-014
    #[test]
    fn what_needs_adoption_is_never_recorded_by_an_apply() {
        let world = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[])));
        let claimed = [id(Kind::Topic, "a")].into();
        assert_eq!(after(&world.state, &world.plan(), &claimed), None);
    }

    /// A project with a topic, a kept connector, and the removal of another, all recorded as they are live.
    fn removal() -> World {
        let gone = connectors::connector("gone", &[]);
        let mut world = World::new()
            .with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[])))
            .with_connector(
                connectors::connector("kept", &[]),
                Some(connectors::live(&connectors::connector("kept", &[]))),
            )
            .with_connector(gone.clone(), Some(connectors::live(&gone)))
            .owned();
        world.artifacts.connectors.retain(|sink| sink.name != "gone");
        world.artifacts.connector_removals.push(connectors::tombstone(&gone));
        world.state.serial = 4;
        world
    }

    fn control(plan: &Plan, progress: &[(u32, bool)]) -> Control {
        let mut control = Control::clear(&crate::state::testing::address("local"));
        let intent = crate::state::testing::golden_intent(plan.actions.clone());
        (control, _) = control.apply(Event::Intent(intent.clone())).unwrap();
        for (index, succeeded) in progress {
            let at = || crate::state::testing::at(1);
            let started = ProgressEntry::started(&intent, *index, at()).unwrap();
            (control, _) = control.apply(Event::Progress(started)).unwrap();
            let completed = ProgressEntry::completed(&intent, *index, *succeeded, at()).unwrap();
            (control, _) = control.apply(Event::Progress(completed)).unwrap();
        }
        control
    }

    /// CRM-104, CRM-106, CRM-107, CRM-108
    #[test]
    fn only_a_durable_completion_takes_a_record_away_and_no_other_record_moves() {
        let world = removal();
        let plan = world.plan();
        assert_eq!(plan.actions.len(), 1);
        assert!(ManagedConnectorResourceDeletion::completed(&control(&plan, &[])).is_empty());
        assert!(ManagedConnectorResourceDeletion::completed(&control(&plan, &[(0, false)])).is_empty());
        assert_eq!(project(&world.state, &plan, &all(&plan), &[]).unwrap(), None, "the plan alone removes nothing");

        let deletions = ManagedConnectorResourceDeletion::completed(&control(&plan, &[(0, true)]));
        assert_eq!(deletions.len(), 1);
        let next = project(&world.state, &plan, &all(&plan), &deletions).unwrap().unwrap();
        assert_eq!(next.serial, world.state.serial + 1);
        let mut expected = world.state.resources.clone();
        expected.remove(&id(Kind::Connector, "gone")).unwrap();
        assert_eq!(next.resources, expected);
        assert_eq!(foresee(&world.state, &plan, &plan.actions).unwrap(), Some(next));
    }

    /// CRM-105
    #[test]
    fn a_deletion_fits_one_managed_record_in_all_four_facts_or_nothing_is_written() {
        let world = removal();
        let plan = world.plan();
        let deletions = ManagedConnectorResourceDeletion::completed(&control(&plan, &[(0, true)]));
        let gone = id(Kind::Connector, "gone");
        let refused = |change: &dyn Fn(&mut OwnershipState)| {
            let mut state = world.state.clone();
            change(&mut state);
            assert!(project(&state, &plan, &all(&plan), &deletions).is_err());
        };
        refused(&|state| {
            state.resources.remove(&gone).unwrap();
        });
        refused(&|state| state.resources.get_mut(&gone).unwrap().ownership = OwnershipMode::Adopted);
        refused(&|state| state.resources.get_mut(&gone).unwrap().physical_name = "other".into());
        refused(&|state| state.resources.get_mut(&gone).unwrap().backend = "kafka-connect".into());
        refused(&|state| state.resources.get_mut(&gone).unwrap().artifact_checksum = Checksum::of_bytes(b"x"));
        refused(&|state| {
            let mut second = state.resources[&gone].clone();
            second.backend = second.backend.replace(":primary:", ":other:");
            state.resources.insert(id(Kind::Connector, "again"), second);
        });
        let twice = [deletions[0].clone(), deletions[0].clone()];
        assert!(project(&world.state, &plan, &all(&plan), &twice).is_err());
        let mut wanted = removal();
        wanted.artifacts.connector_removals.clear();
        wanted.artifacts.connectors.push(connectors::connector("gone", &[]));
        assert!(project(&world.state, &wanted.plan(), &BTreeSet::new(), &deletions).is_err(), "it is declared");
    }
}
