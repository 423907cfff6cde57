//! On a terminal: the question before a change, and the line that shows what is going on.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::harness::{Run, Workspace};

fn workspace() -> Workspace {
    Workspace::project(
        "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
models:
  - {name: orders, description: Orders, topic: {name: shop.orders.v1, partitions: 1, replication_factor: 1}}
",
    )
    .file(
        "environments/ask.yml",
        "environment: {name: ask}\nsafety: {confirm_apply: true}\nruntime: {kafka: {bootstrap_servers: 127.0.0.1:1}}\n",
    )
}

/// Runs on a terminal of its own, made by script(1), and types `input`. Both streams come as one.
fn on_a_terminal(workspace: &Workspace, line: &str, terminal: &str, input: &str) -> Run {
    let binary = env!("CARGO_BIN_EXE_streamt");
    let mut child = Command::new("script")
        .args(["-qefc", &format!("'{binary}' {line}"), "/dev/null"])
        .current_dir(workspace.root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("SHELL", "/bin/sh")
        .env("TERM", terminal)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("script(1), of util-linux, makes the terminal");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Run::of(line, child.wait_with_output().unwrap())
}

const QUESTION: &str = "Environment 'ask' asks for confirmation. Type 'ask' to confirm: ";

/// SAF-063
#[test]
fn a_confirmation_is_asked_for_on_a_terminal_and_taken_only_when_it_is_the_name() {
    let workspace = workspace();
    let yes = on_a_terminal(&workspace, "apply -e ask", "xterm", "ask\n").exits(1);
    assert!(yes.stdout.contains(QUESTION) && yes.stdout.contains("E406_CONNECTION_REFUSED"), "{}", yes.stdout);
    for (answer, told) in
        [("yes\n", "was not confirmed"), ("\n", "was not confirmed"), ("", "asks for confirmation\r\n")]
    {
        let no = on_a_terminal(&workspace, "apply -e ask", "xterm", answer).exits(1);
        assert!(
            no.stdout.contains(QUESTION) && no.stdout.contains("E503_ENVIRONMENT_ERROR"),
            "{answer:?}: {}",
            no.stdout
        );
        assert!(no.stdout.contains(told), "{answer:?}: {}", no.stdout);
        assert!(!no.stdout.contains("E406"), "{answer:?}: {}", no.stdout);
    }
}

/// SAF-063: nobody is asked who cannot answer.
#[test]
fn without_a_terminal_or_with_an_envelope_a_confirmation_is_refused_at_once() {
    let workspace = workspace();
    let piped = workspace.run("apply -e ask").exits(1);
    assert!(piped.stderr.contains("E503_ENVIRONMENT_ERROR") && !piped.stderr.contains(QUESTION), "{}", piped.stderr);
    let json = on_a_terminal(&workspace, "apply -e ask -o json", "xterm", "ask\n").exits(1);
    assert!(json.stdout.contains("E503_ENVIRONMENT_ERROR") && !json.stdout.contains(QUESTION), "{}", json.stdout);
    for flag in ["--confirm", "--confirm-env ask"] {
        let given = on_a_terminal(&workspace, &format!("apply -e ask {flag}"), "xterm", "").exits(1);
        assert!(!given.stdout.contains(QUESTION) && given.stdout.contains("E406"), "{}", given.stdout);
    }
}

#[test]
fn a_terminal_shows_one_line_that_goes_away_and_a_dumb_one_none() {
    let workspace = workspace();
    let erase = "\r\u{1b}[2K";
    let shown = on_a_terminal(&workspace, "plan -e ask", "xterm", "").exits(1).stdout;
    assert!(shown.contains(&format!("{erase}plan: reading 1 resource from Kafka")), "{shown:?}");
    let last = shown.rfind(erase).unwrap();
    assert!(
        !shown[last + erase.len()..].contains("plan: reading"),
        "the line is taken away before the result: {shown:?}"
    );
    for (line, terminal) in [("plan -e ask", "dumb"), ("plan -e ask -q", "xterm"), ("plan -e ask -o json", "xterm")] {
        let plain = on_a_terminal(&workspace, line, terminal, "").exits(1).stdout;
        assert!(!plain.contains(erase) && !plain.contains("reading 1"), "{line} {terminal}: {plain:?}");
    }
    let piped = workspace.run("plan -e ask").exits(1);
    assert!(!piped.stderr.contains('\u{1b}'), "{:?}", piped.stderr);
}
