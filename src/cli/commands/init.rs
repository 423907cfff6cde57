//! `streamt init`: a new project from a template. Every collision is found before the first write; a failure takes back what
//! this run wrote.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::shell;
use crate::cli::templates::{Template, TemplateFile, TemplateOptions, render};
use crate::codes::{Code, Diagnostic, suggest};
use crate::files::{self, Access};

const PROJECT_FILE: &str = "stream_project.yml";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum ExecutorChoice {
    Flink,
    KafkaStreams,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum OffsetChoice {
    Earliest,
    Latest,
}

/// Create a new project from a template
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Directory of the new project; created when missing
    #[arg(short, long, value_name = "PATH", default_value = ".", env = "STREAMT_PROJECT_DIR", hide_env_values = true)]
    project_dir: PathBuf,

    /// Name of the project; the directory's name by default
    #[arg(long, value_name = "NAME")]
    project_name: Option<String>,

    /// Template to start from; see --list-templates
    #[arg(long, value_name = "NAME")]
    template: Option<String>,

    /// List the templates and write nothing
    #[arg(long)]
    list_templates: bool,

    /// Replace the template's files where they exist
    #[arg(long)]
    force: bool,

    /// List the files and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Where SQL models run
    #[arg(long, value_enum)]
    executor: Option<ExecutorChoice>,

    /// Digest-pinned image of the Kafka Streams runner
    #[arg(long, value_name = "IMAGE")]
    runner_image: Option<String>,

    /// Docker network of the Kafka Streams runner
    #[arg(long, value_name = "NETWORK")]
    docker_network: Option<String>,

    /// Bootstrap servers as seen from containers
    #[arg(long, value_name = "SERVERS")]
    kafka_internal: Option<String>,

    /// Where the runner starts to read
    #[arg(long, value_enum)]
    initial_offset: Option<OffsetChoice>,

    /// Bootstrap servers
    #[arg(long, value_name = "SERVERS")]
    kafka: Option<String>,

    /// URL of the schema registry
    #[arg(long, value_name = "URL")]
    schema_registry: Option<String>,

    /// Leave the registry and the schemas out; template quickstart
    #[arg(long, conflicts_with = "schema_registry")]
    no_schema_registry: bool,

    /// Declare existing topics as sources
    #[arg(long)]
    discover: bool,
}

#[derive(Serialize)]
struct InitData {
    project_name: String,
    created_files: Vec<String>,
    #[serde(flatten)]
    starter: Option<StarterData>,
}

/// What the Kafka Streams starter says of itself.
#[derive(Serialize)]
struct StarterData {
    executor: &'static str,
    dry_run: bool,
    topology: [&'static str; 3],
    managed_models: [&'static str; 2],
    metadata_only_applications: [&'static str; 1],
    support: &'static str,
}

#[derive(Serialize)]
struct TemplateList {
    templates: Vec<TemplateRow>,
}

#[derive(Serialize)]
struct TemplateRow {
    name: &'static str,
    description: &'static str,
    files: Vec<&'static str>,
}

pub fn run(context: &Context, args: &InitArgs) -> CmdResult {
    if args.list_templates {
        return Ok(list_templates());
    }
    let template = template(args)?;
    let directory = context.directory.join(&args.project_dir);
    let options = options(args, template, &directory)?;
    let files = render(template, &options);
    if !args.dry_run {
        refuse_collisions(&directory, &files, args.force)?;
        write(&directory, &files)?;
    }
    let data = InitData {
        project_name: options.project_name.clone(),
        created_files: files.iter().map(|file| file.path.to_owned()).collect(),
        starter: (template == Template::KafkaStreams).then_some(StarterData {
            executor: "kafka_streams",
            dry_run: args.dry_run,
            topology: ["raw_orders", "eligible_orders", "fraud_app"],
            managed_models: ["raw_orders", "eligible_orders"],
            metadata_only_applications: ["fraud_app"],
            support: "create_noop_predicate_update",
        }),
    };
    Ok(Outcome::new(&data, text(args, template, &data)))
}

fn list_templates() -> Outcome {
    let rows: Vec<TemplateRow> = (Template::ALL.into_iter())
        .map(|template| TemplateRow {
            name: template.as_str(),
            description: template.description(),
            files: render(template, &TemplateOptions::default()).iter().map(|file| file.path).collect(),
        })
        .collect();
    let mut text = Doc::new();
    text.table(
        &["TEMPLATE", "WHAT IT HOLDS"],
        rows.iter().map(|row| vec![row.name.to_owned(), row.description.to_owned()]).collect(),
    );
    Outcome::new(&TemplateList { templates: rows }, text)
}

fn invalid(message: impl Into<String>, suggestion: &str) -> Failure {
    Failure::new(Diagnostic::new(Code::E711InitOptionsInvalid, message).suggest(suggestion))
}

fn template(args: &InitArgs) -> Result<Template, Failure> {
    if args.discover {
        return Err(invalid(
            "--discover is not part of this version",
            "Start from a template and declare the existing topics as sources with ownership.mode: external",
        ));
    }
    let asked = match args.template.as_deref() {
        None => None,
        Some(name) => Some(Template::parse(name).ok_or_else(|| {
            let names = Template::ALL.map(Template::as_str);
            let hint = suggest::hint(name, "template", names);
            Failure::new(
                Diagnostic::new(Code::E711InitOptionsInvalid, format!("Template '{name}' does not exist"))
                    .suggest_opt(hint),
            )
        })?),
    };
    match (args.executor, asked) {
        (None, asked) => Ok(asked.unwrap_or(Template::Flink)),
        (Some(ExecutorChoice::KafkaStreams), None | Some(Template::KafkaStreams)) => Ok(Template::KafkaStreams),
        (Some(ExecutorChoice::Flink), None) => Ok(Template::Flink),
        (Some(ExecutorChoice::Flink), Some(template)) if template != Template::KafkaStreams => Ok(template),
        (Some(_), Some(template)) => Err(invalid(
            format!("--executor does not fit the template '{}'", template.as_str()),
            "Leave --executor or --template out",
        )),
    }
}

fn options(args: &InitArgs, template: Template, directory: &Path) -> Result<TemplateOptions, Failure> {
    let streams = template == Template::KafkaStreams;
    let runner_only = [
        ("--runner-image", args.runner_image.is_some()),
        ("--docker-network", args.docker_network.is_some()),
        ("--kafka-internal", args.kafka_internal.is_some()),
        ("--initial-offset", args.initial_offset.is_some()),
    ];
    if let Some((option, _)) = runner_only.iter().find(|(_, given)| *given && !streams) {
        return Err(invalid(format!("{option} belongs to --executor kafka_streams"), "Leave it out"));
    }
    let quickstart_only =
        [("--schema-registry", args.schema_registry.is_some()), ("--no-schema-registry", args.no_schema_registry)];
    if let Some((option, _)) = quickstart_only.iter().find(|(_, given)| *given && template != Template::Quickstart) {
        return Err(invalid(format!("{option} belongs to --template quickstart"), "Leave it out"));
    }
    match args.runner_image.as_deref() {
        None if streams => {
            return Err(invalid(
                "--executor kafka_streams needs --runner-image",
                "Pass the digest of the runner's image: sha256:<64 hex digits> or repo@sha256:<64 hex digits>",
            ));
        }
        Some(image) if !is_pinned(image) => {
            return Err(invalid(
                "--runner-image is not pinned by its digest",
                "Write sha256:<64 hex digits> or repo@sha256:<64 hex digits>",
            ));
        }
        None | Some(_) => {}
    }
    for (option, value) in [("--kafka", &args.kafka), ("--kafka-internal", &args.kafka_internal)] {
        if value.as_deref().is_some_and(|servers| !is_address_list(servers)) {
            return Err(invalid(
                format!("{option} is not a list of broker addresses"),
                "Write host:port, several separated by commas, without a scheme or credentials",
            ));
        }
    }
    if args.docker_network.as_deref().is_some_and(|network| !is_name(network, 128)) {
        return Err(invalid("--docker-network is not the name of a network", "One name, for example bridge"));
    }
    Ok(TemplateOptions {
        project_name: project_name(args, streams, directory)?,
        kafka: args.kafka.clone(),
        kafka_internal: args.kafka_internal.clone(),
        schema_registry: args.schema_registry.clone(),
        without_registry: args.no_schema_registry,
        runner_image: args.runner_image.clone(),
        docker_network: args.docker_network.clone(),
        initial_offset: args.initial_offset.map(|offset| match offset {
            OffsetChoice::Earliest => "earliest".to_owned(),
            OffsetChoice::Latest => "latest".to_owned(),
        }),
    })
}

fn project_name(args: &InitArgs, streams: bool, directory: &Path) -> Result<String, Failure> {
    let derived = || {
        let resolved = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
        resolved.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let name = args.project_name.clone().unwrap_or_else(derived);
    let usable = if streams { is_name(&name, 101) } else { is_project_name(&name) };
    if usable {
        Ok(name)
    } else {
        Err(invalid(
            format!("'{name}' cannot be the name of a project"),
            "Pass --project-name with letters, digits, `.`, `_` and `-`, starting with a letter or digit",
        ))
    }
}

fn is_project_name(name: &str) -> bool {
    !name.trim().is_empty() && name.chars().count() <= 128 && !name.contains('/') && !name.chars().any(char::is_control)
}

fn is_name(name: &str, longest: usize) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
        && name.len() <= longest
}

fn is_pinned(image: &str) -> bool {
    let digest =
        image.rsplit_once('@').map_or(image, |(repository, digest)| if repository.is_empty() { "" } else { digest });
    digest.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

fn is_address_list(servers: &str) -> bool {
    !servers.trim().is_empty() && !servers.contains("://") && !servers.contains(['@', '\r', '\n', '\0'])
}

fn refuse_collisions(directory: &Path, files: &[TemplateFile], force: bool) -> Result<(), Failure> {
    for file in files {
        let mut path = directory.to_path_buf();
        for part in Path::new(file.path).components() {
            path.push(part);
            let Ok(metadata) = std::fs::symlink_metadata(&path) else { break };
            if metadata.is_symlink() {
                return Err(starter_failed(file.path, "a symbolic link is in the way"));
            }
            if path.ends_with(file.path) && metadata.is_dir() {
                return Err(starter_failed(file.path, "a directory is in the way"));
            }
            if path.ends_with(file.path) && !force {
                let what = if file.path == PROJECT_FILE { "A project" } else { "A file of the template" };
                return Err(Failure::new(
                    Diagnostic::new(Code::E713InitTargetExists, format!("{what} already exists: {}", path.display()))
                        .suggest("Pass --force to replace the template's files, or choose another --project-dir"),
                ));
            }
        }
    }
    Ok(())
}

fn starter_failed(path: &str, why: &str) -> Failure {
    Failure::new(
        Diagnostic::new(Code::E712InitStarterFailed, format!("{path} cannot be written: {why}"))
            .suggest("Check the directory and its permissions; what this run wrote is removed again"),
    )
}

fn write(directory: &Path, files: &[TemplateFile]) -> Result<(), Failure> {
    let mut made: Vec<PathBuf> = Vec::new();
    let take_back = |made: &[PathBuf]| {
        for path in made.iter().rev() {
            let _ = if path.is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
        }
    };
    for file in files {
        let path = directory.join(file.path);
        let existed = path.exists();
        let written = create_parents(&path, &mut made)
            .and_then(|()| files::replace(&path, file.content.as_bytes(), Access::Shared));
        if let Err(error) = written {
            take_back(&made);
            return Err(starter_failed(file.path, &error.kind().to_string()));
        }
        if !existed {
            made.push(path);
        }
    }
    Ok(())
}

fn create_parents(path: &Path, made: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
        .collect();
    for directory in missing.into_iter().rev() {
        std::fs::create_dir(directory)?;
        made.push(directory.to_path_buf());
    }
    Ok(())
}

fn text(args: &InitArgs, template: Template, data: &InitData) -> Doc {
    let mut doc = Doc::new();
    let verb = if args.dry_run { "Would create" } else { "Created" };
    doc.line(format!("{verb} project '{}' from the template '{}':", data.project_name, template.as_str()));
    for file in &data.created_files {
        doc.line(Line::new().tone(Tone::Create, "  + ").plain(file.as_str()));
    }
    doc.blank();
    match template {
        Template::Flink | Template::MultiEnv => {
            doc.line(
                "The SQL model runs on Flink: an online plan and an apply need a session cluster with a SQL Gateway",
            );
            doc.line("(FLINK_REST_URL, FLINK_SQL_GATEWAY_URL). Without Flink, start from `streamt init --template quickstart`.");
            doc.line("The source raw_events is external: streamt reads its declaration and never creates the topic.");
            doc.line(
                "validate, compile --dry-run and plan --offline read files only; they prove no running processor.",
            );
            doc.blank();
        }
        Template::KafkaStreams => {
            doc.line("The application fraud_app is declared only: streamt never starts or stops it.");
            doc.blank();
        }
        Template::Quickstart | Template::Minimal => {}
    }
    let directory = match args.project_dir.as_os_str() == "." {
        true => String::new(),
        false => format!(" --project-dir {}", shell::quote(&args.project_dir.display().to_string())),
    };
    let environment = if template == Template::MultiEnv { " --env dev" } else { "" };
    doc.heading("Next:");
    for command in ["validate", "compile --dry-run", "plan --offline"] {
        doc.line(format!("  streamt {command}{directory}{environment}"));
    }
    doc
}
