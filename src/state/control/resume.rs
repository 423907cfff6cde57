//! The resumption of an interrupted runner replacement: who allowed it, and from exactly which boundary. It makes a control
//! version 5.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ControlError;
use super::document::Open;
use super::event::{Intent, OperationKind, ProgressStatus, RecoveryRecord};
use crate::codes::redact::is_credential_like;
use crate::compiler::canonical::Checksum;
use crate::ownership::runner::Evidence;
use crate::state::model::StoreIdentity;
use crate::state::scalar::{Timestamp, is_safe_text, uuid_text};

use super::grammar::MAX_ACTOR;

/// Resumptions of one operation.
pub const MAX_RESUMES: usize = 32;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeRecord {
    #[serde(with = "uuid_text")]
    pub resume_id: Uuid,
    #[serde(with = "uuid_text")]
    pub operation_id: Uuid,
    pub address: String,
    pub store: StoreIdentity,
    pub prior_state_serial: u64,
    pub prior_state_checksum: Checksum,
    /// The digest of the control that was interrupted.
    pub source_control_checksum: Checksum,
    /// Boundaries that were durable by then.
    pub progress_count: u32,
    /// Safe text of at most 128 characters.
    pub actor: String,
    pub resumed_at: Timestamp,
    /// The interruption that it ends.
    pub recovery: RecoveryRecord,
}

impl Intent {
    /// The evidence of the one runner that a version 4 operation replaces.
    pub fn runner_evidence(&self) -> Option<&Evidence> {
        match self.actions.as_slice() {
            [action] => action.kafka_streams_evidence.as_deref(),
            [] | [_, _, ..] => None,
        }
    }
}

impl ResumeRecord {
    /// Whether it resumes exactly the operation that stands here, at exactly its boundary.
    pub(super) fn check(&self, address: &str, open: &Open, interrupted: &Checksum) -> Result<(), ControlError> {
        let refuse = |rule| Err(ControlError(rule));
        let intent = &open.intent;
        let resumable = intent.kind == OperationKind::Apply
            && intent.runner_evidence().is_some()
            && intent.reviewed_plan_checksum.is_some();
        if !resumable {
            return refuse("only the reviewed replacement of a runner is resumed");
        }
        let same = self.operation_id == intent.operation_id
            && self.address == address
            && self.prior_state_serial == intent.prior_state_serial
            && self.prior_state_checksum == intent.prior_state_checksum
            && open.resumes.first().is_none_or(|first| first.store == self.store);
        if !same {
            return refuse("a resumption names another operation, store or state");
        }
        if self.resume_id == intent.operation_id || open.resumes.iter().any(|one| one.resume_id == self.resume_id) {
            return refuse("the id of a resumption is one of its own");
        }
        if self.resume_id.get_version_num() != 4 {
            return refuse("the id of a resumption is a random uuid");
        }
        if usize::try_from(self.progress_count) != Ok(open.progress.len()) {
            return refuse("a resumption starts from another boundary than its operation stands at");
        }
        if open.progress.iter().any(|entry| entry.status == ProgressStatus::Completed) {
            return refuse("a completed replacement is not resumed");
        }
        if open.recovery.as_ref() != Some(&self.recovery) || self.source_control_checksum != *interrupted {
            return refuse("a resumption names another interruption than that of its operation");
        }
        if !is_safe_text(&self.actor, MAX_ACTOR) || is_credential_like(&self.actor) {
            return refuse("an actor is printable text of at most 128 characters, and no credential");
        }
        if open.resumes.len() >= MAX_RESUMES {
            return refuse("an operation is resumed at most 32 times");
        }
        Ok(())
    }
}
