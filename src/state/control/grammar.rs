//! Which events may follow which: the transitions of an operation and the order of its progress.

use std::collections::BTreeSet;

use crate::compiler::artifact::Kind;
use crate::ownership::runner::{Checkpoint, Phase};
use crate::planner::model::{Action, Verb};
use crate::state::model::StateAddress;
use crate::state::scalar::is_safe_text;

use super::document::Open;
use super::event::{
    Cleared, Event, FailureCode, Intent, OperationKind, ProgressEntry, ProgressStatus, RecoveryRecord, StoredEvent,
    Succeeded,
};
use super::{CURRENT_VERSION, Control, ControlError, MAX_GROUP, RESUMED_VERSION, RUNNER_VERSION};

pub const MAX_ACTOR: usize = 128;
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Where progress stands: the open block is `first .. first + started`, of which `completed` have their outcome.
#[derive(Clone, Default)]
pub struct Frontier {
    first: u32,
    started: u32,
    completed: u32,
    /// Checkpoints of the open block.
    checkpoints: usize,
    /// Some member of the last block was refused: no further block starts.
    failed: bool,
    pub last_succeeded: Option<u32>,
}

impl Frontier {
    fn between_blocks(&self) -> bool {
        self.started == 0
    }

    pub fn inside_completed_run(&self) -> bool {
        self.completed > 0
    }
}

const fn refuse<T>(rule: &'static str) -> Result<T, ControlError> {
    Err(ControlError(rule))
}

impl Control {
    /// The document after one durable step, and the events to store for it. A step is an intent, the run of `started` or of
    /// `completed` entries of one block, an incident, or an end; an adoption may be recorded and ended in one step.
    pub fn apply_step(self, events: Vec<Event>) -> Result<(Self, Vec<StoredEvent>), ControlError> {
        let version = match events.first() {
            Some(Event::Intent(intent)) => intent.written_version(),
            Some(_) | None => CURRENT_VERSION,
        };
        self.apply_step_in_version(events, version)
    }

    /// As [`Control::apply_step`], for an operation that was begun in `intent_version`: only its intent is affected.
    pub fn apply_step_in_version(
        self,
        events: Vec<Event>,
        intent_version: u8,
    ) -> Result<(Self, Vec<StoredEvent>), ControlError> {
        self.check_step(&events)?;
        let mut control = self;
        let mut stored = Vec::with_capacity(events.len());
        for event in events {
            let (next, event) = control.apply_in_version(event, intent_version)?;
            control = next;
            stored.push(event);
        }
        match &control.open {
            Some(open) if open.frontier.inside_completed_run() => {
                refuse("the outcomes of a group are recorded together")
            }
            _ => Ok((control, stored)),
        }
    }

    fn check_step(&self, events: &[Event]) -> Result<(), ControlError> {
        let run = |status| events.iter().all(|event| matches!(event, Event::Progress(entry) if entry.status == status));
        let inside_block = self.open.as_ref().is_some_and(|open| !open.frontier.between_blocks());
        match events {
            [] => refuse("a step has at least one event"),
            [Event::Progress(first), ..] if inside_block && first.status == ProgressStatus::Started => {
                refuse("the members of a group start together")
            }
            [_] => Ok(()),
            _ if run(ProgressStatus::Started) || run(ProgressStatus::Completed) => Ok(()),
            [recorded @ .., Event::Succeeded(_)] if self.is_unstarted_adoption() => {
                let only_progress = recorded.iter().all(|event| matches!(event, Event::Progress(_)));
                if only_progress { Ok(()) } else { refuse("an adoption is recorded by its progress and its end") }
            }
            _ => refuse("these events are not one step"),
        }
    }

    fn is_unstarted_adoption(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.intent.kind == OperationKind::Adopt && open.progress.is_empty())
    }

    /// The document after one event; an operation is begun in the version that its actions need.
    pub fn apply(self, event: Event) -> Result<(Self, StoredEvent), ControlError> {
        let version = match &event {
            Event::Intent(intent) => intent.written_version(),
            Event::Progress(_)
            | Event::RecoveryRequired(_)
            | Event::Resumed(_)
            | Event::ClearedBeforeMutation(_)
            | Event::Succeeded(_)
            | Event::RecoveryIntent(_)
            | Event::Recovered(_) => CURRENT_VERSION,
        };
        self.apply_in_version(event, version)
    }

    /// As [`Control::apply`], for an operation that was begun in `intent_version`: only its intent is affected.
    pub fn apply_in_version(self, event: Event, intent_version: u8) -> Result<(Self, StoredEvent), ControlError> {
        let kept = event.clone();
        let (open, event_index, control_version) = match (self.open, event) {
            (None, Event::Intent(intent)) => {
                check_intent(&intent, intent_version, &self.site.address)?;
                let open = Open::new(&self.site.text, intent_version, intent)?;
                (Some(Box::new(open)), 0, intent_version)
            }
            (None, _) => return refuse("nothing is pending"),
            (Some(mut open), event) => {
                let ended = match event {
                    Event::Resumed(record) => {
                        record.check(&self.site.text, &open, &self.checksum)?;
                        open.resume(&self.site.text, *record)?;
                        false
                    }
                    event => open.advance(event)?,
                };
                open.event_index += 1;
                let (index, version) = (open.event_index, open.version);
                ((!ended).then_some(open), index, version)
            }
        };
        let checksum = match &open {
            Some(open) => open.checksum()?,
            None => self.site.clear_checksum.clone(),
        };
        let stored = StoredEvent { control_checksum: checksum.clone(), event: kept, event_index, control_version };
        Ok((Self { site: self.site, open, clear_version: CURRENT_VERSION, checksum }, stored))
    }
}

impl Open {
    /// Takes one event of a pending operation. True = the operation ended.
    fn advance(&mut self, event: Event) -> Result<bool, ControlError> {
        match event {
            Event::Intent(_) => refuse("an operation is pending"),
            Event::RecoveryIntent(_) | Event::Recovered(_) => refuse("a recovery stands under an id of its own"),
            Event::Resumed(_) => refuse("a resumption is judged by the whole control"),
            // A replacement whose every boundary is durable is finished, interrupted or not.
            Event::Succeeded(end) if self.intent.runner_evidence().is_some() => {
                self.check_end(&end)?;
                Ok(true)
            }
            _ if self.recovery.is_some() => refuse("the operation waits for recovery"),
            Event::Progress(entry) => {
                self.frontier.advance(&self.intent, &entry)?;
                self.push(entry)?;
                Ok(false)
            }
            Event::RecoveryRequired(record) => {
                self.check_recovery(&record)?;
                self.recovery = Some(record);
                Ok(false)
            }
            Event::ClearedBeforeMutation(Cleared { .. }) if self.progress.is_empty() && self.resumes.is_empty() => {
                Ok(true)
            }
            Event::ClearedBeforeMutation(Cleared { .. }) => refuse("an action was started"),
            Event::Succeeded(end) => {
                self.check_end(&end)?;
                Ok(true)
            }
        }
    }

    fn check_recovery(&self, record: &RecoveryRecord) -> Result<(), ControlError> {
        if self.frontier.inside_completed_run() {
            return refuse("the outcomes of a group are recorded together");
        }
        if record.operation_id != self.intent.operation_id {
            return refuse("a recovery record names another operation");
        }
        if record.last_completed_action_index != self.frontier.last_succeeded {
            return refuse("a recovery record names another last action than progress does");
        }
        if !record.mutation_may_have_succeeded {
            return refuse("a recovery record claims that nothing was changed");
        }
        let replaces_runner = self.intent.runner_evidence().is_some();
        match (record.failure_code, self.intent.kind) {
            (FailureCode::RunnerOperationInterrupted | FailureCode::RunnerInterruptionAcknowledged, _)
                if replaces_runner =>
            {
                Ok(())
            }
            (FailureCode::RunnerOperationInterrupted | FailureCode::RunnerInterruptionAcknowledged, _) => {
                refuse("a failure code belongs to another control version")
            }
            _ if replaces_runner => refuse("a runner's replacement is interrupted in its own words"),
            (
                FailureCode::AdoptionStateCommitUncertain | FailureCode::AdoptionOperationInterrupted,
                OperationKind::Apply,
            ) => refuse("a failure code belongs to another kind of operation"),
            (
                FailureCode::RuntimeActionFailed
                | FailureCode::ConnectorRemovalDrift
                | FailureCode::OperationInterrupted
                | FailureCode::StateCommitUncertain,
                _,
            )
            | (
                FailureCode::AdoptionStateCommitUncertain | FailureCode::AdoptionOperationInterrupted,
                OperationKind::Adopt,
            ) => Ok(()),
        }
    }

    fn check_end(&self, end: &Succeeded) -> Result<(), ControlError> {
        let all = self.frontier.between_blocks()
            && !self.frontier.failed
            && usize::try_from(self.frontier.first) == Ok(self.intent.actions.len());
        if !all {
            return refuse("an operation succeeds when all its actions did");
        }
        let same_serial = end.state_serial == self.intent.prior_state_serial;
        let same_state = end.state_checksum == self.intent.prior_state_checksum;
        let next_serial =
            end.state_serial == self.intent.prior_state_serial + 1 && end.state_serial <= MAX_SAFE_INTEGER;
        let changes = self.intent.runner_evidence().is_some();
        if (same_serial && same_state && !changes) || (next_serial && !same_state) {
            return Ok(());
        }
        refuse("the serial steps by one exactly when ownership changes")
    }
}

impl Frontier {
    fn advance(&mut self, intent: &Intent, entry: &ProgressEntry) -> Result<(), ControlError> {
        let action = usize::try_from(entry.action_index).ok().and_then(|index| intent.actions.get(index));
        let same =
            action.is_some_and(|action| action.resource_id == entry.resource_id && action.action == entry.action);
        if !same || entry.operation_id != intent.operation_id {
            return refuse("progress differs from the intent");
        }
        match (entry.status, entry.succeeded, entry.kafka_streams_checkpoint.as_deref()) {
            (ProgressStatus::Started, None, None) => self.start(intent, entry.action_index),
            (ProgressStatus::Checkpoint, None, Some(checkpoint)) => self.check_off(intent, checkpoint),
            (ProgressStatus::Completed, Some(succeeded), None) => {
                if succeeded && intent.runner_evidence().is_some() && self.checkpoints < Phase::ALL.len() {
                    return refuse("a runner's replacement succeeds behind all its checkpoints");
                }
                self.complete(entry.action_index, succeeded)
            }
            (ProgressStatus::Started | ProgressStatus::Checkpoint, Some(_), _)
            | (ProgressStatus::Completed, None, _) => refuse("an outcome stands exactly in completed progress"),
            (ProgressStatus::Started | ProgressStatus::Completed, _, Some(_))
            | (ProgressStatus::Checkpoint, None, None) => refuse("a checkpoint stands exactly in its own progress"),
        }
    }

    fn check_off(&mut self, intent: &Intent, checkpoint: &Checkpoint) -> Result<(), ControlError> {
        let Some(evidence) = intent.runner_evidence() else {
            return refuse("only the replacement of a runner has checkpoints");
        };
        if self.between_blocks() || Phase::ALL.get(self.checkpoints) != Some(&checkpoint.phase) {
            return refuse("checkpoints follow the start of their action, in the order of their phases");
        }
        checkpoint.check(evidence, intent.operation_id, self.first).map_err(ControlError)?;
        self.checkpoints += 1;
        Ok(())
    }

    fn start(&mut self, intent: &Intent, index: u32) -> Result<(), ControlError> {
        if self.failed {
            return refuse("nothing starts after a failed action");
        }
        if self.inside_completed_run() || index != self.first + self.started {
            return refuse("actions start in order, and the next after the outcome of the last");
        }
        let groups = |index: u32| intent.actions.get(index as usize).is_some_and(may_group);
        if self.started > 0 && !(groups(self.first) && groups(index) && (self.started as usize) < MAX_GROUP) {
            return refuse("only topic creates start together, at most 1000");
        }
        self.started += 1;
        Ok(())
    }

    fn complete(&mut self, index: u32, succeeded: bool) -> Result<(), ControlError> {
        if self.between_blocks() || index != self.first + self.completed {
            return refuse("an action completes after it started, in order");
        }
        self.completed += 1;
        self.failed |= !succeeded;
        if succeeded {
            self.last_succeeded = Some(index);
        }
        if self.completed == self.started {
            (self.first, self.started, self.completed, self.checkpoints) = (self.first + self.started, 0, 0, 0);
        }
        Ok(())
    }
}

fn may_group(action: &Action) -> bool {
    action.resource_id.kind() == Kind::Topic && action.action == Verb::Create
}

/// Whether a verb may stand in an intent for a kind, in any readable version.
fn verb_fits(kind: Kind, verb: Verb) -> bool {
    match kind {
        Kind::Schema => matches!(verb, Verb::Register | Verb::Update | Verb::Adopt | Verb::Delete),
        Kind::Topic => matches!(verb, Verb::Create | Verb::Update | Verb::Adopt),
        Kind::FlinkJob => matches!(verb, Verb::Submit | Verb::Update | Verb::Cancel),
        Kind::Connector | Kind::GatewayRule => {
            matches!(verb, Verb::Create | Verb::Update | Verb::Delete | Verb::Adopt)
        }
        Kind::KafkaStreamsJob => matches!(verb, Verb::Create | Verb::Update),
    }
}

fn check_intent(intent: &Intent, version: u8, address: &StateAddress) -> Result<(), ControlError> {
    match (version, intent.runner_evidence()) {
        (1..=3, None) => {}
        (RUNNER_VERSION, Some(evidence)) => {
            if intent.kind != OperationKind::Apply {
                return refuse("a runner is replaced by an apply");
            }
            if intent.reviewed_plan_checksum.is_none() {
                return refuse("a runner is replaced as it was reviewed");
            }
            let resource = intent.actions.first().map(|action| &action.resource_id);
            resource.map_or(Ok(()), |resource| evidence.check(resource)).map_err(ControlError)?;
        }
        (1..=RUNNER_VERSION, _) => {
            return refuse("a control of version 4 holds one replacement of a runner, no other any");
        }
        (RESUMED_VERSION, _) => return refuse("no operation begins resumed"),
        _ => return refuse("unsupported control version"),
    }
    if intent.operation_id.get_version_num() != 4 {
        return refuse("an operation id is a random uuid");
    }
    if !is_safe_text(&intent.actor, MAX_ACTOR) {
        return refuse("an actor is printable text of at most 128 characters");
    }
    if intent.prior_state_serial > MAX_SAFE_INTEGER {
        return refuse("a serial is out of range");
    }
    let mut seen = BTreeSet::new();
    for (index, action) in intent.actions.iter().enumerate() {
        if u32::try_from(index) != Ok(action.index) {
            return refuse("actions are numbered from 0");
        }
        if !seen.insert(&action.resource_id) {
            return refuse("an intent names a resource twice");
        }
        if action.resource_id.project() != address.project || action.resource_id.environment() != address.environment {
            return refuse("an intent names a resource of another project or environment");
        }
        check_action(action, version)?;
    }
    Ok(())
}

/// Evidence belongs to connector deletions, from version 3 on, and to Gateway rules, which this version neither writes nor
/// reads. Reading the evidence of a deletion has proved its form. A deletion of an earlier version can be read, so that it can
/// be shown and abandoned, and proves nothing (REC-065).
fn check_action(action: &Action, version: u8) -> Result<(), ControlError> {
    let kind = action.resource_id.kind();
    if !verb_fits(kind, action.action) {
        return refuse("an intent holds an action that its kind does not know");
    }
    if action.gateway_evidence.is_some() {
        return refuse("the operation carries evidence that this version of streamt cannot read");
    }
    let deletes = (kind, action.action) == (Kind::Connector, Verb::Delete);
    if deletes && version < 3 && action.connector_evidence.is_some() {
        return refuse("this control version holds no evidence of a connector deletion");
    }
    if action.connector_evidence.is_some() && !deletes {
        return refuse("only a connector deletion carries connector evidence");
    }
    let replaces = (kind, action.action) == (Kind::KafkaStreamsJob, Verb::Update);
    if replaces != action.kafka_streams_evidence.is_some() {
        return refuse("exactly the replacement of a runner carries the evidence of one");
    }
    if replaces && version != RUNNER_VERSION {
        return refuse("a runner is replaced by an operation of its own, in control version 4");
    }
    if (deletes && version > 2 && action.connector_evidence.is_none()) || (kind == Kind::GatewayRule && version > 1) {
        return refuse("an action lacks its evidence");
    }
    Ok(())
}
