//! The recovery history of one environment: checksum-chained lines that outlive the operations they
//! resolved. The line of a `recovery_intent` is where a recovery is decided; what follows it only tidies.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::compiler::canonical::{Checksum, to_canonical};
use crate::compiler::strict_json;
use crate::state::control::ResolutionRecord;
use crate::state::error::StateError;
use crate::state::model::StateAddress;

use super::files::{Print, StateDir, WriteError, label};

const MAX_HISTORY: usize = 1024 * 1024;
const MAX_EVENTS: usize = 4096;
const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    address: String,
    history_version: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    RecoveryIntent,
    RecoveryResolution,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    checksum: Checksum,
    event_version: u8,
    kind: Entry,
    previous_checksum: Option<Checksum>,
    record: ResolutionRecord,
    sequence: u64,
}

impl Line {
    fn of(entry: Entry, record: ResolutionRecord, previous_checksum: Option<Checksum>, sequence: u64) -> Option<Self> {
        let checksum = Checksum::of_bytes(&[]);
        let mut line = Self { checksum, event_version: 1, kind: entry, previous_checksum, record, sequence };
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
    /// Ids of resolved operations and of the recoveries that resolved them.
    pub used: BTreeSet<Uuid>,
    /// A recovery that is decided and not tidied up.
    pub unresolved: Option<ResolutionRecord>,
    resolved: Vec<ResolutionRecord>,
    last_checksum: Option<Checksum>,
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

    fn records(&self) -> impl Iterator<Item = &ResolutionRecord> {
        self.resolved.iter().chain(&self.unresolved)
    }

    /// Appends one event. A `recovery_intent` needs room for its resolution, too: E411 when the file is full.
    pub fn append(
        &self,
        dir: &StateDir,
        name: &str,
        address: &StateAddress,
        entry: Entry,
        record: &ResolutionRecord,
    ) -> Result<(), WriteError> {
        let refused = |rule: &str| WriteError::NotWritten(StateError::invalid(format!("{}: {rule}", label(name))));
        if self.is_torn() {
            return Err(WriteError::NotWritten(StateError::conflict()));
        }
        self.clone().take(entry, record.clone(), &address.to_string()).map_err(refused)?;
        let sequence = u64::try_from(self.events).unwrap_or(u64::MAX);
        let line = Line::of(entry, record.clone(), self.last_checksum.clone(), sequence).and_then(|line| line.bytes());
        let line = line.ok_or_else(|| refused("an event has no canonical form"))?;
        let envelope = match self.print {
            Some(_) => Vec::new(),
            None => envelope(address).ok_or_else(|| refused("its envelope has no canonical form"))?,
        };
        let (lines, events) = match entry {
            // Kind and sequence differ between the two lines by a few bytes.
            Entry::RecoveryIntent => (line.len() * 2 + 64, 2),
            Entry::RecoveryResolution => (line.len(), 1),
        };
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        if length.saturating_add(envelope.len() + lines) > MAX_HISTORY || self.events + events > MAX_EVENTS {
            return Err(refused("it is full"));
        }
        match &self.print {
            Some(print) => dir.append(name, print, &line),
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
        match envelope.history_version {
            VERSION => {}
            2 | 3 => return Err("it holds runner events, which this version of streamt cannot read"),
            _ => return Err("its version is not supported"),
        }
        let mut history = Self::default();
        let mut previous = None;
        for (sequence, bytes) in lines.enumerate() {
            if sequence == MAX_EVENTS {
                return Err("it has more events than its bound");
            }
            let line: Line = strict_json::read(bytes, MAX_HISTORY).map_err(|_| "an event is malformed")?;
            if to_canonical(&line).ok().as_deref() != Some(bytes) {
                return Err("an event is not in canonical form");
            }
            let chained = line.event_version == 1
                && u64::try_from(sequence) == Ok(line.sequence)
                && line.previous_checksum == previous
                && line.digest().as_ref() == Some(&line.checksum);
            if !chained {
                return Err("its chain is broken");
            }
            previous = Some(line.checksum);
            history.take(line.kind, line.record, &envelope.address)?;
        }
        history.last_checksum = previous;
        history.length = u64::try_from(counted).map_err(|_| "it is larger than its bound")?;
        Ok(history)
    }

    fn take(&mut self, entry: Entry, record: ResolutionRecord, address: &str) -> Result<(), &'static str> {
        if record.address != address {
            return Err("an event belongs to another address");
        }
        record.check().map_err(|error| error.0)?;
        self.events += 1;
        match (entry, self.unresolved.take()) {
            (Entry::RecoveryIntent, None) => {
                let taken = self.used.contains(&record.blocked_operation_id);
                if taken || !self.used.insert(record.recovery_operation_id) {
                    return Err("an operation id is used twice");
                }
                self.unresolved = Some(record);
                Ok(())
            }
            (Entry::RecoveryResolution, Some(intent)) if intent == record => {
                if !self.used.insert(record.blocked_operation_id) {
                    return Err("an operation id is used twice");
                }
                self.resolved.push(record);
                Ok(())
            }
            (Entry::RecoveryIntent, Some(_)) => Err("a resolution is not finished"),
            (Entry::RecoveryResolution, _) => Err("a resolution differs from its intent"),
        }
    }
}

/// The first line of a new file.
fn envelope(address: &StateAddress) -> Option<Vec<u8>> {
    let mut bytes = to_canonical(&Envelope { address: address.to_string(), history_version: VERSION }).ok()?;
    bytes.push(b'\n');
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::control::Resolution;
    use crate::state::scalar::Timestamp;
    use crate::state::testing::{OPERATION, address, empty_state_checksum};

    fn record(recovery: u128) -> ResolutionRecord {
        ResolutionRecord {
            address: "streamt-state://platform/payments/prod".into(),
            blocked_operation_id: OPERATION,
            evidence_checksum: Checksum::parse(&format!("sha256:{}", "1".repeat(64))).unwrap(),
            prior_state_checksum: empty_state_checksum(),
            prior_state_serial: 0,
            recovery_operation_id: Uuid::from_u128(recovery),
            resolution: Resolution::RolledBack,
            resolved_at: Timestamp::parse("2026-09-06T10:05:00.000000Z").unwrap(),
            result_state_checksum: empty_state_checksum(),
            result_state_serial: 0,
            state_changed: false,
        }
    }

    const RECOVERY: u128 = 0x0a7a_c3f4_7d52_4d26_8a9b_2f6a_4c1d_9e10;

    fn bytes(version: u8, events: Vec<(Entry, ResolutionRecord)>) -> Vec<u8> {
        let envelope = Envelope { address: address("platform").to_string(), history_version: version };
        let mut bytes = to_canonical(&envelope).unwrap();
        bytes.push(b'\n');
        let mut previous_checksum = None;
        for ((kind, record), sequence) in events.into_iter().zip(0..) {
            let line = Line::of(kind, record, previous_checksum, sequence).unwrap();
            bytes.extend(line.bytes().unwrap());
            previous_checksum = Some(line.checksum);
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<History, &'static str> {
        History::parse(bytes, &address("platform"))
    }

    /// REC-035: G23
    #[test]
    fn golden_digest_of_an_event() {
        let text = String::from_utf8(bytes(1, vec![(Entry::RecoveryIntent, record(RECOVERY))])).unwrap();
        let digest = "sha256:5f416698e4d5d5119061ed07f29d4802e4cf9dba093ed0e460e62c7e3eb95b17";
        assert!(text.contains(&format!("{{\"checksum\":\"{digest}\",\"event_version\":1")), "{text}");
        assert_eq!(parse(text.as_bytes()).unwrap().unresolved, Some(record(RECOVERY)));
    }

    /// REC-035
    #[test]
    fn a_resolution_closes_its_own_intent_once() {
        let pair =
            |recovery| [(Entry::RecoveryIntent, record(recovery)), (Entry::RecoveryResolution, record(recovery))];
        let history = parse(&bytes(1, pair(RECOVERY).to_vec())).unwrap();
        assert_eq!(history.unresolved, None);
        assert_eq!(history.used, BTreeSet::from([OPERATION, Uuid::from_u128(RECOVERY)]));
        for refused in [
            vec![(Entry::RecoveryResolution, record(RECOVERY))],
            vec![(Entry::RecoveryIntent, record(RECOVERY)), (Entry::RecoveryIntent, record(2))],
            vec![(Entry::RecoveryIntent, record(RECOVERY)), (Entry::RecoveryResolution, record(2))],
            [pair(RECOVERY), pair(2)].concat(),
            vec![(
                Entry::RecoveryIntent,
                ResolutionRecord { address: "streamt-state://local/a/b".into(), ..record(1) },
            )],
        ] {
            assert!(parse(&bytes(1, refused.clone())).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn any_changed_byte_breaks_the_chain() {
        let whole =
            bytes(1, vec![(Entry::RecoveryIntent, record(RECOVERY)), (Entry::RecoveryResolution, record(RECOVERY))]);
        for at in 0..whole.len() - 1 {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(parse(&changed).is_err(), "byte {at}");
        }
        for version in [0, 2, 3, 4] {
            assert!(parse(&bytes(version, Vec::new())).is_err());
        }
        assert!(parse(b"").is_err() && parse(&bytes(1, Vec::new())).is_ok());
    }
}
