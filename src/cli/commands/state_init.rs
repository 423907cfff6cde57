//! `streamt state init`: makes the PostgreSQL store, or registers this environment in it. Idempotent.
#![expect(clippy::disallowed_methods, reason = "a store says when it was made")]

use clap::Args;
use serde::Serialize;
use uuid::Uuid;

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::project;
use crate::codes::{Code, Diagnostic};
use crate::project::Project;
use crate::project::model::{DeploymentState, PostgresState};
use crate::state::model::StateAddress;
use crate::state::postgres::admin::{self, NewStore, authority};
use crate::state::postgres::{self, Credential, Target};

/// Make the PostgreSQL state store, or register this environment in it
#[derive(Debug, Args)]
pub struct StateInitArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Role that will write the store; needed for a new one
    #[arg(long, value_name = "NAME")]
    writer_role: Option<String>,

    /// Layout of a new store; 1 serves administration only
    #[arg(long, value_name = "VERSION", default_value = "2", value_parser = ["1", "2"])]
    schema_version: String,

    /// Print the statements for a review and connect to nothing
    #[arg(long)]
    print_sql: bool,

    /// Name of the project, to confirm
    #[arg(long, value_name = "NAME")]
    confirm_project: Option<String>,

    /// Name of the environment, to confirm
    #[arg(long, value_name = "ENV")]
    confirm_env: Option<String>,

    /// Address streamt-state://NAMESPACE/PROJECT/ENV, to confirm
    #[arg(long, value_name = "ADDRESS")]
    confirm_address: Option<String>,
}

#[derive(Serialize)]
struct InitData {
    backend: &'static str,
    outcome: &'static str,
    store_id: Uuid,
    schema_version: i32,
    address: String,
    address_status: &'static str,
    state_status: &'static str,
    operation_status: &'static str,
    ordinary_state_authority: &'static str,
}

#[derive(Serialize)]
pub struct ScriptData {
    pub statements: Vec<String>,
}

/// The statements as a file that a person reads.
pub fn script(statements: &[String]) -> Doc {
    Doc::document(statements.iter().map(|statement| format!("{statement};\n")).collect::<String>())
}

pub fn run(context: &Context, args: &StateInitArgs) -> CmdResult {
    let new = wanted(args)?;
    if args.print_sql {
        let new = new.unwrap_or(NewStore::Two { writer: String::new() });
        let statements = admin::script(&new);
        let text = script(&statements);
        return Ok(Outcome::new(&ScriptData { statements }, text));
    }
    let opened = project::open(context, &args.project)?;
    let state = remote(&opened.project, "state init")?;
    let address = postgres::address(state, &opened.project.name, &opened.project.environment.name);
    confirm(args, &opened.project, &address)?;
    let target = Target::new(state, &opened.project.state_variables, &opened.project.root, Credential::Owner)
        .map_err(|error| error.diagnostic())?;
    let made =
        admin::init(target, &address, new.as_ref(), jiff::Timestamp::now()).map_err(|error| error.diagnostic())?;
    let data = InitData {
        backend: "postgres",
        outcome: made.outcome.as_str(),
        store_id: made.store_id,
        schema_version: made.version.number(),
        address: address.to_string(),
        address_status: "registered",
        state_status: "absent",
        operation_status: "clear",
        ordinary_state_authority: authority(made.version),
    };
    let mut doc = Doc::new();
    doc.pairs(
        0,
        [
            ("outcome", data.outcome.replace('_', " ")),
            ("store", data.store_id.to_string()),
            ("schema version", data.schema_version.to_string()),
            ("address", data.address.clone()),
        ],
    );
    Ok(Outcome::new(&data, doc).warn(opened.warnings))
}

fn wanted(args: &StateInitArgs) -> Result<Option<NewStore>, Failure> {
    match (&args.writer_role, args.schema_version.as_str()) {
        (Some(_), "1") => Err(Failure::usage("--writer-role belongs to --schema-version 2")),
        (None, "1") => Ok(Some(NewStore::One)),
        (Some(writer), _) => {
            admin::check_role(writer).map_err(|error| error.diagnostic())?;
            Ok(Some(NewStore::Two { writer: writer.clone() }))
        }
        (None, _) => Ok(None),
    }
}

/// E421 for local state.
pub fn remote<'a>(project: &'a Project, command: &str) -> Result<&'a PostgresState, Failure> {
    match &project.deployment_state {
        DeploymentState::Postgres(state) => Ok(state),
        DeploymentState::Local { .. } => Err(Failure::new(
            Diagnostic::new(
                Code::E421RemoteStateRequired,
                format!("`{command}` is for PostgreSQL state, and this project keeps local files"),
            )
            .suggest("Set deployment_state.backend: postgres; local state needs no initialization"),
        )),
    }
}

/// Each confirmation is given and equals what was resolved: E411, before anything is contacted.
fn confirm(args: &StateInitArgs, project: &Project, address: &StateAddress) -> Result<(), Failure> {
    let address = address.to_string();
    for (option, given, expected) in [
        ("--confirm-project", &args.confirm_project, &project.name),
        ("--confirm-env", &args.confirm_env, &project.environment.name),
        ("--confirm-address", &args.confirm_address, &address),
    ] {
        if given.as_ref() != Some(expected) {
            let problem = if given.is_some() { "differs from the resolved value" } else { "is missing" };
            let error = Diagnostic::new(Code::E411StateInvalid, format!("{option} {problem}"));
            return Err(error
                .suggest("repeat project, environment and address exactly; `streamt state status` shows the address, which names all three")
                .into());
        }
    }
    Ok(())
}
