//! `streamt review FILE`: what a saved plan says, verified, without contacting anything.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line};
use crate::cli::outcome::{CmdResult, Outcome};
use crate::cli::plan_view::{View, render};
use crate::planner::model::Action;
use crate::planner::payload::PlanPayload;
use crate::state::plan_file;

/// Verify and show a saved plan
#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// The file that `plan --out` wrote
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
