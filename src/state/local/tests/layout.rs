//! The files of the local store: where they stand, their modes, their exact bytes, and what is refused in them.

use std::os::unix::fs::{MetadataExt, symlink};

use proptest::prelude::*;

use super::*;
use crate::codes::Code;
use crate::compiler::artifact::Kind;
use crate::planner::model::Verb;
use crate::state::control::{Control, Event, StoredEvent};
use crate::state::local::control_file::{ControlFile, header_bytes, line_bytes};
use crate::state::store::Revision;
use crate::state::testing::{actions, golden_intent};

fn refused(store: &LocalStore) -> Code {
    let code = store.read_snapshot(&address()).unwrap_err().code();
    let acquired = store.acquire(&address(), Duration::from_secs(1), &CancellationToken::new());
    assert_eq!(acquired.err().map(|error| error.code()), Some(code), "who locks is told the same");
    code
}

/// SAF-021, SAF-022, SAF-026, SAF-071
#[test]
fn ownership_stands_in_one_pretty_file_for_each_environment() {
    let (project, store) = project();
    apply(&store, "orders");
    let text = std::fs::read_to_string(file(&project, "prod.json")).unwrap();
    let checksum = crate::compiler::canonical::Checksum::of_bytes(b"orders");
    let expected = format!(
        r#"{{
  "environment": "prod",
  "project": "payments",
  "resources": {{
    "streamt://payments/prod/topic/orders": {{
      "artifact_checksum": "{checksum}",
      "backend": "direct-kafka",
      "ownership": "managed",
      "physical_name": "orders"
    }}
  }},
  "serial": 1,
  "state_version": 1
}}
"#
    );
    assert_eq!(text, expected);
    let control = std::fs::read_to_string(file(&project, "prod.control.jsonl")).unwrap();
    assert_eq!(
        control,
        "{\"address\":\"streamt-state://local/payments/prod\",\"control_version\":3,\"operation_id\":null}\n"
    );

    let other = LocalStore::address("payments", "dev").unwrap();
    assert_eq!(store.read_snapshot(&other).unwrap().state.revision, Revision::Absent);
    let mut both = store.acquire(&other, Duration::ZERO, &CancellationToken::new()).unwrap();
    assert_eq!(both.observe().unwrap().state.state.environment, "dev");
    acquire(&store);
}

#[test]
fn files_and_directories_are_private() {
    let (project, store) = project();
    apply(&store, "orders");
    interrupted(&store);
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().mode() & 0o7777;
    for name in ["prod.json", "prod.control.jsonl", ".prod.json.lock"] {
        assert_eq!(mode(file(&project, name)), 0o600, "{name}");
    }
    assert_eq!((mode(project.path().join(".streamt")), mode(file(&project, ""))), (0o700, 0o700));
}

#[test]
fn reading_creates_nothing() {
    let (project, store) = project();
    store.read_snapshot(&address()).unwrap();
    assert_eq!(std::fs::read_dir(project.path()).unwrap().count(), 0);
}

/// G5: UUIDv5 of the directory's URI.
#[test]
fn the_store_is_the_canonical_project_directory() {
    assert_eq!(store_id(Path::new("/srv/payments")).unwrap().to_string(), "5270855c-51d4-5ae5-ac7e-2a3899d1598f");
    let (project, store) = project();
    let outside = tempfile::tempdir().unwrap();
    symlink(project.path(), outside.path().join("link")).unwrap();
    let linked = LocalStore::new(&outside.path().join("link")).unwrap();
    assert_eq!(linked.describe().unwrap(), store.describe().unwrap());
    let (_other, moved) = super::project();
    assert_ne!(moved.describe().unwrap(), store.describe().unwrap());
}

#[test]
fn an_address_that_would_name_other_files_is_refused() {
    for (name, environment) in [
        ("payments", ""),
        ("payments", "../prod"),
        ("payments", "a.b"),
        ("payments", "-a"),
        ("payments", "a/b"),
        ("", "prod"),
        ("a/b", "prod"),
    ] {
        assert_eq!(LocalStore::address(name, environment).unwrap_err().code(), Code::E411StateInvalid);
    }
    let (_project, store) = project();
    let remote = testing::address("platform");
    assert_eq!(store.read_snapshot(&remote).unwrap_err().code(), Code::E411StateInvalid);
}

#[test]
fn symbolic_links_and_things_that_are_no_files_are_refused() {
    let outside = tempfile::tempdir().unwrap();
    for name in ["prod.json", "prod.control.jsonl", "prod.recovery-history.jsonl"] {
        for thing in ["link", "dangling", "directory", "pipe"] {
            let (project, store) = project();
            apply(&store, "orders");
            let path = file(&project, name);
            let target = outside.path().join(name);
            let _ = std::fs::rename(&path, &target);
            match thing {
                "link" => symlink(&target, &path).unwrap(),
                "dangling" => symlink("/nowhere", &path).unwrap(),
                "directory" => std::fs::create_dir(&path).unwrap(),
                _ => rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap(),
            }
            if thing == "link" && !target.exists() {
                std::fs::write(&target, "").unwrap();
            }
            assert_eq!(refused(&store), Code::E411StateInvalid, "{name} is a {thing}");
        }
    }
    for directory in [".streamt", ".streamt/state"] {
        let (project, store) = project();
        apply(&store, "orders");
        let path = project.path().join(directory);
        let moved = outside.path().join(directory.replace('/', "-"));
        std::fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        assert_eq!(refused(&store), Code::E411StateInvalid, "{directory}");
    }
    for in_the_way in [".streamt", ".streamt/state"] {
        let (project, store) = project();
        let path = project.path().join(in_the_way);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "mine").unwrap();
        let error = store.read_snapshot(&address()).unwrap_err();
        assert_eq!(error.code(), Code::E420StateBackendUnavailable, "{in_the_way}: {error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
    let (project, store) = project();
    std::fs::create_dir_all(file(&project, "")).unwrap();
    symlink(outside.path().join("lock"), file(&project, ".prod.json.lock")).unwrap();
    let acquired = store.acquire(&address(), Duration::ZERO, &CancellationToken::new());
    assert_eq!(acquired.err().unwrap().code(), Code::E411StateInvalid);
    assert!(!outside.path().join("lock").exists());
}

#[test]
fn malformed_ownership_is_refused_and_never_taken_as_empty() {
    let (project, store) = project();
    apply(&store, "orders");
    let path = file(&project, "prod.json");
    let good = std::fs::read_to_string(&path).unwrap();
    for (what, bad) in [
        ("empty", String::new()),
        ("cut", good[..good.len() / 2].to_owned()),
        ("trailing", format!("{good}{{}}")),
        ("another version", good.replace("\"state_version\": 1", "\"state_version\": 2")),
        ("another project", good.replace("\"project\": \"payments\"", "\"project\": \"billing\"")),
        ("another environment", good.replace("\"environment\": \"prod\"", "\"environment\": \"dev\"")),
        ("a foreign resource", good.replace("streamt://payments/prod/", "streamt://payments/dev/")),
        ("an unknown kind", good.replace("/topic/", "/queue/")),
        ("an external record", good.replace("managed", "external")),
        ("an unknown key", good.replace("\"serial\"", "\"lineage\": 1, \"serial\"")),
        ("a missing key", good.replace("\"serial\": 1,", "")),
        ("a duplicate key", good.replace("\"serial\": 1", "\"serial\": 1, \"serial\": 1")),
        ("a float", good.replace("\"serial\": 1", "\"serial\": 1.0")),
        ("a bool", good.replace("\"serial\": 1", "\"serial\": true")),
        ("a negative serial", good.replace("\"serial\": 1", "\"serial\": -1")),
        ("serial 0 with resources", good.replace("\"serial\": 1", "\"serial\": 0")),
        ("a huge serial", good.replace("\"serial\": 1", "\"serial\": 9007199254740992")),
        ("an empty name", good.replace("\"physical_name\": \"orders\"", "\"physical_name\": \"\"")),
        ("a short checksum", good.replace("\"sha256:", "\"sha256:0")),
        ("too many bytes", format!("{good}{}", " ".repeat(10 * 1024 * 1024))),
    ] {
        assert!(what == "empty" || bad != good);
        std::fs::write(&path, bad).unwrap();
        assert_eq!(refused(&store), Code::E411StateInvalid, "{what}");
    }
}

#[test]
fn a_last_line_that_was_never_acknowledged_is_ignored_and_then_cut_off() {
    let (project, store) = project();
    interrupted(&store);
    let path = file(&project, "prod.control.jsonl");
    let whole = std::fs::read(&path).unwrap();
    let before = store.read_snapshot(&address()).unwrap();
    for tail in [&b"["[..], b"[{\"control_checksum\":\"sha256:", b"\0\0\0\0"] {
        std::fs::write(&path, [whole.as_slice(), tail].concat()).unwrap();
        assert_eq!(store.read_snapshot(&address()).unwrap(), before);
        assert_eq!(std::fs::read(&path).unwrap().len(), whole.len() + tail.len(), "a reader writes nothing");
        acquire(&store);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn ownership_that_is_not_where_the_pending_operation_started_is_refused() {
    let (project, store) = project();
    apply(&store, "orders");
    interrupted(&store);
    std::fs::remove_file(file(&project, "prod.json")).unwrap();
    assert_eq!(refused(&store), Code::E411StateInvalid);
}

/// Bytes of a control with an intent, a group and its outcomes.
fn control_bytes() -> Vec<u8> {
    let intent = golden_intent(topic_creates(2));
    let mut bytes = header_bytes(&address(), 3, Some(intent.operation_id)).unwrap();
    let mut control = Control::clear(&address());
    for run in [
        vec![Event::Intent(intent.clone())],
        (0..2).map(|index| Event::Progress(started(&intent, index))).collect(),
        (0..2).map(|index| Event::Progress(completed(&intent, index, index == 0))).collect(),
    ] {
        let stored: Vec<StoredEvent>;
        (control, stored) = control.apply_step(run).unwrap();
        bytes.extend(line_bytes(&stored).unwrap());
    }
    bytes
}

/// G30
#[test]
fn golden_line_of_one_step() {
    let intent = golden_intent(actions(&[(Verb::Create, Kind::Topic, "orders")]));
    let control = Control::clear(&testing::address("platform"));
    let (control, _) = control.apply_step(vec![Event::Intent(intent.clone())]).unwrap();
    let (_, stored) = control.apply_step(vec![Event::Progress(started(&intent, 0))]).unwrap();
    let entry = "{\"action\":\"create\",\"action_index\":0,\"operation_id\":\"6f1c1d0e-3b1a-4c52-9d59-0d9f7a1c2b30\",\
                 \"recorded_at\":\"2026-09-06T10:00:01.000000Z\",\"resource_id\":\"streamt://payments/prod/topic/orders\",\
                 \"status\":\"started\",\"succeeded\":null}";
    let line = format!(
        "[{{\"control_checksum\":\"sha256:3b243f38d80871cdfecb96f1981470b77cd9055b2653cf32779d7bbaff8c74fb\",\
         \"event\":{entry},\"event_index\":1,\"event_kind\":\"progress_started\"}}]\n"
    );
    assert_eq!(String::from_utf8(line_bytes(&stored).unwrap()).unwrap(), line);
}

#[test]
fn a_control_is_read_as_it_was_written() {
    let bytes = control_bytes();
    let read = ControlFile::read(&bytes, &address(), "control").unwrap();
    assert_eq!((read.length, read.ended, read.control.progress().len()), (bytes.len(), false, 4));
    let document = serde_json::to_value(read.control.to_value()).unwrap();
    assert_eq!(crate::compiler::canonical::Checksum::of(&document).unwrap(), *read.control.checksum());
}

/// SAF-029: whatever single byte of a control changes, it is refused. Only the last line feed is not covered: without it, the
/// last line is one that was never acknowledged.
#[test]
fn every_changed_byte_of_a_control_is_refused() {
    let bytes = control_bytes();
    for at in 0..bytes.len() - 1 {
        for byte in [bytes[at] ^ 1, b'\n', 0xff] {
            if byte == bytes[at] {
                continue;
            }
            let mut changed = bytes.clone();
            changed[at] = byte;
            let read = ControlFile::read(&changed, &address(), "control");
            assert!(read.is_err(), "byte {at} of {:?}", String::from_utf8_lossy(&changed));
        }
    }
}

/// The same content in other bytes was written by something else.
#[test]
fn a_control_in_another_spelling_is_refused() {
    let text = String::from_utf8(control_bytes()).unwrap();
    for line in 0..text.lines().count() {
        let spelled = |change: &dyn Fn(&str) -> String| {
            let lines =
                text.lines().enumerate().map(|(at, text)| if at == line { change(text) } else { text.to_owned() });
            let changed = lines.map(|line| line + "\n").collect::<String>();
            assert_ne!(changed, text, "line {line}");
            ControlFile::read(changed.as_bytes(), &address(), "control").is_err()
        };
        assert!(spelled(&|text| format!(" {text}")), "line {line}: a blank before it");
        assert!(spelled(&|text| text.replacen(':', ": ", 1)), "line {line}: a blank inside");
        assert!(spelled(&|text| text.replacen("control", "\\u0063ontrol", 1)), "line {line}: an escaped letter");
        let turned = |text: &str| {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            let turn = |value: &serde_json::Value| match value {
                serde_json::Value::Object(map) => {
                    serde_json::Value::Object(map.iter().rev().map(|(k, v)| (k.clone(), v.clone())).collect())
                }
                other => other.clone(),
            };
            match &value {
                serde_json::Value::Array(items) => {
                    serde_json::Value::Array(items.iter().map(turn).collect()).to_string()
                }
                other => turn(other).to_string(),
            }
        };
        assert!(spelled(&turned), "line {line}: its keys in another order");
    }
}

#[test]
fn a_control_cut_anywhere_gives_its_whole_steps_or_nothing() {
    let bytes = control_bytes();
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for length in 0..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        match ControlFile::read(&bytes[..length], &address(), "control") {
            Err(_) => assert!(whole < 2, "an operation without its intent"),
            Ok(read) => {
                assert_eq!((read.length, read.control.progress().len()), (ends[whole - 1], [0, 2, 4][whole - 2]))
            }
        }
    }
}

#[test]
fn lines_in_another_order_twice_or_left_out_are_refused() {
    let bytes = control_bytes();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for order in
        [&[0, 1, 3][..], &[0, 2, 1, 3], &[0, 1, 1], &[0, 1, 2, 2], &[1, 2, 3], &[0, 0, 1], &[0, 2], &[0, 1, 2, 3, 1]]
    {
        let mixed: Vec<u8> = order.iter().flat_map(|line| lines[*line].iter().copied()).collect();
        assert!(ControlFile::read(&mixed, &address(), "control").is_err(), "{order:?}");
    }
}

#[test]
fn a_control_of_another_version_address_or_operation_is_refused() {
    let bytes = control_bytes();
    let text = String::from_utf8(bytes).unwrap();
    let (header, lines) = text.split_once('\n').unwrap();
    let with = |header: &str| ControlFile::read(format!("{header}\n{lines}").as_bytes(), &address(), "control");
    assert!(with(header).is_ok());
    for (from, to) in [
        ("\"control_version\":3", "\"control_version\":2"),
        ("\"control_version\":3", "\"control_version\":4"),
        ("\"control_version\":3", "\"control_version\":5"),
        ("\"control_version\":3", "\"control_version\":6"),
        ("\"control_version\":3", "\"control_version\":0"),
        ("local/payments", "local/billing"),
        ("6f1c1d0e", "7f1c1d0e"),
        ("\"6f1c1d0e-3b1a-4c52-9d59-0d9f7a1c2b30\"", "null"),
    ] {
        assert!(with(&header.replace(from, to)).is_err(), "{to}");
    }
}

/// CRM-075: it is read in its version, looking leaves it alone, and the next operation ends in the current one.
#[test]
fn a_clear_control_of_an_earlier_version_is_read_and_upgraded_by_the_next_write() {
    for version in [1, 2, 3, 4] {
        let (project, store) = project();
        apply(&store, "orders");
        let path = file(&project, "prod.control.jsonl");
        let header = header_bytes(&address(), version, None).unwrap();
        std::fs::write(&path, &header).unwrap();
        let seen = store.read_snapshot(&address()).unwrap().control;
        assert_eq!((seen.control.is_clear(), seen.control.version()), (true, version));
        acquire(&store);
        assert_eq!(std::fs::read(&path).unwrap(), header, "a lock alone writes nothing");
        apply(&store, "payments");
        assert_eq!(std::fs::read(&path).unwrap(), header_bytes(&address(), 3, None).unwrap());
    }
    for version in [0, 5, 6] {
        let header = header_bytes(&address(), version, None).unwrap();
        assert!(ControlFile::read(&header, &address(), "control").is_err(), "{version}");
    }
}

proptest! {
    /// SAF-029: what was written is what is read, after every step.
    #[test]
    fn any_control_is_read_as_it_was_written(
        (list, sizes) in testing::operation(),
        failing in proptest::option::of(0_u32..40),
        version in 1_u8..=3,
    ) {
        let intent = golden_intent(list);
        let mut bytes = header_bytes(&address(), version, Some(intent.operation_id)).unwrap();
        let mut control = Control::clear(&address());
        let mut steps = testing::steps(&intent, &sizes, failing);
        steps.insert(0, vec![Event::Intent(intent.clone())]);
        for step in steps {
            let stored: Vec<StoredEvent>;
            (control, stored) = control.apply_step_in_version(step, version).unwrap();
            bytes.extend(line_bytes(&stored).unwrap());
            let read = ControlFile::read(&bytes, &address(), "control").unwrap();
            prop_assert_eq!(&read.control, &control);
            prop_assert_eq!(read.control.to_value(), control.to_value());
        }
    }

    /// Nothing that stands in a control file makes the reader panic, and nothing random is a control.
    #[test]
    fn arbitrary_lines_are_refused(tail in "[ -~\n]{0,200}") {
        let mut bytes = control_bytes();
        let length = bytes.len();
        bytes.extend(tail.as_bytes());
        match ControlFile::read(&bytes, &address(), "control") {
            Ok(read) => prop_assert!(read.length == length && !tail.contains('\n')),
            Err(_) => prop_assert!(tail.contains('\n')),
        }
    }
}

/// REC-035
#[test]
fn a_recovery_history_is_private_and_checked_with_the_state() {
    let (project, store) = project();
    apply(&store, "orders");
    let path = file(&project, "prod.recovery-history.jsonl");
    let envelope = "{\"address\":\"streamt-state://local/payments/prod\",\"history_version\":1}\n";
    let write = |text: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write(envelope, 0o600);
    store.read_snapshot(&address()).unwrap();
    write(envelope, 0o640);
    assert_eq!(refused(&store), Code::E411StateInvalid);
    write(&envelope.replace("local", "other"), 0o600);
    assert_eq!(refused(&store), Code::E411StateInvalid);
    write(&format!("{envelope}{{}}\n"), 0o600);
    assert_eq!(refused(&store), Code::E411StateInvalid);
}
