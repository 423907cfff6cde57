//! An apply behind its gates: what it carries from step to step, and the outcome that is told of it.
#![expect(clippy::disallowed_methods, reason = "measures how long an action took")]

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::driver::{Driver, interrupted_text};
use super::gates::Prepared;
use super::machine::Verdict;

use crate::actors::lease::{Lost, ProgressAck};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::canonical::Checksum;
use crate::messages::operation::{ActionFailure, ApplyEnd, ApplyOutcome, Label, Lists, Signal, StateFacts};
use crate::planner::Plan;
use crate::planner::model::Verb;
use crate::providers::ProviderFailure;
use crate::providers::flink::Submitted;
use crate::state::control::Intent;
use crate::state::error::StateError;
use crate::state::store::Snapshot;

/// What an apply carries through its steps.
pub struct Apply {
    pub prepared: Prepared,
    pub intent: Arc<Intent>,
    /// None after a failed step: it must be read again.
    pub snapshot: Option<Snapshot>,
    /// The permission that the last `started` step bought.
    pub ack: Option<ProgressAck>,
    /// Outcomes of the block in flight, one a member.
    pub outcomes: Vec<Result<(), ProviderFailure>>,
    /// Jobs of the block in flight that their clusters have taken.
    pub submitted: Vec<(String, Submitted)>,
    pub sent_at: Instant,
    pub lists: Lists,
    /// The intent is known to be durable.
    pub begun: bool,
    /// How many works were started.
    pub reached: usize,
    /// What ended it; the first is the cause.
    pub errors: Diagnostics,
}

impl Apply {
    pub fn new(prepared: Prepared, intent: Intent, snapshot: Snapshot) -> Self {
        let lists = Lists { unchanged: unchanged(&prepared.plan), ..Lists::default() };
        Self {
            prepared,
            intent: Arc::new(intent),
            snapshot: Some(snapshot),
            ack: None,
            outcomes: Vec::new(),
            submitted: Vec::new(),
            sent_at: Instant::now(),
            lists,
            begun: false,
            reached: 0,
            errors: Diagnostics::new(),
        }
    }

    /// The block in flight is a connector deletion that did not end in proved absence.
    pub fn drifted(&self) -> bool {
        self.outcomes.iter().any(|outcome| matches!(outcome, Err(ProviderFailure::RemovalDrift)))
    }

    /// Notes the members of a block that failed.
    pub fn note_failures(&mut self, range: Range<usize>) {
        for (work, outcome) in self.prepared.schedule.works[range].iter().zip(&self.outcomes) {
            if let Err(failure) = outcome {
                let mut diagnostic = failure.diagnostic(&format!("{}: {}", work.label, work.action.action));
                if let ProviderFailure::Aborted { .. } = failure {
                    // The lock is still held: the action failed, the lock did not.
                    diagnostic.code = Code::E407DeployError;
                }
                let first = match (failure.outdates_the_plan(), diagnostic.suggestion.take()) {
                    (true, _) => "the live resource changed after the plan was made; ".to_owned(),
                    (false, Some(advice)) => format!("{advice}; "),
                    (false, None) => String::new(),
                };
                diagnostic = diagnostic.suggest(format!(
                    "{first}this operation now waits for recovery, and until it is resolved nothing can be planned or applied \
                     here: see `streamt state status`"
                ));
                let diagnostic = diagnostic.operation(self.intent.operation_id);
                self.errors.push(diagnostic.clone());
                self.lists.errors.push(ActionFailure { label: work.label.clone(), diagnostic });
            }
        }
    }

    /// What is told when it ended. `state` is what stood before.
    pub fn outcome(
        mut self,
        driver: &Driver,
        verdict: Verdict,
        released: Result<(), StateError>,
        state: StateFacts,
        plan_checksum: Option<Checksum>,
    ) -> ApplyOutcome {
        let operation_id = self.intent.operation_id;
        let signal = driver.control.cancel.signal();
        let works = &self.prepared.schedule.works;
        self.lists.not_started = works[self.reached..].iter().map(|work| work.label.clone()).collect();
        if let Err(error) = released {
            self.errors.push(error.operation(Some(operation_id)).diagnostic());
        }
        let failed = |mut errors: Diagnostics, fallback: StateError| {
            if errors.is_empty() {
                errors.push(fallback.operation(Some(operation_id)).diagnostic());
            }
            ApplyEnd::Failed(errors)
        };
        let stopped = |signal: Signal, text: &str| {
            let diagnostic = Diagnostic::new(Code::E903Interrupted, text.to_owned()).operation(operation_id);
            ApplyEnd::Interrupted(signal, diagnostic)
        };
        let step_failed = self.errors.iter().any(|error| error.code.number().starts_with("E42"));
        let errors = std::mem::take(&mut self.errors);
        let end = match (verdict, signal) {
            (Verdict::Committed | Verdict::Looked, _) if errors.is_empty() => ApplyEnd::Committed,
            (Verdict::RecoveryRequired, Some(signal)) if !step_failed => stopped(signal, interrupted_text(verdict)),
            (Verdict::Cleared, Some(signal)) if errors.is_empty() => stopped(signal, interrupted_text(verdict)),
            (Verdict::Abandoned, Some(signal)) if driver.closed_because() == Some(Lost::Abandoned) => {
                stopped(signal, interrupted_text(verdict))
            }
            (
                Verdict::Committed
                | Verdict::Looked
                | Verdict::Stopped
                | Verdict::RecoveryRequired
                | Verdict::Cleared
                | Verdict::Unresolved
                | Verdict::Abandoned,
                _,
            ) => failed(errors, StateError::lock_lost()),
        };
        let committed = match (verdict, &end) {
            (Verdict::Committed, _) => Some(true),
            (Verdict::Abandoned, _) => None,
            (_, ApplyEnd::Failed(errors)) => known_commit(errors),
            (_, _) => Some(false),
        };
        let recovery_required = match verdict {
            Verdict::RecoveryRequired | Verdict::Abandoned => true,
            Verdict::Unresolved => self.begun && committed != Some(true),
            Verdict::Committed | Verdict::Looked | Verdict::Stopped | Verdict::Cleared => false,
        };
        let state = self.snapshot.as_ref().map_or(state, |snapshot| driver.facts(snapshot));
        ApplyOutcome {
            end,
            plan: Some(self.prepared.plan),
            lists: self.lists,
            state: Some(state),
            operation_id: Some(operation_id),
            committed,
            recovery_required,
            plan_checksum,
            warnings: driver.warnings.clone(),
        }
    }
}

/// Whether ownership was committed, as the errors tell: E426 says yes, E423 and E425 say that nobody knows.
pub fn known_commit(errors: &Diagnostics) -> Option<bool> {
    let any = |code| errors.iter().any(|error| error.code == code);
    match (
        any(Code::E426StateReleaseFailedAfterCommit),
        any(Code::E423StateLockLost) || any(Code::E425StateUnknownOutcome),
    ) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    }
}

/// Everything that the plan leaves alone.
pub fn unchanged(plan: &Plan) -> Vec<Label> {
    let alone = plan.changes.iter().filter(|change| change.verb.is_none());
    alone.map(|change| Label { kind: change.kind, name: change.name.clone() }).collect()
}

impl Lists {
    /// Notes an action that took effect.
    pub fn done(&mut self, verb: Verb, label: Label) {
        match verb {
            Verb::Register | Verb::Create | Verb::Submit => self.created.push(label),
            Verb::Update | Verb::Adopt => self.updated.push(label),
            Verb::Delete | Verb::Cancel => self.deleted.push(label),
        }
    }
}
