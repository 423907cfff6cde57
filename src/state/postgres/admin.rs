//! What the owner of a store does: make it, register addresses, look at it. Ordinary commands never come here.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Target;
use super::catalog::{self, Asker, Defect, Proved};
use super::classify::Trouble;
use super::contract::{ADDRESSES, CONTROL, Ddl, METADATA, MIGRATIONS, quoted};
use super::engine::Engine;
use super::keys::schema_key;
use super::reader::Reader;
use super::rows::{self, ReadError, Site};
use super::session::{Purpose, Session};
use crate::failpoint;
use crate::state::control::{CURRENT_VERSION, Control};
use crate::state::error::{StateError, StateErrorKind};
use crate::state::model::{BackendKind, StateAddress, StoreIdentity};
use crate::state::scalar::Timestamp;
use crate::state::store::Revision;

pub use super::contract::Version;
pub use super::migrate::{MigrationFailure, MigrationOutcome, migrate, script as migration_script};
pub use super::reader::{Address, LockStatus, StoreStatus, authority};

/// Bound of the transaction that makes a store.
const INIT_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitOutcome {
    Initialized,
    AddressRegistered,
    AlreadyInitialized,
}

impl InitOutcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initialized => "initialized",
            Self::AddressRegistered => "address_registered",
            Self::AlreadyInitialized => "already_initialized",
        }
    }
}

/// A store after `state init`.
#[derive(Clone, Debug)]
pub struct Initialized {
    pub outcome: InitOutcome,
    pub store_id: Uuid,
    pub version: Version,
}

/// What a store that does not exist yet becomes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewStore {
    /// For tests of the migration: no writer, no ordinary command.
    One,
    Two {
        writer: String,
    },
}

/// A role name that PostgreSQL keeps as it is.
pub fn check_role(name: &str) -> Result<(), StateError> {
    if name.is_empty() || name.len() > 63 || name.contains('\0') {
        return Err(StateError::invalid("a role name has 1 to 63 bytes and no zero byte")
            .suggest("name the role that the writer's connection string logs in as"));
    }
    Ok(())
}

/// Makes a store, or registers an address of an existing one; idempotent. `writer` = the option as given: needed for a new store,
/// and equal to the stored one otherwise. E411, E420, E422, E425. Blocks.
pub fn init(
    target: Target,
    address: &StateAddress,
    new: Option<&NewStore>,
    now: jiff::Timestamp,
) -> Result<Initialized, StateError> {
    let engine = Engine::start()?;
    engine.run(async {
        let bound = target.lock_timeout;
        let session = Session::open(&target.endpoint, Purpose::Other, bound, bound).await?;
        let work = Init { session: &session, target: &target, site: Site::new(&target.schema, address), now };
        match timeout(INIT_TIMEOUT + bound, work.run(new)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(StateError::unknown_commit().suggest(RUN_AGAIN)),
        }
    })
}

/// The same statements for a reviewer, with `:"schema"` and `:"writer"` in place of names and `$n` in place of values.
pub fn script(new: &NewStore) -> Vec<String> {
    let ddl = Ddl { schema: ":\"schema\"".to_owned() };
    let mut statements = ddl.create();
    statements.push(insert_metadata(&ddl));
    statements.push(insert_ledger(&ddl));
    if let NewStore::Two { .. } = new {
        statements.extend(ddl.upgrade(":\"writer\""));
    }
    statements.push(insert_address(&ddl.schema));
    statements.push(insert_control(&ddl.schema));
    statements
}

/// Reads a store as its owner. Blocks.
pub fn status(target: &Target, address: &StateAddress) -> Result<StoreStatus, StateError> {
    Reader::new(target, Asker::Administrator)?.status(address)
}

/// Blocks.
pub fn lock_status(target: &Target, address: &StateAddress) -> Result<(StoreIdentity, LockStatus), StateError> {
    Reader::new(target, Asker::Administrator)?.lock_status(address)
}

pub const RUN_AGAIN: &str = "run the command again: it finds what stands";

fn insert_metadata(ddl: &Ddl) -> String {
    format!("INSERT INTO {} VALUES (true, $1, 1, $2::text::timestamptz)", ddl.table(METADATA))
}

fn insert_ledger(ddl: &Ddl) -> String {
    format!("INSERT INTO {} VALUES (1, 'schema-v1', $1, $2::text::timestamptz)", ddl.table(MIGRATIONS))
}

fn insert_address(schema: &str) -> String {
    format!("INSERT INTO {schema}.{ADDRESSES} VALUES ($1, $2, $3, $4, $5, $6::text::timestamptz)")
}

fn insert_control(schema: &str) -> String {
    format!(
        "INSERT INTO {schema}.{CONTROL} VALUES ($1, $2, $3, 0, 'clear', {CURRENT_VERSION}, NULL, NULL, $4, $5::text::timestamptz)"
    )
}

struct Init<'a> {
    session: &'a Session,
    target: &'a Target,
    site: Site,
    now: jiff::Timestamp,
}

/// What stops an administrator's transaction.
pub enum Stop {
    State(StateError),
    Trouble(Trouble),
}

impl From<tokio_postgres::Error> for Stop {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Trouble(error.into())
    }
}

impl From<StateError> for Stop {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Trouble(trouble) => Self::Trouble(trouble),
            ReadError::State(error) => Self::State(error),
        }
    }
}

impl From<Defect> for Stop {
    fn from(defect: Defect) -> Self {
        Self::State(defect.error(Asker::Administrator))
    }
}

impl From<Stop> for StateError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::State(error) => error,
            Stop::Trouble(Trouble::Forbidden) => {
                StateError::unavailable("the connection may not do this; it is not the owner of the store")
                    .suggest("use the connection string of the role that owns the store, or may create it")
            }
            Stop::Trouble(Trouble::Integrity) => StateError::conflict(),
            Stop::Trouble(trouble) => trouble.unavailable(),
        }
    }
}

/// From version 1 to version 2, inside a transaction of the owner that proves the result.
pub async fn upgrade(client: &Client, ddl: &Ddl, writer: &str, store_id: Uuid, now: &Timestamp) -> Result<(), Stop> {
    for statement in ddl.upgrade(&quoted(writer)) {
        if statement.starts_with("UPDATE") {
            client.execute_typed(&statement, &[(&writer, Type::TEXT), (&store_id, Type::UUID)]).await?;
        } else if statement.starts_with("INSERT") {
            let checksum = Version::Two.migration_checksum();
            client.execute_typed(&statement, &[(&checksum, Type::TEXT), (&now.as_str(), Type::TEXT)]).await?;
        } else {
            client.batch_execute(&statement).await?;
        }
    }
    Ok(())
}

/// The lock under which a schema is made or changed. E422, E420.
pub async fn lock_schema(session: &Session, schema: &str) -> Result<(), StateError> {
    let (first, second) = schema_key(schema);
    let locked = session
        .client
        .query_typed("SELECT pg_catalog.pg_advisory_lock($1, $2)", &[(&first, Type::INT4), (&second, Type::INT4)])
        .await;
    match locked.map_err(Trouble::from) {
        Ok(_) => Ok(()),
        Err(Trouble::Waited) => Err(StateError::new(StateErrorKind::LockTimeout)),
        Err(trouble) => Err(trouble.unavailable()),
    }
}

/// Whether the lock of the schema was held until now.
pub async fn unlock_schema(session: &Session, schema: &str) -> bool {
    let (first, second) = schema_key(schema);
    let unlocked = session
        .client
        .query_typed_one("SELECT pg_catalog.pg_advisory_unlock($1, $2)", &[(&first, Type::INT4), (&second, Type::INT4)])
        .await;
    unlocked.is_ok_and(|row| row.try_get(0).unwrap_or(false))
}

impl Init<'_> {
    async fn run(&self, new: Option<&NewStore>) -> Result<Initialized, StateError> {
        let client = &self.session.client;
        lock_schema(self.session, &self.target.schema).await?;
        failpoint::point("init.locked");
        let done = match self.transaction(new).await {
            Ok(done) => done,
            Err(stop) => {
                let _ = client.batch_execute("ROLLBACK").await;
                return Err(stop.into());
            }
        };
        failpoint::point("init.written");
        client.batch_execute("COMMIT").await.map_err(|_| StateError::unknown_commit().suggest(RUN_AGAIN))?;
        failpoint::point("init.committed");
        Ok(done)
    }

    async fn transaction(&self, new: Option<&NewStore>) -> Result<Initialized, Stop> {
        let client = &self.session.client;
        client
            .batch_execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE; SET LOCAL search_path = pg_catalog; \
                 SET LOCAL synchronous_commit = on",
            )
            .await?;
        match catalog::prove(client, &self.target.schema).await {
            Ok(proved) => self.existing(proved, new).await,
            Err(Defect::Uninitialized) => self.create(new).await,
            Err(defect) => Err(defect.into()),
        }
    }

    async fn existing(&self, proved: Proved, new: Option<&NewStore>) -> Result<Initialized, Stop> {
        let same = match (new, &proved.writer) {
            (None, _) | (Some(NewStore::One), None) => true,
            (Some(NewStore::Two { writer }), Some(stored)) => writer == stored,
            (Some(NewStore::One), Some(_)) | (Some(NewStore::Two { .. }), None) => false,
        };
        if !same {
            return Err(StateError::invalid("the store exists with another version or writer role")
                .suggest("leave out --writer-role and --schema-version: an existing store keeps its own")
                .into());
        }
        let client = &self.session.client;
        let outcome = if rows::registered(client, &self.site).await? {
            let store = StoreIdentity { backend: BackendKind::Postgres, store_id: proved.store_id };
            let (snapshot, _) = rows::snapshot(client, &self.site, &store).await?;
            let untouched = snapshot.state.revision == Revision::Absent && snapshot.control.control.is_clear();
            if !untouched {
                return Err(StateError::invalid("the address is in use: it has state or an unfinished operation")
                    .suggest("there is nothing to initialize; `streamt state status` shows what stands")
                    .into());
            }
            InitOutcome::AlreadyInitialized
        } else {
            self.register().await?;
            InitOutcome::AddressRegistered
        };
        Ok(Initialized { outcome, store_id: proved.store_id, version: proved.version })
    }

    async fn create(&self, new: Option<&NewStore>) -> Result<Initialized, Stop> {
        let client = &self.session.client;
        let Some(new) = new else {
            return Err(StateError::invalid("a new store needs the role that will write it")
                .suggest("add --writer-role NAME: a role with LOGIN NOINHERIT and no other attribute or membership")
                .into());
        };
        let ddl = Ddl { schema: self.site.schema.clone() };
        let exists = client
            .query_typed(
                "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1",
                &[(&self.target.schema, Type::TEXT)],
            )
            .await?;
        let statements = ddl.create();
        for statement in statements.iter().skip(usize::from(!exists.is_empty())) {
            client.batch_execute(statement).await?;
        }
        let store_id = Uuid::new_v4();
        let now = Timestamp::micros(self.now);
        client.execute_typed(&insert_metadata(&ddl), &[(&store_id, Type::UUID), (&now.as_str(), Type::TEXT)]).await?;
        let version = match new {
            NewStore::One => Version::One,
            NewStore::Two { .. } => Version::Two,
        };
        let checksum = Version::One.migration_checksum();
        client.execute_typed(&insert_ledger(&ddl), &[(&checksum, Type::TEXT), (&now.as_str(), Type::TEXT)]).await?;
        if let NewStore::Two { writer } = new {
            catalog::writer_role(client, &self.target.schema, writer).await?;
            upgrade(client, &ddl, writer, store_id, &now).await?;
        }
        let proved = catalog::prove(client, &self.target.schema).await?;
        if (proved.store_id, proved.version) != (store_id, version) {
            return Err(StateError::invalid("the store that was made is not the one that is found").into());
        }
        self.register().await?;
        Ok(Initialized { outcome: InitOutcome::Initialized, store_id, version })
    }

    async fn register(&self) -> Result<(), Stop> {
        let client = &self.session.client;
        let StateAddress { namespace, project, environment } = &self.site.address;
        let now = Timestamp::micros(self.now);
        let uri = self.site.address.to_string();
        client
            .execute_typed(
                &insert_address(&self.site.schema),
                &[
                    (namespace, Type::TEXT),
                    (project, Type::TEXT),
                    (environment, Type::TEXT),
                    (&uri, Type::TEXT),
                    (&self.site.key.get(), Type::INT8),
                    (&now.as_str(), Type::TEXT),
                ],
            )
            .await?;
        let checksum = Control::clear(&self.site.address).checksum().to_string();
        client
            .execute_typed(
                &insert_control(&self.site.schema),
                &[
                    (namespace, Type::TEXT),
                    (project, Type::TEXT),
                    (environment, Type::TEXT),
                    (&checksum, Type::TEXT),
                    (&now.as_str(), Type::TEXT),
                ],
            )
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod script_tests {
    use super::*;

    /// The script names no role, no schema and no value of an installation.
    #[test]
    fn the_printed_script_makes_the_store_without_a_name_of_it() {
        let text = script(&NewStore::Two { writer: "s3ntinel".into() }).join(";\n");
        assert!(!text.contains("s3ntinel"));
        for part in [
            "CREATE SCHEMA :\"schema\"",
            "GRANT USAGE ON SCHEMA :\"schema\" TO :\"writer\"",
            "'schema-v2-writer-role', $1",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let one = script(&NewStore::One).join(";\n");
        assert!(!one.contains(":\"writer\"") && one.contains("schema_version = 1"));
    }
}
