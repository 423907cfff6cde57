//! What the rows of one address say: ownership and control, each checked against the rows that it follows from. The caller holds
//! a repeatable-read transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::classify::Trouble;
use super::contract::{ADDRESSES, CONTROL, CURRENT, HISTORY, STATES, quoted};
use super::history::{self, EventRow};
use super::keys::AddressKey;
use crate::compiler::canonical::{Checksum, to_canonical};
use crate::compiler::strict_json;
use crate::state::control::{Control, Status};
use crate::state::error::StateError;
use crate::state::model::{OwnershipRecord, OwnershipState, ResourceId, StateAddress, StoreIdentity};
use crate::state::step::{MAX_ROW, control_revision, state_revision};
use crate::state::store::{ControlObservation, Revision, Snapshot, StateObservation};

/// Microseconds in the form of every event.
pub const INSTANT: &str = "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'";

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

impl From<crate::ownership::Invalid> for ReadError {
    fn from(error: crate::ownership::Invalid) -> Self {
        Self::State(error.into())
    }
}

pub fn invalid(rule: &str) -> ReadError {
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

pub const OF_ADDRESS: &str = "namespace = $1 AND project = $2 AND environment = $3";

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
        None => clear(site, row.version)?,
        Some(operation_id) => {
            let (control, last) = history::fold(client, site, operation_id, row.version).await?;
            if row.revision == 0 || !history::same_instant(&last, &updated_at(client, site).await?) {
                return Err(invalid("the current control does not follow from the history of its operation"));
            }
            control
        }
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

pub fn canonical_text<T: serde::Serialize>(value: &T) -> Result<String, StateError> {
    to_canonical(value)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| StateError::invalid("a durable document has no canonical form"))
}

/// Nothing pending, in the version that its row names.
fn clear(site: &Site, version: i32) -> Result<Control, ReadError> {
    let version = u8::try_from(version).map_err(|_| invalid("the control version is not supported"))?;
    Control::clear_in_version(&site.address, version).map_err(|error| invalid(&error.to_string()))
}

/// When the control moved last.
async fn updated_at(client: &Client, site: &Site) -> Result<String, ReadError> {
    let sql = format!(
        "SELECT to_char(updated_at AT TIME ZONE 'UTC', {INSTANT}) FROM {} WHERE {OF_ADDRESS}",
        site.table(CONTROL)
    );
    let rows = site.query(client, &sql).await.map_err(ReadError::Trouble)?;
    let row = rows.first().ok_or_else(|| invalid("the control of its address is missing"))?;
    Ok(row.try_get(0)?)
}

/// The ownership document, checked against the last row of its history and the event that wrote it.
async fn ownership(client: &Client, site: &Site) -> Result<(OwnershipState, Checksum, bool), ReadError> {
    let current = format!(
        "SELECT state_serial, state_checksum, state_json, to_char(updated_at AT TIME ZONE 'UTC', {INSTANT}) FROM {} \
         WHERE {OF_ADDRESS}",
        site.table(CURRENT)
    );
    let last = format!(
        "SELECT s.state_serial, s.state_checksum, s.change_json, to_char(s.recorded_at AT TIME ZONE 'UTC', {INSTANT}), \
         event_index, h.event_kind, h.event_json, h.control_checksum, to_char(h.recorded_at AT TIME ZONE 'UTC', {INSTANT}) \
         FROM {} s JOIN {} h USING (namespace, project, environment, operation_id, event_index) \
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
    let (serial, checksum, json, updated_at): (i64, String, String, String) =
        (current.try_get(0)?, current.try_get(1)?, current.try_get(2)?, current.try_get(3)?);
    let state = OwnershipState::read(json.as_bytes(), &site.address, "the current state")?;
    let computed = state.checked(&site.address)?;
    if computed.to_string() != checksum || i64::try_from(state.serial) != Ok(serial) || canonical_text(&state)? != json
    {
        return Err(invalid("the current state is not what its row says"));
    }
    let (last_serial, last_checksum): (i64, String) = (last.try_get(0)?, last.try_get(1)?);
    let change = Change::read(last.try_get(2)?)?;
    let recorded_at: String = last.try_get(3)?;
    let event = EventRow::read(last, 4)?;
    let ended = event.event().ok_or_else(|| invalid("the event behind the current state is malformed"))?;
    let wrote = history::ends_at(&ended)
        .ok_or_else(|| invalid("the current state was written by an event that writes none"))?;
    let belongs = (last_serial, &last_checksum) == (serial, &checksum)
        && wrote == (state.serial, &computed)
        && change.leads_to(&state)
        && [&recorded_at, &event.recorded_at, history::recorded_at(&ended).as_str()]
            .iter()
            .all(|at| history::same_instant(at, &updated_at));
    if !belongs {
        return Err(invalid("the current state and its history do not belong together"));
    }
    Ok((state, computed, true))
}

/// The step from the ownership of one serial to that of the next.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    removed: Vec<ResourceId>,
    set: BTreeMap<ResourceId, OwnershipRecord>,
}

impl Change {
    fn between(prior: &OwnershipState, next: &OwnershipState) -> Self {
        let records = next.resources.iter().filter(|(id, record)| prior.resources.get(*id) != Some(*record));
        Self {
            removed: prior.resources.keys().filter(|id| !next.resources.contains_key(*id)).cloned().collect(),
            set: records.map(|(id, record)| (id.clone(), record.clone())).collect(),
        }
    }

    /// E411 unless the text is the one that a change is written as.
    pub fn read(json: &str) -> Result<Self, ReadError> {
        let change: Self = strict_json::read(json.as_bytes(), MAX_ROW)
            .map_err(|_| invalid("a change in the history of the state is malformed"))?;
        if !change.removed.is_sorted_by(|left, right| left < right) || canonical_text(&change)? != json {
            return Err(invalid("a change in the history of the state is not what its row should hold"));
        }
        Ok(change)
    }

    /// Whether this can be the last step to a state.
    fn leads_to(&self, state: &OwnershipState) -> bool {
        self.set.iter().all(|(id, record)| state.resources.get(id) == Some(record))
            && self.removed.iter().all(|id| !state.resources.contains_key(id))
    }

    /// Takes the step. False = the state is not one that it starts from.
    pub fn apply(self, resources: &mut BTreeMap<ResourceId, OwnershipRecord>) -> bool {
        let steps = !(self.removed.is_empty() && self.set.is_empty());
        let removed = self.removed.iter().all(|id| resources.remove(id).is_some());
        let set = self.set.into_iter().all(|(id, record)| resources.insert(id, record.clone()) != Some(record));
        steps && removed && set
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
        Ok(Self {
            serial: i64::try_from(next.serial).map_err(|_| StateError::invalid("a serial is out of range"))?,
            checksum: checksum.to_string(),
            json: canonical_text(next)?,
            change: canonical_text(&Change::between(prior, next))?,
        })
    }
}
