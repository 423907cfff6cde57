//! The COMMIT of a migration without an answer: what is told agrees with what stands, and running the command again ends it.

use std::sync::Arc;

use super::{line, migrate, store_of_version_1};
use crate::faults::{Fault, Order, Proxy, Request, first};
use crate::harness::Run;
use crate::postgres::Estate;
use crate::support::on_each_major;

/// A version-1 store whose owner comes through a proxy.
struct Site {
    estate: Estate,
    id: String,
    db: Arc<Proxy>,
    order: Order,
}

impl Site {
    fn new(major: &str) -> Self {
        let (estate, id) = store_of_version_1(major);
        let order = Order::default();
        let db = Arc::new(Proxy::postgres(&order, &estate.admin));
        Self { estate, id, db, order }
    }

    fn migrate(&self) -> Run {
        let owner = self.db.dsn(&self.estate.admin);
        self.estate.run_with(&[("OWNER_DSN", &owner)], &line(&self.id, &self.estate.writer))
    }

    fn version(&self) -> u64 {
        let status = self.estate.workspace.run("state status -o json").exits(0).json();
        status["data"]["schema_version"].as_u64().expect("a version")
    }

    /// The code, what is said of the COMMIT, and one COMMIT at most.
    fn told(&self, run: &Run, code: &str, committed: serde_json::Value) {
        assert_eq!((run.exit, run.errors().len(), run.errors()[0].0.as_str()), (1, 1, code), "{}", run.stdout);
        assert_eq!(run.json()["data"]["committed"], committed, "{}", run.stdout);
        let commits = self.order.records().into_iter().filter(|record| record.what == "COMMIT").count();
        assert!(commits <= 1, "a COMMIT is never repeated: {commits}");
        for secret in [self.estate.schema.as_str(), "admin-secret", "w-s3ntinel", "127.0.0.1"] {
            assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{secret}: {}", run.stdout);
        }
    }

    /// What the user does next: the same command, until it says that the store is migrated.
    fn again(&self, outcome: &str) {
        let run = migrate(&self.estate, &self.id).exits(0).json();
        assert_eq!(run["data"]["outcome"], outcome, "{run}");
        assert_eq!(self.version(), 2);
        self.estate.workspace.run("apply").exits(0);
        self.estate.settled("");
    }
}

fn commit(request: &Request) -> bool {
    request.what == "COMMIT"
}

/// PGS-012 PGS-014: it happened, its answer was lost, and another session sees it.
#[test]
fn a_migration_whose_commit_was_not_answered_is_told_as_done_when_it_is_seen() {
    on_each_major(|major| {
        let site = Site::new(major);
        let met = site.db.rule(first(commit), Fault::LoseAnswer);
        let run = site.migrate();
        assert_eq!(met.count(), 1);
        site.told(&run, "E426_STATE_RELEASE_FAILED_AFTER_COMMIT", true.into());
        assert!(run.stdout.contains("the store is migrated"), "{}", run.stdout);
        assert_eq!(site.version(), 2);
        site.again("already_migrated");
    });
}

/// PGS-012 PGS-014: it never reached the server, whose process is seen to be gone.
#[test]
fn a_migration_whose_commit_never_arrived_left_everything_as_it_was() {
    on_each_major(|major| {
        let site = Site::new(major);
        let before = site.estate.rows();
        let met = site.db.rule(first(commit), Fault::CutBefore);
        let run = site.migrate();
        assert_eq!(met.count(), 1);
        site.told(&run, "E420_STATE_BACKEND_UNAVAILABLE", false.into());
        assert_eq!((site.version(), site.estate.rows()), (1, before));
        site.again("migrated");
    });
}

/// PGS-012 PGS-014: nobody can look any more, whether it happened or not.
#[test]
fn a_migration_whose_commit_nobody_can_see_is_unknown_until_it_is_run_again() {
    on_each_major(|major| {
        std::thread::scope(|scope| {
            for (happened, silent) in [(true, false), (true, true), (false, false)] {
                scope.spawn(move || {
                    let site = Site::new(major);
                    let db = Arc::downgrade(&site.db);
                    let gone = move |_: &Request| {
                        let db = db.upgrade().expect("a proxy");
                        db.refuse();
                        if silent { db.silence() } else { db.cut() }
                    };
                    let fault = if happened { Fault::call_answer(gone) } else { Fault::call(gone) };
                    site.db.rule(first(commit), fault);
                    let run = site.migrate();
                    site.db.restore();
                    site.db.cut();
                    site.told(&run, "E425_STATE_UNKNOWN_OUTCOME", serde_json::Value::Null);
                    assert!(run.stdout.contains("run the command again"), "{}", run.stdout);
                    let (version, outcome) = if happened { (2, "already_migrated") } else { (1, "migrated") };
                    assert_eq!(site.version(), version, "happened {happened} silent {silent}");
                    site.again(outcome);
                });
            }
        });
    });
}

/// PGS-014: a COMMIT that is lost on a silent link might still arrive as long as its server process runs.
#[test]
fn a_migration_is_told_as_not_happened_only_when_its_server_process_is_gone() {
    on_each_major(|major| {
        let site = Site::new(major);
        let met = site.db.rule(first(commit), Fault::Silence);
        let run = site.migrate();
        let held = site.estate.ask(&format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) IN \
             (SELECT advisory_lock_key FROM {}.state_addresses)",
            site.estate.schema
        ));
        assert_eq!((met.count(), held.as_slice()), (1, &["0".to_owned()][..]), "{}", run.stdout);
        site.told(&run, "E420_STATE_BACKEND_UNAVAILABLE", false.into());
        assert_eq!(site.version(), 1);
        site.again("migrated");
    });
}

/// PGS-014: a good answer counts only when another session sees what it says.
#[test]
fn an_answered_commit_that_no_other_session_sees_is_unknown() {
    on_each_major(|major| {
        let site = Site::new(major);
        let db = Arc::downgrade(&site.db);
        site.db.rule(first(commit), Fault::call_answer(move |_| db.upgrade().expect("a proxy").refuse()));
        let run = site.migrate();
        site.db.restore();
        site.told(&run, "E425_STATE_UNKNOWN_OUTCOME", serde_json::Value::Null);
        site.again("already_migrated");
    });
}
