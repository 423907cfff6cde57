//! `streamt build`: artifacts, manifest and checksums for a pipeline to keep.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::project;
use crate::codes::Diagnostics;
use crate::compiler::files;

/// Compile the project and write artifacts, manifest and checksums
#[derive(Debug, Args)]
pub struct BuildArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Where to write; <project>/build by default
    #[arg(long, value_name = "PATH")]
    output_dir: Option<PathBuf>,
}

#[derive(Serialize)]
struct BuildData {
    output_dir: String,
    schemas: usize,
    topics: usize,
    flink_jobs: usize,
    connectors: usize,
    gateway_rules: usize,
    files: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    kafka_streams_jobs: Option<usize>,
}

pub fn run(context: &Context, args: &BuildArgs) -> CmdResult {
    let opened = project::open(context, &args.project)?;
    let (compiled, mut warnings) = project::checked(opened)?;
    let directory = match &args.output_dir {
        Some(path) => context.directory.join(path),
        None => compiled.project.root.join("build"),
    };
    let failed = |findings: Diagnostics| Failure::from(findings).warn(warnings.clone());
    let built = files::build(&directory, &compiled, &project::compiled_at()).map_err(failed)?;
    warnings.extend(built.warnings);
    let artifacts = &compiled.artifacts;
    let runners = artifacts.kafka_streams_jobs.len();
    let data = BuildData {
        output_dir: directory.display().to_string(),
        schemas: artifacts.schemas.len(),
        topics: artifacts.topics.len(),
        flink_jobs: artifacts.flink_jobs.len(),
        connectors: artifacts.connectors.len(),
        gateway_rules: artifacts.gateway_rules.len(),
        files: built.files,
        kafka_streams_jobs: (runners > 0).then_some(runners),
    };
    let mut text = Doc::new();
    text.line(format!("Built {} files in {}", data.files, data.output_dir));
    text.line(format!("Manifest {}", compiled.manifest_checksum));
    Ok(Outcome::new(&data, text).warn(warnings))
}
