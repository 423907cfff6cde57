//! A worker that answers wrongly, through a proxy in front of the real one: reads, creates and updates. Removals are in
//! `deletion`.

use std::time::Duration;

use serde_json::json;

use super::yard::{SENTINEL, State, Yard};
use crate::faults::{Fault, Request, every, first};
use crate::losses::site::{code, text};
use crate::support::variable;

fn reply(head: &str, body: &str) -> Fault {
    Fault::Answer(format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes())
}

/// Replaces a text of an answer by another of the same length.
fn swapped(from: &'static str, to: &'static str) -> Fault {
    assert_eq!(from.len(), to.len());
    Fault::edit(move |answer| String::from_utf8_lossy(&answer).replace(from, to).into_bytes())
}

fn changes(yard: &Yard) -> Vec<String> {
    let mut seen = yard.since(0);
    seen.retain(|what| !what.starts_with("GET") && !what.ends_with("/config/validate"));
    seen
}

/// CRM-047, CRM-049: what is not exactly the connector ends the command before anything is begun.
#[test]
fn an_observation_that_is_not_exact_plans_and_changes_nothing() {
    let yard = Yard::new("STREAMT_TEST_CONNECT", State::Local, &["archive"]);
    let path = format!("GET /connectors/{}", yard.name("archive"));
    let elsewhere = format!("GET /elsewhere/{}", yard.name("archive"));
    for (what, fault) in [
        (
            "redirect",
            reply(&format!("307 Temporary Redirect\r\nLocation: {}\r\nContent-Length: 0", &elsewhere[4..]), ""),
        ),
        ("half a body", Fault::HalfAnswer),
        ("no answer", Fault::CutBefore),
        ("a page", reply("404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 13", "<html></html>")),
        ("another service", reply("404 Not Found\r\nContent-Length: 0", "")),
        ("another's", reply("200 OK\r\nContent-Length: 42", r#"{"name":"x","config":{"name":"x"},"y":[1]}"#)),
        ("not JSON", reply("200 OK\r\nContent-Length: 9", "s3ntinel!")),
        ("a body without end", reply("200 OK\r\nContent-Length: 99", "{")),
        ("refused", reply("403 Forbidden\r\nContent-Length: 9", "s3ntinel!")),
    ] {
        for line in ["plan -o json", "apply -o json"] {
            let read = path.clone();
            let hit = yard.workers.rule(every(move |request: &Request| request.what == read), fault.clone());
            let run = yard.run(line).exits(1);
            yard.workers.disarm();
            assert!(hit.count() > 0, "{what}: {line}");
            let told = code(&run);
            assert!(
                matches!(told.as_str(), "E404_AUTH_FAILED" | "E406_CONNECTION_REFUSED" | "E407_DEPLOY_ERROR"),
                "{what}: {line}: {}",
                run.stdout
            );
            assert!(!run.stdout.contains("s3ntinel!") && !run.stderr.contains("s3ntinel!"), "{what}");
        }
    }
    assert!(!yard.since(0).contains(&elsewhere), "no redirect is followed");
    assert_eq!((changes(&yard), yard.worker.config(&yard.name("archive"))), (Vec::new(), None));
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");

    // Slow is not wrong.
    let read = path.clone();
    let slow = yard.workers.rule(first(move |r: &Request| r.what == read), Fault::DelayAnswer(Duration::from_secs(2)));
    yard.run("apply -o json").exits(0);
    assert_eq!(slow.count(), 1);
}

/// CRM-053, CRM-056: a worker that masks or drops values cannot prove the record, and `--force` does not help.
#[test]
fn a_masked_configuration_is_removed_by_nobody() {
    let yard = Yard::alone(&variable("STREAMT_TEST_POSTGRES_18"), &["gone", "kept"]);
    yard.run("apply -o json").exits(0);
    let path = format!("GET /connectors/{}", yard.name("gone"));
    let read = || {
        let path = path.clone();
        every(move |request: &Request| request.what == path)
    };
    yard.workers.rule(read(), swapped(SENTINEL, "**************"));
    let plan = yard.plan_removal(&["kept"], &["gone"]).exits(0).json();
    assert_eq!(plan["data"]["connector_removal_assessments"][0]["status"], "state_provider_drift", "{plan}");
    assert_eq!(code(&yard.apply_plan().exits(1)), "E417_SAFETY_BLOCKED");
    yard.workers.disarm();
    yard.workers.rule(read(), swapped("connector.class", "connector.clazz"));
    let run = yard.run("plan --out next.json -o json").exits(1);
    assert_eq!(code(&run), "E427_CONNECTOR_REMOVAL_INVALID", "{}", run.stdout);
    assert!(!yard.workspace.path("next.json").exists());
    yard.workers.disarm();
    assert!(yard.worker.config(&yard.name("gone")).is_some());
    assert!(yard.records().iter().any(|id| id.ends_with(&yard.name("gone"))));
    assert!(!yard.since(0).iter().any(|what| what.starts_with("DELETE")));
}

/// A create and an update that the worker answers wrongly: what a definite refusal says is told and ends it; everything else is
/// unknown, is sent once, and is ended by its recovery.
#[test]
fn a_create_or_an_update_that_is_answered_wrongly_is_never_called_done() {
    let yard = Yard::new("STREAMT_TEST_CONNECT", State::Local, &["archive"]);
    let name = yard.name("archive");
    let faults: Vec<(&str, Fault)> = vec![
        ("redirect", reply("307 Temporary Redirect\r\nLocation: /connectors/other\r\nContent-Length: 0", "")),
        ("500", reply("500 Server Error\r\nContent-Length: 2", "{}")),
        ("nothing", reply("204 No Content", "")),
        ("another configuration", swapped("\"tasks.max\":\"1\"", "\"tasks.max\":\"7\"")),
        ("not sent", Fault::CutBefore),
        ("answer lost", Fault::LoseAnswer),
        ("half an answer", Fault::HalfAnswer),
    ];
    for (round, (what, fault)) in faults.into_iter().enumerate() {
        for change in ["POST", "PUT"] {
            let what = format!("{what} to {change}");
            if change == "PUT" {
                let yaml = yard.yaml(&["archive"], &[]);
                yard.write(&yaml.replace("tasks.max: 1", &format!("tasks.max: 1, round: {round}")));
            } else {
                yard.declare(&["archive"], &[]);
            }
            let mark = yard.order.mark(&what);
            let wanted = move |request: &Request| {
                request.what.starts_with(change) && !request.what.ends_with("/config/validate")
            };
            let hit = yard.workers.rule(first(wanted), fault.clone());
            let run = yard.run("apply -o json").exits(1);
            yard.workers.disarm();
            assert_eq!((hit.count(), code(&run).as_str()), (1, "E407_DEPLOY_ERROR"), "{what}: {}", run.stdout);
            let sent =
                yard.since(mark).into_iter().filter(|seen| seen.starts_with(change) && !seen.ends_with("validate"));
            assert_eq!(sent.count(), 1, "{what}: sent once");
            let status = yard.status();
            assert_eq!(text(&status["operation_status"]["status"]), "recovery_required", "{what}");
            assert_eq!(code(&yard.run("plan -o json").exits(1)), "E419_STATE_RECOVERY_REQUIRED", "{what}");
            std::thread::sleep(Duration::from_millis(300));
            let _ = std::fs::remove_file(yard.workspace.path("recovery.json"));
            yard.run("state recovery-plan --resolution observed --out recovery.json -o json").exits(0);
            super::recovery::recover(&yard, &text(&status["operation_status"]["operation_id"]), "observed");
            yard.run("apply -o json").exits(0);
            yard.run("plan --detailed-exitcode").exits(0);
        }
        yard.worker.delete(&name);
    }
}

/// A worker that lists nothing of what it validates still deploys, and says that it was not asked.
#[test]
fn a_worker_that_validates_nothing_leaves_a_warning_and_deploys() {
    let yard = Yard::new("STREAMT_TEST_CONNECT", State::Local, &["archive"]);
    let validates = |request: &Request| request.what.ends_with("/config/validate");
    yard.workers.rule(every(validates), reply("503 Service Unavailable\r\nContent-Length: 2", "{}"));
    let run = yard.run("apply -o json").exits(0);
    assert!(run.warning_codes().contains(&"W147_OBSERVATION_INCOMPLETE".to_owned()), "{}", run.stdout);
    assert_eq!(run.json()["data"]["created"].as_array().map(Vec::len), Some(2));
    assert_eq!(yard.worker.config(&yard.name("archive")).map(|live| live["tasks.max"].clone()), Some(json!("1")));
}
