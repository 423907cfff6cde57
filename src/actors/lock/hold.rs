//! One lock hold as the actor uses it: any store behind one object, and its blocking calls off the arbiter.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::lease::ProofAt;
use crate::messages::lock::StepKind;
use crate::state::control::ResolutionRecord;
use crate::state::error::{StateError, StateErrorKind};
use crate::state::model::StateAddress;
use crate::state::step;
use crate::state::store::{Snapshot, StateBackend, StateOperation};

/// A store of any kind.
pub trait Backend: Send + Sync {
    fn acquire(
        &self,
        address: &StateAddress,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<Box<dyn Operation>, StateError>;
}

/// A lock hold of any store.
pub trait Operation: Send {
    fn observe(&mut self) -> Result<Snapshot, StateError>;
    fn check_lock(&mut self) -> Result<(), StateError>;
    fn ensure_ready(&mut self, snapshot: &Snapshot) -> Result<(), StateError>;
    fn execute(&mut self, step: step::Step) -> Result<Snapshot, StateError>;
    fn resolution(&mut self, recovery_operation_id: Uuid) -> Result<Option<ResolutionRecord>, StateError>;
    fn watch(&mut self, lost: Box<dyn FnOnce() + Send>);
    fn patience(&self) -> Duration;
    fn release(self: Box<Self>) -> Result<(), StateError>;
}

impl<B> Backend for B
where
    B: StateBackend + Send + Sync,
    B::Operation: 'static,
{
    fn acquire(
        &self,
        address: &StateAddress,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<Box<dyn Operation>, StateError> {
        Ok(Box::new(StateBackend::acquire(self, address, timeout, give_up)?))
    }
}

impl<O: StateOperation> Operation for O {
    fn observe(&mut self) -> Result<Snapshot, StateError> {
        StateOperation::observe(self)
    }

    fn check_lock(&mut self) -> Result<(), StateError> {
        StateOperation::check_lock(self)
    }

    fn ensure_ready(&mut self, snapshot: &Snapshot) -> Result<(), StateError> {
        StateOperation::ensure_ready(self, snapshot)
    }

    fn execute(&mut self, step: step::Step) -> Result<Snapshot, StateError> {
        StateOperation::execute(self, step)
    }

    fn resolution(&mut self, recovery_operation_id: Uuid) -> Result<Option<ResolutionRecord>, StateError> {
        StateOperation::resolution(self, recovery_operation_id)
    }

    fn watch(&mut self, lost: Box<dyn FnOnce() + Send>) {
        StateOperation::watch(self, lost);
    }

    fn patience(&self) -> Duration {
        StateOperation::patience(self)
    }

    fn release(self: Box<Self>) -> Result<(), StateError> {
        StateOperation::release(*self)
    }
}

/// A hold shared with its heartbeat. Nobody waits for it on an arbiter.
#[derive(Clone)]
pub struct Shared {
    operation: Arc<Mutex<Option<Box<dyn Operation>>>>,
    /// How long its store may take for one call.
    patience: Duration,
}

/// What a heartbeat saw.
pub enum Heartbeat {
    Proved,
    /// A step or a read is using the hold; it proves the lock itself.
    Busy,
    Lost,
}

impl Shared {
    pub fn new(operation: Box<dyn Operation>) -> Self {
        Self { patience: operation.patience(), operation: Arc::new(Mutex::new(Some(operation))) }
    }

    /// Runs store work where blocking is allowed. Work that panics or never ends counts as `broken`.
    pub async fn run<T: Send + 'static>(
        &self,
        broken: StateErrorKind,
        work: impl FnOnce(&mut dyn Operation) -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, StateError> {
        let hold = self.clone();
        let job = tokio::task::spawn_blocking(move || {
            // A poisoned hold belongs to work that panicked: what it left behind is not known.
            let mut hold = hold.operation.lock().map_err(|_| StateError::lock_lost())?;
            match hold.as_mut() {
                Some(operation) => work(operation.as_mut()),
                None => Err(StateError::lock_lost()),
            }
        });
        match tokio::time::timeout(self.patience, job).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(StateError::new(broken)),
        }
    }

    /// Takes the hold out for good and releases it.
    pub async fn release(&self) -> Result<(), StateError> {
        let hold = self.clone();
        let job = tokio::task::spawn_blocking(move || {
            let taken = hold.operation.lock().unwrap_or_else(PoisonError::into_inner).take();
            taken.map_or_else(|| Err(StateError::lock_lost()), Operation::release)
        });
        match tokio::time::timeout(self.patience, job).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(StateError::lock_lost()),
        }
    }

    /// One proof of the lock, unless the hold is in use.
    pub async fn heartbeat(&self, timeout: Duration) -> Heartbeat {
        let hold = self.clone();
        let job = tokio::task::spawn_blocking(move || match hold.operation.try_lock() {
            Err(TryLockError::WouldBlock) => Heartbeat::Busy,
            Err(TryLockError::Poisoned(_)) => Heartbeat::Lost,
            Ok(mut hold) => match hold.as_mut().map(|operation| operation.check_lock()) {
                Some(Ok(())) => Heartbeat::Proved,
                Some(Err(_)) => Heartbeat::Lost,
                None => Heartbeat::Busy,
            },
        });
        match tokio::time::timeout(timeout, job).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(_)) | Err(_) => Heartbeat::Lost,
        }
    }
}

/// A step that was written, and when the lock was last proved.
pub struct Written {
    pub snapshot: Snapshot,
    pub commits: bool,
    pub proof: Result<ProofAt, StateError>,
}

/// Proves the lock, writes the step, proves the lock again.
pub fn write(operation: &mut dyn Operation, expected: Snapshot, kind: StepKind) -> Result<Written, StateError> {
    operation.check_lock()?;
    let step = match kind {
        StepKind::Begin(intent) => step::begin(expected, intent)?,
        StepKind::Progress(entries) => step::record_progress(expected, entries)?,
        StepKind::RecoveryRequired(record) => step::mark_recovery_required(expected, record)?,
        StepKind::ClearBeforeMutation { cleared_at } => step::clear_before_mutation(expected, cleared_at)?,
        StepKind::Commit { state, completed_at } => step::commit(expected, state, completed_at)?,
        StepKind::Adopt { entries, state, completed_at } => step::adopt(expected, entries, state, completed_at)?,
        StepKind::FinalizeRecovery { intent, state } => step::finalize_recovery(expected, intent, state)?,
    };
    let commits = step.commits;
    let operation_id = Some(step.operation_id);
    let snapshot = operation.execute(step).map_err(|error| error.operation(operation_id))?;
    let proof = prove(operation).map_err(|error| error.operation(operation_id).stands());
    Ok(Written { snapshot, commits, proof })
}

/// Proves the lock; the proof dates from before the question.
pub fn prove(operation: &mut dyn Operation) -> Result<ProofAt, StateError> {
    let asked = ProofAt::now();
    operation.check_lock()?;
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::testing::{address, empty_state_checksum, golden_intent, topic_creates};

    /// A stand-in whose lock is gone at a call of its choice; it counts what it is asked, and takes its time to answer.
    #[derive(Default)]
    struct Slipping {
        lost_at: usize,
        proofs: usize,
        written: usize,
        asked: Option<ProofAt>,
    }

    impl Operation for Slipping {
        fn observe(&mut self) -> Result<Snapshot, StateError> {
            Err(StateError::lock_lost())
        }

        fn check_lock(&mut self) -> Result<(), StateError> {
            self.proofs += 1;
            self.asked = Some(ProofAt::now());
            std::thread::sleep(Duration::from_millis(2));
            if self.proofs == self.lost_at { Err(StateError::lock_lost()) } else { Ok(()) }
        }

        fn ensure_ready(&mut self, _: &Snapshot) -> Result<(), StateError> {
            Ok(())
        }

        fn execute(&mut self, step: step::Step) -> Result<Snapshot, StateError> {
            self.written += 1;
            Ok(step.after)
        }

        fn resolution(&mut self, _: Uuid) -> Result<Option<ResolutionRecord>, StateError> {
            Ok(None)
        }

        fn watch(&mut self, _: Box<dyn FnOnce() + Send>) {}

        fn patience(&self) -> Duration {
            Duration::from_secs(1)
        }

        fn release(self: Box<Self>) -> Result<(), StateError> {
            Ok(())
        }
    }

    fn written(lost_at: usize) -> (Result<Written, StateError>, usize) {
        let mut operation = Slipping { lost_at, ..Slipping::default() };
        let snapshot = crate::state::testing::clear_snapshot(&address("platform"));
        assert_eq!(snapshot.state.checksum, empty_state_checksum());
        let outcome = write(&mut operation, snapshot, StepKind::Begin(golden_intent(topic_creates(1))));
        (outcome, operation.written)
    }

    /// I5 SAF-029
    #[test]
    fn a_step_is_written_under_a_proved_lock_and_counts_when_the_lock_is_proved_again() {
        let (outcome, steps) = written(1);
        assert!(outcome.is_err_and(|error| error.kind == StateErrorKind::LockLost) && steps == 0, "nothing is written");
        let (outcome, steps) = written(2);
        assert!(outcome.is_ok_and(|written| written.proof.is_err()) && steps == 1, "it stands, and the lock is gone");
        let (outcome, steps) = written(0);
        assert!(outcome.is_ok_and(|written| written.proof.is_ok()) && steps == 1);
    }

    #[test]
    fn a_proof_dates_from_before_its_question() {
        let mut operation = Slipping::default();
        let proof = prove(&mut operation).expect("held");
        assert!(operation.asked.is_some_and(|asked| proof <= asked));
    }
}
