//! The coordinator: one operation from the lock to the release. `machine` says what follows what, `gates` what must hold before
//! the durable intent, `observe` what is asked of the providers, `work` what is sent to them. This file only runs effects. It
//! promises that nothing is sent without a durable step before it, and that after a failure nothing more is sent at all.

mod apply;
mod gates;
mod machine;
mod observe;
mod work;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::prelude::MailboxError;
use actix::{Actor, Addr, ArbiterHandle, AsyncContext, Context, Handler, Message, ResponseFuture};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::apply::{Apply, unchanged};
use self::gates::{ApplyGates, Prepared, Stop};
use self::machine::{Effect, Event, Situation, State, Verdict, transition};
use self::work::{Call, Schedule, Work};
use super::lease::{Lost, MutationLease};
use super::lock::LockActor;
use super::registry::Registry;
use super::store::{self, Opened};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::messages::lock::{Acked, Acquire, LockLost, Observe, Release, Step, StepKind, Subscribe};
use crate::messages::operation::{
    ApplyEnd, ApplyOutcome, ApplyRequest, ApplySource, Control, Failure, Lists, OperationEvent, PlanOutcome,
    PlanRequest, StateFacts,
};
use crate::messages::{kafka, schema_registry};
use crate::project::Project;
use crate::providers::{Ctx, ProviderFailure, Purpose};
use crate::state::control::{FailureCode, Intent, OperationKind, ProgressEntry, ProgressStatus, RecoveryRecord};
use crate::state::error::StateError;
use crate::state::projection;
use crate::state::scalar::Timestamp;
use crate::state::store::Snapshot;

/// Bound of one mutation, waits for its postcondition included.
const ACTION_BUDGET: Duration = Duration::from_secs(120);
/// Bound of the broker's dry validation.
const VALIDATE_BUDGET: Duration = Duration::from_secs(60);
/// Between two reports of waiting for the lock.
const WAITING: Duration = Duration::from_secs(10);
const MAILBOX: usize = 16;

/// Runs a plan to its end.
#[derive(Message)]
#[rtype(result = "Result<PlanOutcome, Failure>")]
pub(crate) struct RunPlan {
    pub request: PlanRequest,
    pub control: Control,
}

/// Runs an apply to its end.
#[derive(Message)]
#[rtype(result = "ApplyOutcome")]
pub(crate) struct RunApply {
    pub request: ApplyRequest,
    pub control: Control,
}

/// What a coordinator is given by its runtime.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub providers: Rc<Registry>,
    /// The thread of the lock actors.
    pub lock_arbiter: ArbiterHandle,
    /// Unique in the runtime.
    pub epoch: u64,
}

/// One operation. Its driver runs beside its context, so that the loss of the lock is heard while a step is awaited.
pub(crate) struct Coordinator {
    surroundings: Surroundings,
    /// Cancelled when reads have no purpose any more.
    reads: CancellationToken,
}

impl Coordinator {
    pub fn new(surroundings: Surroundings) -> Self {
        Self { surroundings, reads: CancellationToken::new() }
    }

    fn driver(&self, project: &Project, control: Control, me: Addr<Self>) -> Result<Driver, StateError> {
        let opened = store::open(project)?;
        let (backend, address, epoch) = (Arc::clone(&opened.backend), opened.address.clone(), self.surroundings.epoch);
        let lock = LockActor::start_in_arbiter(&self.surroundings.lock_arbiter, move |_| {
            LockActor::new(backend, address, epoch)
        });
        Ok(Driver {
            control,
            reads: self.reads.clone(),
            providers: Rc::clone(&self.surroundings.providers),
            lock,
            me,
            store: opened,
            lease: None,
            seq: 0,
            warnings: Diagnostics::new(),
        })
    }
}

impl Actor for Coordinator {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.reads.cancel();
    }
}

impl Handler<LockLost> for Coordinator {
    type Result = ();

    fn handle(&mut self, _: LockLost, _: &mut Self::Context) {
        self.reads.cancel();
    }
}

impl Handler<RunPlan> for Coordinator {
    type Result = ResponseFuture<Result<PlanOutcome, Failure>>;

    fn handle(&mut self, RunPlan { request, control }: RunPlan, context: &mut Self::Context) -> Self::Result {
        let driver = self.driver(&request.compiled.project, control, context.address());
        Box::pin(async move { driver.map_err(|error| Failure::from(error.diagnostic()))?.plan(request).await })
    }
}

impl Handler<RunApply> for Coordinator {
    type Result = ResponseFuture<ApplyOutcome>;

    fn handle(&mut self, RunApply { request, control }: RunApply, context: &mut Self::Context) -> Self::Result {
        let driver = self.driver(&request.compiled.project, control, context.address());
        Box::pin(async move {
            match driver {
                Ok(driver) => driver.apply(request).await,
                Err(error) => ApplyOutcome::stopped(ApplyEnd::Failed(error.diagnostic().into())),
            }
        })
    }
}

impl ApplyOutcome {
    /// Ended before anything was read or written.
    pub(crate) fn stopped(end: ApplyEnd) -> Self {
        Self {
            end,
            plan: None,
            lists: Lists::default(),
            state: None,
            operation_id: None,
            committed: Some(false),
            recovery_required: false,
            plan_checksum: None,
            warnings: Diagnostics::new(),
        }
    }
}

/// A reply of the lock actor; an actor that is gone is a lost lock.
fn lock_reply<T>(reply: Result<Result<T, StateError>, MailboxError>) -> Result<T, StateError> {
    reply.unwrap_or_else(|_| Err(StateError::lock_lost()))
}

/// Runs the effects of one operation.
struct Driver {
    control: Control,
    reads: CancellationToken,
    providers: Rc<Registry>,
    lock: Addr<LockActor>,
    me: Addr<Coordinator>,
    store: Opened,
    lease: Option<MutationLease>,
    seq: u64,
    warnings: Diagnostics,
}

impl Driver {
    fn tell(&self, event: OperationEvent) {
        (self.control.observer)(&event);
    }

    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    /// Runs CPU or file work where blocking is allowed.
    async fn off_arbiter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Diagnostic> + Send + 'static,
    ) -> Result<T, Diagnostic> {
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|_| Err(Diagnostic::new(Code::E901Internal, "a computation ended unexpectedly")))
    }

    /// Row 11: the lock and the first snapshot under it.
    async fn acquire(&mut self) -> Result<Snapshot, Stop> {
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

    async fn release(&self) -> Result<(), StateError> {
        lock_reply(self.lock.send(Release).await)?;
        self.tell(OperationEvent::Released);
        Ok(())
    }

    fn facts(&self, snapshot: &Snapshot) -> StateFacts {
        StateFacts {
            store: snapshot.state.store.clone(),
            address: snapshot.state.address.clone(),
            serial: snapshot.state.state.serial,
            checksum: snapshot.state.checksum.clone(),
            file: self.store.file.clone(),
        }
    }

    fn closed_because(&self) -> Option<Lost> {
        self.lease.as_ref().and_then(|lease| lease.core().reason())
    }

    fn lock_lost(&self) -> bool {
        self.lease.as_ref().is_none_or(|lease| !lease.core().is_open())
    }

    async fn plan(mut self, request: PlanRequest) -> Result<PlanOutcome, Failure> {
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

    fn failure(&self, diagnostics: Diagnostics) -> Failure {
        let interrupted = diagnostics.iter().any(|diagnostic| diagnostic.code == Code::E903Interrupted);
        Failure { diagnostics, signal: self.control.cancel.signal().filter(|_| interrupted), saved: None }
    }

    async fn apply(mut self, request: ApplyRequest) -> ApplyOutcome {
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
    async fn walk(&mut self, first: Event, mut apply: Option<&mut Apply>) -> (Verdict, Result<(), StateError>) {
        let (mut state, mut event) = (State::Preparing, first);
        let mut released = Ok(());
        loop {
            let situation = Situation {
                blocks: apply.as_ref().map_or(0, |apply| apply.prepared.schedule.blocks.len()),
                interrupted: self.control.cancel.signal().is_some(),
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

    /// One durable step from the snapshot that the last one left; after a failed one it is read again.
    async fn step(&mut self, apply: &mut Apply, kind: impl FnOnce(&Snapshot) -> Result<StepKind, Diagnostic>) -> Event {
        let operation_id = Some(apply.intent.operation_id);
        let expected = match apply.snapshot.take() {
            Some(snapshot) => snapshot,
            None => match lock_reply(self.lock.send(Observe).await) {
                Ok(snapshot) => snapshot,
                Err(error) => return apply.step_failed(error.operation(operation_id)),
            },
        };
        let kind = match kind(&expected) {
            Ok(kind) => kind,
            Err(diagnostic) => {
                apply.errors.push(diagnostic);
                return Event::StepFailed { held: true };
            }
        };
        self.seq += 1;
        let committing = matches!(kind, StepKind::Commit { .. });
        match self.lock.send(Step { seq: self.seq, expected, kind }).await {
            Ok(Ok(Acked { snapshot, ack, .. })) => {
                apply.snapshot = Some(snapshot);
                apply.ack = ack;
                Event::Acked
            }
            Ok(Err(error)) => apply.step_failed(error.operation(operation_id)),
            // The actor died with the step: a commit may stand.
            Err(_) if committing => apply.step_failed(StateError::unknown_commit().operation(operation_id)),
            Err(_) => apply.step_failed(StateError::lock_lost().operation(operation_id)),
        }
    }

    async fn begin(&mut self, apply: &mut Apply) -> Event {
        let intent = Intent::clone(&apply.intent);
        let event = self.step(apply, |_| Ok(StepKind::Begin(intent))).await;
        if event == Event::Acked {
            let (operation_id, actions) = (apply.intent.operation_id, apply.intent.actions.len());
            apply.begun = true;
            self.tell(OperationEvent::Began { operation_id, actions });
        }
        event
    }

    async fn start(&mut self, apply: &mut Apply, block: usize) -> Event {
        let recorded_at = Timestamp::micros(self.now());
        let intent = Arc::clone(&apply.intent);
        let members: Vec<u32> = apply.prepared.schedule.block(block).iter().map(|work| work.action.index).collect();
        let entries =
            members.into_iter().map(|index| ProgressEntry::started(&intent, index, recorded_at.clone())).collect();
        let event = self.step(apply, |_| progress(entries)).await;
        if event == Event::Acked {
            let total = apply.prepared.schedule.works.len();
            apply.reached = apply.prepared.schedule.blocks[block].end;
            for work in apply.prepared.schedule.block(block) {
                let (index, label, verb) = (work.action.index as usize, work.label.clone(), work.action.action);
                self.tell(OperationEvent::ActionStarted { index, total, label, verb });
            }
        }
        event
    }

    /// The one place where something is changed at a provider.
    async fn mutate(&mut self, apply: &mut Apply, block: usize) -> Event {
        apply.sent_at = Instant::now();
        let lease = match (apply.ack.take(), &self.lease) {
            (Some(ack), Some(lease)) => lease.for_action(ack).ok(),
            (None, _) | (_, None) => None,
        };
        let works = apply.prepared.schedule.block(block);
        let Some(lease) = lease else {
            apply.outcomes = works.iter().map(|_| Err(ProviderFailure::Aborted { uncertain: false })).collect();
            return if self.lock_lost() { Event::Lost } else { Event::Failed };
        };
        // A first signal never stops what is in flight: only the loss of the lease does.
        let ctx = Ctx::new(Purpose::Apply, ACTION_BUDGET, CancellationToken::new());
        let providers = &apply.prepared.providers;
        let gone = || ProviderFailure::Aborted { uncertain: true };
        apply.outcomes = match (Schedule::creates(works), works) {
            (Some(topics), _) => match &providers.kafka {
                Some(kafka) => {
                    let names: Vec<String> = topics.iter().map(|topic| topic.name.clone()).collect();
                    match kafka.send(kafka::CreateTopics { lease, ctx, topics }).await {
                        Ok(outcomes) => {
                            let mut told: std::collections::HashMap<_, _> = outcomes.into_iter().collect();
                            names
                                .iter()
                                .map(|name| told.remove(name).unwrap_or_else(|| Err(gone())).map(|_| ()))
                                .collect()
                        }
                        Err(_) => names.iter().map(|_| Err(gone())).collect(),
                    }
                }
                None => works.iter().map(|_| Err(ProviderFailure::Config { field: "runtime.kafka" })).collect(),
            },
            (None, [work]) => vec![send(work, lease, ctx, providers).await],
            (None, _) => works.iter().map(|_| Err(ProviderFailure::Aborted { uncertain: false })).collect(),
        };
        if self.lock_lost() {
            return Event::Lost;
        }
        if apply.outcomes.iter().all(Result::is_ok) { Event::Applied } else { Event::Failed }
    }

    async fn complete(&mut self, apply: &mut Apply, block: usize) -> Event {
        let recorded_at = Timestamp::micros(self.now());
        let intent = Arc::clone(&apply.intent);
        let range = apply.prepared.schedule.blocks[block].clone();
        let ends: Vec<(u32, bool)> = apply.prepared.schedule.works[range.clone()]
            .iter()
            .zip(&apply.outcomes)
            .map(|(work, outcome)| (work.action.index, outcome.is_ok()))
            .collect();
        let entries = ends
            .iter()
            .map(|(index, ok)| ProgressEntry::completed(&intent, *index, *ok, recorded_at.clone()))
            .collect();
        apply.note_failures(range.clone());
        let event = self.step(apply, |_| progress(entries)).await;
        if event == Event::Acked {
            let elapsed = apply.sent_at.elapsed();
            let total = apply.prepared.schedule.works.len();
            for (work, (index, succeeded)) in apply.prepared.schedule.works[range].iter().zip(ends) {
                let (index, label, verb) = (index as usize, work.label.clone(), work.action.action);
                if succeeded {
                    apply.lists.done(verb, label.clone());
                }
                self.tell(OperationEvent::ActionFinished { index, total, label, verb, succeeded, elapsed });
            }
        }
        event
    }

    async fn mark(&mut self, apply: &mut Apply, failure_code: FailureCode) -> Event {
        let (operation_id, failed_at) = (apply.intent.operation_id, Timestamp::micros(self.now()));
        let event = self
            .step(apply, |snapshot| {
                Ok(StepKind::RecoveryRequired(RecoveryRecord {
                    operation_id,
                    failure_code,
                    failed_at,
                    last_completed_action_index: snapshot.control.control.last_completed_action_index(),
                    mutation_may_have_succeeded: true,
                }))
            })
            .await;
        if event == Event::Acked {
            self.tell(OperationEvent::RecoveryRequired { operation_id });
        }
        event
    }

    /// Ownership follows from the durable completions, from nothing else.
    async fn commit(&mut self, apply: &mut Apply) -> Event {
        let Some(snapshot) = &apply.snapshot else { return Event::StepFailed { held: true } };
        let completed = snapshot
            .control
            .control
            .progress()
            .iter()
            .filter(|entry| entry.status == ProgressStatus::Completed && entry.succeeded == Some(true))
            .map(|entry| entry.resource_id.clone())
            .collect();
        let (plan, prior) = (Arc::clone(&apply.prepared.plan), Arc::clone(&snapshot.state.state));
        let next = self.off_arbiter(move || Ok(projection::project(&prior, &plan, &completed))).await;
        let completed_at = Timestamp::micros(self.now());
        let event = self.step(apply, |_| Ok(StepKind::Commit { state: next?, completed_at })).await;
        if let (Event::Acked, Some(snapshot)) = (event, &apply.snapshot) {
            let (operation_id, state_serial) = (apply.intent.operation_id, snapshot.state.state.serial);
            self.tell(OperationEvent::Committed { operation_id, state_serial });
        }
        event
    }
}

/// What a signal left behind.
const fn interrupted_text(verdict: Verdict) -> &'static str {
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

/// The step of a run of entries; one that names no action of the intent is a defect of this program.
fn progress(entries: Option<Vec<ProgressEntry>>) -> Result<StepKind, Diagnostic> {
    entries
        .map(StepKind::Progress)
        .ok_or_else(|| Diagnostic::new(Code::E901Internal, "an action is not part of its operation"))
}

/// Sends one action that stands alone.
async fn send(
    work: &Work,
    lease: super::lease::ActionLease,
    ctx: Ctx,
    providers: &observe::Providers,
) -> Result<(), ProviderFailure> {
    fn outcome<T>(reply: Result<Result<T, ProviderFailure>, MailboxError>) -> Result<(), ProviderFailure> {
        reply.unwrap_or(Err(ProviderFailure::Aborted { uncertain: true })).map(|_| ())
    }
    const KAFKA: ProviderFailure = ProviderFailure::Config { field: "runtime.kafka" };
    const REGISTRY: ProviderFailure = ProviderFailure::Config { field: "runtime.schema_registry" };
    match work.call.clone() {
        Call::CreateTopic(topic) => {
            let kafka = providers.kafka.as_ref().ok_or(KAFKA)?;
            let outcomes = kafka.send(kafka::CreateTopics { lease, ctx, topics: Arc::from([topic]) }).await;
            let first = outcomes.ok().and_then(|outcomes| outcomes.into_iter().next());
            first.map_or(Err(ProviderFailure::Aborted { uncertain: true }), |(_, outcome)| outcome.map(|_| ()))
        }
        Call::UpdateTopic(update) => {
            let kafka = providers.kafka.as_ref().ok_or(KAFKA)?;
            outcome(kafka.send(kafka::UpdateTopic { lease, ctx, update: *update }).await)
        }
        Call::Register(call) => {
            let registry = providers.schema_registry.as_ref().ok_or(REGISTRY)?;
            let work::RegisterCall { current, artifact, planned_version, check_first } = *call;
            let message = schema_registry::Register { lease, ctx, current, artifact, planned_version, check_first };
            outcome(registry.send(message).await)
        }
        Call::SetLevel { subject, level } => {
            let registry = providers.schema_registry.as_ref().ok_or(REGISTRY)?;
            outcome(registry.send(schema_registry::SetCompatibility { lease, ctx, subject, level }).await)
        }
    }
}
