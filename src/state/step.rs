//! Transitions as values: what one durable step writes, and the snapshot it leaves behind. Pure and shared by all stores, so
//! that a store only has to prove that it stands at `before` and to write the rest whole or not at all.

use std::sync::Arc;

use uuid::Uuid;

use crate::codes::redact::is_credential_like;
use crate::compiler::canonical::Checksum;
use crate::planner::model::{Action, Verb};

use super::control::{
    Cleared, Control, ControlError, Event, Intent, OperationKind, ProgressEntry, RecoveryIntent, RecoveryRecord,
    ResumeRecord, RunnerCompletion, StoredEvent, Succeeded, check_replaced,
};
use super::error::StateError;
use super::model::{OwnershipState, StateAddress, StoreIdentity};
use super::scalar::Timestamp;
use super::store::{ControlObservation, Revision, Snapshot, StateObservation};

/// Where a step starts: everything of a snapshot that is compared before writing. The checksums stand for the content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    pub store: StoreIdentity,
    pub address: StateAddress,
    pub state_serial: u64,
    pub state_checksum: Checksum,
    pub state_revision: Revision,
    pub control_checksum: Checksum,
    pub control_revision: Revision,
    pub event_index: Option<u64>,
    pub operation_id: Option<Uuid>,
}

impl Mark {
    pub fn of(snapshot: &Snapshot) -> Self {
        Self {
            store: snapshot.state.store.clone(),
            address: snapshot.state.address.clone(),
            state_serial: snapshot.state.state.serial,
            state_checksum: snapshot.state.checksum.clone(),
            state_revision: snapshot.state.revision.clone(),
            control_checksum: snapshot.control.control.checksum().clone(),
            control_revision: snapshot.control.revision.clone(),
            event_index: snapshot.control.control.event_index(),
            operation_id: snapshot.control.control.operation_id(),
        }
    }
}

/// One durable step. `after` is what a fresh read must give once it is written.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    pub before: Mark,
    pub events: Vec<StoredEvent>,
    /// Whether `after` carries new ownership.
    pub writes_state: bool,
    pub after: Snapshot,
    /// The id that the events stand under: the operation's, or that of the recovery that ends it.
    pub operation_id: Uuid,
    /// Whether it commits the operation, or the recovery of one.
    pub commits: bool,
    /// What proves for good that a runner was replaced; a store whose events stay needs no copy of them.
    pub receipt: Option<Box<RunnerCompletion>>,
}

/// Bound of one stored line or row, and of an ownership document: bytes.
pub const MAX_ROW: usize = 10 * 1024 * 1024;
/// Bound of a control file and of a recovery plan: bytes.
pub const MAX_FILE: usize = 64 * 1024 * 1024;

pub fn begin(snapshot: Snapshot, intent: Intent) -> Result<Step, StateError> {
    snapshot.ensure_clear()?;
    let state = &snapshot.state;
    if intent.prior_state_serial != state.state.serial || intent.prior_state_checksum != state.checksum {
        return Err(StateError::conflict());
    }
    let adopts = |action: &Action| action.action == Verb::Adopt;
    let fits = match intent.kind {
        OperationKind::Apply => !intent.actions.iter().any(adopts),
        OperationKind::Adopt => !intent.actions.is_empty() && intent.actions.iter().all(adopts),
    };
    if !fits {
        return Err(refused(ControlError("an adoption claims, and nothing else does")));
    }
    // What a recovery plan would refuse must not become part of an operation that may need one.
    if is_credential_like(&intent.actor) {
        return Err(StateError::invalid("the name of the actor looks like a credential")
            .suggest("set STREAMT_ACTOR to a plain name"));
    }
    check_size(&intent, &state.state)?;
    let operation_id = intent.operation_id;
    step(snapshot, vec![Event::Intent(intent)], None, operation_id)
}

pub fn record_progress(snapshot: Snapshot, entries: Vec<ProgressEntry>) -> Result<Step, StateError> {
    let operation_id = pending(&snapshot)?;
    step(snapshot, entries.into_iter().map(Event::Progress).collect(), None, operation_id)
}

pub fn mark_recovery_required(snapshot: Snapshot, record: RecoveryRecord) -> Result<Step, StateError> {
    let operation_id = pending(&snapshot)?;
    step(snapshot, vec![Event::RecoveryRequired(record)], None, operation_id)
}

pub fn clear_before_mutation(snapshot: Snapshot, cleared_at: Timestamp) -> Result<Step, StateError> {
    let operation_id = pending(&snapshot)?;
    step(snapshot, vec![Event::ClearedBeforeMutation(Cleared { cleared_at })], None, operation_id)
}

/// recovery_required → in_progress, in version 5.
pub fn resume(snapshot: Snapshot, record: ResumeRecord) -> Result<Step, StateError> {
    let operation_id = pending(&snapshot)?;
    if record.store != snapshot.state.store {
        return Err(refused(ControlError("a resumption names another store")).operation(Some(operation_id)));
    }
    step(snapshot, vec![Event::Resumed(Box::new(record))], None, operation_id)
}

/// `state` = the next ownership, none when it does not change. The replacement of a runner changes one record, as reviewed.
pub fn commit(snapshot: Snapshot, state: Option<OwnershipState>, completed_at: Timestamp) -> Result<Step, StateError> {
    let operation_id = pending(&snapshot)?;
    let (state_serial, state_checksum) = match &state {
        None => (snapshot.state.state.serial, snapshot.state.checksum.clone()),
        Some(next) => (next.serial, next.checked(&snapshot.state.address)?),
    };
    let end = Succeeded { completed_at, state_checksum, state_serial };
    let receipt = match snapshot.control.control.intent() {
        Some(intent) if intent.runner_evidence().is_some() => {
            let refuse = |error| refused(error).operation(Some(operation_id));
            check_replaced(intent, state.as_ref()).map_err(refuse)?;
            let (control, store) = (&snapshot.control.control, &snapshot.state.store);
            Some(Box::new(RunnerCompletion::of(control, store, &end).map_err(refuse)?))
        }
        Some(_) | None => None,
    };
    Ok(Step { receipt, ..step(snapshot, vec![Event::Succeeded(end)], state, operation_id)? })
}

/// Every claim of an adoption and its end in one step, so that none ever stands without the others: an adoption that was
/// interrupted has no progress, whatever the live resources look like.
pub fn adopt(
    snapshot: Snapshot,
    entries: Vec<ProgressEntry>,
    state: OwnershipState,
    completed_at: Timestamp,
) -> Result<Step, StateError> {
    let operation_id = pending(&snapshot)?;
    let end =
        Succeeded { completed_at, state_checksum: state.checked(&snapshot.state.address)?, state_serial: state.serial };
    let events = entries.into_iter().map(Event::Progress).chain([Event::Succeeded(end)]).collect();
    step(snapshot, events, Some(state), operation_id)
}

/// Ends a blocked operation as reviewed: both events of the recovery and the new ownership, if it changes, in one step.
/// `state` = the reviewed candidate; its serial and digest are those of the record. E411 when the record and it disagree.
pub fn finalize_recovery(
    snapshot: Snapshot,
    intent: RecoveryIntent,
    state: Option<OwnershipState>,
) -> Result<Step, StateError> {
    let blocked = pending(&snapshot)?;
    let before = Mark::of(&snapshot);
    let operation_id = intent.record.recovery_operation_id;
    let result = (intent.record.result_state_serial, intent.record.result_state_checksum.clone());
    let Snapshot { state: observed, control } = snapshot;
    let (control, events) = control.control.recover(intent).map_err(|error| refused(error).operation(Some(blocked)))?;
    let writes_state = state.is_some();
    let observed = owned(observed, state)?;
    if result != (observed.state.serial, observed.checksum.clone()) {
        return Err(refused(ControlError("a recovery records another state than it leaves")).operation(Some(blocked)));
    }
    let control = ControlObservation { revision: control_revision(&control), control };
    let after = Snapshot { state: observed, control };
    Ok(Step { before, events, writes_state, after, operation_id, commits: true, receipt: None })
}

/// Ownership after a step: the next one, or the same.
fn owned(mut observed: StateObservation, next: Option<OwnershipState>) -> Result<StateObservation, StateError> {
    if let Some(next) = next {
        observed.checksum = next.checked(&observed.address)?;
        observed.revision = state_revision(&observed.checksum);
        observed.state = Arc::new(next);
    }
    Ok(observed)
}

fn pending(snapshot: &Snapshot) -> Result<Uuid, StateError> {
    snapshot.control.control.operation_id().ok_or_else(|| refused(ControlError("nothing is pending")))
}

fn refused(error: ControlError) -> StateError {
    StateError::invalid(format!("a step is not legal: {error}"))
}

fn step(
    snapshot: Snapshot,
    events: Vec<Event>,
    state: Option<OwnershipState>,
    operation_id: Uuid,
) -> Result<Step, StateError> {
    let before = Mark::of(&snapshot);
    let commits = matches!(events.last(), Some(Event::Succeeded(_)));
    let Snapshot { state: observed, control } = snapshot;
    let (control, events) =
        control.control.apply_step(events).map_err(|error| refused(error).operation(Some(operation_id)))?;
    let writes_state = state.is_some();
    let observed = owned(observed, state)?;
    let control = ControlObservation { revision: control_revision(&control), control };
    let after = Snapshot { state: observed, control };
    Ok(Step { before, events, writes_state, after, operation_id, commits, receipt: None })
}

/// The revision of stored ownership.
pub fn state_revision(checksum: &Checksum) -> Revision {
    Revision::At(checksum.to_string())
}

/// The revision of a stored control.
pub fn control_revision(control: &Control) -> Revision {
    Revision::At(match control.event_index() {
        None => control.checksum().to_string(),
        Some(index) => format!("{}#{index}", control.checksum()),
    })
}

/// The intent must fit one row, and what recovery of the whole operation would have to hold must fit one file, before
/// anything is written.
fn check_size(intent: &Intent, state: &OwnershipState) -> Result<(), StateError> {
    /// Envelope and digests of one stored event or one recovery target beside its id: bytes.
    const PER_EVENT: usize = 640;
    let intent_bytes = serde_json::to_string(intent).map_or(usize::MAX, |text| text.len());
    let ids: usize = intent.actions.iter().map(|action| action.resource_id.as_str().len()).sum();
    let per_action = intent.actions.len().saturating_mul(PER_EVENT).saturating_add(ids);
    let candidate = serde_json::to_string(&state.resources).map_or(usize::MAX, |text| text.len());
    // Two events an action in the control; the intent, one event, one target and a candidate record an action in a plan.
    let control = per_action.saturating_mul(2).saturating_add(intent_bytes);
    let recovery = per_action.saturating_mul(3).saturating_add(intent_bytes).saturating_add(candidate);
    if intent_bytes.saturating_add(PER_EVENT) > MAX_ROW || control > MAX_FILE || recovery > MAX_FILE {
        return Err(StateError::invalid("the operation is too large for its durable record")
            .suggest("apply a part of the project at a time with --select or --target"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::error::StateErrorKind;
    use crate::state::testing::{address, clear_snapshot, golden_intent, topic_creates};

    fn refused(change: impl Fn(&mut Intent)) -> Option<StateErrorKind> {
        let mut intent = golden_intent(topic_creates(1));
        change(&mut intent);
        begin(clear_snapshot(&address("platform")), intent).err().map(|error| error.kind)
    }

    /// SEC-007 SAF-029: what is stored for good names nobody's password, and starts from exactly what was read.
    #[test]
    fn an_intent_begins_from_its_snapshot_and_holds_no_credential() {
        assert_eq!(refused(|_| {}), None);
        for actor in ["token=abc", "ci password: hunter2", "postgres://u:p@h/d", "https://u:p@h"] {
            assert_eq!(
                refused(|intent| intent.actor = actor.to_owned()),
                Some(StateErrorKind::InvalidState),
                "{actor}"
            );
        }
        assert_eq!(refused(|intent| intent.actor = "token-bot 7".to_owned()), None);
        assert_eq!(refused(|intent| intent.prior_state_serial = 1), Some(StateErrorKind::Conflict));
        let other = Checksum::of_bytes(b"another state");
        assert_eq!(refused(|intent| intent.prior_state_checksum = other.clone()), Some(StateErrorKind::Conflict));
    }
}
