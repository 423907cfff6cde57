//! From a directory to a `Project`: every file is read, parsed, checked and decoded on its own, side by side, and the results are
//! joined in a fixed order.

mod declared;
mod reader;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::codes::{Code, Diagnostic, Diagnostics, Location};

use super::decode::{self, Findings};
use super::env::{self, Mode, Selected};
use super::fs::ProjectFs;
use super::model::{Environment, Project};

use declared::{Part, declaration_file, declaration_files, macros};
use reader::{MAX_PROJECT, Reader, slashed};
use settings::{Bound, Root, environment_file, root_file};

/// What the process gives the loader.
#[derive(Clone, Default)]
pub struct EnvironmentInput {
    /// The process environment.
    pub variables: BTreeMap<String, String>,
    /// `--env`; it beats `STREAMT_ENV` of `variables`.
    pub requested: Option<String>,
    pub unset: Unset,
}

/// What becomes of a `${NAME}` in `runtime` that is not set and has no default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unset {
    /// E502.
    #[default]
    Refused,
    /// The value stays as written and counts as right: for looking at an environment from a place that lacks its secrets.
    Kept,
}

/// Names alone: variables hold secrets.
impl std::fmt::Debug for EnvironmentInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvironmentInput")
            .field("variables", &self.variables.keys())
            .field("requested", &self.requested)
            .field("unset", &self.unset)
            .finish()
    }
}

/// A project and the warnings of loading it.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub project: Project,
    pub warnings: Diagnostics,
    /// Variables that `runtime` needs and that are not set; empty unless [`Unset::Kept`].
    pub unset: BTreeSet<String>,
}

/// What loading each environment gave, by name.
pub type LoadedEnvironments = Vec<(String, Result<Loaded, Diagnostics>)>;

/// What the file of each environment says of it, by name.
pub type Policies = Vec<(String, Result<Environment, Diagnostics>)>;

/// The names of a project's environments, sorted; none when it has no directory `environments`.
pub fn environments(fs: &dyn ProjectFs) -> Result<Option<Vec<String>>, Diagnostic> {
    match env::mode(fs)? {
        Mode::Single => Ok(None),
        Mode::Multi(files) => Ok(Some(files.into_keys().collect())),
    }
}

/// Every environment in name order, each with variables of its own; one entry named `default` in a project without environments.
pub fn load_all(
    fs: &dyn ProjectFs,
    variables: &BTreeMap<String, String>,
    unset: Unset,
) -> Result<LoadedEnvironments, Diagnostic> {
    let input = |requested| EnvironmentInput { variables: variables.clone(), requested, unset };
    Ok(match environments(fs)? {
        None => vec![("default".to_owned(), load(fs, &input(None)))],
        Some(names) if names.is_empty() => return env::select(&env::mode(fs)?, None, None).map(|_| Vec::new()),
        Some(names) => names.into_iter().map(|name| (name.clone(), load(fs, &input(Some(name))))).collect(),
    })
}

/// The policies of a project's environments by name, read from their files alone: no variable, no declaration. None in a project
/// without a directory `environments`.
pub fn policies(fs: &dyn ProjectFs) -> Result<Option<Policies>, Diagnostic> {
    let Mode::Multi(files) = env::mode(fs)? else { return Ok(None) };
    let reader = Reader { fs, total: AtomicUsize::new(0), recent: Arc::default() };
    let policy = |name: &str, file: &Path| {
        let unread = || Diagnostics::from(env::unreadable(&slashed(file), &std::io::ErrorKind::NotFound.into()));
        let (source, tree) = reader.tree(file).map_err(Diagnostics::from)?.ok_or_else(unread)?;
        let mut findings = Findings::new(source);
        let environment = env::file(name, &tree, &mut findings);
        if findings.errors.is_empty() { Ok(environment) } else { Err(Diagnostics::from(findings.errors)) }
    };
    Ok(Some(files.iter().map(|(name, file)| (name.clone(), policy(name, file))).collect()))
}

/// Loads the project for one environment. All errors of all files are returned together, in file order (E501, E502, E503).
pub fn load(fs: &dyn ProjectFs, input: &EnvironmentInput) -> Result<Loaded, Diagnostics> {
    let reader = Reader { fs, total: AtomicUsize::new(0), recent: Arc::default() };
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());

    let selected = select(fs, input, &mut errors, &mut warnings);
    let variables = selected
        .as_ref()
        .and_then(|selected| env::variables(fs, selected, &input.variables).map_err(|found| errors.extend(found)).ok());
    let root = root_file(&reader, selected.as_ref(), variables.as_ref(), input).map_err(Diagnostics::from);
    let bound = match (&selected, &variables) {
        (Some(Selected::Named { name, file }), Some(variables)) => {
            Some(environment_file(&reader, name, file, variables, input))
        }
        _ => None,
    };
    let files = declaration_files(fs, &mut errors, &mut warnings);
    let parts: Vec<Part> = files.par_iter().map(|(kind, path)| declaration_file(&reader, *kind, path)).collect();
    let macros = macros(&reader, &mut errors);
    if reader.total.load(Ordering::Relaxed) > MAX_PROJECT {
        errors.push(
            Diagnostic::new(Code::E501ParseError, "the files of the project hold more than 64 MiB")
                .at(Location::named("."))
                .suggest("split the project, or move data out of it"),
        );
    }

    let mut root = match root {
        Ok(root) => root,
        Err(found) => {
            errors.extend(found.into_vec());
            Root::default()
        }
    };
    errors.append(&mut root.part.errors);
    warnings.append(&mut root.part.warnings);
    if let Some(bound) = bound {
        let Bound { environment, runtime, unset, deployment_state, errors: found, warnings: told } = bound;
        errors.extend(found);
        warnings.extend(told);
        root.environment = Some(environment);
        root.runtime = runtime;
        root.unset = unset;
        if deployment_state.is_some() {
            root.deployment_state = deployment_state;
        }
    }
    let mut sections = root.part;
    sections.models.reserve_exact(parts.iter().map(|part| part.models.len()).sum());
    sections.sources.reserve_exact(parts.iter().map(|part| part.sources.len()).sum());
    for mut part in parts {
        errors.append(&mut part.errors);
        warnings.append(&mut part.warnings);
        sections.sources.append(&mut part.sources);
        sections.models.append(&mut part.models);
        sections.tests.append(&mut part.tests);
        sections.exposures.append(&mut part.exposures);
    }
    if !errors.is_empty() {
        return Err(Diagnostics::from(errors));
    }
    let Some((runtime, runtime_document)) = root.runtime else {
        return Err(Diagnostics::from(
            Diagnostic::new(Code::E501ParseError, "'runtime' is required").suggest("add 'runtime:'"),
        ));
    };
    let deployment_state = root.deployment_state.unwrap_or_else(decode::local_state);
    let state_variables = variables
        .as_ref()
        .map(|variables| super::model::StateVariables::of(&deployment_state, variables, &input.variables))
        .unwrap_or_default();
    let project = Project {
        root: fs.root().to_path_buf(),
        name: root.name,
        version: root.version,
        description: root.description,
        environment: root.environment.unwrap_or_else(Environment::single),
        runtime,
        runtime_document,
        deployment_state,
        state_variables,
        defaults: root.defaults,
        rules: root.rules,
        connector_removals: root.connector_removals,
        gateway_rule_removals: root.gateway_rule_removals,
        connections: root.connections,
        sources: sections.sources,
        models: sections.models,
        tests: sections.tests,
        exposures: sections.exposures,
        udfs: sections.udfs,
        macros,
    };
    Ok(Loaded { project, warnings: Diagnostics::from(warnings), unset: root.unset })
}

fn select(
    fs: &dyn ProjectFs,
    input: &EnvironmentInput,
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> Option<Selected> {
    let variable = input.variables.get("STREAMT_ENV").filter(|name| !name.is_empty()).map(String::as_str);
    let mode = env::mode(fs).map_err(|error| errors.push(error)).ok()?;
    let (selected, warning) =
        env::select(&mode, input.requested.as_deref(), variable).map_err(|error| errors.push(error)).ok()?;
    warnings.extend(warning);
    Some(selected)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "env_tests.rs"]
mod env_tests;

#[cfg(test)]
#[path = "refusal_tests/mod.rs"]
mod refusal_tests;
