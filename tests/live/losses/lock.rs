//! The lock is lost while something is in flight.

use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use super::site::{LONG, Site, code, on_each_major, text};
use crate::faults::{Fault, Request, first, nth};
use crate::harness::Run;

fn changes(request: &Request) -> bool {
    request.mutates
}

fn ended(child: Child) -> Run {
    Run::of("apply", child.wait_with_output().expect("an end"))
}

/// E423 with the operation, control as it stood, E419 next; `sent` requests changed something and none came later.
fn lost(site: &Site, run: Run, sent: usize) {
    let run = run.exits(1);
    assert_eq!(code(&run), "E423_STATE_LOCK_LOST", "{}", run.stdout);
    let operation = text(&run.json()["errors"][0]["operation_id"]);
    let status = site.status();
    assert_eq!(text(&status["operation_status"]["status"]), "in_progress", "nobody marks what nobody holds: {status}");
    assert_eq!(text(&status["operation_status"]["operation_id"]), operation, "{}", run.stdout);
    for command in ["plan", "apply"] {
        let next = site.workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(code(&next), "E419_STATE_RECOVERY_REQUIRED", "{}", next.stdout);
    }
    let changes = site.changes();
    assert_eq!(changes.len(), sent, "{changes:#?}");
}

/// I1 I4 I14 PGS-013 SAF-030: the request in flight is dropped, and nothing follows it.
#[test]
fn a_lock_lost_while_a_request_is_in_flight_ends_the_apply_without_waiting_for_its_answer() {
    on_each_major(|admin| {
        let site = Site::with_schemas(admin, 3);
        // The second of three schemas.
        let (child, gate) = site.held_at(&site.registry, nth(2, changes), Fault::Hold);
        let steps = || {
            site.order.records().iter().filter(|record| record.proxy == "postgres" && record.what == "COMMIT").count()
        };
        let before = steps();
        site.killer()();
        // The gate stays closed until the process has ended: it did not wait for the answer.
        let run = ended(child);
        assert_eq!(steps(), before, "no further step");
        gate.open();
        lost(&site, run, 2);
    });
}

/// I1: in a step no request can be in flight; the silence ends it, and nothing is sent after it.
#[test]
fn a_link_that_goes_silent_inside_a_step_ends_the_apply() {
    on_each_major(|admin| {
        std::thread::scope(|scope| {
            // Intent, started, completed.
            for (step, sent) in [(1, 0), (2, 0), (3, 1)] {
                scope.spawn(move || {
                    let site = Site::new(admin, 1);
                    let locks = |request: &Request| {
                        request.what.contains("FOR UPDATE") && request.what.contains("control_checksum")
                    };
                    let db = Arc::downgrade(&site.db);
                    let met =
                        site.db.rule(nth(step, locks), Fault::call(move |_| db.upgrade().expect("a proxy").silence()));
                    let run = site.apply().exits(1);
                    site.db.restore();
                    site.db.cut();
                    assert_eq!(
                        (met.count(), code(&run).as_str()),
                        (1, "E423_STATE_LOCK_LOST"),
                        "{step}: {}",
                        run.stdout
                    );
                    let wanted = if step == 1 { "clear" } else { "in_progress" };
                    assert_eq!((site.stands().0.as_str(), site.changes().len()), (wanted, sent), "{step}");
                });
            }
        });
    });
}

/// I1: the same when the link to the server goes silent.
#[test]
fn a_silent_link_ends_the_apply_before_the_server_gives_the_lock_away() {
    on_each_major(|admin| {
        let site = Site::new(admin, 1);
        let (child, gate) = site.in_flight();
        site.db.silence();
        let run = ended(child);
        assert_eq!(site.holders(), 1, "the server still keeps the lock for a client that is gone");
        gate.open();
        site.wait_until_freed();
        site.db.restore();
        lost(&site, run, 1);
    });
}

/// The heartbeat sees what the connection does not: the session lives and the lock is gone.
#[test]
fn a_lock_unlocked_behind_its_holder_is_noticed_while_a_request_is_in_flight() {
    on_each_major(|admin| {
        let site = Site::new(admin, 1);
        let (child, gate) = site.in_flight();
        // The last of three flags: the row in pg_locks.
        let gone = Fault::edit(|mut answer| {
            const HELD: &[u8] = &[0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1];
            let at = answer.windows(HELD.len()).position(|part| part == HELD).expect("a proof");
            answer[at + HELD.len() - 1] = 0;
            answer
        });
        let met = site.db.rule(first(|request| request.what.contains("pg_locks")), gone);
        let run = ended(child);
        assert_eq!(met.count(), 1);
        gate.open();
        lost(&site, run, 1);
    });
}

/// Before the intent nothing is at stake, and nobody is told of an operation.
#[test]
fn a_lock_lost_before_the_intent_leaves_nothing_behind() {
    on_each_major(|admin| {
        let site = Site::new(admin, 1);
        let kill = site.killer();
        let asked = site.kafka.rule(first(|request| request.what == "Metadata"), Fault::call(move |_| kill()));
        let run = site.apply().exits(1);
        assert_eq!((asked.count(), code(&run).as_str()), (1, "E423_STATE_LOCK_LOST"), "{}", run.stdout);
        assert_eq!(run.json()["errors"][0]["operation_id"], serde_json::Value::Null, "{}", run.stdout);
        assert_eq!((site.stands(), site.changes().len()), (("clear".to_owned(), 0), 0));
        site.apply().exits(0);
    });
}

/// While it is suspended its lock may go to another: it looks again before anything else.
#[test]
fn a_process_that_slept_through_its_lease_sends_nothing_when_it_wakes() {
    on_each_major(|admin| {
        let site = Site::with_schemas(admin, 3);
        let (child, gate) = site.held_at(&site.registry, first(changes), Fault::HoldAnswer);
        let signal = |signal: &str| {
            let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
            assert!(sent.expect("sent").success());
        };
        signal("-STOP");
        site.killer()();
        gate.open();
        std::thread::sleep(Duration::from_secs(4));
        let before = site.changes().len();
        signal("-CONT");
        let run = ended(child);
        assert_eq!((before, site.changes().len()), (1, 1));
        lost(&site, run, 1);
    });
}

/// A contender takes the lock as soon as it is free, and finds what is pending.
#[test]
fn whoever_waits_for_a_lock_that_is_lost_gets_it_and_finds_the_operation() {
    on_each_major(|admin| {
        let site = Site::new(admin, 1);
        let (holder, gate) = site.in_flight();
        let waits = site.db.rule(nth(2, |request| request.what.contains("pg_try_advisory_lock")), {
            let kill = Arc::new(site.killer());
            Fault::call_answer(move |_| kill())
        });
        let contender = site.start("apply -o json");
        assert!(waits.hit(LONG), "it was refused at least once");
        let second = ended(contender).exits(1);
        assert_eq!(code(&second), "E419_STATE_RECOVERY_REQUIRED", "{}", second.stdout);
        let run = ended(holder);
        gate.open();
        lost(&site, run, 1);
    });
}
