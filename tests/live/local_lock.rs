//! The file lock of local state, held by another process.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::cli::{ORDERS, workspace};
use crate::harness::{Run, Workspace};

fn ended(line: &str, child: std::process::Child) -> Run {
    Run::of(line, child.wait_with_output().unwrap())
}

fn start(workspace: &Workspace, line: &str) -> std::process::Child {
    workspace.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// SAF-027: it is waited for while it is held, for the time that the local backend has, and nothing is read or written behind it.
#[test]
fn a_local_lock_that_is_held_is_waited_for_and_then_e422() {
    let (workspace, _) = workspace("locked", ORDERS);
    workspace.run("plan").exits(0);
    let lock = File::open(workspace.path(".streamt/state/.default.json.lock")).expect("a lock file");
    flock(&lock, FlockOperation::LockExclusive).expect("free");
    let mut waits = start(&workspace, "plan -o json");
    std::thread::sleep(Duration::from_millis(500));
    assert!(waits.try_wait().unwrap().is_none(), "it waits");
    flock(&lock, FlockOperation::Unlock).expect("given back");
    ended("plan", waits).exits(0);

    flock(&lock, FlockOperation::LockExclusive).expect("free");
    let files = workspace.snapshot();
    let lines = ["apply -o json", "apply --dry-run -o json", "plan --out plan.json -o json"];
    for (line, child) in lines.map(|line| (line, start(&workspace, line))) {
        let run = ended(line, child).exits(1);
        assert_eq!(run.errors()[0].0, "E422_STATE_LOCK_TIMEOUT", "{line}: {}", run.stdout);
    }
    assert_eq!(workspace.snapshot(), files);
    // What takes no lock answers all the while.
    let status = workspace.run("state status -o json").exits(0).json();
    assert_eq!(status["data"]["operation_status"]["status"], "clear");
    drop(lock);
    workspace.run("apply").exits(0);
}
