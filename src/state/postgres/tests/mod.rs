//! The store against real servers. Each test makes a schema and a role of its own and removes them; `make test` starts the servers.

mod authority;
mod encryption;
mod loss;
mod support;

use support::{Server, each};

use super::super::conformance;
use super::history::EventRow;
use crate::state::control::{Control, Event};
use crate::state::store::{StateBackend, StateOperation};
use crate::state::testing::{intent, topic_creates};

/// PGS-001 SAF-021
#[test]
fn the_store_keeps_what_every_store_promises() {
    each(|server| conformance::all(&server));
}

/// CRM-076: as rows of an older streamt.
#[test]
fn an_operation_of_an_older_version_is_ended_in_it() {
    each(|server| {
        for version in [1, 2] {
            let address = server.address(&format!("old-{version}"));
            let seen = server.store().read_snapshot(&address).unwrap();
            let begun = intent(&seen, topic_creates(2));
            let id = begun.operation_id;
            let (control, stored) = Control::clear(&address).apply_in_version(Event::Intent(begun), version).unwrap();
            let row = EventRow::of(&stored).unwrap();
            server.sql(&format!(
                "INSERT INTO {0}.operation_history VALUES ('{1}', 'payments', 'prod', '{id}', 0, 'intent', '{2}', '{3}', '{4}');
                 UPDATE {0}.operation_control SET revision = 1, status = 'in_progress', control_version = {version},
                 operation_id = '{id}', event_index = 0, control_checksum = '{3}', updated_at = '{4}'
                 WHERE namespace = '{1}'",
                server.schema, address.namespace, row.json, control.checksum(), row.recorded_at
            ));
            conformance::an_operation_of_an_older_version_ends_in_it(&server.store(), &address, version);
        }
    });
}

/// A receipt is what the events and the history of ownership say together; one that they do not agree on is none.
#[test]
fn a_receipt_needs_the_row_of_its_change_of_ownership() {
    each(|server| {
        let address = server.address("receipt");
        let operation_id = conformance::runner::replaced(&server.store(), &address);
        let mut operation = server.acquire(&address);
        assert!(operation.completion(operation_id).unwrap().is_some());
        server.sql(&format!(
            "UPDATE {}.state_history SET state_checksum = 'sha256:' || repeat('0', 64) WHERE operation_id = '{operation_id}'",
            server.schema
        ));
        let error = operation.completion(operation_id).unwrap_err();
        assert_eq!(error.code(), crate::codes::Code::E411StateInvalid, "{error}");
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
