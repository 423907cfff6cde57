//! The command line: one file per command, each with its arguments, what it does, its data and its text. A command gets
//! the [`Context`] of the process and returns a [`CmdResult`]; nothing below [`main`] prints. The output contract (streams,
//! envelope, colour, exit codes, redaction, escaping) stands in this folder once, apart from the commands. Offline commands
//! start no async runtime, and nothing is read before the arguments are understood.

#![allow(dead_code)]

mod args;
mod commands;
mod console;
mod context;
mod diagnostic;
mod doc;
mod envelope;
mod escape;
mod files;
mod lineage;
mod outcome;
mod panic;
mod sanitize;
mod shell;
pub mod templates;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use context::Context;
use outcome::{CmdResult, Failure};

/// Runs the program on the process's arguments, environment and streams.
pub fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&argv) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage::report(&argv, &error)),
    };
    let context = Context::read(&cli.global);
    let (name, result) = match cli.command {
        None if cli.version => ("version", commands::version::run(&context)),
        None => ("streamt", Err(Failure::usage("a command is required").hint("streamt --help lists them"))),
        Some(command) => (command.name(), panic::guard(context.verbose, || run(&context, command))),
    };
    let result = result.map_err(|failure| match failure.exit {
        outcome::exit::USAGE => failure.exit(usage::exit_code(&argv)),
        _ => failure,
    });
    ExitCode::from(console::finish(&context, name, result))
}

fn run(context: &Context, command: Command) -> CmdResult {
    match command {
        Command::Init(args) => commands::init::run(context, &args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Completion(args) => commands::completion::run(&args),
        Command::Version(_) => commands::version::run(context),
        Command::Man(args) => commands::man::run(&args),
    }
}
