//! A connector from its declaration to its drift, as its user types it.

use serde_json::json;

use super::yard::{PASSWORD, SENTINEL, State, Yard};
use crate::losses::site::{code, text};
use crate::support::variable;

fn local(sinks: &[&'static str]) -> Yard {
    Yard::new("STREAMT_TEST_CONNECT", State::Local, sinks)
}

/// SAF-001, SAF-033, SAF-034, SEC-003
#[test]
fn a_connector_is_created_left_alone_drifts_and_is_repaired() {
    let yard = local(&["archive"]);
    let name = yard.name("archive");
    let label = format!("connector:{name}");
    let mark = yard.order.mark("plan");
    let planned = yard.run("plan -o json").exits(0).json();
    let change = planned["data"]["changes"].as_array().unwrap().iter().find(|c| c["type"] == "connector").unwrap();
    assert_eq!(change["changes"]["note"], json!({"change": "added", "from_present": false, "to_present": true}));
    let read = format!("GET /connectors/{name}");
    let mut asked = yard.since(mark);
    asked.dedup();
    assert_eq!(
        asked,
        [read.as_str(), "GET /connector-plugins", "PUT /connector-plugins/FileStreamSink/config/validate"]
    );

    let applied = yard.run("apply -o json").exits(0).json();
    assert!(applied["data"]["created"].as_array().unwrap().contains(&json!(label)), "{applied}");
    let live = yard.worker.config(&name).expect("a connector");
    assert_eq!((&live["read"], &live["tasks.max"]), (&json!(yard.secret()), &json!("1")), "secrets stay literal");
    let again = yard.run("plan --detailed-exitcode").exits(0);
    assert!(again.stdout.contains("No changes detected."), "{}", again.stdout);
    let files = yard.workspace.snapshot().into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>().concat();
    let state = String::from_utf8_lossy(&files);
    assert!(state.contains("kafka-connect:v1:main:sha256:"), "{state}");

    // Somebody changes the live connector.
    let mut changed = live.clone();
    changed["tasks.max"] = json!("2");
    changed["extra"] = json!("1");
    yard.worker.put(&name, &changed);
    let drift = yard.run("plan -o json").exits(0).json();
    let change = &drift["data"]["changes"][0];
    assert_eq!(change["action"], "update");
    let keys: Vec<&String> = change["changes"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["extra", "tasks.max"]);
    yard.run("apply -o json").exits(0);
    assert_eq!(yard.worker.config(&name), Some(live));

    // Gone: it is created again, and the plan says that this is drift.
    yard.worker.delete(&name);
    let text = yard.run("plan").exits(0).stdout;
    assert!(text.contains(&name), "{text}");
    let status = yard.run("status --health -o json").exits(1).json();
    assert_eq!(status["data"]["connectors"][0]["exists"], false, "{status}");
    yard.run("apply -o json").exits(0);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let status = yard.run("status --health -o json");
        let row = status.json()["data"]["connectors"][0].clone();
        if row["status"] == "RUNNING" && status.exit == 0 {
            assert_eq!(row["name"], json!(name));
            break;
        }
        assert!(std::time::Instant::now() < end, "{row}");
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    let shown = yard.run("status").exits(0).stdout;
    assert!(shown.contains("CONNECTOR") && shown.contains("RUNNING"), "{shown}");
}

/// SAF-014
#[test]
fn a_connector_of_somebody_else_is_not_touched() {
    let yard = local(&["archive"]);
    let name = yard.name("archive");
    let theirs = json!({"connector.class": "FileStreamSink", "topics": "x", "file": "/dev/null", "name": name});
    yard.worker.put(&name, &theirs);
    let run = yard.run("apply -o json").exits(1);
    assert_eq!(code(&run), "E410_OWNERSHIP_REQUIRED", "{}", run.stdout);
    assert_eq!(yard.worker.config(&name), Some(theirs));
}

#[test]
fn what_the_worker_would_refuse_is_refused_before_anything_is_changed() {
    let yard = local(&["archive"]);
    for (from, to, told) in [
        ("tasks.max: 1", "tasks.max: many", "tasks.max"),
        ("connector: FileStreamSink", "connector: io.example.Nowhere", "io.example.Nowhere"),
        ("connector: FileStreamSink", "connector: FileStreamSource", "source connector"),
    ] {
        let yaml = yard.yaml(&["archive"], &[]);
        assert!(yaml.contains(from));
        yard.write(&yaml.replace(from, to));
        for command in ["plan", "apply"] {
            let run = yard.run(&format!("{command} -o json")).exits(1);
            assert_eq!(code(&run), "E407_DEPLOY_ERROR", "{}", run.stdout);
            assert!(run.stdout.contains(told) && !run.stdout.contains("PluginDesc"), "{}", run.stdout);
        }
        assert_eq!(yard.worker.config(&yard.name("archive")), None);
        assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
    }
}

/// SEC-003, SEC-004: configuration values, credentials, endpoints and resolved secrets stay inside.
#[test]
fn no_output_shows_a_configuration_value_or_a_credential() {
    let yard = local(&["archive"]);
    let mut all = String::new();
    let mut note = |run: crate::harness::Run| all.push_str(&(run.stdout + &run.stderr));
    for command in
        ["plan -vvv", "plan -o json -vvv", "plan --out plan.json", "review plan.json", "apply --dry-run -vvv"]
    {
        note(yard.run(command).exits(0));
    }
    note(yard.run("apply -vvv -o json").exits(0));
    let mut changed = yard.worker.config(&yard.name("archive")).unwrap();
    changed["tasks.max"] = json!("3");
    yard.worker.put(&yard.name("archive"), &changed);
    for command in
        ["plan -vvv", "apply -vvv", "status -vvv", "status -o json", "state status -o json", "list models", "diff"]
    {
        note(yard.run(command));
    }
    for (path, bytes) in yard.workspace.snapshot() {
        if !path.ends_with("stream_project.yml") {
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    assert!(all.contains(&yard.name("archive")), "the scan must find what is there");
    for secret in [SENTINEL, PASSWORD, "file-secret", "secrets.properties", yard.workers.address()] {
        assert!(!all.contains(secret), "{secret}");
    }
}

/// A worker that is rebalancing is waited for; one that refuses the credentials is not.
#[test]
fn a_login_that_is_refused_is_told_as_such() {
    let yard = local(&["archive"]);
    let yaml = yard.yaml(&["archive"], &[]);
    yard.write(&yaml.replace("username: admin", "username: nobody"));
    assert_eq!(code(&yard.run("plan -o json").exits(1)), "E404_AUTH_FAILED");
    yard.write(&yaml.replace(", username: admin, password: \"${CONNECT_PASSWORD}\"", ""));
    assert_eq!(code(&yard.run("plan -o json").exits(1)), "E404_AUTH_FAILED");
    yard.workers.refuse();
    yard.write(&yaml);
    assert_eq!(code(&yard.run("plan -o json").exits(1)), "E406_CONNECTION_REFUSED");
}

/// A base path that the worker does not have, and a registry in its place: neither is a worker on which nothing exists.
#[test]
fn a_wrong_address_is_told_and_nothing_is_planned_or_begun() {
    let yard = local(&["archive"]);
    let right = format!("rest_url: \"{}\"", yard.workers.url());
    let yaml = yard.yaml(&["archive"], &[]);
    for wrong in [format!("{}/conect", yard.workers.url()), variable("STREAMT_TEST_REGISTRY")] {
        yard.write(&yaml.replace(&right, &format!("rest_url: \"{wrong}\"")));
        for line in ["plan", "apply", "plan --detailed-exitcode"] {
            let run = yard.run(&format!("{line} -o json")).exits(1);
            assert_eq!(code(&run), "E407_DEPLOY_ERROR", "{wrong}: {line}: {}", run.stdout);
            assert!(run.stdout.contains("address in the runtime block"), "{}", run.stdout);
        }
        assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear", "{wrong}");
    }
    yard.write(&yaml);
    yard.run("apply -o json").exits(0);
}
