//! The conversation with the lock actor of one state address. A lock hold begins with [`Acquire`], ends with [`Release`] or with
//! [`LockLost`], and is never taken twice by one actor.

use std::time::Duration;

use actix::{Message, Recipient};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::actors::lease::{Lost, MutationLease, ProgressAck, ProofAt};
use crate::state::control::{Intent, ProgressEntry, RecoveryIntent, RecoveryRecord, ResolutionRecord};
use crate::state::error::StateError;
use crate::state::model::OwnershipState;
use crate::state::scalar::Timestamp;
use crate::state::store::Snapshot;

/// The lock is held. The lease is handed out once.
#[derive(Debug)]
pub struct Held {
    pub epoch: u64,
    pub lease: MutationLease,
    pub snapshot: Snapshot,
}

/// Waits for the lock at most `timeout`, or until `give_up`. E420, E411, E422, E903.
#[derive(Message)]
#[rtype(result = "Result<Held, StateError>")]
pub struct Acquire {
    pub timeout: Duration,
    pub give_up: CancellationToken,
}

/// A fresh snapshot.
#[derive(Message)]
#[rtype(result = "Result<Snapshot, StateError>")]
pub struct Observe;

/// The snapshot is still current and nothing is pending. E419, E424.
#[derive(Message)]
#[rtype(result = "Result<(), StateError>")]
pub struct EnsureReady(pub Snapshot);

/// Proves the lock now. E423.
#[derive(Message)]
#[rtype(result = "Result<ProofAt, StateError>")]
pub struct Check;

/// How the recovery of this id resolved its operation, if it was ever completed.
#[derive(Message)]
#[rtype(result = "Result<Option<ResolutionRecord>, StateError>")]
pub struct ResolutionOf(pub Uuid);

/// What a durable step writes.
#[derive(Debug)]
pub enum StepKind {
    Begin(Intent),
    /// One entry, or the whole run of a group.
    Progress(Vec<ProgressEntry>),
    RecoveryRequired(RecoveryRecord),
    ClearBeforeMutation {
        cleared_at: Timestamp,
    },
    Commit {
        state: Option<OwnershipState>,
        completed_at: Timestamp,
    },
    /// Everything that an adoption writes after its intent: progress, ownership and end stand together or not at all.
    Adopt {
        entries: Vec<ProgressEntry>,
        state: OwnershipState,
        completed_at: Timestamp,
    },
    /// Ends a blocked operation as reviewed; `state` is the reviewed ownership when it changes.
    FinalizeRecovery {
        intent: RecoveryIntent,
        state: Option<OwnershipState>,
    },
}

impl StepKind {
    /// For log records.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Begin(_) => "begin",
            Self::Progress(_) => "progress",
            Self::RecoveryRequired(_) => "recovery_required",
            Self::ClearBeforeMutation { .. } => "clear_before_mutation",
            Self::Commit { .. } => "commit",
            Self::Adopt { .. } => "adopt",
            Self::FinalizeRecovery { .. } => "finalize_recovery",
        }
    }
}

/// One durable step from `expected`. The snapshot moves: whoever has none left cannot send another step.
#[derive(Message)]
#[rtype(result = "Result<Acked, StateError>")]
pub struct Step {
    pub seq: u64,
    pub expected: Snapshot,
    pub kind: StepKind,
}

/// The step stands.
#[derive(Debug)]
pub struct Acked {
    pub seq: u64,
    pub snapshot: Snapshot,
    /// Only after `started` entries.
    pub ack: Option<ProgressAck>,
}

/// Gives the lock back, verified. E423; E426 when an operation was committed under it.
#[derive(Message)]
#[rtype(result = "Result<(), StateError>")]
pub struct Release;

/// Asks to be told when the lock is lost; told at once if it already is.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Subscribe(pub Recipient<LockLost>);

/// The lock hold ended without a release. The lease is closed before this is sent.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[rtype(result = "()")]
pub struct LockLost {
    pub epoch: u64,
    pub reason: Lost,
}
