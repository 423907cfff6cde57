//! `streamt docs schema`: the JSON Schema of the project files, for editors.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::outcome::{CmdResult, Outcome};
use crate::cli::output;
use crate::project::schema::json_schema;

/// Print the JSON Schema of the project files
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Write it to a file
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

pub fn run(context: &Context, args: &SchemaArgs) -> CmdResult {
    let schema = json_schema();
    let bytes = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap_or_default());
    let Some(file) = &args.output_file else {
        return Ok(Outcome::new(&schema, Doc::document(bytes)));
    };
    let path = context.directory.join(file);
    output::write(&path, &bytes)?;
    let mut text = Doc::new();
    text.line(format!("JSON Schema written to {}", path.display()));
    Ok(Outcome::new(&json!({ "output_file": path.display().to_string() }), text))
}
