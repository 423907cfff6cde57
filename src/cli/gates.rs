//! The gates of `plan` and `apply` that need neither state nor a provider: rows 1 to 10 of the one gate table. Each refuses
//! before any row below it is looked at.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::codes::{Code, Diagnostic};
use crate::project::Project;
use crate::project::model::DeploymentState;
use crate::state::plan_file::{self, ReviewedPlan};

use super::context::Context;
use super::outcome::Failure;
use super::project::{next_command, reviewed_plan_path};
use super::prompt;
use super::shell;

/// How an apply was asked for, as far as the gates care.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub plan: Option<&'a Path>,
    pub selected: bool,
    pub dry_run: bool,
    pub confirm: bool,
    pub confirm_env: Option<&'a str>,
}

#[derive(Serialize)]
struct ReviewedPlanRequired {
    environment: String,
    policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    connector_removals: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_rule_removals: Option<usize>,
    required_workflow: &'static str,
    next_steps: [String; 2],
}

/// What a planned deletion needs besides its review.
pub fn force(project: &Project) -> &'static str {
    if project.environment.allow_destructive { "" } else { " --force" }
}

/// The two commands of the reviewed workflow.
pub fn reviewed_workflow(project: &Project) -> [String; 2] {
    let file = shell::quote(&reviewed_plan_path(project).display().to_string());
    let confirm = match project.environment.requires_confirmation() {
        true => format!(" --confirm-env {}", shell::quote(&project.environment.name)),
        false => String::new(),
    };
    let removes = if project.connector_removals.is_empty() { "" } else { force(project) };
    [
        format!("{} --out {file}", next_command(project, "plan")),
        format!("{} --plan {file}{confirm}{removes}", next_command(project, "apply")),
    ]
}

fn reviewed_plan_required(project: &Project, policy: &'static str, what: &str) -> ReviewedPlanFailure {
    ReviewedPlanFailure {
        message: format!("{what} needs a reviewed plan"),
        data: ReviewedPlanRequired {
            environment: project.environment.name.clone(),
            policy,
            connector_removals: None,
            gateway_rule_removals: None,
            required_workflow: "reviewed_plan",
            next_steps: reviewed_workflow(project),
        },
    }
}

struct ReviewedPlanFailure {
    message: String,
    data: ReviewedPlanRequired,
}

impl From<ReviewedPlanFailure> for Failure {
    fn from(failure: ReviewedPlanFailure) -> Self {
        let [plan, apply] = &failure.data.next_steps;
        let suggestion = format!("Plan, review, then apply the file:\n{plan}\n{apply}");
        let error = Diagnostic::new(Code::E418ReviewedPlanRequired, failure.message).suggest(suggestion);
        Failure::new(error).data(&failure.data)
    }
}

fn remote_state_required(message: &str) -> Failure {
    Failure::new(
        Diagnostic::new(Code::E421RemoteStateRequired, message)
            .suggest("Set deployment_state.backend: postgres; no flag replaces it"),
    )
}

fn local(project: &Project) -> bool {
    matches!(project.deployment_state, DeploymentState::Local { .. })
}

/// Rows 2 and 4: explicit connector removals, before state and Connect are touched.
pub fn connector_removals(project: &Project, needs_plan: bool) -> Result<(), Failure> {
    let removals = project.connector_removals.len();
    if removals == 0 {
        return Ok(());
    }
    if needs_plan {
        let mut failure = reviewed_plan_required(project, "connector_removal", "Removing connectors");
        failure.data.connector_removals = Some(removals);
        return Err(failure.into());
    }
    if local(project) {
        return Err(remote_state_required("Removing connectors needs the remote state backend"));
    }
    Ok(())
}

/// Row 7.
pub fn remote_state(project: &Project) -> Result<(), Failure> {
    if project.environment.require_remote_state && local(project) {
        let name = &project.environment.name;
        return Err(remote_state_required(&format!("Environment '{name}' requires the remote state backend")));
    }
    Ok(())
}

/// Rows 2 to 8 of `apply`: the plan file when one was given.
pub fn apply(context: &Context, project: &Project, asked: Asked<'_>) -> Result<Option<Arc<ReviewedPlan>>, Failure> {
    let removals_need_plan = asked.plan.is_none() || asked.dry_run || asked.selected;
    if removals_need_plan {
        connector_removals(project, true)?;
    }
    if asked.plan.is_some() && asked.selected {
        return Err(Failure::new(
            Diagnostic::new(
                Code::E408PlanFileInvalid,
                "A reviewed plan is always full: --plan excludes --target and --select",
            )
            .suggest("Leave the selection out, or apply directly without --plan"),
        ));
    }
    connector_removals(project, false)?;
    let environment = &project.environment;
    if asked.plan.is_none() && environment.requires_reviewed_plan() {
        let policy = if environment.protected { "environment.protected" } else { "safety.require_reviewed_plan" };
        return Err(reviewed_plan_required(project, policy, &format!("Environment '{}'", environment.name)).into());
    }
    let reviewed = match asked.plan {
        None => None,
        Some(path) => Some(Arc::new(reviewed_plan(path)?)),
    };
    remote_state(project)?;
    confirmation(context, project, asked)?;
    Ok(reviewed)
}

fn reviewed_plan(path: &Path) -> Result<ReviewedPlan, Failure> {
    let reviewed = plan_file::read(path)?;
    if reviewed.is_offline() {
        return Err(Failure::new(
            Diagnostic::new(Code::E408PlanFileInvalid, "The plan was made offline and authorises nothing")
                .suggest("Make it again without --offline"),
        ));
    }
    Ok(reviewed)
}

/// Row 8. `--confirm-env` beats `--confirm`; a terminal is asked; everything else is refused.
fn confirmation(context: &Context, project: &Project, asked: Asked<'_>) -> Result<(), Failure> {
    let name = &project.environment.name;
    let refuse = |message: String| {
        Failure::new(
            Diagnostic::new(Code::E503EnvironmentError, message)
                .suggest(format!("Pass --confirm-env {}", shell::quote(name))),
        )
    };
    if let Some(given) = asked.confirm_env {
        return match given == name {
            true => Ok(()),
            false => Err(refuse(format!("--confirm-env '{given}' is not the environment '{name}'"))),
        };
    }
    if !project.environment.requires_confirmation() || asked.confirm || asked.dry_run {
        return Ok(());
    }
    match prompt::ask(context, &format!("Environment '{name}' asks for confirmation. Type '{name}' to confirm: ")) {
        Some(answer) if answer == *name => Ok(()),
        Some(_) => Err(refuse(format!("The environment '{name}' was not confirmed"))),
        None => Err(refuse(format!("The environment '{name}' asks for confirmation"))),
    }
}

/// Row 10: explicit Gateway rule removals.
pub fn gateway_removals(project: &Project, asked: Asked<'_>) -> Result<(), Failure> {
    let removals = project.gateway_rule_removals.len();
    if removals == 0 || (asked.plan.is_some() && !asked.selected) {
        return Ok(());
    }
    let mut failure = reviewed_plan_required(project, "gateway_rule_removal", "Removing Gateway rules");
    failure.data.gateway_rule_removals = Some(removals);
    Err(failure.into())
}

/// W142 for a protected environment.
pub fn protected(project: &Project) -> Option<Diagnostic> {
    let name = &project.environment.name;
    project
        .environment
        .protected
        .then(|| Diagnostic::new(Code::W142ProtectedEnvironment, format!("Environment '{name}' is protected")))
}
