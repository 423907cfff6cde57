//! The effects of the machine: durable steps through the lock actor, and the one place where something is changed at a provider.
#![expect(clippy::disallowed_methods, reason = "measures how long an action took")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::prelude::MailboxError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::apply::Apply;
use super::driver::{Driver, lock_reply};
use super::jobs::failed_already;
use super::machine::Event;
use super::observe::Providers;
use super::work::{Call, ConnectorUpdate, JobCall, RegisterCall, Schedule, Work};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::canonical::Checksum;
use crate::messages::lock::{Acked, Observe, Step, StepKind};
use crate::messages::operation::{OperationEvent, SubmittedJob};
use crate::messages::{connect, flink, kafka, schema_registry};
use crate::planner::flink::JobId;
use crate::providers::flink::Submitted;
use crate::providers::{Ctx, ProviderFailure, Purpose};
use crate::state::control::{FailureCode, Intent, ProgressEntry, ProgressStatus, RecoveryRecord};
use crate::state::error::{StateError, StateErrorKind};
use crate::state::projection::{self, ManagedConnectorResourceDeletion};
use crate::state::scalar::Timestamp;
use crate::state::store::Snapshot;

/// Bound of one mutation, waits for its postcondition included.
const ACTION_BUDGET: Duration = Duration::from_secs(120);

/// How a step ended.
pub(super) enum Written {
    Acked(Acked),
    Failed(StateError),
    /// Nothing was sent: what was to be written has no form.
    Unformed(Diagnostic),
}

/// Notes why a step failed, and whether the lock hold can still be used. `begun`: the intent is durable.
pub(super) fn note_step_failure(errors: &mut Diagnostics, begun: bool, error: StateError) -> Event {
    let held = match error.kind {
        StateErrorKind::Unavailable
        | StateErrorKind::InvalidState
        | StateErrorKind::Conflict
        | StateErrorKind::LockTimeout
        | StateErrorKind::Interrupted
        | StateErrorKind::RecoveryRequired(_) => true,
        StateErrorKind::LockLost | StateErrorKind::UnknownCommit | StateErrorKind::ReleaseAfterCommit => false,
    };
    let diagnostic = error.diagnostic();
    match (begun, held) {
        // The store speaks of its own step; here earlier steps stand.
        (true, true) => errors.push(diagnostic.suggest(
            "the operation began and did not finish: remove the cause, then read `streamt state status`; repeat nothing until then",
        )),
        (false, true) => errors.push(diagnostic),
        // Whoever does not hold the lock any more knows nothing for sure: that comes before what a provider said.
        (_, false) => {
            let told = std::mem::replace(errors, diagnostic.into());
            errors.extend(told.into_vec());
        }
    }
    Event::StepFailed { held }
}

impl Driver {
    /// One durable step from the snapshot that the last one left; after a failed one it is read again.
    pub(super) async fn step(
        &mut self,
        apply: &mut Apply,
        kind: impl FnOnce(&Snapshot) -> Result<StepKind, Diagnostic>,
    ) -> Event {
        match self.write_step(apply.snapshot.take(), apply.intent.operation_id, kind).await {
            Written::Acked(Acked { snapshot, ack, .. }) => {
                apply.snapshot = Some(snapshot);
                apply.ack = ack;
                Event::Acked
            }
            Written::Failed(error) => note_step_failure(&mut apply.errors, apply.begun, error),
            Written::Unformed(diagnostic) => {
                apply.errors.push(diagnostic);
                Event::StepFailed { held: true }
            }
        }
    }

    /// Writes a step of an operation. `from`: none when the last step failed.
    pub(super) async fn write_step(
        &mut self,
        from: Option<Snapshot>,
        operation_id: Uuid,
        kind: impl FnOnce(&Snapshot) -> Result<StepKind, Diagnostic>,
    ) -> Written {
        let operation_id = Some(operation_id);
        let expected = match from {
            Some(snapshot) => snapshot,
            None => match lock_reply(self.lock.send(Observe).await) {
                Ok(snapshot) => snapshot,
                Err(error) => return Written::Failed(error.operation(operation_id)),
            },
        };
        let kind = match kind(&expected) {
            Ok(kind) => kind,
            Err(diagnostic) => return Written::Unformed(diagnostic),
        };
        self.seq += 1;
        let committing = matches!(kind, StepKind::Commit { .. } | StepKind::Adopt { .. });
        match self.lock.send(Step { seq: self.seq, expected, kind }).await {
            Ok(Ok(acked)) => Written::Acked(acked),
            Ok(Err(error)) => Written::Failed(error.operation(operation_id)),
            // The actor died with the step: a commit may stand.
            Err(_) if committing => Written::Failed(StateError::unknown_commit().operation(operation_id)),
            Err(_) => Written::Failed(StateError::lock_lost().operation(operation_id)),
        }
    }

    pub(super) async fn begin(&mut self, apply: &mut Apply) -> Event {
        let intent = Intent::clone(&apply.intent);
        let event = self.step(apply, |_| Ok(StepKind::Begin(intent))).await;
        if event == Event::Acked {
            let (operation_id, actions) = (apply.intent.operation_id, apply.intent.actions.len());
            apply.begun = true;
            self.tell(OperationEvent::Began { operation_id, actions });
        }
        event
    }

    pub(super) async fn start(&mut self, apply: &mut Apply, block: usize) -> Event {
        if let Some(event) = self.unsettled(apply, block).await {
            return event;
        }
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
    pub(super) async fn mutate(&mut self, apply: &mut Apply, block: usize) -> Event {
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
            (None, [work]) => {
                let sent = send(work, apply.intent.operation_id, lease, ctx, providers).await;
                vec![sent.map(|submitted| apply.submitted.extend(submitted.map(|job| (work.label.name.clone(), job))))]
            }
            (None, _) => works.iter().map(|_| Err(ProviderFailure::Aborted { uncertain: false })).collect(),
        };
        if self.lock_lost() {
            return Event::Lost;
        }
        if apply.outcomes.iter().all(Result::is_ok) { Event::Applied } else { Event::Failed }
    }

    pub(super) async fn complete(&mut self, apply: &mut Apply, block: usize) -> Event {
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
        for (name, job) in std::mem::take(&mut apply.submitted) {
            self.warnings.extend(failed_already(&name, &job));
            apply.lists.jobs.push(SubmittedJob { name, id: job.id, state: job.state });
        }
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

    pub(super) async fn mark(&mut self, apply: &mut Apply, failure_code: FailureCode) -> Event {
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
    pub(super) async fn commit(&mut self, apply: &mut Apply) -> Event {
        let Some(snapshot) = &apply.snapshot else { return Event::StepFailed { held: true } };
        let completed = snapshot
            .control
            .control
            .progress()
            .iter()
            .filter(|entry| entry.status == ProgressStatus::Completed && entry.succeeded == Some(true))
            .map(|entry| entry.resource_id.clone())
            .collect();
        let deletions = ManagedConnectorResourceDeletion::completed(&snapshot.control.control);
        let (plan, prior) = (Arc::clone(&apply.prepared.plan), Arc::clone(&snapshot.state.state));
        let next = self
            .off_arbiter(move || {
                projection::project(&prior, &plan, &completed, &deletions).map_err(|error| error.diagnostic())
            })
            .await;
        let completed_at = Timestamp::micros(self.now());
        let event = self.step(apply, |_| Ok(StepKind::Commit { state: next?, completed_at })).await;
        if let (Event::Acked, Some(snapshot)) = (event, &apply.snapshot) {
            let (operation_id, state_serial) = (apply.intent.operation_id, snapshot.state.state.serial);
            self.tell(OperationEvent::Committed { operation_id, state_serial });
        }
        event
    }
}

/// The step of a run of entries; one that names no action of the intent is a defect of this program.
fn progress(entries: Option<Vec<ProgressEntry>>) -> Result<StepKind, Diagnostic> {
    entries
        .map(StepKind::Progress)
        .ok_or_else(|| Diagnostic::new(Code::E901Internal, "an action is not part of its operation"))
}

/// Sends one action that stands alone; a job that was submitted comes back.
async fn send(
    work: &Work,
    operation_id: Uuid,
    lease: crate::actors::lease::ActionLease,
    ctx: Ctx,
    providers: &Providers,
) -> Result<Option<Submitted>, ProviderFailure> {
    fn outcome<T>(
        reply: Result<Result<T, ProviderFailure>, MailboxError>,
    ) -> Result<Option<Submitted>, ProviderFailure> {
        reply.unwrap_or(Err(ProviderFailure::Aborted { uncertain: true })).map(|_| None)
    }
    const KAFKA: ProviderFailure = ProviderFailure::Config { field: "runtime.kafka" };
    const REGISTRY: ProviderFailure = ProviderFailure::Config { field: "runtime.schema_registry" };
    const FLINK: ProviderFailure = ProviderFailure::Config { field: "runtime.flink" };
    const CONNECT: ProviderFailure = ProviderFailure::Config { field: "runtime.connect" };
    match work.call.clone() {
        Call::CreateTopic(topic) => {
            let kafka = providers.kafka.as_ref().ok_or(KAFKA)?;
            let outcomes = kafka.send(kafka::CreateTopics { lease, ctx, topics: Arc::from([topic]) }).await;
            let first = outcomes.ok().and_then(|outcomes| outcomes.into_iter().next());
            first.map_or(Err(ProviderFailure::Aborted { uncertain: true }), |(_, outcome)| outcome.map(|_| None))
        }
        Call::UpdateTopic(update) => {
            let kafka = providers.kafka.as_ref().ok_or(KAFKA)?;
            outcome(kafka.send(kafka::UpdateTopic { lease, ctx, update: *update }).await)
        }
        Call::Register(call) => {
            let registry = providers.schema_registry.as_ref().ok_or(REGISTRY)?;
            let RegisterCall { current, artifact, planned_version, check_first } = *call;
            let message = schema_registry::Register { lease, ctx, current, artifact, planned_version, check_first };
            outcome(registry.send(message).await)
        }
        Call::SetLevel { subject, level } => {
            let registry = providers.schema_registry.as_ref().ok_or(REGISTRY)?;
            outcome(registry.send(schema_registry::SetCompatibility { lease, ctx, subject, level }).await)
        }
        Call::SubmitJob(call) => {
            let JobCall { artifact, cluster, budget, confidential } = *call;
            let cluster = providers.flink.get(&cluster).ok_or(FLINK)?;
            let checksum = Checksum::of(&artifact).ok();
            let id =
                checksum.and_then(|sum| JobId::of_action(&operation_id.to_string(), &work.action.resource_id, &sum));
            let id = id.ok_or(ProviderFailure::Unsupported { what: "a job without a canonical form" })?;
            let ctx = Ctx::new(ctx.purpose, budget, ctx.cancel);
            let reply = cluster.send(flink::SubmitJob { lease, ctx, artifact, id }).await;
            let mut submitted = reply.unwrap_or(Err(ProviderFailure::Aborted { uncertain: true }))?;
            submitted.failure = submitted.failure.map(|why| if confidential { why.without_values() } else { why });
            Ok(Some(submitted))
        }
        Call::CreateConnector(artifact) => {
            let workers = providers.connect.as_ref().ok_or(CONNECT)?;
            outcome(workers.send(connect::CreateConnector { lease, ctx, artifact: *artifact }).await)
        }
        Call::UpdateConnector(update) => {
            let workers = providers.connect.as_ref().ok_or(CONNECT)?;
            let ConnectorUpdate { current, artifact } = *update;
            outcome(workers.send(connect::UpdateConnector { lease, ctx, current, artifact }).await)
        }
        // It is started: whatever is not the proved absence leaves the outcome open.
        Call::DeleteConnector(current) => {
            let workers = providers.connect.as_ref().ok_or(ProviderFailure::RemovalDrift)?;
            match workers.send(connect::DeleteManaged { lease, ctx, current: *current }).await {
                Ok(outcome) => outcome.map(|_| None),
                Err(_) => Err(ProviderFailure::Aborted { uncertain: true }),
            }
        }
    }
}
