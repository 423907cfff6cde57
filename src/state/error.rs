//! What can go wrong with durable state, in the words of the product: no text of an operating system, a driver or a server.

use std::fmt;

use uuid::Uuid;

use crate::codes::{Code, Diagnostic};
use crate::ownership::Invalid;

use super::control::OperationStatus;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateErrorKind {
    /// The store cannot be used; nothing was written. E420.
    Unavailable,
    /// Format, identity or version of what is stored, or a step that its grammar forbids. E411.
    InvalidState,
    /// What is stored is not what the snapshot says; nothing was written. E424.
    Conflict,
    /// Another operation held the lock until the deadline. E422.
    LockTimeout,
    /// The caller gave up waiting for the lock. E903.
    Interrupted,
    /// Exclusivity cannot be proved any more. E423.
    LockLost,
    /// An earlier operation did not finish. E419.
    RecoveryRequired(OperationStatus),
    /// A durable step was sent, and neither image can be proved. E425.
    UnknownCommit,
    /// The commit is verified, the release is not. E426.
    ReleaseAfterCommit,
}

/// Whether the step that failed stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durable {
    No,
    Yes,
    Unknown,
}

/// An error of a store. `operation_id` is set once a durable intent exists or may exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateError {
    pub kind: StateErrorKind,
    pub operation_id: Option<Uuid>,
    /// Our own words about the cause: a file of the project's state directory, a rule. Never another program's text.
    detail: Option<String>,
    suggestion: Option<&'static str>,
    /// The step was seen to stand although the lock is lost.
    stands: bool,
}

/// E411
impl From<Invalid> for StateError {
    fn from(Invalid(why): Invalid) -> Self {
        Self::invalid(why)
    }
}

impl StateError {
    pub fn new(kind: StateErrorKind) -> Self {
        Self { kind, operation_id: None, detail: None, suggestion: None, stands: false }
    }

    /// The step that answered with this error was seen to stand.
    pub fn stands(mut self) -> Self {
        self.stands = true;
        self
    }

    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..Self::new(StateErrorKind::Unavailable) }
    }

    pub fn invalid(detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..Self::new(StateErrorKind::InvalidState) }
    }

    pub fn conflict() -> Self {
        Self::new(StateErrorKind::Conflict)
    }

    pub fn lock_lost() -> Self {
        Self::new(StateErrorKind::LockLost)
    }

    pub fn recovery_required(status: OperationStatus) -> Self {
        let operation_id = status.operation_id;
        Self { operation_id, ..Self::new(StateErrorKind::RecoveryRequired(status)) }
    }

    pub fn unknown_commit() -> Self {
        Self::new(StateErrorKind::UnknownCommit)
    }

    /// Replaces the standard advice of the kind.
    pub fn suggest(mut self, suggestion: &'static str) -> Self {
        self.suggestion = Some(suggestion);
        self
    }

    pub fn operation(mut self, operation_id: Option<Uuid>) -> Self {
        self.operation_id = self.operation_id.or(operation_id);
        self
    }

    pub fn code(&self) -> Code {
        match self.kind {
            StateErrorKind::Unavailable => Code::E420StateBackendUnavailable,
            StateErrorKind::InvalidState => Code::E411StateInvalid,
            StateErrorKind::Conflict => Code::E424StateConflict,
            StateErrorKind::LockTimeout => Code::E422StateLockTimeout,
            StateErrorKind::Interrupted => Code::E903Interrupted,
            StateErrorKind::LockLost => Code::E423StateLockLost,
            StateErrorKind::RecoveryRequired(_) => Code::E419StateRecoveryRequired,
            StateErrorKind::UnknownCommit => Code::E425StateUnknownOutcome,
            StateErrorKind::ReleaseAfterCommit => Code::E426StateReleaseFailedAfterCommit,
        }
    }

    /// What is known of the step that answered with this error.
    pub fn durable(&self) -> Durable {
        match self.kind {
            StateErrorKind::UnknownCommit => Durable::Unknown,
            StateErrorKind::ReleaseAfterCommit => Durable::Yes,
            StateErrorKind::LockLost if self.stands => Durable::Yes,
            StateErrorKind::Unavailable
            | StateErrorKind::InvalidState
            | StateErrorKind::Conflict
            | StateErrorKind::LockTimeout
            | StateErrorKind::Interrupted
            | StateErrorKind::LockLost
            | StateErrorKind::RecoveryRequired(_) => Durable::No,
        }
    }

    fn text(&self) -> &'static str {
        match self.kind {
            StateErrorKind::Unavailable => "the deployment state is not available",
            StateErrorKind::InvalidState => "the deployment state is not valid",
            StateErrorKind::Conflict => "the deployment state changed since it was read",
            StateErrorKind::LockTimeout => "another operation holds the lock of this environment",
            StateErrorKind::Interrupted => "interrupted while waiting for the lock of this environment",
            StateErrorKind::LockLost => "the lock of this environment was lost",
            StateErrorKind::RecoveryRequired(_) => "an earlier operation on this environment did not finish",
            StateErrorKind::UnknownCommit => "it is unknown whether the last durable step was written",
            StateErrorKind::ReleaseAfterCommit => {
                "the operation is committed, but the release of its lock is not proved"
            }
        }
    }

    fn advice(&self) -> &'static str {
        match self.kind {
            StateErrorKind::Unavailable => {
                "nothing was changed by this command; check the state store and run it again"
            }
            StateErrorKind::InvalidState => {
                "keep the files as evidence, compare project and environment, restore a verified backup; never edit them by hand"
            }
            StateErrorKind::Conflict => "plan again from the new state",
            StateErrorKind::LockTimeout => {
                "wait for the other operation to end (`streamt state lock-status` tells), or raise lock_timeout_seconds; never kill it to get the lock"
            }
            StateErrorKind::Interrupted => "nothing was changed; run the command again",
            StateErrorKind::LockLost => "read `streamt state status` before anything else; repeat nothing until then",
            StateErrorKind::RecoveryRequired(_) => {
                "read `streamt state status`; then save the evidence with `streamt state recovery-plan --resolution observed \
                 --out FILE`, have it reviewed, and end the operation with `streamt state recover --plan FILE`"
            }
            StateErrorKind::UnknownCommit => "read `streamt state status`; repeat nothing before the result is known",
            StateErrorKind::ReleaseAfterCommit => {
                "the work is done; do not repeat it; check that its process has ended"
            }
        }
    }

    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic =
            Diagnostic::new(self.code(), self.to_string()).suggest(self.suggestion.unwrap_or(self.advice()));
        match self.operation_id {
            Some(operation_id) => diagnostic.operation(operation_id),
            None => diagnostic,
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        if let Some(detail) = &self.detail {
            write!(f, ": {detail}")?;
        }
        match (&self.kind, self.operation_id) {
            (
                StateErrorKind::LockLost | StateErrorKind::UnknownCommit | StateErrorKind::ReleaseAfterCommit,
                Some(id),
            ) => {
                write!(f, ". Operation ID: {id}.")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for StateError {}

impl From<StateError> for Diagnostic {
    fn from(error: StateError) -> Self {
        error.diagnostic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_kind() -> Vec<StateErrorKind> {
        let status = super::super::control::Control::clear(&super::super::testing::address("local")).status();
        vec![
            StateErrorKind::Unavailable,
            StateErrorKind::InvalidState,
            StateErrorKind::Conflict,
            StateErrorKind::LockTimeout,
            StateErrorKind::Interrupted,
            StateErrorKind::LockLost,
            StateErrorKind::RecoveryRequired(status),
            StateErrorKind::UnknownCommit,
            StateErrorKind::ReleaseAfterCommit,
        ]
    }

    #[test]
    fn every_kind_says_what_is_wrong_and_what_to_do() {
        for kind in every_kind() {
            let diagnostic = StateError::new(kind.clone()).diagnostic();
            assert!(
                !diagnostic.message.is_empty() && diagnostic.suggestion.is_some_and(|text| text.len() > 10),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn the_operation_is_named_where_its_outcome_is_in_doubt() {
        let id = super::super::testing::OPERATION;
        for kind in every_kind() {
            let named = matches!(
                kind,
                StateErrorKind::LockLost | StateErrorKind::UnknownCommit | StateErrorKind::ReleaseAfterCommit
            );
            let error = StateError::new(kind).operation(Some(id));
            assert_eq!(error.to_string().ends_with(&format!("Operation ID: {id}.")), named, "{error}");
            assert_eq!(error.diagnostic().operation_id, Some(id));
        }
    }
}
