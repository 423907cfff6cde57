//! Why a resource is not as declared, for `status` and `diff`: read beside the state, without the lock.

use crate::actors::read_state;
use crate::cli::project;
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::compiler::artifact::Kind;
use crate::planner::{Cause, Causes, Desired, Live};
use crate::state::control::OperationStatus;

/// A row whose resource is not as declared, or of which only the record tells: a job.
pub struct Differing<'a> {
    pub kind: Kind,
    /// Physical name.
    pub name: &'a str,
    pub exists: bool,
    pub live: Option<Live<'a>>,
    pub cause: &'a mut Option<Cause>,
}

/// Fills in the causes, and says how the environment's operation stands. The state is read only when there is such a row; when it
/// cannot be read, a warning says so and the causes stay open.
pub fn explain(
    compiled: &Compiled,
    differing: Vec<Differing<'_>>,
    warnings: &mut Diagnostics,
) -> Option<OperationStatus> {
    if differing.is_empty() {
        return None;
    }
    let snapshot = match read_state(&compiled.project) {
        Ok(snapshot) => snapshot,
        Err(why) => {
            let unknown = match differing.iter().any(|row| row.kind == Kind::FlinkJob) {
                true => {
                    "Whether differences are intended or drift, and whether jobs run what is declared, is not known"
                }
                false => "Whether differences are intended or drift is not known",
            };
            let text = format!("{unknown}: {} ({})", why.message, why.code);
            let warning = Diagnostic { code: Code::W147ObservationIncomplete, message: text, ..why };
            project::merge(warnings, [warning]);
            return None;
        }
    };
    let desired = Desired::of(compiled);
    let causes = Causes::of(&desired, &snapshot.state.state);
    for row in differing {
        *row.cause = causes.why(row.kind, row.name, row.exists, row.live);
    }
    Some(snapshot.control.control.status())
}

/// `DRIFT (intended)`.
pub fn told(status: &str, cause: Option<Cause>) -> String {
    match cause {
        None => status.to_owned(),
        Some(Cause::Intended) => format!("{status} (declared, not applied)"),
        Some(Cause::Drift) => format!("{status} (changed outside)"),
        Some(Cause::IntendedAndDrift) => format!("{status} (declared, not applied; changed outside)"),
        Some(Cause::Adopted) => format!("{status} (adopted; never applied, or changed outside)"),
        Some(Cause::Blocked) => format!("{status} (blocked: `streamt plan` says why)"),
    }
}
