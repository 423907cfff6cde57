//! `streamt import --kind connector`: declares the sinks of the default worker cluster, as they are, in one new file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::import::{ImportArgs, taken, target, wanted};
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::import::connectors::{self, Input, Sorted};
use crate::cli::import::prospect;
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::{live, project};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Output;
use crate::compiler::resolve::{ResolvedModel, resolve};
use crate::files::install;
use crate::messages::discover::ConnectorsRequest;
use crate::project::Project;
use crate::project::model::{Materialized, OwnershipMode};
use crate::providers::connect::ListedConnector;

const DIRECTORY: &str = "models";
const DEFAULT_FILE: &str = "models/imported.connect.yml";

/// What came of it.
struct Report<'a> {
    args: &'a ImportArgs,
    project: &'a Project,
    mode: OwnershipMode,
    /// Relative to the project.
    file: PathBuf,
    target_exists: bool,
    written: bool,
    sorted: Sorted,
    document: String,
}

pub fn run(context: &Context, args: &ImportArgs) -> CmdResult {
    let mode = if args.adoptable { OwnershipMode::Adopted } else { OwnershipMode::External };
    let disk = project::directory(context, &args.project)?;
    let opened = project::open(context, &args.project)?;
    let mut told = opened.warnings;
    let root = opened.project.root.clone();
    let file = target(&root, args.output_file.as_deref(), DIRECTORY, DEFAULT_FILE)?;
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    install::check_directory(&root, DIRECTORY, &name)?;

    let fail = |error: Diagnostic, told: &Diagnostics| Failure::new(error).warn(told.clone());
    let (models, _) = resolve(&opened.project);
    let is_sink = |model: &&ResolvedModel| model.materialized == Materialized::Sink;
    let known: BTreeSet<String> = models.iter().filter(is_sink).map(|model| model.name.clone()).collect();
    let request =
        ConnectorsRequest { project: Arc::clone(&opened.project), wanted: wanted(args), known: known.clone() };
    let found = live::discover_connectors(context, request)?.map_err(|error| fail(error, &told))?;
    let inputs = inputs(&opened.project, &models);
    let sorted = connectors::sort(found, |name| known.contains(name), &taken(&opened.project), &inputs)
        .map_err(|error| fail(error, &told))?;
    let document = match sorted.sinks.is_empty() {
        true => String::new(),
        false => connectors::text(&opened.project.environment.name, mode, &sorted.sinks),
    };
    if !sorted.sinks.is_empty() {
        let input = project::input(context, &args.project);
        prospect(&disk, &input, &opened.project, &file, &document)
            .and_then(|project| connectors::says(&sorted.sinks, mode, &project))
            .map_err(|error| fail(error, &told))?;
    }
    let target_exists = install::stands(&root, DIRECTORY, &name);
    let place = file.display().to_string();
    let written = !sorted.sinks.is_empty() && !args.dry_run && !args.print;
    if written && target_exists {
        return Err(fail(install::exists(&place), &told));
    }
    if written {
        install::install(&root, DIRECTORY, &name, document.as_bytes()).map_err(|error| fail(error, &told))?;
    } else if target_exists && !sorted.sinks.is_empty() {
        let text = format!("'{place}' exists, so the real import would be refused");
        told.push(Diagnostic::new(Code::W108ImportTargetExists, text).suggest("name another file with --output-file"));
    }
    let project = Arc::clone(&opened.project);
    let report = Report { args, project: &project, mode, file, target_exists, written, sorted, document };
    let text = if args.print && !context.json { Doc::document(report.document.clone()) } else { report.text() };
    Ok(Outcome::new(&report.data(), text).warn(told))
}

/// What the project calls each topic: the model that writes it, else the first source that reads it.
fn inputs(project: &Project, models: &[ResolvedModel]) -> BTreeMap<String, Input> {
    let mut inputs = BTreeMap::new();
    for source in &project.sources {
        inputs.entry(source.topic.clone()).or_insert_with(|| Input::Source(source.name.clone()));
    }
    for model in models {
        if let Some(Output::Kafka(topic)) = &model.output {
            inputs.insert(topic.clone(), Input::Model(model.name.clone()));
        }
    }
    inputs
}

impl Report<'_> {
    fn data(&self) -> Value {
        let Sorted { sinks, declared, others } = &self.sorted;
        let row = |found: &ListedConnector, disposition: &str| {
            let class = found.config.get("connector.class");
            (found.name.clone(), json!({"connector": found.name, "class": class, "disposition": disposition}))
        };
        let mut resources: BTreeMap<String, Value> = declared.iter().map(|one| row(one, "already_declared")).collect();
        resources.extend(others.iter().map(|one| row(one, "not_a_sink")));
        for sink in sinks {
            let (name, mut imported) = row(&sink.found, "imported");
            imported["topics"] = json!(sink.topics);
            resources.insert(name, imported);
        }
        let file = self.file.display().to_string();
        let mut data = json!({
            "backend": "kafka-connect", "environment": self.project.environment.name,
            "dry_run": self.args.dry_run || self.args.print, "output_file": file,
            "target_exists": self.target_exists, "written": self.written,
            "discovered_count": sinks.len() + declared.len() + others.len(), "imported_count": sinks.len(),
            "skipped_count": declared.len() + others.len(),
            "discovery": {"access": "read_only", "limits": ["default_cluster_only", "sinks_only", "no_secrets"]},
            "models": sinks.iter().map(|sink| sink.data(self.mode)).collect::<Vec<_>>(),
            "resources": resources.into_values().collect::<Vec<_>>(),
            "created_files": if self.written { vec![file] } else { Vec::new() },
        });
        if self.args.print {
            data["document"] = json!(self.document);
        }
        data
    }

    fn text(&self) -> Doc {
        let mut doc = Doc::new();
        let Sorted { sinks, declared, others } = &self.sorted;
        for sink in sinks {
            let facts = format!("{} ({}, reads {})", sink.found.name, sink.class, sink.topics.join(", "));
            doc.line(Line::new().tone(Tone::Create, "  + ").plain(facts));
        }
        let mut left_out = |all: &[ListedConnector], why: &str| {
            for one in all {
                doc.line(Line::new().tone(Tone::Unchanged, "  = ").plain(format!("{} {why}", one.name)));
            }
        };
        left_out(declared, "is declared already");
        left_out(others, "is no sink, and only sinks are declared");
        let file = self.file.display();
        doc.line(match (sinks.is_empty(), self.written) {
            (true, _) => "Nothing new: every sink that was found is declared already, or none was found.".to_owned(),
            (false, true) => format!("Wrote {} declarations to {file}.", sinks.len()),
            (false, false) => format!("Nothing was written; {} declarations would go to {file}.", sinks.len()),
        });
        if self.written {
            let next = match self.mode {
                OwnershipMode::External | OwnershipMode::Managed => project::next_command(self.project, "validate"),
                OwnershipMode::Adopted => {
                    format!("{} --save-selection adoption.json", project::next_command(self.project, "adopt"))
                }
            };
            doc.line(Line::new().tone(Tone::Heading, "Next:").plain(format!(" {next}")));
        }
        doc
    }
}
