//! Every code of the catalogue is raised by a user's project or command, at its place, by the commands that may raise it.

use std::collections::BTreeSet;
use std::path::Path;

use streamt::codes::Code;

use crate::codes_rows::{Row, rows};
use crate::harness::Workspace;

const HEAD: &str = "apiVersion: streamt.dev/v1alpha1\nproject: {name: p}\n";
const RUNTIME: &str = "runtime:\n  kafka: {bootstrap_servers: '127.0.0.1:1'}\n";

/// The project of a row, and the place of its mark as the user is told it.
fn project(row: &Row) -> (Workspace, Option<String>) {
    let body = row.body.trim_start_matches('\n');
    let runtime = if body.contains("runtime:") { "" } else { RUNTIME };
    let text = format!("{HEAD}{runtime}{body}");
    let place = text.find('§').map(|at| {
        let line = text[..at].matches('\n').count() + 1;
        let column = text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("stream_project.yml:{line}:{column}")
    });
    (Workspace::project(&text.replace('§', "")), place.or(row.place.map(str::to_owned)))
}

/// The project of a row with its further files.
fn made(row: &Row) -> (Workspace, Option<String>) {
    let (workspace, place) = project(row);
    row.files.iter().for_each(|(path, content)| workspace.write(path, content));
    let workspace = match row.environment {
        Some(name) => workspace.variable("STREAMT_ENV", name),
        None => workspace,
    };
    (workspace, place)
}

/// Each row is found by `validate` at its place, with the exit code of its kind, and nothing is written.
#[test]
fn validate_finds_each_fault_at_its_place_and_writes_nothing() {
    let mut wrong = Vec::new();
    for row in rows() {
        let (workspace, place) = made(row);
        let before = workspace.snapshot();
        let run = workspace.run("validate -o json");
        let error = row.code.starts_with('E');
        let kind = if error { "errors" } else { "warnings" };
        let found = run.json()[kind].clone();
        let hit = found.as_array().unwrap().iter().any(|one| {
            one["code"] == row.code
                && place.as_deref().is_none_or(|place| one["location"].as_str() == Some(place))
                && one["message"].as_str().is_some_and(|text| !text.is_empty())
        });
        let text = workspace.run("validate");
        let told = format!("{}{}", text.stdout, text.stderr);
        let exit = i32::from(error);
        let same = (run.exit, text.exit) == (exit, exit);
        if !hit || !same || !told.contains(&format!("[{}]", row.code)) || workspace.snapshot() != before {
            wrong.push(format!("{} at {place:?}, exit {}: {found:#}\n{told}", row.code, run.exit));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Which command can emit which error, beside E901, E902, E903 and E907.
const MAY: &[(&str, &str)] = &[
    ("validate", "E101-E122 E201-E222 E301 E404-E406 E427 E501-E503 E601-E620 E904"),
    ("validate --strict", "E101-E122 E201-E222 E301 E404-E406 E427 E501-E503 E601-E620 E904"),
    ("compile --dry-run", "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E905"),
    ("compile --check", "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E905"),
    ("build", "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E905"),
    ("plan", "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E905 E404-E408 E411 E418-E424"),
    ("plan --offline", "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E905 E404-E408 E411 E418-E424"),
    (
        "apply",
        "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E905 E404-E408 E411 E418-E424 E401-E403 E409 E410 E417 E425 E426 E428 E506",
    ),
    ("diff", "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E404-E406 E523"),
    (
        "adopt --kind topic --name m",
        "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E404-E406 E408 E409 E411-E416 E419-E426",
    ),
    ("import", "E501-E503 E404-E406 E701-E708 E208"),
    ("import --kind connector", "E501-E503 E404-E406 E701-E708 E205 E209"),
    ("status", "E101-E122 E201-E222 E301 E427 E501-E503 E601-E620 E404-E406"),
    ("lineage", "E501-E503 E101 E102 E107 E108 E510"),
    ("list", "E501-E503 E101 E102 E107 E108 E510"),
    ("show model m", "E501-E503 E101 E102 E107 E108 E510"),
    ("state status", "E501-E503 E411 E420"),
    ("envs list", "E501-E503"),
];

fn allowed(ranges: &str, code: &str) -> bool {
    let number = |code: &str| code[1..4].parse::<u16>().unwrap();
    let always = ["E901", "E902", "E903", "E907"].iter().any(|one| code.starts_with(one));
    always
        || ranges.split(' ').any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            (number(first)..=number(last)).contains(&number(code))
        })
}

/// Every command over every faulty project: it says only what it may say, its exit code agrees, and it writes nothing.
#[test]
fn each_command_emits_only_the_codes_of_its_kind_and_writes_nothing_for_a_faulty_project() {
    let refused: Vec<&Row> = rows().filter(|row| row.code.starts_with('E')).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let strays = std::sync::Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(row) = refused.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let (workspace, _) = made(row);
                    let before = workspace.snapshot();
                    for (command, may) in MAY {
                        let run = workspace.run(&format!("{command} -o json"));
                        let errors = run.errors();
                        let stray = |what: &str| {
                            strays.lock().unwrap().insert(format!("{} with {command}: {what}: {errors:?}", row.code));
                        };
                        if run.exit != i32::from(!errors.is_empty()) {
                            stray(&format!("exit {}", run.exit));
                        }
                        if errors.iter().any(|(code, _)| !allowed(may, code)) {
                            stray("a code that it must not emit");
                        }
                        // What compares a project with what is live takes none that is wrong: its answer would be about another.
                        let whole = ["validate", "compile", "build", "plan", "apply", "diff", "status"];
                        // A removal needs a reviewed plan, which is asked before anything is validated.
                        let gated = row.code == "E427_CONNECTOR_REMOVAL_INVALID"
                            && matches!(*command, "plan" | "plan --offline" | "apply");
                        if whole.iter().any(|one| command.starts_with(one)) && !gated {
                            if !errors.iter().any(|(code, _)| code == row.code) {
                                stray("the fault is not told");
                            }
                            if workspace.snapshot() != before {
                                stray("something was written");
                            }
                        }
                    }
                }
            });
        }
    });
    let strays = strays.into_inner().unwrap();
    assert!(strays.is_empty(), "{strays:#?}");
}

/// The text of every test: the integration tests, and the test modules of the program.
fn tests_below(directory: &Path, found: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, found);
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let whole = name.ends_with("tests.rs")
            || path
                .components()
                .map(|part| part.as_os_str().to_string_lossy())
                .any(|part| part.ends_with("tests") || part == "conformance");
        let start = if whole { 0 } else { text.find("#[cfg(test)]\nmod ").unwrap_or(text.len()) };
        found.push_str(&text[start..]);
    }
}

/// A code without a row above is asserted by some test, by its text or by its variant.
#[test]
fn no_code_is_without_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = String::new();
    tests_below(&root.join("src"), &mut tests);
    tests_below(&root.join("tests"), &mut tests);
    let whole = |name: &str| {
        tests.match_indices(name).any(|(at, _)| {
            !tests[at + name.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
        })
    };
    let untested: Vec<&str> = (Code::ALL.iter())
        .filter(|code| !rows().any(|row| row.code == code.as_str()))
        .filter(|code| !whole(code.as_str()) && !whole(&format!("Code::{code:?}")))
        .map(|code| code.as_str())
        .collect();
    assert!(untested.is_empty(), "in the catalogue, and raised by no test: {untested:?}");
}
