//! Older workers, when asked for: `make test-connect-all`.

use serde_json::json;

use super::encoded::named;
use super::yard::{State, Yard};
use crate::load::Load;
use crate::losses::site::on_each_major;
use crate::support::variable;

const DEFAULT: &str = "STREAMT_TEST_CONNECT";

fn life(worker: &str) {
    let yard = Yard::under(worker, State::Postgres(variable("STREAMT_TEST_POSTGRES_18")), &["gone"], Load::Alone);
    let name = yard.name("gone");
    yard.run("apply -o json").exits(0);
    let live = yard.worker.config(&name).expect("a connector");
    let mut changed = live.clone();
    changed["tasks.max"] = json!("2");
    yard.worker.put(&name, &changed);
    assert_eq!(yard.run("apply -o json").exits(0).json()["data"]["updated"], json!([format!("connector:{name}")]));
    assert_eq!(yard.worker.config(&name), Some(live));
    yard.plan_removal(&[], &["gone"]).exits(0);
    yard.apply_plan().exits(0);
    assert_eq!(yard.worker.config(&name), None);
}

/// The lane of older workers names them in `STREAMT_TEST_CONNECT_WORKERS`; without it, the one worker of every change.
pub fn workers() -> Vec<String> {
    let older = std::env::var("STREAMT_TEST_CONNECT_WORKERS").unwrap_or_default();
    let older = older.split_whitespace().map(|version| format!("{DEFAULT}_{}", version.replace('.', "_")));
    std::iter::once(DEFAULT.to_owned()).chain(older).collect()
}

#[test]
fn every_worker_that_is_asked_for_deploys_and_removes() {
    for worker in workers() {
        life(&worker);
        // The workers of 4.x refuse `%2F` and `%25` in a path: such a connector can be neither observed nor deleted there.
        if worker != DEFAULT {
            on_each_major(|admin| named(&worker, admin, " a/b%"));
        }
    }
}
