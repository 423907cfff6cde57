//! Deployment state in PostgreSQL: one schema of seven tables, one writer role, one session advisory lock per address. It promises
//! that nothing is trusted before catalog, rights, role and a direct primary are proved; that a step is one transaction of the
//! session that holds the lock; and that an outcome is proved by another session or reported as unknown. Poolers, proxies,
//! failover and backups stay the operator's business.

pub mod admin;
mod audit;
mod catalog;
mod classify;
mod contract;
mod direct;
mod dsn;
mod engine;
mod history;
mod hold;
mod keys;
#[cfg(test)]
mod ledger;
mod migrate;
mod operation;
mod reader;
mod resolve;
mod rows;
pub mod session;
#[cfg(all(test, feature = "service-tests"))]
mod tests;
mod tls;
mod tx;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::StateError;
use super::model::{StateAddress, StoreIdentity};
use super::store::{Snapshot, StateBackend};
use crate::project::model::{PostgresState, StateVariables};
use catalog::Asker;
use dsn::Endpoint;
use reader::Reader;

pub use operation::PostgresOperation;

/// Whom to reach, and where in its database.
#[derive(Clone, Debug)]
pub struct Target {
    endpoint: Endpoint,
    schema: String,
    lock_timeout: Duration,
}

/// Which of the two credentials of a project. None ever stands in for the other (PGS-005).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Credential {
    Writer,
    Owner,
}

impl Target {
    /// E420 for a variable that is missing or blank, and for a connection string that is refused.
    pub fn new(
        state: &PostgresState,
        variables: &StateVariables,
        root: &Path,
        credential: Credential,
    ) -> Result<Self, StateError> {
        if let Some(name) = variables.redirecting() {
            return Err(StateError::unavailable(format!("'{name}' is set in the environment"))
                .suggest("unset PGHOST, PGHOSTADDR, PGPORT, PGSERVICE and PGSERVICEFILE: the connection string alone names the server"));
        }
        let name = match (credential, &state.writer_dsn_env) {
            (Credential::Owner, _) => &state.dsn_env,
            (Credential::Writer, Some(name)) => name,
            (Credential::Writer, None) => {
                return Err(StateError::unavailable("'postgres.writer_dsn_env' is not configured").suggest(
                    "name the variable that holds the connection string of the writer role; the owner's is never used instead",
                ));
            }
        };
        let dsn = variables.get(name).filter(|value| !value.expose().trim().is_empty()).ok_or_else(|| {
            StateError::unavailable(format!("the variable '{name}' is not set"))
                .suggest("set it in the environment of the process, in .env.<environment> or in .env")
        })?;
        Ok(Self {
            endpoint: dsn::read(dsn, root)?,
            schema: state.schema.clone(),
            lock_timeout: Duration::from_secs(u64::from(state.lock_timeout)),
        })
    }
}

/// The address of an environment of a project.
pub fn address(state: &PostgresState, project: &str, environment: &str) -> StateAddress {
    StateAddress {
        namespace: state.namespace.clone(),
        project: project.to_owned(),
        environment: environment.to_owned(),
    }
}

/// The store of one schema, reached as its writer.
pub struct PostgresStore {
    target: Target,
    reader: OnceLock<Arc<Reader>>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Nothing is connected yet.
    pub fn new(target: Target) -> Self {
        Self { target, reader: OnceLock::new() }
    }

    fn reader(&self) -> Result<&Reader, StateError> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let reader = Arc::new(Reader::new(&self.target, Asker::Ordinary)?);
        Ok(self.reader.get_or_init(|| reader))
    }
}

impl StateBackend for PostgresStore {
    type Operation = PostgresOperation;

    fn describe(&self) -> Result<StoreIdentity, StateError> {
        self.reader()?.identity()
    }

    fn read_snapshot(&self, address: &StateAddress) -> Result<Snapshot, StateError> {
        self.reader()?.snapshot(address)
    }

    fn acquire(
        &self,
        address: &StateAddress,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<PostgresOperation, StateError> {
        PostgresOperation::acquire(self.target.clone(), address, timeout, give_up)
    }
}
