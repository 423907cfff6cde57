//! One durable step: one transaction of the session that holds the lock, from the proof that the rows stand where the step
//! starts, to the proof by another session that they stand where it ends.
#![expect(clippy::disallowed_methods, reason = "a session has deadlines and a heartbeat of its own")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::Type;

use super::classify::Trouble;
use super::contract::{CONTROL, CURRENT, HISTORY, METADATA, STATES};
use super::history::EventRow;
use super::hold::{Hold, Known};
use super::rows::{self, ControlRow, ReadError, StateRow, WrittenState};
use crate::failpoint;
use crate::state::error::StateError;
use crate::state::model::StateAddress;
use crate::state::step::{Mark, Step};
use crate::state::store::{Revision, Snapshot};

/// Bound of a transaction, its COMMIT included: above `statement_timeout`, because a frozen server answers nothing.
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(35);

const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE; SET LOCAL synchronous_commit = on; \
                           SET LOCAL search_path = pg_catalog";

/// A step as rows.
pub struct Written {
    /// The control row that the step starts from, and the one that it leaves.
    pub before: ControlRow,
    pub after: ControlRow,
    pub state_before: StateRow,
    pub events: Vec<EventRow>,
    pub state: Option<WrittenState>,
}

impl Written {
    fn of(step: &Step, known: &Known, before: ControlRow) -> Result<Self, StateError> {
        let events = step.events.iter().map(EventRow::of).collect::<Result<_, _>>()?;
        let next = &step.after.state;
        let state =
            step.writes_state.then(|| WrittenState::of(&known.state, &next.state, &next.checksum)).transpose()?;
        let state_before = match step.before.state_revision {
            Revision::Absent => None,
            Revision::At(_) => Some((
                i64::try_from(step.before.state_serial).map_err(|_| StateError::invalid("a serial is out of range"))?,
                step.before.state_checksum.to_string(),
            )),
        };
        let after = ControlRow::of(&step.after.control.control, known.revision + 1);
        Ok(Self { before, after, state_before, events, state })
    }
}

impl Hold {
    /// E424, E423, E425, E426; E420 and E411 when nothing was written.
    pub async fn execute(&mut self, step: Step) -> Result<Snapshot, StateError> {
        if self.broken || self.session.loss().is_lost() {
            return Err(self.lost());
        }
        if self.known.as_ref().is_none_or(|known| known.mark != step.before) {
            self.observe().await?;
        }
        let known = match self.known.take() {
            Some(known) if known.mark == step.before => known,
            Some(_) | None => return Err(StateError::conflict().operation(self.pending)),
        };
        // Ready before anything is written: its absence must not make an outcome unknown.
        let (pending, bound) = (self.pending, self.target.lock_timeout);
        self.witness(bound).await.map_err(|error| error.operation(pending))?;

        let deadline = Instant::now() + TRANSACTION_TIMEOUT;
        let written = match timeout_at(deadline, self.write(&step, &known)).await {
            Ok(Ok(written)) => written,
            Ok(Err(error)) => return Err(self.roll_back(error, deadline).await),
            Err(_) => return Err(self.give_up()),
        };
        failpoint::point("step.written");
        let answer = match timeout_at(deadline, self.session.client.batch_execute("COMMIT")).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Trouble::from(error)),
            Err(_) => Err(Trouble::Gone),
        };
        failpoint::point("step.committed");
        match answer {
            Ok(()) => self.verify(&step, &written).await?,
            Err(trouble) => return Err(self.resolve(&step, &written, trouble).await),
        }
        failpoint::point("step.verified");
        self.pending = step.after.control.control.operation_id();
        if step.commits {
            self.committed = Some(step.operation_id);
        }
        self.known = Some(Known {
            mark: Mark::of(&step.after),
            revision: written.after.revision,
            state: Arc::clone(&step.after.state.state),
        });
        Ok(step.after)
    }

    /// Ends a transaction that was never asked to commit.
    async fn roll_back(&mut self, error: ReadError, deadline: Instant) -> StateError {
        let error = match error {
            ReadError::Trouble(Trouble::Gone) => return self.give_up(),
            ReadError::Trouble(Trouble::Serialization | Trouble::Integrity) => StateError::conflict(),
            ReadError::Trouble(trouble) => trouble.unavailable(),
            ReadError::State(error) => error,
        };
        match timeout_at(deadline, self.session.client.batch_execute("ROLLBACK")).await {
            Ok(Ok(())) => error.operation(self.pending),
            Ok(Err(_)) | Err(_) => self.give_up(),
        }
    }

    /// Everything of the transaction but its COMMIT.
    async fn write(&self, step: &Step, known: &Known) -> Result<Written, ReadError> {
        let client = &self.session.client;
        client.batch_execute(BEGIN_WRITE).await?;
        failpoint::point("step.begun");
        self.prove_step().await?;
        let (control, state) = rows::current(client, &self.site, true).await?;
        let before = &step.before;
        let stands = control.revision == known.revision
            && control.checksum == before.control_checksum.to_string()
            && control.operation_id == before.operation_id
            && control.event_index.map(i64::from) == before.event_index.and_then(|index| i64::try_from(index).ok());
        let written = Written::of(step, known, control)?;
        if !stands || state != written.state_before {
            return Err(StateError::conflict().into());
        }
        self.insert_events(step, &written.events).await?;
        if let Some(next) = &written.state {
            self.write_state(step, &written, next).await?;
        }
        self.move_control(&written).await?;
        self.session.prove(self.site.key).await.map_err(ReadError::Trouble)?;
        Ok(written)
    }

    /// Inside the transaction: the lock, the writer and the store are the ones that were proved.
    async fn prove_step(&self) -> Result<(), ReadError> {
        let client = &self.session.client;
        let sql = format!(
            "SELECT session_user::text = m.writer_role_name AND current_user::text = m.writer_role_name \
             AND m.schema_version = 2 AND m.store_id = $1 FROM {} m",
            self.site.table(METADATA)
        );
        let store_id = (&self.store.store_id as _, Type::UUID);
        let identity = async { client.query_typed_one(&sql, &[store_id]).await.map_err(Trouble::from) };
        let lock = self.session.prove(self.site.key);
        let (identity, ()) = futures_util::try_join!(identity, lock).map_err(ReadError::Trouble)?;
        if !identity.try_get::<_, bool>(0)? {
            return Err(StateError::unavailable("its store or its writer role changed").into());
        }
        if !rows::registered(client, &self.site).await? {
            return Err(super::hold::unregistered().into());
        }
        Ok(())
    }

    async fn insert_events(&self, step: &Step, events: &[EventRow]) -> Result<(), ReadError> {
        let sql = format!(
            "INSERT INTO {} (namespace, project, environment, operation_id, event_index, event_kind, event_json, control_checksum, \
             recorded_at) SELECT $1, $2, $3, $4, e.i, e.k, e.j, e.c, e.t::timestamptz \
             FROM unnest($5, $6, $7, $8, $9) AS e(i, k, j, c, t)",
            self.site.table(HISTORY)
        );
        let StateAddress { namespace, project, environment } = &self.site.address;
        let indexes: Vec<i32> = events.iter().map(|event| event.index).collect();
        let column = |of: fn(&EventRow) -> &str| events.iter().map(of).collect::<Vec<&str>>();
        let (kinds, documents) = (column(|event| &event.kind), column(|event| &event.json));
        let (checksums, instants) = (column(|event| &event.checksum), column(|event| &event.recorded_at));
        let inserted = self
            .session
            .client
            .execute_typed(
                &sql,
                &[
                    (namespace, Type::TEXT),
                    (project, Type::TEXT),
                    (environment, Type::TEXT),
                    (&step.operation_id, Type::UUID),
                    (&indexes, Type::INT4_ARRAY),
                    (&kinds, Type::TEXT_ARRAY),
                    (&documents, Type::TEXT_ARRAY),
                    (&checksums, Type::TEXT_ARRAY),
                    (&instants, Type::TEXT_ARRAY),
                ],
            )
            .await?;
        exactly(inserted, events.len())
    }

    async fn write_state(&self, step: &Step, written: &Written, next: &WrittenState) -> Result<(), ReadError> {
        let client = &self.session.client;
        let StateAddress { namespace, project, environment } = &self.site.address;
        let Some(event) = written.events.last() else { return exactly(0, 1) };
        let history = format!(
            "INSERT INTO {} (namespace, project, environment, state_serial, state_checksum, change_json, operation_id, event_index, \
             recorded_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::timestamptz)",
            self.site.table(STATES)
        );
        let inserted = client
            .execute_typed(
                &history,
                &[
                    (namespace, Type::TEXT),
                    (project, Type::TEXT),
                    (environment, Type::TEXT),
                    (&next.serial, Type::INT8),
                    (&next.checksum, Type::TEXT),
                    (&next.change, Type::TEXT),
                    (&step.operation_id, Type::UUID),
                    (&event.index, Type::INT4),
                    (&event.recorded_at, Type::TEXT),
                ],
            )
            .await?;
        exactly(inserted, 1)?;
        let current = self.site.table(CURRENT);
        let moved = match &written.state_before {
            None => {
                let sql = format!(
                    "INSERT INTO {current} (namespace, project, environment, state_serial, state_checksum, state_json, updated_at) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7::text::timestamptz) ON CONFLICT DO NOTHING"
                );
                client
                    .execute_typed(
                        &sql,
                        &[
                            (namespace, Type::TEXT),
                            (project, Type::TEXT),
                            (environment, Type::TEXT),
                            (&next.serial, Type::INT8),
                            (&next.checksum, Type::TEXT),
                            (&next.json, Type::TEXT),
                            (&event.recorded_at, Type::TEXT),
                        ],
                    )
                    .await?
            }
            Some((serial, checksum)) => {
                let sql = format!(
                    "UPDATE {current} SET state_serial = $4, state_checksum = $5, state_json = $6, updated_at = $7::text::timestamptz \
                     WHERE namespace = $1 AND project = $2 AND environment = $3 AND state_serial = $8 AND state_checksum = $9"
                );
                client
                    .execute_typed(
                        &sql,
                        &[
                            (namespace, Type::TEXT),
                            (project, Type::TEXT),
                            (environment, Type::TEXT),
                            (&next.serial, Type::INT8),
                            (&next.checksum, Type::TEXT),
                            (&next.json, Type::TEXT),
                            (&event.recorded_at, Type::TEXT),
                            (serial, Type::INT8),
                            (checksum, Type::TEXT),
                        ],
                    )
                    .await?
            }
        };
        exactly(moved, 1)
    }

    async fn move_control(&self, written: &Written) -> Result<(), ReadError> {
        let sql = format!(
            "UPDATE {} SET revision = revision + 1, status = $4, control_version = $5, operation_id = $6, event_index = $7, \
             control_checksum = $8, updated_at = $9::text::timestamptz WHERE namespace = $1 AND project = $2 AND environment = $3 \
             AND revision = $10 AND status = $11 AND control_checksum = $12",
            self.site.table(CONTROL)
        );
        let StateAddress { namespace, project, environment } = &self.site.address;
        let (before, after) = (&written.before, &written.after);
        let Some(event) = written.events.last() else { return exactly(0, 1) };
        let moved = self
            .session
            .client
            .execute_typed(
                &sql,
                &[
                    (namespace, Type::TEXT),
                    (project, Type::TEXT),
                    (environment, Type::TEXT),
                    (&after.status, Type::TEXT),
                    (&after.version, Type::INT4),
                    (&after.operation_id, Type::UUID),
                    (&after.event_index, Type::INT4),
                    (&after.checksum, Type::TEXT),
                    (&event.recorded_at, Type::TEXT),
                    (&before.revision, Type::INT8),
                    (&before.status, Type::TEXT),
                    (&before.checksum, Type::TEXT),
                ],
            )
            .await?;
        exactly(moved, 1)
    }
}

/// A statement that touches other rows than it should met a foreign writer.
fn exactly(touched: u64, expected: usize) -> Result<(), ReadError> {
    if usize::try_from(touched) == Ok(expected) { Ok(()) } else { Err(StateError::conflict().into()) }
}
