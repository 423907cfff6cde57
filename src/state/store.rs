//! What every store of deployment state promises, whatever keeps the bytes: observations, one lock per address, and durable
//! steps. Calls block; a caller inside an async runtime runs them where blocking is allowed.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::compiler::canonical::Checksum;

use super::control::{
    Control, Intent, ProgressEntry, RecoveryIntent, RecoveryRecord, ResolutionRecord, ResumeRecord, RunnerCompletion,
};
use super::error::StateError;
use super::model::{OwnershipState, StateAddress, StoreIdentity};
use super::scalar::Timestamp;
use super::step::{self, Step};

/// A stored version, compared only for equality. Absent = nothing was ever stored.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Revision {
    Absent,
    At(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateObservation {
    pub store: StoreIdentity,
    pub address: StateAddress,
    pub state: Arc<OwnershipState>,
    pub checksum: Checksum,
    pub revision: Revision,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlObservation {
    pub control: Control,
    pub revision: Revision,
}

/// Ownership and operation control of one address, read together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub state: StateObservation,
    pub control: ControlObservation,
}

impl Snapshot {
    /// E419 unless nothing is pending.
    pub fn ensure_clear(&self) -> Result<(), StateError> {
        if self.control.control.is_clear() {
            return Ok(());
        }
        Err(StateError::recovery_required(self.control.control.status()))
    }
}

/// One store. Values are cheap to clone; no lock is held but by an operation.
pub trait StateBackend {
    type Operation: StateOperation;

    /// E420, E411.
    fn describe(&self) -> Result<StoreIdentity, StateError>;

    /// An advisory view without the lock. E420, E411.
    fn read_snapshot(&self, address: &StateAddress) -> Result<Snapshot, StateError>;

    /// Takes the lock of one address within `timeout`, trying every 50 ms. E420, E411, E422; E903 when `give_up` is cancelled.
    fn acquire(
        &self,
        address: &StateAddress,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<Self::Operation, StateError>;
}

/// One lock hold. A step takes the snapshot it starts from and returns the one it leaves behind; after an error the old
/// snapshot is gone, because it must not start another step. `observe` gives a new one while the lock stands.
pub trait StateOperation: Send {
    /// A fresh snapshot, verified. E423, E411, E420.
    fn observe(&mut self) -> Result<Snapshot, StateError>;

    /// Proves that the lock is held now. E423.
    fn check_lock(&mut self) -> Result<(), StateError>;

    /// Writes one step whole or not at all, if the store still stands where the step starts. E424, E423, E425; E420 and E411
    /// when the bytes cannot be written and were not.
    fn execute(&mut self, step: Step) -> Result<Snapshot, StateError>;

    /// How a completed recovery resolved its operation; none when no recovery of this id was completed here. It outlives the
    /// clear control and every later operation. E423, E411, E420.
    fn resolution(&mut self, recovery_operation_id: Uuid) -> Result<Option<ResolutionRecord>, StateError>;

    /// The resumption of a runner's replacement that was allowed and is not in the control of this snapshot yet: only it may be
    /// given to [`Self::resume`]. A store that writes both at once never has one. E423, E411, E420.
    fn pending_resume(&mut self, snapshot: &Snapshot) -> Result<Option<ResumeRecord>, StateError> {
        let _ = snapshot;
        Ok(None)
    }

    /// The receipt of a runner's replacement that was committed here, however long ago. E423, E411, E420.
    fn completion(&mut self, operation_id: Uuid) -> Result<Option<RunnerCompletion>, StateError>;

    /// Calls `lost` once, at once and on any thread, when the store itself learns that the lock is gone. A store that only learns
    /// by being asked never calls it.
    fn watch(&mut self, lost: Box<dyn FnOnce() + Send>) {
        drop(lost);
    }

    /// How long a call may take before its outcome counts as unknown.
    fn patience(&self) -> Duration {
        Duration::from_secs(35)
    }

    /// Gives the lock back, verified. E426 when an operation was committed under it, else E423.
    fn release(self) -> Result<(), StateError>
    where
        Self: Sized;

    /// Still current, and nothing pending. E424, E419.
    fn ensure_ready(&mut self, snapshot: &Snapshot) -> Result<(), StateError> {
        let current = self.observe()?;
        current.ensure_clear()?;
        if current == *snapshot { Ok(()) } else { Err(StateError::conflict()) }
    }

    /// clear → in_progress. E419, E424, E411 when the operation is too large.
    fn begin(&mut self, snapshot: Snapshot, intent: Intent) -> Result<Snapshot, StateError> {
        self.execute(step::begin(snapshot, intent)?)
    }

    /// One boundary, or the whole run of a group. E411 when the order forbids it.
    fn record_progress(&mut self, snapshot: Snapshot, entries: Vec<ProgressEntry>) -> Result<Snapshot, StateError> {
        self.execute(step::record_progress(snapshot, entries)?)
    }

    /// in_progress → recovery_required.
    fn mark_recovery_required(&mut self, snapshot: Snapshot, record: RecoveryRecord) -> Result<Snapshot, StateError> {
        self.execute(step::mark_recovery_required(snapshot, record)?)
    }

    /// in_progress without progress → clear.
    fn clear_before_mutation(&mut self, snapshot: Snapshot, cleared_at: Timestamp) -> Result<Snapshot, StateError> {
        self.execute(step::clear_before_mutation(snapshot, cleared_at)?)
    }

    /// recovery_required → in_progress: the replacement of a runner is taken up again, from exactly its last boundary.
    fn resume(&mut self, snapshot: Snapshot, record: ResumeRecord) -> Result<Snapshot, StateError> {
        self.execute(step::resume(snapshot, record)?)
    }

    /// Every action completed and succeeded → clear, with the new ownership when it changes. The replacement of a runner ends so
    /// from recovery_required, too, and leaves a receipt.
    fn commit(
        &mut self,
        snapshot: Snapshot,
        state: Option<OwnershipState>,
        completed_at: Timestamp,
    ) -> Result<Snapshot, StateError> {
        self.execute(step::commit(snapshot, state, completed_at)?)
    }

    /// in_progress of an adoption without progress → clear, with its claims.
    fn adopt(
        &mut self,
        snapshot: Snapshot,
        entries: Vec<ProgressEntry>,
        state: OwnershipState,
        completed_at: Timestamp,
    ) -> Result<Snapshot, StateError> {
        self.execute(step::adopt(snapshot, entries, state, completed_at)?)
    }

    /// A blocked operation → clear, with the reviewed ownership when it changes. What was completed is told by `resolution`
    /// ever after. E424, E411, E423, E425.
    fn finalize_recovery(
        &mut self,
        snapshot: Snapshot,
        intent: RecoveryIntent,
        state: Option<OwnershipState>,
    ) -> Result<Snapshot, StateError> {
        self.execute(step::finalize_recovery(snapshot, intent, state)?)
    }
}
