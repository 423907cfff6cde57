//! An apply whose submission goes wrong: what is recorded, what is told, and the way out.

use super::yard::Yard;
use crate::faults::{Fault, Request, first};
use crate::losses::site::{code, text};

fn is_insert(request: &Request) -> bool {
    request.says("\"INSERT INTO")
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
