//! The command line: one file per command, each with its arguments, what it does, its data and its text. A command gets
//! the [`Context`] of the process and returns a [`CmdResult`]; nothing below [`main`] prints. The output contract (streams,
//! envelope, colour, exit codes, redaction, escaping) stands in this folder once, apart from the commands. Offline commands
//! start no async runtime, and nothing is read before the arguments are understood.
#![expect(clippy::disallowed_methods, reason = "measures how long a command took")]

mod args;
mod commands;
mod console;
mod context;
mod diagnostic;
mod doc;
mod envelope;
mod gates;
mod glob;
mod import;
mod lineage;
mod live;
mod logging;
mod outcome;
mod output;
mod panic;
mod plan_view;
mod progress;
mod project;
mod prompt;
#[cfg(test)]
mod reference_tests;
mod sanitize;
mod shell;
mod signals;
pub mod templates;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use args::{Cli, Command, DocsCommand, EnvsCommand, StateCommand};
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
    logging::start(&context);
    let begun = Instant::now();
    let (name, result) = match cli.command {
        None if cli.version => ("version", commands::version::run(&context)),
        None => ("streamt", Err(Failure::usage("a command is required").hint("streamt --help lists them"))),
        Some(command) => {
            tracing::info!(version = env!("CARGO_PKG_VERSION"), command = command.name(), "streamt");
            (command.name(), panic::guard(context.verbose, || run(&context, command)))
        }
    };
    let result = result.map_err(|failure| match failure.exit {
        outcome::exit::USAGE => failure.exit(usage::exit_code(&argv)),
        _ => failure,
    });
    let code = console::finish(&context, name, result);
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(command = name, exit_code = code, ms, "ended");
    ExitCode::from(code)
}

fn run(context: &Context, command: Command) -> CmdResult {
    match command {
        Command::Init(args) => commands::init::run(context, &args),
        Command::Import(args) => commands::import::run(context, &args),
        Command::Validate(args) => commands::validate::run(context, &args),
        Command::Compile(args) => commands::compile::run(context, &args),
        Command::Build(args) => commands::build::run(context, &args),
        Command::Plan(args) => commands::plan::run(context, &args),
        Command::Apply(args) => commands::apply::run(context, &args),
        Command::Adopt(args) => commands::adopt::run(context, &args),
        Command::Review(args) => commands::review::run(context, &args),
        Command::Diff(args) => commands::diff::run(context, &args),
        Command::Status(args) => commands::status::run(context, &args),
        Command::Test(args) => commands::test::run(context, &args),
        Command::List(args) => commands::list::run(context, &args),
        Command::Show(args) => commands::show::run(context, &args),
        Command::Lineage(args) => commands::lineage::run(context, &args),
        Command::Envs(EnvsCommand::List(args)) => commands::envs::list(context, &args),
        Command::Envs(EnvsCommand::Show(args)) => commands::envs::show(context, &args),
        Command::Envs(EnvsCommand::Diff(args)) => commands::envs::diff(context, &args),
        Command::Docs(DocsCommand::Schema(args)) => commands::docs_schema::run(context, &args),
        Command::State(StateCommand::Init(args)) => commands::state_init::run(context, &args),
        Command::State(StateCommand::MigratePostgresV2(args)) => commands::state_migrate::run(context, &args),
        Command::State(StateCommand::LockStatus(args)) => commands::state_lock_status::run(context, &args),
        Command::State(StateCommand::Status(args)) => commands::state_status::run(context, &args),
        Command::State(StateCommand::RecoveryPlan(args)) => commands::state_recovery::plan(context, &args),
        Command::State(StateCommand::Recover(args)) => commands::state_recovery::recover(context, &args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Completion(args) => commands::completion::run(&args),
        Command::Version(_) => commands::version::run(context),
        Command::Man(args) => commands::man::run(&args),
    }
}
