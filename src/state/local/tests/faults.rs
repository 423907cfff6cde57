//! A file system that refuses: full, read-only, forbidden, or changed behind our back.

use std::os::unix::fs::PermissionsExt;

use super::child::{self, Script, acked, code};
use super::*;
use crate::codes::Code;
use crate::state::control::FailureCode;

fn permit(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Gives a tree to the user that `unprivileged` becomes.
fn hand_over(path: &std::path::Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::os::unix::fs::lchown(path, Some(65534), Some(65534)).unwrap();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            hand_over(&entry.unwrap().path());
        }
    }
}

/// SAF-029: whatever step the limit hits, the answer says that nothing was written, and the files agree.
#[test]
fn a_write_that_the_file_size_limit_cuts_is_taken_back() {
    let mut codes = Vec::new();
    for blocks in 0..12 {
        let (project, store) = project();
        let shell = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let output = child::command_in(&shell, Script::Apply, project.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.contains("<done>") {
            break;
        }
        assert_eq!(code(&output), Some(Code::E420StateBackendUnavailable), "{blocks} blocks: {text}");
        assert!(text.contains("file size limit"), "{text}");
        let snapshot = store.read_snapshot(&address()).unwrap();
        assert_eq!(snapshot.state.state.serial, 0);
        let progress = snapshot.control.control.progress().len();
        let standing = match snapshot.control.control.operation_id() {
            None => 0,
            Some(_) => 1 + [0, 1, 2, 5, 8].iter().position(|known| *known == progress).unwrap(),
        };
        assert_eq!(standing, acked(&output), "{blocks} blocks");
        let bytes = std::fs::read(file(&project, "prod.control.jsonl")).unwrap_or(b"\n".to_vec());
        assert_eq!(bytes.last(), Some(&b'\n'), "{blocks} blocks: half a line stayed");
        assert!(!file(&project, ".prod.json.pending").exists());
        codes.push(standing);
    }
    assert!(codes.first() == Some(&0) && codes.iter().any(|standing| *standing > 0), "{codes:?}");
}

/// As above on a file system that is really full, where this user may mount one.
#[test]
fn a_full_file_system_is_reported_and_nothing_is_half_written() {
    for ballast in [16384, 20480] {
        fill(ballast);
    }
}

fn fill(ballast: usize) {
    let (project, _) = project();
    let mount =
        if rustix::process::geteuid().is_root() { "unshare --mount" } else { "unshare --user --map-root-user --mount" };
    let shell = format!(
        "exec {mount} sh -c 'mount -t tmpfs -o size=20k tmpfs {0} || exit 0; head -c {ballast} /dev/zero > {0}/ballast; \"$@\"; \
         tail -c 1 {0}/.streamt/state/prod.control.jsonl | od -An -c; ls -a {0}/.streamt/state' sh \"$@\"",
        project.path().display()
    );
    let output = child::command_in(&shell, Script::Apply, project.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        eprintln!("skipped: this user may not mount a file system");
        return;
    }
    assert_eq!(code(&output), Some(Code::E420StateBackendUnavailable), "{text}");
    assert!(text.contains("no space is left on its file system"), "{text}");
    assert_eq!(text.contains("\\n"), acked(&output) > 0, "{text}");
    assert!(!text.contains(".pending") && !text.contains(".tmp"), "{text}");
}

/// SEC-006: our words, no text of the operating system; and what to do.
#[test]
fn a_directory_without_permission_is_unavailable_and_says_so() {
    let (project, store) = project();
    permit(project.path(), 0o555);
    let output = child::unprivileged(Script::Apply, project.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(code(&output), Some(Code::E420StateBackendUnavailable), "{text}");
    assert!(text.contains("cannot create .streamt: permission is denied"), "{text}");
    permit(project.path(), 0o755);
    assert!(!project.path().join(".streamt").exists());

    apply(&store, "orders");
    hand_over(project.path());
    let state = project.path().join(".streamt/state");
    permit(&state, 0o555);
    let output = child::unprivileged(Script::Apply, project.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    permit(&state, 0o700);
    assert_eq!((code(&output), acked(&output)), (Some(Code::E420StateBackendUnavailable), 0), "{text}");
    assert!(text.contains("cannot write .streamt/state/prod.control.jsonl: permission is denied"), "{text}");
    store.read_snapshot(&address()).unwrap().ensure_clear().unwrap();
}

#[test]
fn an_unreadable_state_is_unavailable_and_never_empty() {
    let (project, store) = project();
    apply(&store, "orders");
    hand_over(project.path());
    permit(&file(&project, "prod.json"), 0o000);
    let output = child::unprivileged(Script::Visit, project.path());
    assert_eq!(code(&output), Some(Code::E420StateBackendUnavailable));
}

#[test]
fn a_missing_project_directory_is_unavailable() {
    let (project, store) = project();
    drop(project);
    assert_eq!(store.read_snapshot(&address()).unwrap_err().code(), Code::E420StateBackendUnavailable);
    let acquired = store.acquire(&address(), Duration::ZERO, &CancellationToken::new());
    assert_eq!(acquired.err().unwrap().code(), Code::E420StateBackendUnavailable);
}

/// SAF-027
#[test]
fn a_lock_file_that_was_replaced_is_a_lost_lock() {
    let replace: [&dyn Fn(&TempDir); 3] = [
        &|project| std::fs::remove_file(file(project, ".prod.json.lock")).unwrap(),
        &|project| {
            std::fs::remove_file(file(project, ".prod.json.lock")).unwrap();
            std::fs::write(file(project, ".prod.json.lock"), "").unwrap();
        },
        &|project| {
            std::fs::rename(project.path().join(".streamt"), project.path().join("moved")).unwrap();
            std::fs::create_dir_all(project.path().join(".streamt/state")).unwrap();
        },
    ];
    for replace in replace {
        let (project, store) = project();
        let mut operation = acquire(&store);
        let snapshot = operation.observe().unwrap();
        let intent = intent(&snapshot, topic_creates(1));
        let pending = operation.begin(snapshot, intent.clone()).unwrap();
        operation.check_lock().unwrap();
        replace(&project);
        let error = operation.check_lock().unwrap_err();
        assert_eq!((error.code(), error.operation_id), (Code::E423StateLockLost, Some(intent.operation_id)));
        assert!(error.to_string().ends_with(&format!("Operation ID: {}.", intent.operation_id)), "{error}");
        let refused = operation.record_progress(pending, vec![started(&intent, 0)]).unwrap_err();
        assert_eq!(refused.code(), Code::E423StateLockLost);
        assert_eq!(operation.release().unwrap_err().code(), Code::E423StateLockLost);
    }
}

#[test]
fn a_lock_lost_after_a_commit_says_that_the_work_is_done() {
    let (project, store) = project();
    let mut operation = acquire(&store);
    let snapshot = operation.observe().unwrap();
    let intent = intent(&snapshot, Vec::new());
    let snapshot = operation.begin(snapshot, intent.clone()).unwrap();
    operation.commit(snapshot, None, at(4)).unwrap();
    std::fs::remove_file(file(&project, ".prod.json.lock")).unwrap();
    let error = operation.release().unwrap_err();
    assert_eq!(
        (error.code(), error.operation_id),
        (Code::E426StateReleaseFailedAfterCommit, Some(intent.operation_id))
    );
}

/// SAF-028: a writer that does not honour the lock is noticed before the next step, and its bytes stay.
#[test]
fn files_changed_behind_the_lock_are_refused_and_stay() {
    let other_owner: fn(&str) -> String = |text| text.replace("\"orders\"", "\"others\"");
    let lost_step: fn(&str) -> String = |text| text.lines().take(2).map(|line| format!("{line}\n")).collect();
    let half_a_line: fn(&str) -> String = |text| format!("{text}[{{");
    let garbage: fn(&str) -> String = |text| format!("{text}x\n");
    for (name, change, code) in [
        ("prod.json", other_owner, Code::E411StateInvalid),
        ("prod.json", garbage, Code::E411StateInvalid),
        ("prod.control.jsonl", lost_step, Code::E424StateConflict),
        ("prod.control.jsonl", half_a_line, Code::E424StateConflict),
        ("prod.control.jsonl", garbage, Code::E411StateInvalid),
    ] {
        let (project, store) = project();
        apply(&store, "orders");
        let path = file(&project, name);
        let mut operation = acquire(&store);
        let snapshot = operation.observe().unwrap();
        let intent = intent(&snapshot, topic_creates(1));
        let snapshot = operation.begin(snapshot, intent.clone()).unwrap();
        let snapshot = operation.record_progress(snapshot, vec![started(&intent, 0)]).unwrap();
        let changed = change(&std::fs::read_to_string(&path).unwrap());
        std::fs::write(&path, &changed).unwrap();
        let error = operation.record_progress(snapshot.clone(), vec![completed(&intent, 0, true)]).unwrap_err();
        assert_eq!(error.code(), code, "{name}: {error}");
        assert!(
            operation
                .mark_recovery_required(snapshot, testing::recovery(&intent, FailureCode::OperationInterrupted, None))
                .is_err()
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), changed);
    }
}

#[test]
fn the_same_content_in_another_file_is_the_same_state() {
    let (project, store) = project();
    apply(&store, "orders");
    let mut operation = acquire(&store);
    let snapshot = operation.observe().unwrap();
    for name in ["prod.json", "prod.control.jsonl"] {
        std::fs::copy(file(&project, name), file(&project, "copy")).unwrap();
        std::fs::rename(file(&project, "copy"), file(&project, name)).unwrap();
    }
    let intent = intent(&snapshot, topic_creates(1));
    operation.begin(snapshot, intent).unwrap();
}
