//! Command lines that were not understood: clap's own text for people, one envelope for machines.
#![expect(clippy::disallowed_methods, reason = "an error in the arguments comes before any Context")]

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory};
use serde_json::Value;

use crate::codes::{Code, Diagnostic, Diagnostics};

use super::args::Cli;
use super::console;
use super::envelope::Envelope;
use super::outcome::exit;

/// Reports a command line that clap refused, or answers `--help`.
pub fn report(argv: &[OsString], error: &clap::Error) -> u8 {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return console::print(&text);
    }
    console::write_stderr(&text);
    if wants_json(argv) {
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let mut finding = Diagnostic::new(Code::E902Usage, message);
        if let Some(usage) = text.lines().find(|line| line.starts_with("Usage:")) {
            finding = finding.suggest(usage);
        }
        let data = Value::Object(serde_json::Map::new());
        let command = recognised_path(argv);
        let envelope = Envelope::new(&command, &data, &finding.into(), &Diagnostics::new());
        console::print(&envelope.render());
    }
    exit_code(argv)
}

/// 2, or 1 where 2 means "changes are present".
pub fn exit_code(argv: &[OsString]) -> u8 {
    match argv.iter().any(|argument| argument == "--detailed-exitcode") {
        true => exit::FAILURE,
        false => exit::USAGE,
    }
}

/// Whether the caller reads JSON, as far as a line that does not parse can tell.
fn wants_json(argv: &[OsString]) -> bool {
    let words: Vec<&str> = argv.iter().filter_map(|word| word.to_str()).collect();
    let asked = words.iter().enumerate().rev().find_map(|(index, word)| match *word {
        "-o" | "--output" => Some(words.get(index + 1).copied().unwrap_or_default()),
        _ => word
            .strip_prefix("--output=")
            .or_else(|| word.strip_prefix("-o").filter(|_| !word.starts_with("--")).map(|v| v.trim_start_matches('='))),
    });
    match asked {
        Some(format) => format == "json",
        None => std::env::var_os("STREAMT_OUTPUT").is_some_and(|format| format == "json"),
    }
}

/// The longest command path on the line, `streamt` when there is none.
fn recognised_path(argv: &[OsString]) -> String {
    let root = Cli::command();
    let mut command = &root;
    let mut path = Vec::new();
    let mut words = argv.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        if let Some(option) = word.strip_prefix('-') {
            if takes_value(&root, command, option) {
                words.next();
            }
        } else if let Some(next) = command.find_subcommand(word) {
            command = next;
            path.push(next.get_name().to_owned());
        } else {
            break;
        }
    }
    if path.is_empty() { "streamt".to_owned() } else { path.join(" ") }
}

fn takes_value(root: &clap::Command, command: &clap::Command, option: &str) -> bool {
    let named = |arg: &clap::Arg| match option.strip_prefix('-') {
        Some(long) => arg.get_long() == Some(long),
        None => option.len() == 1 && arg.get_short().is_some_and(|short| option.starts_with(short)),
    };
    command
        .get_arguments()
        .chain(root.get_arguments())
        .find(|&arg| named(arg))
        .is_some_and(|arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<OsString> {
        std::iter::once("streamt").chain(line.split_whitespace()).map(OsString::from).collect()
    }

    #[test]
    fn json_is_found_wherever_the_option_stands() {
        for line in
            ["-o json plan --nope", "plan -ojson --nope", "plan --nope --output=json", "plan --output json --nope"]
        {
            assert!(wants_json(&argv(line)), "{line}");
        }
        for line in ["plan --nope", "-o text plan", "-o json plan -o text", "--offline"] {
            assert!(!wants_json(&argv(line)), "{line}");
        }
    }

    #[test]
    fn the_longest_recognised_path_names_the_command() {
        assert_eq!(recognised_path(&argv("--nope")), "streamt");
        assert_eq!(recognised_path(&argv("--color always version --nope")), "version");
        assert_eq!(recognised_path(&argv("-o json version explain")), "version");
    }
}
