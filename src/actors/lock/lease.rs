//! The lease: proof that the lock is held, and the only way to a mutation. Only the lock actor opens one.
//!
//! One [`LeaseCore`] belongs to one lock hold. [`MutationLease`] is its holder's end, [`ProgressAck`] the proof of one durable
//! `started` step, [`ActionLease`] the permission that one such proof buys. None of the three can be built outside the lock
//! actor, cloned or serialised, so that code that mutates without a durable step behind it does not compile:
//!
//! ```compile_fail
//! let lease = streamt::actors::lease::ActionLease { core: None, epoch: 1, key: None };
//! ```
//! ```compile_fail
//! fn twice(lease: &streamt::actors::lease::ActionLease) -> streamt::actors::lease::ActionLease { lease.clone() }
//! ```
//! ```compile_fail
//! use streamt::actors::lease::{ActionLease, MutationLease};
//! fn without_a_durable_step(lease: &MutationLease) -> ActionLease { lease.for_action(()).unwrap() }
//! ```
//! ```compile_fail
//! use streamt::actors::lease::{ActionLease, MutationLease, ProgressAck};
//! fn two_actions_for_one_step(lease: &MutationLease, ack: ProgressAck) -> Option<[ActionLease; 2]> {
//!     Some([lease.for_action(ack).ok()?, lease.for_action(ack).ok()?])
//! }
//! ```
//! ```
//! use streamt::actors::lease::{ActionLease, LeaseLost, MutationLease, ProgressAck};
//! fn one_action_for_one_step(lease: &MutationLease, ack: ProgressAck) -> Result<ActionLease, LeaseLost> { lease.for_action(ack) }
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::state::postgres::session::SERVER_RELEASE_MIN;

/// How long the lock is known to be held after a proof was asked for.
pub const LEASE: Duration = Duration::from_secs(3);
/// Between two proofs while nothing else proves the lock.
pub const HEARTBEAT: Duration = Duration::from_millis(500);
/// How long one proof may take.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(2);

/// Between the end of a lease and the earliest moment at which a server may give the lock of an unreachable client away.
pub const MARGIN: Duration = Duration::from_secs(2);

const _: () = assert!(HEARTBEAT.as_millis() + HEARTBEAT_TIMEOUT.as_millis() <= LEASE.as_millis());
const _: () = assert!(LEASE.as_millis() + MARGIN.as_millis() <= SERVER_RELEASE_MIN.as_millis());

/// Nanoseconds of the clock that counts suspension, so that a resumed machine finds its lease expired.
fn boottime_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec)
        .unwrap_or(0)
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// An instant at which a proof of the lock was asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProofAt(u64);

impl ProofAt {
    /// Taken before the question is sent, never after its answer.
    pub(in crate::actors::lock) fn now() -> Self {
        Self(boottime_ns())
    }
}

/// Place of an admitted request in the one order of admissions and closes of a lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AdmissionSeq(u64);

impl AdmissionSeq {
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Place of a close in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CloseSeq(u64);

impl CloseSeq {
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Why a request was not admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LeaseLost {
    /// The lease is closed, or belongs to another lock hold.
    #[error("the lease is closed")]
    Closed,
    /// The time until which the lock is known to be held has passed; a new proof may extend it.
    #[error("the lease has expired")]
    Expired,
}

/// Why a lock hold ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lost {
    /// Released in order.
    Released,
    /// The lock file is no longer the one that is locked.
    FileReplaced,
    /// The session that held the lock ended.
    SessionEnded,
    /// A proof failed or took too long.
    ProofFailed,
    /// A durable step failed in a way that leaves the hold unusable.
    StepFailed,
    /// The lock actor ended: panic, closed mailbox, stopped runtime.
    ActorGone,
    /// The user gave up waiting (second signal).
    Abandoned,
}

impl Lost {
    const ALL: [Self; 7] = [
        Self::Released,
        Self::FileReplaced,
        Self::SessionEnded,
        Self::ProofFailed,
        Self::StepFailed,
        Self::ActorGone,
        Self::Abandoned,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::FileReplaced => "lock file replaced",
            Self::SessionEnded => "lock session ended",
            Self::ProofFailed => "proof of the lock failed",
            Self::StepFailed => "durable step failed",
            Self::ActorGone => "lock actor ended",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Shared by the lock actor, the coordinator and every provider client. No lock, no await.
pub struct LeaseCore {
    epoch: u64,
    open: AtomicBool,
    held_until_ns: AtomicU64,
    /// One order of admissions and closes.
    seq: AtomicU64,
    /// 0 while open, else 1 + the index of the first `Lost`.
    why: AtomicU8,
    lost: CancellationToken,
}

impl fmt::Debug for LeaseCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseCore").field("epoch", &self.epoch).field("open", &self.is_open()).finish_non_exhaustive()
    }
}

impl LeaseCore {
    pub(in crate::actors::lock) fn open(epoch: u64, proof: ProofAt) -> Arc<Self> {
        Arc::new(Self {
            epoch,
            open: AtomicBool::new(true),
            held_until_ns: AtomicU64::new(Self::until(proof)),
            seq: AtomicU64::new(1),
            why: AtomicU8::new(0),
            lost: CancellationToken::new(),
        })
    }

    fn until(proof: ProofAt) -> u64 {
        proof.0.saturating_add(u64::try_from(LEASE.as_nanos()).unwrap_or(u64::MAX))
    }

    /// A later proof extends the known hold; an earlier one never shortens it, and none reopens a closed lease.
    pub(in crate::actors::lock) fn proved(&self, proof: ProofAt) {
        self.held_until_ns.fetch_max(Self::until(proof), SeqCst);
    }

    /// Idempotent, callable from any thread. The flag falls before the number is drawn, so an admission numbered after the close
    /// has seen the flag down; and the token is cancelled before anybody is told.
    pub(in crate::actors) fn close(&self, why: Lost) -> CloseSeq {
        let reason = Lost::ALL.iter().position(|one| *one == why).map_or(u8::MAX, |index| index as u8 + 1);
        let _ = self.why.compare_exchange(0, reason, SeqCst, SeqCst);
        let first = self.open.swap(false, SeqCst);
        if first {
            self.lost.cancel();
        }
        let number = self.seq.fetch_add(1, SeqCst);
        if first {
            tracing::debug!(epoch = self.epoch, number, reason = why.as_str(), "lease closed");
        }
        CloseSeq(number)
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn is_open(&self) -> bool {
        self.open.load(SeqCst)
    }

    /// Why the lease was closed first; none while it is open.
    pub fn reason(&self) -> Option<Lost> {
        let index = self.why.load(SeqCst).checked_sub(1)?;
        Lost::ALL.get(usize::from(index)).copied()
    }

    /// Cancelled when the lease closes.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    fn check(&self, epoch: u64) -> Result<AdmissionSeq, LeaseLost> {
        if epoch != self.epoch {
            return Err(LeaseLost::Closed);
        }
        if boottime_ns() >= self.held_until_ns.load(SeqCst) {
            return Err(if self.is_open() { LeaseLost::Expired } else { LeaseLost::Closed });
        }
        let number = self.seq.fetch_add(1, SeqCst);
        if !self.open.load(SeqCst) {
            return Err(LeaseLost::Closed);
        }
        Ok(AdmissionSeq(number))
    }
}

/// The lock is held under this lease. One per lock hold; it lives with the coordinator.
#[derive(Debug)]
pub struct MutationLease {
    core: Arc<LeaseCore>,
    epoch: u64,
}

impl MutationLease {
    pub(in crate::actors::lock) fn new(core: Arc<LeaseCore>) -> Self {
        Self { epoch: core.epoch, core }
    }

    /// Buys the permission for the action or group whose `started` step was acknowledged under this very lease.
    pub fn for_action(&self, ack: ProgressAck) -> Result<ActionLease, LeaseLost> {
        let own = Arc::ptr_eq(&self.core, &ack.core) && self.epoch == ack.epoch && self.core.is_open();
        own.then(|| ActionLease { core: ack.core, epoch: ack.epoch, key: ack.key }).ok_or(LeaseLost::Closed)
    }

    pub fn core(&self) -> &Arc<LeaseCore> {
        &self.core
    }
}

/// What one permission is for: `first..=last` are indexes of the operation's actions, equal for a single one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActionKey {
    pub operation_id: Uuid,
    pub first: u32,
    pub last: u32,
}

/// Proof that the `started` entries of one action or group are durable.
#[derive(Debug)]
pub struct ProgressAck {
    core: Arc<LeaseCore>,
    epoch: u64,
    key: ActionKey,
}

impl ProgressAck {
    pub(in crate::actors::lock) fn new(core: &Arc<LeaseCore>, key: ActionKey) -> Self {
        Self { core: Arc::clone(core), epoch: core.epoch, key }
    }

    pub fn key(&self) -> ActionKey {
        self.key
    }
}

/// Permission for the requests of exactly one action or group; consumed by one mutation message.
#[derive(Debug)]
pub struct ActionLease {
    core: Arc<LeaseCore>,
    epoch: u64,
    key: ActionKey,
}

impl ActionLease {
    /// Asked immediately before each request that changes something, with no await between this and the hand-over.
    pub fn check(&self) -> Result<AdmissionSeq, LeaseLost> {
        let admitted = self.core.check(self.epoch)?;
        tracing::trace!(epoch = self.epoch, number = admitted.get(), operation = %self.key.operation_id, "admitted");
        Ok(admitted)
    }

    pub fn key(&self) -> ActionKey {
        self.key
    }

    /// Cancelled when the lease closes.
    pub fn lost(&self) -> &CancellationToken {
        &self.core.lost
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Leases for the tests of the provider actors; not compiled into the library.
    use super::*;

    pub fn lease() -> (Arc<LeaseCore>, MutationLease) {
        let core = LeaseCore::open(1, ProofAt::now());
        let lease = MutationLease::new(Arc::clone(&core));
        (core, lease)
    }

    pub fn action(core: &Arc<LeaseCore>, lease: &MutationLease, first: u32, last: u32) -> ActionLease {
        let key = ActionKey { operation_id: Uuid::nil(), first, last };
        lease.for_action(ProgressAck::new(core, key)).expect("an open lease")
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{action, lease};
    use super::*;

    /// I1
    #[test]
    fn an_open_lease_admits_and_a_closed_one_never_does() {
        let (core, holder) = lease();
        let permission = action(&core, &holder, 0, 0);
        let admitted = permission.check().expect("open");
        let closed = core.close(Lost::ProofFailed);
        assert!(admitted.get() < closed.get());
        assert_eq!(permission.check(), Err(LeaseLost::Closed));
        assert!(permission.lost().is_cancelled());
        assert_eq!(core.reason(), Some(Lost::ProofFailed));
        core.close(Lost::Released);
        assert_eq!(core.reason(), Some(Lost::ProofFailed), "the first reason stands");
    }

    #[test]
    fn an_expired_lease_admits_nothing_until_the_lock_is_proved_again() {
        let now = boottime_ns();
        let core = LeaseCore::open(1, ProofAt(now.saturating_sub(LEASE.as_nanos() as u64 + 1)));
        let holder = MutationLease::new(Arc::clone(&core));
        let permission = action(&core, &holder, 0, 0);
        assert_eq!(permission.check(), Err(LeaseLost::Expired));
        core.proved(ProofAt::now());
        assert!(permission.check().is_ok());
        core.proved(ProofAt(0));
        assert!(permission.check().is_ok(), "an older proof never shortens the hold");
    }

    #[test]
    fn a_proof_never_reopens_a_closed_lease() {
        let (core, holder) = lease();
        let permission = action(&core, &holder, 0, 0);
        core.close(Lost::FileReplaced);
        core.proved(ProofAt::now());
        assert_eq!(permission.check(), Err(LeaseLost::Closed));
    }

    #[test]
    fn an_acknowledgement_of_another_hold_buys_nothing() {
        let (_, holder) = lease();
        let (other, _) = lease();
        let key = ActionKey { operation_id: Uuid::nil(), first: 0, last: 0 };
        assert_eq!(holder.for_action(ProgressAck::new(&other, key)).map(|_| ()), Err(LeaseLost::Closed));
    }

    /// I1: whatever the interleaving, no admission is numbered after the close.
    #[test]
    fn no_admission_is_numbered_after_the_close_under_contention() {
        for round in 0..200_u32 {
            let (core, holder) = lease();
            let permissions: Vec<_> = (0..3).map(|index| action(&core, &holder, index, index)).collect();
            let (admitted, closed) = std::thread::scope(|scope| {
                let workers: Vec<_> = permissions
                    .iter()
                    .map(|permission| {
                        scope.spawn(move || {
                            let mut last = 0;
                            while let Ok(number) = permission.check() {
                                last = number.get();
                            }
                            last
                        })
                    })
                    .collect();
                for _ in 0..round * 10 {
                    std::hint::spin_loop();
                }
                let closed = core.close(Lost::ProofFailed);
                let last = workers.into_iter().map(|worker| worker.join().expect("no panic")).max().unwrap_or(0);
                (last, closed)
            });
            assert!(admitted < closed.get(), "admission {admitted} after close {}", closed.get());
        }
    }
}
