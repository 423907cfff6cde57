//! The replacement of a runner: a control of version 4, stored boundary by boundary as any other.

use uuid::Uuid;

use super::*;
use crate::ownership::runner::Checkpoint;
use crate::ownership::runner::testing::{docker_id, evidence, progress};
use crate::state::control::runner_testing::{action, interruption, noon, resume, state};
use crate::state::control::{ProgressEntry, RecoveryRecord, ResumeRecord, RunnerCompletion};

pub fn all<F: Fresh>(stores: &F) {
    a_replacement_is_stored_boundary_by_boundary(stores);
    a_replacement_changes_the_record_of_its_runner_alone(stores);
    an_interrupted_replacement_blocks_its_address(stores);
    an_interrupted_replacement_is_resumed_and_leaves_a_receipt(stores);
}

/// An address that owns the runner to replace.
fn owned<O: StateOperation>(operation: &mut O) -> Snapshot {
    let snapshot = operation.observe().unwrap();
    let first = intent(&snapshot, Vec::new());
    let snapshot = operation.begin(snapshot, first).unwrap();
    operation.commit(snapshot, Some(state(1, 50)), at(0)).unwrap()
}

/// A replacement that starts from a snapshot.
pub fn replacement(snapshot: &Snapshot) -> Intent {
    let reviewed_plan_checksum = Some(snapshot.state.checksum.clone());
    Intent { reviewed_plan_checksum, ..intent(snapshot, vec![action()]) }
}

/// Its five boundaries.
pub fn boundaries(intent: &Intent) -> Vec<ProgressEntry> {
    let (evidence, id) = (evidence(), intent.operation_id);
    let mut all = vec![started(intent, 0)];
    all.extend(
        [
            Checkpoint::old_closed(&evidence, id, 0, 0, progress(20, 0)),
            Checkpoint::old_removed(&evidence, id, 0),
            Checkpoint::replacement_created(&evidence, id, 0, docker_id('d')),
        ]
        .map(|checkpoint| ProgressEntry::checkpoint(intent, checkpoint, noon()).unwrap()),
    );
    all.push(completed(intent, 0, true));
    all
}

/// A resumption of what a snapshot was interrupted at.
pub fn resumption(snapshot: &Snapshot) -> ResumeRecord {
    let control = &snapshot.control.control;
    let intent = control.intent().unwrap();
    ResumeRecord {
        resume_id: Uuid::new_v4(),
        operation_id: intent.operation_id,
        address: snapshot.state.address.to_string(),
        store: snapshot.state.store.clone(),
        prior_state_serial: intent.prior_state_serial,
        prior_state_checksum: intent.prior_state_checksum.clone(),
        source_control_checksum: control.checksum().clone(),
        progress_count: u32::try_from(control.progress().len()).unwrap(),
        recovery: control.recovery().unwrap().clone(),
        ..resume()
    }
}

/// In progress, behind so many boundaries; and the boundaries that are left.
fn behind<O: StateOperation>(operation: &mut O, count: usize) -> (Snapshot, Vec<ProgressEntry>) {
    let snapshot = owned(operation);
    let intent = replacement(&snapshot);
    let mut rest = boundaries(&intent);
    let left = rest.split_off(count);
    let begun = operation.begin(snapshot, intent).unwrap();
    let record = |snapshot, entry| operation.record_progress(snapshot, vec![entry]).unwrap();
    (rest.into_iter().fold(begun, record), left)
}

/// A replacement from its intent to its end; the id of its operation.
pub fn replaced<B: StateBackend>(backend: &B, address: &StateAddress) -> Uuid {
    let mut operation = acquire(backend, address);
    let (snapshot, _) = behind(&mut operation, 5);
    let operation_id = snapshot.control.control.operation_id().unwrap();
    operation.commit(snapshot, Some(state(2, 75)), at(4)).unwrap();
    operation.release().unwrap();
    operation_id
}

fn stop<O: StateOperation>(operation: &mut O, snapshot: Snapshot) -> Snapshot {
    let operation_id = snapshot.control.control.operation_id().unwrap();
    operation.mark_recovery_required(snapshot, RecoveryRecord { operation_id, ..interruption() }).unwrap()
}

fn a_replacement_is_stored_boundary_by_boundary<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (mut snapshot, left) = behind(&mut operation, 0);
    let operation_id = snapshot.control.control.operation_id().unwrap();
    for entry in left {
        assert_eq!(snapshot.control.control.version(), 4);
        assert_eq!(backend.read_snapshot(&address).unwrap(), snapshot);
        snapshot = operation.record_progress(snapshot, vec![entry]).unwrap();
        assert_eq!(operation.observe().unwrap(), snapshot);
    }
    assert_eq!(operation.completion(operation_id).unwrap(), None);
    let terminal = snapshot.control.control.to_value();
    let snapshot = operation.commit(snapshot, Some(state(2, 75)), at(4)).unwrap();
    assert_eq!(backend.read_snapshot(&address).unwrap(), snapshot);
    assert_eq!((snapshot.control.control.version(), snapshot.state.state.serial), (3, 2));
    let receipt = operation.completion(operation_id).unwrap().unwrap();
    assert_eq!((&receipt.control, receipt.result_state_serial), (&terminal, 2));
    assert_eq!(operation.completion(Uuid::new_v4()).unwrap(), None);
}

fn a_replacement_changes_the_record_of_its_runner_alone<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, _) = behind(&mut operation, 5);
    let mut more = state(2, 75);
    more.resources.insert(id(Kind::Topic, "orders"), record("orders"));
    let mut moved = state(2, 75);
    moved.resources.values_mut().for_each(|record| record.physical_name = "elsewhere".into());
    let none = crate::state::model::OwnershipState { resources: Default::default(), ..state(2, 75) };
    for next in [None, Some(state(2, 60)), Some(state(3, 75)), Some(more), Some(moved), Some(none)] {
        assert_eq!(kind(operation.commit(snapshot.clone(), next, at(4))), StateErrorKind::InvalidState);
        assert_eq!(operation.observe().unwrap(), snapshot);
    }
    operation.commit(snapshot, Some(state(2, 75)), at(4)).unwrap();
}

fn an_interrupted_replacement_blocks_its_address<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, _) = behind(&mut operation, 2);
    let snapshot = stop(&mut operation, snapshot);
    operation.release().unwrap();
    let mut next = acquire(&backend, &address);
    assert_eq!(next.observe().unwrap(), snapshot);
    assert!(matches!(kind(next.ensure_ready(&snapshot)), StateErrorKind::RecoveryRequired(_)));
}

/// Twice, by holders that know what is stored and nothing else; the second stop comes behind the last boundary.
fn an_interrupted_replacement_is_resumed_and_leaves_a_receipt<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, left) = behind(&mut operation, 3);
    let operation_id = snapshot.control.control.operation_id().unwrap();
    let stopped = stop(&mut operation, snapshot);
    operation.release().unwrap();

    let mut operation = acquire(&backend, &address);
    let good = resumption(&stopped);
    let mut refused = |change: &dyn Fn(&mut ResumeRecord)| {
        let mut record = good.clone();
        change(&mut record);
        assert_eq!(kind(operation.resume(stopped.clone(), record)), StateErrorKind::InvalidState);
        assert_eq!(operation.pending_resume(&stopped).unwrap(), None, "what is refused is not kept");
        assert_eq!(operation.observe().unwrap(), stopped);
    };
    refused(&|record| record.progress_count = 2);
    refused(&|record| record.store.store_id = Uuid::new_v4());
    refused(&|record| record.source_control_checksum = record.prior_state_checksum.clone());
    let resumed = operation.resume(stopped, good.clone()).unwrap();
    assert_eq!((resumed.control.control.version(), resumed.control.control.resumes()), (5, &[good][..]));
    assert_eq!(operation.pending_resume(&resumed).unwrap(), None);
    operation.release().unwrap();
    assert_eq!(backend.read_snapshot(&address).unwrap(), resumed);

    let mut operation = acquire(&backend, &address);
    assert_eq!(operation.observe().unwrap(), resumed);
    let record = |snapshot, entry| operation.record_progress(snapshot, vec![entry]).unwrap();
    let terminal = left.into_iter().fold(resumed, record);
    let last = RecoveryRecord { operation_id, last_completed_action_index: Some(0), ..interruption() };
    let stopped = operation.mark_recovery_required(terminal, last).unwrap();
    assert_eq!(kind(operation.resume(stopped.clone(), resumption(&stopped))), StateErrorKind::InvalidState);
    let done = operation.commit(stopped.clone(), Some(state(2, 75)), at(9)).unwrap();
    operation.release().unwrap();
    assert_eq!(backend.read_snapshot(&address).unwrap(), done);
    assert!(done.control.control.is_clear() && *done.state.state == state(2, 75));

    let mut operation = acquire(&backend, &address);
    assert_eq!(operation.observe().unwrap(), done);
    let receipt = operation.completion(operation_id).unwrap().unwrap();
    let expected = RunnerCompletion {
        operation_id,
        address: address.to_string(),
        store: done.state.store.clone(),
        control: stopped.control.control.to_value(),
        prior_state_serial: 1,
        prior_state_checksum: stopped.state.checksum.clone(),
        result_state_serial: 2,
        result_state_checksum: done.state.checksum.clone(),
        completed_at: at(9),
    };
    assert_eq!(receipt, expected);
}
