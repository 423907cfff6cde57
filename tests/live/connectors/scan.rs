//! Configuration values, credentials and addresses of connectors, searched in everything that an interrupted removal and its
//! recovery leave.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use super::found::Found;
use super::yard::{PASSWORD, SENTINEL, Yard};
use crate::faults::{Fault, Gate, first};
use crate::losses::site::text;
use crate::support::variable;

/// What everybody who is on the machine may read of a process.
fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// SEC-003, SEC-004, REC-004, CRM-116: nothing of a configuration is in outputs, logs, plan and recovery files, state rows or the
/// process list.
#[test]
fn an_interrupted_removal_and_its_recovery_leave_no_value_anywhere() {
    let yard = Yard::alone(&variable("STREAMT_TEST_POSTGRES_14"), &["gone", "kept"]);
    let mut found = Found::default();
    found.run(&yard, "apply -o json -vvv");
    yard.declare(&["kept"], &["gone"]);
    found.run(&yard, "plan --out plan.json -vvv --log-format json");
    found.run(&yard, "review plan.json");

    // Interrupted while the worker holds the answer to the DELETE; the process is looked at meanwhile.
    let gate = Gate::default();
    let hit = yard.workers.rule(first(|request| request.what.starts_with("DELETE")), Fault::HoldAnswer(gate.clone()));
    let mut command = yard.workspace.command("apply --plan plan.json --confirm-env default --force -vvv -o json");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    assert!(hit.hit(Duration::from_secs(30)), "a DELETE");
    let listed = command_line(child.id());
    assert!(listed.contains("--plan plan.json"), "the process is the one: {listed}");
    found.note("process list", listed);
    child.kill().expect("killed");
    for (place, pipe) in [
        ("stdout", child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read>)),
        ("stderr", child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read>)),
    ] {
        let mut told = String::new();
        pipe.expect("a pipe").read_to_string(&mut told).expect("read");
        found.note(place, told);
    }
    child.wait().expect("ended");
    gate.open();
    yard.workers.disarm();

    yard.declare(&["kept"], &[]);
    found.run(&yard, "state status -vvv -o json");
    found.run(&yard, "plan -vvv");
    let id = text(&yard.status()["operation_status"]["operation_id"]);
    found.run(&yard, "state recovery-plan --resolution observed --out recovery.json -vvv -o json");
    found.run(&yard, "review recovery.json");
    super::recovery::recover(&yard, &id, "observed");
    found.run(&yard, "status -vvv");
    found.run(&yard, "diff -vvv");
    found.kept(&yard);

    // The scan finds what is there, and would find a secret.
    let name = yard.name("gone");
    for place in ["plan.json", "recovery.json", "operation_history", "review plan.json"] {
        assert!(found.places(&name).iter().any(|seen| seen.ends_with(place)), "{place}: {:?}", found.places(&name));
    }
    found.hold_none_of(&[SENTINEL, PASSWORD, "file-secret", "secrets.properties", yard.workers.address()]);
}
