//! `streamt state lock-status`: whether the lock of an environment is free at this instant. It reserves nothing.

use clap::Args;
use serde::Serialize;
use uuid::Uuid;

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::outcome::{CmdResult, Outcome};
use crate::cli::project;
use crate::codes::Diagnostic;
use crate::project::Project;
use crate::project::model::DeploymentState;
use crate::state::local::LocalStore;
use crate::state::postgres::admin::{self, LockStatus};
use crate::state::postgres::{self, Credential, Target};
use crate::state::store::StateBackend;

/// Show whether the lock of an environment is free at this instant
#[derive(Debug, Args)]
pub struct StateLockStatusArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

#[derive(Serialize)]
struct LockData {
    backend: &'static str,
    store_id: Uuid,
    address: String,
    lock_status: &'static str,
    reservation: &'static str,
    ordinary_state_authority: &'static str,
}

pub fn run(context: &Context, args: &StateLockStatusArgs) -> CmdResult {
    let opened = project::open(context, &args.project)?;
    let (backend, store_id, address, lock_status) = probe(&opened.project)?;
    let data = LockData {
        backend,
        store_id,
        address,
        lock_status,
        reservation: "none",
        ordinary_state_authority: "not_verified",
    };
    let mut doc = Doc::new();
    doc.pairs(
        0,
        [
            ("backend", data.backend.to_owned()),
            ("address", data.address.clone()),
            ("lock", data.lock_status.to_owned()),
        ],
    );
    doc.line("This is the lock at one instant; nothing is reserved.");
    Ok(Outcome::new(&data, doc).warn(opened.warnings))
}

/// Backend, store, address and what its lock is at this instant.
pub(super) fn probe(project: &Project) -> Result<(&'static str, Uuid, String, &'static str), Diagnostic> {
    match &project.deployment_state {
        DeploymentState::Local { .. } => {
            let address = LocalStore::address(&project.name, &project.environment.name)?;
            let store = LocalStore::new(&project.root)?;
            let status = if store.is_locked(&address)? { "busy" } else { "available" };
            Ok(("local", store.describe()?.store_id, address.to_string(), status))
        }
        DeploymentState::Postgres(state) => {
            let target = Target::new(state, &project.state_variables, &project.root, Credential::Owner)?;
            let address = postgres::address(state, &project.name, &project.environment.name);
            let (store, status) = admin::lock_status(&target, &address)?;
            let status = match status {
                LockStatus::Available => "available",
                LockStatus::Busy => "busy",
                LockStatus::Unregistered => "unregistered",
            };
            Ok(("postgres", store.store_id, address.to_string(), status))
        }
    }
}
