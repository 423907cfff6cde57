//! One physical connection: its settings, the proof that it is what it was when it was opened, and its end as a signal.
#![expect(clippy::disallowed_methods, reason = "a session has deadlines and a heartbeat of its own")]

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Connection};

use super::classify::{Trouble, not_connected};
use super::direct;
use super::dsn::{CONNECT_TIMEOUT, Endpoint};
use super::keys::AddressKey;
use crate::state::error::StateError;

/// `statement_timeout` of every session.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
const OLDEST_SERVER: i32 = 140_000;
/// How long a server takes at least until it gives up a client that does not answer any more (`tcp_user_timeout` of the lock
/// session; its keepalives take longer).
pub const SERVER_RELEASE_MIN: Duration = Duration::from_secs(10);
/// How long a proof of the lock may take.
pub const PROOF_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs hooks once, when a connection ends.
#[derive(Default)]
pub struct Loss(Mutex<LossState>);

#[derive(Default)]
struct LossState {
    lost: bool,
    hooks: Vec<Box<dyn FnOnce() + Send>>,
}

impl Loss {
    /// At once when the connection is over already.
    pub fn watch(&self, hook: Box<dyn FnOnce() + Send>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.lost {
            drop(state);
            hook();
        } else {
            state.hooks.push(hook);
        }
    }

    pub fn signal(&self) {
        tracing::debug!("PostgreSQL session ended");
        let hooks = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.lost = true;
            std::mem::take(&mut state.hooks)
        };
        hooks.into_iter().for_each(|hook| hook());
    }

    pub fn is_lost(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lost
    }
}

/// What the server says a session is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backend {
    pub pid: i32,
    /// Tells a process from a later one with the same number.
    pub started: String,
    pub in_recovery: bool,
    pub server_version: i32,
    /// `default_transaction_read_only` of the server, the database or the role.
    pub read_only: bool,
}

pub struct Session {
    pub client: Client,
    pub backend: Backend,
    loss: Arc<Loss>,
    task: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a session is for decides only its limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Holds the lock of an address: nothing but its own end may end it, and a dead client frees the address soon.
    Lock,
    Other,
}

impl Session {
    /// Connects within `bound`. E420 also for a server in recovery, one that is too old or meant to be read only, and a pooler.
    pub async fn open(
        endpoint: &Endpoint,
        purpose: Purpose,
        lock_timeout: Duration,
        bound: Duration,
    ) -> Result<Self, StateError> {
        let bound = bound.min(CONNECT_TIMEOUT);
        let silent = || StateError::unavailable("its server does not answer");
        let loss = Arc::new(Loss::default());
        let connected = tokio::time::timeout(bound, endpoint.config.connect(endpoint.tls.clone())).await;
        let (client, connection) = connected.map_err(|_| silent())?.map_err(|error| not_connected(&error))?;
        let task = tokio::spawn(drive(connection, Arc::clone(&loss)));
        let session = async {
            let backend = settle(&client, purpose, lock_timeout).await.map_err(Trouble::unavailable)?;
            check_server(backend.in_recovery, backend.server_version)?;
            direct::check(&client, backend.pid).await?;
            if backend.read_only {
                return Err(StateError::unavailable("its server, its database or its role is set to read-only transactions")
                    .suggest("find out why default_transaction_read_only is on, and turn it off when writing is meant to be allowed"));
            }
            Ok((client, backend))
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, session).await {
            Ok(Ok((client, backend))) => {
                let Backend { pid, server_version, in_recovery, .. } = backend;
                tracing::debug!(?purpose, pid, server_version, in_recovery, "PostgreSQL session opened");
                Ok(Self { client, backend, loss, task })
            }
            Ok(Err(error)) => {
                task.abort();
                Err(error)
            }
            Err(_) => {
                task.abort();
                Err(silent())
            }
        }
    }

    pub fn loss(&self) -> &Arc<Loss> {
        &self.loss
    }

    /// Ends the connection now: a dropped future would not stop its statement.
    pub fn close(&self) {
        self.task.abort();
        self.loss.signal();
    }

    /// Same server process, still a primary, and it holds the lock. Anything else is a lost lock.
    pub async fn prove(&self, key: AddressKey) -> Result<(), Trouble> {
        let (classid, objid) = key.halves();
        let row = self
            .client
            .query_typed_one(
                "SELECT pg_catalog.pg_backend_pid() = $1, NOT pg_catalog.pg_is_in_recovery(), EXISTS ( \
                 SELECT 1 FROM pg_catalog.pg_locks l WHERE l.locktype = 'advisory' AND l.pid = $1 AND l.granted \
                 AND l.mode = 'ExclusiveLock' AND l.database = (SELECT oid FROM pg_catalog.pg_database \
                 WHERE datname = pg_catalog.current_database()) AND l.classid = $2 AND l.objid = $3 AND l.objsubid = 1)",
                &[(&self.backend.pid, Type::INT4), (&classid, Type::OID), (&objid, Type::OID)],
            )
            .await?;
        let flag = |index| row.try_get::<_, bool>(index).unwrap_or(false);
        if flag(0) && flag(1) && flag(2) { Ok(()) } else { Err(Trouble::Gone) }
    }

    /// None = the session is not the one that was opened, or its server became a standby.
    pub async fn try_lock(&self, key: AddressKey) -> Result<Option<bool>, Trouble> {
        let row = self
            .client
            .query_typed_one(
                "SELECT CASE WHEN pg_catalog.pg_backend_pid() = $1 AND NOT pg_catalog.pg_is_in_recovery() \
                 THEN pg_catalog.pg_try_advisory_lock($2) END",
                &[(&self.backend.pid, Type::INT4), (&key.get(), Type::INT8)],
            )
            .await?;
        Ok(row.try_get(0)?)
    }

    /// Whether the lock was given back by the session that held it.
    pub async fn unlock(&self, key: AddressKey) -> Result<bool, Trouble> {
        let row = self
            .client
            .query_typed_one(
                "SELECT CASE WHEN pg_catalog.pg_backend_pid() = $1 THEN pg_catalog.pg_advisory_unlock($2) END",
                &[(&self.backend.pid, Type::INT4), (&key.get(), Type::INT8)],
            )
            .await?;
        Ok(row.try_get::<_, Option<bool>>(0)?.unwrap_or(false))
    }

    /// Whether a server process still runs. Only processes of the same role are visible.
    pub async fn runs(&self, backend: &Backend) -> Result<bool, Trouble> {
        let row = self
            .client
            .query_typed_one(
                "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = $1 AND backend_start::text = $2)",
                &[(&backend.pid, Type::INT4), (&backend.started, Type::TEXT)],
            )
            .await?;
        Ok(row.try_get(0)?)
    }
}

/// A standby grants nothing, and an older server than the oldest tested one is not known to keep the contract. E420.
pub fn check_server(in_recovery: bool, version: i32) -> Result<(), StateError> {
    if in_recovery {
        return Err(StateError::unavailable("its server is a standby or is recovering")
            .suggest("connect to the primary directly"));
    }
    if version < OLDEST_SERVER {
        return Err(
            StateError::unavailable("its server is older than PostgreSQL 14").suggest("use PostgreSQL 14 or newer")
        );
    }
    Ok(())
}

/// Polls a connection to its end and says so before anybody asks. Notices are dropped unread: they may carry server text.
async fn drive<S, T>(mut connection: Connection<S, T>, loss: Arc<Loss>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    // An aborted task ends here too.
    struct Ends(Arc<Loss>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.signal();
        }
    }
    let _ends = Ends(loss);
    while let Some(Ok(_)) = poll_fn(|context| connection.poll_message(context)).await {}
}

async fn settle(client: &Client, purpose: Purpose, lock_timeout: Duration) -> Result<Backend, Trouble> {
    let settings = format!(
        "SET search_path = pg_catalog; SET statement_timeout = {}; SET lock_timeout = {}; SET synchronous_commit = on; \
         SET TimeZone = 'UTC'; SET standard_conforming_strings = on; SET client_encoding = 'UTF8'; SET DateStyle = 'ISO'; \
         SET bytea_output = 'hex'; SET idle_in_transaction_session_timeout = 0",
        STATEMENT_TIMEOUT.as_millis(),
        lock_timeout.as_millis().max(1),
    );
    client.batch_execute(&settings).await?;
    let row = client
        .query_typed_one(
            "SELECT pg_catalog.pg_backend_pid(), (SELECT backend_start::text FROM pg_catalog.pg_stat_activity \
             WHERE pid = pg_catalog.pg_backend_pid()), pg_catalog.pg_is_in_recovery(), \
             pg_catalog.current_setting('server_version_num')::int4, \
             pg_catalog.current_setting('default_transaction_read_only')::bool",
            &[],
        )
        .await?;
    let backend = Backend {
        pid: row.try_get(0)?,
        started: row.try_get::<_, Option<String>>(1)?.ok_or(Trouble::Refused)?,
        in_recovery: row.try_get(2)?,
        server_version: row.try_get(3)?,
        read_only: row.try_get(4)?,
    };
    if purpose == Purpose::Lock && backend.server_version >= OLDEST_SERVER {
        let settings = format!(
            "SET idle_session_timeout = 0; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; \
             SET tcp_keepalives_count = 3; SET tcp_user_timeout = {}",
            SERVER_RELEASE_MIN.as_millis(),
        );
        client.batch_execute(&settings).await?;
        // Not every operating system of a server can do this; without it a dead client is noticed by its keepalives.
        match client.batch_execute("SET client_connection_check_interval = 2000").await.map_err(Trouble::from) {
            Ok(()) | Err(Trouble::Refused) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(backend)
}

/// Two statements of a transaction that only reads.
pub const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL search_path = pg_catalog";
