//! Continuous tests: their job is deployed beside the topic of failures, writes what it finds there, and `streamt test` says
//! whether it runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::yard::{Yard, consume};
use crate::support::clean_up;

const FAILURES: &str = "_streamt_test_failures";

fn result(yard: &Yard, exit: i32) -> Value {
    yard.run("test --type continuous -o json").exits(exit).json()["data"]["results"][0].clone()
}

/// One test, as the topic of failures has one name on a broker.
#[test]
fn a_continuous_test_runs_as_a_job_and_writes_what_it_finds() {
    crate::estate::blocking(clean_up([FAILURES.to_owned()]));
    let yard = Yard::new();
    let name = format!("{}_positive", yard.model());
    let job = format!("test_{name}");
    let assertions =
        "[{range: {column: amount, min: 0}}, {accepted_values: {column: id, values: [a]}}, {unique_key: {key: id}}]";
    let declared = yard.yaml().replace("name: id, type: STRING", "name: id, type: STRING, classification: sensitive");
    yard.write(&format!(
        "{declared}tests:\n  - {{name: {name}, model: raw, type: continuous, assertions: {assertions}}}\n"
    ));
    let before = result(&yard, 0);
    assert_eq!(
        (&before["status"], &before["message"]),
        (&json!("skipped"), &json!(format!("its job '{job}' is not deployed")))
    );
    assert_eq!(before["warnings"], json!(["unique_key is not executed by a continuous test"]));

    yard.run("apply -o json").exits(0);
    yard.place.running(&job);
    let end = Instant::now() + Duration::from_secs(60);
    let mut seen = yard.run("test --type continuous -o json").json()["data"]["results"][0].clone();
    while seen["status"] != "passed" {
        assert!(Instant::now() < end, "{seen}");
        std::thread::sleep(Duration::from_millis(300));
        seen = yard.run("test --type continuous -o json").json()["data"]["results"][0].clone();
    }
    assert_eq!(seen["job_status"], "RUNNING");

    // It reads what comes from now on.
    yard.put(r#"{"id": "a", "amount": 7}"#);
    // Where that is, a task that runs may still be finding out.
    let found = std::thread::scope(|scope| {
        let found = scope.spawn(|| crate::estate::blocking(consume(FAILURES.to_owned(), 6)));
        while !found.is_finished() {
            yard.put(r#"{"id": "sentinel", "amount": -1}"#);
            std::thread::sleep(Duration::from_millis(500));
        }
        found.join().expect("a violation")
    });
    assert!(!found.iter().any(|found| found.contains("sentinel")), "{found:?}");
    let found: Vec<Value> = found.iter().map(|found| serde_json::from_str(found).unwrap()).collect();
    assert!(found.iter().all(|found| found["test_name"] == name && found["record"] == ""), "{found:?}");
    for (violation, details) in [("range_min:amount", "-1"), ("accepted_values:id", "<redacted>")] {
        let of = found.iter().find(|found| found["violation_type"] == violation);
        assert_eq!(of.unwrap_or_else(|| panic!("{violation}: {found:?}"))["violation_details"], details);
    }

    // Flink quotes the record that it cannot read; what is classified stays with it.
    yard.put("sentinel: no JSON");
    yard.place.job_when(&job, |job| job["state"] == "FAILED");
    let after = result(&yard, 1);
    assert_eq!((&after["status"], &after["job_status"]), (&json!("failed"), &json!("FAILED")), "{after}");
    let told = after["errors"][0].as_str().unwrap();
    assert!(told.contains("its message may hold values of classified columns"), "{told}");
    for command in ["test --type continuous -o json", "test --type continuous --junit r.xml", "status -o json"] {
        let run = yard.run(command);
        assert!(!run.stdout.contains("sentinel") && !run.stderr.contains("sentinel"), "{command}: {}", run.stdout);
    }
    assert!(!std::fs::read_to_string(yard.workspace.path("r.xml")).unwrap().contains("sentinel"));
    crate::estate::blocking(clean_up([FAILURES.to_owned()]));
}
