//! The conversation with a Flink cluster. Reads carry a [`Ctx`]; the one mutation consumes an [`ActionLease`]. There is no
//! message that cancels a job, stops it or takes a savepoint.

use std::collections::{BTreeMap, BTreeSet};

use actix::Message;

use crate::actors::lease::ActionLease;
use crate::compiler::artifact::FlinkJobArtifact;
use crate::planner::flink::{JobId, JobObservation, JobState};
use crate::providers::flink::{Overview, Submitted};
use crate::providers::{Ctx, ProviderFailure, VendorText};

/// Asks whether the JobManager answers, and what it has to run jobs.
#[derive(Message)]
#[rtype(result = "Result<Overview, ProviderFailure>")]
pub struct Probe {
    pub ctx: Ctx,
}

/// The job of every exact name, absent ones as absent, by one list.
#[derive(Message)]
#[rtype(result = "Result<BTreeMap<String, JobObservation>, ProviderFailure>")]
pub struct ObserveJobs {
    pub ctx: Ctx,
    pub names: BTreeSet<String>,
}

/// Lets Flink judge the SQL of a job. Nothing is submitted.
#[derive(Message)]
#[rtype(result = "Result<(), ProviderFailure>")]
pub struct ExplainJob {
    pub ctx: Ctx,
    pub artifact: FlinkJobArtifact,
}

/// Why each job failed last, of those that a cause is known of.
#[derive(Message)]
#[rtype(result = "Result<BTreeMap<JobId, VendorText>, ProviderFailure>")]
pub struct FailuresOf {
    pub ctx: Ctx,
    pub jobs: BTreeMap<JobId, JobState>,
}

/// Submits a job under an id that this operation alone can form.
#[derive(Message)]
#[rtype(result = "Result<Submitted, ProviderFailure>")]
pub struct SubmitJob {
    pub lease: ActionLease,
    pub ctx: Ctx,
    pub artifact: FlinkJobArtifact,
    pub id: JobId,
}
