//! The state store of a project, opened as its `deployment_state` says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::lock::hold::Backend;
use crate::project::Project;
use crate::project::model::DeploymentState;
use crate::state::error::StateError;
use crate::state::local::LocalStore;
use crate::state::model::StateAddress;
use crate::state::postgres::{self, Credential, PostgresStore, Target};
use crate::state::store::{Snapshot, StateBackend};

/// A store, the address of the project's environment in it, and how long to wait for its lock.
#[derive(Clone)]
pub(crate) struct Opened {
    pub backend: Arc<dyn Backend>,
    pub address: StateAddress,
    pub lock_timeout: Duration,
    /// The ownership file of the local backend.
    pub file: Option<PathBuf>,
}

/// E420, E411. Nothing is read yet.
pub(crate) fn open(project: &Project) -> Result<Opened, StateError> {
    match &project.deployment_state {
        DeploymentState::Local { lock_timeout } => {
            let address = LocalStore::address(&project.name, &project.environment.name)?;
            let file = project.root.join(".streamt/state").join(format!("{}.json", address.environment));
            Ok(Opened {
                backend: Arc::new(LocalStore::new(&project.root)?),
                address,
                lock_timeout: Duration::from_secs(u64::from(*lock_timeout)),
                file: Some(file),
            })
        }
        DeploymentState::Postgres(state) => {
            let target = Target::new(state, &project.state_variables, &project.root, Credential::Writer)?;
            Ok(Opened {
                backend: Arc::new(PostgresStore::new(target)),
                address: postgres::address(state, &project.name, &project.environment.name),
                lock_timeout: Duration::from_secs(u64::from(state.lock_timeout)),
                file: None,
            })
        }
    }
}

/// An advisory view, without the lock. E420, E411.
pub(crate) fn read(project: &Project) -> Result<Snapshot, StateError> {
    match &project.deployment_state {
        DeploymentState::Local { .. } => {
            let address = LocalStore::address(&project.name, &project.environment.name)?;
            LocalStore::new(&project.root)?.read_snapshot(&address)
        }
        DeploymentState::Postgres(state) => {
            let target = Target::new(state, &project.state_variables, &project.root, Credential::Writer)?;
            let address = postgres::address(state, &project.name, &project.environment.name);
            PostgresStore::new(target).read_snapshot(&address)
        }
    }
}
