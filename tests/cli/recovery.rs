//! The way out of an operation of which nothing was started, without any service: what confirms it, and what makes its
//! evidence stale.

use serde_json::{Value, json};
use streamt::compiler::canonical::Checksum;

use crate::earlier::{self, OPERATION};
use crate::harness::{Run, Workspace};

fn project(name: &str) -> String {
    format!(
        "apiVersion: streamt.dev/v1alpha1\nproject: {{name: {name}}}\nruntime: {{kafka: {{bootstrap_servers: \"127.0.0.1:1\"}}}}\n"
    )
}

/// Ownership of one topic.
fn ownership(project: &str, serial: u64) -> Value {
    json!({
        "state_version": 1, "project": project, "environment": "default", "serial": serial,
        "resources": {format!("streamt://{project}/default/topic/old"): {
            "physical_name": "old.v1", "ownership": "managed", "backend": "direct-kafka",
            "artifact_checksum": Checksum::of_bytes(b"artifact"),
        }},
    })
}

/// An operation that was begun, and started if asked.
fn pending(project: &str, topic: &str, started: bool) -> String {
    let address = format!("streamt-state://local/{project}/default");
    let action = earlier::action(3, "create", &format!("streamt://{project}/default/topic/{topic}"), None);
    let line = |value: &Value| earlier::canonical(value) + "\n";
    let mut text = line(&json!({"address": address, "control_version": 3, "operation_id": OPERATION}));
    for event in earlier::events(&address, 3, &action, &ownership(project, 1), started) {
        text += &line(&json!([event]));
    }
    text
}

const STATE: &str = ".streamt/state/default.json";
const CONTROL: &str = ".streamt/state/default.control.jsonl";

fn blocked(name: &str) -> Workspace {
    Workspace::project(&project(name))
        .file(STATE, &ownership(name, 1).to_string())
        .file(CONTROL, &pending(name, "orders", false))
}

fn stored(workspace: &Workspace) -> [String; 2] {
    [STATE, CONTROL].map(|file| std::fs::read_to_string(workspace.path(file)).unwrap())
}

/// Saves the evidence, and returns its checksum.
fn planned(workspace: &Workspace, file: &str) -> String {
    let line = format!("state recovery-plan --resolution abandoned_before_mutation --out {file} -o json");
    workspace.run(&line).exits(0).json()["data"]["evidence_checksum"].as_str().unwrap().to_owned()
}

fn recover(file: &str, operation: &str, resolution: &str, evidence: &str) -> String {
    format!(
        "state recover --plan {file} --confirm-operation-id {operation} --confirm-resolution {resolution} \
         --confirm-evidence-checksum {evidence} -o json"
    )
}

fn confirmed(file: &str, evidence: &str) -> String {
    recover(file, OPERATION, "abandoned_before_mutation", evidence)
}

#[track_caller]
fn refused(workspace: &Workspace, line: &str, code: &str, told: &str) -> Run {
    let before = stored(workspace);
    let run = workspace.run(line).exits(1);
    assert_eq!(run.errors()[0].0, code, "{line}: {}", run.stdout);
    let message = run.json()["errors"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(told), "{line}: {message}");
    assert_eq!(stored(workspace), before, "{line}: the marker stands");
    run
}

/// REC-032: well-formed values of another review confirm nothing, one by one.
#[test]
fn an_operation_is_ended_by_the_three_values_of_its_own_file_and_by_no_others() {
    let workspace = blocked("shop");
    let sum = planned(&workspace, "r.json");
    let (other, resolution) = ("0e8b4f0a-51c8-4d0e-8a93-7a1a2f6f0c44", "abandoned_before_mutation");
    let zeros = format!("sha256:{}", "0".repeat(64));
    for (line, option) in [
        (recover("r.json", other, resolution, &sum), "--confirm-operation-id"),
        (recover("r.json", OPERATION, "observed", &sum), "--confirm-resolution"),
        (recover("r.json", OPERATION, resolution, &zeros), "--confirm-evidence-checksum"),
    ] {
        refused(&workspace, &line, "E408_PLAN_FILE_INVALID", &format!("{option} is not what the file says"));
    }
    let done = workspace.run(&confirmed("r.json", &sum)).exits(0).json()["data"].clone();
    assert_eq!((&done["control_status"], &done["state_changed"]), (&json!("clear"), &json!(false)));
}

/// REC-032: evidence ends the operation that it was made for, as it stood then, in the store and project of then.
#[test]
fn evidence_of_another_operation_or_place_ends_nothing() {
    let workspace = blocked("shop");
    let line = confirmed("r.json", &planned(&workspace, "r.json"));
    for (what, control) in [
        ("it went on", pending("shop", "orders", true)),
        ("another operation of the same id", pending("shop", "others", false)),
    ] {
        workspace.write(CONTROL, &control);
        let run = refused(&workspace, &line, "E409_PLAN_STALE", "another operation is pending, or it went on");
        assert_eq!(run.json()["data"]["committed"], false, "{what}");
    }
    let moved = blocked("store");
    let copied = std::fs::read_to_string(workspace.path("r.json")).unwrap();
    moved.write("r.json", &copied);
    refused(&moved, &line, "E409_PLAN_STALE", "made for another store or address");
    let elsewhere = blocked("shop");
    elsewhere.write("r.json", &copied);
    elsewhere.run("state status").exits(0);
    refused(&elsewhere, &line, "E409_PLAN_STALE", "made for another store or address");

    workspace.write(CONTROL, &pending("shop", "orders", false));
    workspace.run(&line).exits(0);
}

/// REC-004, REC-037: the history answers for the very plan that was carried out, while its result stands.
#[test]
fn only_the_plan_that_was_carried_out_is_told_as_done_and_only_while_its_result_stands() {
    let workspace = blocked("shop");
    let (first, second) = (planned(&workspace, "r.json"), planned(&workspace, "s.json"));
    let mut twin: Value = serde_json::from_str(&std::fs::read_to_string(workspace.path("r.json")).unwrap()).unwrap();
    twin["streamt_version"] = json!("0.0.1");
    twin.as_object_mut().unwrap().shift_remove("evidence_checksum");
    let sum = Checksum::of(&twin).unwrap().to_string();
    twin["evidence_checksum"] = json!(sum);
    workspace.write("twin.json", &twin.to_string());

    let done = workspace.run(&confirmed("r.json", &first)).exits(0).json()["data"].clone();
    assert_eq!(workspace.run(&confirmed("r.json", &first)).exits(0).json()["data"], done);
    for (file, sum) in [("s.json", &second), ("twin.json", &sum)] {
        refused(&workspace, &confirmed(file, sum), "E419_STATE_RECOVERY_REQUIRED", "no operation of this environment");
    }
    workspace.write(STATE, &ownership("shop", 2).to_string());
    let told = "this recovery was completed before, and ownership has changed since";
    refused(&workspace, &confirmed("r.json", &first), "E409_PLAN_STALE", told);
}
