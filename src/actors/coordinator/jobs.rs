//! What an operation does for Flink jobs beside the common walk: the clusters they belong to, their observation, and what a
//! submission left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix::Addr;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::driver::Driver;
use super::gates::Stop;
use super::observe::{ASKED_AT_ONCE, Providers, answered};
use super::work::{Call, JobCall, Schedule};
use crate::actors::flink::FlinkActor;
use crate::actors::registry::Registry;
use crate::codes::{Code, Diagnostic};
use crate::compiler::Compiled;
use crate::compiler::artifact::{FlinkJobArtifact, Kind};
use crate::messages::flink::{ExplainJob, ObserveJobs};
use crate::messages::operation::OperationEvent;
use crate::planner::Plan;
use crate::planner::flink::{JobObservation, cluster_of};
use crate::planner::model::Verb;
use crate::project::model::FlinkCluster;
use crate::providers::flink::{self, Submitted};
use crate::providers::{Ctx, ProviderFailure, Purpose};
use crate::state::control::{Intent, ProgressEntry, ProgressStatus};

/// Beside the statements: for the JobManager's answers, and for a gateway that is away.
const SETTLE_BUDGET: Duration = Duration::from_secs(180);
/// How long a job that was sent can still arrive: a gateway repeats its own request for about a minute.
const ARRIVAL: jiff::SignedDuration = jiff::SignedDuration::from_secs(120);

/// The actors of the clusters that an operation's jobs belong to, by alias.
pub type Clusters = BTreeMap<String, Addr<FlinkActor>>;

fn declared<'a>(compiled: &'a Compiled, name: &str) -> Option<&'a FlinkJobArtifact> {
    let artifacts = &compiled.artifacts;
    artifacts.flink_jobs.iter().chain(&artifacts.test_jobs).find(|job| job.name == name)
}

/// The names by the cluster that each job belongs to.
fn by_cluster<'a>(
    compiled: &'a Compiled,
    names: &[String],
) -> Result<BTreeMap<&'a str, (&'a FlinkCluster, BTreeSet<String>)>, Diagnostic> {
    let mut clusters: BTreeMap<&str, (&FlinkCluster, BTreeSet<String>)> = BTreeMap::new();
    for job in names.iter().filter_map(|name| declared(compiled, name)) {
        let (alias, cluster) = cluster_of(&compiled.project, job)?;
        clusters.entry(alias).or_insert_with(|| (cluster, BTreeSet::new())).1.insert(job.name.clone());
    }
    Ok(clusters)
}

/// An actor for each cluster of these jobs. E208, E209.
pub fn clusters(registry: &Registry, compiled: &Compiled, names: &[String]) -> Result<Clusters, Diagnostic> {
    let project = &compiled.project;
    let (kafka, schemas) = (project.runtime.kafka.as_ref(), project.runtime.schema_registry.as_ref());
    let actor = |cluster| registry.flink(cluster, kafka, schemas, &project.root);
    Ok(by_cluster(compiled, names)?
        .into_iter()
        .map(|(alias, (cluster, _))| (alias.to_owned(), actor(cluster)))
        .collect())
}

/// Each job on its own cluster.
pub async fn observe(
    compiled: &Compiled,
    names: &[String],
    clusters: &Clusters,
    ctx: &Ctx,
) -> Result<BTreeMap<String, JobObservation>, ProviderFailure> {
    let unknown = |_| ProviderFailure::Config { field: "runtime.flink" };
    let asked: Vec<_> = by_cluster(compiled, names).map_err(unknown)?.into_iter().collect();
    let seen: Vec<BTreeMap<String, JobObservation>> = stream::iter(asked)
        .map(|(alias, (_, names))| async move {
            let cluster = clusters.get(alias).ok_or(ProviderFailure::Config { field: "runtime.flink" })?;
            answered(cluster.send(ObserveJobs { ctx: ctx.clone(), names }).await)
        })
        .buffered(ASKED_AT_ONCE)
        .try_collect()
        .await?;
    Ok(seen.into_iter().flatten().collect())
}

/// E206 for the first job to submit whose cluster has no SQL Gateway: known before anything is changed.
pub fn submittable(plan: &Plan, compiled: &Compiled) -> Result<(), Diagnostic> {
    let submitted = plan.active().filter(|change| (change.kind, change.verb) == (Kind::FlinkJob, Some(Verb::Submit)));
    for job in submitted.filter_map(|change| declared(compiled, &change.name)) {
        if cluster_of(&compiled.project, job)?.1.sql_gateway_url.is_none() {
            return Err(ProviderFailure::NoSqlGateway.diagnostic(&format!("flink_job:{}: submit", job.name)));
        }
    }
    Ok(())
}

impl Driver {
    /// Row 23: SQL that Flink would refuse is refused before it can become an operation that needs recovery.
    pub(super) async fn explained(&self, schedule: &Schedule, providers: &Providers) -> Result<(), Stop> {
        let jobs: Vec<JobCall> = schedule
            .works
            .iter()
            .filter_map(|work| match &work.call {
                Call::SubmitJob(job) => Some(job.as_ref().clone()),
                Call::CreateTopic(_)
                | Call::UpdateTopic(_)
                | Call::Register(_)
                | Call::SetLevel { .. }
                | Call::CreateConnector(_)
                | Call::UpdateConnector(_)
                | Call::DeleteConnector(_) => None,
            })
            .collect();
        if jobs.is_empty() {
            return Ok(());
        }
        self.tell(OperationEvent::Validating);
        let judged: Vec<Option<ProviderFailure>> = stream::iter(jobs.iter().cloned())
            .map(|job| async move {
                let ctx = Ctx::new(Purpose::Apply, job.budget, self.reads.clone());
                let cluster = providers.flink.get(&job.cluster)?;
                answered(cluster.send(ExplainJob { ctx, artifact: job.artifact }).await).err()
            })
            .buffered(ASKED_AT_ONCE)
            .collect()
            .await;
        self.proceed()?;
        let refused = jobs.iter().zip(judged).filter_map(|(job, failure)| {
            Some(failure?.diagnostic(&format!("flink_job:{}: submit", job.artifact.name)))
        });
        let refused: Vec<Diagnostic> = refused.collect();
        if refused.is_empty() { Ok(()) } else { Err(Stop::Failed(refused.into())) }
    }
}

/// The bound of one submission, settled if need be.
pub fn submit_budget(compiled: &Compiled, job: &FlinkJobArtifact) -> Duration {
    let statement = cluster_of(&compiled.project, job).map_or(0, |(_, cluster)| cluster.statement_timeout);
    Duration::from_secs(4 * u64::from(statement)) + SETTLE_BUDGET
}

/// W149: the job was submitted, and has failed already.
pub fn failed_already(name: &str, submitted: &Submitted) -> Option<Diagnostic> {
    if !submitted.state.has_ended() || submitted.state == crate::planner::flink::JobState::Finished {
        return None;
    }
    let why = flink::why(submitted.state, submitted.failure.as_ref()).map(|why| format!(": {why}")).unwrap_or_default();
    let text = format!("flink_job:{name} was submitted as {} and is {} already{why}", submitted.id, submitted.state);
    Some(Diagnostic::new(Code::W149FlinkJobFailed, text).suggest("look at the job in Flink; `streamt status` shows it"))
}

/// When the last of the jobs that this operation may have sent can no longer arrive, if that is still to come.
pub fn arriving_until(intent: &Intent, progress: &[ProgressEntry], now: jiff::Timestamp) -> Option<jiff::Timestamp> {
    let sent = progress.iter().filter(|entry| {
        let job = intent.actions.get(entry.action_index as usize);
        job.is_some_and(|action| action.resource_id.kind() == Kind::FlinkJob) && entry.status == ProgressStatus::Started
    });
    let last = sent.filter_map(|entry| entry.recorded_at.as_str().parse::<jiff::Timestamp>().ok()).max()?;
    let settled = last.checked_add(ARRIVAL).ok()?;
    (settled > now).then_some(settled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::testing;
    use crate::planner::fixtures::{World, job};
    use crate::planner::flink::{JobId, JobState};
    use crate::planner::model::Action;
    use crate::project::model::{FlinkRuntime, Materialized, Model};
    use crate::providers::VendorText;
    use crate::state::model::ResourceId;
    use crate::state::scalar::Timestamp;
    use crate::state::testing::golden_intent;

    const RUNNING: JobState = JobState::Running;

    /// A cluster that jobs can be read from and not be submitted to is found out while nothing is changed.
    #[test]
    fn a_job_to_submit_needs_a_cluster_with_a_gateway_and_one_that_runs_needs_none() {
        let compiled = |gateway: Option<&str>| {
            let mut project = testing::project("payments");
            project.runtime.kafka = Some(testing::kafka_runtime());
            let cluster = FlinkCluster { sql_gateway_url: gateway.map(str::to_owned), ..testing::flink_cluster() };
            project.runtime.flink = Some(FlinkRuntime {
                default: Some("main".into()),
                clusters: BTreeMap::from([("main".into(), cluster)]),
            });
            project.sources.push(testing::source("raw", "raw.v1"));
            let model = testing::sql_model("m", "SELECT 1 AS a FROM {{ source('raw') }}");
            project.models.push(Model { materialized: Some(Materialized::Flink), ..model });
            testing::compiled(project)
        };
        let (absent, running) = (World::new().with_job(job("m"), None), World::new().with_job(job("m"), Some(RUNNING)));
        assert_eq!(submittable(&absent.plan(), &compiled(Some("http://g"))), Ok(()));
        let refused = submittable(&absent.plan(), &compiled(None)).expect_err("no gateway");
        assert_eq!(refused.code, Code::E206SqlGatewayNotConfigured);
        assert!(refused.message.starts_with("flink_job:m: submit"), "{}", refused.message);
        assert_eq!(submittable(&running.owned().plan(), &compiled(None)), Ok(()));
    }

    #[test]
    fn a_job_that_ended_as_soon_as_it_was_submitted_is_told_with_its_cause() {
        let told = |state, failure: Option<&str>| {
            let failure = failure.and_then(|text| VendorText::at_border(text, &[]));
            failed_already("m", &Submitted { id: JobId::parse(&"a".repeat(32)).expect("an id"), state, failure })
        };
        for state in JobState::ALL {
            let warned = told(state, None).map(|warning| warning.code);
            let expected = matches!(state, JobState::Failed | JobState::Canceled).then_some(Code::W149FlinkJobFailed);
            assert_eq!(warned, expected, "{state}");
        }
        let message = told(JobState::Failed, Some("no such topic")).expect("a warning").message;
        assert!(message.ends_with("is FAILED already: no such topic"), "{message}");
    }

    /// REC-055: two minutes after the start of the last job, whatever else was started since.
    #[test]
    fn a_job_that_was_sent_can_arrive_for_two_minutes_and_nothing_else_can() {
        let action = |index: u32, kind: Kind, verb: Verb| Action {
            index,
            resource_id: ResourceId::new("payments", "prod", kind, &format!("r{index}")).expect("an id"),
            action: verb,
            gateway_evidence: None,
            connector_evidence: None,
            kafka_streams_evidence: None,
        };
        let intent = golden_intent(vec![action(0, Kind::Topic, Verb::Create), action(1, Kind::FlinkJob, Verb::Submit)]);
        let at = |second: i64| jiff::Timestamp::from_second(1_800_000_000 + second).expect("an instant");
        let started =
            |index, second| ProgressEntry::started(&intent, index, Timestamp::micros(at(second))).expect("an entry");
        let completed = |index, second| {
            ProgressEntry::completed(&intent, index, false, Timestamp::micros(at(second))).expect("an entry")
        };
        assert_eq!(arriving_until(&intent, &[started(0, 0)], at(1)), None);
        let sent = [started(0, 0), started(1, 10), completed(1, 50)];
        assert_eq!(arriving_until(&intent, &sent, at(129)), Some(at(130)));
        assert_eq!(arriving_until(&intent, &sent, at(130)), None);
    }
}
