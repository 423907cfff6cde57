//! The part of a project that a direct apply is limited to.

use std::collections::BTreeSet;

use crate::codes::{Code, Diagnostic};
use crate::compiler::Compiled;
use crate::compiler::artifact::Ownership;
use crate::project::model::OwnershipMode;

/// Selected models, closed over everything upstream of them, and the sources that they read directly.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Selection {
    pub models: BTreeSet<String>,
    pub sources: BTreeSet<String>,
}

impl Selection {
    /// None without `--target` and `--select`. E102 for an unknown model, E208 for an empty result, E902 for an expression
    /// other than `tag:<t>`.
    pub fn resolve(
        _compiled: &Compiled,
        _target: Option<&str>,
        _select: Option<&str>,
    ) -> Result<Option<Self>, Diagnostic> {
        Err(Diagnostic::new(Code::E901Internal, "selection is not built"))
    }

    /// Whether an artifact of this owner stays in a selected plan. External ones always do, so that collisions are seen.
    pub fn keeps(&self, ownership: &Ownership) -> bool {
        ownership.mode == OwnershipMode::External || self.names(&ownership.name)
    }

    pub(super) fn names(&self, owner: &str) -> bool {
        self.models.contains(owner) || self.sources.contains(owner)
    }
}
