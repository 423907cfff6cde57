//! From a directory to a `Project`.

use std::collections::BTreeMap;

use crate::codes::Diagnostics;

use super::fs::ProjectFs;
use super::model::Project;

/// What the process gives the loader.
#[derive(Clone, Default)]
pub struct EnvironmentInput {
    /// The process environment.
    pub variables: BTreeMap<String, String>,
    /// `--env`; it beats `STREAMT_ENV` of `variables`.
    pub requested: Option<String>,
}

/// Names alone: variables hold secrets.
impl std::fmt::Debug for EnvironmentInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvironmentInput")
            .field("variables", &self.variables.keys())
            .field("requested", &self.requested)
            .finish()
    }
}

/// A project and the warnings of loading it.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub project: Project,
    pub warnings: Diagnostics,
}

/// Loads the project for one environment. All errors of all files are returned together, in file order (E501, E502, E503).
pub fn load(_fs: &dyn ProjectFs, _input: &EnvironmentInput) -> Result<Loaded, Diagnostics> {
    Err(Diagnostics::new())
}
