//! Tests that run as Flink jobs: what can be told from whether the job runs. Its violations stand in their topic.

use crate::project::model::Test;

use super::{Status, Verdict, skipped_notes};

/// A state of Flink, and whether all tasks run.
pub type LiveState<'a> = (&'a str, bool);

/// `job`: its name and what was seen of it; none for a test that has no job. `why` it failed, in Flink's words.
pub fn judge_job(test: &Test, job: Option<(&str, Option<LiveState<'_>>)>, why: Option<&str>) -> Verdict {
    let notes = skipped_notes(test);
    let verdict = match job {
        None => Verdict::skipped(test, "no assertion of this test is executed"),
        Some((name, None)) => Verdict::skipped(test, format!("its job '{name}' is not deployed")),
        Some((_, Some(("RUNNING", true)))) => {
            Verdict { job_status: Some("RUNNING".to_owned()), ..Verdict::new(test, Status::Passed) }
        }
        Some((name, Some((state, _)))) => {
            let running = if state == "RUNNING" { ", and not all of its tasks run" } else { "" };
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            Verdict {
                job_status: Some(state.to_owned()),
                errors: vec![format!("its job '{name}' is {state}{running}{why}")],
                ..Verdict::new(test, Status::Failed)
            }
        }
    };
    Verdict { warnings: notes, ..verdict }
}
