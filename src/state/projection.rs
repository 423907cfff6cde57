//! The ownership state that a completed plan leaves.

use std::collections::BTreeSet;

use crate::planner::Plan;

use super::model::{OwnershipState, ResourceId};

/// Prior records overlaid with those that the plan leaves; prior records that are not declared any more stay as they are.
/// A resource without a prior record gets one only when its id is in `completed`, the ids of actions that succeeded (or
/// that are assumed to, when a state is projected beforehand): a failed create leaves no record (SAF-013). None when
/// nothing changes: nothing is written and the serial stays. No kind can be deleted yet; a proven deletion would be a further argument.
pub fn project(prior: &OwnershipState, plan: &Plan, completed: &BTreeSet<ResourceId>) -> Option<OwnershipState> {
    let mut resources = prior.resources.clone();
    for change in &plan.changes {
        let Some(record) = &change.record else { continue };
        if resources.contains_key(&change.resource_id) || completed.contains(&change.resource_id) {
            resources.insert(change.resource_id.clone(), record.clone());
        }
    }
    (resources != prior.resources).then(|| OwnershipState { serial: prior.serial + 1, resources, ..prior.clone() })
}
