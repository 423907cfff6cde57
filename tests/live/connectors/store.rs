//! A removal whose state store fails at its end, and who may authorise one: the codes of the store beside what the worker saw.

use std::time::Duration;

use serde_json::json;

use super::yard::Yard;
use crate::faults::{Fault, Gate, Request, first, nth};
use crate::losses::site::{code, on_each_major, text};
use crate::support::variable;

fn planned(admin: &str) -> Yard {
    let yard = Yard::alone(admin, &["gone", "kept"]);
    yard.run("apply -o json").exits(0);
    yard.plan_removal(&["kept"], &["gone"]).exits(0);
    yard
}

fn deletes(yard: &Yard) -> usize {
    yard.order.records().iter().filter(|record| record.what.starts_with("DELETE")).count()
}

/// The connector and its record are gone, nothing waits, and nothing is left to do.
fn removed(yard: &Yard) {
    assert_eq!(yard.worker.config(&yard.name("gone")), None);
    assert!(!yard.records().iter().any(|id| id.ends_with(&yard.name("gone"))));
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
    assert_eq!(deletes(yard), 1);
}

/// CRM-091: the removal is committed, and the release of the lock cannot be proved: E426 says both.
#[test]
fn a_removal_whose_lock_was_not_provably_released_says_that_it_is_committed() {
    on_each_major(|admin| {
        let yard = planned(admin);
        let unlock = |request: &Request| request.what.contains("pg_advisory_unlock");
        let hit = yard.database().rule(first(unlock), Fault::CutBefore);
        let run = yard.apply_plan().exits(1);
        assert_eq!((hit.count(), code(&run).as_str()), (1, "E426_STATE_RELEASE_FAILED_AFTER_COMMIT"), "{}", run.stdout);
        assert_eq!(run.json()["data"]["committed"], true);
        removed(&yard);
    });
}

/// CRM-091: nobody can see whether the end was committed: E425, and no second DELETE, whatever is tried next.
#[test]
fn a_removal_whose_commit_nobody_can_see_is_unknown_and_is_not_repeated() {
    on_each_major(|admin| {
        let yard = planned(admin);
        // The intent, the start, the completion; then the end.
        let gate = Gate::default();
        let hit = yard.database().rule(nth(4, |r: &Request| r.what == "COMMIT"), Fault::HoldAnswer(gate.clone()));
        std::thread::scope(|scope| {
            let apply = scope.spawn(|| yard.apply_plan());
            assert!(hit.hit(Duration::from_secs(60)), "the last commit");
            yard.database().refuse();
            yard.database().cut();
            let run = apply.join().expect("an end").exits(1);
            assert_eq!(code(&run), "E425_STATE_UNKNOWN_OUTCOME", "{}", run.stdout);
        });
        gate.open();
        yard.database().restore();
        std::thread::sleep(Duration::from_millis(500));
        // Whether the COMMIT arrived is for the server to say; if it did not, evidence ends the operation.
        let status = yard.status();
        if text(&status["operation_status"]["status"]) != "clear" {
            let mark = yard.order.mark("recovery");
            yard.run("state recovery-plan --resolution observed --out recovery.json -o json").exits(0);
            super::recovery::recover(&yard, &text(&status["operation_status"]["operation_id"]), "observed");
            assert!(yard.since(mark).iter().all(|what| what.starts_with("GET ")));
        }
        removed(&yard);
        // The same plan again is stale, and the tombstone is a no-op.
        assert_eq!(code(&yard.apply_plan().exits(1)), "E409_PLAN_STALE");
        let again = yard.plan_removal(&["kept"], &["gone"]).exits(0).json();
        assert_eq!(again["data"]["connector_removal_assessments"][0]["status"], "already_absent");
        assert_eq!(deletes(&yard), 1);
    });
}

/// CRM-037: a foreign writer moved the control after it was read: nothing was begun, and nothing was deleted.
#[test]
fn a_removal_that_meets_another_writer_of_its_state_begins_nothing() {
    on_each_major(|admin| {
        let yard = planned(admin);
        let (schema, owner) = (yard.sql("SELECT '{schema}'").remove(0).remove(0), admin.to_owned());
        let moved = format!("UPDATE {schema}.operation_control SET revision = revision + 1");
        let writes = |request: &Request| request.what.starts_with("BEGIN") && request.what.contains("READ WRITE");
        let hit = yard.database().rule(
            first(writes),
            Fault::call(move |_| {
                crate::losses::site::sql(&owner, &moved);
            }),
        );
        let run = yard.apply_plan().exits(1);
        assert_eq!((hit.count(), code(&run).as_str()), (1, "E424_STATE_CONFLICT"), "{}", run.stdout);
        assert_eq!(deletes(&yard), 0);
        assert!(yard.worker.config(&yard.name("gone")).is_some());
        assert!(yard.records().iter().any(|id| id.ends_with(&yard.name("gone"))));
    });
}

/// A project with one environment, whose removal of `gone` is planned there. `policy`: what its `safety` says of deletions.
fn in_environment(environment: &str, policy: &str) -> Yard {
    let yard = Yard::alone(&variable("STREAMT_TEST_POSTGRES_18"), &["gone", "kept"]);
    let yaml = yard.yaml(&["kept"], &[]);
    let runtime = &yaml[yaml.find("runtime:").expect("a runtime")..yaml.find("deployment_state").expect("a state")];
    let head = format!("environment: {{name: {environment}}}\nsafety: {{confirm_apply: true, {policy}}}\n");
    yard.workspace.write(&format!("environments/{environment}.yml"), &format!("{head}{runtime}"));
    let line = format!(
        "state init -e {environment} --writer-role {} --confirm-project {1} --confirm-env {environment} \
         --confirm-address streamt-state://connectors/{1}/{environment} -o json",
        yard.writer(),
        yard.project
    );
    yard.run(&line).exits(0);
    yard.run(&format!("apply -e {environment} --confirm-env {environment} -o json")).exits(0);
    yard.declare(&["kept"], &["gone"]);
    yard.run(&format!("plan -e {environment} --out plan.json -o json")).exits(0);
    yard
}

/// SAF-007, SAF-068, CRM-082, CRM-083: `safety.allow_destructive: true` stands in for `--force`, and for nothing else.
#[test]
fn an_environment_that_allows_destruction_still_needs_review_and_confirmation() {
    let yard = in_environment("strict", "allow_destructive: false");
    let line = "apply -e strict --plan plan.json --confirm-env strict";
    assert_eq!(code(&yard.run(&format!("{line} -o json")).exits(1)), "E503_ENVIRONMENT_ERROR");
    yard.run(&format!("{line} --force -o json")).exits(0);
    drop(yard);

    let yard = in_environment("open", "allow_destructive: true");
    let mark = yard.order.mark("open");
    for (line, expected) in [
        ("apply -e open --plan plan.json", "E503_ENVIRONMENT_ERROR"),
        ("apply -e open --plan plan.json --confirm-env strict", "E503_ENVIRONMENT_ERROR"),
        ("apply -e open --confirm-env open", "E418_REVIEWED_PLAN_REQUIRED"),
        ("apply -e open --confirm-env open --target orders", "E418_REVIEWED_PLAN_REQUIRED"),
    ] {
        assert_eq!(code(&yard.run(&format!("{line} -o json")).exits(1)), expected, "{line}");
    }
    assert!(yard.since(mark).is_empty(), "{:?}", yard.since(mark));
    // Authority over destruction proves nothing of what is there.
    let gone = yard.name("gone");
    let recorded = yard.worker.config(&gone).expect("a connector");
    let mut changed = recorded.clone();
    changed["tasks.max"] = json!("2");
    yard.worker.put(&gone, &changed);
    let line = "apply -e open --plan plan.json --confirm-env open -o json";
    assert_eq!(code(&yard.run(line).exits(1)), "E409_PLAN_STALE");
    yard.worker.put(&gone, &recorded);
    assert_eq!(yard.run(line).exits(0).json()["data"]["deleted"], json!([format!("connector:{gone}")]));
}

/// SAF-069: no flag and no other policy lifts it.
#[test]
fn an_environment_that_forbids_deletions_keeps_its_connector() {
    let yard = in_environment("keeping", "allow_destructive: true, forbid_deletion: true");
    let mark = yard.order.mark("keeping");
    let plan = yard.run("plan -e keeping --out again.json -o json").exits(0).json()["data"].clone();
    assert_eq!(plan["safety_blockers"][0]["code"], "deletion_forbidden", "{plan}");
    assert_eq!((&plan["deletes"], &plan["is_apply_blocked"]), (&json!(1), &json!(true)), "{plan}");
    let run = yard.run("apply -e keeping --plan plan.json --confirm-env keeping --force -o json").exits(1);
    assert_eq!(code(&run), "E417_SAFETY_BLOCKED", "{}", run.stdout);
    assert!(run.stdout.contains("forbids every deletion"), "{}", run.stdout);
    assert!(!yard.since(mark).iter().any(|what| what.starts_with("DELETE")), "{:?}", yard.since(mark));
    assert!(yard.worker.config(&yard.name("gone")).is_some());
}
