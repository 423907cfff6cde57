//! From changes to the durable actions, in the order in which they are applied.

use super::model::{Action, Change, Diff};

/// One action a change that does something, numbered from 0. The caller has put the changes in the order of application.
pub(super) fn actions(changes: &[Change]) -> Vec<Action> {
    let active = changes.iter().filter_map(|change| Some((change, change.verb?)));
    (0..)
        .zip(active)
        .map(|(index, (change, action))| Action {
            index,
            resource_id: change.resource_id.clone(),
            action,
            gateway_evidence: None,
            connector_evidence: match &change.diff {
                Diff::ConnectorRemoval(evidence) => Some(evidence.as_ref().clone()),
                Diff::None | Diff::Topic(_) | Diff::Schema(_) | Diff::Connector(_) | Diff::Job(_) => None,
            },
            kafka_streams_evidence: None,
        })
        .collect()
}
