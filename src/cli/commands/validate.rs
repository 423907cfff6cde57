//! `streamt validate`: everything that can be known about a project without deploying it.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::envelope;
use crate::cli::live;
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::project::{self, Opened};
use crate::cli::sanitize;
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::{Project, Unset, environments, load_all};
use crate::validate::{SchemaCheck, SchemaReport, judge_schemas, schema_questions};

/// Check the project
#[derive(Debug, Args)]
pub struct ValidateArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Check every environment
    #[arg(long, conflicts_with = "env")]
    all_envs: bool,

    /// Check a model and everything upstream of it
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,

    /// Ask the schema registry about the subjects that the project only reads
    #[arg(long)]
    check_schemas: bool,

    /// Fail on warnings
    #[arg(long)]
    strict: bool,
}

#[derive(Serialize)]
struct Finding {
    code: Code,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

impl Finding {
    fn of(diagnostic: &Diagnostic) -> Self {
        Self {
            code: diagnostic.code,
            message: sanitize::free_text(&diagnostic.message),
            location: envelope::location(diagnostic),
            suggestion: envelope::suggestion(diagnostic),
        }
    }
}

/// What one environment came to.
struct Verdict {
    environment: Option<String>,
    errors: Diagnostics,
    warnings: Diagnostics,
    project: Option<Arc<Project>>,
    checks: Option<Vec<SchemaCheck>>,
}

pub fn run(context: &Context, args: &ValidateArgs) -> CmdResult {
    if args.all_envs {
        return all_environments(context, args);
    }
    let verdict = match project::open(context, &args.project) {
        Ok(opened) => judge(context, args, opened)?,
        Err(failure) if failure.exit == crate::cli::outcome::exit::USAGE => return Err(failure),
        Err(failure) => Verdict {
            environment: args.project.env.clone(),
            errors: failure.errors,
            warnings: failure.warnings,
            project: None,
            checks: None,
        },
    };
    finish(args, verdict)
}

fn judge(context: &Context, args: &ValidateArgs, opened: Opened) -> Result<Verdict, Failure> {
    let opened = match args.model.as_deref() {
        None => opened,
        Some(name) => Opened { project: Arc::new(closure(&opened.project, name)?), warnings: opened.warnings },
    };
    let project = opened.project.clone();
    let environment = project.environment.requested().map(str::to_owned);
    let (mut errors, mut warnings) = match project::findings(opened) {
        Ok(warnings) => (Diagnostics::new(), warnings),
        Err(failure) => (failure.errors, failure.warnings),
    };
    let checks = match args.check_schemas && errors.is_empty() {
        false => None,
        true => {
            let report = check_schemas(context, &project)?;
            let (found, more): (Vec<_>, Vec<_>) = report.findings.into_iter().partition(Diagnostic::is_error);
            errors.extend(found);
            warnings.extend(more);
            Some(report.checks)
        }
    };
    Ok(Verdict { environment, errors, warnings, project: Some(project), checks })
}

/// Read-only questions to the registry.
fn check_schemas(context: &Context, project: &Arc<Project>) -> Result<SchemaReport, Failure> {
    let (questions, mut findings) = schema_questions(project);
    let answers = match questions.is_empty() {
        true => Vec::new(),
        false => live::ask_schemas(context, project.clone(), questions)?,
    };
    let report = judge_schemas(project, &answers);
    findings.extend(report.findings);
    Ok(SchemaReport { checks: report.checks, findings })
}

/// The project cut down to a model, what is upstream of it, and the tests of those.
fn closure(project: &Project, name: &str) -> Result<Project, Failure> {
    if !project.models.iter().any(|model| model.name == name) {
        let known = project.models.iter().map(|model| model.name.as_str());
        return Err(project::not_found(Code::E102ModelNotFound, "model", name, known));
    }
    let (_, graph) = project::graph(project);
    let kept: BTreeSet<String> = match graph.find(name) {
        None => BTreeSet::from([name.to_owned()]),
        Some(focus) => {
            let graph = graph.around(focus, crate::cli::lineage::Direction::Upstream, None);
            graph.nodes.into_iter().map(|node| node.name).collect()
        }
    };
    let mut part = project.clone();
    part.sources.retain(|source| kept.contains(&source.name));
    part.models.retain(|model| kept.contains(&model.name));
    part.tests.retain(|test| kept.contains(&test.model));
    part.exposures.retain(|exposure| kept.contains(&exposure.name));
    Ok(part)
}

fn strict_error(warnings: usize) -> Diagnostic {
    let many = if warnings == 1 { "warning" } else { "warnings" };
    Diagnostic::new(Code::E904StrictWarnings, format!("{warnings} {many} under --strict"))
        .suggest("Resolve the warnings, or validate without --strict")
}

fn finish(args: &ValidateArgs, verdict: Verdict) -> CmdResult {
    let strict_failure = args.strict && !verdict.warnings.is_empty();
    if !verdict.errors.is_empty() {
        let findings = |found: &Diagnostics| found.iter().map(Finding::of).collect::<Vec<_>>();
        let mut data = json!({
            "environment": verdict.environment,
            "valid": false,
            "errors": findings(&verdict.errors),
            "warnings": findings(&verdict.warnings),
        });
        if let Some(checks) = &verdict.checks {
            data["schema_checks"] = json!(checks);
        }
        return Err(Failure::new(verdict.errors).data(&data).warn(verdict.warnings));
    }
    let mut data = Map::new();
    data.insert("environment".to_owned(), json!(verdict.environment));
    passed(&mut data, &verdict, strict_failure);
    let mut text = Doc::new();
    if let Some(project) = &verdict.project {
        text.line(Line::new().tone(Tone::Create, "Valid").plain(format!(
            ": project '{}'{}",
            project.name,
            in_environment(&verdict)
        )));
        text.line(format!(
            "{} sources, {} models, {} tests, {} exposures",
            project.sources.len(),
            project.models.len(),
            project.tests.len(),
            project.exposures.len()
        ));
    }
    let count = verdict.warnings.len();
    let outcome = Outcome::new(&data, text).warn(verdict.warnings);
    if strict_failure { Err(outcome.fail(strict_error(count))) } else { Ok(outcome) }
}

fn in_environment(verdict: &Verdict) -> String {
    verdict.environment.as_deref().map_or_else(String::new, |name| format!(", environment '{name}'"))
}

fn passed(data: &mut Map<String, Value>, verdict: &Verdict, strict_failure: bool) {
    data.insert("valid".to_owned(), json!(true));
    if let Some(project) = &verdict.project {
        data.insert("sources".to_owned(), json!(project.sources.len()));
        data.insert("models".to_owned(), json!(project.models.len()));
        data.insert("tests".to_owned(), json!(project.tests.len()));
        data.insert("exposures".to_owned(), json!(project.exposures.len()));
        data.insert("project_name".to_owned(), json!(project.name));
    }
    data.insert("warnings".to_owned(), json!(verdict.warnings.iter().map(Finding::of).collect::<Vec<_>>()));
    if verdict.project.as_ref().is_some_and(|project| project.rules.declared) {
        data.insert("governance_passed".to_owned(), json!(true));
    }
    if let Some(checks) = &verdict.checks {
        data.insert("schema_checks".to_owned(), json!(checks));
    }
    if strict_failure {
        data.insert("strict_failure".to_owned(), json!(true));
    }
}

fn all_environments(context: &Context, args: &ValidateArgs) -> CmdResult {
    let fs = project::directory(context, &args.project)?;
    let mut entries = Vec::new();
    let mut errors = Diagnostics::new();
    let mut warnings = Diagnostics::new();
    let mut text = Doc::new();
    if environments(&fs)?.is_none() {
        let error = Diagnostic::new(Code::E503EnvironmentError, "The project has no environments");
        return Err(Failure::new(error.suggest("Leave --all-envs out")));
    }
    for (name, loaded) in load_all(&fs, &context.variables, Unset::Kept)? {
        let unset = loaded.as_ref().map(|loaded| loaded.unset.clone()).unwrap_or_default();
        let verdict = match loaded {
            Ok(loaded) => {
                judge(context, args, Opened { project: Arc::new(loaded.project), warnings: loaded.warnings })?
            }
            Err(findings) => {
                let failure = Failure::from(findings);
                Verdict {
                    environment: Some(name.clone()),
                    errors: failure.errors,
                    warnings: failure.warnings,
                    project: None,
                    checks: None,
                }
            }
        };
        let mut entry = Map::new();
        entry.insert("environment".to_owned(), json!(name));
        if !unset.is_empty() {
            entry.insert("unset_variables".to_owned(), json!(unset));
        }
        if verdict.errors.is_empty() {
            passed(&mut entry, &verdict, args.strict && !verdict.warnings.is_empty());
            let missing = match unset.is_empty() {
                true => String::new(),
                false => format!(" (not set here: {})", unset.into_iter().collect::<Vec<_>>().join(", ")),
            };
            text.line(Line::new().tone(Tone::Create, "Valid").plain(format!(": {name}{missing}")));
        } else {
            entry.insert("valid".to_owned(), json!(false));
            entry.insert("errors".to_owned(), json!(verdict.errors.iter().map(Finding::of).collect::<Vec<_>>()));
            entry.insert("warnings".to_owned(), json!(verdict.warnings.iter().map(Finding::of).collect::<Vec<_>>()));
            text.line(
                Line::new().tone(Tone::Delete, "Invalid").plain(format!(": {name}, {} errors", verdict.errors.len())),
            );
        }
        entries.push(Value::Object(entry));
        project::merge(&mut errors, verdict.errors);
        project::merge(&mut warnings, verdict.warnings);
    }
    let data = json!({ "environments": entries, "all_valid": errors.is_empty() });
    let count = warnings.len();
    let outcome = Outcome::new(&data, text).warn(warnings);
    if !errors.is_empty() {
        Err(outcome.fail(errors))
    } else if args.strict && count > 0 {
        Err(outcome.fail(strict_error(count)))
    } else {
        Ok(outcome)
    }
}
