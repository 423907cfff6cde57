//! A process killed at every durable boundary, and processes that race.

use std::collections::BTreeSet;
use std::process::Output;

use super::child::{self, Script, acked};
use super::*;
use crate::codes::Code;
use crate::state::control::Status;
use crate::state::store::Revision;

/// Every moment at which the store lets itself be killed.
const POINTS: [&str; 19] = [
    "lock.taken",
    "replace.created",
    "replace.half",
    "replace.synced",
    "replace.renamed",
    "replace.done",
    "append.half",
    "append.written",
    "append.done",
    "pending.created",
    "pending.half",
    "pending.synced",
    "commit.line",
    "commit.renamed",
    "commit.done",
    "recovery.intent",
    "recovery.resolution",
    "settle.cut",
    "settle.removed",
];

/// The files, read through their own paths: how many steps of the script they hold.
fn steps_standing(script: Script, snapshot: &Snapshot, serial_before: u64) -> usize {
    let control = &snapshot.control.control;
    let progress = control.progress().len();
    match (script, control.status().status) {
        (_, Status::Clear) if snapshot.state.state.serial == serial_before + 1 => 6,
        (Script::TakeBack, Status::Clear) if snapshot.control.revision != Revision::Absent => 2,
        (_, Status::Clear) => 0,
        (Script::Fail, Status::RecoveryRequired) => 4,
        (Script::Recover | Script::Replace, _) => unreachable!("these are counted by tests of their own"),
        (Script::Apply, _) => 1 + [0, 1, 2, 5, 8].iter().position(|known| *known == progress).unwrap(),
        (_, _) => 1 + progress,
    }
}

pub fn killed_at(point: &str, time: u32, script: Script, project: &TempDir) -> Option<Output> {
    let output =
        child::command(script, project.path()).env("STREAMT_FAILPOINT", format!("{point}:{time}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (!text.contains("<done>")).then(|| {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(9), "{point}:{time} {script:?}: {text}");
        output
    })
}

/// After a kill: readable at once, the same for who reads and who locks next, nothing left lying about.
pub fn check_after_kill(context: &str, store: &LocalStore, project: &TempDir) -> Snapshot {
    let read = store.read_snapshot(&address()).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut next = acquire(store);
    let observed = next.observe().unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(observed, read, "{context}");
    if let Err(error) = observed.ensure_clear() {
        assert_eq!(error.code(), Code::E419StateRecoveryRequired);
        assert_eq!(error.operation_id, observed.control.control.operation_id());
    }
    next.release().unwrap();
    assert_eq!(store.read_snapshot(&address()).unwrap(), read, "{context}");
    let known = ["prod.json", "prod.control.jsonl", "prod.recovery-history.jsonl", ".prod.json.lock"];
    for entry in std::fs::read_dir(project.path().join(".streamt/state")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name.as_str()), "{context}: {name} is left");
    }
    read
}

/// SAF-027, SAF-029, SAF-030: killed before, inside and after each durable write, for the first and for a later operation.
#[test]
fn a_process_killed_at_any_moment_leaves_whole_steps_only() {
    let mut reached = BTreeSet::new();
    for script in [Script::Apply, Script::Fail, Script::TakeBack] {
        for earlier in [false, true] {
            for point in POINTS {
                for time in 1.. {
                    let (project, store) = project();
                    if earlier {
                        apply(&store, "earlier");
                    }
                    let before = store.read_snapshot(&address()).unwrap();
                    let Some(output) = killed_at(point, time, script, &project) else { break };
                    reached.insert(point);
                    let context = format!("{script:?} killed at {point}:{time}, earlier: {earlier}");
                    let snapshot = check_after_kill(&context, &store, &project);
                    let standing = match steps_standing(script, &snapshot, before.state.state.serial) {
                        // With an earlier operation a clear control was stored before, too.
                        2 if script == Script::TakeBack && acked(&output) == 0 => 0,
                        standing => standing,
                    };
                    let acked = acked(&output);
                    assert!(standing == acked || standing == acked + 1, "{context}: {acked} acked, {standing} stand");
                    if standing != 6 {
                        assert_eq!(snapshot.state, before.state, "{context}");
                    }
                }
            }
        }
    }
    let elsewhere = ["settle.cut", "settle.removed", "recovery.intent", "recovery.resolution"];
    let expected: BTreeSet<_> = POINTS.into_iter().filter(|point| !elsewhere.contains(point)).collect();
    assert_eq!(reached, expected, "a point that no operation passes proves nothing");
}

/// SAF-030: the process that tidies up after a kill is killed, too.
#[test]
fn a_process_killed_while_it_finishes_the_work_of_a_killed_one_loses_nothing() {
    let mut reached = BTreeSet::new();
    for (first, committed) in [
        ("append.half:5", false),
        ("pending.half", false),
        ("pending.synced", false),
        ("commit.line", true),
        ("commit.renamed", true),
    ] {
        for point in POINTS {
            for time in 1.. {
                let (project, store) = project();
                let (name, at) = first.split_once(':').unwrap_or((first, "1"));
                killed_at(name, at.parse().unwrap(), Script::Apply, &project).unwrap();
                if killed_at(point, time, Script::Visit, &project).is_none() {
                    break;
                }
                reached.insert(point);
                let context = format!("{first}, then {point}:{time}");
                let snapshot = check_after_kill(&context, &store, &project);
                assert_eq!(snapshot.state.state.serial, u64::from(committed), "{context}");
                assert_eq!(snapshot.control.control.is_clear(), committed, "{context}");
            }
        }
    }
    let expected = [
        "settle.cut",
        "settle.removed",
        "commit.renamed",
        "replace.created",
        "replace.half",
        "replace.synced",
        "replace.renamed",
        "replace.done",
        "lock.taken",
    ];
    assert_eq!(reached, BTreeSet::from(expected));
}

/// REC-035, REC-036, REC-037: a recovery killed at any moment either stands or does not, and the same recovery run again ends
/// it once; with and without an earlier recovery in the history, with and without new ownership.
#[test]
fn a_recovery_killed_at_any_moment_stands_whole_or_not_at_all() {
    let mut reached = BTreeSet::new();
    for (changes, earlier) in [(true, false), (true, true), (false, false)] {
        for point in POINTS {
            for time in 1.. {
                let (project, store) = project();
                if earlier {
                    recovered_by_another(&store);
                }
                if changes {
                    incident(&store)
                } else {
                    drop(interrupted(&store))
                }
                let before = store.read_snapshot(&address()).unwrap();
                let Some(output) = killed_at(point, time, Script::Recover, &project) else { break };
                reached.insert(point);
                let context = format!("killed at {point}:{time}, changes: {changes}, earlier: {earlier}");
                let after = check_after_kill(&context, &store, &project);
                let stands = after.control.control.is_clear();
                let serial = before.state.state.serial;
                assert!(stands || acked(&output) == 0, "{context}");
                if stands {
                    assert_eq!(after.state.state.serial, serial + u64::from(changes), "{context}");
                } else {
                    assert_eq!(after, before, "{context}");
                }
                let output = child::command(Script::Recover, project.path()).output().unwrap();
                assert!(output.status.success(), "{context}: {output:?}");
                let ended = store.read_snapshot(&address()).unwrap();
                assert!(ended.control.control.is_clear(), "{context}");
                assert_eq!(ended.state.state.serial, serial + u64::from(changes), "{context}");
                assert!(!stands || ended == after, "{context}");
                let history = std::fs::read_to_string(file(&project, "prod.recovery-history.jsonl")).unwrap();
                assert_eq!(history.matches(&child::RECOVERY.to_string()).count(), 2, "{context}: {history}");
                apply(&store, "later");
            }
        }
    }
    let expected = [
        "lock.taken",
        "pending.created",
        "pending.half",
        "pending.synced",
        "append.half",
        "append.written",
        "append.done",
        "recovery.intent",
        "commit.renamed",
        "recovery.resolution",
        "replace.created",
        "replace.half",
        "replace.synced",
        "replace.renamed",
        "replace.done",
        "commit.done",
    ];
    assert_eq!(reached, BTreeSet::from(expected));
}

/// An operation marked for recovery.
fn incident(store: &LocalStore) {
    let mut operation = acquire(store);
    let snapshot = operation.observe().unwrap();
    let intent = intent(&snapshot, topic_creates(2));
    let snapshot = operation.begin(snapshot, intent.clone()).unwrap();
    let snapshot = operation.record_progress(snapshot, vec![started(&intent, 0)]).unwrap();
    let snapshot = operation.record_progress(snapshot, vec![completed(&intent, 0, false)]).unwrap();
    let record = testing::recovery(&intent, crate::state::control::FailureCode::RuntimeActionFailed, None);
    operation.mark_recovery_required(snapshot, record).unwrap();
    operation.release().unwrap();
}

fn recovered_by_another(store: &LocalStore) {
    use crate::state::control::{AcceptedAs, Resolution};
    interrupted(store);
    let mut operation = acquire(store);
    let snapshot = operation.observe().unwrap();
    let intent = testing::recovery_intent(&snapshot, Resolution::RolledBack, AcceptedAs::Prior, None);
    operation.finalize_recovery(snapshot, intent, None).unwrap();
    operation.release().unwrap();
}

/// SAF-026, SAF-027, SAF-028
#[test]
fn twenty_processes_take_turns_and_their_serials_are_contiguous() {
    let (project, store) = project();
    let children: Vec<_> = (0..20)
        .map(|_| child::command(Script::Race, project.path()).stdout(std::process::Stdio::piped()).spawn().unwrap())
        .collect();
    let mut serials = BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        let serial: u64 = text.split("<serial:").nth(1).unwrap().split('>').next().unwrap().parse().unwrap();
        assert!(serials.insert(serial), "serial {serial} twice");
    }
    assert_eq!(serials, (1..=20).collect());
    let snapshot = store.read_snapshot(&address()).unwrap();
    assert_eq!((snapshot.state.state.serial, snapshot.state.state.resources.len()), (20, 20));
    snapshot.ensure_clear().unwrap();
}

/// SAF-028: readers without the lock never see half a commit.
#[test]
fn a_reader_beside_writers_always_sees_a_whole_state() {
    let (project, store) = project();
    apply(&store, "first");
    let mut child = child::command(Script::Apply, project.path()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut last = 0;
    let mut reads = 0;
    while child.try_wait().unwrap().is_none() || reads < 50 {
        let snapshot = store.read_snapshot(&address()).unwrap();
        assert!(snapshot.state.state.serial >= last);
        last = snapshot.state.state.serial;
        reads += 1;
    }
    assert_eq!(store.read_snapshot(&address()).unwrap().state.state.serial, 2);
}
