//! The controls of the golden replacement of a runner.

use serde_json::json;

use super::*;
use crate::ownership::runner::testing::{OPERATION, RESUME, STORE, application, backend, checkpoints, evidence, job};
use crate::planner::model::{Action, Verb};
use crate::project::model::OwnershipMode;
use crate::state::model::{BackendKind, OwnershipRecord, OwnershipState, StoreIdentity};
use crate::state::scalar::Timestamp;
use crate::state::testing;

pub fn address() -> StateAddress {
    testing::address("local")
}

pub fn noon() -> Timestamp {
    Timestamp::parse("2026-09-05T12:00:00Z").unwrap()
}

pub fn store() -> StoreIdentity {
    StoreIdentity { backend: BackendKind::Local, store_id: STORE }
}

pub fn action() -> Action {
    Action {
        index: 0,
        resource_id: crate::ownership::runner::testing::resource(),
        action: Verb::Update,
        gateway_evidence: None,
        connector_evidence: None,
        kafka_streams_evidence: Some(Box::new(evidence())),
    }
}

/// Ownership of the job that keeps amounts of at least so much.
pub fn state(serial: u64, least: u32) -> OwnershipState {
    let record = OwnershipRecord {
        physical_name: application().as_str().to_owned(),
        ownership: OwnershipMode::Managed,
        artifact_checksum: Checksum::of(&job(least)).unwrap(),
        backend: backend().as_str().to_owned(),
    };
    let resources = [(action().resource_id, record)].into();
    OwnershipState { serial, resources, ..OwnershipState::empty("payments", "prod") }
}

pub fn prior() -> Checksum {
    state(1, 50).checksum().unwrap()
}

pub fn result() -> Checksum {
    state(2, 75).checksum().unwrap()
}

pub fn intent() -> Intent {
    Intent {
        operation_id: OPERATION,
        kind: OperationKind::Apply,
        started_at: noon(),
        actor: "local-cli".to_owned(),
        prior_state_serial: 1,
        prior_state_checksum: prior(),
        reviewed_plan_checksum: Checksum::parse(
            "sha256:2eb9b3a67078bf6134440c61309c7c223a4d0e82025a79b76fa7f261b9394927",
        ),
        actions: vec![action()],
    }
}

/// The five boundaries of a replacement that succeeds.
pub fn boundaries() -> Vec<ProgressEntry> {
    let intent = intent();
    let between = checkpoints().map(|checkpoint| ProgressEntry::checkpoint(&intent, checkpoint, noon()).unwrap());
    let mut all = vec![ProgressEntry::started(&intent, 0, noon()).unwrap()];
    all.extend(between);
    all.push(ProgressEntry::completed(&intent, 0, true, noon()).unwrap());
    all
}

/// In progress, behind so many boundaries.
pub fn behind(count: usize) -> Control {
    let begun = Control::clear(&address()).apply(Event::Intent(intent())).unwrap().0;
    boundaries().into_iter().take(count).fold(begun, |control, entry| control.apply(Event::Progress(entry)).unwrap().0)
}

pub fn interruption() -> RecoveryRecord {
    RecoveryRecord {
        operation_id: OPERATION,
        failure_code: FailureCode::RunnerOperationInterrupted,
        failed_at: noon(),
        last_completed_action_index: None,
        mutation_may_have_succeeded: true,
    }
}

/// Interrupted behind three boundaries.
pub fn interrupted() -> Control {
    behind(3).apply(Event::RecoveryRequired(interruption())).unwrap().0
}

pub fn resume() -> ResumeRecord {
    ResumeRecord {
        resume_id: RESUME,
        operation_id: OPERATION,
        address: address().to_string(),
        store: store(),
        prior_state_serial: 1,
        prior_state_checksum: prior(),
        source_control_checksum: interrupted().checksum().clone(),
        progress_count: 3,
        actor: "local-cli".to_owned(),
        resumed_at: noon(),
        recovery: interruption(),
    }
}

pub fn resumed() -> Control {
    interrupted().apply(Event::Resumed(Box::new(resume()))).unwrap().0
}

/// Resumed, and behind its last boundary.
pub fn terminal() -> Control {
    let rest = boundaries().split_off(3);
    rest.into_iter().fold(resumed(), |control, entry| control.apply(Event::Progress(entry)).unwrap().0)
}

pub fn completion() -> RunnerCompletion {
    let completion = json!({
        "operation_id": OPERATION, "address": address().to_string(), "store": store(), "control": terminal().to_value(),
        "prior_state_serial": 1, "prior_state_checksum": prior(), "result_state_serial": 2,
        "result_state_checksum": result(), "completed_at": noon(),
    });
    serde_json::from_value(completion).unwrap()
}
