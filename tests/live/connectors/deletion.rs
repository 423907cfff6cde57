//! An explicit removal with PostgreSQL state, from the reviewed plan to the proved absence, and every way in which it fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::yard::{PASSWORD, SENTINEL, Yard};
use crate::estate::with_kafka;
use crate::faults::{Fault, every, first, nth};
use crate::losses::site::{code, on_each_major, text};

/// A project whose two connectors exist and are recorded.
fn applied(admin: &str) -> Yard {
    let yard = Yard::alone(admin, &["gone", "kept"]);
    yard.run("apply -o json").exits(0);
    yard
}

fn is_delete(request: &crate::faults::Request) -> bool {
    request.what.starts_with("DELETE")
}

fn reads(yard: &Yard, name: &'static str) -> impl Fn(&crate::faults::Request) -> bool + Send + 'static {
    let path = format!("GET /connectors/{}", yard.name(name));
    move |request| request.what == path
}

/// CRM-004, CRM-034, CRM-035, CRM-036, CRM-079, CRM-054, CRM-080, CRM-081, CRM-083, CRM-089, CRM-090, CRM-091, CRM-094, CRM-095, CRM-106,
/// CRM-107, CRM-109
#[test]
fn a_reviewed_removal_deletes_exactly_one_connector() {
    on_each_major(|admin| {
        let yard = applied(admin);
        let (gone, kept) = (yard.name("gone"), yard.name("kept"));
        let untouched = yard.worker.config(&kept).expect("a connector");
        let before = yard.sql("SELECT state_serial, state_json FROM {schema}.current_state").remove(0);
        let get = format!("GET /connectors/{gone}");

        let mark = yard.order.mark("plan");
        let planned = yard.plan_removal(&["kept"], &["gone"]).exits(0);
        assert_eq!(planned.warning_codes(), ["W119_CONNECTOR_REMOVAL_DESTRUCTIVE"]);
        let planned = planned.json();
        let warning = planned["warnings"][0].to_string();
        assert!(warning.contains('1') && !warning.contains(&gone) && !warning.contains("main"), "{warning}");
        assert_eq!(
            (&planned["data"]["deletes"], &planned["data"]["risk_summary"]["overall"]),
            (&json!(1), &json!("destructive"))
        );
        let seen = yard.since(mark);
        assert!(seen.contains(&get) && seen.iter().all(|what| what.starts_with("GET /connectors/")), "{seen:?}");
        let file = std::fs::read_to_string(yard.workspace.path("plan.json")).unwrap();
        let plan: Value = serde_json::from_str(&file).unwrap();
        let action = &plan["actions"][0];
        assert_eq!((&plan["format_version"], &action["action"]), (&json!(5), &json!("delete")));
        assert_eq!(action["connector_evidence"]["connector_name"], json!(gone));
        assert_eq!(
            (&action["connector_evidence"]["current"]["exists"], &action["connector_evidence"]["desired"]["exists"]),
            (&json!(true), &json!(false))
        );
        assert!(!file.contains(SENTINEL) && !file.contains("tasks.max"), "{file}");
        let reviewed = yard.run("review plan.json").exits(0).stdout;
        assert!(reviewed.contains(&gone) && reviewed.contains("destructive"), "{reviewed}");

        // Looking saves nothing, authorises nothing, and names the workflow that does.
        let looked = yard.run("plan --detailed-exitcode -o json").exits(2).json();
        assert_eq!((&looked["data"]["deletes"], &looked["data"]["saved_plan"]), (&json!(1), &Value::Null));
        let looked = yard.run("plan").exits(0).stdout;
        assert!(looked.contains(&gone) && looked.contains("--out") && !looked.contains("streamt apply"), "{looked}");

        // Neither without authority nor without the environment's confirmation.
        let refused = yard.run("apply --plan plan.json --confirm-env default -o json").exits(1);
        assert_eq!(code(&refused), "E503_ENVIRONMENT_ERROR");
        assert!(!yard.order.mutations().iter().any(|record| record.what.starts_with("DELETE")));

        let mark = yard.order.mark("apply");
        let applied = yard.apply_plan().exits(0);
        assert!(applied.warning_codes().contains(&"W119_CONNECTOR_REMOVAL_DESTRUCTIVE".to_owned()));
        let applied = applied.json();
        assert_eq!(applied["data"]["deleted"], json!([format!("connector:{gone}")]));
        let seen: Vec<String> = yard.since(mark).into_iter().filter(|what| what.contains(&gone)).collect();
        let delete = format!("DELETE /connectors/{gone}");
        let at = seen.iter().position(|what| *what == delete).expect("a DELETE");
        assert_eq!(at, 3, "the plan, the wait for the worker and the check come before: {seen:?}");
        assert!(seen.len() > at + 1, "and polls behind it: {seen:?}");
        assert!(seen.iter().enumerate().all(|(place, what)| place == at || *what == get), "nothing else: {seen:?}");
        let others: Vec<String> = yard.since(mark).into_iter().filter(|what| !what.contains(&gone)).collect();
        assert_eq!(others, [format!("GET /connectors/{kept}")], "the one observation of the other");

        assert_eq!(yard.worker.config(&gone), None);
        assert_eq!(yard.worker.config(&kept), Some(untouched), "the other connector is byte for byte what it was");
        let after = yard.sql("SELECT state_serial, state_json FROM {schema}.current_state").remove(0);
        assert_eq!(after[0].parse::<u64>().unwrap(), before[0].parse::<u64>().unwrap() + 1);
        let (mut before, after): (Value, Value) =
            (serde_json::from_str(&before[1]).unwrap(), serde_json::from_str(&after[1]).unwrap());
        let id = format!("streamt://{}/default/connector/{gone}", yard.project);
        before["resources"].as_object_mut().unwrap().shift_remove(&id).expect("it was recorded");
        assert_eq!(before["resources"], after["resources"], "no other record moved");
        let kinds = yard.sql("SELECT event_kind FROM {schema}.operation_history ORDER BY recorded_at, event_index");
        let kinds: Vec<&str> = kinds.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(&kinds[kinds.len() - 4..], ["intent", "progress_started", "progress_completed", "succeeded"]);
        let topics = with_kafka(async |kafka, ctx| kafka.list_topics(ctx).await).expect("Kafka answers");
        assert!(topics.contains(&yard.topic()), "the topic that it read stays");

        // The tombstone stays harmless.
        let mark = yard.order.mark("again");
        let again = yard.plan_removal(&["kept"], &["gone"]).exits(0).json();
        assert_eq!(again["data"]["connector_removal_assessments"][0]["status"], "already_absent");
        yard.run("plan --detailed-exitcode").exits(0);
        let applied = yard.run("apply --plan plan.json --confirm-env default -o json").exits(0).json();
        assert_eq!((&applied["data"]["deleted"], &applied["data"]["committed"]), (&json!([]), &json!(true)));
        assert_eq!(applied["data"]["connector_removal_assessments"][0]["status"], "already_absent");
        assert!(!yard.since(mark).iter().any(|what| what.starts_with("DELETE")));
        assert_eq!(yard.sql("SELECT state_serial FROM {schema}.current_state")[0][0], after["serial"].to_string());
    });
}

/// CRM-055, CRM-056, CRM-059, CRM-061
#[test]
fn a_removal_that_is_not_proved_blocks_and_deletes_nothing() {
    on_each_major(|admin| {
        let yard = applied(admin);
        let gone = yard.name("gone");
        let recorded = yard.worker.config(&gone).unwrap();
        let blocked = |status: &str, blocker: &str| {
            let plan = yard.plan_removal(&["kept"], &["gone"]).exits(0);
            assert!(!plan.warning_codes().contains(&"W119_CONNECTOR_REMOVAL_DESTRUCTIVE".to_owned()));
            let plan = plan.json();
            assert_eq!(plan["data"]["connector_removal_assessments"][0]["status"], status, "{plan}");
            assert_eq!(plan["data"]["safety_blockers"][0]["code"], blocker);
            let run = yard.apply_plan().exits(1);
            assert_eq!(code(&run), "E417_SAFETY_BLOCKED", "{}", run.stdout);
            assert_eq!(run.json()["data"]["connector_removal_assessments"][0]["status"], status);
        };
        let mut changed = recorded.clone();
        changed["tasks.max"] = json!("2");
        yard.worker.put(&gone, &changed);
        blocked("state_provider_drift", "connector_removal_state_provider_drift");
        yard.worker.delete(&gone);
        blocked("state_provider_drift", "connector_removal_state_provider_drift");
        assert!(yard.records().iter().any(|id| id.ends_with(&gone)), "the record is kept");

        let other = yard.name("stranger");
        yard.worker.put(&other, &json!({"connector.class": "FileStreamSink", "topics": "x", "name": other}));
        yard.declare(&["gone", "kept"], &["stranger"]);
        let plan = yard.run("plan --out plan.json -o json").exits(0).json();
        assert_eq!(plan["data"]["connector_removal_assessments"][0]["status"], "ownership_required");
        let run = yard.apply_plan().exits(1);
        assert_eq!(code(&run), "E417_SAFETY_BLOCKED");
        assert!(yard.worker.config(&other).is_some());
        yard.worker.delete(&other);
        assert!(!yard.order.mutations().iter().any(|record| record.what.starts_with("DELETE")));
    });
}

fn reply(head: &str, body: &str) -> Fault {
    Fault::Answer(format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes())
}

/// CRM-096, CRM-097, CRM-099, CRM-100, CRM-101, CRM-102, CRM-116
#[test]
fn whatever_the_worker_answers_but_a_proved_deletion_ends_in_recovery() {
    let cases: Vec<(&str, Fault)> = vec![
        ("404", reply("404 Not Found\r\nContent-Length: 2", "{}")),
        ("409", reply("409 Conflict\r\nContent-Length: 2", "{}")),
        ("500", reply("500 Server Error\r\nContent-Length: 0", "")),
        ("200", reply("200 OK\r\nContent-Length: 2", "{}")),
        ("204 with a body", reply("204 No Content\r\nContent-Length: 1", "x")),
        ("redirect", reply("307 Temporary Redirect\r\nLocation: /connectors/other\r\nContent-Length: 0", "")),
        ("not sent", Fault::CutBefore),
        ("answer lost", Fault::LoseAnswer),
        ("half an answer", Fault::HalfAnswer),
    ];
    let admin = crate::support::variable("STREAMT_TEST_POSTGRES_18");
    for (what, fault) in cases {
        let yard = applied(&admin);
        yard.plan_removal(&["kept"], &["gone"]).exits(0);
        let hit = yard.workers.rule(first(is_delete), fault);
        let mark = yard.order.mark("apply");
        let run = yard.apply_plan().exits(1);
        assert!(hit.hit(Duration::from_secs(1)), "{what}");
        assert_eq!(code(&run), "E428_CONNECTOR_REMOVAL_DRIFT", "{what}: {}", run.stdout);
        let data = &run.json()["data"];
        assert_eq!((&data["committed"], &data["deleted"]), (&json!(false), &json!([])), "{what}");
        let deletes = yard.since(mark).iter().filter(|request| request.starts_with("DELETE")).count();
        assert_eq!(deletes, 1, "{what}: sent once");
        let status = yard.status();
        assert_eq!(text(&status["operation_status"]["status"]), "recovery_required", "{what}");
        assert_eq!(text(&status["operation_status"]["failure_code"]), "connector_removal_drift", "{what}");
        assert!(yard.records().iter().any(|id| id.ends_with(&yard.name("gone"))), "{what}: the record is kept");

        // CRM-038: nothing goes on, and the worker is not even asked.
        let mark = yard.order.mark("blocked");
        for line in ["plan --out next.json -o json", "apply --plan plan.json --confirm-env default --force -o json"] {
            assert_eq!(code(&yard.run(line).exits(1)), "E419_STATE_RECOVERY_REQUIRED", "{what}");
        }
        assert!(yard.since(mark).is_empty(), "{what}: {:?}", yard.since(mark));
    }
}

/// CRM-095, CRM-100, CRM-101
#[test]
fn a_connector_that_changes_between_review_and_deletion_is_not_deleted() {
    let admin = crate::support::variable("STREAMT_TEST_POSTGRES_14");
    let yard = applied(&admin);
    yard.plan_removal(&["kept"], &["gone"]).exits(0);
    let (worker, name) = (yard.worker.clone(), yard.name("gone"));
    let mut changed = worker.config(&name).unwrap();
    changed["tasks.max"] = json!("2");
    // After the plan and the wait for the worker, directly before the last check.
    let raced = yard.workers.rule(nth(3, reads(&yard, "gone")), Fault::call(move |_| worker.put(&name, &changed)));
    let run = yard.apply_plan().exits(1);
    assert!(raced.hit(Duration::from_secs(1)));
    assert_eq!(code(&run), "E428_CONNECTOR_REMOVAL_DRIFT", "{}", run.stdout);
    assert!(!yard.order.mutations().iter().any(|record| record.what.starts_with("DELETE")), "no DELETE was sent");
    assert_eq!(text(&yard.status()["operation_status"]["failure_code"]), "connector_removal_drift");
    drop(yard);

    // Changed before the apply: stale, and nothing was started.
    let yard = applied(&admin);
    yard.plan_removal(&["kept"], &["gone"]).exits(0);
    let mut changed = yard.worker.config(&yard.name("gone")).unwrap();
    changed["tasks.max"] = json!("2");
    yard.worker.put(&yard.name("gone"), &changed);
    assert_eq!(code(&yard.apply_plan().exits(1)), "E409_PLAN_STALE");
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
}

/// CRM-098, CRM-102: a rebalance is no reason to fail before the start and in the polls, and every reason at the DELETE.
#[test]
fn a_rebalance_is_waited_for_before_the_start_and_after_the_delete_only() {
    let admin = crate::support::variable("STREAMT_TEST_POSTGRES_18");
    let yard = applied(&admin);
    yard.plan_removal(&["kept"], &["gone"]).exits(0);
    let busy = || reply("409 Conflict\r\nContent-Length: 2", "{}");
    let before = yard.workers.rule(nth(2, reads(&yard, "gone")), busy());
    let polled = yard.workers.rule(nth(4, reads(&yard, "gone")), reply("500 Server Error\r\nContent-Length: 2", "{}"));
    yard.apply_plan().exits(0);
    assert!(before.hit(Duration::from_secs(1)) && polled.hit(Duration::from_secs(1)));
    assert_eq!(yard.worker.config(&yard.name("gone")), None);
    drop(yard);

    // It never settles: nothing was started, so nothing has to be recovered.
    let yard = applied(&admin);
    yard.plan_removal(&["kept"], &["gone"]).exits(0);
    let (read, seen) = (reads(&yard, "gone"), AtomicUsize::new(0));
    yard.workers.rule(every(move |request| read(request) && seen.fetch_add(1, Ordering::SeqCst) > 0), busy());
    let run = yard.apply_plan().exits(1);
    assert_eq!(code(&run), "E407_DEPLOY_ERROR", "{}", run.stdout);
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
    assert!(yard.worker.config(&yard.name("gone")).is_some());
}

/// CRM-001, CRM-002
#[test]
fn a_sink_that_is_no_longer_declared_stays() {
    let admin = crate::support::variable("STREAMT_TEST_POSTGRES_14");
    let yard = applied(&admin);
    yard.declare(&["kept"], &[]);
    for line in ["plan -o json", "apply --force -o json"] {
        let run = yard.run(line).exits(0).json();
        assert_eq!(run["data"]["deletes"].as_u64().unwrap_or(0), 0, "{run}");
    }
    assert!(yard.worker.config(&yard.name("gone")).is_some());
    assert!(!yard.order.mutations().iter().any(|record| record.what.starts_with("DELETE")));
}

/// SEC-003: neither tables nor outputs hold a configuration.
#[test]
fn a_removal_leaves_no_configuration_anywhere() {
    let admin = crate::support::variable("STREAMT_TEST_POSTGRES_18");
    let yard = applied(&admin);
    yard.workers.rule(first(is_delete), reply("500 Server Error\r\nContent-Length: 9", "s3ntinel!"));
    let mut all = String::new();
    for run in [
        yard.plan_removal(&["kept"], &["gone"]),
        yard.apply_plan(),
        yard.run("state status -vvv"),
        yard.run("plan -vvv"),
    ] {
        all.push_str(&(run.stdout + &run.stderr));
    }
    all.push_str(&std::fs::read_to_string(yard.workspace.path("plan.json")).unwrap());
    for table in ["current_state", "state_history", "operation_control", "operation_history"] {
        for row in yard.sql(&format!("SELECT t::text FROM {{schema}}.{table} t")) {
            all.push_str(&row.concat());
        }
    }
    assert!(all.contains(&yard.name("gone")), "the scan must find what is there");
    for secret in [SENTINEL, "s3ntinel!", PASSWORD, "secrets.properties", yard.workers.address()] {
        assert!(!all.contains(secret), "{secret}");
    }
}
