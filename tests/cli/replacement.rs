//! An operation that replaces a Kafka Streams runner, as another streamt left it (control versions 4 and 5): it is read and shown,
//! blocks everything, and is ended by nothing that this program has.

use std::os::unix::fs::PermissionsExt;

use crate::harness::Workspace;

const OPERATION: &str = "00000000-0000-4000-8000-000000000001";

fn left(control: &str, history: bool) -> Workspace {
    let workspace = Workspace::project("apiVersion: streamt.dev/v1alpha1\nproject: {name: payments}\n")
        .file(
            "environments/prod.yml",
            "environment: {description: Live}\nruntime: {kafka: {bootstrap_servers: \"127.0.0.1:1\"}}\n",
        )
        .file(".streamt/state/prod.json", include_str!("replacement/state.json"))
        .file(".streamt/state/prod.control.jsonl", control);
    if history {
        let name = ".streamt/state/prod.recovery-history.jsonl";
        workspace.write(name, include_str!("replacement/history.jsonl"));
        std::fs::set_permissions(workspace.path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    workspace
}

/// SAF-030 LIM-028: nobody takes it for something else, and nothing is written.
#[test]
fn a_pending_replacement_of_a_runner_is_shown_and_blocks_everything() {
    for (control, history, status, failure) in [
        (include_str!("replacement/version-4.jsonl"), false, "in_progress", serde_json::Value::Null),
        (include_str!("replacement/version-5.jsonl"), true, "in_progress", serde_json::Value::Null),
        (include_str!("replacement/begun.jsonl"), false, "in_progress", serde_json::Value::Null),
    ] {
        let workspace = left(control, history);
        let before = workspace.snapshot();
        let shown = workspace.run("state status -e prod -o json").exits(0).json()["data"].clone();
        let operation = &shown["operation_status"];
        assert_eq!((&operation["status"], &operation["failure_code"]), (&status.into(), &failure), "{shown}");
        assert_eq!(operation["operation_id"], OPERATION);
        for command in ["plan", "apply"] {
            let run = workspace.run(&format!("{command} -e prod -o json")).exits(1);
            assert_eq!(run.errors()[0].0, "E419_STATE_RECOVERY_REQUIRED", "{}", run.stdout);
        }
        for resolution in ["observed", "rolled_back"] {
            let line = format!("state recovery-plan -e prod --resolution {resolution} --out r.json -o json");
            let run = workspace.run(&line).exits(1);
            assert_eq!(run.errors()[0].0, "E419_STATE_RECOVERY_REQUIRED", "{}", run.stdout);
            assert!(run.stdout.contains("neither resume nor recover"), "{}", run.stdout);
            assert_eq!(run.json()["errors"][0]["operation_id"], OPERATION);
        }
        let kept: Vec<_> = before.iter().map(|(path, _)| path.clone()).collect();
        let after: Vec<_> = workspace.snapshot().into_iter().filter(|(path, _)| kept.contains(path)).collect();
        assert_eq!(after, before);
        assert!(!workspace.path("r.json").exists());
    }
}

/// REC-012: before its first boundary it can be given up, by evidence and review as any other.
#[test]
fn a_replacement_that_was_never_started_can_be_abandoned() {
    let abandoned = "state recovery-plan -e prod --resolution abandoned_before_mutation --out r.json -o json";
    for (started, resumed) in
        [(include_str!("replacement/version-4.jsonl"), false), (include_str!("replacement/version-5.jsonl"), true)]
    {
        let run = left(started, resumed).run(abandoned).exits(1);
        assert_eq!(run.errors()[0].0, "E419_STATE_RECOVERY_REQUIRED", "{}", run.stdout);
    }
    let workspace = left(include_str!("replacement/begun.jsonl"), false);
    let planned = workspace.run(abandoned).exits(0).json()["data"].clone();
    workspace.run("review r.json").exits(0);
    let sum = planned["evidence_checksum"].as_str().unwrap();
    let line = format!(
        "state recover -e prod --plan r.json --confirm-operation-id {OPERATION} \
         --confirm-resolution abandoned_before_mutation --confirm-evidence-checksum {sum} -o json"
    );
    workspace.run(&line).exits(0);
    let status = workspace.run("state status -e prod -o json").exits(0).json();
    assert_eq!(
        (&status["data"]["operation_status"]["status"], &status["data"]["state_serial"]),
        (&"clear".into(), &1.into())
    );
}

/// A byte of it that is not as it was written makes all of it unreadable, and E411 says so.
#[test]
fn an_edited_replacement_is_refused() {
    let control = include_str!("replacement/version-5.jsonl");
    for (from, to) in [
        ("\"committed\":20", "\"committed\":21"),
        ("local-cli", "local-clj"),
        ("\"exit_code\":143", "\"exit_code\":137"),
    ] {
        let workspace = left(&control.replace(from, to), true);
        for command in ["state status", "plan"] {
            let run = workspace.run(&format!("{command} -e prod -o json")).exits(1);
            assert_eq!(run.errors()[0].0, "E411_STATE_INVALID", "{from}: {}", run.stdout);
        }
    }
}
