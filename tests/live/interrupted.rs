//! A signal while a change is in flight.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::cli::{edit, service, workspace};
use crate::estate::Proxy;
use crate::harness::Run;

const MODELS: &str = "  - {name: a, description: d, topic: {name: PREFIX.a, partitions: 1, replication_factor: 1}, schema: {subject: PREFIX.a-value, format: avro, definition: '\"string\"'}}
  - {name: b, description: d, topic: {name: PREFIX.b, partitions: 1, replication_factor: 1}, schema: {subject: PREFIX.b-value, format: avro, definition: '\"string\"'}}
";

/// SAF-030: the action in flight ends, no other begins, and the exit code is the signal's.
#[test]
fn a_signal_in_the_middle_exits_with_its_code_and_leaves_an_operation_to_recover() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let (workspace, prefix) = workspace("signal", MODELS);
        let (seen, sees) = channel();
        let (go, held) = channel::<()>();
        let held = Mutex::new(held);
        let proxy = Proxy::start(move |line| {
            let _ = seen.send(line.to_owned());
            let _ = held.lock().map(|held| held.recv_timeout(Duration::from_secs(30)));
        });
        edit(&workspace, &service("STREAMT_TEST_REGISTRY"), &proxy.url);
        let child =
            workspace.command("apply -o json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        sees.recv_timeout(Duration::from_secs(60)).expect("a change");

        let status = workspace.run("state status -o json").exits(0).json();
        assert_eq!(status["data"]["operation_status"]["status"], "in_progress", "{status}");
        let running = workspace.run("state status").exits(0).stdout;
        assert!(running.contains("in progress") && running.contains("most likely running"), "{running}");
        assert!(!running.contains("recovery-plan"), "{running}");

        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success());
        std::thread::sleep(Duration::from_millis(300));
        drop(go);
        let run = Run::of("apply", child.wait_with_output().expect("an end")).exits(code);
        assert_eq!(run.errors()[0].0, "E903_INTERRUPTED", "{}", run.stdout);
        let data = run.json()["data"].clone();
        assert_eq!(data["committed"], false, "{data}");
        assert_eq!(data["created"], serde_json::json!([format!("schema:{prefix}.a-value")]), "{data}");
        assert_eq!(data["not_started"].as_array().map(Vec::len), Some(3), "{data}");
        let status = workspace.run("state status -o json").exits(0).json();
        let operation = &status["data"]["operation_status"];
        assert_eq!(
            (&operation["status"], &operation["failure_code"]),
            (&"recovery_required".into(), &"operation_interrupted".into())
        );
        assert_eq!(workspace.run("apply -o json").exits(1).errors()[0].0, "E419_STATE_RECOVERY_REQUIRED");
    }
}
