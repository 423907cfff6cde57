//! Readers that need no lock: a small pool of connections that cannot write. What they read never starts a step.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bb8_postgres::PostgresConnectionManager;
use bb8_postgres::bb8::{ErrorSink, Pool, PooledConnection, RunError};
use tokio::sync::Notify;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::Target;
use super::catalog::{self, Asker, Defect, Proved};
use super::classify::{Trouble, not_connected};
use super::contract::Version;
use super::dsn::CONNECT_TIMEOUT;
use super::engine::Engine;
use super::hold::unregistered;
use super::rows::{self, ReadError, Site};
use super::session::BEGIN_READ;
use super::tls::Connector;
use crate::state::error::StateError;
use crate::state::model::{BackendKind, StateAddress, StoreIdentity};
use crate::state::store::Snapshot;

type Manager = PostgresConnectionManager<Connector>;

const MAX_CONNECTIONS: u32 = 2;
const READ_TIMEOUT: Duration = Duration::from_secs(60);

pub struct Reader {
    pool: Pool<Manager>,
    refused: Refused,
    schema: String,
    asker: Asker,
    engine: Engine,
}

/// Why the pool got no connection: it tells nobody who waits for one.
#[derive(Clone, Debug, Default)]
struct Refused(Arc<(Mutex<Option<StateError>>, Notify)>);

impl ErrorSink<tokio_postgres::Error> for Refused {
    fn sink(&self, error: tokio_postgres::Error) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(not_connected(&error));
        self.0.1.notify_one();
    }

    fn boxed_clone(&self) -> Box<dyn ErrorSink<tokio_postgres::Error>> {
        Box::new(self.clone())
    }
}

impl Refused {
    async fn next(&self) -> StateError {
        loop {
            self.0.1.notified().await;
            if let Some(error) = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return error;
            }
        }
    }
}

/// What is known of a store and one address, for an administrator.
#[derive(Clone, Debug)]
pub struct StoreStatus {
    /// None when nothing is initialized.
    pub store: Option<(Proved, Address)>,
}

#[derive(Clone, Debug)]
pub enum Address {
    Unregistered,
    Registered(Box<Snapshot>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockStatus {
    Available,
    Busy,
    Unregistered,
}

impl Reader {
    /// E420. Nothing is connected yet.
    pub fn new(target: &Target, asker: Asker) -> Result<Self, StateError> {
        let engine = Engine::start()?;
        let mut config = target.endpoint.config.clone();
        config.options(
            "-c default_transaction_read_only=on -c statement_timeout=30000 -c TimeZone=UTC -c client_encoding=UTF8",
        );
        let manager = Manager::new(config, target.endpoint.tls.clone());
        let refused = Refused::default();
        let pool = engine.run(async {
            Pool::builder()
                .max_size(MAX_CONNECTIONS)
                .connection_timeout(CONNECT_TIMEOUT)
                .retry_connection(false)
                .error_sink(refused.boxed_clone())
                .build_unchecked(manager)
        });
        Ok(Self { pool, refused, schema: target.schema.clone(), asker, engine })
    }

    async fn connection(&self) -> Result<PooledConnection<'_, Manager>, StateError> {
        // A connection that went stale in the pool is replaced once.
        let mut tries = 2;
        let connection = loop {
            tries -= 1;
            tokio::select! {
                got = self.pool.get() => match got {
                    Ok(connection) => break connection,
                    Err(RunError::User(error)) => return Err(not_connected(&error)),
                    Err(RunError::TimedOut) => return Err(StateError::unavailable("its server does not answer")),
                },
                error = self.refused.next() => if tries == 0 { return Err(error) },
            }
        };
        let row = connection
            .query_typed_one(
                "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('server_version_num')::int4, \
                 pg_catalog.pg_backend_pid()",
                &[],
            )
            .await
            .map_err(|error| Trouble::from(error).unavailable())?;
        let read = |error: tokio_postgres::Error| Trouble::from(error).unavailable();
        let (in_recovery, version): (bool, i32) = (row.try_get(0).map_err(read)?, row.try_get(1).map_err(read)?);
        tracing::debug!(server_version = version, in_recovery, "PostgreSQL session opened");
        super::session::check_server(in_recovery, version)?;
        super::direct::check(&connection, row.try_get(2).map_err(read)?).await?;
        Ok(connection)
    }

    /// One transaction that reads, and always ends.
    fn reading<T>(&self, work: impl AsyncFnOnce(&Client) -> Result<T, StateError>) -> Result<T, StateError> {
        let bounded = async {
            let work = async {
                let connection = self.connection().await?;
                connection.batch_execute(BEGIN_READ).await.map_err(|error| Trouble::from(error).unavailable())?;
                let outcome = work(&connection).await;
                let ended = connection.batch_execute("ROLLBACK").await;
                let value = outcome?;
                ended.map_err(|error| Trouble::from(error).unavailable())?;
                Ok(value)
            };
            tokio::time::timeout(READ_TIMEOUT, work).await
        };
        self.engine.run(bounded).unwrap_or_else(|_| Err(StateError::unavailable("its server does not answer")))
    }

    /// The proofs of an ordinary command, and everything of the address. E420, E411.
    pub fn snapshot(&self, address: &StateAddress) -> Result<Snapshot, StateError> {
        let site = Site::new(&self.schema, address);
        self.reading(async |client| {
            let proved = self.prove(client).await?;
            match self.address(client, &site, &proved).await? {
                Address::Registered(snapshot) => Ok(*snapshot),
                Address::Unregistered => Err(unregistered()),
            }
        })
    }

    pub fn identity(&self) -> Result<StoreIdentity, StateError> {
        self.reading(async |client| Ok(identity(&self.prove(client).await?)))
    }

    /// E411 for a catalog that is not exact.
    pub fn status(&self, address: &StateAddress) -> Result<StoreStatus, StateError> {
        let site = Site::new(&self.schema, address);
        self.reading(async |client| {
            let proved = match catalog::prove(client, &self.schema).await {
                Ok(proved) => proved,
                Err(Defect::Uninitialized) => return Ok(StoreStatus { store: None }),
                Err(defect) => return Err(defect.error(self.asker)),
            };
            let address = self.address(client, &site, &proved).await?;
            Ok(StoreStatus { store: Some((proved, address)) })
        })
    }

    /// Tries the lock for an instant, and reserves nothing.
    pub fn lock_status(&self, address: &StateAddress) -> Result<(StoreIdentity, LockStatus), StateError> {
        let site = Site::new(&self.schema, address);
        self.reading(async |client| {
            let identity = identity(&self.prove(client).await?);
            if !rows::registered(client, &site).await.map_err(read_error)? {
                return Ok((identity, LockStatus::Unregistered));
            }
            let row = client
                .query_typed_one("SELECT pg_try_advisory_xact_lock($1)", &[(&site.key.get(), Type::INT8)])
                .await
                .map_err(|error| Trouble::from(error).unavailable())?;
            let free: bool = row.try_get(0).map_err(|error| Trouble::from(error).unavailable())?;
            Ok((identity, if free { LockStatus::Available } else { LockStatus::Busy }))
        })
    }

    async fn prove(&self, client: &Client) -> Result<Proved, StateError> {
        let proof = async {
            let proved = catalog::prove(client, &self.schema).await?;
            if self.asker == Asker::Ordinary {
                catalog::prove_writer(client, &proved).await?;
            }
            Ok(proved)
        };
        proof.await.map_err(|defect: Defect| defect.error(self.asker))
    }

    async fn address(&self, client: &Client, site: &Site, proved: &Proved) -> Result<Address, StateError> {
        if !rows::registered(client, site).await.map_err(read_error)? {
            return Ok(Address::Unregistered);
        }
        let (snapshot, _) = rows::snapshot(client, site, &identity(proved)).await.map_err(read_error)?;
        Ok(Address::Registered(Box::new(snapshot)))
    }
}

fn identity(proved: &Proved) -> StoreIdentity {
    StoreIdentity { backend: BackendKind::Postgres, store_id: proved.store_id }
}

fn read_error(error: ReadError) -> StateError {
    match error {
        ReadError::Trouble(trouble) => trouble.unavailable(),
        ReadError::State(error) => error,
    }
}

/// What the version of a store means for ordinary commands.
pub const fn authority(version: Version) -> &'static str {
    match version {
        Version::One => "disabled",
        Version::Two => "supported_for_v2_writer",
    }
}
