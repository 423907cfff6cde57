//! The lock actor: one per state address and lock hold. It alone opens a lease and it alone writes durable steps; its table of
//! states is in `machine`. It never blocks its arbiter, is never restarted, and its end is a lost lock.
#![expect(clippy::disallowed_methods, reason = "the heartbeat is a task of the actor")]

pub(crate) mod hold;
pub mod lease;
mod machine;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, AtomicResponse, Context, Handler, Message, Recipient, WeakAddr,
    WrapFuture,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::hold::{Backend, Heartbeat, Shared, Written};
use self::lease::{ActionKey, HEARTBEAT, HEARTBEAT_TIMEOUT, LeaseCore, Lost, MutationLease, ProgressAck, ProofAt};
use self::machine::{Effect, Event, Refusal, State, StepEnd, transition};
use crate::messages::lock::{
    Acked, Acquire, Check, EnsureReady, Held, LockLost, Observe, Release, ResolutionOf, Step, StepKind, Subscribe,
};
use crate::state::control::{ProgressEntry, ProgressStatus, ResolutionRecord};
use crate::state::error::{StateError, StateErrorKind};
use crate::state::model::StateAddress;
use crate::state::store::Snapshot;

const MAILBOX: usize = 8;

pub struct LockActor {
    backend: Arc<dyn Backend>,
    address: StateAddress,
    epoch: u64,
    state: State,
    core: Option<Arc<LeaseCore>>,
    hold: Option<Shared>,
    /// Ends the wait for the lock when the actor goes away.
    give_up: CancellationToken,
    heartbeat: Option<JoinHandle<()>>,
    subscribers: Vec<Recipient<LockLost>>,
    lost: Option<LockLost>,
}

impl LockActor {
    /// `epoch` is unique in its runtime.
    pub(crate) fn new(backend: Arc<dyn Backend>, address: StateAddress, epoch: u64) -> Self {
        Self {
            backend,
            address,
            epoch,
            state: State::Idle,
            core: None,
            hold: None,
            give_up: CancellationToken::new(),
            heartbeat: None,
            subscribers: Vec::new(),
            lost: None,
        }
    }

    /// Moves to the next state and runs the effects that wait for nothing; the others are returned for the handler to run.
    fn on(&mut self, event: Event, context: &mut Context<Self>) -> Vec<Effect> {
        let (next, effects) = transition(self.state, event);
        tracing::trace!(address = %self.address, epoch = self.epoch, ?event, from = ?self.state, to = ?next, "lock");
        self.state = next;
        let mut rest = Vec::new();
        for effect in effects {
            match effect {
                Effect::CloseLease(why) => self.close(why),
                Effect::PublishLost => self.publish_lost(),
                Effect::StartProofs => self.start_proofs(context.address().downgrade()),
                Effect::OpenLease
                | Effect::TakeLock
                | Effect::RunRead
                | Effect::RunStep
                | Effect::Unlock
                | Effect::Refuse(_) => rest.push(effect),
            }
        }
        rest
    }

    fn close(&mut self, why: Lost) {
        if let Some(core) = &self.core {
            core.close(why);
        }
        if let Some(heartbeat) = self.heartbeat.take() {
            heartbeat.abort();
        }
    }

    fn publish_lost(&mut self) {
        let reason = self.core.as_ref().and_then(|core| core.reason()).unwrap_or(Lost::ActorGone);
        let lost = LockLost { epoch: self.epoch, reason };
        tracing::error!(address = %self.address, epoch = self.epoch, ?reason, "lock lost");
        self.lost = Some(lost);
        for subscriber in &self.subscribers {
            subscriber.do_send(lost);
        }
    }

    /// The heartbeat runs beside the actor, never inside its context, so that a pending step cannot stop it; and it does not
    /// keep the actor alive.
    fn start_proofs(&mut self, actor: WeakAddr<Self>) {
        if let (Some(core), Some(hold)) = (&self.core, &self.hold) {
            self.heartbeat = Some(actix::spawn(beat(Arc::clone(core), hold.clone(), actor)));
        }
    }

    fn proved(&self, proof: ProofAt) {
        if let Some(core) = &self.core {
            core.proved(proof);
        }
    }

    fn refused(&self, effects: &[Effect]) -> Option<StateError> {
        effects.iter().find_map(|effect| match effect {
            Effect::Refuse(Refusal::LockLost) => Some(StateError::lock_lost()),
            Effect::Refuse(Refusal::CommittedNotReleased) => Some(StateError::new(StateErrorKind::ReleaseAfterCommit)),
            Effect::CloseLease(_)
            | Effect::PublishLost
            | Effect::StartProofs
            | Effect::OpenLease
            | Effect::TakeLock
            | Effect::RunRead
            | Effect::RunStep
            | Effect::Unlock => None,
        })
    }

    /// A read of the held store; one that finds the lock gone ends the hold.
    fn read<T: Send + 'static>(
        &mut self,
        context: &mut Context<Self>,
        work: impl FnOnce(&mut dyn hold::Operation) -> Result<T, StateError> + Send + 'static,
    ) -> AtomicResponse<Self, Result<T, StateError>> {
        let effects = self.on(Event::Read, context);
        let hold = match (self.refused(&effects), &self.hold) {
            (None, Some(hold)) => hold.clone(),
            (refusal, _) => return answer(self, Err(refusal.unwrap_or_else(StateError::lock_lost))),
        };
        let job = async move {
            hold.run(StateErrorKind::LockLost, |operation| {
                let proof = hold::prove(operation)?;
                Ok((work(operation)?, proof))
            })
            .await
        };
        AtomicResponse::new(Box::pin(job.into_actor(self).map(|outcome, actor, context| match outcome {
            Ok((value, proof)) => {
                actor.proved(proof);
                Ok(value)
            }
            Err(error) => {
                if error.kind == StateErrorKind::LockLost {
                    actor.on(Event::ReadLost, context);
                }
                Err(error)
            }
        })))
    }
}

fn answer<T: 'static>(actor: &LockActor, outcome: T) -> AtomicResponse<LockActor, T> {
    AtomicResponse::new(Box::pin(async { outcome }.into_actor(actor)))
}

/// Proves the lock again and again. Whoever finds it lost closes the lease before anybody is told.
async fn beat(core: Arc<LeaseCore>, hold: Shared, actor: WeakAddr<LockActor>) {
    while core.is_open() {
        tokio::time::sleep(HEARTBEAT).await;
        let asked = ProofAt::now();
        match hold.heartbeat(HEARTBEAT_TIMEOUT).await {
            Heartbeat::Proved => {
                tracing::trace!("heartbeat: the lock is proved");
                core.proved(asked);
            }
            Heartbeat::Busy => tracing::trace!("heartbeat: a step is using the hold"),
            Heartbeat::Lost => {
                core.close(Lost::ProofFailed);
                if let Some(actor) = actor.upgrade() {
                    actor.do_send(Unproved(Lost::ProofFailed));
                }
                return;
            }
        }
    }
}

/// For a store that sees its session end: it closes the lease on the spot, and only then tells the actor.
fn on_end(core: Arc<LeaseCore>, actor: WeakAddr<LockActor>) -> Box<dyn FnOnce() + Send> {
    Box::new(move || {
        core.close(Lost::SessionEnded);
        if let Some(actor) = actor.upgrade() {
            actor.do_send(Unproved(Lost::SessionEnded));
        }
    })
}

/// From whoever found the lock lost to its actor; the lease is closed already.
#[derive(Message)]
#[rtype(result = "()")]
struct Unproved(Lost);

impl Actor for LockActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Drop for LockActor {
    fn drop(&mut self) {
        self.give_up.cancel();
        self.close(Lost::ActorGone);
    }
}

impl Handler<Acquire> for LockActor {
    type Result = AtomicResponse<Self, Result<Held, StateError>>;

    fn handle(&mut self, message: Acquire, context: &mut Self::Context) -> Self::Result {
        let effects = self.on(Event::Acquire, context);
        if let Some(refusal) = self.refused(&effects) {
            return answer(self, Err(refusal));
        }
        let (backend, address) = (Arc::clone(&self.backend), self.address.clone());
        let (give_up, gone) = (message.give_up.child_token(), self.give_up.clone());
        let waiting = give_up.clone();
        let job = tokio::task::spawn_blocking(move || {
            let mut operation = backend.acquire(&address, message.timeout, &waiting)?;
            let snapshot = operation.observe()?;
            let proof = hold::prove(operation.as_mut())?;
            Ok::<_, StateError>((operation, snapshot, proof))
        });
        let job = async move {
            let _end = give_up.clone().drop_guard();
            tokio::select! {
                biased;
                () = gone.cancelled() => Err(StateError::new(StateErrorKind::Interrupted)),
                outcome = job => outcome.unwrap_or_else(|_| Err(StateError::unavailable("its store failed unexpectedly"))),
            }
        };
        AtomicResponse::new(Box::pin(job.into_actor(self).map(|outcome, actor, context| match outcome {
            Ok((mut operation, snapshot, proof)) => {
                let core = LeaseCore::open(actor.epoch, proof);
                operation.watch(on_end(Arc::clone(&core), context.address().downgrade()));
                actor.core = Some(Arc::clone(&core));
                actor.hold = Some(Shared::new(operation));
                actor.on(Event::Taken, context);
                Ok(Held { epoch: actor.epoch, lease: MutationLease::new(core), snapshot })
            }
            Err(error) => {
                actor.on(Event::NotTaken, context);
                Err(error)
            }
        })))
    }
}

impl Handler<Observe> for LockActor {
    type Result = AtomicResponse<Self, Result<Snapshot, StateError>>;

    fn handle(&mut self, _: Observe, context: &mut Self::Context) -> Self::Result {
        self.read(context, |operation| operation.observe())
    }
}

impl Handler<EnsureReady> for LockActor {
    type Result = AtomicResponse<Self, Result<(), StateError>>;

    fn handle(&mut self, EnsureReady(snapshot): EnsureReady, context: &mut Self::Context) -> Self::Result {
        self.read(context, move |operation| operation.ensure_ready(&snapshot))
    }
}

impl Handler<Check> for LockActor {
    type Result = AtomicResponse<Self, Result<ProofAt, StateError>>;

    fn handle(&mut self, _: Check, context: &mut Self::Context) -> Self::Result {
        self.read(context, hold::prove)
    }
}

impl Handler<ResolutionOf> for LockActor {
    type Result = AtomicResponse<Self, Result<Option<ResolutionRecord>, StateError>>;

    fn handle(&mut self, ResolutionOf(id): ResolutionOf, context: &mut Self::Context) -> Self::Result {
        self.read(context, move |operation| operation.resolution(id))
    }
}

impl Handler<Step> for LockActor {
    type Result = AtomicResponse<Self, Result<Acked, StateError>>;

    fn handle(&mut self, message: Step, context: &mut Self::Context) -> Self::Result {
        let effects = self.on(Event::Step, context);
        let (hold, core) = match (self.refused(&effects), &self.hold, &self.core) {
            (None, Some(hold), Some(core)) => (hold.clone(), Arc::clone(core)),
            (refusal, _, _) => return answer(self, Err(refusal.unwrap_or_else(StateError::lock_lost))),
        };
        let Step { seq, expected, kind } = message;
        tracing::debug!(address = %self.address, seq, step = kind.name(), "writes a durable step");
        let started = started(&kind);
        let operation_id = expected.control.control.operation_id();
        let job = async move {
            hold.run(StateErrorKind::UnknownCommit, move |operation| hold::write(operation, expected, kind))
                .await
                .map_err(|error| error.operation(operation_id))
        };
        AtomicResponse::new(Box::pin(job.into_actor(self).map(move |outcome, actor, context| {
            let (end, reply) = match outcome {
                Ok(Written { snapshot, commits, proof: Ok(proof) }) => {
                    core.proved(proof);
                    let ack = started.map(|key| ProgressAck::new(&core, key));
                    let end = if commits { StepEnd::Committed } else { StepEnd::Acked };
                    (end, Ok(Acked { seq, snapshot, ack }))
                }
                Ok(Written { commits: true, proof: Err(error), .. }) => {
                    let committed = StateError::new(StateErrorKind::ReleaseAfterCommit).operation(error.operation_id);
                    (StepEnd::CommittedLost, Err(committed))
                }
                Ok(Written { commits: false, proof: Err(error), .. }) => (StepEnd::Lost, Err(error)),
                Err(error) => (end_of(&error), Err(error)),
            };
            actor.on(Event::StepEnded(end), context);
            reply
        })))
    }
}

/// The action or group whose `started` entries a step writes.
fn started(kind: &StepKind) -> Option<ActionKey> {
    let StepKind::Progress(entries) = kind else { return None };
    let (first, last) = (entries.first()?, entries.last()?);
    let begins = |entry: &ProgressEntry| match entry.status {
        ProgressStatus::Started => true,
        ProgressStatus::Checkpoint | ProgressStatus::Completed => false,
    };
    entries.iter().all(begins).then_some(ActionKey {
        operation_id: first.operation_id,
        first: first.action_index,
        last: last.action_index,
    })
}

/// Whether the hold can still be used after a step that failed.
fn end_of(error: &StateError) -> StepEnd {
    match error.kind {
        StateErrorKind::Unavailable
        | StateErrorKind::InvalidState
        | StateErrorKind::Conflict
        | StateErrorKind::LockTimeout
        | StateErrorKind::Interrupted
        | StateErrorKind::RecoveryRequired(_) => StepEnd::Refused,
        StateErrorKind::LockLost | StateErrorKind::UnknownCommit => StepEnd::Lost,
        StateErrorKind::ReleaseAfterCommit => StepEnd::CommittedLost,
    }
}

impl Handler<Release> for LockActor {
    type Result = AtomicResponse<Self, Result<(), StateError>>;

    fn handle(&mut self, _: Release, context: &mut Self::Context) -> Self::Result {
        let effects = self.on(Event::Release, context);
        let hold = match (self.refused(&effects), self.hold.take()) {
            (None, Some(hold)) => hold,
            (refusal, _) => return answer(self, Err(refusal.unwrap_or_else(StateError::lock_lost))),
        };
        let job = async move { hold.release().await };
        AtomicResponse::new(Box::pin(job.into_actor(self).map(|outcome, actor, context| {
            actor.on(if outcome.is_ok() { Event::Unlocked } else { Event::NotUnlocked }, context);
            context.stop();
            outcome
        })))
    }
}

impl Handler<Subscribe> for LockActor {
    type Result = ();

    fn handle(&mut self, Subscribe(subscriber): Subscribe, _: &mut Self::Context) {
        if let Some(lost) = self.lost {
            subscriber.do_send(lost);
        }
        self.subscribers.push(subscriber);
    }
}

impl Handler<Unproved> for LockActor {
    type Result = ();

    fn handle(&mut self, Unproved(why): Unproved, context: &mut Self::Context) {
        self.on(Event::Unproved(why), context);
    }
}
