//! `streamt state status`: what is recorded, and whether an operation waits for a person. No lock, no file created.

use clap::Args;
use serde::Serialize;
use uuid::Uuid;

use crate::actors::read_state;
use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::outcome::{CmdResult, Outcome};
use crate::cli::project;
use crate::state::control::{OperationStatus, Status};
use crate::state::store::Revision;

/// Show what is recorded of an environment, and any unfinished operation
#[derive(Debug, Args)]
pub struct StateStatusArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

#[derive(Serialize)]
struct StatusData {
    backend: &'static str,
    store_id: Uuid,
    address: String,
    state_status: &'static str,
    state_serial: u64,
    state_checksum: String,
    operation_status: OperationStatus,
}

pub fn run(context: &Context, args: &StateStatusArgs) -> CmdResult {
    let opened = project::open(context, &args.project)?;
    let snapshot = read_state(&opened.project)?;
    let present = snapshot.state.revision != Revision::Absent;
    let operation = snapshot.control.control.status();
    let data = StatusData {
        backend: "local",
        store_id: snapshot.state.store.store_id,
        address: snapshot.state.address.to_string(),
        state_status: if present { "present" } else { "absent" },
        state_serial: snapshot.state.state.serial,
        state_checksum: snapshot.state.checksum.to_string(),
        operation_status: operation,
    };
    let resources = snapshot.state.state.resources.len();
    Ok(Outcome::new(&data, text(&data, resources)).warn(opened.warnings))
}

fn text(data: &StatusData, resources: usize) -> Doc {
    let mut doc = Doc::new();
    let operation = &data.operation_status;
    let mut rows = vec![("backend", data.backend.to_owned()), ("address", data.address.clone())];
    match (data.state_status, resources) {
        ("absent", _) => rows.push(("state", "absent: nothing has been applied yet".to_owned())),
        (status, count) => {
            let noun = if count == 1 { "resource" } else { "resources" };
            rows.push(("state", format!("{status}, serial {}, {count} {noun}", data.state_serial)));
            rows.push(("checksum", data.state_checksum.clone()));
        }
    }
    if operation.status == Status::Clear {
        rows.push(("operation", "none pending".to_owned()));
    }
    doc.pairs(0, rows);
    match operation.status {
        Status::Clear => {}
        Status::InProgress | Status::RecoveryRequired => {
            let id = operation.operation_id.map(|id| id.to_string()).unwrap_or_default();
            let status =
                if operation.status == Status::InProgress { "in progress or interrupted" } else { "recovery required" };
            doc.line(Line::new().tone(Tone::Error, "operation:").plain(format!(" {id} {status}")));
            if let Some(index) = operation.last_completed_action_index {
                doc.line(format!("  last completed action: {index}"));
            }
            doc.blank();
            doc.line("An operation did not finish. Keep the files below .streamt as they are: they are the evidence.");
            doc.line("This version cannot recover it; a version with `state recovery-plan` can.");
        }
    }
    doc
}
