//! Kinds that this version compiles but cannot deploy.

use crate::codes::Diagnostics;

use super::{Desired, Selection};

/// E221 naming every resource to deploy whose kind has no deployer; empty when there is none. External ones are fine.
pub fn refuse_undeployable(_desired: &Desired<'_>, _selection: Option<&Selection>) -> Diagnostics {
    crate::codes::Diagnostic::new(crate::codes::Code::E901Internal, "the planner is not built").into()
}
