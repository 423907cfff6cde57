//! Manifest × ownership × observations → plan. Pure: it decides, it never asks. It promises that no plan deletes because
//! something is absent, that a verb appears only where ownership permits it, and that equal inputs give an equal plan.
//! What it needs to know of the live world it names beforehand ([`needed`], [`needs::compatibility_checks`],
//! [`Plan::watched_topics`]); who fetches it, and how, is not its business.

mod actions;
mod blockers;
mod build;
pub mod cause;
pub mod connector;
pub mod desired;
pub mod flink;
pub mod impact;
pub mod model;
pub mod needs;
pub mod observation;
mod ownership;
pub mod payload;
mod refusal;
pub mod risk;
pub mod schema;
pub mod selection;
pub mod topic;

pub use cause::{Cause, Causes, Live};
pub use desired::{Declared, Desired};
pub use model::Plan;
pub use needs::needed;
pub use refusal::refuse_undeployable;
pub use selection::Selection;

use crate::codes::Diagnostics;
use crate::ownership::model::OwnershipState;

use observation::Observations;

/// What is known of the world beside the declarations.
#[derive(Clone, Copy, Debug)]
pub enum Evidence<'a> {
    /// Neither state nor providers: nothing is assumed to exist, and nothing may be applied.
    Offline,
    Online {
        state: &'a OwnershipState,
        observations: &'a Observations,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    pub desired: &'a Desired<'a>,
    pub evidence: Evidence<'a>,
    /// Direct apply only; a reviewed plan is always full.
    pub selection: Option<&'a Selection>,
}

/// Decides the whole plan. E205, E209 and E427 for connectors and removals that cannot be bound, E213 when a schema
/// reference is neither live nor created earlier by this plan, E221 for a kind that this version cannot deploy, E901 when an observation that [`needed`] asked for is missing.
pub fn plan(input: PlanInput<'_>) -> Result<Plan, Diagnostics> {
    build::plan(input)
}

#[cfg(test)]
mod example;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
