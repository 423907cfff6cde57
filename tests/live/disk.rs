//! A state directory that cannot be written, on file systems that really refuse.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cli::{ORDERS, workspace};
use crate::harness::{Run, Workspace};

/// Runs a shell script in a mount namespace of its own, in which `mount` has put another file system over the project. None
/// where this user may not mount.
fn mounted(workspace: &Workspace, mount: &str, script: &str) -> Option<Vec<Run>> {
    let project = workspace.path("stream_project.yml");
    let text = format!(
        "set -e; cp '{yaml}' '{root}.yml'; {{ {mount}; }} 2>/dev/null || exit 77; cd '{root}'
         cp '{root}.yml' stream_project.yml 2>/dev/null || true; rm -f '{root}.yml'; set +e
         run() {{ echo '%%%'; '{binary}' \"$@\" -o json; echo \"%%$?\"; }}
         {script}",
        yaml = project.display(),
        root = workspace.root().display(),
        binary = env!("CARGO_BIN_EXE_streamt"),
    );
    let root = is_root();
    let mut command = Command::new("unshare");
    command.args(if root { &["--mount"][..] } else { &["--user", "--map-root-user", "--mount"][..] });
    let output = command.args(["sh", "-c", &text]).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).output();
    let output = output.expect("unshare, of util-linux");
    let out = String::from_utf8(output.stdout).unwrap();
    if !out.contains("%%%") {
        eprintln!("skipped: this user may not mount a file system: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let runs = out.split("%%%\n").skip(1).map(|part| {
        let (stdout, exit) = part.rsplit_once("%%").unwrap();
        let exit = exit.lines().next().unwrap().parse().unwrap();
        Run::new(exit, stdout.to_owned())
    });
    Some(runs.collect())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn codes(run: &Run) -> Vec<String> {
    run.errors().into_iter().map(|(code, _)| code).collect()
}

fn operation(run: &Run) -> Value {
    run.json()["data"]["operation_status"]["status"].clone()
}

#[test]
fn a_read_only_directory_stops_plan_and_apply_before_any_change() {
    let (workspace, _) = workspace("readonly", ORDERS);
    let mount = format!("mount --bind '{0}' '{0}' && mount -o remount,ro,bind '{0}'", workspace.root().display());
    let Some(runs) = mounted(&workspace, &mount, "run plan --out plan.json; run apply; run state status") else {
        return;
    };
    for run in &runs[..2] {
        assert_eq!((run.exit, codes(run)), (1, vec!["E420_STATE_BACKEND_UNAVAILABLE".to_owned()]), "{}", run.stdout);
        assert!(run.stdout.contains("its file system is read-only"), "{}", run.stdout);
    }
    assert_eq!(operation(&runs[2]), "clear");
    let plan = workspace.run("plan -o json").exits(0).json();
    assert_eq!(plan["data"]["creates"], 2, "nothing had been created");
}

/// The intent does not fit: nothing is sent, nothing is recorded, and with space again the same command works.
#[test]
fn a_full_disk_before_the_intent_changes_nothing() {
    let (workspace, _) = workspace("full", ORDERS);
    let script = "head -c 1000000 /dev/zero >ballast 2>/dev/null; run apply; run state status; run plan --out plan.json; ls plan.json; \
                  rm ballast; run apply";
    let Some(runs) = mounted(&workspace, &tmpfs(workspace.root()), script) else { return };
    let [full, status, plan, again] = &runs[..] else { panic!("four runs") };
    assert_eq!((full.exit, codes(full)), (1, vec!["E420_STATE_BACKEND_UNAVAILABLE".to_owned()]), "{}", full.stdout);
    assert!(full.stdout.contains("no space is left") && full.stdout.contains("nothing was changed"), "{}", full.stdout);
    assert_eq!(operation(status), "clear");
    assert_eq!(codes(plan), ["E408_PLAN_FILE_INVALID"], "{}", plan.stdout);
    assert_eq!(again.exit, 0, "{}", again.stdout);
    assert_eq!(again.json()["data"]["created"].as_array().unwrap().len(), 2, "{}", again.stdout);
}

/// SAF-029 SAF-030: the intent fits and the commit does not. What was created is told, never that nothing was changed.
#[test]
fn a_disk_that_fills_up_in_the_middle_leaves_an_operation_to_recover() {
    let (workspace, _) = workspace("fills", ORDERS);
    let script = "head -c 57344 /dev/zero >ballast; run apply; run state status; rm ballast; run apply";
    let Some(runs) = mounted(&workspace, &tmpfs(workspace.root()), script) else { return };
    let [full, status, again] = &runs[..] else { panic!("three runs") };
    assert_eq!((full.exit, codes(full)), (1, vec!["E420_STATE_BACKEND_UNAVAILABLE".to_owned()]), "{}", full.stdout);
    let data = full.json()["data"].clone();
    assert_eq!(data["created"].as_array().map(Vec::len), Some(2), "{data}");
    assert_eq!(data["committed"], false, "{data}");
    assert!(!full.stdout.contains("nothing was changed"), "{}", full.stdout);
    assert!(full.stdout.contains("state status"), "{}", full.stdout);
    assert_ne!(operation(status), "clear");
    assert_eq!(codes(again), ["E419_STATE_RECOVERY_REQUIRED"], "{}", again.stdout);
}

fn tmpfs(root: &Path) -> String {
    format!("mount -t tmpfs -o size=64k tmpfs '{}'", root.display())
}
