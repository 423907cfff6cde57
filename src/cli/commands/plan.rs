//! `streamt plan`: what apply would do, and why it may not.
#![expect(clippy::disallowed_methods, reason = "a plan says when it was made")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::gates;
use crate::cli::live;
use crate::cli::outcome::{self, CmdResult, Failure, Outcome, exit};
use crate::cli::output;
use crate::cli::plan_view::{Facts, View, markdown, render};
use crate::cli::project;
use crate::cli::shell;
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::compiler::artifact::Kind;
use crate::compiler::environment_fingerprint;
use crate::messages::operation::{PlanRequest, SavedPlan};
use crate::planner::connector::ConnectorRemovalAssessment;
use crate::planner::model::{OwnershipRequirement, SafetyBlocker, Verb};
use crate::planner::payload::{PlanPayload, Summary};
use crate::planner::risk::{ChangeRisk, RiskSummary};
use crate::planner::{Cause, Desired, Evidence, Plan, PlanInput};
use crate::state::plan_file::{self, Origin, ReviewedPlan};
use crate::state::scalar::Timestamp;

/// Show what apply would do
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Save the plan for review and for `apply --plan`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Contact nothing; assume that no managed resource exists
    #[arg(long)]
    offline: bool,

    /// Exit 0 without changes, 2 with changes, 3 when apply is blocked, 4 when all changes put back drift
    #[arg(long)]
    detailed_exitcode: bool,

    /// Write a summary for a pull request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

#[derive(Serialize)]
struct PlanData<'a> {
    offline: bool,
    summary: &'a Summary,
    creates: usize,
    updates: usize,
    deletes: usize,
    /// Changes that put back, wholly or in part, what somebody else changed.
    drifts: usize,
    has_changes: bool,
    is_apply_blocked: bool,
    risk_summary: &'a RiskSummary,
    change_risks: &'a [ChangeRisk],
    impact: Value,
    state_serial: Option<u64>,
    operation_status: Value,
    changes: Vec<ChangeRow<'a>>,
    ownership_requirements: &'a [OwnershipRequirement],
    safety_blockers: &'a [SafetyBlocker],
    gateway_removal_assessments: &'a [Value],
    connector_removal_assessments: &'a [ConnectorRemovalAssessment],
    removal_candidates: Value,
    #[serde(flatten)]
    saved: Option<SavedData>,
}

#[derive(Serialize)]
pub struct ChangeRow<'a> {
    #[serde(rename = "type")]
    kind: Kind,
    name: &'a str,
    action: Verb,
    /// Why: the declaration, somebody else, or both; or that it is blocked.
    cause: Option<Cause>,
    changes: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct SavedData {
    plan_file: String,
    plan_checksum: String,
    manifest_checksum: String,
    plan_format_version: u32,
}

/// A plan and where it came from.
struct Made {
    plan: Arc<Plan>,
    state_serial: Option<u64>,
    saved: Option<SavedPlan>,
}

pub fn run(context: &Context, args: &PlanArgs) -> CmdResult {
    let out = args.out.as_deref().map(|path| context.directory.join(path));
    let summary_file = args.markdown.as_deref().map(|path| context.directory.join(path));
    for (option, path) in [("--out", &out), ("--markdown", &summary_file)] {
        if path.as_ref().is_some_and(|path| path.is_dir()) {
            return Err(Failure::usage(format!("{option} names a directory")).hint("Name a file"));
        }
    }
    if let Some(path) = &summary_file {
        output::check(path)?;
    }
    let opened = project::open(context, &args.project)?;
    gates::connector_removals(&opened.project, args.offline)?;
    let (compiled, mut warnings) = project::checked(opened)?;
    warnings.extend(gates::protected(&compiled.project));
    let made = match args.offline {
        true => offline(&compiled, out.as_deref()),
        false => online(context, &compiled, out, &mut warnings),
    };
    let made = made.map_err(|failure| Failure { warnings: merged(&warnings, failure.warnings.clone()), ..failure })?;
    project::merge(&mut warnings, made.plan.warnings.iter().cloned());
    let payload = made.plan.payload();
    if let Some(path) = &summary_file {
        let text = markdown_text(&compiled, &made, &payload, args.offline);
        output::write(path, &text).map_err(|error| Failure::new(error).warn(warnings.clone()))?;
    }
    let code = if args.detailed_exitcode { detailed_exit(&made.plan) } else { exit::OK };
    Ok(outcome(&compiled, &made, &payload, args.offline).warn(warnings).exit(code))
}

fn merged(first: &Diagnostics, second: Diagnostics) -> Diagnostics {
    let mut all = first.clone();
    project::merge(&mut all, second);
    all
}

/// 0 no changes, 2 changes, 3 blocked, 4 nothing but drift.
pub fn detailed_exit(plan: &Plan) -> u8 {
    if plan.is_apply_blocked() {
        exit::BLOCKED
    } else if plan.is_drift_alone() {
        exit::DRIFT
    } else if plan.has_changes() {
        exit::CHANGES
    } else {
        exit::OK
    }
}

fn offline(compiled: &Compiled, out: Option<&Path>) -> Result<Made, Failure> {
    let desired = Desired::of(compiled);
    let plan = crate::planner::plan(PlanInput { desired: &desired, evidence: Evidence::Offline, selection: None })?;
    let saved = match out {
        None => None,
        Some(path) => Some(save_offline(compiled, &plan, path)?),
    };
    Ok(Made { plan: Arc::new(plan), state_serial: None, saved })
}

fn save_offline(compiled: &Compiled, plan: &Plan, path: &Path) -> Result<SavedPlan, Failure> {
    let fingerprint = environment_fingerprint(&compiled.project)
        .map_err(|_| Diagnostic::new(Code::E408PlanFileInvalid, "The runtime configuration has no canonical form"))?;
    let origin = Origin {
        streamt_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: Timestamp::seconds(jiff::Timestamp::now()),
        environment_fingerprint: fingerprint,
        manifest_checksum: compiled.manifest_checksum.clone(),
        state: None,
    };
    let reviewed = ReviewedPlan::of(plan, origin)?;
    plan_file::write(path, &reviewed)?;
    Ok(SavedPlan { path: path.to_path_buf(), checksum: reviewed.checksum.clone(), format_version: 5 })
}

fn online(
    context: &Context,
    compiled: &Arc<Compiled>,
    out: Option<PathBuf>,
    warnings: &mut Diagnostics,
) -> Result<Made, Failure> {
    let request = PlanRequest { compiled: compiled.clone(), save: out };
    let outcome = live::plan(context, request)?;
    project::merge(warnings, outcome.warnings);
    Ok(Made { plan: outcome.plan, state_serial: Some(outcome.state.serial), saved: outcome.saved })
}

fn markdown_text(compiled: &Compiled, made: &Made, payload: &PlanPayload, offline: bool) -> String {
    markdown(
        payload,
        Facts {
            offline,
            project_directory: &compiled.project.root.display().to_string(),
            environment: &compiled.project.environment.name,
            checksum: made.saved.as_ref().map(|saved| saved.checksum.as_str()),
        },
    )
}

fn outcome(compiled: &Compiled, made: &Made, payload: &PlanPayload, offline: bool) -> Outcome {
    let operation = json!({
        "status": if offline { "unavailable" } else { "clear" },
        "operation_id": null, "kind": null, "failure_code": null, "last_completed_action_index": null,
    });
    let data = PlanData {
        offline,
        summary: &payload.summary,
        creates: payload.summary.creates,
        updates: payload.summary.updates,
        deletes: payload.summary.deletes,
        drifts: made.plan.active().filter(|change| change.is_drift()).count(),
        has_changes: payload.summary.has_changes,
        is_apply_blocked: payload.summary.is_apply_blocked,
        risk_summary: &payload.risk_summary,
        change_risks: &payload.change_risks,
        impact: outcome::json(&payload.impact),
        state_serial: made.state_serial,
        operation_status: operation,
        changes: change_rows(&made.plan),
        ownership_requirements: &payload.ownership_requirements,
        safety_blockers: &payload.safety_blockers,
        gateway_removal_assessments: &payload.gateway_removal_assessments,
        connector_removal_assessments: &payload.connector_removal_assessments,
        removal_candidates: outcome::json(&made.plan.removal_candidates),
        saved: made.saved.as_ref().map(|saved| SavedData {
            plan_file: saved.path.display().to_string(),
            plan_checksum: saved.checksum.to_string(),
            manifest_checksum: compiled.manifest_checksum.to_string(),
            plan_format_version: saved.format_version,
        }),
    };
    let next = next(compiled, made, payload, offline);
    let mut text = view(&made.plan, payload, offline, next.as_deref());
    if let Some(saved) = &made.saved {
        text.line(format!("Saved: {} ({})", saved.path.display(), saved.checksum));
    }
    Outcome::new(&data, text)
}

pub fn change_rows(plan: &Plan) -> Vec<ChangeRow<'_>> {
    let mut active: Vec<_> = plan.active().filter_map(|change| Some((change, change.verb?))).collect();
    active.sort_by_key(|(change, _)| change.kind);
    (active.into_iter())
        .map(|(change, action)| ChangeRow {
            kind: change.kind,
            name: &change.name,
            action,
            cause: if !plan.blockers_of(change).is_empty() { Some(Cause::Blocked) } else { change.cause() },
            changes: &change.changes,
        })
        .collect()
}

/// A plan as text, with what only a fresh plan knows.
pub fn view(plan: &Plan, payload: &PlanPayload, offline: bool, next: Option<&str>) -> crate::cli::doc::Doc {
    let drifted: Vec<(Kind, String)> = plan
        .changes
        .iter()
        .filter(|change| change.is_drift())
        .map(|change| (change.kind, change.name.clone()))
        .collect();
    let gone: Vec<String> = plan.removal_candidates.iter().map(|candidate| candidate.resource_id.to_string()).collect();
    render(View { plan: payload, offline, drifted: &drifted, no_longer_declared: &gone, next })
}

/// The exact next command: apply the saved file, or apply directly where the environment allows it.
fn next(compiled: &Compiled, made: &Made, payload: &PlanPayload, offline: bool) -> Option<String> {
    let project = &compiled.project;
    if offline || payload.summary.is_apply_blocked || !payload.summary.has_changes {
        return None;
    }
    let confirm = match project.environment.requires_confirmation() {
        true => format!(" --confirm-env {}", shell::quote(&project.environment.name)),
        false => String::new(),
    };
    let apply = project::next_command(project, "apply");
    let force = if payload.summary.deletes > 0 { gates::force(project) } else { "" };
    match &made.saved {
        Some(saved) => {
            let file = shell::quote(&saved.path.display().to_string());
            Some(format!("{apply} --plan {file}{confirm}{force}"))
        }
        None if project.environment.requires_reviewed_plan() || !project.connector_removals.is_empty() => {
            Some(gates::reviewed_workflow(project)[0].clone())
        }
        None => Some(format!("{apply}{confirm}")),
    }
}
