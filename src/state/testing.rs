//! Builders for tests of everything that moves deployment state.

use proptest::prelude::*;
use uuid::Uuid;

use crate::compiler::artifact::Kind;
use crate::compiler::canonical::Checksum;
use crate::planner::model::{Action, Verb};
use crate::project::model::OwnershipMode;

use super::control::{
    AcceptedAs, Control, Event, FailureCode, Intent, OperationKind, Presence, ProgressEntry, RecoveryIntent,
    RecoveryRecord, Resolution, ResolutionRecord, Target,
};
use super::model::{BackendKind, OwnershipRecord, OwnershipState, ResourceId, StateAddress, StoreIdentity};
use super::scalar::Timestamp;
use super::store::{ControlObservation, Revision, Snapshot, StateObservation};

/// The operation of the golden vectors.
pub const OPERATION: Uuid = Uuid::from_u128(0x6f1c_1d0e_3b1a_4c52_9d59_0d9f_7a1c_2b30);

pub fn address(namespace: &str) -> StateAddress {
    StateAddress { namespace: namespace.into(), project: "payments".into(), environment: "prod".into() }
}

/// 10:00 and so many seconds of one day.
pub fn at(second: u32) -> Timestamp {
    Timestamp::parse(&format!("2026-09-06T10:{:02}:{:02}.000000Z", second / 60, second % 60)).unwrap()
}

pub fn id(kind: Kind, name: &str) -> ResourceId {
    ResourceId::new("payments", "prod", kind, name).unwrap()
}

/// Actions numbered from 0.
pub fn actions(list: &[(Verb, Kind, &str)]) -> Vec<Action> {
    list.iter()
        .zip(0..)
        .map(|((verb, kind, name), index)| Action {
            index,
            resource_id: id(*kind, name),
            action: *verb,
            gateway_evidence: None,
            connector_evidence: None,
            kafka_streams_evidence: None,
        })
        .collect()
}

pub fn topic_creates(count: usize) -> Vec<Action> {
    let names: Vec<String> = (0..count).map(|index| format!("topic-{index}")).collect();
    actions(&names.iter().map(|name| (Verb::Create, Kind::Topic, name.as_str())).collect::<Vec<_>>())
}

pub fn empty_state_checksum() -> Checksum {
    OwnershipState::empty("payments", "prod").checksum().unwrap()
}

/// The intent of the golden vectors, with other actions.
pub fn golden_intent(actions: Vec<Action>) -> Intent {
    Intent {
        operation_id: OPERATION,
        kind: OperationKind::Apply,
        started_at: at(0),
        actor: "local-cli".into(),
        prior_state_serial: 0,
        prior_state_checksum: empty_state_checksum(),
        reviewed_plan_checksum: None,
        actions,
    }
}

/// Nothing owned and nothing pending, in a store of no one's.
pub fn clear_snapshot(address: &StateAddress) -> Snapshot {
    let state = OwnershipState::empty(&address.project, &address.environment);
    Snapshot {
        state: StateObservation {
            store: StoreIdentity { backend: BackendKind::Local, store_id: Uuid::nil() },
            address: address.clone(),
            checksum: state.checksum().unwrap(),
            state: std::sync::Arc::new(state),
            revision: Revision::Absent,
        },
        control: ControlObservation { control: Control::clear(address), revision: Revision::Absent },
    }
}

/// A new operation that starts from a snapshot.
pub fn intent(snapshot: &Snapshot, actions: Vec<Action>) -> Intent {
    Intent {
        operation_id: Uuid::new_v4(),
        prior_state_serial: snapshot.state.state.serial,
        prior_state_checksum: snapshot.state.checksum.clone(),
        ..golden_intent(actions)
    }
}

pub fn started(intent: &Intent, index: u32) -> ProgressEntry {
    ProgressEntry::started(intent, index, at(1)).unwrap()
}

pub fn completed(intent: &Intent, index: u32, succeeded: bool) -> ProgressEntry {
    ProgressEntry::completed(intent, index, succeeded, at(2)).unwrap()
}

pub fn recovery(intent: &Intent, code: FailureCode, last: Option<u32>) -> RecoveryRecord {
    RecoveryRecord {
        operation_id: intent.operation_id,
        failure_code: code,
        failed_at: at(3),
        last_completed_action_index: last,
        mutation_may_have_succeeded: true,
    }
}

/// A recovery of what a snapshot is blocked by, with every target in the same form; none when abandoned. `next` = the ownership
/// that it leaves.
pub fn recovery_intent(
    snapshot: &Snapshot,
    resolution: Resolution,
    accepted_as: AcceptedAs,
    next: Option<&OwnershipState>,
) -> RecoveryIntent {
    let (state, control) = (&snapshot.state, &snapshot.control.control);
    let blocked = control.intent().unwrap();
    let presence = match accepted_as {
        AcceptedAs::Prior => Presence::Absent,
        AcceptedAs::Candidate => Presence::Present,
    };
    let target = |action: &Action| Target {
        action: action.clone(),
        presence,
        accepted_as,
        fingerprint: Checksum::of_bytes(action.resource_id.as_str().as_bytes()),
    };
    let record = ResolutionRecord {
        address: state.address.to_string(),
        blocked_operation_id: blocked.operation_id,
        evidence_checksum: Checksum::of_bytes(b"evidence"),
        prior_state_checksum: state.checksum.clone(),
        prior_state_serial: state.state.serial,
        recovery_operation_id: Uuid::new_v4(),
        resolution,
        resolved_at: at(5),
        result_state_checksum: next.map_or_else(|| state.checksum.clone(), |next| next.checksum().unwrap()),
        result_state_serial: next.map_or(state.state.serial, |next| next.serial),
        state_changed: next.is_some(),
    };
    RecoveryIntent {
        control_checksum: control.checksum().clone(),
        record,
        targets: if resolution.observes() { blocked.actions.iter().map(target).collect() } else { Vec::new() },
    }
}

pub fn record(physical_name: &str) -> OwnershipRecord {
    OwnershipRecord {
        physical_name: physical_name.into(),
        ownership: OwnershipMode::Managed,
        artifact_checksum: Checksum::of_bytes(physical_name.as_bytes()),
        backend: super::model::KAFKA_BACKEND.into(),
    }
}

/// The next state of a snapshot, with one more topic owned.
pub fn owning(snapshot: &Snapshot, topic: &str) -> OwnershipState {
    let mut state = (*snapshot.state.state).clone();
    state.serial += 1;
    state.resources.insert(id(Kind::Topic, topic), record(topic));
    state
}

/// The actions of any operation on topics, and the lengths of the blocks they run in.
pub fn operation() -> impl Strategy<Value = (Vec<Action>, Vec<usize>)> {
    proptest::collection::vec((any::<bool>(), 1_usize..5), 0..8).prop_map(|blocks| {
        let mut list = Vec::new();
        let mut sizes = Vec::new();
        for (create, size) in blocks {
            let size = if create { size } else { 1 };
            for _ in 0..size {
                let verb = if create { Verb::Create } else { Verb::Update };
                list.push((verb, Kind::Topic, format!("topic-{}", list.len())));
            }
            sizes.push(size);
        }
        let list: Vec<_> = list.iter().map(|(verb, kind, name)| (*verb, *kind, name.as_str())).collect();
        (actions(&list), sizes)
    })
}

/// The steps of an operation after its intent, up to the block with the action that fails.
pub fn steps(intent: &Intent, sizes: &[usize], failing: Option<u32>) -> Vec<Vec<Event>> {
    let mut steps = Vec::new();
    let mut next = 0_u32;
    for size in sizes {
        let members = next..next + u32::try_from(*size).unwrap();
        steps.push(members.clone().map(|index| Event::Progress(started(intent, index))).collect());
        let outcome = |index| Event::Progress(completed(intent, index, failing != Some(index)));
        steps.push(members.clone().map(outcome).collect());
        if failing.is_some_and(|index| members.contains(&index)) {
            break;
        }
        next = members.end;
    }
    steps
}
