//! Flink jobs in `status`, `diff` and `show`: whether they run. What a live job runs nobody can see; its record says it.

use serde::Serialize;

use crate::cli::doc::Doc;
use crate::codes::{Code, Diagnostic};
use crate::compiler::Compiled;
use crate::compiler::artifact::{FlinkJobArtifact, Kind};
use crate::messages::status::ObservedJob;
use crate::planner::flink::{JobId, JobState};
use crate::planner::{Cause, Live};
use crate::project::model::OwnershipMode;

use super::why::Differing;

#[derive(Serialize)]
pub struct JobRow {
    pub name: String,
    pub exists: Option<bool>,
    job_id: Option<JobId>,
    /// Flink's word; `STARTING` while a job is RUNNING and not all its tasks are, `MISSING` when there is no job, `UNKNOWN` when
    /// it was not read.
    status: &'static str,
    /// Why it is not as declared, when that could be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<TaskCounts>,
}

#[derive(Serialize)]
struct TaskCounts {
    running: u32,
    finished: u32,
    total: u32,
}

impl JobRow {
    pub fn of(name: &str, seen: Option<&ObservedJob>) -> Self {
        let job = seen.and_then(|seen| seen.live.job.as_ref());
        let status = match (seen, job) {
            (None, _) => "UNKNOWN",
            (Some(_), None) => "MISSING",
            // Without a slot, a job is RUNNING and none of its tasks is.
            (Some(_), Some(job)) if job.state == JobState::Running && !job.tasks.all_run() => "STARTING",
            (Some(_), Some(job)) => job.state.as_str(),
        };
        Self {
            name: name.to_owned(),
            exists: seen.map(|_| job.is_some()),
            job_id: job.map(|job| job.id.clone()),
            status,
            cause: None,
            tasks: job.map(|job| TaskCounts {
                running: job.tasks.running,
                finished: job.tasks.finished,
                total: job.tasks.total,
            }),
        }
    }

    /// Whether it runs what is declared, its record tells.
    pub fn differing<'a>(&'a mut self, seen: &'a ObservedJob) -> Differing<'a> {
        differing(&self.name, seen, &mut self.cause)
    }

    pub fn is_healthy(&self) -> bool {
        self.status == JobState::Running.as_str() && self.cause.is_none()
    }
}

fn differing<'a>(name: &'a str, seen: &'a ObservedJob, cause: &'a mut Option<Cause>) -> Differing<'a> {
    let live = Some(Live::Job(&seen.live));
    Differing { kind: Kind::FlinkJob, name, exists: seen.live.exists(), live, cause }
}

/// The jobs of this project: those of models, then those of tests.
pub fn own(compiled: &Compiled) -> impl Iterator<Item = &FlinkJobArtifact> {
    let artifacts = &compiled.artifacts;
    artifacts.flink_jobs.iter().chain(&artifacts.test_jobs).filter(|job| job.ownership.mode != OwnershipMode::External)
}

/// A job beside its declaration.
#[derive(Serialize)]
pub struct JobDiff {
    pub name: String,
    pub exists: bool,
    /// Flink's word.
    pub state: Option<&'static str>,
    /// Why it is not as declared, when that was asked and could be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// As a plan judges it: anything else is submitted, or blocked.
    #[serde(skip)]
    runs: bool,
}

impl JobDiff {
    pub fn of(name: &str, seen: Option<&ObservedJob>) -> Self {
        let state = seen.and_then(|seen| seen.live.job.as_ref()).map(|job| job.state);
        Self {
            name: name.to_owned(),
            exists: state.is_some(),
            state: state.map(JobState::as_str),
            cause: None,
            runs: state.is_some_and(JobState::runs),
        }
    }

    pub fn differing<'a>(&'a mut self, seen: &'a ObservedJob) -> Differing<'a> {
        differing(&self.name, seen, &mut self.cause)
    }

    /// It runs, and nothing says that it runs anything but what is declared.
    pub fn is_as_declared(&self) -> bool {
        self.runs && self.cause.is_none()
    }
}

/// W149: why a job does not run, in Flink's words; without them when they may quote what is `confidential`.
pub fn why(name: &str, seen: &ObservedJob, confidential: impl FnOnce() -> bool) -> Option<Diagnostic> {
    let job = seen.live.job.as_ref()?;
    let text = seen.why(seen.failure.is_some() && confidential())?;
    let warning = Diagnostic::new(Code::W149FlinkJobFailed, format!("flink_job:{name} is {}: {text}", job.state));
    Some(match seen.failure {
        Some(_) => warning,
        None => warning.suggest("run `streamt status` again, or look at the job's exceptions in Flink"),
    })
}

/// `FAILED (applied, no longer runs)`.
pub fn told(status: &str, cause: Option<Cause>) -> String {
    match cause {
        None => status.to_owned(),
        Some(Cause::Intended) => format!("{status} (declared, not applied)"),
        Some(Cause::Drift) => format!("{status} (applied, no longer runs)"),
        Some(Cause::IntendedAndDrift) => format!("{status} (declared, not applied; no longer runs)"),
        Some(Cause::Adopted) => format!("{status} (adopted, no longer runs)"),
        Some(Cause::Blocked) => format!("{status} (blocked: not ours)"),
    }
}

pub fn table(doc: &mut Doc, rows: &[JobRow]) {
    if rows.is_empty() {
        return;
    }
    let cells = rows.iter().map(|row| {
        let tasks = row
            .tasks
            .as_ref()
            .map_or_else(|| "-".to_owned(), |tasks| format!("{} of {}", tasks.running + tasks.finished, tasks.total));
        let id = row.job_id.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        vec![row.name.clone(), told(row.status, row.cause), tasks, id]
    });
    doc.blank().table(&["FLINK JOB", "STATUS", "TASKS", "ID"], cells.collect());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::flink::{JobObservation, LiveJob, Tasks};
    use crate::providers::VendorText;

    fn seen(state: JobState, failure: Option<&str>) -> ObservedJob {
        let id = JobId::parse(&"a".repeat(32)).expect("an id");
        let job = Some(LiveJob { id, state, tasks: Tasks::default() });
        let failure = failure.and_then(|text| VendorText::at_border(text, &[]));
        ObservedJob { live: JobObservation { name: "j".to_owned(), job }, failure }
    }

    #[test]
    fn a_job_that_has_failed_is_never_told_without_a_word_about_why() {
        for state in JobState::ALL {
            let told = why("j", &seen(state, Some("NoTopic")), || false).expect("told");
            assert_eq!(
                (told.code, told.message),
                (Code::W149FlinkJobFailed, format!("flink_job:j is {state}: NoTopic"))
            );
            let told = why("j", &seen(state, None), || false).map(|told| told.message);
            let silent = state.has_failed().then(|| format!("flink_job:j is {state}: Flink tells no cause yet"));
            assert_eq!(told, silent, "{state}");
        }
    }
}
