//! The bytes of the control file: a header line, then one line a durable step, each the array of its events. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::compiler::canonical::{Checksum, to_canonical};
use crate::compiler::strict_json;
use crate::state::control::{
    CURRENT_VERSION, Control, Event, EventKind, RESUMED_VERSION, RUNNER_VERSION, StoredEvent, Succeeded,
};
use crate::state::error::StateError;
use crate::state::model::StateAddress;
use crate::state::scalar::uuid_text;
use crate::state::step::{MAX_FILE, MAX_ROW};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    address: String,
    control_version: u8,
    operation_id: Option<HeaderId>,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct HeaderId(#[serde(with = "uuid_text")] Uuid);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvent {
    control_checksum: Checksum,
    event: Value,
    event_index: u64,
    event_kind: EventKind,
}

/// What a control file says.
#[derive(Debug)]
pub struct ControlFile {
    pub control: Control,
    /// The end of an operation whose clear header is not written yet.
    pub closing: Option<Succeeded>,
    /// An end without a clear header, of either kind.
    pub ended: bool,
    /// Bytes that count; what follows is a line that was never acknowledged.
    pub length: usize,
}

impl ControlFile {
    /// Reads and folds a whole file. Any defect but an unfinished last line is E411.
    pub fn read(bytes: &[u8], address: &StateAddress, label: &str) -> Result<Self, StateError> {
        let invalid = |rule: &str| StateError::invalid(format!("{label}: {rule}"));
        if bytes.len() > MAX_FILE {
            return Err(invalid("it is larger than its bound"));
        }
        let length = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = bytes[..length].split_inclusive(|byte| *byte == b'\n').map(|line| &line[..line.len() - 1]);
        let header = lines.next().ok_or_else(|| invalid("it has no header"))?;
        let header = read_header(header, address).map_err(invalid)?;

        let mut control = match header.operation_id {
            Some(_) => Control::clear(address),
            None => Control::clear_in_version(address, header.control_version).map_err(|error| invalid(error.0))?,
        };
        let mut end = None;
        for line in lines {
            if end.is_some() || header.operation_id.is_none() {
                return Err(invalid("events follow the end of an operation"));
            }
            let events = read_line(line).map_err(invalid)?;
            let step: Vec<Event> = events.iter().map(|event| event.event.clone()).collect();
            let (next, stored) =
                control.apply_step_in_version(step, header.control_version).map_err(|error| invalid(error.0))?;
            if stored.iter().zip(&events).any(|(ours, theirs)| {
                ours.event_index != theirs.event_index || ours.control_checksum != theirs.control_checksum
            }) {
                return Err(invalid("an event does not follow from those before it"));
            }
            if line_bytes(&stored).map_err(|_| invalid("an event has no canonical form"))? != [line, b"\n"].concat() {
                return Err(invalid("a line is not in canonical form"));
            }
            control = next;
            if control.is_clear() {
                end = stored.into_iter().next_back();
            } else if control.operation_id() != header.operation_id.map(|id| id.0) {
                return Err(invalid("its header names another operation"));
            }
        }
        if end.is_none() && control.is_clear() && header.operation_id.is_some() {
            return Err(invalid("its header names an operation that has no intent"));
        }
        let ended = end.is_some();
        let closing = end.and_then(|stored| match stored.event {
            Event::Succeeded(end) => Some(end),
            Event::Intent(_)
            | Event::Progress(_)
            | Event::RecoveryRequired(_)
            | Event::Resumed(_)
            | Event::ClearedBeforeMutation(_)
            | Event::RecoveryIntent(_)
            | Event::Recovered(_) => None,
        });
        Ok(Self { control, closing, ended, length })
    }
}

fn read_header(line: &[u8], address: &StateAddress) -> Result<Header, &'static str> {
    let header: Header = strict_json::read(line, MAX_ROW).map_err(|_| "its header is malformed")?;
    if header.address != address.to_string() {
        return Err("it belongs to another address");
    }
    if to_canonical(&header).ok().as_deref() != Some(line) {
        return Err("its header is not in canonical form");
    }
    match (header.control_version, header.operation_id) {
        (1..=RUNNER_VERSION, _) | (RESUMED_VERSION, Some(_)) => Ok(header),
        (RESUMED_VERSION, None) => Err("a resumed control is never clear"),
        _ => Err("its control version is not supported"),
    }
}

fn read_line(line: &[u8]) -> Result<Vec<StoredEvent>, &'static str> {
    let raw: Vec<RawEvent> = strict_json::read(line, MAX_ROW).map_err(|_| "a line is malformed")?;
    raw.into_iter()
        .map(|raw| {
            Some(StoredEvent {
                control_checksum: raw.control_checksum,
                event: Event::from_value(raw.event_kind, raw.event)?,
                event_index: raw.event_index,
                control_version: CURRENT_VERSION,
            })
        })
        .collect::<Option<_>>()
        .ok_or("an event is malformed")
}

/// The header line of a clear control, or of an operation.
pub fn header_bytes(address: &StateAddress, version: u8, operation_id: Option<Uuid>) -> Result<Vec<u8>, StateError> {
    let header =
        Header { address: address.to_string(), control_version: version, operation_id: operation_id.map(HeaderId) };
    let mut bytes = to_canonical(&header).map_err(|error| StateError::invalid(error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The line of one step.
pub fn line_bytes(events: &[StoredEvent]) -> Result<Vec<u8>, StateError> {
    let values: Vec<Value> = events.iter().map(StoredEvent::to_value).collect();
    let mut bytes = to_canonical(&values).map_err(|error| StateError::invalid(error.to_string()))?;
    bytes.push(b'\n');
    if bytes.len() > MAX_ROW {
        return Err(StateError::invalid("a durable step is larger than its bound"));
    }
    Ok(bytes)
}
