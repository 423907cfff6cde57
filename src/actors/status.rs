//! Observation for `status`: no lock, no state, nothing planned. All providers side by side; one that fails does not keep the
//! others from answering.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix::Addr;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio_util::sync::CancellationToken;

use super::connect::ConnectActor;
use super::coordinator::answered;
use super::flink::FlinkActor;
use super::registry::Registry;
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::FlinkJobArtifact;
use crate::messages::operation::ProviderKind;
use crate::messages::status::{ObserveRequest, Observed, ObservedConnector, ObservedJob, ObservedTopics, RecordCounts};
use crate::messages::{connect, flink, kafka, schema_registry};
use crate::planner::connector::ConnectorName;
use crate::planner::flink::{JobId, JobState, cluster_of};
use crate::planner::observation::TopicObservation;
use crate::project::Project;
use crate::providers::kafka::{ConfigRead, Groups, OffsetAt, Offsets, Partition};
use crate::providers::{Ctx, ProviderFailure, Purpose};

/// Requests handed to one provider actor at a time; its own permits bound what is in flight.
const ASKED_AT_ONCE: usize = 16;
/// Bound of one whole observation.
const BUDGET: Duration = Duration::from_secs(60);

pub(super) async fn observe(request: ObserveRequest, registry: &Registry, cancel: CancellationToken) -> Observed {
    let ctx = Ctx::new(Purpose::Status, BUDGET, cancel);
    let ObserveRequest { project, topics, source_topics, subjects, connectors, jobs, failures, consumers, counts } =
        request;
    let kafka = project.runtime.kafka.as_ref().map(|runtime| registry.kafka(runtime, &project.root));
    let schemas =
        project.runtime.schema_registry.as_ref().map(|runtime| registry.schema_registry(runtime, &project.root));

    let workers = project.runtime.connect.as_ref().map(|runtime| registry.connect(runtime, &project.root));

    let topics_read = async {
        if topics.is_empty() {
            return Ok(ObservedTopics { configs_read: true, ..ObservedTopics::default() });
        }
        let kafka = kafka.as_ref().ok_or_else(|| missing("runtime.kafka"))?;
        let read = async |read| {
            let message = kafka::ObserveTopics { ctx: ctx.clone(), names: topics.clone(), read };
            answered(kafka.send(message).await)
        };
        match read(ConfigRead::Strict).await {
            Ok(topics) => Ok(ObservedTopics { topics, configs_read: true }),
            // The right to read configs may be the only one that is missing.
            Err(ProviderFailure::Auth { text }) => match read(ConfigRead::None).await {
                Ok(topics) => Ok(ObservedTopics { topics, configs_read: false }),
                Err(_) => Err(told(ProviderKind::Kafka, "reading topics")(ProviderFailure::Auth { text })),
            },
            Err(failure) => Err(told(ProviderKind::Kafka, "reading topics")(failure)),
        }
    };
    let managed = async {
        let found = topics_read.await;
        let counted = match (counts, kafka.as_ref(), &found) {
            (true, Some(kafka), Ok(found)) => Some(
                count(&found.topics, async |partitions, at| {
                    let message = kafka::Offsets { ctx: ctx.clone(), partitions, at };
                    answered(kafka.send(message).await)
                })
                .await
                .map_err(told(ProviderKind::Kafka, "counting records")),
            ),
            (true, None, _) | (true, Some(_), Err(_)) | (false, _, _) => None,
        };
        (found, counted)
    };
    let sources = async {
        if source_topics.is_empty() {
            return Ok(Default::default());
        }
        let kafka = kafka.as_ref().ok_or_else(|| missing("runtime.kafka"))?;
        let message = kafka::ObserveTopics { ctx: ctx.clone(), names: source_topics.clone(), read: ConfigRead::None };
        answered(kafka.send(message).await).map_err(told(ProviderKind::Kafka, "reading source topics"))
    };
    let registered = async {
        if subjects.is_empty() {
            return Ok(Default::default());
        }
        let registry = schemas.as_ref().ok_or_else(|| missing("runtime.schema_registry"))?;
        let message = schema_registry::ObserveSubjects { ctx: ctx.clone(), subjects: subjects.clone() };
        answered(registry.send(message).await).map_err(told(ProviderKind::SchemaRegistry, "reading subjects"))
    };
    let deployed = async {
        if connectors.is_empty() {
            return Ok(Default::default());
        }
        let workers = workers.as_ref().ok_or_else(|| missing("runtime.connect"))?;
        observe_connectors(workers, &ctx, &connectors)
            .await
            .map_err(told(ProviderKind::KafkaConnect, "reading connectors"))
    };
    let running = async { observe_jobs(registry, &project, &jobs, failures, &ctx).await };
    let groups = async {
        if !consumers || topics.is_empty() {
            return None;
        }
        let read = async {
            let kafka = kafka.as_ref().ok_or_else(|| missing("runtime.kafka"))?;
            let message = kafka::ConsumerLag { ctx: ctx.clone(), topics: topics.clone(), groups: Groups::All };
            answered(kafka.send(message).await).map_err(told(ProviderKind::Kafka, "reading consumer groups"))
        };
        Some(read.await)
    };
    let ((topics, counts), source_topics, subjects, connectors, jobs, consumers) =
        tokio::join!(managed, sources, registered, deployed, running, groups);
    Observed { topics, source_topics, subjects, connectors, jobs, consumers, counts }
}

/// Configuration and status of each; one that goes away between both reads does not exist.
async fn observe_connectors(
    workers: &Addr<ConnectActor>,
    ctx: &Ctx,
    names: &[ConnectorName],
) -> Result<BTreeMap<String, ObservedConnector>, ProviderFailure> {
    let seen = answered(workers.send(connect::ObserveManaged { ctx: ctx.clone(), names: names.to_vec() }).await)?;
    stream::iter(seen)
        .map(|(name, live)| async move {
            let status = match live.exists() {
                true => {
                    let message = connect::StatusOf { ctx: ctx.clone(), name: live.name().clone() };
                    answered(workers.send(message).await)?
                }
                false => None,
            };
            Ok((name, ObservedConnector { live, status }))
        })
        .buffered(ASKED_AT_ONCE)
        .try_collect()
        .await
}

/// Every job on its own cluster; with `failures`, of those that do not run also why.
async fn observe_jobs(
    registry: &Registry,
    project: &Project,
    jobs: &[FlinkJobArtifact],
    failures: bool,
    ctx: &Ctx,
) -> Result<BTreeMap<String, ObservedJob>, Diagnostic> {
    let mut clusters: BTreeMap<&str, (Addr<FlinkActor>, BTreeSet<String>)> = BTreeMap::new();
    for job in jobs {
        let (alias, cluster) = cluster_of(project, job)?;
        let runtime = &project.runtime;
        let actor = || registry.flink(cluster, runtime.kafka.as_ref(), runtime.schema_registry.as_ref(), &project.root);
        clusters.entry(alias).or_insert_with(|| (actor(), BTreeSet::new())).1.insert(job.name.clone());
    }
    let doing = told(ProviderKind::Flink, "reading jobs");
    let seen = stream::iter(clusters.into_values())
        .map(|(cluster, names)| async move {
            let seen = answered(cluster.send(flink::ObserveJobs { ctx: ctx.clone(), names }).await)?;
            let stopped =
                seen.values().filter_map(|live| live.job.as_ref()).filter(|job| failures && !job.state.runs());
            let stopped: BTreeMap<JobId, JobState> = stopped.map(|job| (job.id.clone(), job.state)).collect();
            let mut known = match stopped.is_empty() {
                true => BTreeMap::new(),
                false => answered(cluster.send(flink::FailuresOf { ctx: ctx.clone(), jobs: stopped }).await)?,
            };
            let jobs = seen.into_iter().map(|(name, live)| {
                let failure = live.job.as_ref().and_then(|job| known.remove(&job.id));
                (name, ObservedJob { live, failure })
            });
            Ok(jobs.collect::<Vec<_>>())
        })
        .buffered(ASKED_AT_ONCE)
        .try_collect::<Vec<_>>()
        .await;
    seen.map(|seen| seen.into_iter().flatten().collect()).map_err(doing)
}

/// The records of the topics that exist, by two reads of `offsets` side by side.
async fn count(
    topics: &BTreeMap<String, TopicObservation>,
    offsets: impl AsyncFn(BTreeSet<Partition>, OffsetAt) -> Result<Offsets, ProviderFailure>,
) -> Result<RecordCounts, ProviderFailure> {
    let numbers =
        |topic: &TopicObservation| 0..topic.partitions.and_then(|count| i32::try_from(count).ok()).unwrap_or(0);
    let partitions: BTreeSet<Partition> =
        topics.values().flat_map(|topic| numbers(topic).map(|number| (topic.name.clone(), number))).collect();
    let (begins, ends) =
        tokio::try_join!(offsets(partitions.clone(), OffsetAt::Beginning), offsets(partitions, OffsetAt::End))?;
    let mut counts = RecordCounts::new();
    for ((partition, begin), (_, end)) in begins.into_iter().zip(ends) {
        let held = begin.and_then(|begin| end.map(|end| u64::try_from(end.saturating_sub(begin)).unwrap_or(0)));
        let held = held
            .map_err(|failure| told(ProviderKind::Kafka, &format!("topic:{}: counting records", partition.0))(failure));
        let sum = counts.entry(partition.0).or_insert(Ok(0));
        match (&mut *sum, held) {
            (Ok(sum), Ok(held)) => *sum += held,
            (Ok(_), Err(failure)) => *sum = Err(failure),
            (Err(_), _) => {}
        }
    }
    Ok(counts)
}

fn told(kind: ProviderKind, doing: &str) -> impl FnOnce(ProviderFailure) -> Diagnostic {
    let doing = format!("{}: {doing}", kind.as_str());
    move |failure| match failure {
        ProviderFailure::Aborted { .. } => Diagnostic::new(Code::E903Interrupted, format!("{doing} was interrupted")),
        failure => failure.diagnostic(&doing),
    }
}

fn missing(block: &str) -> Diagnostic {
    Diagnostic::new(Code::E208MissingConfig, format!("`{block}` is not set"))
        .suggest(format!("add a `{block}` block to the project or to the selected environment"))
}
