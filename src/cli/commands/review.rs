//! `streamt review FILE`: what a saved plan says, verified, without contacting anything.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line};
use crate::cli::outcome::{CmdResult, Outcome};
use crate::cli::plan_view::{View, render};
use crate::planner::model::Action;
use crate::planner::payload::PlanPayload;
use crate::state::adoption;
use crate::state::control::Resolution;
use crate::state::plan_file;
use crate::state::recovery_plan;

use super::adoption_view;
use super::state_recovery::{target_line, targets};

/// Verify and show a saved plan
#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// The file that `plan --out`, `state recovery-plan --out` or `adopt --save-selection` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct ReviewData<'a> {
    kind: &'static str,
    format_version: u32,
    created_at: &'a str,
    checksum: &'a str,
    valid: bool,
    project: &'a str,
    environment: &'a str,
    offline: bool,
    authorizes_apply: bool,
    actions: &'a [Action],
    plan: &'a PlanPayload,
}

pub fn run(context: &Context, args: &ReviewArgs) -> CmdResult {
    let path = context.directory.join(&args.file);
    match plan_file::kind(&path)?.as_deref() {
        Some(recovery_plan::KIND) => return recovery(&path),
        Some(adoption::KIND) => return selection(&path),
        Some(_) | None => {}
    }
    let reviewed = plan_file::read(&path)?;
    let data = ReviewData {
        kind: "streamt.reviewed-plan",
        format_version: 5,
        created_at: reviewed.origin.created_at.as_str(),
        checksum: reviewed.checksum.as_str(),
        valid: true,
        project: &reviewed.project,
        environment: &reviewed.environment,
        offline: reviewed.is_offline(),
        authorizes_apply: reviewed.authorizes_apply(),
        actions: &reviewed.actions,
        plan: &reviewed.plan,
    };
    let mut text = Doc::new();
    text.heading("Reviewed plan, format 5, checksum verified");
    let mut rows = vec![
        ("project", reviewed.project.clone()),
        ("environment", reviewed.environment.clone()),
        ("created", reviewed.origin.created_at.to_string()),
        ("checksum", reviewed.checksum.to_string()),
        ("manifest", reviewed.origin.manifest_checksum.to_string()),
    ];
    if let Some(state) = &reviewed.origin.state {
        rows.push(("state", format!("{} serial {}", state.address, state.serial)));
    }
    rows.push(("authorises apply", if data.authorizes_apply { "yes" } else { "no" }.to_owned()));
    text.pairs(2, rows);
    if !reviewed.actions.is_empty() {
        text.blank().heading("Actions, in order:");
        for action in &reviewed.actions {
            text.line(Line::from(format!("  {}. {} {}", action.index + 1, action.action, action.resource_id)));
        }
    }
    text.blank();
    let view = View {
        plan: &reviewed.plan,
        offline: reviewed.is_offline(),
        drifted: &[],
        no_longer_declared: &[],
        next: None,
    };
    text.append(render(view));
    Ok(Outcome::new(&data, text))
}

/// What a selection would claim, and the token that confirms it.
fn selection(path: &Path) -> CmdResult {
    let selection = adoption::read(path)?;
    let data = serde_json::json!({
        "kind": adoption::KIND, "format_version": adoption::FORMAT, "created_at": null,
        "checksum": selection.checksum, "valid": true, "project": selection.project,
        "environment": selection.environment, "offline": false, "authorizes_apply": false, "actions": [], "plan": null,
        "environment_fingerprint": selection.environment_fingerprint,
        "manifest_checksum": selection.manifest_checksum, "state": selection.state,
        "resources": selection.resources, "confirm_token": selection.token(),
    });
    let mut text = Doc::new();
    text.heading("Adoption selection, format 1, checksum verified");
    text.append(adoption_view::selection(&selection));
    text.blank();
    text.pairs(0, [("token", selection.token())]);
    text.line("Compare each resource with what saving the selection showed. An adoption changes ownership only, never a provider.");
    Ok(Outcome::new(&data, text))
}

/// What a recovery would record, and the three values that confirm it.
fn recovery(path: &Path) -> CmdResult {
    let plan = recovery_plan::read(path)?;
    let blocked = plan.control.intent();
    let actions: Vec<_> = blocked.iter().flat_map(|intent| &intent.actions).collect();
    let data = serde_json::json!({
        "kind": recovery_plan::KIND, "format_version": plan.format, "created_at": null,
        "checksum": plan.evidence_checksum, "valid": true, "project": plan.address.project,
        "environment": plan.address.environment, "offline": false, "authorizes_apply": false, "actions": actions,
        "plan": null, "blocked_operation_id": plan.blocked_operation_id(),
        "recovery_operation_id": plan.recovery_operation_id, "resolution": plan.resolution, "store": plan.store,
        "address": plan.address.to_string(), "state_serial": plan.state.serial, "state_checksum": plan.state_checksum,
        "control": plan.control.to_value(), "targets": plan.targets, "summary": targets(&plan.targets),
        "candidate_state": plan.candidate,
    });
    let mut text = Doc::new();
    text.heading(format!("Recovery plan, format {}, evidence checksum verified", plan.format));
    let mut rows = vec![
        ("project", plan.address.project.clone()),
        ("environment", plan.address.environment.clone()),
        ("address", plan.address.to_string()),
        ("blocked operation", plan.blocked_operation_id().to_string()),
        ("resolution", plan.resolution.to_string()),
        ("evidence checksum", plan.evidence_checksum.to_string()),
        ("recovery", plan.recovery_operation_id.to_string()),
        ("state", format!("serial {}, {}", plan.state.serial, plan.state_checksum)),
    ];
    match (plan.resolution, plan.next_state()) {
        (Resolution::Observed, Some(next)) => {
            rows.push(("would record", format!("serial {}, {} resources", next.serial, next.resources.len())));
        }
        (Resolution::Observed | Resolution::RolledBack | Resolution::AbandonedBeforeMutation, _) => {
            rows.push(("would record", "no change of ownership".to_owned()));
        }
    }
    if let Some(record) = plan.control.recovery() {
        rows.push(("stopped", record.failed_at.to_string()));
    }
    text.pairs(2, rows);
    if !plan.targets.is_empty() {
        text.blank().heading("Targets, in order:");
        for target in &plan.targets {
            text.line(Line::from(format!("  {} {}", target_line(target), target.fingerprint)));
        }
    }
    text.blank();
    text.line("Compare each target with the live system. A recovery changes state only, never a provider.");
    Ok(Outcome::new(&data, text))
}
