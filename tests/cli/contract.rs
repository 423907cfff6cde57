//! Streams, envelope, quiet, colour, exit codes: what holds for every command.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::harness::{Run, Workspace, snapshot};

#[test]
fn version_is_text_or_an_envelope_of_our_own() {
    let workspace = Workspace::new();
    snapshot!(workspace, workspace.run("--version"), "version_text");
    snapshot!(workspace, workspace.run("version -o json"), "version_json");
    assert_eq!(workspace.run("-o json --version").stdout, workspace.run("version --output=json").stdout);
}

#[test]
fn a_line_that_is_not_understood_exits_2_with_text_and_envelope() {
    let workspace = Workspace::new();
    snapshot!(workspace, workspace.run("version --nope"), "usage_text");
    snapshot!(workspace, workspace.run("version --nope -o json"), "usage_json");
    snapshot!(workspace, workspace.run(""), "usage_no_command");
    for line in ["nope", "-o yaml version", "-q -v version", "explain", "completion tcsh"] {
        let run = workspace.run(line).exits(2);
        assert_eq!(run.stdout, "", "{line}");
        assert!(!run.stderr.is_empty(), "{line}");
    }
}

#[test]
fn with_detailed_exitcode_on_the_line_a_usage_error_exits_1() {
    let workspace = Workspace::new();
    let run = workspace.run("version --detailed-exitcode -o json").exits(1);
    assert_eq!(run.errors(), [("E902_USAGE".to_owned(), String::new())]);
}

#[test]
fn the_format_may_come_from_the_environment_and_the_line_beats_it() {
    let workspace = Workspace::new().variable("STREAMT_OUTPUT", "json");
    assert_eq!(workspace.run("version").exits(0).json()["command"], "version");
    assert!(workspace.run("version -o text").exits(0).stdout.starts_with("streamt "));
    assert_eq!(workspace.run("version --nope").exits(2).json()["errors"][0]["code"], "E902_USAGE");
    let other = Workspace::new().variable("STREAMT_OUTPUT", "yaml");
    other.run("version").exits(2);
}

#[test]
fn quiet_prints_errors_alone_and_keeps_the_envelope() {
    let workspace = Workspace::new();
    let run = workspace.run("version -q").exits(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    assert_eq!(workspace.run("-q version -o json").exits(0).json()["status"], json!("ok"));
    let run = workspace.run("explain E999 -q").exits(2);
    assert!(run.stderr.starts_with("ERROR: [E902_USAGE]"), "{}", run.stderr);
    assert!(!run.stderr.contains("HINT"), "{}", run.stderr);
}

#[test]
fn colour_follows_the_option_then_the_environment() {
    let coloured = |workspace: &Workspace, line: &str| workspace.run(line).stdout.contains('\u{1b}');
    let plain = Workspace::new();
    assert!(!coloured(&plain, "explain E101"));
    assert!(coloured(&plain, "--color always explain E101"));
    assert!(!coloured(&plain, "--color always --no-color explain E101"));
    assert!(!coloured(&plain, "--color always explain E101 -o json"));
    let forced = Workspace::new().variable("CLICOLOR_FORCE", "1");
    assert!(coloured(&forced, "explain E101"));
    assert!(!coloured(&forced, "explain E101 --color never"));
    let refused = Workspace::new().variable("NO_COLOR", "1");
    assert!(!coloured(&refused, "explain E101"));
    assert!(coloured(&refused, "explain E101 --color always"));
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let workspace = Workspace::new();
    // Gone before the first byte: what fits into a pipe would otherwise be written before anybody has left.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = workspace.command("completion bash").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(1), &b""[..]));
}

#[test]
fn a_full_stdout_is_e907() {
    let workspace = Workspace::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = workspace.command("version").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("ERROR: [E907_OUTPUT_FAILED]"), "{stderr}");
}

#[test]
fn help_goes_to_stdout_and_names_every_command() {
    let run = Workspace::new().run("--help").exits(0);
    assert_eq!(run.stderr, "");
    for command in ["init", "explain", "completion", "version"] {
        assert!(run.stdout.contains(command), "{}", run.stdout);
    }
    assert!(!run.stdout.contains("  man"), "{}", run.stdout);
}

/// A runtime needs descriptors of its own: with one left it cannot start, and what needs none still answers.
#[test]
fn what_needs_no_project_answers_without_a_runtime() {
    let workspace = Workspace::project(
        "project: {name: p}\nruntime: {kafka: {bootstrap_servers: '127.0.0.1:1'}}\nmodels: [{name: m}]\n",
    );
    let with_one_descriptor = |line: &str| {
        let script = format!("ulimit -n 4; exec '{}' {line}", env!("CARGO_BIN_EXE_streamt"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(workspace.root()).stdin(Stdio::null());
        Run::of(line, command.output().unwrap())
    };
    for line in ["--version", "version", "--help", "explain E101", "completion bash"] {
        assert!(!with_one_descriptor(line).exits(0).stdout.is_empty(), "{line}");
    }
    let online = with_one_descriptor("plan -o json").exits(1);
    assert_eq!(online.errors()[0].0, "E901_INTERNAL", "the limit must be felt: {}", online.stdout);
}

#[test]
fn completion_scripts_parse_in_their_shell() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = workspace.run(&format!("completion {shell}")).exits(0).stdout;
        assert!(script.contains("streamt"));
        workspace.write("script", &script);
        let check = std::process::Command::new(shell).arg("-n").arg(workspace.path("script")).output();
        if let Ok(output) = check {
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    for shell in ["powershell", "elvish"] {
        assert!(workspace.run(&format!("completion {shell}")).exits(0).stdout.contains("streamt"));
    }
}

#[test]
fn manual_pages_are_written_for_packagers() {
    let workspace = Workspace::new();
    workspace.run("man --output-dir pages").exits(0);
    assert!(std::fs::read_to_string(workspace.path("pages/streamt-init.1")).unwrap().contains(".TH"));
}
