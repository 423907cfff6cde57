//! From a directory to a `Project`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::codes::Diagnostics;

use super::model::Project;

/// Read access to a project directory; the real one, or an in-memory one in tests. Paths are relative to the root.
pub trait ProjectFs: Sync {
    /// The canonical root directory.
    fn root(&self) -> &Path;
    /// None = no such file. At most `limit` + 1 bytes are read.
    fn read(&self, path: &Path, limit: usize) -> std::io::Result<Option<Vec<u8>>>;
    /// Regular files below a directory, recursively, hidden names skipped, links to directories not followed; none = no such directory.
    fn files(&self, directory: &Path) -> std::io::Result<Option<Vec<PathBuf>>>;
    fn exists(&self, path: &Path) -> bool;
}

/// What the process gives the loader.
#[derive(Clone, Default, Debug)]
pub struct EnvironmentInput {
    /// The process environment.
    pub variables: BTreeMap<String, String>,
    /// `--env`; it beats `STREAMT_ENV` of `variables`.
    pub requested: Option<String>,
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
