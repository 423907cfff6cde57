//! `streamt import`: declares topics that exist. It reads services and writes one new file, or nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::{ArgAction, Args, ValueEnum};
use serde_json::{Value, json};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::glob::Glob;
use crate::cli::import::columns::Columns;
use crate::cli::import::{Declaration, Form, declare, is_internal, prospect, says, text, warnings};
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::{live, project};
use crate::codes::{Code, Diagnostic};
use crate::compiler::Output;
use crate::compiler::artifact::SchemaType;
use crate::compiler::resolve::resolve;
use crate::files::install;
use crate::messages::discover::{DiscoverRequest, FoundTopic, Lookup, Subjects};
use crate::project::Project;

/// What is declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ImportKind {
    Topic,
    Connector,
}

/// Declare topics or connectors that exist
///
/// Reads the topics of the selected environment, and the subject `<topic>-value` of each, and writes one new file of external
/// sources. With --kind connector it reads the sinks of the default worker cluster and declares them as models; a secret that
/// stands in plain text in one of them keeps all from being written. Nothing is changed at any service, nothing is claimed, and
/// no file is ever replaced. To own what was found, declare it with `ownership: {mode: adopted}`, or let --adoptable do so, and
/// claim it with `streamt adopt`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub project: ProjectArgs,

    /// What is declared
    #[arg(long, value_enum, default_value = "topic")]
    kind: ImportKind,

    /// Only topics or connectors that match; repeatable
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// No topics or connectors that match; repeatable
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// The new file, directly inside `sources` (with --adoptable or of connectors: `models`) [default: sources/imported.kafka.yml]
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,

    /// Read this subject for a topic, and not `<topic>-value`; repeatable
    #[arg(long, value_name = "TOPIC=SUBJECT", conflicts_with = "no_schemas")]
    subject: Vec<String>,

    /// Ask the schema registry, when one is configured; the default
    #[arg(long, overrides_with = "no_schemas", action = ArgAction::SetTrue)]
    schemas: bool,

    /// Ask no schema registry
    #[arg(long, overrides_with = "schemas")]
    no_schemas: bool,

    /// Declare topics and the schemas of their values, or connectors, exactly as they are and ready to be adopted
    #[arg(long)]
    pub adoptable: bool,

    /// Read integers of JSON schemas as BIGINT
    #[arg(long)]
    wide_integers: bool,

    /// Show what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Print the declarations, and write nothing
    #[arg(long)]
    pub print: bool,
}

/// What came of it.
struct Report<'a> {
    args: &'a ImportArgs,
    project: &'a Project,
    form: Form,
    /// Relative to the project.
    file: PathBuf,
    target_exists: bool,
    written: bool,
    declared: Vec<FoundTopic>,
    declarations: Vec<Declaration>,
    document: String,
}

pub fn run(context: &Context, args: &ImportArgs) -> CmdResult {
    match args.kind {
        ImportKind::Topic => topics(context, args),
        ImportKind::Connector => {
            let of_topics = args.schemas || args.no_schemas || args.wide_integers || !args.subject.is_empty();
            if of_topics {
                return Err(Failure::usage("--schemas, --no-schemas, --subject and --wide-integers are about topics")
                    .hint("leave them out, or import topics"));
            }
            super::import_connectors::run(context, args)
        }
    }
}

fn topics(context: &Context, args: &ImportArgs) -> CmdResult {
    let named = named(&args.subject)?;
    let form = if args.adoptable { Form::Adoptable } else { Form::External };
    let disk = project::directory(context, &args.project)?;
    let opened = project::open(context, &args.project)?;
    let mut told = opened.warnings;
    let root = opened.project.root.clone();
    let file = target(&root, args.output_file.as_deref(), form.directory(), form.default_file())?;
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    install::check_directory(&root, form.directory(), &name)?;

    let known = declared_topics(&opened.project);
    let request = DiscoverRequest {
        project: Arc::clone(&opened.project),
        wanted: wanted(args),
        known: known.clone(),
        subjects: match (args.no_schemas && !args.schemas, form) {
            (true, _) => Subjects::Nothing,
            (false, Form::External) => Subjects::Latest,
            (false, Form::Adoptable) => Subjects::Whole,
        },
        named,
        configs: form == Form::Adoptable,
    };
    let found = live::discover(context, request)?.map_err(|error| Failure::new(error).warn(told.clone()))?;
    let (declared, new): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| known.contains(&one.topic.name));
    let fail = |error: Diagnostic, told: &crate::codes::Diagnostics| Failure::new(error).warn(told.clone());
    let declarations = declare(new, &taken(&opened.project), args.wide_integers).map_err(|error| fail(error, &told))?;
    told.extend(warnings(&declarations));
    let document = match declarations.is_empty() {
        true => String::new(),
        false => text(form, &opened.project.environment.name, &declarations),
    };
    if !declarations.is_empty() {
        let input = project::input(context, &args.project);
        prospect(&disk, &input, &opened.project, &file, &document)
            .and_then(|project| says(&declarations, form, &project))
            .map_err(|error| fail(error, &told))?;
    }
    let target_exists = install::stands(&root, form.directory(), &name);
    let place = file.display().to_string();
    let writes = !declarations.is_empty() && !args.dry_run && !args.print;
    if writes && target_exists {
        return Err(fail(install::exists(&place), &told));
    }
    if writes {
        install::install(&root, form.directory(), &name, document.as_bytes()).map_err(|error| fail(error, &told))?;
    } else if target_exists && !declarations.is_empty() {
        told.push(
            Diagnostic::new(
                Code::W108ImportTargetExists,
                format!("'{place}' exists, so the real import would be refused"),
            )
            .suggest("name another file with --output-file"),
        );
    }
    let project = Arc::clone(&opened.project);
    let report = Report {
        args,
        project: &project,
        form,
        file,
        target_exists,
        written: writes,
        declared,
        declarations,
        document,
    };
    let text = if args.print && !context.json { Doc::document(report.document.clone()) } else { report.text() };
    Ok(Outcome::new(&report.data(), text).warn(told))
}

/// Subjects by topic; E902 unless each is `TOPIC=SUBJECT`, once for a topic.
fn named(given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut named = BTreeMap::new();
    for text in given {
        let pair = text.split_once('=').filter(|(topic, subject)| !topic.is_empty() && !subject.trim().is_empty());
        let Some((topic, subject)) = pair else {
            return Err(Failure::usage(format!("--subject '{text}' is not TOPIC=SUBJECT")));
        };
        if named.insert(topic.to_owned(), subject.to_owned()).is_some() {
            return Err(Failure::usage(format!("--subject names two subjects for topic '{topic}'")));
        }
    }
    Ok(named)
}

/// The place of the file, relative to the project, from the words alone: E704 unless it is a direct child of its directory.
pub fn target(root: &Path, given: Option<&Path>, directory: &str, default: &str) -> Result<PathBuf, Diagnostic> {
    let given = given.unwrap_or_else(|| Path::new(default));
    let outside = |why: &str| Err(install::outside(&given.display().to_string(), why));
    let relative = match given.is_absolute() {
        true => match given.strip_prefix(root) {
            Ok(relative) => relative,
            Err(_) => return outside("it is outside the project"),
        },
        false => given,
    };
    let mut parts = Vec::new();
    for part in relative.components() {
        match part {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return outside("it leaves its directory");
            }
        }
    }
    let [parent, name] = parts.as_slice() else {
        return outside(&format!("it is not directly inside '{directory}'"));
    };
    let Some(name) = name.to_str().filter(|name| !name.chars().any(char::is_control)) else {
        return outside("its name is no plain text");
    };
    if *parent != directory {
        return outside(&format!("it is not directly inside '{directory}'"));
    }
    let stem = name.strip_suffix(".yml").or_else(|| name.strip_suffix(".yaml"));
    match stem {
        Some(stem) if !stem.is_empty() && !stem.starts_with('.') => Ok(Path::new(directory).join(name)),
        Some(_) | None => outside("its name does not end in .yml or .yaml, or is hidden"),
    }
}

pub fn wanted(args: &ImportArgs) -> crate::messages::discover::Wanted {
    let globs = |patterns: &[String]| patterns.iter().map(|pattern| Glob::new(pattern)).collect::<Vec<_>>();
    let (include, exclude) = (globs(&args.include), globs(&args.exclude));
    Arc::new(move |name| {
        let any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(name));
        !is_internal(name) && (include.is_empty() || any(&include)) && !any(&exclude)
    })
}

/// Topics that the project speaks of already, by their exact names.
fn declared_topics(project: &Project) -> BTreeSet<String> {
    let (models, _) = resolve(project);
    let outputs = models.into_iter().filter_map(|model| match model.output {
        Some(Output::Kafka(topic)) => Some(topic),
        Some(Output::Gateway(_)) | None => None,
    });
    project.sources.iter().map(|source| source.topic.clone()).chain(outputs).collect()
}

pub fn taken(project: &Project) -> BTreeMap<String, &'static str> {
    let sources = project.sources.iter().map(|source| (source.name.clone(), "source"));
    sources.chain(project.models.iter().map(|model| (model.name.clone(), "model"))).collect()
}

impl Report<'_> {
    fn enrichment(&self) -> &'static str {
        let lookups = || self.declarations.iter().map(|one| &one.found.schema);
        match (self.args.no_schemas, &self.project.runtime.schema_registry) {
            (true, _) => "disabled",
            (false, None) => "not_configured",
            (false, Some(_)) if lookups().any(|lookup| *lookup == Lookup::Skipped) => "unavailable",
            (false, Some(_)) => "enabled",
        }
    }

    fn data(&self) -> Value {
        let declarations: Vec<Value> = self.declarations.iter().map(|one| one.data(self.form)).collect();
        let mut resources: Vec<(&str, Value)> = self
            .declarations
            .iter()
            .map(|one| (one.found.topic.name.as_str(), resource(&one.found, Some(one))))
            .chain(self.declared.iter().map(|found| (found.topic.name.as_str(), resource(found, None))))
            .collect();
        resources.sort_by(|a, b| a.0.cmp(b.0));
        let resources: Vec<Value> = resources.into_iter().map(|(_, row)| row).collect();
        let file = self.file.display().to_string();
        let section = self.form.directory();
        let mut data = json!({
            "backend": "kafka", "environment": self.project.environment.name,
            "dry_run": self.args.dry_run || self.args.print, "output_file": file,
            "target_exists": self.target_exists, "written": self.written,
            "discovered_count": self.declarations.len() + self.declared.len(),
            "imported_count": self.declarations.len(), "skipped_count": self.declared.len(),
            "discovery": {
                "access": "read_only", "schema_enrichment": self.enrichment(),
                "limits": ["value_subject_only", "no_record_sampling", "no_application_sql"],
            },
            "sources": [], "resources": resources,
            "created_files": if self.written { vec![file.clone()] } else { Vec::new() },
        });
        data[section] = Value::Array(declarations);
        if self.args.print {
            data["document"] = json!(self.document);
        }
        data
    }

    fn text(&self) -> Doc {
        let mut doc = Doc::new();
        let file = self.file.display();
        if self.declarations.is_empty() {
            doc.line("Nothing new: every topic that was found is declared already, or none was found.");
            return doc;
        }
        for one in &self.declarations {
            let topic = &one.found.topic;
            let schema = match one.found.schema {
                Lookup::Resolved(ref schema) => {
                    format!(", {} version {}", schema.schema_type.as_str().to_lowercase(), schema.version)
                }
                Lookup::NotRequested | Lookup::NotFound | Lookup::Failed(_) | Lookup::Skipped => String::new(),
            };
            let facts = format!(
                "{} ({} partitions, {} replicas{schema})",
                topic.name,
                topic.partitions.unwrap_or_default(),
                topic.replication_factor.unwrap_or_default()
            );
            doc.line(Line::new().tone(Tone::Create, "  + ").plain(format!("{}: {facts}", one.name)));
        }
        for found in &self.declared {
            doc.line(
                Line::new().tone(Tone::Unchanged, "  = ").plain(format!("{} is declared already", found.topic.name)),
            );
        }
        doc.line(match self.written {
            true => format!("Wrote {} declarations to {file}.", self.declarations.len()),
            false => format!("Nothing was written; {} declarations would go to {file}.", self.declarations.len()),
        });
        let next = match (self.written, self.form) {
            (false, _) => return doc,
            (true, Form::External) => project::next_command(self.project, "validate"),
            (true, Form::Adoptable) => {
                format!("{} --save-selection adoption.json", project::next_command(self.project, "adopt"))
            }
        };
        doc.line(Line::new().tone(Tone::Heading, "Next:").plain(format!(" {next}")));
        doc
    }
}

fn resource(found: &FoundTopic, declaration: Option<&Declaration>) -> Value {
    let topic = &found.topic;
    let schema = match &found.schema {
        Lookup::Resolved(schema) => json!({
            "subject": schema.subject, "version": schema.version, "format": schema.schema_type.as_str().to_lowercase(),
        }),
        Lookup::NotRequested | Lookup::NotFound | Lookup::Failed(_) | Lookup::Skipped => Value::Null,
    };
    let inferred = declaration.and_then(|one| match (&one.columns, &found.schema) {
        (Columns::Inferred(_), Lookup::Resolved(schema)) => match schema.schema_type {
            SchemaType::Avro => Some("inferred_avro"),
            SchemaType::Json => Some("inferred_json_schema"),
            SchemaType::Protobuf => None,
        },
        (Columns::Inferred(_) | Columns::Opaque | Columns::Unsupported(_), _) => None,
    });
    json!({
        "topic": topic.name, "source_name": declaration.map(|one| &one.name),
        "partitions": topic.partitions, "replication_factor": topic.replication_factor, "schema": schema,
        "disposition": if declaration.is_some() { "imported" } else { "already_declared" },
        "provenance": {
            "topic": "kafka_metadata",
            "schema": if schema.is_null() { Value::Null } else { json!("schema_registry") },
            "columns": inferred,
        },
        "completeness": {
            "schema_lookup": match found.schema {
                Lookup::NotRequested => "not_requested",
                Lookup::NotFound => "not_found",
                Lookup::Resolved(_) => "resolved",
                Lookup::Failed(_) => "failed",
                Lookup::Skipped => "skipped_after_outage",
            },
            "columns": if inferred.is_some() { "inferred_unverified" } else { "unavailable" },
            "application_logic": "unavailable",
        },
    })
}
