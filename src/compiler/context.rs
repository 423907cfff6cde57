//! What every step of a compilation reads and where it reports.

use std::collections::HashMap;

use crate::codes::Diagnostics;
use crate::project::Project;
use crate::project::model::OwnershipMode;

use super::artifact::{OwnerType, Ownership};
use super::resolve::{Names, ResolvedModel};

pub(super) struct Context<'a> {
    pub project: &'a Project,
    pub names: Names<'a>,
    pub models: &'a [ResolvedModel],
    by_name: HashMap<&'a str, &'a ResolvedModel>,
    /// Errors and warnings of artifacts.
    pub findings: Diagnostics,
}

impl<'a> Context<'a> {
    pub fn new(project: &'a Project, models: &'a [ResolvedModel]) -> Self {
        let by_name = models.iter().map(|model| (model.name.as_str(), model)).collect();
        Self { project, names: Names::of(project), models, by_name, findings: Diagnostics::new() }
    }

    pub fn resolved(&self, name: &str) -> Option<&'a ResolvedModel> {
        self.by_name.get(name).copied()
    }

    pub fn ownership(&self, owner_type: OwnerType, name: &str, mode: OwnershipMode) -> Ownership {
        Ownership { mode, project: self.project.name.clone(), owner_type, name: name.to_owned() }
    }
}
