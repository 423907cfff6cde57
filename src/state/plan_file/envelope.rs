//! The document: shape, canonical checksum, strict parsing.

use serde_json::Value;

use crate::codes::{Code, Diagnostic};
use crate::compiler::canonical::Checksum;
use crate::planner::Plan;
use crate::planner::model::Action;
use crate::planner::payload::PlanPayload;
use crate::state::model::{OwnershipState, StateAddress, StoreIdentity};

/// The state that a plan was made against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateReference {
    pub store: StoreIdentity,
    pub address: StateAddress,
    pub serial: u64,
    pub checksum: Checksum,
}

impl StateReference {
    pub fn of(store: StoreIdentity, address: StateAddress, state: &OwnershipState) -> Result<Self, Diagnostic> {
        let _ = (store, address, state);
        Err(Diagnostic::new(Code::E901Internal, "plan files are not built"))
    }
}

/// Everything in a plan file that is not the plan itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    pub streamt_version: String,
    /// RFC 3339 UTC, whole seconds: `2026-09-06T09:30:00Z`.
    pub created_at: String,
    pub environment_fingerprint: Checksum,
    pub manifest_checksum: Checksum,
    /// None for an offline plan.
    pub state: Option<StateReference>,
}

/// A plan as it was saved or will be: redacted, checksummed.
#[derive(Clone, PartialEq, Debug)]
pub struct ReviewedPlan {
    pub origin: Origin,
    pub project: String,
    pub environment: String,
    pub plan: PlanPayload,
    pub actions: Vec<Action>,
    pub checksum: Checksum,
}

impl ReviewedPlan {
    /// E408 when a value has no canonical form.
    pub fn of(plan: &Plan, origin: Origin) -> Result<Self, Diagnostic> {
        let _ = (plan, origin);
        Err(Diagnostic::new(Code::E901Internal, "plan files are not built"))
    }

    /// Strict: E408 for anything but a format 5 file whose checksum holds.
    pub fn parse(bytes: &[u8]) -> Result<Self, Diagnostic> {
        let _ = bytes;
        Err(Diagnostic::new(Code::E901Internal, "plan files are not built"))
    }

    pub fn is_offline(&self) -> bool {
        self.origin.state.is_none()
    }

    /// Whether `apply --plan` may ever carry it out: online and unblocked.
    pub fn authorizes_apply(&self) -> bool {
        !self.is_offline() && !self.plan.summary.is_apply_blocked
    }
}

/// Digest over environment name and runtime configuration, secrets replaced first.
pub fn environment_fingerprint(environment: &str, runtime: &Value) -> Result<Checksum, Diagnostic> {
    let _ = (environment, runtime);
    Err(Diagnostic::new(Code::E901Internal, "plan files are not built"))
}
