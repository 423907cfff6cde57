//! Connectors on a real worker, reached through a proxy that records every request.

use serde_json::{Value, json};

use crate::connectors::yard::{SENTINEL, State, Yard};
use crate::load::Load;
use crate::losses::site::{code, on_each_major};

fn live_config(yard: &Yard, name: &str) -> Value {
    json!({
        "name": name, "connector.class": "FileStreamSink", "topics": yard.topic(), "file": "/dev/null",
        "tasks.max": "1", "note": SENTINEL, "read": yard.secret(),
    })
}

/// A yard whose sink is declared adopted.
fn yard(state: State) -> (Yard, String) {
    yard_under(state, Load::Light)
}

fn yard_under(state: State, load: Load) -> (Yard, String) {
    let yard = Yard::under("STREAMT_TEST_CONNECT", state, &["archive"], load);
    let name = yard.name("archive");
    let adopted = yard.yaml(&["archive"], &[]).replace(
        &format!("  - name: {name}\n    description: d\n"),
        &format!("  - name: {name}\n    description: d\n    ownership: {{mode: adopted}}\n"),
    );
    yard.write(&adopted);
    (yard, name)
}

pub fn line(yard: &Yard, name: &str) -> String {
    let id = format!("streamt://{}/default/connector/{name}", yard.project);
    format!("adopt --kind connector --name {name} --confirm-resource {id} --confirm-env default -o json")
}

fn adopts(yard: &Yard, name: &str) {
    yard.worker.put(name, &live_config(yard, name));
    yard.worker.placed(name);
    let read = format!("GET /connectors/{name}");
    let mark = yard.order.mark("adopt");
    let run = yard.run(&line(yard, name)).exits(0);
    assert_eq!(yard.since(mark), [read.as_str(), read.as_str()], "one read for the review, one after the confirmation");
    let data = run.json()["data"].clone();
    assert_eq!(
        (&data["adopted"], &data["state_serial"], &data["cluster_alias"]),
        (&json!(true), &json!(1), &json!("main"))
    );
    assert_eq!((data.get("logical_name"), &data["physical_name"]), (None, &json!(name)));
    assert_eq!((&data["changed_keys"], &data["has_pending_changes"]), (&json!([]), &json!(false)));
    assert_eq!(data["observed"]["config_checksum"], data["desired_managed_attributes"]["config_checksum"]);
    assert!(data["endpoint_fingerprint"].as_str().is_some_and(|text| text.starts_with("sha256:")), "{data:#}");

    let mark = yard.order.mark("again");
    let again = yard.run(&line(yard, name)).exits(0).json()["data"].clone();
    assert_eq!((&again["already_owned"], &again["state_serial"]), (&json!(true), &json!(1)));
    assert_eq!(yard.since(mark), [read.as_str()], "an identical claim ends after its first read");
    assert_eq!(yard.worker.config(name), Some(live_config(yard, name)));
    let plan = yard.run("plan -o json").exits(0).json()["data"].clone();
    let changes = plan["changes"].as_array().expect("changes");
    assert!(changes.iter().all(|change| change["type"] != "connector"), "{plan:#}");
    assert_eq!(plan["is_apply_blocked"], false, "{plan:#}");
}

/// ADO-020, ADO-022, ADO-023, ADO-024, ADO-028, ADO-029
#[test]
fn a_connector_is_adopted_by_two_reads_of_exactly_it_and_not_changed() {
    let (yard, name) = yard_under(State::Local, Load::Alone);
    adopts(&yard, &name);
    let state = std::fs::read_to_string(yard.workspace.path(".streamt/state/default.json")).expect("a state");
    assert!(state.contains("kafka-connect:v1:main:sha256:") && state.contains("\"adopted\""), "{state}");
    drop(yard);
    on_each_major(|admin| {
        let (yard, name) = yard_under(State::Postgres(admin.to_owned()), Load::Alone);
        adopts(&yard, &name);
        assert_eq!(yard.records().len(), 1);
    });
}

/// ADO-025: names of keys and directions; no value, and no digest of one.
#[test]
fn what_differs_is_named_by_key_and_direction_alone() {
    let (yard, name) = yard(State::Local);
    let mut live = live_config(&yard, &name);
    live["note"] = json!(format!("{SENTINEL}-other"));
    live["extra.secret"] = json!(SENTINEL);
    live.as_object_mut().expect("a map").remove("read");
    yard.worker.put(&name, &live);
    let mut told = String::new();
    let refused = yard.run(&format!("adopt --kind connector --name {name} -o json")).exits(1);
    assert_eq!(code(&refused), "E414_ADOPTION_CONFIRMATION_REQUIRED");
    told.push_str(&refused.stdout);
    told.push_str(&yard.run(&format!("adopt --kind connector --name {name}")).stdout);
    let saved = yard.run("adopt --save-selection s.json -vvv -o json").exits(0);
    told.push_str(&saved.stdout);
    told.push_str(&saved.stderr);
    let run = yard.run(&line(&yard, &name)).exits(0);
    told.push_str(&run.stdout);
    let data = run.json()["data"].clone();
    assert_eq!(
        data["changed_keys"],
        json!([
            {"name": "extra.secret", "change": "removed"}, {"name": "note", "change": "changed"},
            {"name": "read", "change": "added"},
        ])
    );
    assert_eq!(data["has_pending_changes"], true);
    for (_, bytes) in yard.workspace.snapshot().into_iter().filter(|(path, _)| !path.ends_with("stream_project.yml")) {
        told.push_str(&String::from_utf8_lossy(&bytes));
    }
    assert!(told.contains("extra.secret"), "the control");
    assert!(!told.contains(SENTINEL), "{told}");
    assert_eq!(yard.worker.config(&name), Some(live));
}

/// ADO-013, ADO-021, ADO-027, LIM-010, LIM-012: another cluster, no connector, and records without an endpoint, which gain no authority.
#[test]
fn a_connector_that_is_elsewhere_absent_or_recorded_without_an_endpoint_is_not_adopted() {
    let (yard, name) = yard(State::Local);
    assert_eq!(code(&yard.run(&line(&yard, &name)).exits(1)), "E413_ADOPTION_LIVE_NOT_FOUND");
    yard.worker.put(&name, &live_config(&yard, &name));
    let text = std::fs::read_to_string(yard.workspace.path("stream_project.yml")).expect("a project");
    yard.write(
        &text.replace(
            "    ownership: {mode: adopted}\n",
            "    ownership: {mode: adopted}\n    connect_cluster: second\n",
        ),
    );
    assert_eq!(code(&yard.run(&line(&yard, &name)).exits(1)), "E209_INVALID_CLUSTER_REF");
    yard.write(&text);
    for owner in [name.as_str(), "another"] {
        let state = json!({
            "state_version": 1, "project": yard.project, "environment": "default", "serial": 4,
            "resources": {format!("streamt://{}/default/connector/{owner}", yard.project): {
                "physical_name": name, "ownership": "managed", "backend": "kafka-connect",
                "artifact_checksum": format!("sha256:{}", "0".repeat(64)),
            }},
        });
        yard.workspace.write(".streamt/state/default.json", &state.to_string());
        assert_eq!(code(&yard.run(&line(&yard, &name)).exits(1)), "E415_ADOPTION_STATE_CONFLICT", "{owner}");
        assert_eq!(code(&yard.run("apply -o json").exits(1)), "E410_OWNERSHIP_REQUIRED", "{owner}");
        let kept = std::fs::read_to_string(yard.workspace.path(".streamt/state/default.json")).expect("a state");
        assert_eq!(kept, state.to_string(), "{owner}: never upgraded");
    }
    assert_eq!(yard.worker.config(&name), Some(live_config(&yard, &name)));
}

/// ADO-026: the recovery reads the connector as strictly, and judges it by everything that it manages.
#[test]
fn an_interrupted_adoption_of_a_connector_is_proved_by_its_whole_configuration() {
    let (yard, name) = yard(State::Local);
    yard.worker.put(&name, &live_config(&yard, &name));
    let kill = || {
        let output = yard.workspace.command(&line(&yard, &name)).env("STREAMT_FAILPOINT", "replace.done:1").output();
        assert!(output.expect("runs").status.code().is_none(), "killed");
    };
    kill();
    assert_eq!(code(&yard.run(&line(&yard, &name)).exits(1)), "E419_STATE_RECOVERY_REQUIRED");
    let mut other = live_config(&yard, &name);
    other["note"] = json!("another");
    yard.worker.put(&name, &other);
    let planned = yard.run("state recovery-plan --resolution observed --out no.json -o json").exits(1);
    assert_eq!(code(&planned), "E409_PLAN_STALE");
    assert_eq!(planned.json()["data"]["targets"][0]["reason"], "third_state", "{}", planned.stdout);
    yard.worker.put(&name, &live_config(&yard, &name));
    let mark = yard.order.mark("plan");
    let planned =
        yard.run("state recovery-plan --resolution observed --out r.json -o json").exits(0).json()["data"].clone();
    let read = format!("GET /connectors/{name}");
    assert!(yard.since(mark).iter().all(|request| *request == read), "{:?}", yard.since(mark));
    let recover = crate::interruption::resolve::recover_line("r.json", &planned);
    let done = yard.run(&format!("{recover} -o json")).exits(0).json()["data"].clone();
    assert_eq!((&done["state_changed"], &done["state_serial"]), (&json!(true), &json!(1)));
    assert_eq!(yard.run(&line(&yard, &name)).exits(0).json()["data"]["already_owned"], true);
}
