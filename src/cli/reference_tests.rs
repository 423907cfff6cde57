//! The commands as one page of the reference, printed from their arguments.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use super::args::Cli;

/// `docs/reference/commands.md`.
fn commands() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = String::from(
        "# Commands\n\nPrinted from the program's own arguments; `streamt COMMAND --help` says the same.\n\n## Options of every command\n\n",
    );
    table(&mut page, root.get_arguments().filter(|argument| argument.is_global_set()));
    section(&mut page, &root, "streamt");
    format!("{}\n", page.trim_end())
}

fn section(page: &mut String, command: &Command, words: &str) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let words = format!("{words} {}", inner.get_name());
        if inner.has_subcommands() {
            section(page, inner, &words);
            continue;
        }
        let _ = write!(page, "## `{words}`\n\n");
        if let Some(about) = inner.get_long_about().or_else(|| inner.get_about()) {
            let about = about.to_string();
            let _ = write!(page, "{}.\n\n", about.trim_end_matches('.').replacen("\n\n", ".\n\n", 1));
        }
        table(page, inner.get_arguments().filter(|argument| !argument.is_global_set()));
    }
}

fn table<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    let mut rows = arguments.filter(shown).peekable();
    if rows.peek().is_none() {
        return;
    }
    page.push_str("| Argument | Meaning |\n|---|---|\n");
    for argument in rows {
        let _ = writeln!(page, "| {} | {} |", form(argument), meaning(argument));
    }
    page.push('\n');
}

fn form(argument: &Arg) -> String {
    let value = match argument.get_value_names() {
        Some(names) if argument.get_action().takes_values() => names.join(" "),
        Some(_) | None => String::new(),
    };
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    match argument.get_long() {
        Some(long) if value.is_empty() => format!("{short}`--{long}`"),
        Some(long) => format!("{short}`--{long} {value}`"),
        None => format!("`{value}`"),
    }
}

fn meaning(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    if argument.is_required_set() {
        text.push_str("; required");
    }
    assert!(!text.starts_with(';'), "{} has no meaning", argument.get_id());
    if argument.get_action().takes_values() {
        let values: Vec<String> = (argument.get_possible_values().iter())
            .filter(|value| !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !values.is_empty() {
            let _ = write!(text, ": {}", values.join(", "));
        }
        let defaults: Vec<String> =
            argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        if !defaults.is_empty() {
            let _ = write!(text, "; {} by default", defaults.join(", "));
        }
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, "; `{}` sets it too", variable.to_string_lossy());
    }
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

#[test]
fn the_reference_of_commands_is_current() {
    crate::golden::is_current("docs/reference/commands.md", &commands());
}
