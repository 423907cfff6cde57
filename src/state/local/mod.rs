//! Deployment state in files of the project directory, for one host: ownership, operation control and recovery history of
//! each environment. It promises that a step stands whole or not at all, through a kill at any moment, and that one process
//! at a time works on an environment. Other hosts, and file systems that other hosts write, stay the user's business.

mod control_file;
mod files;
mod history;
mod lock;
mod operation;
#[cfg(test)]
mod tests;
mod view;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::{StateError, StateErrorKind};
use super::model::{BackendKind, StateAddress, StoreIdentity};
use super::store::{Snapshot, StateBackend};
use files::StateDir;
use view::View;

pub use operation::LocalOperation;

/// The namespace of every local address.
pub const NAMESPACE: &str = "local";

/// The local store of one project directory.
#[derive(Clone, Debug)]
pub struct LocalStore {
    root: PathBuf,
    identity: StoreIdentity,
}

impl LocalStore {
    /// `root` = the project directory, which exists. Moving it makes another store. E420.
    pub fn new(root: &Path) -> Result<Self, StateError> {
        let root = root.canonicalize().map_err(|_| {
            StateError::unavailable("cannot open the project directory").suggest("check the project directory")
        })?;
        let identity = StoreIdentity { backend: BackendKind::Local, store_id: store_id(&root)? };
        Ok(Self { root, identity })
    }

    /// Whether an operation holds the lock of an address at this instant. Nothing is reserved. E420, E411.
    pub fn is_locked(&self, address: &StateAddress) -> Result<bool, StateError> {
        check_address(address)?;
        let Some(dir) = StateDir::open(&self.root, false)? else { return Ok(false) };
        let name = view::Names::of(&address.environment).lock;
        match lock::Lock::take(&self.root, &dir, name, Duration::ZERO, &CancellationToken::new()) {
            Ok(lock) => {
                lock.release();
                Ok(false)
            }
            Err(error) if error.kind == StateErrorKind::LockTimeout => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The address of an environment of a project. E411 unless both are valid segments.
    pub fn address(project: &str, environment: &str) -> Result<StateAddress, StateError> {
        let address = StateAddress {
            namespace: NAMESPACE.to_owned(),
            project: project.to_owned(),
            environment: environment.to_owned(),
        };
        check_address(&address)?;
        Ok(address)
    }
}

/// UUIDv5 in the URL namespace of the `file://` URI of the canonical project directory.
fn store_id(root: &Path) -> Result<Uuid, StateError> {
    let uri = url::Url::from_file_path(root)
        .map_err(|()| StateError::unavailable("the project directory has no absolute path"))?;
    Ok(Uuid::new_v5(&Uuid::NAMESPACE_URL, uri.as_str().as_bytes()))
}

/// An address names files, so its segments are checked before any of them is touched.
fn check_address(address: &StateAddress) -> Result<(), StateError> {
    let environment = address.environment.as_bytes();
    let environment_fits = environment.first().is_some_and(u8::is_ascii_alphanumeric)
        && environment.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    let project_fits = !address.project.is_empty() && !address.project.contains('/');
    if address.namespace == NAMESPACE && environment_fits && project_fits {
        return Ok(());
    }
    Err(StateError::invalid("the state address is not a local one"))
}

impl StateBackend for LocalStore {
    type Operation = LocalOperation;

    fn describe(&self) -> Result<StoreIdentity, StateError> {
        Ok(self.identity.clone())
    }

    fn read_snapshot(&self, address: &StateAddress) -> Result<Snapshot, StateError> {
        check_address(address)?;
        let Some(dir) = StateDir::open(&self.root, false)? else {
            return Ok(View::absent(address)?.snapshot(&self.identity));
        };
        Ok(View::read_unlocked(&dir, address)?.snapshot(&self.identity))
    }

    fn acquire(
        &self,
        address: &StateAddress,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<LocalOperation, StateError> {
        check_address(address)?;
        LocalOperation::acquire(self.root.clone(), self.identity.clone(), address.clone(), timeout, give_up)
    }
}
