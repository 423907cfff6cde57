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
    let (store, address, lock_timeout) = local(project)?;
    let file = project.root.join(".streamt/state").join(format!("{}.json", address.environment));
    Ok(Opened { backend: Arc::new(store), address, lock_timeout, file: Some(file) })
}

/// An advisory view, without the lock. E420, E411.
pub(crate) fn read(project: &Project) -> Result<Snapshot, StateError> {
    let (store, address, _) = local(project)?;
    store.read_snapshot(&address)
}

fn local(project: &Project) -> Result<(LocalStore, StateAddress, Duration), StateError> {
    match &project.deployment_state {
        DeploymentState::Local { lock_timeout } => {
            let address = LocalStore::address(&project.name, &project.environment.name)?;
            Ok((LocalStore::new(&project.root)?, address, Duration::from_secs(u64::from(*lock_timeout))))
        }
        DeploymentState::Postgres(_) => Err(StateError::unavailable("this version keeps state in local files only")
            .suggest("remove the deployment_state block, or use a version that supports PostgreSQL state")),
    }
}
