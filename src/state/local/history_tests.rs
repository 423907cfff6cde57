//! Chain, order and bounds of the recovery history.

use super::*;
use crate::state::control::Resolution;
use crate::state::scalar::Timestamp;
use crate::state::testing::{OPERATION, address, empty_state_checksum};

fn record(recovery: u128) -> ResolutionRecord {
    ResolutionRecord {
        address: "streamt-state://platform/payments/prod".into(),
        blocked_operation_id: OPERATION,
        evidence_checksum: Checksum::parse(&format!("sha256:{}", "1".repeat(64))).unwrap(),
        prior_state_checksum: empty_state_checksum(),
        prior_state_serial: 0,
        recovery_operation_id: Uuid::from_u128(recovery),
        resolution: Resolution::RolledBack,
        resolved_at: Timestamp::parse("2026-09-06T10:05:00.000000Z").unwrap(),
        result_state_checksum: empty_state_checksum(),
        result_state_serial: 0,
        state_changed: false,
    }
}

type Maker = fn(ResolutionRecord) -> Record;
const INTENT: Maker = Record::Intent;
const RESOLUTION: Maker = Record::Resolution;
const RECOVERY: u128 = 0x0a7a_c3f4_7d52_4d26_8a9b_2f6a_4c1d_9e10;

fn bytes(version: u8, events: Vec<(Maker, ResolutionRecord)>) -> Vec<u8> {
    let envelope = Envelope { address: address("platform").to_string(), history_version: version };
    let mut bytes = to_canonical(&envelope).unwrap();
    bytes.push(b'\n');
    let mut previous_checksum = None;
    for ((kind, record), sequence) in events.into_iter().zip(0..) {
        let line = Line::of(&kind(record), previous_checksum, sequence).unwrap();
        bytes.extend(line.bytes().unwrap());
        previous_checksum = Some(line.checksum);
    }
    bytes
}

/// A history that holds one resumption.
pub fn file_of_resumption(address: &StateAddress, record: &ResumeRecord) -> String {
    let envelope = Envelope { address: address.to_string(), history_version: 2 };
    let line = Line::of(&Record::Resumed(record.clone()), None, 0).unwrap().bytes().unwrap();
    String::from_utf8([to_canonical(&envelope).unwrap(), b"\n".to_vec(), line].concat()).unwrap()
}

fn parse(bytes: &[u8]) -> Result<History, &'static str> {
    History::parse(bytes, &address("platform"))
}

/// REC-035: G23
#[test]
fn golden_digest_of_an_event() {
    let text = String::from_utf8(bytes(1, vec![(INTENT, record(RECOVERY))])).unwrap();
    let digest = "sha256:5f416698e4d5d5119061ed07f29d4802e4cf9dba093ed0e460e62c7e3eb95b17";
    assert!(text.contains(&format!("{{\"checksum\":\"{digest}\",\"event_version\":1")), "{text}");
    assert_eq!(parse(text.as_bytes()).unwrap().unresolved, Some(record(RECOVERY)));
}

/// REC-035
#[test]
fn a_resolution_closes_its_own_intent_once() {
    let pair = |recovery| [(INTENT, record(recovery)), (RESOLUTION, record(recovery))];
    let history = parse(&bytes(1, pair(RECOVERY).to_vec())).unwrap();
    assert_eq!(history.unresolved, None);
    assert_eq!(history.used, BTreeSet::from([OPERATION, Uuid::from_u128(RECOVERY)]));
    for refused in [
        vec![(RESOLUTION, record(RECOVERY))],
        vec![(INTENT, record(RECOVERY)), (INTENT, record(2))],
        vec![(INTENT, record(RECOVERY)), (RESOLUTION, record(2))],
        [pair(RECOVERY), pair(2)].concat(),
        vec![(INTENT, ResolutionRecord { address: "streamt-state://local/a/b".into(), ..record(1) })],
    ] {
        assert!(parse(&bytes(1, refused.clone())).is_err(), "{refused:?}");
    }
}

#[test]
fn any_changed_byte_breaks_the_chain() {
    let whole = bytes(1, vec![(INTENT, record(RECOVERY)), (RESOLUTION, record(RECOVERY))]);
    for at in 0..whole.len() - 1 {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert!(parse(&changed).is_err(), "byte {at}");
    }
    for version in [0, 2, 3, 4] {
        assert!(parse(&bytes(version, Vec::new())).is_err());
    }
    assert!(parse(b"").is_err() && parse(&bytes(1, Vec::new())).is_ok());
}

mod runner {
    use super::*;
    use crate::state::control::runner_testing::{completion, resume};

    const RESUMED: &str = "sha256:758164366f8bcb2830e5303fee9be3cd5ae486cd08ef9c68e8185546e6b1f12f";
    const COMPLETED: &str = "sha256:78acf600ac37614ace71cda396bd3382a8eb393d2fe826dc24cea5b29c9efa22";

    fn file(version: u8, records: &[Record]) -> Vec<u8> {
        let envelope = Envelope { address: address("local").to_string(), history_version: version };
        let mut bytes = to_canonical(&envelope).unwrap();
        bytes.push(b'\n');
        let mut previous_checksum = None;
        for (record, sequence) in records.iter().zip(0..) {
            let line = Line::of(record, previous_checksum, sequence).unwrap();
            bytes.extend(line.bytes().unwrap());
            previous_checksum = Some(line.checksum);
        }
        bytes
    }

    fn read(version: u8, records: &[Record]) -> Result<History, &'static str> {
        History::parse(&file(version, records), &address("local"))
    }

    fn resumed() -> Record {
        Record::Resumed(resume())
    }

    fn completed() -> Record {
        Record::Completed(Box::new(completion()))
    }

    #[test]
    fn golden_digests_of_a_resumption_and_a_completion() {
        let text = String::from_utf8(file(3, &[resumed(), completed()])).unwrap();
        let mut lines = text.lines().skip(1);
        assert!(
            lines.next().unwrap().starts_with(&format!("{{\"checksum\":\"{RESUMED}\",\"event_version\":2,")),
            "{text}"
        );
        assert!(
            lines.next().unwrap().starts_with(&format!("{{\"checksum\":\"{COMPLETED}\",\"event_version\":3,")),
            "{text}"
        );
    }

    /// The version of a file is the smallest that its events need, and what they say of one operation agrees.
    #[test]
    fn runner_events_are_read_in_the_version_that_they_need() {
        let history = read(2, &[resumed()]).unwrap();
        assert!(history.used.contains(&resume().resume_id) && history.completion(resume().operation_id).is_none());
        let history = read(3, &[resumed(), completed()]).unwrap();
        assert_eq!(history.completion(resume().operation_id), Some(&completion()));
        assert!(history.used.contains(&resume().operation_id));
        for (version, records) in [
            (1, vec![resumed()]),
            (3, vec![resumed()]),
            (2, vec![resumed(), completed()]),
            (2, Vec::new()),
            (3, vec![completed()]),
            (3, vec![resumed(), completed(), completed()]),
            (3, vec![resumed(), completed(), resumed()]),
            (2, vec![resumed(), resumed()]),
        ] {
            assert!(read(version, &records).is_err(), "{version} {}", records.len());
        }
        let later = |progress_count| {
            Record::Resumed(ResumeRecord {
                resume_id: Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0009),
                progress_count,
                ..resume()
            })
        };
        assert!(read(2, &[resumed(), later(3)]).is_ok() && read(2, &[resumed(), later(4)]).is_ok());
        assert!(read(2, &[resumed(), later(2)]).is_err(), "boundaries never go back");
        let elsewhere = RunnerCompletion { address: "streamt-state://local/a/b".to_owned(), ..completion() };
        assert!(read(3, &[resumed(), Record::Completed(Box::new(elsewhere))]).is_err());
        for result_state_serial in [1, 3] {
            let wrong = RunnerCompletion { result_state_serial, ..completion() };
            assert!(read(3, &[resumed(), Record::Completed(Box::new(wrong))]).is_err());
        }
    }

    /// A recovery of another operation is appended behind them, and the file keeps its version.
    #[test]
    fn a_recovery_follows_runner_events() {
        let recovery = ResolutionRecord { address: address("local").to_string(), ..record(RECOVERY) };
        let records = [resumed(), completed(), Record::Intent(recovery.clone()), Record::Resolution(recovery.clone())];
        let history = read(3, &records).unwrap();
        assert_eq!(history.resolution(recovery.recovery_operation_id), Some(&recovery));
    }

    fn in_a_directory(bytes: Option<&[u8]>) -> (tempfile::TempDir, StateDir) {
        let project = tempfile::tempdir().unwrap();
        let dir = StateDir::open(project.path(), true).unwrap().unwrap();
        if let Some(bytes) = bytes {
            dir.replace(NAME, bytes).ok().unwrap();
        }
        (project, dir)
    }

    const NAME: &str = "prod.recovery-history.jsonl";

    /// REC-035: what stands in a file is never written anew in other bytes.
    #[test]
    fn an_event_of_a_higher_version_keeps_the_older_ones_byte_for_byte() {
        let recovery = ResolutionRecord {
            address: address("local").to_string(),
            blocked_operation_id: Uuid::from_u128(7),
            ..record(RECOVERY)
        };
        let all = [Record::Intent(recovery.clone()), Record::Resolution(recovery), resumed(), completed()];
        for start in 0..=2 {
            let begun = (start > 0).then(|| file(1, &all[..start]));
            let (_project, dir) = in_a_directory(begun.as_deref());
            for event in &all[start..] {
                let history = History::read(&dir, NAME, &address("local")).unwrap();
                history.append(&dir, NAME, &address("local"), event).ok().unwrap();
            }
            let (bytes, _) = dir.read(NAME, MAX_HISTORY).unwrap().unwrap();
            assert_eq!(bytes, file(3, &all), "from {start}");
        }
    }

    #[test]
    fn a_full_history_takes_no_event_and_is_left_alone() {
        let (_project, dir) = in_a_directory(Some(&file(2, &[resumed()])));
        let read = || History::read(&dir, NAME, &address("local")).unwrap();
        assert!(read().has_room(1000) && !read().has_room(MAX_HISTORY));
        let full = History { events: MAX_EVENTS, ..read() };
        assert!(!full.has_room(0));
        assert!(matches!(full.append(&dir, NAME, &address("local"), &completed()), Err(WriteError::NotWritten(_))));
        let mut long = read();
        long.length = (MAX_HISTORY - 100) as u64;
        if let Some(print) = &mut long.print {
            print.length = long.length;
        }
        assert!(!long.has_room(0));
        assert!(matches!(long.append(&dir, NAME, &address("local"), &completed()), Err(WriteError::NotWritten(_))));
        assert_eq!(dir.read(NAME, MAX_HISTORY).unwrap().unwrap().0, file(2, &[resumed()]));
    }
}
