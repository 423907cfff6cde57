//! `streamt apply`: carries a plan out, durably, action by action.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::gates::{self, Asked};
use crate::cli::live;
use crate::cli::outcome::{self, CmdResult, Failure, Outcome, exit};
use crate::cli::project;
use crate::cli::sanitize;
use crate::cli::shell;
use crate::codes::{Code, Diagnostics};
use crate::compiler::Compiled;
use crate::messages::operation::{
    ApplyEnd, ApplyOutcome, ApplyRequest, ApplySource, Label, Lists, SelectionText, SubmittedJob,
};
use crate::planner::Plan;
use crate::project::Project;

use super::plan::{detailed_exit, view};

/// Carry out the changes
///
/// Without --plan the plan is made and applied in one go. Nothing is ever deleted because it is no longer declared.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Apply exactly this reviewed plan
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,

    /// Only this model and everything upstream of it
    #[arg(short, long, value_name = "MODEL")]
    target: Option<String>,

    /// Only models with a tag, and everything upstream of them: tag:<t>
    #[arg(short, long, value_name = "EXPR")]
    select: Option<String>,

    /// Confirm without a question
    #[arg(long)]
    confirm: bool,

    /// Confirm by naming the environment
    #[arg(long, value_name = "ENV")]
    confirm_env: Option<String>,

    /// Permit planned deletions
    #[arg(long)]
    force: bool,

    /// Do everything up to the first change, and stop
    #[arg(long)]
    dry_run: bool,

    /// With --dry-run: exit 0 without changes, 2 with changes, 3 when apply is blocked, 4 when all changes put back drift
    #[arg(long)]
    detailed_exitcode: bool,
}

pub fn run(context: &Context, args: &ApplyArgs) -> CmdResult {
    if args.detailed_exitcode && !args.dry_run {
        return Err(Failure::usage("--detailed-exitcode needs --dry-run").hint("Add --dry-run, or use plan"));
    }
    let plan_path = args.plan.as_deref().map(|path| context.directory.join(path));
    let asked = Asked {
        plan: plan_path.as_deref(),
        selected: args.target.is_some() || args.select.is_some(),
        dry_run: args.dry_run,
        confirm: args.confirm,
        confirm_env: args.confirm_env.as_deref(),
    };
    let opened = project::open(context, &args.project)?;
    let reviewed = gates::apply(context, &opened.project, asked)?;
    let (compiled, mut warnings) = project::checked(opened)?;
    gates::gateway_removals(&compiled.project, asked)?;
    warnings.extend(gates::protected(&compiled.project));
    let source = match reviewed {
        Some(file) => ApplySource::Reviewed { file, reload: reload(context, &args.project) },
        None => ApplySource::Direct {
            selection: SelectionText { target: args.target.clone(), select: args.select.clone() },
        },
    };
    let request = ApplyRequest {
        compiled: compiled.clone(),
        source,
        force: args.force,
        dry_run: args.dry_run,
        actor: context.variables.get("STREAMT_ACTOR").cloned().unwrap_or_else(|| "local-cli".to_owned()),
    };
    let outcome = match live::apply(context, request) {
        Ok(outcome) => outcome,
        Err(failure) => return Err(failure.warn(warnings)),
    };
    project::merge(&mut warnings, outcome.warnings.iter().cloned());
    let report = Report { args, compiled: &compiled, plan_path, outcome: &outcome };
    report.result().map(|done| done.warn(warnings.clone())).map_err(|failure| failure.warn(warnings))
}

/// Reads and compiles the project once more, under the lock.
pub fn reload(context: &Context, args: &ProjectArgs) -> crate::messages::operation::Reload {
    let (context, args) = (context.clone(), args.clone());
    Box::new(move || {
        let again = project::open(&context, &args).and_then(project::checked);
        again.map(|(compiled, _)| compiled).map_err(|failure| failure.errors)
    })
}

struct Report<'a> {
    args: &'a ApplyArgs,
    compiled: &'a Arc<Compiled>,
    plan_path: Option<PathBuf>,
    outcome: &'a ApplyOutcome,
}

impl Report<'_> {
    fn result(&self) -> CmdResult {
        let outcome = self.outcome;
        match &outcome.end {
            ApplyEnd::Committed => Ok(Outcome::new(&self.data(), self.text())),
            ApplyEnd::DryRun => Ok(self.dry_run()),
            ApplyEnd::Blocked(error) => {
                let code = match (self.args.dry_run, self.args.detailed_exitcode) {
                    (true, true) => exit::BLOCKED,
                    (true | false, _) => exit::FAILURE,
                };
                let text =
                    outcome.plan.as_deref().map_or_else(Doc::new, |plan| view(plan, &plan.payload(), false, None));
                Err(Failure::new(error.clone()).data(&self.blocked()).text(text).exit(code))
            }
            ApplyEnd::Stale(stale) => Err(Failure::new(stale.diagnostic()).data(&json!({ "stale": stale.data() }))),
            ApplyEnd::Failed(errors) => Err(self.failed(errors.clone(), exit::FAILURE)),
            ApplyEnd::Interrupted(signal, error) => Err(self.failed(error.clone().into(), live::exit_of(*signal))),
        }
    }

    fn failed(&self, errors: Diagnostics, code: u8) -> Failure {
        let data = if self.reached_intent() { self.data() } else { self.committed_only(&errors) };
        let text = if self.reached_intent() { self.text() } else { Doc::new() };
        Failure::new(errors).data(&data).text(text).exit(code)
    }

    fn reached_intent(&self) -> bool {
        self.outcome.operation_id.is_some()
    }

    /// Before the intent only an interruption says whether something was committed.
    fn committed_only(&self, errors: &Diagnostics) -> Value {
        match errors.iter().any(|error| error.code == Code::E903Interrupted) {
            true => json!({ "committed": self.outcome.committed }),
            false => Value::Object(Map::new()),
        }
    }

    fn data(&self) -> Value {
        let outcome = self.outcome;
        let names = |labels: &[Label]| labels.iter().map(ToString::to_string).collect::<Vec<_>>();
        let Lists { created, updated, deleted, unchanged, errors, not_started, jobs } = &outcome.lists;
        let errors: Vec<Value> = (errors.iter())
            .map(|failed| {
                json!({
                    "resource": failed.label.to_string(), "code": failed.diagnostic.code,
                    "message": sanitize::free_text(&failed.diagnostic.message),
                })
            })
            .collect();
        let mut data = Map::new();
        let mut set = |key: &str, value: Value| {
            data.insert(key.to_owned(), value);
        };
        set("created", json!(names(created)));
        set("updated", json!(names(updated)));
        set("deleted", json!(names(deleted)));
        set("unchanged", json!(names(unchanged)));
        set("errors", json!(errors));
        if !jobs.is_empty() {
            let job = |job: &SubmittedJob| json!({"name": job.name, "job_id": job.id, "state": job.state.as_str()});
            set("flink_jobs", jobs.iter().map(job).collect());
        }
        set("gateway_removal_assessments", json!([]));
        let assessments = outcome.plan.as_deref().map_or(&[][..], |plan| plan.connector_assessments.as_slice());
        set("connector_removal_assessments", outcome::json(&assessments));
        if let (Some(checksum), Some(path)) = (&outcome.plan_checksum, &self.plan_path) {
            set("plan_checksum", json!(checksum));
            set("plan_file", json!(path.display().to_string()));
        }
        if let Some(state) = &outcome.state {
            set("state_serial", json!(state.serial));
            if let Some(file) = &state.file {
                set("state_file", json!(file.display().to_string()));
            }
        }
        if outcome.end != ApplyEnd::Committed {
            set("not_started", json!(names(not_started)));
        }
        set("committed", json!(outcome.committed));
        if outcome.recovery_required {
            set("next_steps", json!(self.next_steps()));
        }
        Value::Object(data)
    }

    /// What proves and records the mix that a started operation left.
    fn next_steps(&self) -> [String; 2] {
        let project = self.project();
        let id = self.outcome.operation_id.map(|id| id.to_string()).unwrap_or_default();
        let file = project.root.join(".streamt").join(format!("recovery-{id}.json")).display().to_string();
        [
            project::next_command(project, "state status"),
            format!(
                "{} --resolution observed --out {}",
                project::next_command(project, "state recovery-plan"),
                shell::quote(&file)
            ),
        ]
    }

    fn project(&self) -> &Project {
        &self.compiled.project
    }

    fn text(&self) -> Doc {
        let mut doc = Doc::new();
        let lists = &self.outcome.lists;
        group(&mut doc, "Created:", "+", Tone::Create, &lists.created);
        for job in &lists.jobs {
            doc.line(format!("    flink_job:{} has the id {}", job.name, job.id));
        }
        group(&mut doc, "Updated:", "~", Tone::Update, &lists.updated);
        group(&mut doc, "Deleted:", "-", Tone::Delete, &lists.deleted);
        group(&mut doc, "Unchanged:", "=", Tone::Unchanged, &lists.unchanged);
        if self.outcome.end == ApplyEnd::Committed {
            let serial =
                self.outcome.state.as_ref().map(|state| format!(" (serial {})", state.serial)).unwrap_or_default();
            doc.line(Line::new().tone(Tone::Create, "Apply complete"));
            doc.line(format!(
                "Summary: {} created, {} updated, {} deleted, {} unchanged{serial}",
                lists.created.len(),
                lists.updated.len(),
                lists.deleted.len(),
                lists.unchanged.len()
            ));
            return doc;
        }
        if !lists.errors.is_empty() {
            doc.heading("Failed:");
            for failed in &lists.errors {
                let message = sanitize::free_text(&failed.diagnostic.message);
                let label = format!("{}: ", failed.label);
                let named = if message.starts_with(&label) { message } else { format!("{label}{message}") };
                doc.line(Line::new().tone(Tone::Error, "  ! ").plain(named));
            }
        }
        group(&mut doc, "Not started:", " ", Tone::Plain, &lists.not_started);
        doc.line("Nothing was taken back.");
        if self.outcome.recovery_required {
            for step in self.next_steps() {
                doc.line(Line::new().tone(Tone::Heading, "Next:").plain(format!(" {step}")));
            }
        }
        doc
    }

    fn dry_run(&self) -> Outcome {
        let Some(plan) = self.outcome.plan.as_deref() else {
            return Outcome::new(&json!({ "dry_run": true }), Doc::new());
        };
        let payload = plan.payload();
        let data = json!({
            "dry_run": true, "summary": payload.summary, "creates": payload.summary.creates,
            "updates": payload.summary.updates, "deletes": payload.summary.deletes,
            "has_changes": payload.summary.has_changes, "gateway_removal_assessments": [],
            "connector_removal_assessments": payload.connector_removal_assessments,
            "plan_checksum": self.outcome.plan_checksum,
        });
        let mut text = view(plan, &payload, false, None);
        text.line("Dry run: nothing was changed.");
        let code = if self.args.detailed_exitcode { detailed_exit(plan) } else { exit::OK };
        Outcome::new(&data, text).exit(code)
    }

    fn blocked(&self) -> Value {
        let Some(plan) = self.outcome.plan.as_deref() else { return json!({}) };
        let payload = plan.payload();
        let blocking: Vec<_> = Plan::blocking_requirements(plan).collect();
        json!({
            "summary": payload.summary, "ownership_requirements": payload.ownership_requirements,
            "blocking_ownership_requirements": outcome::json(&blocking), "safety_blockers": payload.safety_blockers,
            "gateway_removal_assessments": [],
            "connector_removal_assessments": payload.connector_removal_assessments,
            "plan_checksum": self.outcome.plan_checksum,
        })
    }
}

fn group(doc: &mut Doc, title: &str, sign: &str, tone: Tone, labels: &[Label]) {
    if labels.is_empty() {
        return;
    }
    doc.heading(title);
    for label in labels {
        doc.line(Line::new().tone(tone, format!("  {sign} ")).plain(label.to_string()));
    }
}
