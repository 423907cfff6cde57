//! What the rows of one address say: ownership and control, each checked against the rows that it follows from. The caller holds
//! a repeatable-read transaction.

use std::sync::Arc;

use serde_json::Value;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::classify::Trouble;
use super::contract::{ADDRESSES, CONTROL, CURRENT, HISTORY, STATES, quoted};
use super::keys::AddressKey;
use crate::compiler::canonical::{Checksum, to_canonical};
use crate::compiler::strict_json;
use crate::state::control::{Control, Event, EventKind, ResolutionRecord, Status, StoredEvent};
use crate::state::error::StateError;
use crate::state::model::{OwnershipState, StateAddress, StoreIdentity};
use crate::state::scalar::Timestamp;
use crate::state::step::{MAX_ROW, control_revision, state_revision};
use crate::state::store::{ControlObservation, Revision, Snapshot, StateObservation};

/// Microseconds in the form of every event.
const INSTANT: &str = "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'";

/// Why rows could not be read.
#[derive(Debug)]
pub enum ReadError {
    Trouble(Trouble),
    State(StateError),
}

impl From<tokio_postgres::Error> for ReadError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Trouble(error.into())
    }
}

impl From<StateError> for ReadError {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

fn invalid(rule: &str) -> ReadError {
    ReadError::State(StateError::invalid(rule))
}

/// An address of one schema, as statements name it.
#[derive(Clone, Debug)]
pub struct Site {
    /// Quoted.
    pub schema: String,
    pub address: StateAddress,
    pub key: AddressKey,
}

impl Site {
    pub fn new(schema: &str, address: &StateAddress) -> Self {
        Self { schema: quoted(schema), address: address.clone(), key: AddressKey::of(address) }
    }

    pub fn table(&self, name: &str) -> String {
        format!("{}.{name}", self.schema)
    }

    pub async fn query(&self, client: &Client, sql: &str) -> Result<Vec<Row>, Trouble> {
        let StateAddress { namespace, project, environment } = &self.address;
        Ok(client
            .query_typed(sql, &[(namespace, Type::TEXT), (project, Type::TEXT), (environment, Type::TEXT)])
            .await?)
    }
}

const OF_ADDRESS: &str = "namespace = $1 AND project = $2 AND environment = $3";

/// The control row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlRow {
    pub revision: i64,
    pub status: String,
    pub version: i32,
    pub operation_id: Option<Uuid>,
    pub event_index: Option<i32>,
    pub checksum: String,
}

impl ControlRow {
    /// The row that a control is stored as.
    pub fn of(control: &Control, revision: i64) -> Self {
        Self {
            revision,
            status: status_text(control.status().status).to_owned(),
            version: i32::from(control.version()),
            operation_id: control.operation_id(),
            event_index: control.event_index().and_then(|index| i32::try_from(index).ok()),
            checksum: control.checksum().to_string(),
        }
    }

    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            revision: row.try_get(0)?,
            status: row.try_get(1)?,
            version: row.try_get(2)?,
            operation_id: row.try_get(3)?,
            event_index: row.try_get(4)?,
            checksum: row.try_get(5)?,
        })
    }
}

pub const fn status_text(status: Status) -> &'static str {
    match status {
        Status::Clear => "clear",
        Status::InProgress => "in_progress",
        Status::RecoveryRequired => "recovery_required",
    }
}

/// Serial and checksum of the stored ownership; none when none is stored.
pub type StateRow = Option<(i64, String)>;

/// The two current rows, locked against foreign writers when asked.
pub async fn current(client: &Client, site: &Site, locked: bool) -> Result<(ControlRow, StateRow), ReadError> {
    let lock = if locked { " FOR UPDATE" } else { "" };
    let control = format!(
        "SELECT revision, status, control_version, operation_id, event_index, control_checksum FROM {} WHERE {OF_ADDRESS}{lock}",
        site.table(CONTROL)
    );
    let state = format!("SELECT state_serial, state_checksum FROM {} WHERE {OF_ADDRESS}{lock}", site.table(CURRENT));
    let (control, state) = futures_util::try_join!(site.query(client, &control), site.query(client, &state))
        .map_err(ReadError::Trouble)?;
    let [control] = control.as_slice() else { return Err(invalid("the control of its address is missing")) };
    let state =
        state.first().map(|row| Ok::<_, tokio_postgres::Error>((row.try_get(0)?, row.try_get(1)?))).transpose()?;
    Ok((ControlRow::read(control)?, state))
}

/// Whether the address is registered, under the key that everybody computes.
pub async fn registered(client: &Client, site: &Site) -> Result<bool, ReadError> {
    let sql = format!("SELECT address_uri, advisory_lock_key FROM {} WHERE {OF_ADDRESS}", site.table(ADDRESSES));
    let rows = site.query(client, &sql).await.map_err(ReadError::Trouble)?;
    let Some(row) = rows.first() else { return Ok(false) };
    let (uri, key): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
    if uri != site.address.to_string() || key != site.key.get() {
        return Err(invalid("the registration of its address is not the one that is computed from it"));
    }
    Ok(true)
}

/// Everything of one address: the snapshot, and the revision number of the control row.
pub async fn snapshot(client: &Client, site: &Site, store: &StoreIdentity) -> Result<(Snapshot, i64), ReadError> {
    let (row, _) = current(client, site, false).await?;
    let control = match row.operation_id {
        None => Control::clear(&site.address),
        Some(operation_id) => fold(client, site, operation_id, row.version).await?,
    };
    if ControlRow::of(&control, row.revision) != row {
        return Err(invalid("the current control does not follow from the history of its operation"));
    }
    let (state, checksum, stored) = ownership(client, site).await?;
    if let Some(intent) = control.intent()
        && (intent.prior_state_serial, &intent.prior_state_checksum) != (state.serial, &checksum)
    {
        return Err(invalid("the current state is not the one that the pending operation started from"));
    }
    let snapshot = Snapshot {
        state: StateObservation {
            store: store.clone(),
            address: site.address.clone(),
            revision: if stored { state_revision(&checksum) } else { Revision::Absent },
            state: Arc::new(state),
            checksum,
        },
        control: ControlObservation {
            revision: if row.revision == 0 { Revision::Absent } else { control_revision(&control) },
            control,
        },
    };
    Ok((snapshot, row.revision))
}

/// The control that the events of an operation make, each checked against what it should be.
async fn fold(client: &Client, site: &Site, operation_id: Uuid, version: i32) -> Result<Control, ReadError> {
    let sql = format!(
        "SELECT event_index, event_kind, event_json, control_checksum, to_char(recorded_at AT TIME ZONE 'UTC', {INSTANT}) \
         FROM {} WHERE {OF_ADDRESS} AND operation_id = $4 ORDER BY event_index",
        site.table(HISTORY)
    );
    let StateAddress { namespace, project, environment } = &site.address;
    let rows = client
        .query_typed(
            &sql,
            &[(namespace, Type::TEXT), (project, Type::TEXT), (environment, Type::TEXT), (&operation_id, Type::UUID)],
        )
        .await?;
    let malformed = || invalid("an event in the history of the pending operation is malformed");
    let version = u8::try_from(version).map_err(|_| invalid("the control version is not supported"))?;
    let mut control = Control::clear(&site.address);
    // A step is checked as a whole elsewhere; here the grammar of single events is enough, because a group is stored whole.
    for row in &rows {
        let (index, kind, json, checksum, recorded): (i32, String, String, String, String) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        let kind: EventKind = serde_json::from_value(Value::String(kind)).map_err(|_| malformed())?;
        let value: Value = strict_json::read(json.as_bytes(), MAX_ROW).map_err(|_| malformed())?;
        let event = Event::from_value(kind, value).ok_or_else(malformed)?;
        let instant = recorded_at(&event).instant();
        let (next, stored) = control
            .apply_in_version(event, version)
            .map_err(|error| invalid(&format!("the history of the pending operation: {error}")))?;
        let same = i32::try_from(stored.event_index) == Ok(index)
            && stored.control_checksum.to_string() == checksum
            && event_json(&stored)? == json
            && instant.is_some()
            && Timestamp::parse(&recorded).and_then(|at| at.instant()) == instant;
        if !same {
            return Err(invalid(
                "an event in the history of the pending operation does not follow from those before it",
            ));
        }
        control = next;
    }
    if control.operation_id() == Some(operation_id) {
        return Ok(control);
    }
    Err(invalid("the current control names an operation that is not pending"))
}

/// How the recovery of this id resolved its operation; none when no recovery of this id was completed.
pub async fn resolution(
    client: &Client,
    site: &Site,
    recovery_operation_id: Uuid,
) -> Result<Option<ResolutionRecord>, ReadError> {
    let sql = format!(
        "SELECT event_index, event_kind, event_json FROM {} WHERE {OF_ADDRESS} AND operation_id = $4 ORDER BY event_index LIMIT 3",
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
                (&recovery_operation_id, Type::UUID),
            ],
        )
        .await?;
    let Some(first) = rows.first() else { return Ok(None) };
    if first.try_get::<_, String>(1)? != "recovery_intent" {
        return Ok(None);
    }
    let malformed = || invalid("the history of a recovery is malformed");
    let [_, end] = rows.as_slice() else { return Err(malformed()) };
    let (index, kind, json): (i32, String, String) = (end.try_get(0)?, end.try_get(1)?, end.try_get(2)?);
    let kind: EventKind = serde_json::from_value(Value::String(kind)).map_err(|_| malformed())?;
    let value: Value = strict_json::read(json.as_bytes(), MAX_ROW).map_err(|_| malformed())?;
    match Event::from_value(kind, value) {
        Some(Event::Recovered(record))
            if index == 1
                && record.recovery_operation_id == recovery_operation_id
                && record.address == site.address.to_string()
                && record.check().is_ok() =>
        {
            Ok(Some(record))
        }
        Some(_) | None => Err(malformed()),
    }
}

/// The instant inside an event.
pub fn recorded_at(event: &Event) -> &Timestamp {
    match event {
        Event::Intent(intent) => &intent.started_at,
        Event::Progress(entry) => &entry.recorded_at,
        Event::RecoveryRequired(record) => &record.failed_at,
        Event::ClearedBeforeMutation(cleared) => &cleared.cleared_at,
        Event::Succeeded(end) => &end.completed_at,
        Event::RecoveryIntent(intent) => &intent.record.resolved_at,
        Event::Recovered(record) => &record.resolved_at,
    }
}

/// The stored text of an event: the bytes that are hashed.
pub fn event_json(stored: &StoredEvent) -> Result<String, StateError> {
    let text = canonical_text(&stored.event.to_value(stored.control_version))?;
    if text.len() > MAX_ROW {
        return Err(StateError::invalid("an event is larger than its bound"));
    }
    Ok(text)
}

pub fn canonical_text<T: serde::Serialize>(value: &T) -> Result<String, StateError> {
    to_canonical(value)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| StateError::invalid("a durable document has no canonical form"))
}

/// The ownership document, checked against the last row of its history and the event that wrote it.
async fn ownership(client: &Client, site: &Site) -> Result<(OwnershipState, Checksum, bool), ReadError> {
    let current =
        format!("SELECT state_serial, state_checksum, state_json FROM {} WHERE {OF_ADDRESS}", site.table(CURRENT));
    let last = format!(
        "SELECT s.state_serial, s.state_checksum, h.event_kind, h.event_json FROM {} s JOIN {} h \
         USING (namespace, project, environment, operation_id, event_index) \
         WHERE {OF_ADDRESS} ORDER BY s.state_serial DESC LIMIT 1",
        site.table(STATES),
        site.table(HISTORY)
    );
    let (current, last) =
        futures_util::try_join!(site.query(client, &current), site.query(client, &last)).map_err(ReadError::Trouble)?;
    let (current, last) = match (current.first(), last.first()) {
        (None, None) => {
            let empty = OwnershipState::empty(&site.address.project, &site.address.environment);
            let checksum = empty.checked(&site.address)?;
            return Ok((empty, checksum, false));
        }
        (Some(current), Some(last)) => (current, last),
        (Some(_), None) | (None, Some(_)) => {
            return Err(invalid("the current state and its history do not belong together"));
        }
    };
    let (serial, checksum, json): (i64, String, String) =
        (current.try_get(0)?, current.try_get(1)?, current.try_get(2)?);
    let state = OwnershipState::read(json.as_bytes(), &site.address, "the current state")?;
    let computed = state.checked(&site.address)?;
    if computed.to_string() != checksum || i64::try_from(state.serial) != Ok(serial) || canonical_text(&state)? != json
    {
        return Err(invalid("the current state is not what its row says"));
    }
    let (last_serial, last_checksum): (i64, String) = (last.try_get(0)?, last.try_get(1)?);
    let (kind, event): (String, String) = (last.try_get(2)?, last.try_get(3)?);
    let event: Value = strict_json::read(event.as_bytes(), MAX_ROW)
        .map_err(|_| invalid("the event behind the current state is malformed"))?;
    let (serial_key, checksum_key) = match kind.as_str() {
        "succeeded" => ("state_serial", "state_checksum"),
        "recovered_observed" => ("result_state_serial", "result_state_checksum"),
        _ => return Err(invalid("the current state was written by an event that writes none")),
    };
    let wrote = event.get(serial_key).and_then(Value::as_u64) == Some(state.serial)
        && event.get(checksum_key).and_then(Value::as_str) == Some(&checksum);
    if (last_serial, &last_checksum) != (serial, &checksum) || !wrote {
        return Err(invalid("the current state and its history do not belong together"));
    }
    Ok((state, computed, true))
}

/// Whether the events of a step stand exactly as they were written.
pub async fn events_stand(
    client: &Client,
    site: &Site,
    operation_id: Uuid,
    events: &[EventRow],
) -> Result<bool, ReadError> {
    let Some(first) = events.first() else { return Ok(false) };
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
                (&first.index, Type::INT4),
            ],
        )
        .await?;
    let mut stand = rows.len() == events.len();
    for (row, event) in rows.iter().zip(events) {
        let stored = EventRow {
            index: row.try_get(0)?,
            kind: row.try_get(1)?,
            json: row.try_get(2)?,
            checksum: row.try_get(3)?,
            recorded_at: row.try_get(4)?,
        };
        stand &= stored.index == event.index
            && stored.kind == event.kind
            && stored.json == event.json
            && stored.checksum == event.checksum
            && Timestamp::parse(&stored.recorded_at).and_then(|at| at.instant())
                == Timestamp::parse(&event.recorded_at).and_then(|at| at.instant());
    }
    Ok(stand)
}

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
}

/// Whether ownership and its last change stand exactly as they were written.
pub async fn state_stands(client: &Client, site: &Site, written: &WrittenState) -> Result<bool, ReadError> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM {} WHERE {OF_ADDRESS} AND state_serial = $4 AND state_checksum = $5 AND state_json = $6) \
         AND EXISTS (SELECT 1 FROM {} WHERE {OF_ADDRESS} AND state_serial = $4 AND state_checksum = $5 AND change_json = $7)",
        site.table(CURRENT),
        site.table(STATES)
    );
    let StateAddress { namespace, project, environment } = &site.address;
    let row = client
        .query_typed_one(
            &sql,
            &[
                (namespace, Type::TEXT),
                (project, Type::TEXT),
                (environment, Type::TEXT),
                (&written.serial, Type::INT8),
                (&written.checksum, Type::TEXT),
                (&written.json, Type::TEXT),
                (&written.change, Type::TEXT),
            ],
        )
        .await?;
    Ok(row.try_get(0)?)
}

/// The next ownership as its rows hold it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenState {
    pub serial: i64,
    pub checksum: String,
    pub json: String,
    /// The step from the serial before.
    pub change: String,
}

impl WrittenState {
    pub fn of(prior: &OwnershipState, next: &OwnershipState, checksum: &Checksum) -> Result<Self, StateError> {
        let removed: Vec<&str> =
            prior.resources.keys().filter(|id| !next.resources.contains_key(*id)).map(|id| id.as_str()).collect();
        let set: std::collections::BTreeMap<_, _> =
            next.resources.iter().filter(|(id, record)| prior.resources.get(*id) != Some(*record)).collect();
        Ok(Self {
            serial: i64::try_from(next.serial).map_err(|_| StateError::invalid("a serial is out of range"))?,
            checksum: checksum.to_string(),
            json: canonical_text(next)?,
            change: canonical_text(&serde_json::json!({ "removed": removed, "set": set }))?,
        })
    }
}
