//! Controls of versions 4 and 5, as the local store keeps them. The files beside the tests of the binary are printed from here.

use super::*;
use crate::state::control::runner_testing::{action, behind, boundaries, intent, interruption, resume, state};
use crate::state::control::{Control, Event, Succeeded};
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
