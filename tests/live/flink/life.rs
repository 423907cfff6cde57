//! A job from its declaration to its end, as its user types it.

use std::time::{Duration, Instant};

use serde_json::json;

use super::cluster::Place;
use super::yard::{PASSWORD, Yard};
use crate::harness::Workspace;
use crate::losses::site::{code, text};
use crate::support::{clean_up, variable};

fn waits(of: &Yard, wanted: &str) -> serde_json::Value {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let row = of.run("status -o json").json()["data"]["flink_jobs"][0].clone();
        if row["status"] == wanted {
            return row;
        }
        assert!(Instant::now() < end, "{row}");
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// SAF-001, SAF-033, SAF-034, SAF-043, SAF-044, SAF-070, LIM-006: planned, applied, journaled, observed; records flow; a changed
/// declaration and an ended job are blocked, and nothing is ever cancelled or sent again.
#[test]
fn a_job_is_created_runs_and_is_never_replaced_or_started_again() {
    let yard = Yard::new();
    let (job, label) = (yard.job(), format!("flink_job:{}", yard.job()));
    let planned = yard.run("plan --out plan.json -o json").exits(0).json();
    let change = planned["data"]["changes"].as_array().unwrap().iter().find(|c| c["type"] == "flink_job").unwrap();
    assert_eq!((&change["name"], &change["action"]), (&json!(job), &json!("submit")));
    assert!(yard.since(0).iter().all(|what| what.starts_with("GET /jobs")), "{:?}", yard.since(0));
    assert!(yard.place.jobs(&job).is_empty());

    let applied = yard.run("apply --plan plan.json --confirm -o json").exits(0).json();
    let data = &applied["data"];
    assert!(data["created"].as_array().unwrap().contains(&json!(label)), "{applied}");
    let live = yard.place.running(&job);
    assert_eq!(
        data["flink_jobs"],
        json!([{"name": job, "job_id": live["jid"], "state": data["flink_jobs"][0]["state"]}])
    );
    yard.put(r#"{"id": "a", "amount": 7}"#);
    yard.put(r#"{"id": "b", "amount": -1}"#);
    yard.put(r#"{"id": "c", "amount": 9}"#);
    let values: Vec<serde_json::Value> =
        yard.records(2).iter().map(|value| serde_json::from_str(value).unwrap()).collect();
    assert_eq!(values, [json!({"id": "a", "amount": 7}), json!({"id": "c", "amount": 9})]);

    assert!(yard.run("plan --detailed-exitcode").exits(0).stdout.contains("No changes detected."));
    assert_eq!(yard.run("apply -o json").exits(0).json()["data"]["created"], json!([]));
    let row = waits(&yard, "RUNNING");
    assert_eq!((&row["name"], &row["job_id"], &row["exists"]), (&json!(job), &live["jid"], &json!(true)));
    assert_eq!(row["tasks"]["running"], row["tasks"]["total"]);
    let shown = yard.run("status --health").exits(0).stdout;
    assert!(shown.contains("FLINK JOB") && shown.contains("RUNNING"), "{shown}");

    // Another SQL: blocked, whatever is said, and the job goes on.
    let yaml = yard.yaml();
    yard.write(&yaml.replace("amount > 0", "amount > 1"));
    let mark = yard.order.mark("changed");
    let plan = yard.run("plan -o json").exits(0).json();
    assert_eq!(plan["data"]["safety_blockers"][0]["code"], "flink_update_requires_savepoint", "{plan}");
    assert!(yard.run("plan").exits(0).stdout.contains("artifact_checksum"));
    for line in ["apply -o json", "apply --force -o json"] {
        assert_eq!(code(&yard.run(line).exits(1)), "E417_SAFETY_BLOCKED");
    }
    assert!(yard.since(mark).iter().all(|what| what.starts_with("GET /jobs")), "{:?}", yard.since(mark));
    assert_eq!(yard.place.running(&job)["jid"], live["jid"]);

    // It ends: nothing is known of its state, so it is not started again.
    yard.write(&yaml);
    yard.place.cancel(&job);
    yard.place.job_when(&job, |job| job["state"] == "CANCELED");
    let mark = yard.order.mark("ended");
    let plan = yard.run("plan -o json").exits(0).json();
    let blocker = &plan["data"]["safety_blockers"][0];
    assert_eq!(blocker["code"], "flink_resubmit_requires_state_evidence", "{plan}");
    assert_eq!(blocker["details"], json!({"current_status": "CANCELED"}));
    assert_eq!(code(&yard.run("apply -o json").exits(1)), "E417_SAFETY_BLOCKED");
    assert_eq!(yard.run("status --health -o json").exits(1).json()["data"]["flink_jobs"][0]["status"], "CANCELED");
    assert!(yard.since(mark).iter().all(|what| what.starts_with("GET /jobs")), "{:?}", yard.since(mark));
    assert_eq!(yard.place.jobs(&job).len(), 1);
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
}

/// SEC-001, SEC-003, SEC-004: the broker's password reaches Flink, which reads with it, and nobody else.
#[test]
fn secrets_are_filled_in_at_submit_and_shown_nowhere() {
    let yard = Yard::new();
    yard.write(&yard.secured());
    let mut all = String::new();
    let mut note = |run: crate::harness::Run| {
        all.push_str(&run.stdout);
        all.push_str(&run.stderr);
    };
    for line in [
        "compile",
        "plan -vvv",
        "plan -o json -vvv",
        "plan --out plan.json",
        "review plan.json",
        "apply --dry-run -vvv",
    ] {
        note(yard.run(line).exits(0));
    }
    note(yard.run("apply -vvv -o json").exits(0));
    let sent = yard.order.records();
    assert!(sent.iter().any(|record| record.what.ends_with("/statements")), "the scan must find what was sent");
    yard.place.running(&yard.job());
    yard.put(r#"{"id": "a", "amount": 7}"#);
    assert_eq!(yard.records(1).len(), 1, "Flink reads and writes with the login");
    for line in ["plan -vvv", "status -vvv", "status -o json", "state status -o json", "list models", "diff"] {
        note(yard.run(line));
    }
    for (path, bytes) in yard.workspace.snapshot() {
        if !path.ends_with("stream_project.yml") {
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    assert!(all.contains(&yard.job()) && all.contains("'***'"), "the scan must find what is there");
    for secret in [PASSWORD, "ScramLoginModule", yard.gateway.address(), yard.jobs.address()] {
        assert!(!all.contains(secret), "{secret}");
    }
}

/// SAF-014, LIM-017
#[test]
fn a_job_of_somebody_else_is_neither_touched_nor_taken_over() {
    let yard = Yard::new();
    let id = super::cluster::fresh_id();
    yard.place.submit(&yard.job(), &id).expect("theirs");
    yard.place.running(&yard.job());
    let run = yard.run("apply -o json").exits(1);
    assert_eq!(code(&run), "E410_OWNERSHIP_REQUIRED", "{}", run.stdout);
    assert_eq!(yard.causes(2), json!("blocked"));
    assert!(yard.run("diff").exits(0).stdout.contains("RUNNING (blocked: not ours)"));
    assert_eq!(yard.place.running(&yard.job())["jid"], id.as_str());
}

/// EXP-012: what fails before anything is sent says so by its own code, and leaves nothing to recover.
#[test]
fn clusters_that_cannot_be_used_are_refused_before_anything_is_changed() {
    let yard = Yard::new();
    let yaml = yard.yaml();
    let gateway = format!(", sql_gateway_url: \"{}\"", yard.gateway.url());
    assert!(yaml.contains(&gateway));
    yard.write(&yaml.replace(&gateway, ""));
    for command in ["plan", "apply"] {
        let run = yard.run(&format!("{command} -o json")).exits(1);
        assert_eq!(code(&run), "E206_SQL_GATEWAY_NOT_CONFIGURED", "{}", run.stdout);
    }
    yard.write(&yaml);
    yard.jobs.refuse();
    for command in ["plan", "apply", "status"] {
        let run = yard.run(&format!("{command} -o json")).exits(1);
        assert_eq!(code(&run), "E406_CONNECTION_REFUSED", "{}", run.stdout);
        assert!(!run.stdout.contains(yard.jobs.address()), "{}", run.stdout);
    }
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
}

/// EXP-002: the project that `init` writes is deployed as it stands, and moves records.
#[test]
fn the_project_that_init_writes_runs_on_flink() {
    let place = Place::shared();
    let name = format!("fi-{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let job = format!("{}_clean_processor", name.replace('-', "_"));
    let workspace = Workspace::new()
        .variable("KAFKA_BOOTSTRAP_SERVERS", &variable("STREAMT_TEST_KAFKA"))
        .variable("FLINK_REST_URL", &place.rest)
        .variable("FLINK_SQL_GATEWAY_URL", &place.gateway);
    workspace.run(&format!("init --project-dir shop --project-name {name}")).exits(0);
    let file = workspace.path("shop/stream_project.yml");
    let yaml = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, yaml.replace("events_clean", &format!("{}_clean", name.replace('-', "_")))).unwrap();
    let raw = format!("{name}.raw.events.v1");
    crate::estate::blocking(super::yard::create(raw.clone()));
    let plan = workspace.run("plan -o json --project-dir shop").exits(0).json();
    let change = |kind: &str| {
        let changes = plan["data"]["changes"].as_array().unwrap();
        text(&changes.iter().find(|change| change["type"] == kind).unwrap_or_else(|| panic!("{plan}"))["name"])
    };
    let (clean, planned) = (change("topic"), change("flink_job"));
    assert_eq!(planned, job);
    workspace.run("apply -o json --project-dir shop").exits(0);
    place.running(&job);
    let event = r#"{"id": "1", "event_type": "seen", "payload": "p", "created_at": "2026-01-01 00:00:00.000"}"#;
    crate::estate::blocking(super::yard::produce(raw.clone(), event.to_owned()));
    let read = crate::estate::blocking(super::yard::consume(clean.clone(), 1));
    let value: serde_json::Value = serde_json::from_str(&read[0]).unwrap();
    assert_eq!((&value["id"], &value["event_type"]), (&json!("1"), &json!("seen")));
    workspace.run("status --health --project-dir shop").exits(0);
    place.cancel(&job);
    crate::estate::blocking(clean_up([raw, clean]));
}

/// A bound of 100 seconds and more, which one field of an interval cannot hold: an event closes a window only when it is later
/// than its end by that much.
#[test]
fn an_event_may_be_late_by_minutes() {
    let yard = Yard::new();
    let timed = "{name: amount, type: INT}, {name: at, type: TIMESTAMP(3)}], \
                 event_time: {column: at, watermark: {max_out_of_orderness_ms: 150500}}}";
    let yaml = yard.yaml().replace("{name: amount, type: INT}]}", timed);
    let (head, query) = yaml.split_once("      SELECT id").expect("a query");
    assert!(head.contains("150500") && query.contains("raw"));
    yard.write(&format!(
        "{head}      SELECT window_end, SUM(amount) AS amount
      FROM TABLE(TUMBLE(TABLE {{{{ source(\"raw\") }}}}, DESCRIPTOR(`at`), INTERVAL '1' MINUTE))
      GROUP BY window_start, window_end
"
    ));
    yard.run("apply -o json").exits(0);
    yard.place.running(&yard.job());
    let put = |amount: u32, at: &str| {
        yard.put(&format!(r#"{{"id": "a", "amount": {amount}, "at": "2026-01-01 {at}"}}"#));
    };
    put(1, "10:00:30.000");
    // A moment too early to close the first minute: what is late for it still counts, long after Flink has seen this.
    put(2, "10:03:30.400");
    std::thread::sleep(Duration::from_secs(2));
    put(4, "10:00:50.000");
    put(8, "10:03:31.500");
    let first: serde_json::Value = serde_json::from_str(&yard.records(1)[0]).unwrap();
    assert_eq!(first, json!({"window_end": "2026-01-01 10:01:00", "amount": 5}));
}

/// A job that reads a topic that nobody made would fail at once and could not be started again.
#[test]
fn a_job_waits_for_the_topic_of_its_source() {
    let yard = Yard::new();
    let missing = format!("{}.missing", yard.project);
    yard.write(&yard.yaml().replace(&yard.raw(), &missing));
    let planned = yard.run("plan --detailed-exitcode -o json").exits(3).json();
    let blocker = &planned["data"]["safety_blockers"][0];
    assert_eq!((&blocker["code"], &blocker["details"]["topics"]), (&json!("flink_input_missing"), &json!([missing])));
    let refused = yard.run("apply -o json").exits(1);
    assert_eq!(code(&refused), "E417_SAFETY_BLOCKED", "{}", refused.stdout);
    assert!(refused.stdout.contains(&missing), "{}", refused.stdout);
    assert!(yard.place.jobs(&yard.job()).is_empty());
    yard.run("explain flink_input_missing").exits(0);

    crate::estate::blocking(super::yard::create(missing.clone()));
    yard.run("apply -o json").exits(0);
    yard.place.running(&yard.job());
    crate::estate::blocking(clean_up([missing]));
}
