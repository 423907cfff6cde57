//! The walk of one operation: lock, gates, then the machine's effects until it ends, then what is told of it.
#![expect(clippy::disallowed_methods, reason = "the clock of an operation, and the tasks that watch it")]

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Addr;
use actix::prelude::MailboxError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Coordinator;
use super::apply::{Apply, unchanged};
use super::gates::{ApplyGates, Prepared, Stop};
use super::log;
use super::machine::{Effect, Event, Situation, State, Verdict, transition};
use crate::actors::lease::{Lost, MutationLease};
use crate::actors::lock::LockActor;
use crate::actors::registry::Registry;
use crate::actors::store::Opened;
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::messages::lock::{Acquire, Release, StepKind, Subscribe};
use crate::messages::operation::{
    ApplyEnd, ApplyOutcome, ApplyRequest, ApplySource, Control, Failure, Lists, OperationEvent, PlanOutcome,
    PlanRequest, StateFacts,
};
use crate::providers::ProviderFailure;
use crate::state::control::{Intent, OperationKind};
use crate::state::error::StateError;
use crate::state::scalar::Timestamp;
use crate::state::store::Snapshot;

/// Between two reports of waiting for the lock.
const WAITING: Duration = Duration::from_secs(10);

/// A reply of the lock actor; an actor that is gone is a lost lock.
pub(super) fn lock_reply<T>(reply: Result<Result<T, StateError>, MailboxError>) -> Result<T, StateError> {
    reply.unwrap_or_else(|_| Err(StateError::lock_lost()))
}

/// Runs the effects of one operation.
pub(super) struct Driver {
    pub(super) control: Control,
    pub(super) reads: CancellationToken,
    pub(super) providers: Rc<Registry>,
    pub(super) lock: Addr<LockActor>,
    pub(super) me: Addr<Coordinator>,
    pub(super) store: Opened,
    pub(super) lease: Option<MutationLease>,
    pub(super) seq: u64,
    pub(super) warnings: Diagnostics,
}

impl Driver {
    pub(super) fn tell(&self, event: OperationEvent) {
        log::event(&self.store.address, &event);
        (self.control.observer)(&event);
    }

    pub(super) fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    /// Runs CPU or file work where blocking is allowed.
    pub(super) async fn off_arbiter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Diagnostic> + Send + 'static,
    ) -> Result<T, Diagnostic> {
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|_| Err(Diagnostic::new(Code::E901Internal, "a computation ended unexpectedly")))
    }

    /// Row 11: the lock and the first snapshot under it.
    pub(super) async fn acquire(&mut self) -> Result<Snapshot, Stop> {
        let cancel = &self.control.cancel;
        let (requested, reads) = (cancel.requested().clone(), self.reads.clone());
        actix::spawn(async move {
            tokio::select! {
                () = requested.cancelled() => reads.cancel(),
                () = reads.cancelled() => {}
            }
        });
        let timeout = self.store.lock_timeout;
        let deadline = Instant::now() + timeout;
        let mut reply = std::pin::pin!(self.lock.send(Acquire { timeout, give_up: cancel.requested().clone() }));
        let mut wait = Duration::from_millis(300);
        let held = loop {
            tokio::select! {
                reply = &mut reply => break lock_reply(reply)?,
                () = tokio::time::sleep(wait) => {
                    let remaining = deadline.saturating_duration_since(Instant::now());
                    self.tell(OperationEvent::WaitingForLock { remaining });
                    wait = WAITING;
                }
            }
        };
        let core = Arc::clone(held.lease.core());
        self.lease = Some(held.lease);
        let abandoned = cancel.abandoned().clone();
        actix::spawn(async move {
            tokio::select! {
                () = abandoned.cancelled() => { core.close(Lost::Abandoned); }
                () = core.lost().cancelled() => {}
            }
        });
        // A full mailbox is waited for; an actor that is gone has closed the lease already.
        let _ = self.lock.send(Subscribe(self.me.clone().recipient())).await;
        self.tell(OperationEvent::Locked);
        Ok(held.snapshot)
    }

    pub(super) async fn release(&self) -> Result<(), StateError> {
        lock_reply(self.lock.send(Release).await)?;
        self.tell(OperationEvent::Released);
        Ok(())
    }

    pub(super) fn facts(&self, snapshot: &Snapshot) -> StateFacts {
        StateFacts {
            store: snapshot.state.store.clone(),
            address: snapshot.state.address.clone(),
            serial: snapshot.state.state.serial,
            checksum: snapshot.state.checksum.clone(),
            file: self.store.file.clone(),
        }
    }

    pub(super) fn closed_because(&self) -> Option<Lost> {
        self.lease.as_ref().and_then(|lease| lease.core().reason())
    }

    pub(super) fn lock_lost(&self) -> bool {
        self.lease.as_ref().is_none_or(|lease| !lease.core().is_open())
    }

    pub(super) async fn plan(mut self, request: PlanRequest) -> Result<PlanOutcome, Failure> {
        let snapshot = match self.acquire().await {
            Ok(snapshot) => snapshot,
            Err(stop) => {
                let _ = self.walk(Event::NotHeld, None).await;
                return Err(self.failure(stop.diagnostics()));
            }
        };
        let state = self.facts(&snapshot);
        let looked = self.plan_gates(&request, &snapshot).await;
        let first = if looked.is_ok() { Event::Enough } else { self.refused() };
        let (_, released) = self.walk(first, None).await;
        match (looked, released) {
            (Ok((plan, saved)), Ok(())) => Ok(PlanOutcome { plan, state, saved, warnings: self.warnings }),
            (Ok((_, saved)), Err(error)) => {
                let failure = self.failure(error.diagnostic().into());
                Err(Failure { saved: saved.map(|saved| saved.path), ..failure })
            }
            (Err(stop), released) => {
                let mut diagnostics = stop.diagnostics();
                diagnostics.extend(released.err().map(|error| error.diagnostic()));
                Err(self.failure(diagnostics))
            }
        }
    }

    /// How a gate that refused is told to the machine: without the lock there is nothing to release.
    fn refused(&self) -> Event {
        if self.lock_lost() { Event::NotHeld } else { Event::Refused }
    }

    pub(super) fn failure(&self, diagnostics: Diagnostics) -> Failure {
        let interrupted = diagnostics.iter().any(|diagnostic| diagnostic.code == Code::E903Interrupted);
        Failure {
            diagnostics,
            warnings: self.warnings.clone(),
            signal: self.control.cancel.signal().filter(|_| interrupted),
            saved: None,
        }
    }

    pub(super) async fn apply(mut self, request: ApplyRequest) -> ApplyOutcome {
        let plan_checksum = match &request.source {
            ApplySource::Direct { .. } => None,
            ApplySource::Reviewed { file, .. } => Some(file.checksum.clone()),
        };
        let snapshot = match self.acquire().await {
            Ok(snapshot) => snapshot,
            Err(stop) => {
                let _ = self.walk(Event::NotHeld, None).await;
                return ApplyOutcome { plan_checksum, ..ApplyOutcome::stopped(self.stopped(stop)) };
            }
        };
        let state = self.facts(&snapshot);
        let mut plan = None;
        let gates = ApplyGates {
            compiled: &request.compiled,
            source: request.source,
            force: request.force,
            dry_run: request.dry_run,
        };
        let prepared = self.apply_gates(gates, &snapshot, &mut plan).await;
        let end = match prepared {
            Ok(Some((prepared, fresh))) => {
                let intent = self.intent(&prepared, &fresh, request.actor, plan_checksum.clone());
                drop(snapshot);
                let mut apply = Apply::new(prepared, intent, fresh);
                let (verdict, released) = self.walk(Event::Ready, Some(&mut apply)).await;
                return apply.outcome(&self, verdict, released, state, plan_checksum);
            }
            Ok(None) => {
                let (_, released) = self.walk(Event::Enough, None).await;
                released.map_or_else(|error| ApplyEnd::Failed(error.diagnostic().into()), |()| ApplyEnd::DryRun)
            }
            Err(stop) => {
                let (_, released) = self.walk(self.refused(), None).await;
                match (self.stopped(stop), released) {
                    (ApplyEnd::Failed(mut diagnostics), Err(error)) => {
                        diagnostics.push(error.diagnostic());
                        ApplyEnd::Failed(diagnostics)
                    }
                    (end, _) => end,
                }
            }
        };
        let lists = plan
            .as_deref()
            .map_or_else(Lists::default, |plan| Lists { unchanged: unchanged(plan), ..Lists::default() });
        ApplyOutcome {
            plan,
            lists,
            state: Some(state),
            plan_checksum,
            warnings: self.warnings,
            ..ApplyOutcome::stopped(end)
        }
    }

    fn stopped(&self, stop: Stop) -> ApplyEnd {
        let signal = self.control.cancel.signal();
        match (stop.end(), signal) {
            (ApplyEnd::Failed(diagnostics), Some(signal)) => {
                let interrupted = diagnostics.iter().find(|one| one.code == Code::E903Interrupted).cloned();
                interrupted.map_or(ApplyEnd::Failed(diagnostics), |one| ApplyEnd::Interrupted(signal, one))
            }
            (end, _) => end,
        }
    }

    fn intent(
        &self,
        prepared: &Prepared,
        snapshot: &Snapshot,
        actor: String,
        reviewed_plan_checksum: Option<crate::compiler::canonical::Checksum>,
    ) -> Intent {
        Intent {
            operation_id: Uuid::new_v4(),
            kind: OperationKind::Apply,
            started_at: Timestamp::micros(self.now()),
            actor,
            prior_state_serial: snapshot.state.state.serial,
            prior_state_checksum: snapshot.state.checksum.clone(),
            reviewed_plan_checksum,
            actions: prepared.actions.clone(),
        }
    }

    /// Feeds the machine until it ends. The second value is what the release said.
    pub(super) async fn walk(
        &mut self,
        first: Event,
        mut apply: Option<&mut Apply>,
    ) -> (Verdict, Result<(), StateError>) {
        let (mut state, mut event) = (State::Preparing, first);
        let mut released = Ok(());
        loop {
            let situation = Situation {
                blocks: apply.as_ref().map_or(0, |apply| apply.prepared.schedule.blocks.len()),
                interrupted: self.control.cancel.signal().is_some(),
                drifted: apply.as_ref().is_some_and(|apply| apply.drifted()),
            };
            let Some((next, effect)) = transition(state, event, situation) else {
                return (Verdict::Unresolved, Err(StateError::lock_lost()));
            };
            state = next;
            event = match (effect, apply.as_deref_mut()) {
                (Effect::End, _) => {
                    let State::Ended { verdict, .. } = state else { return (Verdict::Unresolved, released) };
                    return (verdict, released);
                }
                (Effect::Release, _) => {
                    released = self.release().await;
                    if released.is_ok() { Event::Released } else { Event::NotReleased }
                }
                (_, None) => return (Verdict::Unresolved, Err(StateError::lock_lost())),
                (Effect::Begin, Some(apply)) => self.begin(apply).await,
                (Effect::Start { block }, Some(apply)) => self.start(apply, block).await,
                (Effect::Mutate { block }, Some(apply)) => self.mutate(apply, block).await,
                (Effect::Complete { block }, Some(apply)) => self.complete(apply, block).await,
                (Effect::CompleteUnsent { block }, Some(apply)) => {
                    let unsent = ProviderFailure::Aborted { uncertain: false };
                    apply.ack = None;
                    apply.outcomes = apply.prepared.schedule.block(block).iter().map(|_| Err(unsent.clone())).collect();
                    self.complete(apply, block).await
                }
                (Effect::Mark(code), Some(apply)) => self.mark(apply, code).await,
                (Effect::Clear, Some(apply)) => {
                    let cleared_at = Timestamp::micros(self.now());
                    self.step(apply, |_| Ok(StepKind::ClearBeforeMutation { cleared_at })).await
                }
                (Effect::Commit, Some(apply)) => self.commit(apply).await,
            };
        }
    }
}

/// What a signal left behind.
pub(super) const fn interrupted_text(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::RecoveryRequired => "interrupted; no further action was started, and the operation waits for recovery",
        Verdict::Abandoned => {
            "ended at once; what was in flight may have been applied, and the operation waits for recovery"
        }
        Verdict::Cleared | Verdict::Stopped | Verdict::Looked | Verdict::Committed | Verdict::Unresolved => {
            "interrupted before any action was started; nothing was changed"
        }
    }
}
