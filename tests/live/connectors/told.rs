//! What the commands that look tell of connectors: what was intended, what somebody else did, and what is not ours.

use serde_json::{Value, json};

use super::yard::{SENTINEL, State, Yard};

fn cause(yard: &Yard, line: &str, exit: i32) -> Value {
    let run = yard.run(&format!("{line} -o json")).exits(exit).json();
    let data = &run["data"];
    let rows = ["changes", "connectors", "resources"].iter().find_map(|key| data[key].as_array());
    let name = yard.name("archive");
    let row = rows.expect("rows").iter().find(|row| row["name"] == json!(name));
    row.map_or(Value::Null, |row| row["cause"].clone())
}

/// Each way to differ from the declaration has its word, in `plan` and in `status`, and its exit code.
#[test]
fn intended_changes_drift_and_what_is_blocked_are_told_apart() {
    for store in [State::Local, State::Postgres(crate::support::variable("STREAMT_TEST_POSTGRES_18"))] {
        let yard = Yard::new("STREAMT_TEST_CONNECT", store, &["archive"]);
        let name = yard.name("archive");
        let (plan, status, diff) = ("plan --detailed-exitcode", "status", "diff");
        assert_eq!((cause(&yard, plan, 2), cause(&yard, status, 0)), (json!("intended"), json!("intended")));
        assert_eq!(cause(&yard, diff, 0), json!("intended"));
        yard.run("apply -o json").exits(0);
        assert_eq!((cause(&yard, plan, 0), cause(&yard, status, 0)), (Value::Null, Value::Null));
        assert_eq!(cause(&yard, diff, 0), Value::Null);

        let applied = yard.worker.config(&name).expect("a connector");
        let mut by_hand = applied.clone();
        by_hand["tasks.max"] = json!("2");
        yard.worker.put(&name, &by_hand);
        assert_eq!((cause(&yard, plan, 4), cause(&yard, status, 0)), (json!("drift"), json!("drift")));
        assert_eq!(cause(&yard, diff, 0), json!("drift"));
        assert!(yard.run("diff").exits(0).stdout.contains("drift (changed outside)"));
        assert_eq!(yard.run("plan -o json").exits(0).json()["data"]["drifts"], 1);
        let text = yard.run("plan").exits(0).stdout;
        assert!(
            text.contains("drift]") && text.contains("changed outside this project [drift]; applying puts it back"),
            "{text}"
        );
        let text = yard.run("status").exits(0).stdout;
        assert!(text.contains("RUNNING (changed outside)"), "{text}");
        yard.run("status --health").exits(1);

        // Declared anew while the change by hand stands; then that alone.
        let yaml = yard.yaml(&["archive"], &[]);
        yard.write(&yaml.replace("tasks.max: 1", "tasks.max: 3"));
        let both = json!("intended_and_drift");
        assert_eq!((cause(&yard, plan, 2), cause(&yard, status, 0)), (both.clone(), both.clone()));
        assert_eq!(cause(&yard, diff, 0), both);
        yard.worker.put(&name, &applied);
        assert_eq!((cause(&yard, plan, 2), cause(&yard, status, 0)), (json!("intended"), json!("intended")));

        // Gone, with nothing declared anew.
        yard.write(&yaml);
        yard.worker.delete(&name);
        assert_eq!((cause(&yard, plan, 4), cause(&yard, status, 0)), (json!("drift"), json!("drift")));
        yard.run("apply -o json").exits(0);
    }
}

#[test]
fn a_connector_that_is_not_ours_is_blocked_and_not_drift() {
    let yard = Yard::new("STREAMT_TEST_CONNECT", State::Local, &["archive"]);
    let name = yard.name("archive");
    yard.worker
        .put(&name, &json!({"connector.class": "FileStreamSink", "topics": "x", "file": "/dev/null", "name": name}));
    let plan = yard.run("plan --detailed-exitcode -o json").exits(3).json();
    assert_eq!(plan["data"]["ownership_requirements"][0]["reason"], "requires_adoption");
    assert_eq!((cause(&yard, "status", 0), cause(&yard, "diff", 0)), (json!("blocked"), json!("blocked")));
}

/// A state that cannot be read leaves the causes open, says so, and hides nothing else.
#[test]
fn status_without_its_state_still_tells_what_differs() {
    let yard = Yard::postgres(&crate::support::variable("STREAMT_TEST_POSTGRES_14"), &["archive"]);
    let mut command = yard.workspace.command("status -o json");
    command.env("WRITER_DSN", "postgresql://w:w@127.0.0.1:1/postgres");
    let run = crate::harness::Run::of("status", command.output().expect("runs")).exits(0);
    assert_eq!(run.warning_codes(), ["W147_OBSERVATION_INCOMPLETE"]);
    assert!(run.stdout.contains("E420_STATE_BACKEND_UNAVAILABLE"), "{}", run.stdout);
    let row = run.json()["data"]["connectors"][0].clone();
    assert_eq!((&row["status"], &row["cause"]), (&json!("MISSING"), &Value::Null));
}

#[test]
fn diff_show_and_list_know_connectors_and_no_values() {
    let yard = Yard::new("STREAMT_TEST_CONNECT", State::Local, &["archive"]);
    let name = yard.name("archive");
    let row = |exit: i32| {
        let run = yard.run("diff --detailed-exitcode -o json").exits(exit).json();
        let rows = run["data"]["resources"].as_array().expect("rows").clone();
        rows.into_iter().find(|row| row["type"] == "connector").expect("the connector")
    };
    assert_eq!(row(2)["status"], "not_deployed");
    yard.run("apply -o json").exits(0);
    assert_eq!(row(0), json!({"type": "connector", "name": name, "connector": name, "status": "in_sync"}));
    assert!(yard.run("diff").exits(0).stdout.contains("in sync"));
    let mut changed = yard.worker.config(&name).expect("a connector");
    changed["note"] = json!("s3ntinel-of-somebody");
    yard.worker.put(&name, &changed);
    assert_eq!(row(2)["diffs"], json!([{"field": "note", "change": "changed"}]));
    let shown = yard.run(&format!("show model {name} --diff -o json")).exits(0).json()["data"].clone();
    assert_eq!(shown["diff"]["connector"]["status"], "drift");
    assert_eq!(shown["connector"]["class"], "FileStreamSink");
    let listed = yard.run("list connectors -o json").exits(0).json()["data"].clone();
    assert_eq!((&listed["count"], &listed["items"][0]["cluster"]), (&json!(1), &json!("main")));
    let counts = yard.run("list -o json").exits(0).json()["data"]["summary"].clone();
    assert_eq!(counts["connectors"], 1);
    for line in ["diff", "list connectors", &format!("show model {name} --diff"), "status", "plan"] {
        let text = yard.run(line).exits(0).stdout;
        assert!(text.contains(&name), "{line}: {text}");
        assert!(!text.contains("s3ntinel-of-somebody") && !text.contains(SENTINEL), "{line}: {text}");
    }
    // A worker that does not answer is told, and is no clean difference.
    yard.workers.refuse();
    let run = yard.run("diff -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E406_CONNECTION_REFUSED");
    assert_eq!(run.json()["data"]["warning"], "kafka_connect_unavailable");
    let run = yard.run(&format!("show model {name} --diff -o json")).exits(1);
    assert_eq!(run.json()["data"]["diff"]["status"], "unavailable");
}
