//! `streamt state migrate-postgres-v2`: gives a version-1 store its one writer role. Idempotent; there is no way back but a backup.
#![expect(clippy::disallowed_methods, reason = "a ledger says when a store was migrated")]

use clap::Args;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::state_init::{ScriptData, remote, script};
use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::project;
use crate::codes::{Code, Diagnostic};
use crate::project::Project;
use crate::project::model::PostgresState;
use crate::state::error::{Durable, StateError, StateErrorKind};
use crate::state::postgres::admin::{self, MigrationFailure, Version, authority};
use crate::state::postgres::{Credential, Target};
use crate::state::scalar::parse_uuid;

/// Bring a version-1 PostgreSQL state store to version 2
///
/// Takes the lock of every registered environment, proves every stored row, and changes layout and rights in one transaction.
/// What operations wrote stays as it is. Back up the schema first: only a restore leads back.
#[derive(Debug, Args)]
pub struct StateMigrateArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Id of the store, as `state status` shows it, to confirm
    #[arg(long, value_name = "UUID")]
    confirm_store_id: Option<String>,

    /// Role that will write the store, to confirm
    #[arg(long, value_name = "ROLE")]
    confirm_writer_role: Option<String>,

    /// Print the statements for a review and connect to nothing
    #[arg(long)]
    print_sql: bool,
}

#[derive(Serialize)]
struct MigrationData {
    backend: &'static str,
    outcome: &'static str,
    store_id: Uuid,
    schema_version: i32,
    ordinary_state_authority: &'static str,
    mutation_status: &'static str,
}

pub fn run(context: &Context, args: &StateMigrateArgs) -> CmdResult {
    if args.print_sql {
        let statements = admin::migration_script();
        let text = script(&statements);
        return Ok(Outcome::new(&ScriptData { statements }, text));
    }
    let (store_id, writer) = confirmed(args)?;
    let opened = project::open(context, &args.project)?;
    let state = remote(&opened.project, "state migrate-postgres-v2")?;
    expected_writer(&opened.project, state, writer).map_err(|error| error.diagnostic())?;
    let target = Target::new(state, &opened.project.state_variables, &opened.project.root, Credential::Owner)
        .map_err(|error| error.diagnostic())?;
    let outcome = match admin::migrate(&target, store_id, writer, jiff::Timestamp::now()) {
        Ok(outcome) => outcome,
        Err(failure) => return Err(failed(&failure).warn(opened.warnings)),
    };
    let data = MigrationData {
        backend: "postgres",
        outcome: outcome.as_str(),
        store_id,
        schema_version: Version::Two.number(),
        ordinary_state_authority: authority(Version::Two),
        mutation_status: "catalog_ready",
    };
    let mut doc = Doc::new();
    doc.pairs(
        0,
        [
            ("outcome", data.outcome.replace('_', " ")),
            ("store", store_id.to_string()),
            ("schema version", data.schema_version.to_string()),
        ],
    );
    Ok(Outcome::new(&data, doc).warn(opened.warnings))
}

/// Both confirmations in their form: E411, before the project is read.
fn confirmed(args: &StateMigrateArgs) -> Result<(Uuid, &str), Diagnostic> {
    let unconfirmed = |problem: &str, suggestion| Diagnostic::new(Code::E411StateInvalid, problem).suggest(suggestion);
    let id = args.confirm_store_id.as_ref().ok_or_else(|| {
        unconfirmed("--confirm-store-id is missing", "repeat the id of the store that `streamt state status` shows")
    })?;
    let id = parse_uuid(id).ok_or_else(|| {
        unconfirmed(
            "--confirm-store-id is not a canonical lower-case UUID",
            "repeat the id of the store that `streamt state status` shows",
        )
    })?;
    let writer = args.confirm_writer_role.as_ref().ok_or_else(|| {
        unconfirmed("--confirm-writer-role is missing", "name the role that the writer's connection string logs in as")
    })?;
    admin::check_role(writer).map_err(|error| error.diagnostic())?;
    Ok((id, writer))
}

/// The variable of `writer_role_env`, where one is configured, says the same. E420, E411.
fn expected_writer(project: &Project, state: &PostgresState, confirmed: &str) -> Result<(), StateError> {
    let Some(name) = &state.writer_role_env else { return Ok(()) };
    match project.state_variables.get(name).map(|value| value.expose().trim()).filter(|value| !value.is_empty()) {
        None => Err(StateError::unavailable(format!("the variable '{name}' is not set"))
            .suggest("set it in the environment of the process, in .env.<environment> or in .env")),
        Some(expected) if expected == confirmed => Ok(()),
        Some(_) => Err(StateError::invalid(format!("--confirm-writer-role differs from the variable '{name}'"))
            .suggest("confirm the role that the environment expects")),
    }
}

fn failed(failure: &MigrationFailure) -> Failure {
    let told = Failure::new(failure.error.diagnostic());
    let mut text = Doc::new();
    for address in &failure.blocked {
        text.line(format!("blocked: {address}"));
    }
    match (&failure.error.kind, failure.error.durable()) {
        (StateErrorKind::RecoveryRequired(_), _) => {
            told.data(&json!({ "blocked_addresses": failure.blocked, "committed": false })).text(text)
        }
        (_, Durable::Yes) => {
            told.data(&json!({ "committed": true, "ordinary_state_authority": authority(Version::Two) }))
        }
        (_, Durable::No) => told.data(&json!({ "committed": false })),
        (_, Durable::Unknown) => told.data(&json!({ "committed": null })),
    }
}
