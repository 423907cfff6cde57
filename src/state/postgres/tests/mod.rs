//! The store against real servers. Each test makes a schema and a role of its own and removes them; `make test` starts the servers.

mod authority;
mod encryption;
mod loss;
mod support;

use support::{Server, each};

use super::super::conformance::{self, runner::boundaries, runner::replacement};
use crate::state::control::runner_testing::{interruption, resume};
use crate::state::control::{RecoveryRecord, ResumeRecord};
use crate::state::step;
use crate::state::store::{StateBackend, StateOperation};

/// PGS-001 SAF-021
#[test]
fn the_store_keeps_what_every_store_promises() {
    each(|server| conformance::all(&server));
}

/// SAF-029: a control of version 5 is read by the fold that proves every row, goes on, and ends.
#[test]
fn a_resumed_replacement_is_read_carried_on_and_committed() {
    each(|server| {
        let address = server.address("resumed");
        let mut operation = server.acquire(&address);
        let mut snapshot = operation.observe().unwrap();
        let intent = replacement(&snapshot);
        snapshot = operation.begin(snapshot, intent.clone()).unwrap();
        let mut rest = boundaries(&intent).into_iter();
        for entry in rest.by_ref().take(3) {
            snapshot = operation.record_progress(snapshot, vec![entry]).unwrap();
        }
        let stopped = RecoveryRecord { operation_id: intent.operation_id, ..interruption() };
        snapshot = operation.mark_recovery_required(snapshot, stopped.clone()).unwrap();
        let record = ResumeRecord {
            operation_id: intent.operation_id,
            address: address.to_string(),
            store: snapshot.state.store.clone(),
            prior_state_serial: intent.prior_state_serial,
            prior_state_checksum: intent.prior_state_checksum.clone(),
            source_control_checksum: snapshot.control.control.checksum().clone(),
            recovery: stopped,
            ..resume()
        };
        snapshot = operation.execute(step::resume(snapshot, record).unwrap()).unwrap();
        assert_eq!((snapshot.control.control.version(), snapshot.control.control.resumes().len()), (5, 1));
        assert_eq!(server.store().read_snapshot(&address).unwrap(), snapshot);
        // Who comes later reads the rows and nothing else.
        operation.release().unwrap();
        let mut operation = server.acquire(&address);
        assert_eq!(operation.observe().unwrap(), snapshot);
        for entry in rest {
            snapshot = operation.record_progress(snapshot, vec![entry]).unwrap();
        }
        let next = crate::state::control::runner_testing::state(1, 75);
        let snapshot = operation.commit(snapshot, Some(next), crate::state::testing::at(9)).unwrap();
        assert_eq!(server.store().read_snapshot(&address).unwrap(), snapshot);
        assert!(snapshot.control.control.is_clear() && snapshot.state.state.serial == 1);
        operation.release().unwrap();
    });
}

/// PGS-013: two holders of one address exclude each other across stores of one process, and addresses do not.
#[test]
fn two_addresses_of_one_store_are_worked_on_side_by_side() {
    each(|server: Server| {
        let (first, second) = (server.address("one"), server.address("two"));
        let holders: Vec<_> = [&first, &second].map(|address| server.acquire(address)).into_iter().collect();
        assert_eq!(holders.len(), 2);
        for holder in holders {
            crate::state::store::StateOperation::release(holder).unwrap();
        }
    });
}
