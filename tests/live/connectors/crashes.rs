//! `kill -9` at every moment of creating, updating and removing a connector, and the lock lost at each request on the way. Each
//! end is proved by the recovery that the runbook names; nothing else at the worker moves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use super::course::{Change, Course};
use super::yard::State;
use crate::faults::{Fault, Request, first, nth};
use crate::losses::site::{code, text};
use crate::support::variable;

/// Courses that are interrupted side by side.
const WORKERS: usize = 3;

fn each(change: Change, stores: &[&str], test: impl Fn(Change, State) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for store in stores {
            let state = match *store {
                "local" => State::Local,
                major => State::Postgres(variable(&format!("STREAMT_TEST_POSTGRES_{major}"))),
            };
            scope.spawn(move || test(change, state));
        }
    });
}

/// Kills the change at each moment that it passes.
fn kills(change: Change, state: State) {
    let begun = Instant::now();
    let moments = Course::new(change, state.clone()).trace();
    for name in ["request.admitted", "request.begun", "request.answered"] {
        assert!(moments.iter().any(|moment| moment.starts_with(name)), "{moments:?}");
    }
    let (next, killed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            let (moments, next, killed, state) = (&moments, &next, &killed, &state);
            scope.spawn(move || {
                let mut course = Course::new(change, state.clone());
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(moment) = moments.get(at) else { return };
                    let context = format!("{change:?} killed at {moment}");
                    course.prepare();
                    if course.killed_at(moment) {
                        killed.fetch_add(1, Ordering::SeqCst);
                        course.settle();
                        course.end(&context, at);
                    } else {
                        // An answer at once, or one attempt less than when the moments were counted.
                        assert!(moment.starts_with("request."), "{context}: not met");
                    }
                    course.complete(&context);
                }
            });
        }
    });
    println!("{change:?}: killed at {} of {} moments in {:?}", killed.into_inner(), moments.len(), begun.elapsed());
}

/// REC-030, SAF-031
#[test]
fn a_create_that_is_killed_anywhere_has_one_provable_end() {
    each(Change::Create, &["local", "14", "18"], kills);
}

/// REC-030, SAF-031
#[test]
fn an_update_that_is_killed_anywhere_has_one_provable_end() {
    each(Change::Update, &["local", "14", "18"], kills);
}

/// CRM-110, CRM-112, CRM-113
#[test]
fn a_removal_that_is_killed_anywhere_has_one_provable_end() {
    each(Change::Remove, &["14", "18"], kills);
}

/// The session that holds the lock ends at each request to the worker, before it arrives and after it is answered, and at each
/// COMMIT.
fn losses(change: Change, state: State) {
    let mut course = Course::new(change, state);
    let (asked, commits) = loop {
        course.prepare();
        let mark = course.yard.order.mark("counting");
        let commits = course.yard.commits();
        let run = course.run();
        let counted = (course.yard.since(mark).len(), course.yard.commits() - commits);
        course.complete("counted");
        if run.exit == 0 {
            break counted;
        }
        assert!(course.was_refused(&run), "{}", run.stdout);
    };
    assert!(asked >= 2 && commits >= 4, "{change:?}: {asked} requests, {commits} commits");
    let (mut lost, mut committed) = (0, 0);
    let cases = (1..=asked).flat_map(|n| [(n, "before"), (n, "after")]).chain((1..=commits).map(|n| (n, "commit")));
    for (round, (n, place)) in cases.enumerate() {
        let context = format!("{change:?}, lock lost at {n} {place}");
        course.prepare();
        let kill = course.yard.killer();
        let any = |_: &Request| true;
        let hit = match place {
            "before" => course.yard.workers.rule(nth(n, any), Fault::call(move |_| kill())),
            "after" => course.yard.workers.rule(nth(n, any), Fault::call_answer(move |_| kill())),
            _ => course.yard.database().rule(nth(n, |r: &Request| r.what == "COMMIT"), Fault::call(move |_| kill())),
        };
        let run = course.run();
        course.yard.workers.disarm();
        course.yard.database().disarm();
        if hit.count() == 0 {
            // A poll less than when they were counted.
            assert!(run.exit == 0 || course.was_refused(&run), "{context}: {}", run.stdout);
        } else if run.exit == 0 {
            panic!("{context}: nothing was told: {}", run.stdout);
        } else {
            lost += 1;
            let told = code(&run);
            let known = matches!(
                told.as_str(),
                "E423_STATE_LOCK_LOST" | "E425_STATE_UNKNOWN_OUTCOME" | "E426_STATE_RELEASE_FAILED_AFTER_COMMIT"
            );
            assert!(known || course.was_refused(&run), "{context}: {}", run.stdout);
            if told == "E426_STATE_RELEASE_FAILED_AFTER_COMMIT" {
                committed += 1;
                assert_eq!(run.json()["data"]["committed"], true, "{context}");
                assert_eq!(text(&course.yard.status()["operation_status"]["status"]), "clear", "{context}");
            }
            course.settle();
            course.end(&context, round);
        }
        course.complete(&context);
    }
    println!("{change:?}: lock lost at {lost} requests, {committed} of them after the commit");
}

/// SAF-028, SAF-029
#[test]
fn a_lock_that_is_lost_on_the_way_leaves_one_provable_end() {
    for change in [Change::Create, Change::Update, Change::Remove] {
        each(change, &["14", "18"], losses);
    }
}

/// CRM-117: two removals in one operation, before and behind a change of another kind; the second fails. What is recorded then
/// is exactly what was proved.
#[test]
fn of_two_removals_the_one_that_was_proved_is_recorded_and_the_other_is_not() {
    for (resolution, fault, remains) in [
        ("observed", Fault::LoseAnswer, false),
        ("observed", Fault::CutBefore, true),
        ("rolled_back", Fault::CutBefore, true),
    ] {
        let admin = variable("STREAMT_TEST_POSTGRES_18");
        let yard = super::yard::Yard::alone(&admin, &["a", "b", "kept"]);
        yard.run("apply -o json").exits(0);
        let kept = yard.worker.config(&yard.name("kept"));
        // A topic grows before them, and `kept` is updated between or behind, as the order of actions says.
        let yaml = yard.yaml(&["kept"], &["a", "b"]).replace("partitions: 1", "partitions: 2");
        yard.write(&yaml.replace("tasks.max: 1", "tasks.max: 2"));
        let plan = yard.run("plan --out plan.json -o json").exits(0).json();
        assert_eq!((&plan["data"]["updates"], &plan["data"]["deletes"]), (&json!(2), &json!(2)), "{plan}");
        let second = format!("DELETE /connectors/{}", yard.name("b"));
        let hit = yard.workers.rule(first(move |request: &Request| request.what == second), fault);
        let run = yard.apply_plan().exits(1);
        assert_eq!((hit.count(), code(&run).as_str()), (1, "E428_CONNECTOR_REMOVAL_DRIFT"), "{}", run.stdout);
        let id = text(&yard.status()["operation_status"]["operation_id"]);
        // The order decides whether `kept` was updated before.
        let updated = yard.worker.config(&yard.name("kept")) != kept;
        let line = format!("state recovery-plan --resolution {resolution} --out recovery.json -o json");
        let planned = yard.run(&line);
        if resolution == "rolled_back" {
            // The first removal is done: nothing can be said to be rolled back as a whole.
            assert_eq!(code(&planned), "E409_PLAN_STALE", "{}", planned.stdout);
            continue;
        }
        let planned = planned.exits(0).json();
        let targets = planned["data"]["targets"].as_array().expect("targets").clone();
        let form = |name: &str| -> Value {
            let id = format!("/connector/{}", yard.name(name));
            let target = targets.iter().find(|t| text(&t["resource_id"]).ends_with(&id)).expect("a target");
            target["accepted_as"].clone()
        };
        assert_eq!(form("a"), "candidate");
        assert_eq!(form("b"), if remains { "prior" } else { "candidate" });
        assert_eq!(form("kept"), if updated { "candidate" } else { "prior" });
        super::recovery::recover(&yard, &id, resolution);
        let recorded = |name: &str| yard.records().iter().any(|id| id.ends_with(&yard.name(name)));
        assert_eq!((recorded("a"), recorded("b"), recorded("kept")), (false, remains, true));
        assert_eq!(yard.worker.config(&yard.name("b")).is_some(), remains);
        assert_eq!(yard.worker.config(&yard.name("a")), None);
        // The rest is carried out by a new plan.
        yard.run("plan --out next.json -o json").exits(0);
        yard.run("apply --plan next.json --confirm-env default --force -o json").exits(0);
        assert_eq!((recorded("a"), recorded("b"), recorded("kept")), (false, false, true));
    }
}
