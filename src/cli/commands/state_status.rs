//! `streamt state status`: what is recorded, and whether an operation waits for a person. No lock, no file created.

use clap::Args;
use serde::Serialize;
use uuid::Uuid;

use super::state_lock_status;
use crate::actors::read_state;
use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::outcome::{CmdResult, Outcome};
use crate::cli::project;
use crate::project::Project;
use crate::project::model::{DeploymentState, PostgresState};
use crate::state::control::{OperationStatus, Status};
use crate::state::error::StateError;
use crate::state::postgres::admin::{self, Address, Version};
use crate::state::postgres::{self, Credential, Target};
use crate::state::store::{Revision, Snapshot};

/// Show what is recorded of an environment, and any unfinished operation
#[derive(Debug, Args)]
pub struct StateStatusArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

#[derive(Serialize)]
struct StatusData {
    backend: &'static str,
    #[serde(flatten)]
    store: Option<StoreData>,
    store_id: Option<Uuid>,
    address: String,
    state_status: &'static str,
    state_serial: Option<u64>,
    state_checksum: Option<String>,
    operation_status: Option<OperationStatus>,
}

/// What only a PostgreSQL store has.
#[derive(Serialize)]
struct StoreData {
    store_status: &'static str,
    schema_version: Option<i32>,
    address_status: &'static str,
    mutation_status: &'static str,
    ordinary_state_authority: &'static str,
}

pub fn run(context: &Context, args: &StateStatusArgs) -> CmdResult {
    let opened = project::open(context, &args.project)?;
    let (data, resources) = match &opened.project.deployment_state {
        DeploymentState::Local { .. } => local(&read_state(&opened.project)?),
        DeploymentState::Postgres(state) => remote(&opened.project, state).map_err(|error| error.diagnostic())?,
    };
    let next = project::next_command(&opened.project, "state recovery-plan");
    let in_progress = data.operation_status.as_ref().is_some_and(|operation| operation.status == Status::InProgress);
    // Whoever holds the lock of an operation in progress is most likely the one that runs it.
    let running = in_progress && state_lock_status::probe(&opened.project).is_ok_and(|(.., lock)| lock == "busy");
    Ok(Outcome::new(&data, text(&data, resources, running, &next)).warn(opened.warnings))
}

fn local(snapshot: &Snapshot) -> (StatusData, usize) {
    let address = snapshot.state.address.to_string();
    let store_id = Some(snapshot.state.store.store_id);
    (observed("local", None, store_id, address, snapshot), snapshot.state.state.resources.len())
}

fn observed(
    backend: &'static str,
    store: Option<StoreData>,
    store_id: Option<Uuid>,
    address: String,
    snapshot: &Snapshot,
) -> StatusData {
    let present = snapshot.state.revision != Revision::Absent;
    StatusData {
        backend,
        store,
        store_id,
        address,
        state_status: if present { "present" } else { "absent" },
        state_serial: Some(snapshot.state.state.serial),
        state_checksum: Some(snapshot.state.checksum.to_string()),
        operation_status: Some(snapshot.control.control.status()),
    }
}

/// With the owner's credential; the writer's is neither read nor probed (PGS-017).
fn remote(project: &Project, state: &PostgresState) -> Result<(StatusData, usize), StateError> {
    let target = Target::new(state, &project.state_variables, &project.root, Credential::Owner)?;
    let address = postgres::address(state, &project.name, &project.environment.name);
    let status = admin::status(&target, &address)?;
    let store = |version: Option<Version>, registered: bool| StoreData {
        store_status: if version.is_some() { "ready" } else { "uninitialized" },
        schema_version: version.map(Version::number),
        address_status: if registered { "registered" } else { "unregistered" },
        mutation_status: if version == Some(Version::Two) { "catalog_ready" } else { "disabled" },
        ordinary_state_authority: version.map_or("disabled", admin::authority),
    };
    let unregistered = |version, store_id| StatusData {
        backend: "postgres",
        store: Some(store(version, false)),
        store_id,
        address: address.to_string(),
        state_status: "unregistered",
        state_serial: None,
        state_checksum: None,
        operation_status: None,
    };
    Ok(match status.store {
        None => (unregistered(None, None), 0),
        Some((proved, Address::Unregistered)) => (unregistered(Some(proved.version), Some(proved.store_id)), 0),
        Some((proved, Address::Registered(snapshot))) => {
            let store = store(Some(proved.version), true);
            let data = observed("postgres", Some(store), Some(proved.store_id), address.to_string(), &snapshot);
            (data, snapshot.state.state.resources.len())
        }
    })
}

fn text(data: &StatusData, resources: usize, running: bool, next: &str) -> Doc {
    let mut doc = Doc::new();
    let mut rows = vec![("backend", data.backend.to_owned()), ("address", data.address.clone())];
    if let Some(store) = &data.store {
        let version = store.schema_version.map_or(String::new(), |version| format!(", schema version {version}"));
        let id = data.store_id.map_or(String::new(), |id| format!(", id {id}"));
        rows.push(("store", format!("{}{version}{id}", store.store_status)));
    }
    match (data.state_status, data.state_serial, resources) {
        ("absent", _, _) => rows.push(("state", "absent: nothing has been applied yet".to_owned())),
        (status, None, _) => rows.push(("state", status.to_owned())),
        (status, Some(serial), count) => {
            let noun = if count == 1 { "resource" } else { "resources" };
            rows.push(("state", format!("{status}, serial {serial}, {count} {noun}")));
            rows.extend(data.state_checksum.iter().map(|checksum| ("checksum", checksum.clone())));
        }
    }
    let Some(operation) = &data.operation_status else {
        doc.pairs(0, rows);
        doc.line("`streamt state init` makes the store, or registers this environment in it.");
        return doc;
    };
    if operation.status == Status::Clear {
        rows.push(("operation", "none pending".to_owned()));
    }
    doc.pairs(0, rows);
    if data.store.as_ref().is_some_and(|store| store.schema_version == Some(Version::One.number())) {
        doc.line(
            "Plan and apply are refused until the store has schema version 2: `streamt state migrate-postgres-v2`.",
        );
    }
    match operation.status {
        Status::Clear => {}
        Status::InProgress | Status::RecoveryRequired => {
            let id = operation.operation_id.map(|id| id.to_string()).unwrap_or_default();
            let status = match (operation.status, running) {
                (Status::InProgress, true) => "in progress",
                (Status::InProgress, false) => "interrupted",
                (Status::RecoveryRequired | Status::Clear, _) => "recovery required",
            };
            doc.line(Line::new().tone(Tone::Error, "operation:").plain(format!(" {id} {status}")));
            if let Some(index) = operation.last_completed_action_index {
                doc.line(format!("  last completed action: {}, counted from 1", u64::from(index) + 1));
            }
            doc.blank();
            if running {
                doc.line(
                    "The lock of this environment is held at this instant, so the operation is most likely running.",
                );
                doc.line("Wait for it to end, then look again; nothing has to be recovered while it runs.");
                return doc;
            }
            doc.line(match data.backend {
                "local" => {
                    "An operation did not finish. Keep the files below .streamt as they are: they are the evidence."
                }
                _ => "An operation did not finish. Keep the rows of the store as they are: they are the evidence.",
            });
            doc.line("Nothing goes on or back by itself. Observe what it left, have that reviewed, then resolve it:");
            doc.line(format!("  {next} --resolution observed --out FILE"));
        }
    }
    doc
}
