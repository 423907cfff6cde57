//! What the commands that look tell of jobs: whether they run what is declared, and why not.

use serde_json::json;

use super::yard::Yard;
use crate::losses::site::code;

/// What is declared, whether it runs, and nothing of what it runs.
#[test]
fn list_diff_and_show_know_jobs() {
    let yard = Yard::new();
    let job = yard.job();
    let listed = yard.run("list jobs -o json").exits(0).json()["data"].clone();
    assert_eq!((&listed["count"], &listed["items"][0]["name"]), (&json!(1), &json!(job)));
    assert_eq!((&listed["items"][0]["cluster"], &listed["items"][0]["declared"]), (&json!("main"), &json!("model")));
    assert_eq!(yard.run("list -o json").exits(0).json()["data"]["summary"]["jobs"], 1);
    let row = |exit: i32| {
        let run = yard.run("diff --detailed-exitcode -o json").exits(exit).json();
        let rows = run["data"]["resources"].as_array().expect("rows").clone();
        rows.into_iter().find(|row| row["type"] == "flink_job").expect("the job")
    };
    assert_eq!(row(2), json!({"type": "flink_job", "name": job, "exists": false, "state": null, "cause": "intended"}));
    yard.run("apply -o json").exits(0);
    yard.place.running(&job);
    assert_eq!(row(0), json!({"type": "flink_job", "name": job, "exists": true, "state": "RUNNING"}));
    let shown = yard.run(&format!("show model {job} --diff -o json")).exits(0).json()["data"]["diff"].clone();
    assert_eq!(
        (&shown["status"], &shown["flink_job"]),
        (&json!("in_sync"), &json!({"name": job, "exists": true, "state": "RUNNING"}))
    );
    yard.place.cancel(&job);
    yard.place.job_when(&job, |job| job["state"] == "CANCELED");
    assert_eq!(row(2)["state"], "CANCELED");
    assert!(yard.run("diff").exits(0).stdout.contains(&format!("! job {job}: CANCELED (applied, no longer runs)")));
    yard.jobs.refuse();
    let run = yard.run("diff -o json").exits(1);
    assert_eq!(code(&run), "E406_CONNECTION_REFUSED");
    assert_eq!(run.json()["data"]["warning"], "flink_unavailable");
    let run = yard.run(&format!("show model {job} --diff -o json")).exits(1);
    assert_eq!(run.json()["data"]["diff"]["status"], "unavailable");
}

/// SAF-043, SAF-044: declared and not applied, no longer running, and both are told apart, by `diff` and by `status`; a running job
/// that was declared anew is neither in sync nor healthy.
#[test]
fn diff_and_status_tell_why_a_job_is_not_as_declared() {
    let yard = Yard::new();
    let (job, yaml) = (yard.job(), yard.yaml());
    let edited = yaml.replace("amount > 0", "amount > 1");
    assert_eq!(yard.causes(2), json!("intended"));
    yard.run("apply -o json").exits(0);
    yard.place.running(&job);
    assert_eq!(yard.causes(0), json!(null));
    yard.run("status --health").exits(0);

    yard.write(&edited);
    assert_eq!(yard.causes(2), json!("intended"));
    for command in ["diff", "status"] {
        let text = yard.run(command).exits(0).stdout;
        assert!(text.contains("RUNNING (declared, not applied)"), "{command}: {text}");
    }
    yard.run("status --health").exits(1);

    yard.place.cancel(&job);
    yard.place.job_when(&job, |job| job["state"] == "CANCELED");
    assert_eq!(yard.causes(2), json!("intended_and_drift"));
    yard.write(&yaml);
    assert_eq!(yard.causes(2), json!("drift"));
    let text = yard.run("status").exits(0).stdout;
    assert!(text.contains("CANCELED (applied, no longer runs)"), "{text}");
}

/// Without the record nobody knows what a running job runs: that is said, and the rest is told.
#[test]
fn a_running_job_without_a_readable_state_is_told_as_running_and_no_more() {
    let yard = Yard::stored(super::cluster::Place::shared(), &crate::support::variable("STREAMT_TEST_POSTGRES_18"));
    yard.run("apply -o json").exits(0);
    yard.place.running(&yard.job());
    for (command, list, exit) in [("status", "flink_jobs", 0), ("diff --detailed-exitcode", "resources", 0)] {
        let run = yard.without_state(&format!("{command} -o json")).exits(exit);
        assert_eq!(run.warning_codes(), ["W147_OBSERVATION_INCOMPLETE"], "{}", run.stdout);
        assert!(run.stdout.contains("whether jobs run what is declared, is not known"), "{}", run.stdout);
        let rows = run.json()["data"][list].as_array().expect("rows").clone();
        let row = rows.iter().find(|row| row["name"] == json!(yard.job()) && row["type"] != "model").expect("the job");
        assert_eq!(row["cause"], json!(null));
    }
}

/// A job that fails as soon as it runs was submitted; why is a warning, here and in `status`.
#[test]
fn a_job_that_fails_is_told_with_its_root_cause() {
    let yard = Yard::new();
    let yaml = yard.yaml().replace("flink: {checkpoint_interval_ms: 1000}", "flink: {restart_strategy: {type: none}}");
    yard.write(&yaml.replace("SELECT id, amount", "SELECT id, CAST('no number' || id AS INT) AS amount"));
    yard.put(r#"{"id": "a", "amount": 7}"#);
    yard.run("apply -o json").exits(0);
    yard.place.job_when(&yard.job(), |job| job["state"] == "FAILED");
    let status = yard.told_why();
    assert_eq!(status.json()["data"]["flink_jobs"][0]["status"], "FAILED");
    assert!(status.stdout.contains("no number") && !status.stdout.contains("\\tat "), "{}", status.stdout);
}
