//! The local store: what every store promises, then its files, its crash windows and its neighbours.

use tempfile::TempDir;

use super::*;
use crate::state::conformance::{self, Fresh};
use crate::state::testing;

struct Projects(std::cell::RefCell<Vec<TempDir>>);

impl Fresh for Projects {
    type Backend = LocalStore;

    fn fresh(&self) -> (LocalStore, StateAddress) {
        let project = tempfile::tempdir().unwrap();
        let store = LocalStore::new(project.path()).unwrap();
        self.0.borrow_mut().push(project);
        (store, testing::address(NAMESPACE))
    }
}

#[test]
fn the_local_store_does_what_every_store_must() {
    conformance::all(&Projects(Default::default()));
}
