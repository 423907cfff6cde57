//! From `--project-dir` and `--env` to a project, its graph and its artifacts.
#![expect(clippy::disallowed_methods, reason = "a manifest says when it was compiled, a log record how long it took")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::codes::{Code, Diagnostic, Diagnostics, suggest};
use crate::compiler::resolve::resolve;
use crate::compiler::{self, Compiled, Dag, ResolvedModel};
use crate::project::{DiskFs, EnvironmentInput, Project, Unset, load};
use crate::validate::validate;

use super::args::ProjectArgs;
use super::context::Context;
use super::lineage::Graph;
use super::outcome::Failure;
use super::shell;

/// A loaded project and what loading it had to say.
#[derive(Debug)]
pub struct Opened {
    pub project: Arc<Project>,
    pub warnings: Diagnostics,
}

/// Canonical project directory; exit 2 when there is none.
pub fn directory(context: &Context, args: &ProjectArgs) -> Result<DiskFs, Failure> {
    let path: PathBuf = context.directory.join(&args.project_dir);
    DiskFs::open(&path).map_err(|error| {
        Failure::usage(format!("--project-dir {} cannot be opened: {}", path.display(), error.kind()))
            .hint("Name the directory that holds stream_project.yml; streamt init starts a new one")
    })
}

pub fn input(context: &Context, args: &ProjectArgs) -> EnvironmentInput {
    EnvironmentInput { variables: context.variables.clone(), requested: args.env.clone(), unset: Unset::Refused }
}

/// Loads the project: E501, E502, E503.
pub fn open(context: &Context, args: &ProjectArgs) -> Result<Opened, Failure> {
    let fs = directory(context, args)?;
    let begun = Instant::now();
    let loaded = load(&fs, &input(context, args))?;
    let project = loaded.project;
    tracing::info!(
        project = project.name,
        environment = project.environment.name,
        root = %project.root.display(),
        sources = project.sources.len(),
        models = project.models.len(),
        tests = project.tests.len(),
        exposures = project.exposures.len(),
        warnings = loaded.warnings.len(),
        ms = millis(begun),
        "project loaded"
    );
    Ok(Opened { project: Arc::new(project), warnings: loaded.warnings })
}

/// Validates and compiles what was opened. The errors of all passes come together; warnings are in the order of the passes.
pub fn checked(opened: Opened) -> Result<(Arc<Compiled>, Diagnostics), Failure> {
    let mut warnings = validated(opened.warnings, &opened.project)?;
    let begun = Instant::now();
    match compiler::compile(opened.project) {
        Ok(mut compiled) => {
            tracing::info!(
                models = compiled.models.len(),
                topics = compiled.artifacts.topics.len(),
                schemas = compiled.artifacts.schemas.len(),
                checksum = %compiled.manifest_checksum,
                ms = millis(begun),
                "project compiled"
            );
            merge(&mut warnings, std::mem::take(&mut compiled.warnings));
            Ok((Arc::new(compiled), warnings))
        }
        Err(findings) => Err(Failure::from(findings).warn(warnings)),
    }
}

/// The findings of [`checked`], for those who need no artifacts: digests cost more than everything else.
pub fn findings(opened: Opened) -> Result<Diagnostics, Failure> {
    let mut warnings = validated(opened.warnings, &opened.project)?;
    match compiler::check(opened.project) {
        Ok(more) => {
            merge(&mut warnings, more);
            Ok(warnings)
        }
        Err(findings) => Err(Failure::from(findings).warn(warnings)),
    }
}

/// What loading and validation warn of.
fn validated(mut warnings: Diagnostics, project: &Project) -> Result<Diagnostics, Failure> {
    let begun = Instant::now();
    let findings = validate(project);
    tracing::debug!(findings = findings.len(), ms = millis(begun), "project validated");
    let failed = findings.has_errors();
    let (errors, more): (Vec<_>, Vec<_>) = findings.into_iter().partition(Diagnostic::is_error);
    merge(&mut warnings, more);
    if failed { Err(Failure::new(errors).warn(warnings)) } else { Ok(warnings) }
}

fn millis(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Adds what is not there yet: two passes may report the same finding.
pub fn merge(into: &mut Diagnostics, more: impl IntoIterator<Item = Diagnostic>) {
    into.extend(more);
    into.dedup();
}

/// The resolved models and the graph; what is wrong with the models does not keep them from being shown.
pub fn graph(project: &Project) -> (Vec<ResolvedModel>, Graph) {
    let (models, _) = resolve(project);
    let graph = Graph::new(Dag::build(project, &models).nodes.into_values());
    (models, graph)
}

/// E101, E102, E107 or E108 for a name that is not declared.
pub fn not_found<'a>(code: Code, noun: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Failure {
    let mut title = noun.to_owned();
    title[..1].make_ascii_uppercase();
    Failure::new(
        Diagnostic::new(code, format!("{title} '{name}' not found")).suggest_opt(suggest::hint(name, noun, known)),
    )
}

/// `streamt COMMAND` with the resolved directory and the environment, ready to paste.
pub fn next_command(project: &Project, command: &str) -> String {
    let directory = shell::quote(&project.root.display().to_string());
    let environment = match project.environment.requested() {
        Some(name) => format!(" --env {}", shell::quote(name)),
        None => String::new(),
    };
    format!("streamt {command} --project-dir {directory}{environment}")
}

/// Now, in the form of the manifest.
pub fn compiled_at() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// The fixed place of a reviewed plan.
pub fn reviewed_plan_path(project: &Project) -> PathBuf {
    project.root.join(".streamt").join("reviewed-plan.json")
}
