//! The receipt of a finished runner replacement: the control behind its last boundary, and the one change of ownership.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Control, ControlError, ProgressStatus};
use crate::compiler::canonical::Checksum;
use crate::state::model::{StateAddress, StoreIdentity};
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
