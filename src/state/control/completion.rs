//! The receipt of a finished runner replacement: the control behind its last boundary, and the one change of ownership.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Control, ControlError, Intent, ProgressStatus, Succeeded};
use crate::compiler::canonical::Checksum;
use crate::state::model::{OwnershipState, StateAddress, StoreIdentity};
use crate::state::scalar::{Timestamp, uuid_text};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerCompletion {
    #[serde(with = "uuid_text")]
    pub operation_id: Uuid,
    pub address: String,
    pub store: StoreIdentity,
    /// The whole document.
    pub control: Value,
    pub prior_state_serial: u64,
    pub prior_state_checksum: Checksum,
    pub result_state_serial: u64,
    pub result_state_checksum: Checksum,
    pub completed_at: Timestamp,
}

impl RunnerCompletion {
    /// The receipt of the end of a control whose every boundary is durable.
    pub fn of(control: &Control, store: &StoreIdentity, end: &Succeeded) -> Result<Self, ControlError> {
        let Some(intent) = control.intent() else { return Err(ControlError("a completion closes nothing")) };
        let completion = Self {
            operation_id: intent.operation_id,
            address: control.address().to_string(),
            store: store.clone(),
            control: control.to_value(),
            prior_state_serial: intent.prior_state_serial,
            prior_state_checksum: intent.prior_state_checksum.clone(),
            result_state_serial: end.state_serial,
            result_state_checksum: end.state_checksum.clone(),
            completed_at: end.completed_at.clone(),
        };
        completion.check(control.address())?;
        Ok(completion)
    }

    /// The control that it closes, once everything in it agrees.
    pub fn check(&self, address: &StateAddress) -> Result<Control, ControlError> {
        let refuse = |rule| Err(ControlError(rule));
        if self.address != address.to_string() {
            return refuse("a completion belongs to another address");
        }
        let control = Control::read(address, &self.control)?;
        let Some(intent) = control.intent() else { return refuse("a completion closes nothing") };
        let prior = (intent.operation_id, intent.prior_state_serial, &intent.prior_state_checksum);
        if intent.runner_evidence().is_none()
            || prior != (self.operation_id, self.prior_state_serial, &self.prior_state_checksum)
        {
            return refuse("a completion names another operation than its control");
        }
        let last = control.progress().last();
        if !last.is_some_and(|entry| entry.status == ProgressStatus::Completed && entry.succeeded == Some(true)) {
            return refuse("a completion stands behind every boundary of its operation");
        }
        if control.resumes().iter().any(|resumed| resumed.store != self.store) {
            return refuse("a completion names another store than a resumption of its operation");
        }
        let next = self.prior_state_serial.checked_add(1) == Some(self.result_state_serial);
        if !next || self.result_state_checksum == self.prior_state_checksum {
            return refuse("a completion changes ownership once");
        }
        Ok(control)
    }
}

/// The replacement of a runner changes the digest of its artifact to the reviewed one, and nothing else: undone, the ownership
/// that it leaves is the one that it started from.
pub fn check_replaced(intent: &Intent, next: Option<&OwnershipState>) -> Result<(), ControlError> {
    let refuse = || ControlError("the replacement of a runner changes the artifact of that runner alone");
    let digest = |artifact| Checksum::of(artifact).map_err(|_| refuse());
    let (evidence, next) = intent.runner_evidence().zip(next).ok_or_else(refuse)?;
    let mut undone = next.clone();
    undone.serial = undone.serial.checked_sub(1).ok_or_else(refuse)?;
    let id = intent.actions.first().map(|action| &action.resource_id);
    let record = id.and_then(|id| undone.resources.get_mut(id)).ok_or_else(refuse)?;
    if record.artifact_checksum != digest(&evidence.desired_artifact)? {
        return Err(refuse());
    }
    record.artifact_checksum = digest(&evidence.prior_artifact)?;
    let same = undone.serial == intent.prior_state_serial
        && undone.checksum().ok().as_ref() == Some(&intent.prior_state_checksum);
    if same { Ok(()) } else { Err(refuse()) }
}
