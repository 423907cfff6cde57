//! The recovery history of one environment: checksum-chained lines that outlive the operations they
//! resolved. The line of a `recovery_intent` is where a recovery is decided, that of a `runner_completed` where the replacement of a
//! runner ends; what follows them only tidies. An `operation_resumed` stands here before it stands in the control.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::compiler::canonical::{Checksum, to_canonical};
use crate::compiler::strict_json;
use crate::state::control::{Control, Event, ResolutionRecord, ResumeRecord, RunnerCompletion};
use crate::state::error::StateError;
use crate::state::model::StateAddress;

use super::files::{Print, StateDir, WriteError, label};

const MAX_HISTORY: usize = 1024 * 1024;
const MAX_EVENTS: usize = 4096;
/// The version of a file that holds recoveries alone.
const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    address: String,
    history_version: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    RecoveryIntent,
    RecoveryResolution,
    OperationResumed,
    RunnerCompleted,
}

impl Kind {
    /// The version of an event, and the least that its file has.
    const fn version(self) -> u8 {
        match self {
            Self::RecoveryIntent | Self::RecoveryResolution => 1,
            Self::OperationResumed => 2,
            Self::RunnerCompleted => 3,
        }
    }
}

/// What a line records.
#[derive(Clone, PartialEq, Debug)]
pub enum Record {
    Intent(ResolutionRecord),
    Resolution(ResolutionRecord),
    Resumed(ResumeRecord),
    Completed(Box<RunnerCompletion>),
}

impl Record {
    /// None unless the value is exactly what a record of this kind is written as.
    fn read(kind: Kind, value: &Value) -> Option<Self> {
        let record = match kind {
            Kind::RecoveryIntent => Self::Intent(serde_json::from_value(value.clone()).ok()?),
            Kind::RecoveryResolution => Self::Resolution(serde_json::from_value(value.clone()).ok()?),
            Kind::OperationResumed => Self::Resumed(serde_json::from_value(value.clone()).ok()?),
            Kind::RunnerCompleted => Self::Completed(serde_json::from_value(value.clone()).ok()?),
        };
        (record.to_value()? == *value).then_some(record)
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Intent(_) => Kind::RecoveryIntent,
            Self::Resolution(_) => Kind::RecoveryResolution,
            Self::Resumed(_) => Kind::OperationResumed,
            Self::Completed(_) => Kind::RunnerCompleted,
        }
    }

    fn to_value(&self) -> Option<Value> {
        match self {
            Self::Intent(record) | Self::Resolution(record) => serde_json::to_value(record).ok(),
            Self::Resumed(record) => serde_json::to_value(record).ok(),
            Self::Completed(record) => serde_json::to_value(record).ok(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    checksum: Checksum,
    event_version: u8,
    kind: Kind,
    previous_checksum: Option<Checksum>,
    record: Value,
    sequence: u64,
}

impl Line {
    fn of(record: &Record, previous_checksum: Option<Checksum>, sequence: u64) -> Option<Self> {
        let (kind, checksum) = (record.kind(), Checksum::of_bytes(&[]));
        let record = record.to_value()?;
        let mut line = Self { checksum, event_version: kind.version(), kind, previous_checksum, record, sequence };
        line.checksum = line.digest()?;
        Some(line)
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = to_canonical(self).ok()?;
        bytes.push(b'\n');
        Some(bytes)
    }

    fn digest(&self) -> Option<Checksum> {
        let mut value = serde_json::to_value(self).ok()?;
        value.as_object_mut()?.shift_remove("checksum");
        Checksum::of::<Value>(&value).ok()
    }
}

/// What the history proves: whose ids are taken, and how each blocked operation was resolved.
#[derive(Clone, Default, Debug)]
pub struct History {
    /// Ids of operations that were resolved or completed, and of the recoveries and resumptions of operations.
    pub used: BTreeSet<Uuid>,
    /// A recovery that is decided and not tidied up.
    pub unresolved: Option<ResolutionRecord>,
    resolved: Vec<ResolutionRecord>,
    /// Of operations that are not completed, by their id.
    resumed: BTreeMap<Uuid, Vec<ResumeRecord>>,
    completed: Vec<RunnerCompletion>,
    last_checksum: Option<Checksum>,
    /// Of the file; 0 when there is none.
    version: u8,
    events: usize,
    /// Bytes that count; what follows is a line that was never acknowledged.
    pub length: u64,
    pub print: Option<Print>,
}

impl History {
    /// An absent file is an empty history. E411, E420.
    pub fn read(dir: &StateDir, name: &str, address: &StateAddress) -> Result<Self, StateError> {
        let Some((bytes, print)) = dir.read(name, MAX_HISTORY)? else { return Ok(Self::default()) };
        let invalid = |rule: &str| StateError::invalid(format!("{}: {rule}", label(name)));
        if print.mode() != 0o600 {
            return Err(invalid("its mode is not 0600"));
        }
        Ok(Self { print: Some(print), ..Self::parse(&bytes, address).map_err(invalid)? })
    }

    /// Whether a line that was never acknowledged follows what counts.
    pub fn is_torn(&self) -> bool {
        self.print.is_some_and(|print| print.length > self.length)
    }

    /// The recovery that ended an operation, tidied up or not.
    pub fn ending(&self, operation_id: Uuid) -> Option<&ResolutionRecord> {
        self.records().find(|record| record.blocked_operation_id == operation_id)
    }

    pub fn resolution(&self, recovery_operation_id: Uuid) -> Option<&ResolutionRecord> {
        self.records().find(|record| record.recovery_operation_id == recovery_operation_id)
    }

    /// The receipt of a runner replacement, which ends it whatever stands in the other files.
    pub fn completion(&self, operation_id: Uuid) -> Option<&RunnerCompletion> {
        self.completed.iter().find(|completion| completion.operation_id == operation_id)
    }

    fn records(&self) -> impl Iterator<Item = &ResolutionRecord> {
        self.resolved.iter().chain(&self.unresolved)
    }

    /// The resumption that was archived for a pending operation and is not in its control yet. E411 when history and control
    /// tell of resumptions that cannot belong together.
    pub fn pending_resume(&self, control: &Control) -> Result<Option<&ResumeRecord>, StateError> {
        let id = control.operation_id();
        let fits = || match (control.resumes(), id.and_then(|id| self.resumed.get(&id)).map(Vec::as_slice)) {
            (_, _) if self.resumed.keys().any(|resumed| Some(*resumed) != id) => None,
            (applied, archived) if applied == archived.unwrap_or_default() => Some(None),
            (applied, Some([earlier @ .., last])) if applied == earlier => {
                let next = control.clone().apply(Event::Resumed(Box::new(last.clone())));
                next.is_ok().then_some(Some(last))
            }
            (_, _) => None,
        };
        fits().ok_or_else(|| {
            StateError::invalid("the recovery history tells of other resumptions than the operation control")
                .operation(id)
        })
    }

    /// Whether one more event of so many bytes would fit.
    pub fn has_room(&self, bytes: usize) -> bool {
        /// Envelope of a file, and all of an event but its record.
        const AROUND: usize = 1024;
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        length.saturating_add(bytes).saturating_add(AROUND) <= MAX_HISTORY && self.events < MAX_EVENTS
    }

    /// Appends one event. A `recovery_intent` needs room for its resolution, too: E411 when the file is full. An event that
    /// needs a higher version of the file replaces it, the older events byte for byte.
    pub fn append(
        &self,
        dir: &StateDir,
        name: &str,
        address: &StateAddress,
        record: &Record,
    ) -> Result<(), WriteError> {
        let refused = |rule: &str| WriteError::NotWritten(StateError::invalid(format!("{}: {rule}", label(name))));
        if self.is_torn() {
            return Err(WriteError::NotWritten(StateError::conflict()));
        }
        self.clone().take(record.clone(), address).map_err(refused)?;
        let sequence = u64::try_from(self.events).unwrap_or(u64::MAX);
        let line = Line::of(record, self.last_checksum.clone(), sequence).and_then(|line| line.bytes());
        let line = line.ok_or_else(|| refused("an event has no canonical form"))?;
        let version = self.version.max(record.kind().version());
        let envelope = if version == self.version { Some(Vec::new()) } else { envelope(address, version) };
        let envelope = envelope.ok_or_else(|| refused("its envelope has no canonical form"))?;
        let (lines, events) = match record {
            // Kind and sequence differ between the two lines by a few bytes.
            Record::Intent(_) => (line.len() * 2 + 64, 2),
            Record::Resolution(_) | Record::Resumed(_) | Record::Completed(_) => (line.len(), 1),
        };
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        if length.saturating_add(envelope.len() + lines) > MAX_HISTORY || self.events + events > MAX_EVENTS {
            return Err(refused("it is full"));
        }
        match &self.print {
            Some(print) if version == self.version => dir.append(name, print, &line),
            Some(print) => {
                let events = match dir.read(name, MAX_HISTORY).map_err(WriteError::NotWritten)? {
                    Some((bytes, now)) if now == *print => bytes.into_iter().skip_while(|byte| *byte != b'\n').skip(1),
                    Some(_) | None => return Err(WriteError::NotWritten(StateError::conflict())),
                };
                dir.replace(name, &envelope.into_iter().chain(events).chain(line).collect::<Vec<u8>>())
            }
            None => dir.replace(name, &[envelope, line].concat()),
        }
    }

    fn parse(bytes: &[u8], address: &StateAddress) -> Result<Self, &'static str> {
        let counted = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = bytes[..counted].split_inclusive(|byte| *byte == b'\n').map(|line| &line[..line.len() - 1]);
        let first = lines.next().ok_or("it has no envelope")?;
        let envelope: Envelope = strict_json::read(first, MAX_HISTORY).map_err(|_| "its envelope is malformed")?;
        if to_canonical(&envelope).ok().as_deref() != Some(first) {
            return Err("its envelope is not in canonical form");
        }
        if envelope.address != address.to_string() {
            return Err("it belongs to another address");
        }
        if !(VERSION..=3).contains(&envelope.history_version) {
            return Err("its version is not supported");
        }
        let mut history = Self { version: envelope.history_version, ..Self::default() };
        let (mut previous, mut needed) = (None, VERSION);
        for (sequence, bytes) in lines.enumerate() {
            if sequence == MAX_EVENTS {
                return Err("it has more events than its bound");
            }
            let line: Line = strict_json::read(bytes, MAX_HISTORY).map_err(|_| "an event is malformed")?;
            if to_canonical(&line).ok().as_deref() != Some(bytes) {
                return Err("an event is not in canonical form");
            }
            let chained = line.event_version == line.kind.version()
                && u64::try_from(sequence) == Ok(line.sequence)
                && line.previous_checksum == previous
                && line.digest().as_ref() == Some(&line.checksum);
            if !chained {
                return Err("its chain is broken");
            }
            previous = Some(line.checksum);
            needed = needed.max(line.event_version);
            let record = Record::read(line.kind, &line.record).ok_or("an event is malformed")?;
            history.take(record, address)?;
        }
        if needed != envelope.history_version {
            return Err("its version is not the one that its events need");
        }
        history.last_checksum = previous;
        history.length = u64::try_from(counted).map_err(|_| "it is larger than its bound")?;
        Ok(history)
    }

    fn take(&mut self, record: Record, address: &StateAddress) -> Result<(), &'static str> {
        self.events += 1;
        match (record, self.unresolved.take()) {
            (Record::Intent(record), None) => {
                check(&record, address)?;
                if self.used.contains(&record.blocked_operation_id) || !self.used.insert(record.recovery_operation_id) {
                    return Err(USED_TWICE);
                }
                if self.resumed.contains_key(&record.blocked_operation_id) {
                    return Err("an operation that was resumed is not recovered");
                }
                self.unresolved = Some(record);
                Ok(())
            }
            (Record::Resolution(record), Some(intent)) if intent == record => {
                if !self.used.insert(record.blocked_operation_id) {
                    return Err(USED_TWICE);
                }
                self.resolved.push(record);
                Ok(())
            }
            (Record::Resumed(record), None) => self.resume(record, address),
            (Record::Completed(record), None) => self.complete(*record, address),
            (Record::Intent(_) | Record::Resumed(_) | Record::Completed(_), Some(_)) => {
                Err("a resolution is not finished")
            }
            (Record::Resolution(_), _) => Err("a resolution differs from its intent"),
        }
    }

    /// What the operation itself must hold is proved by its control, which may be gone.
    fn resume(&mut self, record: ResumeRecord, address: &StateAddress) -> Result<(), &'static str> {
        if record.address != address.to_string() || record.recovery.operation_id != record.operation_id {
            return Err("an event belongs to another address or operation");
        }
        if self.used.contains(&record.operation_id) {
            return Err("an operation is resumed after its end");
        }
        if record.resume_id == record.operation_id || !self.used.insert(record.resume_id) {
            return Err(USED_TWICE);
        }
        let earlier = self.resumed.entry(record.operation_id).or_default();
        if earlier.last().is_some_and(|last| last.progress_count > record.progress_count) {
            return Err("the boundaries of a resumed operation go back");
        }
        earlier.push(record);
        Ok(())
    }

    fn complete(&mut self, record: RunnerCompletion, address: &StateAddress) -> Result<(), &'static str> {
        let control = record.check(address).map_err(|error| error.0)?;
        let archived = self.resumed.remove(&record.operation_id).unwrap_or_default();
        if control.resumes() != archived {
            return Err("a completion holds other resumptions than the history");
        }
        if !self.used.insert(record.operation_id) {
            return Err(USED_TWICE);
        }
        self.completed.push(record);
        Ok(())
    }
}

const USED_TWICE: &str = "an operation id is used twice";

fn check(record: &ResolutionRecord, address: &StateAddress) -> Result<(), &'static str> {
    if record.address != address.to_string() {
        return Err("an event belongs to another address");
    }
    record.check().map_err(|error| error.0)
}

/// The first line of a new file.
fn envelope(address: &StateAddress, history_version: u8) -> Option<Vec<u8>> {
    let mut bytes = to_canonical(&Envelope { address: address.to_string(), history_version }).ok()?;
    bytes.push(b'\n');
    Some(bytes)
}

#[cfg(test)]
#[path = "history_tests.rs"]
pub mod tests;
