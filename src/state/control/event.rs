//! The parts of an operation's control document, and the events that are stored instead of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::compiler::canonical::Checksum;
use crate::ownership::runner::Checkpoint;
use crate::planner::model::{Action, Verb};
use crate::state::model::ResourceId;
use crate::state::scalar::{Timestamp, uuid_text};

use super::resolution::{RecoveryIntent, Resolution, ResolutionRecord};
use super::resume::ResumeRecord;
use super::{CURRENT_VERSION, RUNNER_VERSION};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    Apply,
    Adopt,
}

/// What an operation is about to do: durable before the first mutation (SAF-029).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// Version 4; also the run id of telemetry.
    #[serde(with = "uuid_text")]
    pub operation_id: Uuid,
    pub kind: OperationKind,
    pub started_at: Timestamp,
    /// Safe text of at most 128 characters.
    pub actor: String,
    pub prior_state_serial: u64,
    pub prior_state_checksum: Checksum,
    /// Set for a reviewed plan.
    pub reviewed_plan_checksum: Option<Checksum>,
    /// Indexes contiguous from 0, resource ids unique; may be empty.
    pub actions: Vec<Action>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgressStatus {
    Started,
    /// A boundary of a runner's replacement, in a control of version 4 or 5.
    Checkpoint,
    Completed,
}

/// One boundary of one action.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgressEntry {
    #[serde(with = "uuid_text")]
    pub operation_id: Uuid,
    pub action_index: u32,
    pub resource_id: ResourceId,
    pub action: Verb,
    pub status: ProgressStatus,
    /// The outcome when completed, else none.
    pub succeeded: Option<bool>,
    pub recorded_at: Timestamp,
    /// What a checkpoint proves; no other entry has the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kafka_streams_checkpoint: Option<Box<Checkpoint>>,
}

impl ProgressEntry {
    /// The `started` boundary of an action of this intent. None when the intent has no such action.
    pub fn started(intent: &Intent, action_index: u32, recorded_at: Timestamp) -> Option<Self> {
        Self::of(intent, action_index, ProgressStatus::Started, None, recorded_at)
    }

    /// The `completed` boundary of an action of this intent, with its outcome.
    pub fn completed(intent: &Intent, action_index: u32, succeeded: bool, recorded_at: Timestamp) -> Option<Self> {
        Self::of(intent, action_index, ProgressStatus::Completed, Some(succeeded), recorded_at)
    }

    /// A boundary of the runner's replacement that this intent holds.
    pub fn checkpoint(intent: &Intent, checkpoint: Checkpoint, recorded_at: Timestamp) -> Option<Self> {
        let entry = Self::of(intent, checkpoint.action_index, ProgressStatus::Checkpoint, None, recorded_at)?;
        Some(Self { kafka_streams_checkpoint: Some(Box::new(checkpoint)), ..entry })
    }

    fn of(
        intent: &Intent,
        action_index: u32,
        status: ProgressStatus,
        succeeded: Option<bool>,
        recorded_at: Timestamp,
    ) -> Option<Self> {
        let action = intent.actions.get(usize::try_from(action_index).ok()?)?;
        Some(Self {
            operation_id: intent.operation_id,
            action_index,
            resource_id: action.resource_id.clone(),
            action: action.action,
            status,
            succeeded,
            recorded_at,
            kafka_streams_checkpoint: None,
        })
    }
}

/// Why an operation stopped, in fixed words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// A started action, or a member of a started group, failed; nothing was taken back.
    RuntimeActionFailed,
    ConnectorRemovalDrift,
    /// A signal or a panic after the first started boundary.
    OperationInterrupted,
    StateCommitUncertain,
    AdoptionStateCommitUncertain,
    AdoptionOperationInterrupted,
    RunnerOperationInterrupted,
    RunnerInterruptionAcknowledged,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryRecord {
    #[serde(with = "uuid_text")]
    pub operation_id: Uuid,
    pub failure_code: FailureCode,
    pub failed_at: Timestamp,
    /// The highest action that completed and succeeded.
    pub last_completed_action_index: Option<u32>,
    /// Always true: nobody proved the contrary.
    pub mutation_may_have_succeeded: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cleared {
    pub cleared_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Succeeded {
    pub completed_at: Timestamp,
    pub state_checksum: Checksum,
    pub state_serial: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Intent,
    ProgressStarted,
    ProgressCheckpoint,
    ProgressCompleted,
    RecoveryRequired,
    OperationResumed,
    ClearedBeforeMutation,
    Succeeded,
    RecoveryIntent,
    RecoveredObserved,
    RecoveredRolledBack,
    RecoveredAbandonedBeforeMutation,
}

/// The last two stand under the id of a recovery, every other under that of the operation itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    Intent(Intent),
    Progress(ProgressEntry),
    RecoveryRequired(RecoveryRecord),
    Resumed(Box<ResumeRecord>),
    ClearedBeforeMutation(Cleared),
    Succeeded(Succeeded),
    RecoveryIntent(RecoveryIntent),
    Recovered(ResolutionRecord),
}

impl Event {
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Intent(_) => EventKind::Intent,
            Self::Progress(entry) => match entry.status {
                ProgressStatus::Started => EventKind::ProgressStarted,
                ProgressStatus::Checkpoint => EventKind::ProgressCheckpoint,
                ProgressStatus::Completed => EventKind::ProgressCompleted,
            },
            Self::RecoveryRequired(_) => EventKind::RecoveryRequired,
            Self::Resumed(_) => EventKind::OperationResumed,
            Self::ClearedBeforeMutation(_) => EventKind::ClearedBeforeMutation,
            Self::Succeeded(_) => EventKind::Succeeded,
            Self::RecoveryIntent(_) => EventKind::RecoveryIntent,
            Self::Recovered(record) => match record.resolution {
                Resolution::Observed => EventKind::RecoveredObserved,
                Resolution::RolledBack => EventKind::RecoveredRolledBack,
                Resolution::AbandonedBeforeMutation => EventKind::RecoveredAbandonedBeforeMutation,
            },
        }
    }
}

/// An event as it is stored: canonical JSON with the keys `control_checksum`, `event`, `event_index`, `event_kind`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredEvent {
    /// The digest of the document after this event.
    pub control_checksum: Checksum,
    pub event: Event,
    pub event_index: u64,
    /// The version of the document that the event belongs to; it decides the keys of actions and is not part of the event.
    pub control_version: u8,
}

impl StoredEvent {
    pub fn to_value(&self) -> Value {
        serde_json::json!({
            "control_checksum": self.control_checksum,
            "event": self.event.to_value(self.control_version),
            "event_index": self.event_index,
            "event_kind": self.event.kind(),
        })
    }
}

impl Event {
    /// The `event` object: its keys depend on the control version only for the actions of an intent.
    pub fn to_value(&self, control_version: u8) -> Value {
        match self {
            Self::Intent(intent) => intent.to_value(control_version),
            Self::Progress(entry) => json(entry),
            Self::RecoveryRequired(record) => json(record),
            Self::Resumed(record) => json(record),
            Self::ClearedBeforeMutation(cleared) => json(cleared),
            Self::Succeeded(succeeded) => json(succeeded),
            Self::RecoveryIntent(intent) => json(intent),
            Self::Recovered(record) => json(record),
        }
    }

    /// None unless the value has the form of its kind. Its rules are checked by the fold.
    pub fn from_value(kind: EventKind, value: Value) -> Option<Self> {
        let event = match kind {
            EventKind::Intent => Self::Intent(serde_json::from_value(value).ok()?),
            EventKind::ProgressStarted | EventKind::ProgressCheckpoint | EventKind::ProgressCompleted => {
                Self::Progress(serde_json::from_value(value).ok()?)
            }
            EventKind::RecoveryRequired => Self::RecoveryRequired(serde_json::from_value(value).ok()?),
            EventKind::OperationResumed => Self::Resumed(serde_json::from_value(value).ok()?),
            EventKind::ClearedBeforeMutation => Self::ClearedBeforeMutation(serde_json::from_value(value).ok()?),
            EventKind::Succeeded => Self::Succeeded(serde_json::from_value(value).ok()?),
            EventKind::RecoveryIntent => Self::RecoveryIntent(serde_json::from_value(value).ok()?),
            EventKind::RecoveredObserved
            | EventKind::RecoveredRolledBack
            | EventKind::RecoveredAbandonedBeforeMutation => Self::Recovered(serde_json::from_value(value).ok()?),
        };
        (event.kind() == kind).then_some(event)
    }
}

impl Intent {
    /// The version that an operation of these actions is begun in: 4 for the replacement of a runner.
    pub fn written_version(&self) -> u8 {
        match self.runner_evidence() {
            Some(_) => RUNNER_VERSION,
            None => CURRENT_VERSION,
        }
    }

    /// Version 1 knows no evidence, version 2 only that of gateway rules, version 3 none of runners, whose key is written only
    /// where there is some.
    pub fn to_value(&self, control_version: u8) -> Value {
        let mut value = json(self);
        if let Some(Value::Array(actions)) = value.get_mut("actions") {
            actions.iter_mut().for_each(|action| in_version(action, control_version));
        }
        value
    }
}

/// Takes from an action what the actions of a version do not have.
pub fn in_version(action: &mut Value, control_version: u8) {
    let absent: &[&str] = match control_version {
        1 => &["gateway_evidence", "connector_evidence"],
        2 => &["connector_evidence"],
        _ => &[],
    };
    if let Value::Object(members) = action {
        for key in absent {
            members.shift_remove(*key);
        }
    }
}

/// Serialization of these types cannot fail: their keys are strings and they hold no floats.
fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
