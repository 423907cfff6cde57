//! The ownership state that a completed plan leaves.

use std::collections::BTreeSet;

use crate::planner::Plan;

use super::model::{OwnershipState, ResourceId};

/// Prior records overlaid with those that the plan leaves; prior records that are not declared any more stay as they are.
/// What the plan acts on changes its record only when its id is in `completed`, the ids of actions that succeeded (or that
/// are assumed to, when a state is projected beforehand): a failed create leaves no record (SAF-013). None when
/// nothing changes: nothing is written and the serial stays. No kind can be deleted yet; a proven deletion would be a further argument.
pub fn project(prior: &OwnershipState, plan: &Plan, completed: &BTreeSet<ResourceId>) -> Option<OwnershipState> {
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
    (resources != prior.resources).then(|| OwnershipState { serial: prior.serial + 1, resources, ..prior.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::artifact::Kind;
    use crate::compiler::canonical::Checksum;
    use crate::planner::Selection;
    use crate::planner::fixtures::{World, id, live_topic, topic};
    use crate::project::model::OwnershipMode;

    fn all(plan: &Plan) -> BTreeSet<ResourceId> {
        plan.actions.iter().map(|action| action.resource_id.clone()).collect()
    }

    /// SAF-013, SAF-022
    #[test]
    fn a_created_resource_is_recorded_and_the_serial_steps_once() {
        let world = World::new().with_topic(topic("a.v1", 1, &[]), None).with_topic(topic("b.v1", 1, &[]), None);
        let plan = world.plan();
        let next = project(&world.state, &plan, &all(&plan)).unwrap();
        assert_eq!((next.serial, next.resources.len()), (1, 2));
        let record = &next.resources[&id(Kind::Topic, "a")];
        assert_eq!((record.physical_name.as_str(), record.backend.as_str()), ("a.v1", "direct-kafka"));
        assert_eq!(record.ownership, OwnershipMode::Managed);
        assert_eq!(record.artifact_checksum, Checksum::of(&world.artifacts.topics[0]).unwrap());

        let one = [id(Kind::Topic, "b")].into();
        let next = project(&world.state, &plan, &one).unwrap();
        assert_eq!(
            next.resources.keys().collect::<Vec<_>>(),
            [&id(Kind::Topic, "b")],
            "a failed create leaves no record"
        );
        assert_eq!(project(&world.state, &plan, &BTreeSet::new()), None);
    }

    #[test]
    fn an_unchanged_state_is_not_written_and_a_changed_declaration_is_remembered() {
        let mut world = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
        assert_eq!(project(&world.state, &world.plan(), &BTreeSet::new()), None);
        // The factor is part of the declaration, but never an action.
        world.artifacts.topics[0].replication_factor = 2;
        let plan = world.plan();
        assert!(!plan.has_changes());
        let next = project(&world.state, &plan, &BTreeSet::new()).unwrap();
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
        let next = project(&world.state, &plan, &all(&plan)).unwrap();
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
        assert_eq!(project(&world.state, &world.plan(), &claimed), None);
    }
}
