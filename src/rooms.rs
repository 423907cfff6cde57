//! Holds the rooms of this crate to their direction: what a room may import stands here once, and a test reads the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Every room, lowest first, and what it may import. `room::part` opens one part of a room that stands beside or above.
const ROOMS: &[(&str, &[&str])] = &[
    ("codes", &[]),
    ("failpoint", &[]),
    ("files", &["codes", "failpoint"]),
    ("project", &["codes"]),
    ("sql", &["codes"]),
    ("compiler", &["codes", "files", "project", "sql"]),
    ("assertions", &["compiler", "project", "sql"]),
    ("validate", &["assertions", "codes", "compiler", "project", "sql"]),
    ("ownership", &["compiler", "project"]),
    ("planner", &["codes", "compiler", "ownership", "project"]),
    ("providers", &["assertions", "codes", "compiler", "failpoint", "planner", "project", "sql"]),
    // A store on the network shares the one way to set up TLS.
    ("state", &["codes", "compiler", "failpoint", "files", "ownership", "planner", "project", "providers::tls"]),
    // A message that changes something carries a lease; only the lock actor can make one.
    ("messages", &["actors::lease", "assertions", "codes", "compiler", "planner", "project", "providers", "state"]),
    (
        "actors",
        &["assertions", "codes", "compiler", "messages", "planner", "project", "providers", "state", "validate"],
    ),
    (
        "cli",
        &[
            "actors",
            "assertions",
            "codes",
            "compiler",
            "files",
            "messages",
            "planner",
            "project",
            "providers",
            "state",
            "validate",
        ],
    ),
];

#[test]
fn imports_point_one_way() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for path in sources(&src) {
        let relative = path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
        let room = relative.split(['/', '.']).next().unwrap();
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            assert!(matches!(room, "lib" | "rooms" | "golden"), "{room} is a room without a place in the order");
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        for (line, import) in imports(&text) {
            let target = import.split("::").next().unwrap();
            if target != room && !allowed.contains(&target) && !allowed.contains(&import.as_str()) {
                wrong.push(format!("{relative}:{line}: {room} imports {import}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_imports_from_below() {
    for (index, (room, allowed)) in ROOMS.iter().enumerate() {
        // A part of a room, named on its own, is an exception with a reason beside it.
        for target in allowed.iter().filter(|target| !target.contains("::")) {
            assert!(ROOMS[..index].iter().any(|(lower, _)| lower == target), "{room} does not stand above {target}");
        }
    }
}

/// Rust sources without those that only tests compile.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let of_tests =
            matches!(stem.as_str(), "tests" | "testing" | "fixtures" | "properties" | "conformance" | "example")
                || stem.ends_with("_tests");
        if of_tests {
            continue;
        } else if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Line number and `room` or `room::part` of each `crate::` path in code.
fn imports(text: &str) -> Vec<(usize, String)> {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for path in line.split("crate::").skip(1) {
            assert!(!path.starts_with('{'), "line {}: one room an import: {line}", index + 1);
            let mut names = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let room = names.next().unwrap_or_default();
            let part = names.nth(1).filter(|_| path[room.len()..].starts_with("::")).unwrap_or_default();
            found.push((index + 1, if part.is_empty() { room.to_owned() } else { format!("{room}::{part}") }));
        }
    }
    found
}
