//! The local store: what every store promises, then its files, its crash windows and its neighbours.

mod child;
mod crash;
mod faults;
mod layout;
mod runner;

use tempfile::TempDir;

use super::*;
use crate::state::conformance::{self, Fresh};
use crate::state::control::Intent;
use crate::state::store::StateOperation;
use crate::state::testing::{self, at, completed, intent, owning, started, topic_creates};

struct Projects(std::cell::RefCell<Vec<TempDir>>);

impl Fresh for Projects {
    type Backend = LocalStore;

    fn fresh(&self) -> (LocalStore, StateAddress) {
        let (project, store) = project();
        self.0.borrow_mut().push(project);
        (store, address())
    }
}

#[test]
fn the_local_store_does_what_every_store_must() {
    conformance::all(&Projects(Default::default()));
}

#[test]
fn an_operation_of_an_older_version_is_ended_in_it() {
    use crate::state::control::{Control, Event};
    for version in [1, 2] {
        let (project, store) = project();
        apply(&store, "orders");
        let seen = store.read_snapshot(&address()).unwrap();
        let begun = intent(&seen, topic_creates(2));
        let id = begun.operation_id;
        let (_, stored) = Control::clear(&address()).apply_in_version(Event::Intent(begun), version).unwrap();
        let header = control_file::header_bytes(&address(), version, Some(id)).unwrap();
        let line = control_file::line_bytes(&[stored]).unwrap();
        std::fs::write(file(&project, "prod.control.jsonl"), [header, line].concat()).unwrap();
        conformance::an_operation_of_an_older_version_ends_in_it(&store, &address(), version);
        apply(&store, "later");
    }
}

fn address() -> StateAddress {
    testing::address(NAMESPACE)
}

fn project() -> (TempDir, LocalStore) {
    let project = tempfile::tempdir().unwrap();
    let store = LocalStore::new(project.path()).unwrap();
    (project, store)
}

fn acquire(store: &LocalStore) -> LocalOperation {
    store.acquire(&address(), Duration::from_secs(10), &CancellationToken::new()).unwrap()
}

fn file(project: &TempDir, name: &str) -> PathBuf {
    project.path().join(".streamt/state").join(name)
}

/// An operation with one durable `started` action.
fn interrupted(store: &LocalStore) -> Intent {
    let mut operation = acquire(store);
    let snapshot = operation.observe().unwrap();
    let intent = intent(&snapshot, topic_creates(1));
    let snapshot = operation.begin(snapshot, intent.clone()).unwrap();
    operation.record_progress(snapshot, vec![started(&intent, 0)]).unwrap();
    operation.release().unwrap();
    intent
}

/// A committed operation that owns one topic.
fn apply(store: &LocalStore, topic: &str) -> Snapshot {
    let mut operation = acquire(store);
    let snapshot = operation.observe().unwrap();
    let intent = intent(&snapshot, topic_creates(1));
    let snapshot = operation.begin(snapshot, intent.clone()).unwrap();
    let snapshot = operation.record_progress(snapshot, vec![started(&intent, 0)]).unwrap();
    let snapshot = operation.record_progress(snapshot, vec![completed(&intent, 0, true)]).unwrap();
    let next = owning(&snapshot, topic);
    let snapshot = operation.commit(snapshot, Some(next), at(4)).unwrap();
    operation.release().unwrap();
    snapshot
}
