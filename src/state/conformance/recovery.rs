//! What any store must do with a blocked operation that a person resolves.

use uuid::Uuid;

use super::*;
use crate::state::control::{AcceptedAs, RecoveryIntent, Resolution};
use crate::state::model::OwnershipState;

/// REC-004, REC-010, REC-011, REC-012, REC-013, REC-030, REC-036, REC-037, REC-038
pub fn all<F: Fresh>(stores: &F) {
    each_resolution_ends_a_blocked_operation(stores);
    a_completed_recovery_is_told_ever_after(stores);
    a_recovery_that_does_not_fit_is_refused_and_changes_nothing(stores);
}

/// Blocks an address: two creates, the first refused.
fn blocked<O: StateOperation>(operation: &mut O) -> (Snapshot, Intent) {
    let (snapshot, intent) = begin(operation, 2);
    let snapshot = operation.record_progress(snapshot, vec![started(&intent, 0), started(&intent, 1)]).unwrap();
    let snapshot =
        operation.record_progress(snapshot, vec![completed(&intent, 0, false), completed(&intent, 1, true)]).unwrap();
    let record = recovery(&intent, FailureCode::RuntimeActionFailed, Some(1));
    (operation.mark_recovery_required(snapshot, record).unwrap(), intent)
}

fn each_resolution_ends_a_blocked_operation<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    for (resolution, changed) in [
        (Resolution::Observed, true),
        (Resolution::Observed, false),
        (Resolution::RolledBack, false),
        (Resolution::AbandonedBeforeMutation, false),
    ] {
        let mut operation = acquire(&backend, &address);
        let snapshot = match resolution {
            Resolution::AbandonedBeforeMutation => begin(&mut operation, 1).0,
            Resolution::Observed | Resolution::RolledBack => blocked(&mut operation).0,
        };
        let prior = snapshot.state.clone();
        let next = changed.then(|| owning(&snapshot, "orders"));
        let accepted = if changed { AcceptedAs::Candidate } else { AcceptedAs::Prior };
        let intent = recovery_intent(&snapshot, resolution, accepted, next.as_ref());
        let id = intent.record.recovery_operation_id;
        assert_eq!(operation.resolution(id).unwrap(), None);
        let after = operation.finalize_recovery(snapshot, intent.clone(), next).unwrap();
        after.ensure_clear().unwrap();
        assert_eq!(after.state.state.serial, prior.state.serial + u64::from(changed), "{resolution}");
        assert_eq!(after.state.checksum == prior.checksum, !changed, "{resolution}");
        assert_eq!(operation.resolution(id).unwrap(), Some(intent.record));
        assert_eq!(operation.observe().unwrap(), after);
        operation.release().unwrap();
        assert_eq!(backend.read_snapshot(&address).unwrap(), after);
    }
}

fn a_completed_recovery_is_told_ever_after<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, blocked_intent) = blocked(&mut operation);
    let first = recovery_intent(&snapshot, Resolution::RolledBack, AcceptedAs::Prior, None);
    let seen = operation.finalize_recovery(snapshot.clone(), first.clone(), None).unwrap();
    // The old snapshot starts nothing any more, neither the same recovery nor another one.
    let again = recovery_intent(&snapshot, Resolution::RolledBack, AcceptedAs::Prior, None);
    for late in [first.clone(), again] {
        assert_eq!(kind(operation.finalize_recovery(snapshot.clone(), late, None)), StateErrorKind::Conflict);
        assert_eq!(operation.observe().unwrap(), seen);
    }
    let (later, _) = begin(&mut operation, 0);
    let later = operation.commit(later.clone(), Some(owning(&later, "orders")), at(4)).unwrap();
    assert_eq!(operation.resolution(first.record.recovery_operation_id).unwrap(), Some(first.record));
    assert_eq!(operation.resolution(Uuid::new_v4()).unwrap(), None);
    let reused = Intent { operation_id: blocked_intent.operation_id, ..intent(&later, Vec::new()) };
    assert!(operation.begin(later.clone(), reused).is_err(), "the id of a resolved operation is taken");
    assert_eq!(operation.observe().unwrap(), later);
}

fn a_recovery_that_does_not_fit_is_refused_and_changes_nothing<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let clear = operation.observe().unwrap();
    let (snapshot, _) = blocked(&mut operation);
    let next = owning(&snapshot, "orders");
    let good = recovery_intent(&snapshot, Resolution::Observed, AcceptedAs::Candidate, Some(&next));
    let mut refused = |change: &dyn Fn(&mut RecoveryIntent), state: Option<OwnershipState>| {
        let mut intent = good.clone();
        change(&mut intent);
        assert_eq!(kind(operation.finalize_recovery(snapshot.clone(), intent, state)), StateErrorKind::InvalidState);
        assert_eq!(operation.observe().unwrap(), snapshot);
    };
    let some = || Some(next.clone());
    refused(&|_| {}, None);
    refused(&|i| i.record.result_state_serial += 1, some());
    refused(&|i| i.record.resolution = Resolution::RolledBack, some());
    refused(&|i| i.record.resolution = Resolution::AbandonedBeforeMutation, some());
    refused(&|i| i.record.blocked_operation_id = Uuid::new_v4(), some());
    refused(&|i| i.record.recovery_operation_id = i.record.blocked_operation_id, some());
    refused(&|i| i.control_checksum = clear.control.control.checksum().clone(), some());
    refused(&|i| i.targets.truncate(1), some());
    refused(&|i| i.targets.swap(0, 1), some());
    assert_eq!(
        kind(operation.finalize_recovery(clear, good.clone(), some())),
        StateErrorKind::InvalidState,
        "nothing is pending in that snapshot"
    );
    operation.finalize_recovery(snapshot, good, some()).unwrap();
}
