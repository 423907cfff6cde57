//! The JSON of both services, and the one line that is kept of a stack trace.

use serde_json::Value;

use crate::planner::flink::{JobId, JobState, LiveJob, Tasks};
use crate::providers::http::Answer;
use crate::providers::{ProviderFailure, Reply};

const fn unlike(what: &'static str) -> ProviderFailure {
    ProviderFailure::Protocol { what }
}

/// A job of the list, with its name and when it began.
pub(super) struct Listed {
    pub name: String,
    pub start: i64,
    pub job: LiveJob,
}

pub(super) fn job_list(answer: &Answer) -> Result<Vec<Listed>, ProviderFailure> {
    let body = answer.json()?;
    let jobs = body.get("jobs").and_then(Value::as_array).ok_or(unlike("job list"))?;
    jobs.iter().map(|job| listed(job).ok_or(unlike("job list"))).collect()
}

fn listed(job: &Value) -> Option<Listed> {
    let tasks = job.get("tasks")?;
    let count = |name: &str| tasks.get(name)?.as_u64().and_then(|count| u32::try_from(count).ok());
    Some(Listed {
        name: job.get("name")?.as_str()?.to_owned(),
        start: job.get("start-time")?.as_i64()?,
        job: LiveJob {
            id: JobId::parse(job.get("jid")?.as_str()?)?,
            state: JobState::parse(job.get("state")?.as_str()?)?,
            tasks: Tasks { running: count("running")?, finished: count("finished")?, total: count("total")? },
        },
    })
}

/// Name and state of one job.
pub(super) fn job(answer: &Answer, id: &JobId) -> Result<(String, JobState), ProviderFailure> {
    let body = answer.json()?;
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    match (text("jid"), text("name"), text("state").and_then(JobState::parse)) {
        (Some(found), Some(name), Some(state)) if found == id.as_str() => Ok((name.to_owned(), state)),
        _other => Err(unlike("job")),
    }
}

/// Whether a 404 is Flink's own, not that of something in front of it.
pub(super) fn is_own_error(answer: &Answer) -> bool {
    answer.json().is_ok_and(|body| body.get("errors").is_some_and(Value::is_array))
}

pub(super) fn handle(answer: &Answer, key: &str) -> Option<String> {
    let body = answer.json().ok()?;
    let handle = body.get(key)?.as_str()?;
    uuid::Uuid::parse_str(handle).ok().map(|handle| handle.to_string())
}

/// How far an operation of the gateway is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OperationState {
    Pending,
    Finished,
    /// ERROR, CANCELED, CLOSED or TIMEOUT.
    Ended,
}

pub(super) fn operation(answer: &Answer) -> Option<OperationState> {
    match answer.json().ok()?.get("status")?.as_str()? {
        "INITIALIZED" | "PENDING" | "RUNNING" => Some(OperationState::Pending),
        "FINISHED" => Some(OperationState::Finished),
        "ERROR" | "CANCELED" | "CLOSED" | "TIMEOUT" => Some(OperationState::Ended),
        _unknown => None,
    }
}

/// What an error body says in one line: its innermost cause, else the first line of its last entry.
pub(super) fn cause(answer: &Answer) -> Option<String> {
    let body = answer.json().ok()?;
    let errors: Vec<&str> = body.get("errors")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let innermost = errors.iter().rev().find_map(|error| innermost(error));
    innermost.or_else(|| errors.last()?.trim().lines().next()).map(str::to_owned)
}

/// The root cause of the newest failure of a job.
pub(super) fn failure(answer: &Answer) -> Option<String> {
    let body = answer.json().ok()?;
    let newest = body.get("exceptionHistory")?.get("entries")?.as_array()?.first()?;
    let trace = newest.get("stacktrace")?.as_str()?;
    innermost(trace).or_else(|| trace.trim().lines().next()).map(str::to_owned)
}

fn innermost(trace: &str) -> Option<&str> {
    let mut lines = trace.lines().filter_map(|line| line.trim().strip_prefix("Caused by: "));
    lines.next_back().map(str::trim).filter(|line| !line.is_empty())
}

pub(super) fn versions(answer: &Answer) -> Vec<String> {
    let body = answer.json().unwrap_or_default();
    let versions = body.get("versions").and_then(Value::as_array);
    versions.into_iter().flatten().filter_map(|version| version.as_str().map(str::to_ascii_lowercase)).collect()
}

/// An answer that is neither success nor the absence that was asked about.
pub(super) fn refusal(answer: &Answer) -> ProviderFailure {
    match answer.status.as_u16() {
        401 | 403 => ProviderFailure::Auth { text: None },
        429 | 503 => ProviderFailure::Busy { what: "the service asks to wait" },
        status => ProviderFailure::Rejected { reply: Reply::Http { status, error_code: None }, text: None },
    }
}
