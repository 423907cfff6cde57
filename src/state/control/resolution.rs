//! How a blocked operation is resolved: the reviewed record, and the pair of events that ends it under an id of its own.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::event::{Event, Intent, StoredEvent};
use super::{CURRENT_VERSION, Control, ControlError};
use crate::compiler::canonical::Checksum;
use crate::planner::model::Action;
use crate::state::scalar::{Timestamp, uuid_text};

/// What a person decided about a blocked operation (REC-008).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// Every target stands exactly as before or exactly as intended; what is live is recorded.
    Observed,
    /// Every target stands exactly as before; ownership stays.
    RolledBack,
    /// No action was started; ownership stays, and nothing is asked of any provider.
    AbandonedBeforeMutation,
}

impl Resolution {
    pub const ALL: [Self; 3] = [Self::Observed, Self::RolledBack, Self::AbandonedBeforeMutation];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::RolledBack => "rolled_back",
            Self::AbandonedBeforeMutation => "abandoned_before_mutation",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resolution| resolution.as_str() == text)
    }

    /// Whether every target must be observed.
    pub const fn observes(self) -> bool {
        match self {
            Self::Observed | Self::RolledBack => true,
            Self::AbandonedBeforeMutation => false,
        }
    }
}

impl std::fmt::Display for Resolution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How one blocked operation was resolved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolutionRecord {
    pub address: String,
    #[serde(with = "uuid_text")]
    pub blocked_operation_id: Uuid,
    pub evidence_checksum: Checksum,
    pub prior_state_checksum: Checksum,
    pub prior_state_serial: u64,
    #[serde(with = "uuid_text")]
    pub recovery_operation_id: Uuid,
    pub resolution: Resolution,
    pub resolved_at: Timestamp,
    pub result_state_checksum: Checksum,
    pub result_state_serial: u64,
    pub state_changed: bool,
}

impl ResolutionRecord {
    /// Ownership changes only under `observed`, and then the serial steps by one (REC-010, REC-036).
    pub fn check(&self) -> Result<(), ControlError> {
        if self.recovery_operation_id == self.blocked_operation_id {
            return Err(ControlError("a recovery has the id of the operation that it resolves"));
        }
        let same_serial = self.result_state_serial == self.prior_state_serial;
        let same_state = self.result_state_checksum == self.prior_state_checksum;
        let next_serial = self.prior_state_serial.checked_add(1) == Some(self.result_state_serial);
        match self.state_changed {
            false if same_serial && same_state => Ok(()),
            true if self.resolution == Resolution::Observed && next_serial && !same_state => Ok(()),
            false | true => Err(ControlError("the serial of a recovery steps by one exactly when ownership changes")),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    Present,
    Absent,
}

/// The one of its two forms in which a target was proved to stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AcceptedAs {
    Prior,
    Candidate,
}

/// One action of the blocked intent, and the proof of how its resource stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub action: Action,
    pub presence: Presence,
    pub accepted_as: AcceptedAs,
    /// Digest of the normal form of what was observed.
    pub fingerprint: Checksum,
}

/// Event 0 of a recovery: which control it ends, how, and on what evidence.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryIntent {
    /// The blocked control.
    pub control_checksum: Checksum,
    pub record: ResolutionRecord,
    /// One an action in order; empty for an abandoned operation.
    pub targets: Vec<Target>,
}

impl Control {
    /// Ends a blocked operation by a reviewed recovery. The two events belong to the recovery's own id, indexes 0 and 1; the
    /// events of the blocked operation stay open-ended.
    pub fn recover(self, intent: RecoveryIntent) -> Result<(Self, Vec<StoredEvent>), ControlError> {
        self.check_recovery(&intent)?;
        let record = intent.record.clone();
        let stored = |control_checksum: &Checksum, event, event_index| StoredEvent {
            control_checksum: control_checksum.clone(),
            event,
            event_index,
            control_version: CURRENT_VERSION,
        };
        let cleared = Self::clear(self.address());
        let begun = stored(&self.checksum, Event::RecoveryIntent(intent), 0);
        let ended = stored(&cleared.checksum, Event::Recovered(record), 1);
        Ok((cleared, vec![begun, ended]))
    }

    fn check_recovery(&self, intent: &RecoveryIntent) -> Result<(), ControlError> {
        let RecoveryIntent { control_checksum, record, targets } = intent;
        let Some(blocked) = self.intent() else { return Err(ControlError("nothing is pending")) };
        record.check()?;
        if record.blocked_operation_id != blocked.operation_id || record.address != self.address().to_string() {
            return Err(ControlError("a recovery names another operation"));
        }
        if *control_checksum != self.checksum {
            return Err(ControlError("a recovery was made for another stage of the operation"));
        }
        let prior = (record.prior_state_serial, &record.prior_state_checksum);
        if prior != (blocked.prior_state_serial, &blocked.prior_state_checksum) {
            return Err(ControlError("a recovery starts from another state than its operation"));
        }
        if record.resolution.observes() && blocked.runner_evidence().is_some() {
            return Err(ControlError("the replacement of a runner is resumed, not recovered"));
        }
        check_targets(record.resolution, blocked, self.is_unstarted(), targets)
    }
}

/// The targets that a resolution of an operation must have (REC-009, REC-011, REC-012, REC-013).
pub fn check_targets(
    resolution: Resolution,
    blocked: &Intent,
    unstarted: bool,
    targets: &[Target],
) -> Result<(), ControlError> {
    match resolution {
        Resolution::AbandonedBeforeMutation if !unstarted => {
            return Err(ControlError("an operation with a started action cannot be abandoned"));
        }
        Resolution::AbandonedBeforeMutation if !targets.is_empty() => {
            return Err(ControlError("an abandoned operation has no targets"));
        }
        Resolution::AbandonedBeforeMutation => return Ok(()),
        Resolution::Observed | Resolution::RolledBack => {}
    }
    if !targets.iter().map(|target| &target.action).eq(&blocked.actions) {
        return Err(ControlError("the targets of a recovery are not the actions of its operation"));
    }
    if resolution == Resolution::RolledBack && targets.iter().any(|t| t.accepted_as != AcceptedAs::Prior) {
        return Err(ControlError("a target of an operation that was rolled back does not stand as before"));
    }
    Ok(())
}
