//! Every stored row of an address against every other: each operation folds, each recovery closes the operation that it names,
//! the serials of ownership follow one another, and nothing is left over. Whoever changes a store asks this first; an ordinary
//! read proves the current rows alone.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::TryStreamExt;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, RowStream};
use uuid::Uuid;

use super::contract::{ADDRESSES, CONTROL, CURRENT, HISTORY, STATES};
use super::history::{EventRow, Fold, ends_at, same_instant};
use super::rows::{self, Change, INSTANT, OF_ADDRESS, ReadError, Site, invalid};
use crate::compiler::canonical::Checksum;
use crate::state::control::{Control, Event, RecoveryIntent};
use crate::state::model::{OwnershipState, StateAddress, StoreIdentity};
use crate::state::store::{Revision, Snapshot};

/// All registered addresses of a store, each under the key that is computed from it, in the order of their keys.
pub async fn addresses(client: &Client, schema: &str) -> Result<Vec<Site>, ReadError> {
    let sql = format!(
        "SELECT namespace, project, environment, address_uri, advisory_lock_key FROM {}.{ADDRESSES} ORDER BY advisory_lock_key",
        super::contract::quoted(schema)
    );
    let mut sites = Vec::new();
    for row in client.query_typed(&sql, &[]).await? {
        let address =
            StateAddress { namespace: row.try_get(0)?, project: row.try_get(1)?, environment: row.try_get(2)? };
        let site = Site::new(schema, &address);
        if address.to_string() != row.try_get::<_, String>(3)? || site.key.get() != row.try_get::<_, i64>(4)? {
            return Err(invalid("the registration of an address is not the one that is computed from it"));
        }
        sites.push(site);
    }
    Ok(sites)
}

/// Everything of one address. E411 for the first row that is not as it must be.
pub async fn address(client: &Client, site: &Site, store: &StoreIdentity) -> Result<Snapshot, ReadError> {
    let (snapshot, revision) = rows::snapshot(client, site, store).await?;
    let mut operations = Operations::read(client, site).await?;
    if revision == 0 && !operations.none {
        return Err(invalid("the control of an address was never used, but its history has operations"));
    }
    operations.close_recovered()?;
    let pending = snapshot.control.control.operation_id();
    if operations.open.keys().copied().ne(pending) {
        return Err(invalid("an operation in the history has no end, and is not the pending one"));
    }
    let serials = serials(client, site, &mut operations.ends).await?;
    if let Some(((id, _), _)) = operations.ends.first_key_value() {
        return Err(of_operation("an operation changed the state, and its change is not in the history", *id));
    }
    for (id, serial, checksum) in &operations.starts {
        let known = usize::try_from(*serial).ok().and_then(|serial| serials.get(serial));
        if known != Some(checksum) {
            return Err(of_operation("an operation started from a state that the history does not know", *id));
        }
    }
    let current = &snapshot.state;
    let last = serials.last() == Some(&current.checksum)
        && usize::try_from(current.state.serial).is_ok_and(|serial| serial + 1 == serials.len());
    if !last || (current.revision == Revision::Absent) != (serials.len() == 1) {
        return Err(invalid("the current state is not the last one of its history"));
    }
    Ok(snapshot)
}

fn of_operation(rule: &str, id: Uuid) -> ReadError {
    match invalid(rule) {
        ReadError::State(error) => ReadError::State(error.operation(Some(id))),
        trouble @ ReadError::Trouble(_) => trouble,
    }
}

/// What an event says of the ownership that it wrote.
struct End {
    serial: u64,
    checksum: Checksum,
    recorded_at: String,
}

/// What all events of an address say.
struct Operations {
    none: bool,
    /// Those without an end of their own.
    open: BTreeMap<Uuid, Control>,
    recoveries: Vec<(Uuid, RecoveryIntent, [EventRow; 2])>,
    /// Operation, serial and checksum.
    starts: Vec<(Uuid, u64, Checksum)>,
    /// The events that must have a row in the history of ownership.
    ends: BTreeMap<(Uuid, i32), End>,
}

/// The operation whose rows arrive.
enum Arriving {
    Operation { fold: Box<Fold>, prior_serial: u64 },
    Recovery { first: EventRow, intent: Box<RecoveryIntent>, second: Option<EventRow> },
}

impl Operations {
    async fn read(client: &Client, site: &Site) -> Result<Self, ReadError> {
        let sql = format!(
            "SELECT operation_id, event_index, event_kind, event_json, control_checksum, \
             to_char(recorded_at AT TIME ZONE 'UTC', {INSTANT}) FROM {} WHERE {OF_ADDRESS} ORDER BY operation_id, event_index",
            site.table(HISTORY)
        );
        let mut all = Self {
            none: true,
            open: BTreeMap::new(),
            recoveries: Vec::new(),
            starts: Vec::new(),
            ends: BTreeMap::new(),
        };
        let mut arriving: Option<(Uuid, Arriving)> = None;
        let mut rows = pin!(stream(client, site, &sql).await?);
        while let Some(row) = rows.try_next().await? {
            let (id, event): (Uuid, EventRow) = (row.try_get(0)?, EventRow::read(&row, 1)?);
            all.none = false;
            arriving = match arriving.take() {
                Some((same, mut operation)) if same == id => {
                    all.next(&mut operation, id, event)?;
                    Some((id, operation))
                }
                other => {
                    all.finish(other)?;
                    Some((id, all.first(site, id, event)?))
                }
            };
        }
        all.finish(arriving)?;
        Ok(all)
    }

    fn first(&mut self, site: &Site, id: Uuid, row: EventRow) -> Result<Arriving, ReadError> {
        match row.event() {
            Some(Event::RecoveryIntent(intent)) => {
                return Ok(Arriving::Recovery { first: row, intent: Box::new(intent), second: None });
            }
            Some(Event::Intent(intent)) => {
                self.starts.push((id, intent.prior_state_serial, intent.prior_state_checksum));
                let mut operation = Arriving::Operation {
                    fold: Box::new(Fold::new(&site.address, id, None)),
                    prior_serial: intent.prior_state_serial,
                };
                self.next(&mut operation, id, row)?;
                return Ok(operation);
            }
            _ => {}
        }
        Err(of_operation("the history of an operation does not begin with its intent", id))
    }

    fn next(&mut self, operation: &mut Arriving, id: Uuid, row: EventRow) -> Result<(), ReadError> {
        match operation {
            Arriving::Operation { fold, prior_serial } => {
                let event = fold.push(&row)?;
                if let Some((serial, checksum)) = ends_at(&event).filter(|(serial, _)| serial != prior_serial) {
                    let end = End { serial, checksum: checksum.clone(), recorded_at: row.recorded_at };
                    self.ends.insert((id, row.index), end);
                }
            }
            Arriving::Recovery { second: second @ None, .. } => *second = Some(row),
            Arriving::Recovery { second: Some(_), .. } => {
                return Err(of_operation("the history of a recovery goes on after its end", id));
            }
        }
        Ok(())
    }

    fn finish(&mut self, arrived: Option<(Uuid, Arriving)>) -> Result<(), ReadError> {
        match arrived {
            None => {}
            Some((id, Arriving::Operation { fold, .. })) => {
                let control = fold.control();
                if !control.is_clear() {
                    self.open.insert(id, control);
                }
            }
            Some((id, Arriving::Recovery { first, intent, second: Some(second) })) => {
                let record = &intent.record;
                if record.state_changed {
                    let end = End {
                        serial: record.result_state_serial,
                        checksum: record.result_state_checksum.clone(),
                        recorded_at: second.recorded_at.clone(),
                    };
                    self.ends.insert((id, second.index), end);
                }
                self.recoveries.push((id, *intent, [first, second]));
            }
            Some((id, Arriving::Recovery { second: None, .. })) => {
                return Err(of_operation("the history of a recovery has no end", id));
            }
        }
        Ok(())
    }

    /// Each recovery ends one operation, at the stage that it names.
    fn close_recovered(&mut self) -> Result<(), ReadError> {
        for (id, intent, rows) in std::mem::take(&mut self.recoveries) {
            let Some(blocked) = self.open.remove(&intent.record.blocked_operation_id) else {
                return Err(of_operation("a recovery resolves an operation that was not open", id));
            };
            if intent.record.recovery_operation_id != id {
                return Err(of_operation("a recovery is stored under another id than its own", id));
            }
            let (_, stored) =
                blocked.recover(intent).map_err(|error| of_operation(&format!("a recovery: {error}"), id))?;
            for (row, stored) in rows.iter().zip(&stored) {
                if !row.holds(stored)? {
                    return Err(of_operation("a recovery does not follow from the operation that it resolves", id));
                }
            }
        }
        Ok(())
    }
}

/// The checksum of every serial from 0 on. Takes away the events whose change was found.
async fn serials(
    client: &Client,
    site: &Site,
    ends: &mut BTreeMap<(Uuid, i32), End>,
) -> Result<Vec<Checksum>, ReadError> {
    let sql = format!(
        "SELECT state_serial, state_checksum, change_json, operation_id, event_index, \
         to_char(recorded_at AT TIME ZONE 'UTC', {INSTANT}) FROM {} WHERE {OF_ADDRESS} ORDER BY state_serial",
        site.table(STATES)
    );
    let mut state = OwnershipState::empty(&site.address.project, &site.address.environment);
    let mut checksums = vec![state.checked(&site.address)?];
    let mut rows = pin!(stream(client, site, &sql).await?);
    while let Some(row) = rows.try_next().await? {
        let (serial, checksum, change): (i64, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let (id, index, recorded_at): (Uuid, i32, String) = (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
        state.serial += 1;
        if i64::try_from(state.serial) != Ok(serial) {
            return Err(invalid("the serials of the state do not follow one another"));
        }
        if !Change::read(&change)?.apply(&mut state.resources) {
            return Err(of_operation("a change of the state does not start from the state before it", id));
        }
        let computed = state.checked(&site.address)?;
        let event = ends.remove(&(id, index));
        let same = event.is_some_and(|end| {
            end.serial == state.serial && end.checksum == computed && same_instant(&end.recorded_at, &recorded_at)
        });
        if !same || computed.to_string() != checksum {
            return Err(of_operation("a change of the state is not the one that its operation recorded", id));
        }
        checksums.push(computed);
    }
    Ok(checksums)
}

async fn stream(client: &Client, site: &Site, sql: &str) -> Result<RowStream, tokio_postgres::Error> {
    let StateAddress { namespace, project, environment } = &site.address;
    client
        .query_typed_raw(sql, [namespace, project, environment].into_iter().map(|part| (part.as_str(), Type::TEXT)))
        .await
}

/// Count and digest of the rows of every table that holds what operations wrote: equal digests are equal rows.
pub async fn digest(client: &Client, schema: &str) -> Result<Vec<(i64, String)>, ReadError> {
    let schema = super::contract::quoted(schema);
    let mut digests = Vec::new();
    for table in [ADDRESSES, HISTORY, CONTROL, STATES, CURRENT] {
        let sql = format!(
            "SELECT count(*), encode(sha256(convert_to(coalesce(string_agg(d.digest, '' ORDER BY d.digest), ''), 'UTF8')), 'hex') \
             FROM (SELECT encode(sha256(convert_to(t::text, 'UTF8')), 'hex') AS digest FROM {schema}.{table} t) d"
        );
        let row = client.query_typed_one(&sql, &[]).await?;
        digests.push((row.try_get(0)?, row.try_get(1)?));
    }
    Ok(digests)
}
