//! The events of operations as rows: how a row is written, and the fold that proves that each follows from those before it.

use serde_json::Value;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::contract::{HISTORY, STATES};
use super::rows::{INSTANT, OF_ADDRESS, ReadError, Site, canonical_text, invalid};
use crate::compiler::canonical::Checksum;
use crate::compiler::strict_json;
use crate::state::control::{
    CURRENT_VERSION, Control, Event, EventKind, RESUMED_VERSION, RUNNER_VERSION, Resolution, ResolutionRecord,
    RunnerCompletion, StoredEvent,
};
use crate::state::error::StateError;
use crate::state::model::{StateAddress, StoreIdentity};
use crate::state::scalar::Timestamp;
use crate::state::step::MAX_ROW;

/// An event as its row holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventRow {
    pub index: i32,
    pub kind: String,
    pub json: String,
    pub checksum: String,
    pub recorded_at: String,
}

impl EventRow {
    pub fn of(stored: &StoredEvent) -> Result<Self, StateError> {
        let kind = serde_json::to_value(stored.event.kind()).ok();
        Ok(Self {
            index: i32::try_from(stored.event_index)
                .map_err(|_| StateError::invalid("an operation has too many events"))?,
            kind: kind.and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default(),
            json: event_json(stored)?,
            checksum: stored.control_checksum.to_string(),
            recorded_at: recorded_at(&stored.event).as_str().to_owned(),
        })
    }

    /// Index, kind, event, checksum and instant, from the column `at` on.
    pub fn read(row: &Row, at: usize) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            index: row.try_get(at)?,
            kind: row.try_get(at + 1)?,
            json: row.try_get(at + 2)?,
            checksum: row.try_get(at + 3)?,
            recorded_at: row.try_get(at + 4)?,
        })
    }

    /// The event, if the row holds one in the form of its kind.
    pub fn event(&self) -> Option<Event> {
        let kind: EventKind = serde_json::from_value(Value::String(self.kind.clone())).ok()?;
        let value: Value = strict_json::read(self.json.as_bytes(), MAX_ROW).ok()?;
        Event::from_value(kind, value)
    }

    /// Whether the row is the one that an event is written as; an instant may have fewer digits than the column.
    pub fn holds(&self, stored: &StoredEvent) -> Result<bool, StateError> {
        let written = Self::of(stored)?;
        Ok(self.index == written.index
            && self.kind == written.kind
            && self.json == written.json
            && self.checksum == written.checksum
            && same_instant(&self.recorded_at, &written.recorded_at))
    }
}

/// Whether two texts are the same instant, and instants at all.
pub fn same_instant(left: &str, right: &str) -> bool {
    let instant = |text: &str| Timestamp::parse(text).and_then(|at| at.instant());
    instant(left).is_some_and(|left| instant(right) == Some(left))
}

/// The instant inside an event.
pub fn recorded_at(event: &Event) -> &Timestamp {
    match event {
        Event::Intent(intent) => &intent.started_at,
        Event::Progress(entry) => &entry.recorded_at,
        Event::RecoveryRequired(record) => &record.failed_at,
        Event::Resumed(record) => &record.resumed_at,
        Event::ClearedBeforeMutation(cleared) => &cleared.cleared_at,
        Event::Succeeded(end) => &end.completed_at,
        Event::RecoveryIntent(intent) => &intent.record.resolved_at,
        Event::Recovered(record) => &record.resolved_at,
    }
}

/// Serial and checksum of the ownership that an event ends at; none for an event that can write none.
pub fn ends_at(event: &Event) -> Option<(u64, &Checksum)> {
    match event {
        Event::Succeeded(end) => Some((end.state_serial, &end.state_checksum)),
        Event::Recovered(record) if record.resolution == Resolution::Observed => {
            Some((record.result_state_serial, &record.result_state_checksum))
        }
        Event::Recovered(_)
        | Event::Intent(_)
        | Event::Progress(_)
        | Event::RecoveryRequired(_)
        | Event::Resumed(_)
        | Event::ClearedBeforeMutation(_)
        | Event::RecoveryIntent(_) => None,
    }
}

/// The stored text of an event: the bytes that are hashed.
fn event_json(stored: &StoredEvent) -> Result<String, StateError> {
    let text = canonical_text(&stored.event.to_value(stored.control_version))?;
    if text.len() > MAX_ROW {
        return Err(StateError::invalid("an event is larger than its bound"));
    }
    Ok(text)
}

/// The events of one operation, folded row by row.
pub struct Fold {
    operation_id: Uuid,
    /// None = the one that the first event was written in, which its checksum tells.
    version: Option<u8>,
    clear: Control,
    control: Control,
}

impl Fold {
    pub fn new(address: &StateAddress, operation_id: Uuid, version: Option<u8>) -> Self {
        let clear = Control::clear(address);
        Self { operation_id, version, control: clear.clone(), clear }
    }

    /// The control after the last row.
    pub fn control(self) -> Control {
        self.control
    }

    /// E411 unless the row follows from those before it, byte for byte. The event is handed back.
    pub fn push(&mut self, row: &EventRow) -> Result<Event, ReadError> {
        let event = row.event().ok_or_else(|| self.invalid("an event in the history of an operation is malformed"))?;
        if let Event::Intent(intent) = &event
            && intent.operation_id != self.operation_id
        {
            return Err(self.invalid("an operation is stored under another id than its own"));
        }
        // A step is checked as a whole when it is written; here the grammar of single events is enough: a group is stored whole.
        let versions: &[u8] = match &self.version {
            Some(version) => std::slice::from_ref(version),
            None => &[CURRENT_VERSION, RUNNER_VERSION, 2, 1],
        };
        let mut refused = None;
        for version in versions {
            // Moved, not cloned, but for the first event: a clone would copy all progress at each row.
            let before = match self.version {
                Some(_) => std::mem::replace(&mut self.control, self.clear.clone()),
                None => self.clear.clone(),
            };
            match before.apply_in_version(event.clone(), *version) {
                Ok((next, stored)) if row.holds(&stored)? => {
                    (self.version, self.control) = (Some(*version), next);
                    return Ok(event);
                }
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        }
        Err(self.invalid(&match refused {
            Some(error) => format!("the history of an operation: {error}"),
            None => "an event in the history of an operation does not follow from those before it".to_owned(),
        }))
    }

    fn invalid(&self, rule: &str) -> ReadError {
        ReadError::State(StateError::invalid(rule).operation(Some(self.operation_id)))
    }
}

/// The control that the events of an operation make, each checked against what it should be. The second value is the instant
/// of the last one.
pub async fn fold(
    client: &Client,
    site: &Site,
    operation_id: Uuid,
    version: i32,
) -> Result<(Control, String), ReadError> {
    let version = u8::try_from(version).map_err(|_| invalid("the control version is not supported"))?;
    let rows = of_operation(client, site, operation_id, 0).await?;
    // Nothing begins resumed.
    let begun_in = if version == RESUMED_VERSION { RUNNER_VERSION } else { version };
    let mut fold = Fold::new(&site.address, operation_id, Some(begun_in));
    for row in &rows {
        fold.push(row)?;
    }
    let control = fold.control();
    match rows.last() {
        Some(last) if control.operation_id() == Some(operation_id) && control.version() == version => {
            Ok((control, last.recorded_at.clone()))
        }
        Some(_) | None => Err(invalid("the current control names an operation that is not pending")),
    }
}

/// The rows of one operation from an index on, in order.
async fn of_operation(
    client: &Client,
    site: &Site,
    operation_id: Uuid,
    from: i32,
) -> Result<Vec<EventRow>, tokio_postgres::Error> {
    let sql = format!(
        "SELECT event_index, event_kind, event_json, control_checksum, to_char(recorded_at AT TIME ZONE 'UTC', {INSTANT}) \
         FROM {} WHERE {OF_ADDRESS} AND operation_id = $4 AND event_index >= $5 ORDER BY event_index",
        site.table(HISTORY)
    );
    let StateAddress { namespace, project, environment } = &site.address;
    let rows = client
        .query_typed(
            &sql,
            &[
                (namespace, Type::TEXT),
                (project, Type::TEXT),
                (environment, Type::TEXT),
                (&operation_id, Type::UUID),
                (&from, Type::INT4),
            ],
        )
        .await?;
    rows.iter().map(|row| EventRow::read(row, 0)).collect()
}

/// Whether the events of a step stand exactly as they were written.
pub async fn events_stand(
    client: &Client,
    site: &Site,
    operation_id: Uuid,
    events: &[EventRow],
) -> Result<bool, ReadError> {
    let Some(first) = events.first() else { return Ok(false) };
    let stored = of_operation(client, site, operation_id, first.index).await?;
    let same = |stored: &EventRow, event: &EventRow| {
        let event = EventRow { recorded_at: stored.recorded_at.clone(), ..event.clone() };
        *stored == event
    };
    Ok(stored.len() == events.len()
        && stored
            .iter()
            .zip(events)
            .all(|(stored, event)| same(stored, event) && same_instant(&stored.recorded_at, &event.recorded_at)))
}

/// How the recovery of this id resolved its operation; none when no recovery of this id was completed.
pub async fn resolution(
    client: &Client,
    site: &Site,
    recovery_operation_id: Uuid,
) -> Result<Option<ResolutionRecord>, ReadError> {
    let rows = of_operation(client, site, recovery_operation_id, 0).await?;
    let malformed = || invalid("the history of a recovery is malformed");
    let Some(first) = rows.first() else { return Ok(None) };
    if first.kind != "recovery_intent" {
        return Ok(None);
    }
    let [first, end] = rows.as_slice() else { return Err(malformed()) };
    match (first.event(), end.event()) {
        (Some(Event::RecoveryIntent(intent)), Some(Event::Recovered(record)))
            if (first.index, end.index) == (0, 1)
                && intent.record == record
                && record.recovery_operation_id == recovery_operation_id
                && record.address == site.address.to_string()
                && record.check().is_ok() =>
        {
            Ok(Some(record))
        }
        _ => Err(malformed()),
    }
}

/// The receipt of a runner's replacement, folded from the rows that prove it; none when no such operation succeeded here.
pub async fn completion(
    client: &Client,
    site: &Site,
    store: &StoreIdentity,
    operation_id: Uuid,
) -> Result<Option<RunnerCompletion>, ReadError> {
    let rows = of_operation(client, site, operation_id, 0).await?;
    let Some((last, earlier)) = rows.split_last().filter(|(last, _)| last.kind == "succeeded") else { return Ok(None) };
    let mut fold = Fold::new(&site.address, operation_id, None);
    for row in earlier {
        fold.push(row)?;
    }
    let terminal = fold.control.clone();
    if terminal.intent().is_none_or(|intent| intent.runner_evidence().is_none()) {
        return Ok(None);
    }
    let malformed = || invalid("the end of a replacement is not the one that its history of ownership tells");
    let Event::Succeeded(end) = fold.push(last)? else { return Err(malformed()) };
    let sql = format!(
        "SELECT state_checksum FROM {} WHERE {OF_ADDRESS} AND operation_id = $4 AND event_index = $5 AND state_serial = $6",
        site.table(STATES)
    );
    let StateAddress { namespace, project, environment } = &site.address;
    let serial = i64::try_from(end.state_serial).map_err(|_| malformed())?;
    let change = client
        .query_typed(
            &sql,
            &[
                (namespace, Type::TEXT),
                (project, Type::TEXT),
                (environment, Type::TEXT),
                (&operation_id, Type::UUID),
                (&last.index, Type::INT4),
                (&serial, Type::INT8),
            ],
        )
        .await?;
    match change.as_slice() {
        [row] if row.try_get::<_, String>(0)? == end.state_checksum.as_str() => {}
        _ => return Err(malformed()),
    }
    RunnerCompletion::of(&terminal, store, &end).map(Some).map_err(|error| invalid(error.0))
}
