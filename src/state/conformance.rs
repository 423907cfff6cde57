//! What any store must do, whatever keeps its bytes. A store's tests call [`all`] with a maker of fresh, empty addresses.

mod recovery;
pub mod runner;

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::control::{AcceptedAs, FailureCode, Intent, MAX_GROUP, OperationKind, Resolution, Status};
use super::error::{Durable, StateError, StateErrorKind};
use super::model::StateAddress;
use super::store::{Revision, Snapshot, StateBackend, StateOperation};
use super::testing::*;
use crate::codes::Code;
use crate::compiler::artifact::Kind;
use crate::planner::model::Verb;

/// A store, and an address of the project `payments`, environment `prod`, that nobody used.
pub trait Fresh {
    type Backend: StateBackend;

    fn fresh(&self) -> (Self::Backend, StateAddress);
}

/// SAF-021, SAF-025, SAF-027, SAF-028, SAF-029, SAF-030, SAF-071
pub fn all<F: Fresh>(stores: &F) {
    nothing_stored_is_an_empty_clear_state(stores);
    every_step_returns_what_a_fresh_read_gives(stores);
    a_group_is_recorded_in_two_steps(stores);
    unchanged_ownership_keeps_its_serial(stores);
    an_operation_without_actions_is_durable_too(stores);
    an_adoption_is_claimed_whole_in_one_step(stores);
    a_stale_snapshot_is_refused_and_changes_nothing(stores);
    a_step_out_of_order_is_refused_and_changes_nothing(stores);
    a_failed_action_blocks_the_address_until_it_is_resolved(stores);
    an_abandoned_operation_blocks_the_address(stores);
    an_intent_can_be_taken_back_only_before_its_first_action(stores);
    the_lock_excludes_and_its_wait_is_bounded(stores);
    the_next_state_keeps_its_rules(stores);
    an_operation_too_large_for_its_record_is_refused_before_anything_is_written(stores);
    recovery::all(stores);
    runner::all(stores);
}

const SOON: Duration = Duration::from_secs(10);

fn acquire<B: StateBackend>(backend: &B, address: &StateAddress) -> B::Operation {
    backend.acquire(address, SOON, &CancellationToken::new()).unwrap()
}

fn kind<T: std::fmt::Debug>(result: Result<T, StateError>) -> StateErrorKind {
    result.unwrap_err().kind
}

/// Begins an operation that creates `count` topics.
fn begin<O: StateOperation>(operation: &mut O, count: usize) -> (Snapshot, Intent) {
    let snapshot = operation.observe().unwrap();
    let intent = intent(&snapshot, topic_creates(count));
    (operation.begin(snapshot, intent.clone()).unwrap(), intent)
}

fn nothing_stored_is_an_empty_clear_state<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let seen = backend.read_snapshot(&address).unwrap();
    assert_eq!((seen.state.state.serial, &seen.state.revision), (0, &Revision::Absent));
    assert!(seen.state.state.resources.is_empty());
    assert_eq!(seen.state.checksum, empty_state_checksum());
    assert_eq!(seen.state.store, backend.describe().unwrap());
    seen.ensure_clear().unwrap();
    let mut operation = acquire(&backend, &address);
    assert_eq!(operation.observe().unwrap(), seen);
    operation.ensure_ready(&seen).unwrap();
    operation.check_lock().unwrap();
    operation.release().unwrap();
    assert_eq!(backend.read_snapshot(&address).unwrap(), seen, "reading under the lock writes nothing");
}

fn every_step_returns_what_a_fresh_read_gives<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    for serial in 1..=3 {
        let mut operation = acquire(&backend, &address);
        let (mut snapshot, intent) = begin(&mut operation, 2);
        let same = |snapshot: &Snapshot, operation: &mut <F::Backend as StateBackend>::Operation| {
            assert_eq!(backend.read_snapshot(&address).unwrap(), *snapshot);
            assert_eq!(operation.observe().unwrap(), *snapshot);
        };
        for index in 0..2 {
            same(&snapshot, &mut operation);
            snapshot = operation.record_progress(snapshot, vec![started(&intent, index)]).unwrap();
            same(&snapshot, &mut operation);
            snapshot = operation.record_progress(snapshot, vec![completed(&intent, index, true)]).unwrap();
        }
        same(&snapshot, &mut operation);
        let next = owning(&snapshot, &format!("orders-{serial}"));
        snapshot = operation.commit(snapshot, Some(next.clone()), at(4)).unwrap();
        same(&snapshot, &mut operation);
        assert_eq!(*snapshot.state.state, next);
        assert_eq!((snapshot.state.state.serial, snapshot.state.state.resources.len() as u64), (serial, serial));
        snapshot.ensure_clear().unwrap();
        operation.release().unwrap();
    }
}

fn a_group_is_recorded_in_two_steps<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, intent) = begin(&mut operation, MAX_GROUP);
    let members = 0..MAX_GROUP as u32;
    let begun = members.clone().map(|index| started(&intent, index)).collect();
    let snapshot = operation.record_progress(snapshot, begun).unwrap();
    let ended = members.clone().map(|index| completed(&intent, index, index != 7)).collect();
    let snapshot = operation.record_progress(snapshot, ended).unwrap();
    assert_eq!(snapshot.control.control.progress().len(), 2 * MAX_GROUP);
    assert_eq!(snapshot.control.control.last_completed_action_index(), members.last());
    assert_eq!(operation.observe().unwrap(), snapshot);
    assert_eq!(kind(operation.commit(snapshot, None, at(4))), StateErrorKind::InvalidState);
}

fn unchanged_ownership_keeps_its_serial<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, intent) = begin(&mut operation, 1);
    let snapshot = operation.record_progress(snapshot, vec![started(&intent, 0)]).unwrap();
    let snapshot = operation.record_progress(snapshot, vec![completed(&intent, 0, true)]).unwrap();
    let snapshot = operation.commit(snapshot, None, at(4)).unwrap();
    assert_eq!((snapshot.state.state.serial, &snapshot.state.revision), (0, &Revision::Absent));
    snapshot.ensure_clear().unwrap();
    assert_eq!(operation.observe().unwrap(), snapshot);
}

fn an_operation_without_actions_is_durable_too<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, intent) = begin(&mut operation, 0);
    assert_eq!(backend.read_snapshot(&address).unwrap().control.control.operation_id(), Some(intent.operation_id));
    let snapshot = operation.commit(snapshot, None, at(4)).unwrap();
    assert_eq!(operation.observe().unwrap(), snapshot);
    snapshot.ensure_clear().unwrap();
}

/// ADO-011
fn an_adoption_is_claimed_whole_in_one_step<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let snapshot = operation.observe().unwrap();
    let claims = actions(&[(Verb::Adopt, Kind::Schema, "orders"), (Verb::Adopt, Kind::Topic, "orders")]);
    let adopt = Intent { kind: OperationKind::Adopt, ..intent(&snapshot, claims.clone()) };
    let apply = Intent { kind: OperationKind::Apply, ..intent(&snapshot, claims) };
    let creates = Intent { kind: OperationKind::Adopt, ..intent(&snapshot, topic_creates(1)) };
    for wrong in [apply, creates, Intent { actions: Vec::new(), ..adopt.clone() }] {
        assert_eq!(kind(operation.begin(snapshot.clone(), wrong)), StateErrorKind::InvalidState);
    }
    let pending = operation.begin(snapshot, adopt.clone()).unwrap();
    let next = owning(&pending, "orders");
    let entries = |count: u32| (0..count).flat_map(|i| [started(&adopt, i), completed(&adopt, i, true)]).collect();
    assert_eq!(kind(operation.adopt(pending.clone(), entries(1), next.clone(), at(4))), StateErrorKind::InvalidState);
    assert_eq!(operation.observe().unwrap(), pending, "a part of it is not written");
    let done = operation.adopt(pending, entries(2), next.clone(), at(4)).unwrap();
    assert_eq!((operation.observe().unwrap(), &*done.state.state), (done.clone(), &next));
    done.ensure_clear().unwrap();
    operation.release().unwrap();
    assert_eq!(backend.read_snapshot(&address).unwrap(), done);
}

fn a_stale_snapshot_is_refused_and_changes_nothing<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let stale = backend.read_snapshot(&address).unwrap();
    let mut operation = acquire(&backend, &address);
    let (snapshot, _) = begin(&mut operation, 0);
    let snapshot = operation.commit(snapshot.clone(), Some(owning(&snapshot, "orders")), at(4)).unwrap();
    let old = intent(&stale, Vec::new());
    assert_eq!(kind(operation.ensure_ready(&stale)), StateErrorKind::Conflict);
    assert_eq!(kind(operation.begin(stale, old.clone())), StateErrorKind::Conflict);
    assert_eq!(kind(operation.begin(snapshot.clone(), old)), StateErrorKind::Conflict, "its intent started elsewhere");
    assert_eq!(operation.observe().unwrap(), snapshot);

    let (pending, intent) = begin(&mut operation, 2);
    let newer = operation.record_progress(pending.clone(), vec![started(&intent, 0)]).unwrap();
    let error = operation.record_progress(pending, vec![started(&intent, 0)]).unwrap_err();
    assert_eq!((error.kind.clone(), error.durable()), (StateErrorKind::Conflict, Durable::No));
    assert_eq!(operation.observe().unwrap(), newer);
}

fn a_step_out_of_order_is_refused_and_changes_nothing<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, intent) = begin(&mut operation, 2);
    for entries in [vec![started(&intent, 1)], vec![completed(&intent, 0, true)], Vec::new()] {
        let error = operation.record_progress(snapshot.clone(), entries).unwrap_err();
        assert_eq!((error.code(), error.operation_id), (Code::E411StateInvalid, Some(intent.operation_id)));
    }
    assert_eq!(kind(operation.commit(snapshot.clone(), None, at(4))), StateErrorKind::InvalidState);
    assert_eq!(operation.observe().unwrap(), snapshot);
    operation.record_progress(snapshot, vec![started(&intent, 0)]).unwrap();
}

fn a_failed_action_blocks_the_address_until_it_is_resolved<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, intent) = begin(&mut operation, 2);
    let snapshot = operation.record_progress(snapshot, vec![started(&intent, 0)]).unwrap();
    let snapshot = operation.record_progress(snapshot, vec![completed(&intent, 0, false)]).unwrap();
    assert_eq!(
        kind(operation.record_progress(snapshot.clone(), vec![started(&intent, 1)])),
        StateErrorKind::InvalidState
    );
    let record = recovery(&intent, FailureCode::RuntimeActionFailed, None);
    let marked = operation.mark_recovery_required(snapshot, record).unwrap();
    assert_eq!(operation.observe().unwrap(), marked);
    operation.release().unwrap();

    let mut later = acquire(&backend, &address);
    let seen = later.observe().unwrap();
    assert_eq!(seen, marked);
    let error = later.ensure_ready(&seen).unwrap_err();
    assert_eq!((error.code(), error.operation_id), (Code::E419StateRecoveryRequired, Some(intent.operation_id)));
    let StateErrorKind::RecoveryRequired(status) = error.kind else { panic!("{error}") };
    assert_eq!(status.status, Status::RecoveryRequired);
    assert_eq!(status.failure_code, Some(FailureCode::RuntimeActionFailed));
    let other = super::testing::intent(&seen, Vec::new());
    assert_eq!(later.begin(seen.clone(), other).unwrap_err().code(), Code::E419StateRecoveryRequired);
    assert_eq!(kind(later.clear_before_mutation(seen.clone(), at(5))), StateErrorKind::InvalidState);
    assert_eq!(later.observe().unwrap(), seen);
}

fn an_abandoned_operation_blocks_the_address<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, intent) = begin(&mut operation, 1);
    drop(operation);
    let mut later = acquire(&backend, &address);
    let seen = later.observe().unwrap();
    assert_eq!(seen, snapshot);
    let error = seen.ensure_clear().unwrap_err();
    assert_eq!((error.code(), error.operation_id), (Code::E419StateRecoveryRequired, Some(intent.operation_id)));
}

/// CRM-074, CRM-076: an operation that an older version began, and that was planted as that version stored it, stays in its
/// version to its end.
pub fn an_operation_of_an_older_version_ends_in_it<B: StateBackend>(backend: &B, address: &StateAddress, version: u8) {
    let mut operation = acquire(backend, address);
    let seen = operation.observe().unwrap();
    assert_eq!(seen.control.control.version(), version);
    assert!(matches!(kind(operation.ensure_ready(&seen)), StateErrorKind::RecoveryRequired(_)));
    let intent = (**seen.control.control.intent().unwrap()).clone();
    let blocked = operation.record_progress(seen, vec![started(&intent, 0)]).unwrap();
    assert_eq!((blocked.control.control.version(), operation.observe().unwrap()), (version, blocked.clone()));
    let evidence = recovery_intent(&blocked, Resolution::RolledBack, AcceptedAs::Prior, None);
    let done = operation.finalize_recovery(blocked, evidence, None).unwrap();
    assert_eq!((done.control.control.is_clear(), done.control.control.version()), (true, 3));
    operation.release().unwrap();
    assert_eq!(backend.read_snapshot(address).unwrap(), done);
}

fn an_intent_can_be_taken_back_only_before_its_first_action<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, _) = begin(&mut operation, 1);
    let cleared = operation.clear_before_mutation(snapshot, at(1)).unwrap();
    assert_eq!(operation.observe().unwrap(), cleared);
    cleared.ensure_clear().unwrap();
    let (snapshot, intent) = begin(&mut operation, 1);
    let snapshot = operation.record_progress(snapshot, vec![started(&intent, 0)]).unwrap();
    assert_eq!(kind(operation.clear_before_mutation(snapshot.clone(), at(2))), StateErrorKind::InvalidState);
    assert_eq!(operation.observe().unwrap(), snapshot);
}

fn the_lock_excludes_and_its_wait_is_bounded<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut holder = acquire(&backend, &address);
    let begun = Instant::now();
    let waited = backend.acquire(&address, Duration::from_millis(300), &CancellationToken::new());
    assert_eq!(waited.err().map(|error| error.kind), Some(StateErrorKind::LockTimeout));
    assert!((300..2000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());

    let give_up = CancellationToken::new();
    let canceller = std::thread::spawn({
        let give_up = give_up.clone();
        move || {
            std::thread::sleep(Duration::from_millis(200));
            give_up.cancel();
        }
    });
    let begun = Instant::now();
    let interrupted = backend.acquire(&address, SOON, &give_up);
    assert_eq!(interrupted.err().map(|error| error.kind), Some(StateErrorKind::Interrupted));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    canceller.join().unwrap();

    holder.check_lock().unwrap();
    backend.read_snapshot(&address).unwrap();
    holder.release().unwrap();
    let next = backend.acquire(&address, Duration::ZERO, &CancellationToken::new());
    next.unwrap().release().unwrap();
}

fn the_next_state_keeps_its_rules<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let (snapshot, _) = begin(&mut operation, 0);
    let good = owning(&snapshot, "orders");
    let refused = |operation: &mut <F::Backend as StateBackend>::Operation, state| {
        assert_eq!(kind(operation.commit(snapshot.clone(), Some(state), at(4))), StateErrorKind::InvalidState);
        assert_eq!(operation.observe().unwrap(), snapshot);
    };
    let mut foreign = good.clone();
    foreign.project = "other".into();
    refused(&mut operation, foreign);
    let mut skipped = good.clone();
    skipped.serial += 1;
    refused(&mut operation, skipped);
    let mut kept = good.clone();
    kept.serial -= 1;
    refused(&mut operation, kept);
    let mut external = good.clone();
    external
        .resources
        .values_mut()
        .for_each(|record| record.ownership = crate::project::model::OwnershipMode::External);
    refused(&mut operation, external);
    operation.commit(snapshot, Some(good), at(4)).unwrap();
}

fn an_operation_too_large_for_its_record_is_refused_before_anything_is_written<F: Fresh>(stores: &F) {
    let (backend, address) = stores.fresh();
    let mut operation = acquire(&backend, &address);
    let seen = operation.observe().unwrap();
    let huge = intent(&seen, topic_creates(80_000));
    let error = operation.begin(seen.clone(), huge).unwrap_err();
    assert_eq!(error.code(), Code::E411StateInvalid);
    assert_eq!(operation.observe().unwrap(), seen);
}
