//! The command line as types. Exclusions that have an error code of their own are checked by the commands, so that the
//! code appears; clap refuses only what has none.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::commands;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OutputFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// Options that stand anywhere on the line.
#[derive(Clone, Debug, Args)]
pub struct GlobalArgs {
    /// Result as text, or as one JSON envelope on stdout
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        env = "STREAMT_OUTPUT",
        global = true,
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub output: OutputFormat,

    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Global options")]
    pub quiet: bool,

    /// Log on stderr: -v info, -vv debug, -vvv trace
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = "Global options")]
    pub verbose: u8,

    /// When to colour text
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value = "auto",
        global = true,
        help_heading = "Global options"
    )]
    pub color: ColorChoice,

    /// Same as --color never
    #[arg(long, global = true, help_heading = "Global options")]
    pub no_color: bool,

    /// Form of log lines on stderr
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        env = "STREAMT_LOG_FORMAT",
        global = true,
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub log_format: OutputFormat,
}

/// GitOps for streaming: declare topics, schemas and SQL models; plan, review and apply them.
#[derive(Debug, Parser)]
#[command(name = "streamt", disable_version_flag = true, disable_help_subcommand = true, max_term_width = 120)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,

    /// Print the version
    #[arg(long)]
    pub version: bool,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Which project, for which environment.
#[derive(Clone, Debug, Args)]
pub struct ProjectArgs {
    /// Directory that holds stream_project.yml
    #[arg(short, long, value_name = "PATH", default_value = ".", env = "STREAMT_PROJECT_DIR", hide_env_values = true)]
    pub project_dir: PathBuf,

    /// Environment of environments/<ENV>.yml [env: STREAMT_ENV]
    #[arg(short, long, value_name = "ENV")]
    pub env: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Init(commands::init::InitArgs),
    Import(commands::import::ImportArgs),
    Validate(commands::validate::ValidateArgs),
    Compile(commands::compile::CompileArgs),
    Build(commands::build::BuildArgs),
    Plan(commands::plan::PlanArgs),
    Apply(commands::apply::ApplyArgs),
    Adopt(commands::adopt::AdoptArgs),
    Review(commands::review::ReviewArgs),
    Diff(commands::diff::DiffArgs),
    Status(commands::status::StatusArgs),
    Test(commands::test::TestArgs),
    List(commands::list::ListArgs),
    Show(commands::show::ShowArgs),
    Lineage(commands::lineage::LineageArgs),
    /// Environments of the project
    #[command(subcommand)]
    Envs(EnvsCommand),
    /// Documents about the project
    #[command(subcommand)]
    Docs(DocsCommand),
    /// Recorded deployment state
    #[command(subcommand)]
    State(StateCommand),
    Explain(commands::explain::ExplainArgs),
    Completion(commands::completion::CompletionArgs),
    Version(commands::version::VersionArgs),
    Man(commands::man::ManArgs),
}

#[derive(Debug, Subcommand)]
pub enum EnvsCommand {
    List(commands::envs::ListArgs),
    Show(commands::envs::ShowArgs),
    Diff(commands::envs::DiffArgs),
}

#[derive(Debug, Subcommand)]
pub enum DocsCommand {
    Schema(commands::docs_schema::SchemaArgs),
}

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    Init(commands::state_init::StateInitArgs),
    MigratePostgresV2(commands::state_migrate::StateMigrateArgs),
    Status(commands::state_status::StateStatusArgs),
    LockStatus(commands::state_lock_status::StateLockStatusArgs),
    RecoveryPlan(commands::state_recovery::RecoveryPlanArgs),
    Recover(commands::state_recovery::RecoverArgs),
}

impl Command {
    /// The canonical words of the envelope.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "init",
            Self::Import(_) => "import",
            Self::Validate(_) => "validate",
            Self::Compile(_) => "compile",
            Self::Build(_) => "build",
            Self::Plan(_) => "plan",
            Self::Apply(_) => "apply",
            Self::Adopt(_) => "adopt",
            Self::Review(_) => "review",
            Self::Diff(_) => "diff",
            Self::Status(_) => "status",
            Self::Test(_) => "test",
            Self::List(_) => "list",
            Self::Show(_) => "show",
            Self::Lineage(_) => "lineage",
            Self::Envs(EnvsCommand::List(_)) => "envs list",
            Self::Envs(EnvsCommand::Show(_)) => "envs show",
            Self::Envs(EnvsCommand::Diff(_)) => "envs diff",
            Self::Docs(DocsCommand::Schema(_)) => "docs schema",
            Self::State(StateCommand::Init(_)) => "state init",
            Self::State(StateCommand::MigratePostgresV2(_)) => "state migrate-postgres-v2",
            Self::State(StateCommand::Status(_)) => "state status",
            Self::State(StateCommand::LockStatus(_)) => "state lock-status",
            Self::State(StateCommand::RecoveryPlan(_)) => "state recovery-plan",
            Self::State(StateCommand::Recover(_)) => "state recover",
            Self::Explain(_) => "explain",
            Self::Completion(_) => "completion",
            Self::Version(_) => "version",
            Self::Man(_) => "man",
        }
    }
}
