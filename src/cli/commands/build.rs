//! `streamt build`: artifacts, manifest and checksums for a pipeline to keep.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::args::ProjectArgs;
use crate::cli::artifact_files;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::files::{self, Durability};
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::project;
use crate::codes::{Code, Diagnostic};
use crate::compiler::canonical::Checksum;

const CHECKSUMS: &str = "checksums.sha256";

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
    let failed = |error: Diagnostic| Failure::new(error).warn(warnings.clone());
    let there = artifact_files::existing(&directory).map_err(|error| failed(files::not_written(&directory, &error)))?;
    if !there.is_empty() && !there.iter().any(|name| name == CHECKSUMS) {
        let message = format!("{} holds files and no {CHECKSUMS}: it is not a build directory", directory.display());
        let error = Diagnostic::new(Code::E907OutputFailed, message).suggest("Choose another --output-dir");
        return Err(failed(error));
    }
    let files = artifact_files::of(&compiled, &artifact_files::now()).map_err(&failed)?;
    artifact_files::write(&directory, &files).map_err(&failed)?;
    let listed =
        artifact_files::existing(&directory).map_err(|error| failed(files::not_written(&directory, &error)))?;
    let mut checksums = String::new();
    let mut count = 0;
    for name in listed.iter().filter(|name| *name != CHECKSUMS) {
        let bytes = match files.get(name) {
            Some(bytes) => bytes.clone(),
            None => std::fs::read(directory.join(name))
                .map_err(|error| failed(files::not_written(&directory.join(name), &error)))?,
        };
        checksums.push_str(&format!("{}  {name}\n", Checksum::of_bytes(&bytes).hex()));
        count += 1;
    }
    let path = directory.join(CHECKSUMS);
    files::replace(&path, checksums.as_bytes(), Durability::Reproducible)
        .map_err(|error| failed(files::not_written(&path, &error)))?;
    warnings.extend(artifact_files::stale(&directory, &files, artifact_files::is_artifact_path));
    let artifacts = &compiled.artifacts;
    let runners = artifacts.kafka_streams_jobs.len();
    let data = BuildData {
        output_dir: directory.display().to_string(),
        schemas: artifacts.schemas.len(),
        topics: artifacts.topics.len(),
        flink_jobs: artifacts.flink_jobs.len(),
        connectors: artifacts.connectors.len(),
        gateway_rules: artifacts.gateway_rules.len(),
        files: count,
        kafka_streams_jobs: (runners > 0).then_some(runners),
    };
    let mut text = Doc::new();
    text.line(format!("Built {} files in {}", data.files, data.output_dir));
    text.line(format!("Manifest {}", compiled.manifest_checksum));
    Ok(Outcome::new(&data, text).warn(warnings))
}
