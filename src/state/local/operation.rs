//! One lock hold of the local store, and its durable steps.

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::failpoint;
use crate::state::control::{Control, Event, ResolutionRecord, ResumeRecord, RunnerCompletion, StoredEvent};
use crate::state::error::StateError;
use crate::state::error::StateErrorKind;
use crate::state::model::{MAX_STATE, OwnershipState, StateAddress, StoreIdentity};
use crate::state::step::{MAX_FILE, Mark, Step};
use crate::state::store::{Snapshot, StateOperation};

use super::control_file::{header_bytes, line_bytes};
use super::files::{StateDir, WriteError, label};
use super::history::{History, Record};
use super::lock::Lock;
use super::view::{Names, Prints, View};

const NO_ROOM: &str = "the recovery history has no room for the end of this operation";

pub struct LocalOperation {
    root: PathBuf,
    dir: StateDir,
    names: Names,
    store: StoreIdentity,
    address: StateAddress,
    lock: Lock,
    /// What this hold last proved of the files; none before the first observation and after a failure.
    known: Option<(Mark, Prints)>,
    /// The operation that is pending, as far as this hold knows.
    pending: Option<Uuid>,
    /// The last operation that was committed under this hold.
    committed: Option<Uuid>,
    /// A write whose outcome is unknown: nothing more is written under this hold.
    broken: bool,
}

impl LocalOperation {
    pub(super) fn acquire(
        root: PathBuf,
        store: StoreIdentity,
        address: StateAddress,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<Self, StateError> {
        let dir = StateDir::open(&root, true)?
            .ok_or_else(|| StateError::unavailable("the state directory vanished").suggest("run the command again"))?;
        let names = Names::of(&address.environment);
        let lock = Lock::take(&root, &dir, names.lock.clone(), timeout, give_up)?;
        failpoint::point("lock.taken");
        let operation =
            Self { root, dir, names, store, address, lock, known: None, pending: None, committed: None, broken: false };
        operation.settle()?;
        Ok(operation)
    }

    /// Finishes what a killed predecessor committed, and clears away what it did not.
    fn settle(&self) -> Result<(), StateError> {
        let view = View::read(&self.dir, &self.address)?;
        if let Some(print) = view.prints.control
            && (print.length > view.control_length || view.ended)
        {
            self.dir.cut(&self.names.control, view.control_length)?;
            failpoint::point("settle.cut");
        }
        if view.history.is_torn() {
            self.dir.cut(&self.names.history, view.history.length)?;
            failpoint::point("settle.cut");
        }
        if view.ended {
            self.finish(view.from_pending)?;
        }
        if self.dir.print(&self.names.pending)?.is_some() {
            self.dir.remove(&self.names.pending)?;
            failpoint::point("settle.removed");
        }
        for name in self.dir.names(|name| self.names.is_left_over(name))? {
            self.dir.remove(&name)?;
        }
        Ok(())
    }

    /// The second half of a commit, a completion or a recovery: ownership into place, the resolution of a recovery into the history, then the
    /// clear header.
    fn finish(&self, from_pending: bool) -> Result<(), StateError> {
        if from_pending {
            self.dir.rename(&self.names.pending, &self.names.state)?;
            failpoint::point("commit.renamed");
        }
        let history = self.history()?;
        let resolved = match &history.unresolved {
            Some(record) => self.record(&history, &Record::Resolution(record.clone())),
            None => Ok(()),
        };
        resolved.and_then(|()| self.write_clear()).map_err(|error| match error {
            WriteError::NotWritten(error) => error,
            WriteError::Unknown => StateError::unknown_commit(),
        })
    }

    fn history(&self) -> Result<History, StateError> {
        History::read(&self.dir, &self.names.history, &self.address)
    }

    fn record(&self, history: &History, record: &Record) -> Result<(), WriteError> {
        history.append(&self.dir, &self.names.history, &self.address, record)?;
        failpoint::point(match record {
            Record::Intent(_) => "recovery.intent",
            Record::Resolution(_) => "recovery.resolution",
            Record::Resumed(_) => "resume.archived",
            Record::Completed(_) => "runner.completed",
        });
        Ok(())
    }

    fn write_clear(&self) -> Result<(), WriteError> {
        let version = crate::state::control::CURRENT_VERSION;
        let header = header_bytes(&self.address, version, None).map_err(WriteError::NotWritten)?;
        self.dir.replace(&self.names.control, &header)
    }

    /// E424 unless the files are what the step starts from. Reads them whole at the two ends of an operation.
    fn stands_at(&self, step: &Step) -> Result<Prints, StateError> {
        let before = &step.before;
        let begins = before.operation_id.is_none();
        let resumes = matches!(step.events.last().map(|stored| &stored.event), Some(Event::Resumed(_)));
        let whole = begins || resumes || step.commits;
        let unchanged = match &self.known {
            Some((mark, prints)) if !whole => mark == before && *prints == Prints::now(&self.dir, &self.names)?,
            Some(_) | None => false,
        };
        if let (true, Some((_, prints))) = (unchanged, &self.known) {
            return Ok(*prints);
        }
        let mut view = View::read(&self.dir, &self.address)?;
        if view.ended {
            self.finish(view.from_pending)?;
            view = View::read(&self.dir, &self.address)?;
        }
        let torn =
            view.prints.control.is_some_and(|print| print.length > view.control_length) || view.history.is_torn();
        if torn || Mark::of(&view.snapshot(&self.store)) != *before {
            return Err(StateError::conflict());
        }
        if begins && view.history.used.contains(&step.operation_id) {
            return Err(StateError::invalid("the operation id was used by an earlier operation"));
        }
        Ok(view.prints)
    }

    fn write(&self, step: &Step, prints: &Prints) -> Result<(), WriteError> {
        let line = line_bytes(&step.events).map_err(WriteError::NotWritten)?;
        match (step.events.last().map(|stored| &stored.event), &step.receipt) {
            (Some(Event::Intent(_)), _) => self.write_intent(step, &line),
            (Some(Event::Succeeded(_)), None) => self.write_commit(step, &line, prints),
            (Some(Event::Succeeded(_)), Some(receipt)) => self.write_completion(step, receipt),
            (Some(Event::ClearedBeforeMutation(_)), _) => self.write_clear(),
            (Some(Event::Recovered(record)), _) => self.write_recovery(step, record),
            (Some(Event::Resumed(record)), _) => self.write_resume(step, record, &line, prints),
            (Some(Event::Progress(_) | Event::RecoveryRequired(_)), _) => self.append(&line, prints),
            (Some(Event::RecoveryIntent(_)), _) => {
                Err(WriteError::NotWritten(StateError::invalid("a recovery is written together with its end")))
            }
            (None, _) => Err(WriteError::NotWritten(StateError::invalid("a step has at least one event"))),
        }
    }

    /// The archive first: from then on this resumption, and no other, may be carried on.
    fn write_resume(&self, step: &Step, record: &ResumeRecord, line: &[u8], prints: &Prints) -> Result<(), WriteError> {
        let refused = |why: &str| WriteError::NotWritten(StateError::invalid(why));
        let view = View::read(&self.dir, &self.address).map_err(WriteError::NotWritten)?;
        match view.history.pending_resume(&view.control).map_err(WriteError::NotWritten)? {
            Some(archived) if archived == record => {}
            Some(_) => return Err(refused("another resumption of this operation was allowed and not carried out")),
            None if self.has_room_to_end(&view.history, &step.after.control.control) => {
                self.record(&view.history, &Record::Resumed(record.clone()))?;
            }
            None => return Err(refused(NO_ROOM)),
        }
        self.append(line, prints)
    }

    /// Whether the history can take what ends the replacement of a runner: its control as it will be.
    fn has_room_to_end(&self, history: &History, control: &Control) -> bool {
        /// Five boundaries, the progress of 1024 partitions in one of them, and a resumption.
        const STILL_TO_COME: usize = 128 * 1024;
        let so_far = serde_json::to_string(&control.to_value()).map_or(usize::MAX, |text| text.len());
        history.has_room(so_far.saturating_add(STILL_TO_COME))
    }

    /// The line with `runner_completed` is the commit point of a replacement.
    fn write_completion(&self, step: &Step, receipt: &RunnerCompletion) -> Result<(), WriteError> {
        let history = self.history().map_err(WriteError::NotWritten)?;
        self.decide(step, || self.record(&history, &Record::Completed(Box::new(receipt.clone()))))
    }

    fn write_intent(&self, step: &Step, line: &[u8]) -> Result<(), WriteError> {
        let begun = &step.after.control.control;
        if begun.intent().is_some_and(|intent| intent.runner_evidence().is_some()) {
            let history = self.history().map_err(WriteError::NotWritten)?;
            if !self.has_room_to_end(&history, begun) {
                return Err(WriteError::NotWritten(StateError::invalid(NO_ROOM)));
            }
        }
        let version = step.events.first().map_or(0, |stored: &StoredEvent| stored.control_version);
        let mut bytes =
            header_bytes(&self.address, version, Some(step.operation_id)).map_err(WriteError::NotWritten)?;
        bytes.extend_from_slice(line);
        self.dir.replace(&self.names.control, &bytes)
    }

    fn append(&self, line: &[u8], prints: &Prints) -> Result<(), WriteError> {
        let print = prints.control.ok_or_else(|| WriteError::NotWritten(StateError::conflict()))?;
        let bound = u64::try_from(MAX_FILE).unwrap_or(u64::MAX);
        if print.length.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX)) > bound {
            let error = StateError::invalid(format!("{} would be larger than its bound", label(&self.names.control)));
            return Err(WriteError::NotWritten(error));
        }
        self.dir.append(&self.names.control, &print, line)
    }

    /// The line with `succeeded` is the commit point.
    fn write_commit(&self, step: &Step, line: &[u8], prints: &Prints) -> Result<(), WriteError> {
        self.decide(step, || {
            self.append(line, prints)?;
            failpoint::point("commit.line");
            Ok(())
        })
    }

    /// The line with `recovery_intent` is the commit point of a recovery: it is written only after everything was verified, so a
    /// kill behind it leaves nothing to decide.
    fn write_recovery(&self, step: &Step, record: &ResolutionRecord) -> Result<(), WriteError> {
        let history = self.history().map_err(WriteError::NotWritten)?;
        self.decide(step, || self.record(&history, &Record::Intent(record.clone())))
    }

    /// Prepares the ownership of a step, then runs its commit point. What follows only tidies: whoever reads or locks next can
    /// do it.
    fn decide(&self, step: &Step, commit: impl FnOnce() -> Result<(), WriteError>) -> Result<(), WriteError> {
        if step.writes_state {
            let bytes = state_bytes(&step.after.state.state).map_err(WriteError::NotWritten)?;
            self.dir.remove(&self.names.pending).map_err(WriteError::NotWritten)?;
            self.dir.prepare(&self.names.pending, &bytes).map_err(WriteError::NotWritten)?;
        }
        if let Err(error) = commit() {
            if matches!(error, WriteError::NotWritten(_)) {
                let _ = self.dir.remove(&self.names.pending);
            }
            return Err(error);
        }
        if self.finish(step.writes_state).is_ok() {
            failpoint::point("commit.done");
        }
        Ok(())
    }

    fn lost(&self) -> StateError {
        StateError::lock_lost().operation(self.pending)
    }
}

/// The stored text of ownership: two-space indent, sorted keys, a final newline.
fn state_bytes(state: &OwnershipState) -> Result<Vec<u8>, StateError> {
    let sorted: serde_json::Value = crate::compiler::canonical::to_canonical(state)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or_else(|| StateError::invalid("the next ownership state has no canonical form"))?;
    let mut text = serde_json::to_string_pretty(&sorted)
        .map_err(|_| StateError::invalid("the next ownership state has no canonical form"))?;
    text.push('\n');
    if text.len() > MAX_STATE {
        return Err(StateError::invalid("the next ownership state is larger than its bound"));
    }
    Ok(text.into_bytes())
}

impl StateOperation for LocalOperation {
    fn observe(&mut self) -> Result<Snapshot, StateError> {
        self.check_lock()?;
        let view = View::read(&self.dir, &self.address)?;
        let snapshot = view.snapshot(&self.store);
        self.pending = view.control.operation_id();
        self.known = Some((Mark::of(&snapshot), view.prints));
        Ok(snapshot)
    }

    fn check_lock(&mut self) -> Result<(), StateError> {
        if !self.broken && self.lock.stands(&self.root) { Ok(()) } else { Err(self.lost()) }
    }

    fn execute(&mut self, step: Step) -> Result<Snapshot, StateError> {
        self.check_lock()?;
        let prints = match self.stands_at(&step) {
            Ok(prints) => prints,
            Err(error) => {
                self.known = None;
                return Err(error.operation(self.pending));
            }
        };
        self.known = None;
        match self.write(&step, &prints) {
            Ok(()) => {}
            Err(WriteError::NotWritten(error)) => return Err(error.operation(self.pending)),
            Err(WriteError::Unknown) => {
                self.broken = true;
                return Err(StateError::unknown_commit().operation(Some(step.operation_id)));
            }
        }
        self.pending = step.after.control.control.operation_id();
        if step.commits {
            self.committed = Some(step.operation_id);
        }
        if let Ok(prints) = Prints::now(&self.dir, &self.names) {
            self.known = Some((Mark::of(&step.after), prints));
        }
        Ok(step.after)
    }

    fn resolution(&mut self, recovery_operation_id: Uuid) -> Result<Option<ResolutionRecord>, StateError> {
        self.check_lock()?;
        Ok(self.history()?.resolution(recovery_operation_id).cloned())
    }

    fn pending_resume(&mut self, snapshot: &Snapshot) -> Result<Option<ResumeRecord>, StateError> {
        self.check_lock()?;
        self.history()?.pending_resume(&snapshot.control.control).map(Option::<&ResumeRecord>::cloned)
    }

    fn completion(&mut self, operation_id: Uuid) -> Result<Option<RunnerCompletion>, StateError> {
        self.check_lock()?;
        Ok(self.history()?.completion(operation_id).cloned())
    }

    fn release(self) -> Result<(), StateError> {
        let lost = self.lost();
        let committed = self.committed;
        let stands = !self.broken && self.lock.stands(&self.root);
        let released = self.lock.release();
        failpoint::point("lock.released");
        if released && stands {
            return Ok(());
        }
        match committed {
            Some(_) => Err(StateError::new(StateErrorKind::ReleaseAfterCommit).operation(committed)),
            None => Err(lost),
        }
    }
}
