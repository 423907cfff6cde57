//! The operation of an adoption, from its durable intent to its commit, by the machine of every operation.
#![expect(clippy::disallowed_methods, reason = "measures how long an operation took")]

use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use crate::actors::coordinator::apply::known_commit;
use crate::actors::coordinator::driver::{Driver, interrupted_text};
use crate::actors::coordinator::effects::{Written, note_step_failure};
use crate::actors::coordinator::machine::{Effect, Event, Situation, State, Verdict, transition};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::messages::adoption::{AdoptEnd, AdoptOutcome};
use crate::messages::lock::StepKind;
use crate::messages::operation::{Label, OperationEvent};
use crate::planner::model::{Action, Verb};
use crate::state::adoption::{self, Target};
use crate::state::control::{Intent, OperationKind, ProgressEntry};
use crate::state::error::StateError;
use crate::state::scalar::Timestamp;
use crate::state::store::Snapshot;

/// An adoption behind its gates.
pub(super) struct Adoption {
    targets: Vec<Target>,
    intent: Arc<Intent>,
    /// None after a failed step: it must be read again.
    snapshot: Option<Snapshot>,
    begun: bool,
    began_at: Instant,
    errors: Diagnostics,
}

impl Driver {
    /// Row 12, by the machine of every operation: this one has no block.
    pub(super) async fn walk_adoption(&mut self, adoption: &mut Adoption) -> (Verdict, Result<(), StateError>) {
        let (mut state, mut event) = (State::Preparing, Event::Ready);
        let mut released = Ok(());
        loop {
            let interrupted = self.control.cancel.signal().is_some();
            let situation = Situation { blocks: 0, interrupted, drifted: false };
            let Some((next, effect)) = transition(state, event, situation) else {
                return (Verdict::Unresolved, Err(StateError::lock_lost()));
            };
            state = next;
            event = match effect {
                Effect::Begin => self.begin_adoption(adoption).await,
                Effect::Commit => self.commit_adoption(adoption).await,
                Effect::Clear => {
                    let cleared_at = Timestamp::micros(self.now());
                    self.adoption_step(adoption, |_| Ok(StepKind::ClearBeforeMutation { cleared_at })).await
                }
                Effect::Release => {
                    released = self.release().await;
                    if released.is_ok() { Event::Released } else { Event::NotReleased }
                }
                Effect::End => {
                    let State::Ended { verdict, .. } = state else { return (Verdict::Unresolved, released) };
                    return (verdict, released);
                }
                Effect::Start { .. }
                | Effect::Mutate { .. }
                | Effect::Complete { .. }
                | Effect::CompleteUnsent { .. }
                | Effect::Mark(_) => return (Verdict::Unresolved, Err(StateError::lock_lost())),
            };
        }
    }

    async fn begin_adoption(&mut self, adoption: &mut Adoption) -> Event {
        let intent = Intent::clone(&adoption.intent);
        let (operation_id, actions) = (intent.operation_id, intent.actions.len());
        let event = self.adoption_step(adoption, |_| Ok(StepKind::Begin(intent))).await;
        if event == Event::Acked {
            adoption.begun = true;
            self.tell(OperationEvent::Began { operation_id, actions });
        }
        event
    }

    async fn commit_adoption(&mut self, adoption: &mut Adoption) -> Event {
        let at = Timestamp::micros(self.now());
        let intent = Arc::clone(&adoption.intent);
        let targets = adoption.targets.clone();
        let event = self
            .adoption_step(adoption, |snapshot| {
                let state = adoption::claimed(&snapshot.state.state, &targets);
                Ok(StepKind::Adopt { entries: entries(&intent, &at)?, state, completed_at: at.clone() })
            })
            .await;
        if let (Event::Acked, Some(snapshot)) = (event, &adoption.snapshot) {
            let (operation_id, state_serial) = (intent.operation_id, snapshot.state.state.serial);
            self.tell(OperationEvent::Committed { operation_id, state_serial });
            let (total, elapsed) = (adoption.targets.len(), adoption.began_at.elapsed());
            for (index, target) in adoption.targets.iter().enumerate() {
                let label = Label { kind: target.kind(), name: target.physical_name.clone() };
                let verb = Verb::Adopt;
                self.tell(OperationEvent::ActionFinished { index, total, label, verb, succeeded: true, elapsed });
            }
        }
        event
    }

    async fn adoption_step(
        &mut self,
        adoption: &mut Adoption,
        kind: impl FnOnce(&Snapshot) -> Result<StepKind, Diagnostic>,
    ) -> Event {
        match self.write_step(adoption.snapshot.take(), adoption.intent.operation_id, kind).await {
            Written::Acked(acked) => {
                adoption.snapshot = Some(acked.snapshot);
                Event::Acked
            }
            Written::Failed(error) => note_step_failure(&mut adoption.errors, adoption.begun, error),
            Written::Unformed(diagnostic) => {
                adoption.errors.push(diagnostic);
                Event::StepFailed { held: true }
            }
        }
    }

    /// What is told when it ended.
    pub(super) fn told(
        self,
        adoption: Adoption,
        verdict: Verdict,
        released: Result<(), StateError>,
        outcome: AdoptOutcome,
    ) -> AdoptOutcome {
        let operation_id = adoption.intent.operation_id;
        let mut errors = adoption.errors;
        if let Err(error) = released {
            errors.push(error.operation(Some(operation_id)).diagnostic());
        }
        let interruption = self.control.cancel.signal().filter(|_| verdict == Verdict::Cleared && errors.is_empty());
        let end = match (verdict, interruption) {
            (Verdict::Committed, _) if errors.is_empty() => AdoptEnd::Adopted,
            (_, Some(signal)) => {
                let text = interrupted_text(verdict).to_owned();
                let diagnostic = Diagnostic::new(Code::E903Interrupted, text).operation(operation_id);
                AdoptEnd::Interrupted(signal, diagnostic)
            }
            (
                Verdict::Stopped
                | Verdict::Looked
                | Verdict::Committed
                | Verdict::RecoveryRequired
                | Verdict::Cleared
                | Verdict::Unresolved
                | Verdict::Abandoned,
                _,
            ) => {
                if errors.is_empty() {
                    errors.push(StateError::lock_lost().operation(Some(operation_id)).diagnostic());
                }
                AdoptEnd::Failed(errors)
            }
        };
        let committed = match (verdict, &end) {
            (Verdict::Committed, _) => Some(true),
            (_, AdoptEnd::Failed(errors)) => known_commit(errors),
            (_, AdoptEnd::Adopted | AdoptEnd::AlreadyOwned | AdoptEnd::Saved { .. } | AdoptEnd::Interrupted(..)) => {
                Some(false)
            }
        };
        let recovery_required = match verdict {
            Verdict::Unresolved => adoption.begun && committed != Some(true),
            Verdict::RecoveryRequired | Verdict::Abandoned => true,
            Verdict::Stopped | Verdict::Looked | Verdict::Committed | Verdict::Cleared => false,
        };
        let state = adoption.snapshot.as_ref().map(|snapshot| self.facts(snapshot)).or(outcome.state);
        AdoptOutcome {
            end,
            state,
            operation_id: Some(operation_id),
            committed,
            recovery_required,
            warnings: self.warnings,
            ..outcome
        }
    }
}

impl Adoption {
    pub(super) fn new(targets: Vec<Target>, started_at: jiff::Timestamp, actor: String, snapshot: Snapshot) -> Self {
        let intent = Intent {
            operation_id: Uuid::new_v4(),
            kind: OperationKind::Adopt,
            started_at: Timestamp::micros(started_at),
            actor,
            prior_state_serial: snapshot.state.state.serial,
            prior_state_checksum: snapshot.state.checksum.clone(),
            reviewed_plan_checksum: None,
            actions: actions(&targets),
        };
        Self {
            targets,
            intent: Arc::new(intent),
            snapshot: Some(snapshot),
            begun: false,
            began_at: Instant::now(),
            errors: Diagnostics::new(),
        }
    }
}

fn actions(targets: &[Target]) -> Vec<Action> {
    (0..)
        .zip(targets)
        .map(|(index, target)| Action {
            index,
            resource_id: target.resource_id.clone(),
            action: Verb::Adopt,
            gateway_evidence: None,
            connector_evidence: None,
            kafka_streams_evidence: None,
        })
        .collect()
}

/// Each action started and completed.
fn entries(intent: &Intent, at: &Timestamp) -> Result<Vec<ProgressEntry>, Diagnostic> {
    let of = |action: &Action| {
        let started = ProgressEntry::started(intent, action.index, at.clone())?;
        Some([started, ProgressEntry::completed(intent, action.index, true, at.clone())?])
    };
    let pairs: Option<Vec<_>> = intent.actions.iter().map(of).collect();
    pairs
        .map(|pairs| pairs.into_iter().flatten().collect())
        .ok_or_else(|| Diagnostic::new(Code::E901Internal, "an action is not part of its operation"))
}
