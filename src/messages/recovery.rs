//! What the resolution of a blocked operation is asked for, and how it ended.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use super::operation::{Failure, Reload, StateFacts};
use crate::codes::{Diagnostic, Diagnostics};
use crate::project::Project;
use crate::state::control::Resolution;
use crate::state::recovery::Assessment;
use crate::state::recovery_plan::RecoveryPlan;

/// Observes what a blocked operation left and saves the evidence. Changes neither state nor provider.
pub struct RecoveryPlanRequest {
    pub project: Arc<Project>,
    pub resolution: Resolution,
    /// A path at which nothing stands.
    pub out: PathBuf,
    /// Compiles the project under the lock; not called for an abandoned operation.
    pub compile: Reload,
}

impl fmt::Debug for RecoveryPlanRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoveryPlanRequest").field("resolution", &self.resolution).finish_non_exhaustive()
    }
}

/// Observes again and, if everything still is as reviewed, ends the blocked operation. Changes no provider.
pub struct RecoverRequest {
    pub project: Arc<Project>,
    pub plan: Arc<RecoveryPlan>,
    /// As in [`RecoveryPlanRequest`].
    pub compile: Reload,
}

impl fmt::Debug for RecoverRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoverRequest").field("plan", &self.plan.evidence_checksum).finish_non_exhaustive()
    }
}

/// The evidence is saved and the lock released.
#[derive(Clone, Debug)]
pub struct RecoveryPlanned {
    pub plan: Arc<RecoveryPlan>,
    pub path: PathBuf,
    /// W106.
    pub warnings: Diagnostics,
}

/// The operation is resolved and the lock released.
#[derive(Clone, Debug)]
pub struct Recovered {
    pub state: StateFacts,
    pub state_changed: bool,
    /// Resolved by an earlier run of the same recovery; no provider was asked.
    pub already: bool,
    pub warnings: Diagnostics,
}

/// Why there is no evidence, or no resolution. The marker stands unless `committed` says otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct RecoveryFailure {
    pub failure: Failure,
    /// E409: how every target stands.
    pub targets: Vec<Assessment>,
    /// The blocked operation, once it is known.
    pub operation_id: Option<Uuid>,
    /// Some(true) after a verified resolution, none when nobody knows.
    pub committed: Option<bool>,
}

impl From<Failure> for RecoveryFailure {
    fn from(failure: Failure) -> Self {
        Self { failure, targets: Vec::new(), operation_id: None, committed: Some(false) }
    }
}

impl From<Diagnostic> for RecoveryFailure {
    fn from(diagnostic: Diagnostic) -> Self {
        Failure::from(diagnostic).into()
    }
}
