//! A recovery whose authority or whose answer is lost on the way, with state in PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::resolve::{new_file, plan_line, recover_line};
use super::world::{Database, MODELS, REMOTE, World};
use crate::faults::{Fault, Gate, Order, Proxy, Request, first};
use crate::harness::Run;

/// A blocked project, the recovery that was planned for it, and a proxy to its database.
struct Planned {
    world: World,
    line: String,
    proxy: Proxy,
    before: Value,
}

impl Planned {
    fn new(store: super::world::Store) -> Self {
        let mut world = World::blocked("lost", store, "request.answered", 2);
        world.patience = 3;
        world.declare(MODELS);
        let file = new_file();
        let line = recover_line(&file, &world.data(&plan_line("observed", &file)));
        let proxy = Proxy::postgres(&Order::default(), &world.database.as_ref().expect("one").admin);
        let before = world.data("state status");
        Self { world, line, proxy, before }
    }

    fn database(&self) -> Arc<Database> {
        Arc::clone(self.world.database.as_ref().expect("one"))
    }

    /// The recovery, its writer's connection through the proxy.
    fn recover(&self) -> Run {
        let dsn = self.proxy.dsn(&self.database().writer_dsn());
        let output = self.world.command(&self.line).env("WRITER_DSN", dsn).output().expect("runs");
        Run::of(&self.line, output)
    }

    /// The code of a recovery that failed, and whether it says that it is committed.
    #[track_caller]
    fn fails(&self) -> (String, Value) {
        let run = self.recover().exits(1);
        let told = run.json();
        let operation = &self.before["operation_status"]["operation_id"];
        assert_eq!(told["data"]["blocked_operation_id"], *operation, "{told:#}");
        (run.errors()[0].0.clone(), told["data"]["committed"].clone())
    }

    #[track_caller]
    fn still_blocked(&self) {
        assert_eq!(self.world.data("state status"), self.before);
    }

    /// The exact retry ends it, or tells that it was ended.
    #[track_caller]
    fn ends(&self) {
        let done = self.world.data(&self.line);
        assert_eq!((&done["state_serial"], &done["control_status"]), (&json!(1), &json!("clear")));
        self.world.run("plan --detailed-exitcode").exits(0);
    }
}

fn is_commit(request: &Request) -> bool {
    request.what == "COMMIT"
}

fn begins_to_write(request: &Request) -> bool {
    request.what.starts_with("BEGIN") && request.what.contains("READ WRITE")
}

/// REC-078, REC-037: the answer to the COMMIT is lost, and another session sees what it did.
#[test]
fn a_recovery_whose_commit_stands_says_so_although_its_lock_is_gone() {
    for store in REMOTE {
        let planned = Planned::new(store);
        let hit = planned.proxy.rule(first(is_commit), Fault::LoseAnswer);
        assert_eq!(planned.fails(), ("E426_STATE_RELEASE_FAILED_AFTER_COMMIT".to_owned(), json!(true)));
        assert_eq!(hit.count(), 1);
        assert_eq!(planned.world.operation()["status"], "clear");
        planned.ends();
    }
}

/// REC-077, REC-080: nobody can see what the COMMIT did; only the same file and the same values may be used again.
#[test]
fn a_recovery_whose_outcome_nobody_can_see_is_ended_by_the_same_command() {
    for store in REMOTE {
        let planned = Planned::new(store);
        let gate = Gate::default();
        let hit = planned.proxy.rule(first(is_commit), Fault::HoldAnswer(gate.clone()));
        std::thread::scope(|scope| {
            let failed = scope.spawn(|| planned.fails());
            assert!(hit.hit(Duration::from_secs(60)), "a commit");
            planned.proxy.refuse();
            planned.proxy.cut();
            let failed = failed.join().expect("told");
            assert_eq!(failed, ("E425_STATE_UNKNOWN_OUTCOME".to_owned(), Value::Null));
        });
        gate.open();
        planned.ends();
    }
}

/// REC-075, REC-033: the session ends before the COMMIT, or before anything was written.
#[test]
fn a_recovery_that_loses_its_session_changes_nothing() {
    for store in REMOTE {
        for lost in [is_commit as fn(&Request) -> bool, begins_to_write] {
            let planned = Planned::new(store);
            let hit = planned.proxy.rule(first(lost), Fault::CutBefore);
            assert_eq!(planned.fails(), ("E423_STATE_LOCK_LOST".to_owned(), Value::Null));
            assert_eq!(hit.count(), 1);
            planned.still_blocked();
            planned.ends();
        }
    }
}

/// REC-074: the lock is held by another; REC-076: a foreign writer moved the control after it was read.
#[test]
fn a_recovery_waits_for_nobody_for_long_and_overwrites_nobody() {
    for store in REMOTE {
        let planned = Planned::new(store);
        let database = planned.database();
        let foreign = Arc::clone(&database);
        let hit = planned.proxy.rule(
            first(begins_to_write),
            Fault::call(move |_| foreign.sql("UPDATE SCHEMA.operation_control SET revision = revision + 1")),
        );
        assert_eq!(planned.fails(), ("E424_STATE_CONFLICT".to_owned(), json!(false)));
        assert_eq!(hit.count(), 1);
        planned.still_blocked();

        let file = new_file();
        database.while_locked(|| {
            assert_eq!(planned.world.refused(&planned.line), "E422_STATE_LOCK_TIMEOUT");
            assert_eq!(planned.world.refused(&plan_line("observed", &file)), "E422_STATE_LOCK_TIMEOUT");
            assert!(!planned.world.workspace.path(&file).exists());
        });
        planned.still_blocked();
        planned.ends();
    }
}

/// REC-071, PGS-011: rows that do not follow from each other are E411; a catalog that is not exact is E420 here and E411 for whoever
/// administrates.
#[test]
fn a_recovery_trusts_no_altered_row_and_no_altered_catalog() {
    for store in REMOTE {
        let planned = Planned::new(store);
        let (world, database) = (&planned.world, planned.database());
        let commands = [planned.line.clone(), plan_line("observed", &new_file())];
        let refused = |code: &str, status: &str| {
            for line in &commands {
                assert_eq!(world.refused(line), code, "{line}");
            }
            assert_eq!(world.refused("state status"), status);
        };
        const ALTER: &str =
            "UPDATE SCHEMA.operation_history SET event_json = replace(event_json, 'local-cli', 'local-clj')";
        database.sql(ALTER);
        refused("E411_STATE_INVALID", "E411_STATE_INVALID");
        database.sql(&ALTER.replace("'local-cli', 'local-clj'", "'local-clj', 'local-cli'"));
        database.sql("CREATE INDEX foreign_index ON SCHEMA.operation_history (recorded_at)");
        refused("E420_STATE_BACKEND_UNAVAILABLE", "E411_STATE_INVALID");
        database.sql("DROP INDEX SCHEMA.foreign_index");
        planned.still_blocked();
        planned.ends();
    }
}
