//! The control of one state address: clear, or one operation with its intent, its ordered progress and why it stopped. It
//! promises that no sequence of events but a legal one makes a document, that every event carries the digest of the document
//! it leaves behind, and that this digest costs the same however long the operation is. Pure; the stores keep the events.

mod completion;
mod document;
mod event;
mod grammar;
#[cfg(test)]
mod legacy_tests;
mod resolution;
mod resume;
#[cfg(test)]
pub mod runner_testing;
#[cfg(test)]
mod runner_tests;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use uuid::Uuid;

use crate::compiler::canonical::Checksum;

use super::model::StateAddress;
use document::Open;

pub use completion::{RunnerCompletion, check_replaced};
pub use event::{
    Cleared, Event, EventKind, FailureCode, Intent, OperationKind, ProgressEntry, ProgressStatus, RecoveryRecord,
    StoredEvent, Succeeded, in_version,
};
pub use resolution::{AcceptedAs, Presence, RecoveryIntent, Resolution, ResolutionRecord, Target, check_targets};
pub use resume::{MAX_RESUMES, ResumeRecord};

/// The version that new operations are written in.
pub const CURRENT_VERSION: u8 = 3;
/// The version of an operation that replaces a runner.
pub const RUNNER_VERSION: u8 = 4;
/// What the first resumption makes of it.
pub const RESUMED_VERSION: u8 = 5;
/// Consecutive topic creates that may start together.
pub const MAX_GROUP: usize = 1000;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Clear,
    InProgress,
    RecoveryRequired,
}

/// What may be shown of a control: no intent, no progress.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OperationStatus {
    pub status: Status,
    pub operation_id: Option<Uuid>,
    pub kind: Option<OperationKind>,
    pub failure_code: Option<FailureCode>,
    pub last_completed_action_index: Option<u32>,
}

/// A step or a stored event that the grammar of operations forbids.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ControlError(pub &'static str);

/// The control document. Equal documents are equal controls; a clone shares intent and progress.
#[derive(Clone)]
pub struct Control {
    site: Arc<Site>,
    open: Option<Box<Open>>,
    /// The version of a document that nothing is pending in.
    clear_version: u8,
    checksum: Checksum,
}

/// The address a document belongs to.
struct Site {
    address: StateAddress,
    text: String,
    clear_checksum: Checksum,
}

impl Control {
    /// Nothing pending; in version 3.
    pub fn clear(address: &StateAddress) -> Self {
        let text = address.to_string();
        let clear_checksum = document::clear_checksum(&text, CURRENT_VERSION);
        let checksum = clear_checksum.clone();
        let site = Arc::new(Site { address: address.clone(), text, clear_checksum });
        Self { site, open: None, clear_version: CURRENT_VERSION, checksum }
    }

    /// Nothing pending, as an earlier version left it; the next step writes the current one. Version 5 has a history of
    /// resumptions and is never clear.
    pub fn clear_in_version(address: &StateAddress, version: u8) -> Result<Self, ControlError> {
        match version {
            1..=4 => {}
            _ => return Err(ControlError("unsupported control version")),
        }
        let clear = Self::clear(address);
        let checksum = document::clear_checksum(&clear.site.text, version);
        Ok(Self { clear_version: version, checksum, ..clear })
    }

    pub fn is_clear(&self) -> bool {
        self.open.is_none()
    }

    pub fn version(&self) -> u8 {
        self.open.as_ref().map_or(self.clear_version, |open| open.version)
    }

    pub fn address(&self) -> &StateAddress {
        &self.site.address
    }

    /// The digest of the document.
    pub fn checksum(&self) -> &Checksum {
        &self.checksum
    }

    /// The index of the last event; none when clear.
    pub fn event_index(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.event_index)
    }

    pub fn intent(&self) -> Option<&Arc<Intent>> {
        self.open.as_ref().map(|open| &open.intent)
    }

    pub fn operation_id(&self) -> Option<Uuid> {
        self.intent().map(|intent| intent.operation_id)
    }

    pub fn progress(&self) -> &[ProgressEntry] {
        self.open.as_ref().map_or(&[], |open| &open.progress)
    }

    pub fn recovery(&self) -> Option<&RecoveryRecord> {
        self.open.as_ref().and_then(|open| open.recovery.as_ref())
    }

    /// The resumptions of a runner's replacement, in order.
    pub fn resumes(&self) -> &[ResumeRecord] {
        self.open.as_ref().map_or(&[], |open| &open.resumes)
    }

    /// Whether nothing was begun beyond the intent: no action was started, and nobody took the operation up again.
    pub fn is_unstarted(&self) -> bool {
        self.progress().is_empty() && self.resumes().is_empty()
    }

    /// The highest action that completed and succeeded.
    pub fn last_completed_action_index(&self) -> Option<u32> {
        self.open.as_ref().and_then(|open| open.frontier.last_succeeded)
    }

    pub fn status(&self) -> OperationStatus {
        OperationStatus {
            status: match &self.open {
                None => Status::Clear,
                Some(open) if open.recovery.is_some() => Status::RecoveryRequired,
                Some(_) => Status::InProgress,
            },
            operation_id: self.operation_id(),
            kind: self.intent().map(|intent| intent.kind),
            failure_code: self.recovery().map(|record| record.failure_code),
            last_completed_action_index: self.last_completed_action_index(),
        }
    }
}

impl PartialEq for Control {
    fn eq(&self, other: &Self) -> bool {
        self.site.text == other.site.text
            && self.checksum == other.checksum
            && self.event_index() == other.event_index()
    }
}

impl Eq for Control {}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("address", &self.site.text)
            .field("status", &self.status())
            .field("event_index", &self.event_index())
            .field("checksum", &self.checksum)
            .finish_non_exhaustive()
    }
}
