//! A COMMIT without an answer, with and without having happened, at each durable step.

use std::sync::Arc;
use std::time::Duration;

use super::site::{LONG, Site, code, on_each_major, text};
use crate::faults::{Fault, Request, first, nth};
use crate::harness::Run;

fn commit(request: &Request) -> bool {
    request.what == "COMMIT"
}

/// The durable steps of an apply with one action, by their COMMIT.
const STEPS: [&str; 4] = ["intent", "started", "completed", "terminal"];

/// What follows when the lock is lost around the COMMIT of a step: `happened` or not.
fn proved(site: &Site, run: Run, step: usize, happened: bool) {
    let name = format!("{} {}", STEPS[step], if happened { "happened" } else { "did not happen" });
    let run = run.exits(1);
    let errors = run.json()["errors"].clone();
    let (terminal, committed) = (step == 3, step == 3 && happened);
    let (wanted, told) = match committed {
        true => ("E426_STATE_RELEASE_FAILED_AFTER_COMMIT", serde_json::json!(true)),
        false => ("E423_STATE_LOCK_LOST", serde_json::Value::Null),
    };
    assert_eq!(code(&run), wanted, "{name}: {}", run.stdout);
    assert_eq!(errors.as_array().map(Vec::len), Some(1), "{name}: one error: {errors}");
    assert_eq!(run.json()["data"]["committed"], told, "{name}: {}", run.stdout);
    let operation = text(&errors[0]["operation_id"]);
    assert!(uuid::Uuid::parse_str(&operation).is_ok(), "{name}: the operation is named: {errors}");

    let status = site.status();
    let (wanted, serial) = match (step, happened) {
        (0, false) => ("clear", 0),
        (3, true) => ("clear", 1),
        (0..=3, _) => ("in_progress", 0),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (text(&status["operation_status"]["status"]), &status["state_serial"]),
        (wanted.into(), &serial.into()),
        "{name}"
    );
    if wanted == "in_progress" {
        assert_eq!(text(&status["operation_status"]["operation_id"]), operation, "{name}");
        let reached = if happened { step } else { step - 1 };
        let events = site.sql("SELECT event_kind FROM {schema}.operation_history ORDER BY event_index").len();
        assert_eq!(events, reached + 1, "{name}: exactly the steps that happened");
        let next = site.workspace.run("plan -o json").exits(1);
        assert_eq!(code(&next), "E419_STATE_RECOVERY_REQUIRED", "{name}");
    } else {
        let changes = if serial == 1 { 0 } else { 2 };
        site.workspace.run("plan --detailed-exitcode").exits(changes);
    }
    // No COMMIT twice, and the provider is asked only behind a durable `started`.
    let commits = site.order.records().into_iter().filter(|record| record.what == "COMMIT").count();
    assert_eq!(commits, step + 1, "{name}: nothing is retried");
    assert_eq!(site.changes().len(), usize::from(step >= 2 || terminal), "{name}");
}

/// I6 I7 I8 I9 SAF-029 SAF-030 PGS-014: whichever step it was, and whether it stands or not.
#[test]
fn a_commit_without_an_answer_is_resolved_by_another_session() {
    on_each_major(|admin| {
        for step in 0..STEPS.len() {
            let lost = Site::new(admin, 1);
            let met = lost.db.rule(nth(step + 1, commit), Fault::LoseAnswer);
            proved(&lost, lost.apply(), step, true);
            assert_eq!(met.count(), 1);

            let cut = Site::new(admin, 1);
            let met = cut.db.rule(nth(step + 1, commit), Fault::CutBefore);
            proved(&cut, cut.apply(), step, false);
            assert_eq!(met.count(), 1);
        }
    });
}

/// I7: a COMMIT that is lost on a silent link might still arrive as long as its server process runs.
#[test]
fn a_step_is_told_as_not_happened_only_when_its_server_process_is_gone() {
    on_each_major(|admin| {
        let site = Site::new(admin, 1);
        let met = site.db.rule(nth(2, commit), Fault::Silence);
        let run = site.apply().exits(1);
        assert_eq!((met.count(), site.holders()), (1, 0), "{}", run.stdout);
        assert_eq!(code(&run), "E423_STATE_LOCK_LOST", "{}", run.stdout);
        assert_eq!((site.stands(), site.changes().len()), (("in_progress".to_owned(), 0), 0));
    });
}

/// I8: a server that cannot be reached any more proves nothing.
#[test]
fn a_commit_whose_outcome_nobody_can_see_is_unknown() {
    on_each_major(|admin| {
        std::thread::scope(|scope| {
            for step in [1, 3] {
                for silent in [false, true] {
                    scope.spawn(move || unknown(admin, step, silent));
                }
            }
        });
    });
}

fn unknown(admin: &str, step: usize, silent: bool) {
    let site = Site::new(admin, 1);
    let db = Arc::downgrade(&site.db);
    let gone = Fault::call_answer(move |_| {
        let db = db.upgrade().expect("a proxy");
        db.refuse();
        if silent { db.silence() } else { db.cut() }
    });
    site.db.rule(nth(step + 1, commit), gone);
    let run = site.apply().exits(1);
    let name = format!("{} silent {silent}", STEPS[step]);
    assert_eq!(code(&run), "E425_STATE_UNKNOWN_OUTCOME", "{name}: {}", run.stdout);
    let answer = run.json();
    assert_eq!(answer["data"]["committed"], serde_json::Value::Null, "{name}: {answer}");
    let operation = text(&answer["errors"][0]["operation_id"]);
    site.db.restore();
    site.db.cut();
    let status = site.status();
    match step {
        // It happened, and the user finds out.
        3 => assert_eq!(
            (text(&status["operation_status"]["status"]), &status["state_serial"]),
            ("clear".into(), &1.into())
        ),
        _ => assert_eq!(text(&status["operation_status"]["operation_id"]), operation, "{name}"),
    }
    assert_eq!(site.changes().len(), usize::from(step == 3), "{name}: nothing after the doubt");
}

/// The answer was good; the second session that looks at the rows comes back in time, or not at all.
#[test]
fn a_step_is_acknowledged_only_when_another_session_has_seen_it() {
    on_each_major(|admin| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let site = Site::new(admin, 1);
                // Whoever looks after the first COMMIT is cut twice, and then answered.
                let after = Arc::new(std::sync::atomic::AtomicBool::new(false));
                let seen = Arc::clone(&after);
                site.db.rule(
                    first(commit),
                    Fault::call_answer(move |_| seen.store(true, std::sync::atomic::Ordering::SeqCst)),
                );
                let looks = move |request: &Request| {
                    after.load(std::sync::atomic::Ordering::SeqCst) && request.what.contains("READ ONLY")
                };
                let looks = Arc::new(looks);
                for _ in 0..2 {
                    let looks = Arc::clone(&looks);
                    site.db.rule(first(move |request| looks(request)), Fault::CutBefore);
                }
                let run = site.apply().exits(0);
                assert_eq!(run.json()["data"]["committed"], true);
                assert_eq!(site.stands(), ("clear".to_owned(), 1));
            });
            scope.spawn(|| {
                let site = Site::new(admin, 1);
                let db = Arc::downgrade(&site.db);
                let holder = Arc::new(std::sync::atomic::AtomicU64::new(0));
                let lock = Arc::clone(&holder);
                site.db.rule(
                    first(|request| request.what.contains("pg_try_advisory_lock")),
                    Fault::call(move |request| lock.store(request.connection, std::sync::atomic::Ordering::SeqCst)),
                );
                let met =
                    site.db.rule(first(commit), Fault::call_answer(move |_| db.upgrade().expect("a proxy").refuse()));
                let witness = move |request: &Request| {
                    let lock = holder.load(std::sync::atomic::Ordering::SeqCst);
                    lock != 0 && request.connection != lock && met.count() > 0
                };
                site.db.rule(first(witness), Fault::CutBefore);
                let run = site.apply().exits(1);
                assert_eq!(code(&run), "E425_STATE_UNKNOWN_OUTCOME", "{}", run.stdout);
                site.db.restore();
                assert_eq!(site.stands().0, "in_progress");
                assert_eq!(site.changes().len(), 0);
            });
        });
    });
}

/// E420: without a second session nothing is begun.
#[test]
fn nothing_is_written_when_no_second_session_can_be_had() {
    on_each_major(|admin| {
        let site = Site::new(admin, 1);
        let db = Arc::downgrade(&site.db);
        let taken = Fault::call_answer(move |_| db.upgrade().expect("a proxy").refuse());
        let met = site.db.rule(first(|request| request.what.contains("pg_try_advisory_lock")), taken);
        let run = site.apply().exits(1);
        assert!(met.hit(Duration::ZERO));
        assert_eq!(code(&run), "E420_STATE_BACKEND_UNAVAILABLE", "{}", run.stdout);
        site.db.restore();
        assert_eq!(site.stands(), ("clear".to_owned(), 0));
        assert_eq!((site.changes().len(), site.holders()), (0, 0));
        site.apply().exits(0);
        assert!(site.order.wait(LONG, |record| record.what.contains("pg_advisory_unlock")).is_some());
    });
}
