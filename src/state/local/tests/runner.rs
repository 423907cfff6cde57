//! Controls of versions 4 and 5, as the local store keeps them. The files beside the tests of the binary are printed from here.

use std::collections::BTreeSet;

use super::child::{self, Script};
use super::crash::{check_after_kill, killed_at};
use super::*;
use crate::state::control::runner_testing::{action, behind, boundaries, intent, interruption, resume, state};
use crate::state::control::{Control, Event, FailureCode, RecoveryRecord, ResumeRecord, Succeeded};
use crate::state::local::control_file::{ControlFile, header_bytes, line_bytes};
use crate::state::local::history::tests::file_of_resumption;

const FIXTURES: &str = "tests/cli/replacement";

fn events(resumed: bool, boundaries_after: usize) -> Vec<Event> {
    let mut events = vec![Event::Intent(intent())];
    let mut progress = boundaries().into_iter().map(Event::Progress);
    events.extend(progress.by_ref().take(3));
    if resumed {
        events.extend([Event::RecoveryRequired(interruption()), Event::Resumed(Box::new(resume()))]);
    }
    events.extend(progress.take(boundaries_after));
    events
}

/// The header of the version that the operation was begun in, and one line a step.
fn file(events: Vec<Event>) -> String {
    let mut control = Control::clear(&address());
    let mut bytes = header_bytes(&address(), 4, Some(intent().operation_id)).unwrap();
    for event in events {
        let (next, stored) = control.apply(event).unwrap();
        bytes.extend(line_bytes(&[stored]).unwrap());
        control = next;
    }
    String::from_utf8(bytes).unwrap()
}

fn read(text: &str) -> ControlFile {
    ControlFile::read(text.as_bytes(), &address(), "control").unwrap()
}

#[test]
fn the_files_of_a_replacement_are_read_as_they_stand() {
    let in_version_4 = file(events(false, 0));
    assert_eq!(read(&in_version_4).control, behind(3));
    let in_version_5 = file(events(true, 1));
    let control = read(&in_version_5).control;
    assert_eq!((control.version(), control.resumes().len(), control.progress().len()), (5, 1, 4));
    let mut whole = events(true, 2);
    let end = Succeeded { completed_at: at(9), state_checksum: state(2, 75).checksum().unwrap(), state_serial: 2 };
    whole.push(Event::Succeeded(end));
    let ended = read(&file(whole));
    assert!(ended.ended && ended.control.is_clear());
}

#[test]
fn the_reference_of_a_stored_replacement_is_current() {
    let ownership = serde_json::to_string_pretty(&state(1, 50)).unwrap();
    for (name, text) in [
        ("state.json", format!("{ownership}\n")),
        ("version-4.jsonl", file(events(false, 0))),
        ("version-5.jsonl", file(events(true, 1))),
        ("begun.jsonl", file(vec![Event::Intent(intent())])),
        ("history.jsonl", file_of_resumption(&address(), &resume())),
    ] {
        crate::golden::is_current(&format!("{FIXTURES}/{name}"), &text);
    }
}

#[test]
fn any_changed_byte_of_a_replacement_is_refused() {
    for whole in [file(events(false, 2)), file(events(true, 2))] {
        let bytes = whole.as_bytes();
        for at in (0..bytes.len() - 1).step_by(7) {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1;
            assert!(ControlFile::read(&changed, &address(), "control").is_err(), "byte {at}");
        }
        for version in [1, 2, 3, 5, 6] {
            let other = whole.replacen("\"control_version\":4", &format!("\"control_version\":{version}"), 1);
            assert!(ControlFile::read(other.as_bytes(), &address(), "control").is_err(), "version {version}");
        }
    }
}

/// What was recorded goes on under a lock as any other operation does: the next boundary, and the end.
#[test]
fn a_replacement_is_carried_on_and_committed_by_the_store() {
    let (project, store) = project();
    let prod = |name: &str| super::file(&project, name);
    std::fs::create_dir_all(prod("x").parent().unwrap()).unwrap();
    std::fs::write(prod("prod.json"), serde_json::to_string_pretty(&state(1, 50)).unwrap()).unwrap();
    std::fs::write(prod("prod.control.jsonl"), file(events(false, 0))).unwrap();
    let mut operation = acquire(&store);
    let snapshot = operation.observe().unwrap();
    assert_eq!(snapshot.control.control, behind(3));
    let rest = boundaries().split_off(3);
    let last =
        rest.into_iter().fold(snapshot, |snapshot, entry| operation.record_progress(snapshot, vec![entry]).unwrap());
    assert_eq!(last.control.control, behind(5));
    let done = operation.commit(last, Some(state(2, 75)), at(9)).unwrap();
    assert!(done.control.control.is_clear() && done.control.control.version() == 3);
    assert_eq!(done.state.state.resources[&action().resource_id], state(2, 75).resources[&action().resource_id]);
}

/// A project whose replacement was interrupted behind its third boundary.
fn stopped() -> (TempDir, LocalStore) {
    let (project, store) = project();
    let prod = |name: &str| super::file(&project, name);
    std::fs::create_dir_all(prod("x").parent().unwrap()).unwrap();
    std::fs::write(prod("prod.json"), serde_json::to_string_pretty(&state(1, 50)).unwrap()).unwrap();
    std::fs::write(prod("prod.control.jsonl"), file([events(false, 0), interrupted()].concat())).unwrap();
    (project, store)
}

fn interrupted() -> Vec<Event> {
    vec![Event::RecoveryRequired(interruption())]
}

/// Resumes what stands, by the resumption that is archived if one is, and takes it to its end. What is over stays so.
pub fn carry_on(operation: &mut LocalOperation, snapshot: Snapshot) -> Result<(), StateError> {
    let mut snapshot = snapshot;
    if snapshot.control.control.is_clear() {
        return Ok(());
    }
    if snapshot.control.control.recovery().is_none() {
        let done = snapshot.control.control.last_completed_action_index();
        let failure_code = FailureCode::RunnerInterruptionAcknowledged;
        let record = RecoveryRecord { failure_code, last_completed_action_index: done, ..interruption() };
        snapshot = operation.mark_recovery_required(snapshot, record)?;
    }
    let control = &snapshot.control.control;
    if control.last_completed_action_index().is_none() {
        let fresh = ResumeRecord {
            resume_id: Uuid::new_v4(),
            store: snapshot.state.store.clone(),
            source_control_checksum: control.checksum().clone(),
            progress_count: u32::try_from(control.progress().len()).unwrap(),
            recovery: control.recovery().unwrap().clone(),
            ..resume()
        };
        let record = operation.pending_resume(&snapshot)?.unwrap_or(fresh);
        snapshot = operation.resume(snapshot, record)?;
    }
    for entry in boundaries().split_off(snapshot.control.control.progress().len()) {
        snapshot = operation.record_progress(snapshot, vec![entry])?;
    }
    operation.commit(snapshot, Some(state(2, 75)), at(9)).map(drop)
}

/// SAF-030 REC-035: killed at any moment, a replacement stands at its last boundary or at its end. An archived resumption is carried
/// on by whoever comes next, and only that one; the receipt is written once.
#[test]
fn a_resumption_killed_at_any_moment_is_carried_on_to_one_end() {
    const MOMENTS: [&str; 15] = [
        "lock.taken",
        "replace.created",
        "replace.half",
        "replace.synced",
        "replace.renamed",
        "replace.done",
        "append.half",
        "append.written",
        "append.done",
        "resume.archived",
        "pending.synced",
        "runner.completed",
        "commit.renamed",
        "commit.done",
        "lock.released",
    ];
    let mut reached = BTreeSet::new();
    let mut pending = 0;
    for point in MOMENTS {
        for time in 1.. {
            let (project, store) = stopped();
            if killed_at(point, time, Script::Replace, &project).is_none() {
                break;
            }
            reached.insert(point);
            let context = format!("killed at {point}:{time}");
            let after = check_after_kill(&context, &store, &project);
            let mut next = acquire(&store);
            let archived = next.pending_resume(&after).unwrap();
            if let Some(record) = &archived {
                pending += 1;
                let other = ResumeRecord { resume_id: Uuid::new_v4(), ..record.clone() };
                assert_eq!(next.resume(after.clone(), other).unwrap_err().code(), crate::codes::Code::E411StateInvalid);
                assert_eq!(next.observe().unwrap(), after, "{context}");
            }
            next.release().unwrap();
            let output = child::command(Script::Replace, project.path()).output().unwrap();
            assert!(output.status.success(), "{context}: {output:?}");
            let mut last = acquire(&store);
            let ended = last.observe().unwrap();
            assert!(ended.control.control.is_clear(), "{context}");
            assert_eq!(*ended.state.state, state(2, 75), "{context}");
            let receipt = last.completion(intent().operation_id).unwrap().unwrap();
            let resumed = receipt.check(&address()).unwrap().resumes().to_vec();
            assert!(archived.is_none_or(|record| resumed[0] == record), "{context}");
            let history = std::fs::read_to_string(super::file(&project, "prod.recovery-history.jsonl")).unwrap();
            assert_eq!(history.matches("\"kind\":\"runner_completed\"").count(), 1, "{context}");
            assert_eq!(history.matches("\"kind\":\"operation_resumed\"").count(), resumed.len(), "{context}");
            last.release().unwrap();
            apply(&store, "later");
        }
    }
    assert_eq!(reached, BTreeSet::from(MOMENTS));
    assert!(pending > 0, "an archived resumption was found");
}

/// REC-012: once a resumption is archived, nobody takes its operation for abandoned, applied to the control or not.
#[test]
fn a_resumed_replacement_is_ended_by_its_receipt_alone() {
    use crate::state::control::{AcceptedAs, Resolution};
    let (project, store) = stopped();
    let whole = [vec![Event::Intent(intent())], interrupted()].concat();
    std::fs::write(super::file(&project, "prod.control.jsonl"), file(whole)).unwrap();
    let found = store.read_snapshot(&address()).unwrap();
    let abandon = |operation: &mut LocalOperation| {
        let record = testing::recovery_intent(&found, Resolution::AbandonedBeforeMutation, AcceptedAs::Prior, None);
        operation.finalize_recovery(found.clone(), record, None)
    };
    killed_at("resume.archived", 1, Script::Replace, &project).unwrap();
    let mut operation = acquire(&store);
    assert!(operation.pending_resume(&found).unwrap().is_some());
    let error = abandon(&mut operation).unwrap_err();
    assert_eq!(error.code(), crate::codes::Code::E411StateInvalid, "{error}");
    assert_eq!(operation.observe().unwrap(), found);
    // Without the archive it may.
    operation.release().unwrap();
    std::fs::remove_file(super::file(&project, "prod.recovery-history.jsonl")).unwrap();
    abandon(&mut acquire(&store)).unwrap();
}

/// A control and a history that tell of different resumptions are not guessed at.
#[test]
fn history_and_control_agree_on_every_resumption() {
    let archive = file_of_resumption(&address(), &resume());
    for (control, reads) in [
        (file(events(true, 1)), true),
        (file([events(false, 0), interrupted()].concat()), true),
        (file(events(false, 0)), false),
        (file(events(false, 1)), false),
        (file(vec![Event::Intent(intent())]), false),
        (String::from_utf8(header_bytes(&address(), 3, None).unwrap()).unwrap(), false),
    ] {
        let (project, store) = stopped();
        std::fs::write(super::file(&project, "prod.control.jsonl"), &control).unwrap();
        let history = super::file(&project, "prod.recovery-history.jsonl");
        std::fs::write(&history, &archive).unwrap();
        std::fs::set_permissions(&history, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(store.read_snapshot(&address()).is_ok(), reads, "{control}");
    }
    let (project, store) = stopped();
    std::fs::write(super::file(&project, "prod.control.jsonl"), file(events(true, 1))).unwrap();
    assert!(store.read_snapshot(&address()).is_err(), "resumed, and nothing says who allowed it");
}

/// A receipt ends the control that it holds and no other.
#[test]
fn a_receipt_of_another_control_than_the_pending_one_is_refused() {
    let (project, store) = stopped();
    killed_at("runner.completed", 1, Script::Replace, &project).unwrap();
    let control = super::file(&project, "prod.control.jsonl");
    let whole = std::fs::read_to_string(&control).unwrap();
    let cut = whole.trim_end().rfind('\n').unwrap() + 1;
    std::fs::write(&control, &whole[..cut]).unwrap();
    assert_eq!(store.read_snapshot(&address()).unwrap_err().code(), crate::codes::Code::E411StateInvalid);
    std::fs::write(&control, &whole).unwrap();
    assert_eq!(*store.read_snapshot(&address()).unwrap().state.state, state(2, 75));
}
