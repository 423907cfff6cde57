//! The way out of a blocked operation: evidence under the lock, then, after a review, its end under another lock hold. No lease
//! is ever used here: nothing is sent to a provider but reads.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::driver::{Driver, lock_reply};
use super::gates::{Stop, interrupted};
use super::jobs::arriving_until;
use super::machine::Event;
use super::targets::{Asker, observe};
use crate::codes::{Code, Diagnostic};
use crate::compiler::Compiled;
use crate::messages::lock::{Acked, ResolutionOf, Step, StepKind};
use crate::messages::operation::Reload;
use crate::messages::recovery::{RecoverRequest, Recovered, RecoveryFailure, RecoveryPlanRequest, RecoveryPlanned};
use crate::planner::Desired;
use crate::planner::observation::Observations;
use crate::providers::{Ctx, Purpose};
use crate::state::control::{AcceptedAs, Intent, Resolution, ResolutionRecord};
use crate::state::error::{StateError, StateErrorKind};
use crate::state::model::BackendKind;
use crate::state::plan_file::environment_fingerprint;
use crate::state::recovery::{Assessment, Proof, Questions, classify, prove, questions};
use crate::state::recovery_plan::{self, Basis, RecoveryPlan};
use crate::state::scalar::Timestamp;
use crate::state::store::Snapshot;

/// Bound of one observation of all targets.
const OBSERVE_BUDGET: Duration = Duration::from_secs(120);

/// Why there is no evidence or no resolution.
enum Refusal {
    Stop(Stop),
    /// E409 with how every target stands.
    Targets(Diagnostic, Vec<Assessment>),
}

impl<T: Into<Stop>> From<T> for Refusal {
    fn from(stop: T) -> Self {
        Self::Stop(stop.into())
    }
}

/// What a recovery left.
struct Ended {
    snapshot: Snapshot,
    state_changed: bool,
    already: bool,
}

impl Driver {
    pub(super) async fn plan_recovery(
        mut self,
        request: RecoveryPlanRequest,
    ) -> Result<RecoveryPlanned, RecoveryFailure> {
        let snapshot = self.recovery_lock().await?;
        let operation_id = snapshot.control.control.operation_id();
        let path = request.out.clone();
        let made = self.evidence(request, &snapshot).await;
        match (made, self.give_back().await) {
            (Ok(plan), Ok(())) => Ok(RecoveryPlanned { plan, path, warnings: self.warnings }),
            (Ok(_), Err(error)) => {
                let mut failed = self.recovery_failure(error.into(), operation_id);
                failed.failure.saved = Some(path);
                Err(failed)
            }
            (Err(refusal), released) => Err(self.refused_recovery(refusal, released, operation_id)),
        }
    }

    pub(super) async fn recover(mut self, request: RecoverRequest) -> Result<Recovered, RecoveryFailure> {
        let snapshot = self.recovery_lock().await?;
        let operation_id = Some(request.plan.blocked_operation_id());
        let ended = self.resolve(request, snapshot).await;
        match (ended, self.give_back().await) {
            (Ok(ended), Ok(())) => Ok(Recovered {
                state: self.facts(&ended.snapshot),
                state_changed: ended.state_changed,
                already: ended.already,
                warnings: self.warnings,
            }),
            (Ok(Ended { already, .. }), Err(error)) => {
                let error = if already { error } else { StateError::new(StateErrorKind::ReleaseAfterCommit) };
                Err(self.recovery_failure(error.into(), operation_id))
            }
            (Err(refusal), released) => Err(self.refused_recovery(refusal, released, operation_id)),
        }
    }

    async fn recovery_lock(&mut self) -> Result<Snapshot, RecoveryFailure> {
        match self.acquire().await {
            Ok(snapshot) => Ok(snapshot),
            Err(stop) => {
                let _ = self.walk(Event::NotHeld, None).await;
                Err(self.recovery_failure(stop.into(), None))
            }
        }
    }

    /// The machine of an operation knows this walk as one that only looked: it gives the lock back and nothing else.
    async fn give_back(&mut self) -> Result<(), StateError> {
        let last = if self.lock_lost() { Event::NotHeld } else { Event::Enough };
        self.walk(last, None).await.1
    }

    fn refused_recovery(
        &self,
        refusal: Refusal,
        released: Result<(), StateError>,
        operation_id: Option<Uuid>,
    ) -> RecoveryFailure {
        let mut failed = self.recovery_failure(refusal, operation_id);
        failed.failure.diagnostics.extend(released.err().map(|error| error.diagnostic()));
        failed
    }

    fn recovery_failure(&self, refusal: Refusal, operation_id: Option<Uuid>) -> RecoveryFailure {
        let (diagnostics, targets) = match refusal {
            Refusal::Stop(stop) => (stop.diagnostics(), Vec::new()),
            Refusal::Targets(diagnostic, targets) => (diagnostic.into(), targets),
        };
        let any = |code| diagnostics.iter().any(|one| one.code == code);
        let committed = match any(Code::E426StateReleaseFailedAfterCommit) {
            true => Some(true),
            false if any(Code::E425StateUnknownOutcome) || any(Code::E423StateLockLost) => None,
            false => Some(false),
        };
        RecoveryFailure { failure: self.failure(diagnostics), targets, operation_id, committed }
    }

    async fn evidence(
        &mut self,
        request: RecoveryPlanRequest,
        snapshot: &Snapshot,
    ) -> Result<Arc<RecoveryPlan>, Refusal> {
        let control = &snapshot.control.control;
        let Some(intent) = control.intent().cloned() else { return Err(nothing_pending().into()) };
        if request.resolution.observes() && intent.runner_evidence().is_some() {
            return Err(resumed_only(intent.operation_id).into());
        }
        in_its_store(snapshot)?;
        self.warn_of_local_state();
        self.proceed()?;
        let proof = match request.resolution.observes() {
            true => {
                let compiled = self.compile(request.compile, snapshot).await?;
                let proof = self.observe_targets(&compiled, &intent, snapshot, request.resolution).await?;
                Some((proof, basis(&compiled)?))
            }
            false if control.is_unstarted() => None,
            false => return Err(abandonment_refused(intent.operation_id).into()),
        };
        self.unchanged(snapshot).await?;
        let (snapshot, path, resolution) = (snapshot.clone(), request.out, request.resolution);
        let plan = self
            .off_arbiter(move || {
                let plan = RecoveryPlan::of(&snapshot, resolution, Uuid::new_v4(), proof)?;
                recovery_plan::write(&path, &plan)?;
                Ok(Arc::new(plan))
            })
            .await?;
        Ok(plan)
    }

    async fn resolve(&mut self, request: RecoverRequest, snapshot: Snapshot) -> Result<Ended, Refusal> {
        let plan = request.plan;
        if (&plan.store, &plan.address) != (&snapshot.state.store, &snapshot.state.address) {
            return Err(stale("the recovery plan was made for another store or address").into());
        }
        self.warn_of_local_state();
        if snapshot.control.control.is_clear() {
            return self.resolved_before(&plan, snapshot).await;
        }
        if *snapshot.control.control.checksum() != *plan.control.checksum() {
            return Err(stale("another operation is pending, or it went on after the recovery plan was made").into());
        }
        in_its_store(&snapshot)?;
        if (snapshot.state.state.serial, &snapshot.state.checksum) != (plan.state.serial, &plan.state_checksum) {
            return Err(stale("ownership changed after the recovery plan was made").into());
        }
        if plan.resolution.observes() {
            self.observe_again(&plan, request.compile, &snapshot).await?;
        }
        let snapshot = self.unchanged(&snapshot).await?;
        let intent = plan.intent(Timestamp::micros(self.now()))?;
        let state = plan.next_state().cloned();
        let state_changed = state.is_some();
        self.seq += 1;
        let kind = StepKind::FinalizeRecovery { intent, state };
        let blocked = Some(plan.blocked_operation_id());
        match self.lock.send(Step { seq: self.seq, expected: snapshot, kind }).await {
            Ok(Ok(Acked { snapshot, .. })) => Ok(Ended { snapshot, state_changed, already: false }),
            // The id that `state status` shows while the marker stands, not that of the recovery.
            Ok(Err(mut error)) => {
                error.operation_id = blocked;
                Err(error.into())
            }
            Err(_) => Err(StateError::unknown_commit().operation(blocked).into()),
        }
    }

    /// The same recovery once more: the history answers, and no provider is asked (REC-004).
    async fn resolved_before(&self, plan: &RecoveryPlan, snapshot: Snapshot) -> Result<Ended, Refusal> {
        let archived = lock_reply(self.lock.send(ResolutionOf(plan.recovery_operation_id)).await)?;
        let Some(record) = archived.filter(|record| plan.was_carried_out_by(record)) else {
            return Err(nothing_pending().into());
        };
        if !leaves(&record, &snapshot) {
            let text = "this recovery was completed before, and ownership has changed since";
            return Err(stale(text).into());
        }
        Ok(Ended { snapshot, state_changed: record.state_changed, already: true })
    }

    /// Everything that was reviewed, judged again: the project, every target, the candidate state (REC-032, REC-033).
    async fn observe_again(
        &mut self,
        plan: &RecoveryPlan,
        compile: Reload,
        snapshot: &Snapshot,
    ) -> Result<(), Refusal> {
        let compiled = self.compile(compile, snapshot).await?;
        let now = basis(&compiled)?;
        if let Some(reviewed) = plan.basis.as_ref().filter(|reviewed| **reviewed != now) {
            let what = match reviewed.manifest_checksum == now.manifest_checksum {
                true => "the runtime configuration of the environment",
                false => "the project",
            };
            return Err(stale(&format!("{what} changed after the recovery plan was made")).into());
        }
        let Some(intent) = snapshot.control.control.intent().cloned() else { return Err(nothing_pending().into()) };
        let proof = self.observe_targets(&compiled, &intent, snapshot, plan.resolution).await?;
        if proof.targets != plan.targets {
            let moved = proof.targets.iter().zip(&plan.targets).filter(|(now, then)| now != then).count();
            return Err(stale(&format!("{moved} targets changed after the recovery plan was made")).into());
        }
        if proof.candidate != plan.candidate {
            return Err(stale("the ownership that would be recorded now is not the reviewed one").into());
        }
        Ok(())
    }

    fn warn_of_local_state(&mut self) {
        self.warnings.extend(self.local_state_only());
    }

    async fn compile(&self, compile: Reload, snapshot: &Snapshot) -> Result<Arc<Compiled>, Refusal> {
        let compiled = tokio::task::spawn_blocking(compile)
            .await
            .unwrap_or_else(|_| {
                Err(Diagnostic::new(Code::E901Internal, "reading the project ended unexpectedly").into())
            })
            .map_err(Stop::Failed)?;
        let (project, address) = (&compiled.project, &snapshot.state.address);
        if project.name != address.project || project.environment.name != address.environment {
            return Err(stale("the project was renamed while the command was waiting for the lock").into());
        }
        self.proceed()?;
        Ok(compiled)
    }

    /// Observes every target and accepts only what stood still and proves the resolution. A topic and a subject are read in
    /// several requests, so they are read twice (REC-015); a connector is one answer, and is asked for once (REC-020).
    async fn observe_targets(
        &self,
        compiled: &Arc<Compiled>,
        intent: &Arc<Intent>,
        snapshot: &Snapshot,
        resolution: Resolution,
    ) -> Result<Proof, Refusal> {
        if let Some(until) = arriving_until(intent, snapshot.control.control.progress(), self.now()) {
            return Err(still_arriving(until).into());
        }
        let prior = Arc::clone(&snapshot.state.state);
        let asked = questions(intent, &prior, &Desired::of(compiled));
        let observations = match asked {
            None => Observations::default(),
            Some(asked) => {
                let first = self.ask(compiled, &asked).await?;
                let again = self.ask(compiled, &Questions { connectors: Vec::new(), ..asked }).await?;
                if (&again.topics, &again.subjects) != (&first.topics, &first.subjects) {
                    return Err(stale("targets changed while they were read").into());
                }
                first
            }
        };
        let (compiled, intent) = (Arc::clone(compiled), Arc::clone(intent));
        let control = snapshot.control.control.clone();
        let judged = self
            .off_arbiter(move || {
                let desired = Desired::of(&compiled);
                let targets = classify(&intent, &prior, &desired, &observations, control.progress());
                Ok(prove(resolution, &prior, targets))
            })
            .await?;
        judged.map_err(|targets| Refusal::Targets(unproved(resolution, &targets), targets))
    }

    async fn ask(&self, compiled: &Compiled, asked: &Questions) -> Result<Observations, Refusal> {
        let reads = &self.reads;
        let ctx = Ctx::new(Purpose::Recover, OBSERVE_BUDGET, reads.clone());
        match observe(compiled, &self.providers, asked, &ctx, Asker::Recovery, |event| self.tell(event)).await {
            Ok(observations) => {
                self.proceed()?;
                Ok(observations)
            }
            Err(error) => {
                self.proceed()?;
                if reads.is_cancelled() { Err(interrupted().into()) } else { Err(error.into()) }
            }
        }
    }
}

fn basis(compiled: &Compiled) -> Result<Basis, Diagnostic> {
    let project = &compiled.project;
    Ok(Basis {
        environment_fingerprint: environment_fingerprint(&project.environment.name, project.runtime_document.expose())?,
        manifest_checksum: compiled.manifest_checksum.clone(),
    })
}

fn leaves(record: &ResolutionRecord, snapshot: &Snapshot) -> bool {
    (record.result_state_serial, &record.result_state_checksum)
        == (snapshot.state.state.serial, &snapshot.state.checksum)
}

/// A job that was sent can still come: its absence would prove nothing.
fn still_arriving(until: jiff::Timestamp) -> Diagnostic {
    let until = Timestamp::seconds(until);
    let text = format!("a Flink job of the blocked operation can still arrive until {}", until.as_str());
    Diagnostic::new(Code::E409PlanStale, text).suggest("the marker stands; run the command again after that time")
}

fn nothing_pending() -> Diagnostic {
    Diagnostic::new(Code::E419StateRecoveryRequired, "no operation of this environment is unfinished")
        .suggest("read `streamt state status`; there is nothing to recover")
}

fn abandonment_refused(operation_id: Uuid) -> Diagnostic {
    Diagnostic::new(
        Code::E419StateRecoveryRequired,
        "an action of the operation was started, so it cannot be resolved as abandoned_before_mutation",
    )
    .operation(operation_id)
    .suggest("plan with `--resolution observed`, or `rolled_back` when every target stands as before")
}

/// Before any provider is asked: what a runner is in the middle of is decided boundary by boundary, never by how it looks.
fn resumed_only(operation_id: Uuid) -> Diagnostic {
    Diagnostic::new(
        Code::E419StateRecoveryRequired,
        "the operation replaces a Kafka Streams runner, which this version of streamt can neither resume nor recover",
    )
    .operation(operation_id)
    .suggest(
        "end it with the streamt that began it; if no action was started, `--resolution abandoned_before_mutation`",
    )
}

/// E411: a connector is deleted, and its deletion ended, with PostgreSQL state alone, so nobody began this one here (REC-039).
fn in_its_store(snapshot: &Snapshot) -> Result<(), Diagnostic> {
    let Some(intent) = snapshot.control.control.intent() else { return Ok(()) };
    let deletes = intent.actions.iter().any(|action| action.connector_evidence.is_some());
    if snapshot.state.store.backend != BackendKind::Local || !deletes {
        return Ok(());
    }
    let text = "the operation deletes a connector, which local state can neither begin nor end";
    let error = Diagnostic::new(Code::E411StateInvalid, text).operation(intent.operation_id);
    Err(error
        .suggest("recover it with the PostgreSQL state that it was begun under; never copy a control between stores"))
}

fn stale(text: &str) -> Diagnostic {
    Diagnostic::new(Code::E409PlanStale, text.to_owned())
        .suggest("the marker stands; find out what changed, then make and review a new recovery plan")
}

fn unproved(resolution: Resolution, targets: &[Assessment]) -> Diagnostic {
    let open = targets.iter().filter(|target| target.accepted_as.is_none()).count();
    if open > 0 {
        let first = targets.iter().find(|target| target.accepted_as.is_none());
        let first = first.map_or_else(String::new, |target| {
            let reason = target.reason.map_or("", |reason| reason.as_str());
            format!("; the first: {} ({reason})", target.action.resource_id)
        });
        let text = format!("{open} of {} targets stand neither as before nor as intended{first}", targets.len());
        return Diagnostic::new(Code::E409PlanStale, text).suggest(
            "the marker stands; bring each of them to exactly its declared or exactly its former form with the service's own \
             tools, then run the command again",
        );
    }
    let done = targets.iter().filter(|target| target.accepted_as == Some(AcceptedAs::Candidate)).count();
    let text = format!("{done} of {} targets stand as intended, so the operation is not {resolution}", targets.len());
    Diagnostic::new(Code::E409PlanStale, text).suggest("plan with `--resolution observed`: it takes any mix")
}
