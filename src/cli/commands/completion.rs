//! `streamt completion SHELL`: the completion script of a shell, on stdout.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde::Serialize;

use crate::cli::args::Cli;
use crate::cli::doc::Doc;
use crate::cli::outcome::{CmdResult, Outcome};

/// Print the completion script of a shell
///
/// No file is written. For bash: source <(streamt completion bash)
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell that will read the script
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Serialize)]
struct CompletionData {
    shell: String,
    script: String,
}

pub fn run(args: &CompletionArgs) -> CmdResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "streamt", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let text = Doc::document(script.clone());
    Ok(Outcome::new(&CompletionData { shell: args.shell.to_string(), script }, text))
}
