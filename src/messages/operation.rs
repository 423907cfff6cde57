//! What an operation is asked for, what it reports while it runs, and how it ended.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::codes::{Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::compiler::artifact::Kind;
use crate::compiler::canonical::Checksum;
use crate::planner::Plan;
use crate::planner::flink::{JobId, JobState};
use crate::planner::model::Verb;
use crate::state::model::{StateAddress, StoreIdentity};
use crate::state::plan_file::{ReviewedPlan, Stale};

/// `<kind>:<physical name>`, as results and progress name a resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label {
    pub kind: Kind,
    pub name: String,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// The signal that stopped an operation; its exit code is 130 or 143.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    pub const fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// The user's end of a running operation. Clones reach the same operation.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    signal: Arc<AtomicU8>,
    requested: CancellationToken,
    abandoned: CancellationToken,
}

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// First signal: reads are dropped, no new action starts, the action in flight is awaited and recorded.
    pub fn request(&self, signal: Signal) {
        let code = match signal {
            Signal::Interrupt => 1,
            Signal::Terminate => 2,
        };
        let _ = self.signal.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        self.requested.cancel();
    }

    /// Second signal: the lease is closed, what is in flight is dropped as uncertain, nothing further is recorded. A durable
    /// `started` entry then blocks the address.
    pub fn abandon(&self) {
        self.requested.cancel();
        self.abandoned.cancel();
    }

    pub fn signal(&self) -> Option<Signal> {
        match self.signal.load(Ordering::SeqCst) {
            0 if !self.requested.is_cancelled() => None,
            2 => Some(Signal::Terminate),
            0.. => Some(Signal::Interrupt),
        }
    }

    pub fn requested(&self) -> &CancellationToken {
        &self.requested
    }

    pub fn abandoned(&self) -> &CancellationToken {
        &self.abandoned
    }
}

/// A provider as progress names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ProviderKind {
    Kafka,
    SchemaRegistry,
    Flink,
    KafkaConnect,
}

impl ProviderKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kafka => "Kafka",
            Self::SchemaRegistry => "Schema Registry",
            Self::Flink => "Flink",
            Self::KafkaConnect => "Kafka Connect",
        }
    }
}

/// What an observer hears, in order. It never holds an endpoint or a configuration value.
#[derive(Clone, PartialEq, Debug)]
pub enum OperationEvent {
    /// Another operation holds the lock.
    WaitingForLock {
        remaining: Duration,
    },
    Locked,
    Observing {
        provider: ProviderKind,
        resources: usize,
    },
    Planned {
        actions: usize,
    },
    /// The broker is asked whether it would accept the changes.
    Validating,
    /// The intent is durable.
    Began {
        operation_id: Uuid,
        actions: usize,
    },
    /// Its `started` entry is durable. `index` counts from 0.
    ActionStarted {
        index: usize,
        total: usize,
        label: Label,
        verb: Verb,
    },
    /// Its `completed` entry is durable.
    ActionFinished {
        index: usize,
        total: usize,
        label: Label,
        verb: Verb,
        succeeded: bool,
        elapsed: Duration,
    },
    /// The operation waits for a person: the marker is durable.
    RecoveryRequired {
        operation_id: Uuid,
    },
    Committed {
        operation_id: Uuid,
        state_serial: u64,
    },
    Released,
}

/// Called on the runtime's thread; it must return quickly.
pub type Observer = Arc<dyn Fn(&OperationEvent) + Send + Sync>;

/// An observer that does nothing.
pub fn silent() -> Observer {
    Arc::new(|_| {})
}

/// Who watches an operation and who may stop it.
#[derive(Clone)]
pub struct Control {
    pub observer: Observer,
    pub cancel: Cancel,
}

impl Default for Control {
    fn default() -> Self {
        Self { observer: silent(), cancel: Cancel::new() }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// The state an operation worked on, as results print it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateFacts {
    pub store: StoreIdentity,
    pub address: StateAddress,
    pub serial: u64,
    pub checksum: Checksum,
    /// The ownership file of the local backend.
    pub file: Option<PathBuf>,
}

/// One action or group member that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActionFailure {
    pub label: Label,
    /// Its code and message, the vendor's text included.
    pub diagnostic: Diagnostic,
}

/// What an apply did, by the same lists on success and failure.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Lists {
    /// `create`, `register` and `submit`.
    pub created: Vec<Label>,
    pub updated: Vec<Label>,
    pub deleted: Vec<Label>,
    pub unchanged: Vec<Label>,
    pub errors: Vec<ActionFailure>,
    pub not_started: Vec<Label>,
    /// The Flink jobs among `created`.
    pub jobs: Vec<SubmittedJob>,
}

/// A Flink job that this apply submitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedJob {
    pub name: String,
    pub id: JobId,
    /// When its submission was proved.
    pub state: JobState,
}

/// Reads and compiles the project again while the lock is held (SAF-028): the plan is judged against the files of that moment.
pub type Reload = Box<dyn FnOnce() -> Result<Arc<Compiled>, Diagnostics> + Send>;

/// Rows 11 to 24 of the gate table for `plan`. A plan is always full.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    pub compiled: Arc<Compiled>,
    /// Where the reviewed plan is saved while the lock is still held.
    pub save: Option<PathBuf>,
}

/// A plan file that was written.
#[derive(Clone, Debug)]
pub struct SavedPlan {
    pub path: PathBuf,
    pub checksum: Checksum,
    pub format_version: u32,
}

/// A plan made under the lock, which is released again.
#[derive(Clone, Debug)]
pub struct PlanOutcome {
    pub plan: Arc<Plan>,
    pub state: StateFacts,
    pub saved: Option<SavedPlan>,
    /// W106, W119, W146, W147, W149.
    pub warnings: Diagnostics,
}

/// The narrowing of a direct apply, as typed.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct SelectionText {
    /// `--target`: a model and its upstream models.
    pub target: Option<String>,
    /// `--select`: `tag:<t>`.
    pub select: Option<String>,
}

impl SelectionText {
    pub fn is_empty(&self) -> bool {
        self.target.is_none() && self.select.is_none()
    }
}

/// Where the actions of an apply come from.
pub enum ApplySource {
    Direct {
        selection: SelectionText,
    },
    /// The file as loaded before any state was touched, and how to read the project again under the lock.
    Reviewed {
        file: Arc<ReviewedPlan>,
        reload: Reload,
    },
}

impl fmt::Debug for ApplySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct { selection } => f.debug_struct("Direct").field("selection", selection).finish(),
            Self::Reviewed { file, .. } => {
                f.debug_struct("Reviewed").field("checksum", &file.checksum).finish_non_exhaustive()
            }
        }
    }
}

/// Rows 11 to 31 of the gate table for `apply`.
#[derive(Debug)]
pub struct ApplyRequest {
    pub compiled: Arc<Compiled>,
    pub source: ApplySource,
    /// Grants destructive authority and nothing else.
    pub force: bool,
    /// Stops before the durable intent.
    pub dry_run: bool,
    /// Who acts, for the intent: `local-cli` or a deployer's own name.
    pub actor: String,
}

/// How an apply ended. Each variant has one exit code and one shape of result data.
#[derive(Clone, PartialEq, Debug)]
pub enum ApplyEnd {
    /// Ownership is committed and the lock released.
    Committed,
    /// `--dry-run`: everything up to the durable intent, nothing written.
    DryRun,
    /// Row 21: E417 or E410; nothing written. The outcome's plan says what blocks.
    Blocked(Diagnostic),
    /// E409: the reviewed plan is not what would be carried out now; nothing written.
    Stale(Box<Stale>),
    /// Any other failure; the first diagnostic names the exit's cause.
    Failed(Diagnostics),
    /// A signal ended it; the diagnostic is E903.
    Interrupted(Signal, Diagnostic),
}

/// Everything that a caller prints of an apply.
#[derive(Clone, Debug)]
pub struct ApplyOutcome {
    pub end: ApplyEnd,
    /// None when the apply ended before a fresh plan was made.
    pub plan: Option<Arc<Plan>>,
    pub lists: Lists,
    /// None before the state was read.
    pub state: Option<StateFacts>,
    /// Present once a durable intent was asked for.
    pub operation_id: Option<Uuid>,
    /// Some(true) after a verified commit, some(false) when it is proved that nothing was committed, none when unknown.
    pub committed: Option<bool>,
    /// A durable marker waits for a person.
    pub recovery_required: bool,
    /// The checksum of the reviewed plan that authorised it.
    pub plan_checksum: Option<Checksum>,
    pub warnings: Diagnostics,
}

/// An operation that ended before it had an outcome of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    pub diagnostics: Diagnostics,
    pub warnings: Diagnostics,
    pub signal: Option<Signal>,
    /// The plan file that stands although the command failed afterwards.
    pub saved: Option<PathBuf>,
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self { diagnostics, warnings: Diagnostics::new(), signal: None, saved: None }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Diagnostics::from(diagnostic).into()
    }
}
