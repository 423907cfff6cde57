//! `streamt state recovery-plan` and `streamt state recover`: the reviewed way out of a blocked operation. Neither changes
//! anything at a provider.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use uuid::Uuid;

use super::apply::reload;
use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::live;
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::plan_view::change_text;
use crate::cli::{project, shell};
use crate::codes::{Code, Diagnostic};
use crate::compiler::canonical::Checksum;
use crate::messages::recovery::{RecoverRequest, RecoveryFailure, RecoveryPlanRequest};
use crate::project::Project;
use crate::state::control::{Resolution, Target};
use crate::state::recovery_plan::{self, RecoveryPlan};
use crate::state::scalar::parse_uuid;

/// Save the evidence for ending an operation that did not finish
///
/// Locks the environment and, unless the operation is abandoned, observes every target of it. Nothing is changed.
#[derive(Debug, Args)]
pub struct RecoveryPlanArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// What happened: every target proved, every target as before, or nothing started
    #[arg(
        long,
        value_name = "RESOLUTION",
        value_parser = PossibleValuesParser::new(["observed", "rolled_back", "abandoned_before_mutation"])
    )]
    resolution: String,

    /// A new file for the evidence, mode 0600
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// End an operation that did not finish, as reviewed
///
/// Observes every target again and ends the operation only if everything still is as in the file. The three confirmations are
/// those of the reviewed file.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// The reviewed file that `state recovery-plan` wrote
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,

    /// The id of the blocked operation
    #[arg(long, value_name = "UUID")]
    confirm_operation_id: Option<String>,

    /// The resolution
    #[arg(long, value_name = "RESOLUTION")]
    confirm_resolution: Option<String>,

    /// The evidence checksum
    #[arg(long, value_name = "SHA256")]
    confirm_evidence_checksum: Option<String>,
}

pub fn plan(context: &Context, args: &RecoveryPlanArgs) -> CmdResult {
    let Some(resolution) = Resolution::parse(&args.resolution) else {
        return Err(Failure::usage("--resolution is observed, rolled_back or abandoned_before_mutation"));
    };
    let out = context.directory.join(&args.out);
    let opened = project::open(context, &args.project)?;
    recovery_plan::refuse_existing(&out)?;
    let request = RecoveryPlanRequest {
        project: Arc::clone(&opened.project),
        resolution,
        out,
        compile: reload(context, &args.project),
    };
    let mut warnings = opened.warnings;
    let planned = match live::plan_recovery(context, request)? {
        Ok(planned) => planned,
        Err(failure) => return Err(failed(failure).warn(warnings)),
    };
    project::merge(&mut warnings, planned.warnings);
    let plan = &planned.plan;
    let data = json!({
        "plan_file": planned.path.display().to_string(), "blocked_operation_id": plan.blocked_operation_id(),
        "recovery_operation_id": plan.recovery_operation_id, "resolution": plan.resolution,
        "evidence_checksum": plan.evidence_checksum, "targets": targets(&plan.targets),
        "next_steps": [format!("streamt review {}", path_text(&planned.path)), recover_command(&opened.project, &planned.path, plan)],
    });
    let mut text = Doc::new();
    for target in &plan.targets {
        text.line(target_line(target));
    }
    text.pairs(
        0,
        [
            ("file", planned.path.display().to_string()),
            ("resolution", plan.resolution.to_string()),
            ("blocked operation", plan.blocked_operation_id().to_string()),
            ("recovery", plan.recovery_operation_id.to_string()),
            ("evidence checksum", plan.evidence_checksum.to_string()),
        ],
    );
    text.line("Nothing was changed. Have the file reviewed by a second person:");
    text.line(format!("  streamt review {}", path_text(&planned.path)));
    text.line("Then carry it out:");
    text.line(format!("  {}", recover_command(&opened.project, &planned.path, plan)));
    Ok(Outcome::new(&data, text).warn(warnings))
}

pub fn recover(context: &Context, args: &RecoverArgs) -> CmdResult {
    let confirmed = Confirmed::of(args)?;
    let opened = project::open(context, &args.project)?;
    let plan = Arc::new(recovery_plan::read(&context.directory.join(&args.plan))?);
    confirmed.check(&plan)?;
    let request = RecoverRequest {
        project: Arc::clone(&opened.project),
        plan: Arc::clone(&plan),
        compile: reload(context, &args.project),
    };
    let mut warnings = opened.warnings;
    let recovered = match live::recover(context, request)? {
        Ok(recovered) => recovered,
        Err(failure) => return Err(failed(failure).warn(warnings)),
    };
    project::merge(&mut warnings, recovered.warnings);
    let state = &recovered.state;
    let data = json!({
        "store": state.store, "address": state.address.to_string(), "state_serial": state.serial,
        "state_checksum": state.checksum, "control_status": "clear", "state_changed": recovered.state_changed,
        "blocked_operation_id": plan.blocked_operation_id(), "recovery_operation_id": plan.recovery_operation_id,
        "resolution": plan.resolution, "evidence_checksum": plan.evidence_checksum,
    });
    let mut text = Doc::new();
    text.line(match recovered.already {
        true => "This recovery was completed before; its result stands.",
        false => "The operation is resolved; the environment can be planned and applied again.",
    });
    text.pairs(
        0,
        [
            ("address", state.address.to_string()),
            (
                "state",
                format!("serial {}, {}", state.serial, if recovered.state_changed { "changed" } else { "unchanged" }),
            ),
            ("resolution", plan.resolution.to_string()),
            ("blocked operation", plan.blocked_operation_id().to_string()),
        ],
    );
    text.line(format!("Next: {}", project::next_command(&opened.project, "plan")));
    Ok(Outcome::new(&data, text).warn(warnings))
}

/// What was typed from the review.
struct Confirmed {
    operation_id: Uuid,
    resolution: Resolution,
    evidence_checksum: Checksum,
}

impl Confirmed {
    fn of(args: &RecoverArgs) -> Result<Self, Diagnostic> {
        fn given<T>(option: &str, text: Option<&String>, read: impl Fn(&str) -> Option<T>) -> Result<T, Diagnostic> {
            let why = if text.is_some() { "is malformed" } else { "is missing" };
            text.and_then(|text| read(text)).ok_or_else(|| unconfirmed(option, why))
        }
        Ok(Self {
            operation_id: given("--confirm-operation-id", args.confirm_operation_id.as_ref(), parse_uuid)?,
            resolution: given("--confirm-resolution", args.confirm_resolution.as_ref(), Resolution::parse)?,
            evidence_checksum: given(
                "--confirm-evidence-checksum",
                args.confirm_evidence_checksum.as_ref(),
                Checksum::parse,
            )?,
        })
    }

    fn check(&self, plan: &RecoveryPlan) -> Result<(), Diagnostic> {
        let same = |option: &str, equal: bool| match equal {
            true => Ok(()),
            false => Err(unconfirmed(option, "is not what the file says")),
        };
        same("--confirm-operation-id", self.operation_id == plan.blocked_operation_id())?;
        same("--confirm-resolution", self.resolution == plan.resolution)?;
        same("--confirm-evidence-checksum", self.evidence_checksum == plan.evidence_checksum)
    }
}

fn unconfirmed(option: &str, why: &str) -> Diagnostic {
    Diagnostic::new(Code::E408PlanFileInvalid, format!("{option} {why}"))
        .suggest("give the three values of the one reviewed file; `streamt review FILE` shows them")
}

/// `targets[]` of results.
pub fn targets(targets: &[Target]) -> Vec<Value> {
    let entry = |target: &Target| {
        json!({
            "resource_id": target.action.resource_id, "action": target.action.action, "presence": target.presence,
            "accepted_as": target.accepted_as,
        })
    };
    targets.iter().map(entry).collect()
}

pub fn target_line(target: &Target) -> String {
    use crate::state::control::{AcceptedAs, Presence};
    let presence = match target.presence {
        Presence::Present => "present",
        Presence::Absent => "absent",
    };
    let accepted = match target.accepted_as {
        AcceptedAs::Prior => "prior",
        AcceptedAs::Candidate => "candidate",
    };
    format!("{} {} {presence} {accepted}", target.action.resource_id, target.action.action)
}

fn path_text(path: &Path) -> String {
    shell::quote(&path.display().to_string())
}

/// The command that carries a plan out, with its confirmations.
fn recover_command(project: &Project, path: &Path, plan: &RecoveryPlan) -> String {
    format!(
        "{} --plan {} --confirm-operation-id {} --confirm-resolution {} --confirm-evidence-checksum {}",
        project::next_command(project, "state recover"),
        path_text(path),
        plan.blocked_operation_id(),
        plan.resolution,
        plan.evidence_checksum
    )
}

fn failed(failure: RecoveryFailure) -> Failure {
    let mut data = serde_json::Map::new();
    let mut text = Doc::new();
    if !failure.targets.is_empty() {
        let targets: Vec<Value> = failure.targets.iter().map(|target| target.data()).collect();
        data.insert("targets".to_owned(), Value::Array(targets));
        for target in failure.targets.iter().filter(|target| target.accepted_as.is_none()) {
            let reason = target.reason.map_or("", |reason| reason.as_str());
            text.line(format!("{} {} {reason}", target.action.resource_id, target.action.action));
            for (field, change) in &target.differences {
                text.line(format!("  {field}: {}", change_text(change)));
            }
        }
    }
    if let Some(operation_id) = failure.operation_id {
        data.insert("blocked_operation_id".to_owned(), json!(operation_id));
    }
    data.insert("committed".to_owned(), json!(failure.committed));
    if let Some(path) = &failure.failure.saved {
        data.insert("plan_file".to_owned(), json!(path.display().to_string()));
    }
    let told = live::failed(failure.failure);
    Failure { data: Value::Object(data), text, ..told }
}
