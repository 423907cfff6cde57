//! `streamt version`: which program this is, and which formats it reads and writes.

use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line};
use crate::cli::outcome::{CmdResult, Outcome};

/// Print the version; with -o json also the formats that this version reads and writes
#[derive(Debug, Args)]
pub struct VersionArgs {}

#[derive(Serialize)]
struct VersionData {
    version: &'static str,
    target: String,
    plan_formats: [u32; 1],
    control_versions: [u32; 5],
    recovery_plan_formats: [u64; 3],
    state_version: u32,
    project_api_versions: [&'static str; 1],
}

pub fn run(_context: &Context) -> CmdResult {
    let version = env!("CARGO_PKG_VERSION");
    let data = VersionData {
        version,
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        plan_formats: [5],
        control_versions: [1, 2, 3, 4, 5],
        recovery_plan_formats: crate::state::recovery_plan::FORMATS,
        state_version: 1,
        project_api_versions: ["streamt.dev/v1alpha1"],
    };
    let mut text = Doc::new();
    text.line(Line::from(format!("streamt {version}")));
    Ok(Outcome::new(&data, text))
}
