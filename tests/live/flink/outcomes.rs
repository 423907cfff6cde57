//! An apply whose submission goes wrong: what is recorded, what is told, and the way out.

use std::time::Duration;

use serde_json::{Value, json};

use super::yard::Yard;
use crate::faults::{Fault, Request, answer, every, first};
use crate::losses::site::{code, text};

const TRACE: &str = r#"{"errors":["java.lang.IllegalStateException: s3ntinel\n\tat a.b.C(D.java:1)"]}"#;

fn is_insert(request: &Request) -> bool {
    request.says("\"INSERT INTO")
}

fn broken() -> Fault {
    Fault::Answer(answer("500 Internal Server Error", &[("content-type", "application/json")], TRACE))
}

/// An apply whose INSERT is answered by nothing but errors, and the id of its operation.
fn blocked() -> (Yard, String) {
    let yard = Yard::new();
    yard.gateway.rule(every(is_insert), broken());
    let run = yard.run("apply -o json").exits(1);
    assert_eq!(code(&run), "E407_DEPLOY_ERROR", "{}", run.stdout);
    assert!(run.stdout.contains("the outcome is unknown"), "{}", run.stdout);
    assert!(!run.stdout.contains("s3ntinel") && !run.stderr.contains("s3ntinel"), "{}", run.stdout);
    yard.gateway.disarm();
    let status = yard.status()["operation_status"].clone();
    assert_eq!(text(&status["status"]), "recovery_required");
    (yard, text(&status["operation_id"]))
}

/// Nobody knows whether the job was made: the marker says so, and once nothing can arrive any more the absence of the job ends
/// the operation. A job that is there proves nothing, whoever made it.
///
/// REC-054, REC-055, LIM-026
#[test]
fn a_submission_that_nobody_can_prove_is_ended_by_absence_and_by_nothing_else() {
    let ((yard, id), (other, _)) = (blocked(), blocked());
    assert_eq!(code(&yard.run("apply -o json").exits(1)), "E419_STATE_RECOVERY_REQUIRED");
    let early = yard.run("state recovery-plan --resolution observed --out early.json -o json").exits(1);
    assert_eq!(code(&early), "E409_PLAN_STALE", "{}", early.stdout);
    assert!(early.stdout.contains("can still arrive"), "{}", early.stdout);
    std::thread::sleep(Duration::from_secs(121));

    let mark = yard.order.mark("recovery");
    yard.run("state recovery-plan --resolution observed --out recovery.json -o json").exits(0);
    let file = std::fs::read_to_string(yard.workspace.path("recovery.json")).unwrap();
    let plan: Value = serde_json::from_str(&file).unwrap();
    let line = format!(
        "state recover --plan recovery.json --confirm-operation-id {id} --confirm-resolution observed \
         --confirm-evidence-checksum {} -o json",
        text(&plan["evidence_checksum"])
    );
    yard.run(&line).exits(0);
    assert!(yard.since(mark).iter().all(|what| what.starts_with("GET /jobs")), "{:?}", yard.since(mark));
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
    // What was not submitted is planned and submitted as usual.
    yard.run("apply -o json").exits(0);
    yard.place.running(&yard.job());

    // Here somebody submitted it by hand meanwhile.
    other.place.submit(&other.job(), &super::cluster::fresh_id()).expect("by hand");
    let mark = other.order.mark("recovery");
    for resolution in ["observed", "rolled_back"] {
        let line = format!("state recovery-plan --resolution {resolution} --out present.json -o json");
        let targets = other.run(&line).exits(1).json()["data"]["targets"].clone();
        let job = targets.as_array().unwrap().iter().find(|t| text(&t["resource_id"]).contains("/flink_job/")).unwrap();
        assert_eq!(
            (&job["presence"], &job["reason"]),
            (&json!("present"), &json!("content_not_provable")),
            "{targets}"
        );
    }
    assert!(other.since(mark).iter().all(|what| what.starts_with("GET /jobs")), "{:?}", other.since(mark));
    assert_eq!(text(&other.status()["operation_status"]["status"]), "recovery_required");
}

/// A lost answer is settled inside the action: the apply succeeds and there is one job.
#[test]
fn a_lost_answer_does_not_fail_an_apply() {
    for fault in [Fault::LoseAnswer, Fault::CutBefore] {
        let yard = Yard::new();
        let hit = yard.gateway.rule(first(is_insert), fault);
        let applied = yard.run("apply -o json").exits(0).json();
        assert_eq!(hit.count(), 1);
        let job = yard.place.running(&yard.job());
        assert_eq!(applied["data"]["flink_jobs"][0]["job_id"], job["jid"]);
        assert_eq!(yard.place.jobs(&yard.job()).len(), 1);
        assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
    }
}

/// SEC-003: SQL that compiles and that Flink refuses is refused before anything is changed.
#[test]
fn sql_that_flink_refuses_is_told_in_its_words_and_leaves_nothing() {
    let yard = Yard::new();
    yard.write(&yard.yaml().replace("amount > 0", "NO_SUCH_FUNCTION(amount) > 0"));
    for command in ["apply --dry-run", "apply"] {
        let run = yard.run(&format!("{command} -o json")).exits(1);
        assert_eq!(code(&run), "E403_FLINK_SQL_ERROR", "{}", run.stdout);
        assert!(run.stdout.contains("NO_SUCH_FUNCTION") && !run.stdout.contains("\\tat "), "{}", run.stdout);
    }
    assert!(yard.place.jobs(&yard.job()).is_empty());
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
    let plan = yard.run("plan -o json").exits(0).json();
    assert_eq!(plan["data"]["creates"], 2, "the topic was not created either: {plan}");
}

/// SAF-013: what Flink refuses at the submission itself, after it accepted the same SQL a moment before.
#[test]
fn a_submission_that_the_gateway_ends_with_an_error_fails_its_action_and_makes_no_job() {
    let yard = Yard::new();
    // The session of the submission loses its table between the CREATE and the INSERT.
    let url = yard.place.gateway.clone();
    yard.gateway.rule(
        crate::faults::first(|request| request.says("\"statement\":\"INSERT INTO")),
        Fault::call(move |insert| {
            let path = insert.what.trim_start_matches("POST ").to_owned();
            super::cluster::statement(&url, &path, "DROP TEMPORARY TABLE IF EXISTS `raw`");
            super::cluster::statement(&url, &path, "DROP TABLE IF EXISTS `raw`");
        }),
    );
    let run = yard.run("apply -o json").exits(1);
    assert_eq!(code(&run), "E403_FLINK_SQL_ERROR", "{}", run.stdout);
    assert!(!run.stdout.contains("\\tat "), "{}", run.stdout);
    assert!(yard.place.jobs(&yard.job()).is_empty());
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "recovery_required");
}
