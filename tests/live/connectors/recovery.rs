//! What ends a removal that was not proved: evidence, a review, and nothing sent to the worker but reads.

use std::time::Duration;

use serde_json::{Value, json};

use super::yard::Yard;
use crate::faults::{Fault, first};
use crate::losses::site::{code, on_each_major, text};

/// A project whose removal of `gone` ended as uncertain, with the tombstone and the model taken out again.
fn blocked(admin: &str, fault: Fault) -> (Yard, String) {
    let yard = Yard::alone(admin, &["gone", "kept"]);
    yard.run("apply -o json").exits(0);
    yard.plan_removal(&["kept"], &["gone"]).exits(0);
    let hit = yard.workers.rule(first(|request| request.what.starts_with("DELETE")), fault);
    let run = yard.apply_plan().exits(1);
    assert!(hit.hit(Duration::from_secs(1)));
    assert_eq!(code(&run), "E428_CONNECTOR_REMOVAL_DRIFT", "{}", run.stdout);
    yard.declare(&["kept"], &[]);
    let id = text(&yard.status()["operation_status"]["operation_id"]);
    (yard, id)
}

pub(super) fn recover(yard: &Yard, id: &str, resolution: &str) {
    let file = std::fs::read_to_string(yard.workspace.path("recovery.json")).unwrap();
    let plan: Value = serde_json::from_str(&file).unwrap();
    assert!(!file.contains(super::yard::SENTINEL), "evidence holds digests only");
    let line = format!(
        "state recover --plan recovery.json --confirm-operation-id {id} --confirm-resolution {resolution} --confirm-evidence-checksum {} -o json",
        text(&plan["evidence_checksum"])
    );
    yard.run(&line).exits(0);
}

/// CRM-110, CRM-112, CRM-116, REC-020, REC-039, REC-048, REC-060, REC-079, LIM-013: one GET of exactly that connector each time.
#[test]
fn a_deletion_whose_answer_was_lost_is_recorded_once_absence_is_observed() {
    on_each_major(|admin| {
        let (yard, id) = blocked(admin, Fault::LoseAnswer);
        let mark = yard.order.mark("recovery");
        let refused = yard.run("state recovery-plan --resolution rolled_back --out no.json -o json").exits(1);
        assert_eq!(code(&refused), "E409_PLAN_STALE", "{}", refused.stdout);
        yard.run("state recovery-plan --resolution observed --out recovery.json -o json").exits(0);
        recover(&yard, &id, "observed");
        let get = format!("GET /connectors/{}", yard.name("gone"));
        assert_eq!(yard.since(mark), vec![get; 3], "two plans and their one execution");
        assert!(!yard.records().iter().any(|record| record.ends_with(&yard.name("gone"))));
        assert!(yard.records().iter().any(|record| record.ends_with(&yard.name("kept"))));
        assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
        assert_eq!(yard.run("plan --detailed-exitcode").exits(0).exit, 0);
    });
}

/// CRM-113, CRM-114, REC-047, REC-060
#[test]
fn a_deletion_that_never_arrived_is_rolled_back_and_a_third_form_is_not() {
    on_each_major(|admin| {
        let (yard, id) = blocked(admin, Fault::CutBefore);
        let reviewed = yard.worker.config(&yard.name("gone")).expect("it was never deleted");
        let mut changed = reviewed.clone();
        changed["tasks.max"] = json!("2");
        yard.worker.put(&yard.name("gone"), &changed);
        for resolution in ["observed", "rolled_back"] {
            let line = format!("state recovery-plan --resolution {resolution} --out no.json -o json");
            assert_eq!(code(&yard.run(&line).exits(1)), "E409_PLAN_STALE");
        }
        yard.worker.put(&yard.name("gone"), &reviewed);
        yard.run("state recovery-plan --resolution rolled_back --out recovery.json -o json").exits(0);
        recover(&yard, &id, "rolled_back");
        assert!(yard.records().iter().any(|record| record.ends_with(&yard.name("gone"))), "the record is kept");
        assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
        assert_eq!(yard.worker.config(&yard.name("gone")), Some(reviewed));

        // The removal can be planned and carried out again.
        yard.plan_removal(&["kept"], &["gone"]).exits(0);
        yard.apply_plan().exits(0);
        assert_eq!(yard.worker.config(&yard.name("gone")), None);
    });
}

/// CRM-115
#[test]
fn an_observation_that_fails_keeps_the_blocker() {
    let admin = crate::support::variable("STREAMT_TEST_POSTGRES_14");
    let (yard, _) = blocked(&admin, Fault::LoseAnswer);
    yard.workers.refuse();
    let refused = yard.run("state recovery-plan --resolution observed --out no.json -o json").exits(1);
    assert_eq!(code(&refused), "E406_CONNECTION_REFUSED", "{}", refused.stdout);
    yard.workers.restore();
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "recovery_required");
}

/// A create whose answer was lost is recorded when it stands as declared.
#[test]
fn a_create_whose_answer_was_lost_is_recorded_once_it_is_observed() {
    let admin = crate::support::variable("STREAMT_TEST_POSTGRES_18");
    let yard = Yard::postgres(&admin, &["made"]);
    let hit = yard.workers.rule(first(|request| request.what == "POST /connectors"), Fault::LoseAnswer);
    let run = yard.run("apply -o json").exits(1);
    assert!(hit.hit(Duration::from_secs(1)));
    assert_eq!(code(&run), "E407_DEPLOY_ERROR", "{}", run.stdout);
    let id = text(&yard.status()["operation_status"]["operation_id"]);
    yard.run("state recovery-plan --resolution observed --out recovery.json -o json").exits(0);
    recover(&yard, &id, "observed");
    assert!(yard.records().iter().any(|record| record.ends_with(&yard.name("made"))));
    assert!(yard.run("plan --detailed-exitcode").exits(0).stdout.contains("No changes"));
}
