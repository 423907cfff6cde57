//! The store against real servers. Each test makes a schema and a role of its own and removes them; `make test` starts the servers.

mod authority;
mod encryption;
mod loss;
mod support;

use support::{Server, each};

use super::super::conformance;

/// PGS-001 SAF-021
#[test]
fn the_store_keeps_what_every_store_promises() {
    each(|server| conformance::all(&server));
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
