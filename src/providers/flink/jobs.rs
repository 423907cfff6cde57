//! What the JobManager says: reads only.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reqwest::{Method, StatusCode};

use super::{FlinkClient, wire};
use crate::planner::flink::{JobId, JobObservation, JobState};
use crate::providers::http::{Answer, LIST_LIMIT, ProviderHttp, Request};
use crate::providers::{Ctx, ProviderFailure, VendorText};

const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long a job may have failed without a cause: a JobManager answers from a copy of the job that it takes anew every
/// `web.refresh-interval`, three seconds unless set.
const SILENCE: Duration = Duration::from_secs(4);
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// What is there to run jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overview {
    pub version: String,
    pub task_managers: u32,
    pub slots_total: u32,
    pub slots_available: u32,
}

impl FlinkClient {
    /// Whether the JobManager answers and takes the credentials.
    pub async fn probe(&self, ctx: &Ctx) -> Result<Overview, ProviderFailure> {
        let answer = self.ask(ctx, self.jobs()?, &Request::get(&["overview"])).await?;
        if answer.status != StatusCode::OK {
            return Err(wire::refusal(&answer));
        }
        let body = answer.json()?;
        let count = |key: &str| body.get(key).and_then(serde_json::Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let version = body.get("flink-version").and_then(serde_json::Value::as_str);
        match (version, count("taskmanagers"), count("slots-total"), count("slots-available")) {
            (Some(version), Some(task_managers), Some(slots_total), Some(slots_available)) => {
                Ok(Overview { version: version.to_owned(), task_managers, slots_total, slots_available })
            }
            _other => Err(ProviderFailure::Protocol { what: "cluster overview" }),
        }
    }

    /// The job of every name, by one list; absent ones as absent. Two jobs of one name that have not ended are nobody's to
    /// choose from.
    pub async fn observe(
        &self,
        ctx: &Ctx,
        names: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, JobObservation>, ProviderFailure> {
        let request = Request { limit: LIST_LIMIT, ..Request::get(&["jobs", "overview"]) };
        let answer = self.ask(ctx, self.jobs()?, &request).await?;
        if answer.status != StatusCode::OK {
            return Err(wire::refusal(&answer));
        }
        let mut found: BTreeMap<String, Vec<wire::Listed>> = BTreeMap::new();
        for listed in wire::job_list(&answer)? {
            if names.contains(&listed.name) {
                found.entry(listed.name.clone()).or_default().push(listed);
            }
        }
        let chosen = names.iter().map(|name| {
            let job = chosen(found.remove(name).unwrap_or_default())?;
            Ok((name.clone(), JobObservation { name: name.clone(), job: job.map(|listed| listed.job) }))
        });
        chosen.collect()
    }

    /// Name and state of the job with this id. The JobManager answers this from what it runs, its list from a cache.
    pub(super) async fn job(&self, ctx: &Ctx, id: &JobId) -> Result<Option<(String, JobState)>, ProviderFailure> {
        let answer = self.ask(ctx, self.jobs()?, &Request::get(&["jobs", id.as_str()])).await?;
        match answer.status {
            StatusCode::OK => wire::job(&answer, id).map(Some),
            StatusCode::NOT_FOUND if wire::is_own_error(&answer) => Ok(None),
            _other => Err(wire::refusal(&answer)),
        }
    }

    /// The root cause of each job's newest failure, of those that one is known of. Those that have failed without one are looked
    /// at again, all of them together for no longer than a JobManager takes to know.
    pub async fn failures(
        &self,
        ctx: &Ctx,
        jobs: &BTreeMap<JobId, JobState>,
    ) -> Result<BTreeMap<JobId, VendorText>, ProviderFailure> {
        let mut known = BTreeMap::new();
        for id in jobs.keys() {
            if let Some(text) = self.failure(ctx, id).await? {
                known.insert(id.clone(), text);
            }
        }
        let patience = ctx.within(SILENCE);
        loop {
            let silent = jobs.iter().filter(|(id, state)| state.has_failed() && !known.contains_key(id));
            let silent: Vec<&JobId> = silent.map(|(id, _)| id).collect();
            if silent.is_empty() || patience.remaining().is_zero() {
                return Ok(known);
            }
            pause(&patience, LOOK_PAUSE).await?;
            for id in silent {
                // What is known already outweighs an answer that does not come.
                match self.failure(&patience, id).await {
                    Ok(text) => known.extend(text.map(|text| (id.clone(), text))),
                    Err(failure @ ProviderFailure::Aborted { .. }) => return Err(failure),
                    Err(_) => return Ok(known),
                }
            }
        }
    }

    async fn failure(&self, ctx: &Ctx, id: &JobId) -> Result<Option<VendorText>, ProviderFailure> {
        let path = ["jobs", id.as_str(), "exceptions"];
        let request = Request { query: "?maxExceptions=1", limit: LIST_LIMIT, ..Request::get(&path) };
        let answer = self.ask(ctx, self.jobs()?, &request).await?;
        match answer.status {
            StatusCode::OK => Ok(self.vendor_text(wire::failure(&answer))),
            StatusCode::NOT_FOUND if wire::is_own_error(&answer) => Ok(None),
            _other => Err(wire::refusal(&answer)),
        }
    }

    /// A read; once more for each of `retries` while no connection or no answer in time comes, or a leader is missing.
    pub(super) async fn ask(
        &self,
        ctx: &Ctx,
        service: &ProviderHttp,
        request: &Request<'_>,
    ) -> Result<Answer, ProviderFailure> {
        debug_assert_eq!(request.method, Method::GET);
        let mut attempt = 0;
        loop {
            let outcome = service.read_once(&ctx.within(self.timeout), request).await;
            let passing = match &outcome {
                Ok(answer) => answer.status == StatusCode::SERVICE_UNAVAILABLE,
                Err(failure) => matches!(failure, ProviderFailure::Unreachable | ProviderFailure::Timeout),
            };
            if !passing || attempt == self.retries || ctx.remaining().is_zero() {
                return outcome;
            }
            attempt += 1;
            pause(ctx, RETRY_PAUSE).await?;
        }
    }
}

/// What is told of a job in this state: its root cause, or that Flink tells none yet of one that has failed.
pub fn why(state: JobState, failure: Option<&VendorText>) -> Option<String> {
    match failure {
        Some(text) => Some(text.to_string()),
        None => state.has_failed().then(|| "Flink tells no cause yet".to_owned()),
    }
}

/// Sleeps, at most to the deadline; cancellation ends it.
pub(super) async fn pause(ctx: &Ctx, length: Duration) -> Result<(), ProviderFailure> {
    let length = ctx.at_most(length);
    tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => Err(ProviderFailure::Aborted { uncertain: false }),
        () = tokio::time::sleep(length) => Ok(()),
    }
}

fn chosen(jobs: Vec<wire::Listed>) -> Result<Option<wire::Listed>, ProviderFailure> {
    let (ended, mut live): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|listed| listed.job.state.has_ended());
    match (live.pop(), live.is_empty()) {
        (Some(_), false) => Err(ProviderFailure::Ambiguous { what: "two live jobs of one name" }),
        (Some(job), true) => Ok(Some(job)),
        (None, _) => Ok(ended.into_iter().max_by_key(|listed| listed.start)),
    }
}
