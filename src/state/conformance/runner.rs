//! The replacement of a runner: a control of version 4, stored boundary by boundary as any other.

use super::*;
use crate::ownership::runner::Checkpoint;
use crate::ownership::runner::testing::{docker_id, evidence, progress};
use crate::state::control::runner_testing::{action, interruption, noon, state};
use crate::state::control::{ProgressEntry, RecoveryRecord};

pub fn all<F: Fresh>(stores: &F) {
    a_replacement_is_stored_boundary_by_boundary(stores);
    an_interrupted_replacement_blocks_its_address(stores);
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

fn a_replacement_is_stored_boundary_by_boundary<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let snapshot = operation.observe().unwrap();
    let intent = replacement(&snapshot);
    let mut snapshot = operation.begin(snapshot, intent.clone()).unwrap();
    for entry in boundaries(&intent) {
        assert_eq!(snapshot.control.control.version(), 4);
        assert_eq!(backend.read_snapshot(&address).unwrap(), snapshot);
        snapshot = operation.record_progress(snapshot, vec![entry]).unwrap();
        assert_eq!(operation.observe().unwrap(), snapshot);
    }
    let unchanged = operation.commit(snapshot.clone(), None, at(4));
    assert_eq!(kind(unchanged), StateErrorKind::InvalidState, "a replacement changes ownership");
    let snapshot = operation.commit(snapshot, Some(state(1, 75)), at(4)).unwrap();
    assert_eq!(backend.read_snapshot(&address).unwrap(), snapshot);
    assert_eq!((snapshot.control.control.version(), snapshot.state.state.serial), (3, 1));
}

fn an_interrupted_replacement_blocks_its_address<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let snapshot = operation.observe().unwrap();
    let intent = replacement(&snapshot);
    let mut snapshot = operation.begin(snapshot, intent.clone()).unwrap();
    for entry in boundaries(&intent).into_iter().take(2) {
        snapshot = operation.record_progress(snapshot, vec![entry]).unwrap();
    }
    let record = RecoveryRecord { operation_id: intent.operation_id, ..interruption() };
    let snapshot = operation.mark_recovery_required(snapshot, record).unwrap();
    operation.release().unwrap();
    let mut next = acquire(&backend, &address);
    assert_eq!(next.observe().unwrap(), snapshot);
    assert!(matches!(kind(next.ensure_ready(&snapshot)), StateErrorKind::RecoveryRequired(_)));
}
