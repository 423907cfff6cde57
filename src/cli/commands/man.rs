//! `streamt man`: manual pages for packagers.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use serde::Serialize;

use crate::cli::args::Cli;
use crate::cli::doc::Doc;
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::codes::{Code, Diagnostic};

/// Write the manual pages
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct ManArgs {
    /// Directory for the roff pages; created when missing
    #[arg(long, value_name = "PATH")]
    output_dir: PathBuf,
}

#[derive(Serialize)]
struct ManData {
    output_dir: String,
}

pub fn run(args: &ManArgs) -> CmdResult {
    let written = std::fs::create_dir_all(&args.output_dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.output_dir));
    if let Err(error) = written {
        let message = format!("The manual pages cannot be written: {}", error.kind());
        return Err(Failure::new(Diagnostic::new(Code::E907OutputFailed, message)));
    }
    let mut text = Doc::new();
    let output_dir = args.output_dir.display().to_string();
    text.line(format!("Manual pages written to {output_dir}"));
    Ok(Outcome::new(&ManData { output_dir }, text))
}
