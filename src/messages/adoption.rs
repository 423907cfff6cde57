//! What an adoption is asked for, and how it ended.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use uuid::Uuid;

use super::operation::{Reload, Signal, StateFacts};
use crate::codes::{Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::compiler::artifact::Kind;
use crate::compiler::canonical::Checksum;
use crate::state::adoption::{Review, Selection};

/// The answer to a review; E414 when it is not a confirmation.
pub type Answer = Pin<Box<dyn Future<Output = Result<(), Diagnostic>>>>;

/// Shows a review to whoever decides, while the lock is held; called once, for a new claim only. Dropping the answer ends the
/// question.
pub type Confirm = Box<dyn FnOnce(&Review) -> Answer + Send>;

/// Rows 4 to 13 of an adoption. It reads, and writes ownership; no provider is ever changed.
#[derive(Debug)]
pub struct AdoptRequest {
    pub compiled: Arc<Compiled>,
    pub what: Adopt,
    /// Who acts, for the intent: `local-cli` or a deployer's own name.
    pub actor: String,
}

/// What is claimed, and by whose word.
pub enum Adopt {
    One {
        kind: Kind,
        /// Logical name.
        name: String,
        confirm: Confirm,
    },
    /// Reviews every one of these that is not recorded yet, and saves the selection at a path at which nothing stands.
    Save { candidates: Vec<(Kind, String)>, out: PathBuf },
    /// Claims exactly what was reviewed; the caller has compared the token.
    Selected {
        selection: Arc<Selection>,
        /// Compiles the project again under the lock.
        reload: Reload,
    },
}

impl fmt::Debug for Adopt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One { kind, name, .. } => f.debug_struct("One").field("kind", kind).field("name", name).finish(),
            Self::Save { candidates, out } => {
                f.debug_struct("Save").field("candidates", &candidates.len()).field("out", out).finish()
            }
            Self::Selected { selection, .. } => {
                f.debug_struct("Selected").field("checksum", &selection.checksum).finish_non_exhaustive()
            }
        }
    }
}

/// How an adoption ended.
#[derive(Clone, PartialEq, Debug)]
pub enum AdoptEnd {
    /// The claims are committed and the lock released.
    Adopted,
    /// All of them stood before; nothing was written.
    AlreadyOwned,
    /// The selection is saved; nothing is claimed.
    Saved { path: PathBuf, selection: Arc<Selection> },
    /// The first diagnostic is the cause.
    Failed(Diagnostics),
    /// A signal ended it; the diagnostic is E903.
    Interrupted(Signal, Diagnostic),
}

/// Everything that a caller prints of an adoption.
#[derive(Clone, Debug)]
pub struct AdoptOutcome {
    pub end: AdoptEnd,
    /// What was seen last, in kind order; empty when nothing was read.
    pub reviews: Vec<Review>,
    /// None before the state was read.
    pub state: Option<StateFacts>,
    /// Present once a durable intent was asked for.
    pub operation_id: Option<Uuid>,
    /// Some(true) after a verified commit, some(false) when it is proved that nothing was committed, none when unknown.
    pub committed: Option<bool>,
    /// A durable marker waits for a person.
    pub recovery_required: bool,
    /// The selection that authorised it.
    pub selection_checksum: Option<Checksum>,
    pub warnings: Diagnostics,
}

impl AdoptOutcome {
    /// Ended before anything was read or written.
    pub fn stopped(end: AdoptEnd) -> Self {
        Self {
            end,
            reviews: Vec::new(),
            state: None,
            operation_id: None,
            committed: Some(false),
            recovery_required: false,
            selection_checksum: None,
            warnings: Diagnostics::new(),
        }
    }
}
