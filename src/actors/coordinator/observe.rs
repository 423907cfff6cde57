//! Asks the providers what a plan needs to know, all of them side by side, and plans.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use actix::prelude::MailboxError;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio_util::sync::CancellationToken;

use crate::actors::connect::ConnectActor;
use crate::actors::kafka::KafkaActor;
use crate::actors::registry::Registry;
use crate::actors::schema_registry::SchemaRegistryActor;
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::messages::operation::{Observer, OperationEvent, ProviderKind};
use crate::messages::{kafka, schema_registry};
use crate::planner::needs::{Needs, compatibility_checks};
use crate::planner::observation::{
    CompatibilityVerdict, ConsumerEvidence, EvidenceStatus, Observations, SubjectVersion,
};
use crate::planner::{Desired, Evidence, Plan, PlanInput, Selection, needed, plan};
use crate::providers::kafka::{ConfigRead, Groups};
use crate::providers::schema_registry::Verdict;
use crate::providers::{Ctx, ProviderFailure, Purpose};
use crate::state::model::OwnershipState;

use super::connectors::{self, ObservedConnectors};
use super::jobs::{self, Clusters};

/// Bound of all reads of one plan.
const OBSERVE_BUDGET: Duration = Duration::from_secs(120);
/// Requests handed to one provider actor at a time; its own permits bound what is in flight.
pub(super) const ASKED_AT_ONCE: usize = 16;

/// The provider actors that an operation needs; a service that nothing needs is never contacted.
#[derive(Clone)]
pub struct Providers {
    pub kafka: Option<Addr<KafkaActor>>,
    pub schema_registry: Option<Addr<SchemaRegistryActor>>,
    pub connect: Option<Addr<ConnectActor>>,
    /// By alias.
    pub flink: Clusters,
}

/// What is planned, and for whom.
#[derive(Clone)]
pub struct Subject {
    pub compiled: Arc<Compiled>,
    pub selection: Option<Arc<Selection>>,
}

impl Subject {
    fn needs(&self) -> Needs {
        needed(&Desired::of(&self.compiled), self.selection.as_deref())
    }
}

impl Providers {
    /// Row 18: an actor for each required service; E208 for a service without its runtime block.
    pub fn required(registry: &Registry, subject: &Subject) -> Result<Self, Diagnostic> {
        let needs = subject.needs();
        let project = &subject.compiled.project;
        let schemas = !needs.subjects.is_empty();
        let connectors = !needs.connectors.is_empty();
        let any = schemas || connectors || !needs.jobs.is_empty() || !needs.topics.is_empty();
        let missing = |service: &str, block: &str| {
            Diagnostic::new(
                Code::E208MissingConfig,
                format!("{service} is required by this plan and `{block}` is not set"),
            )
            .suggest(format!("add a `{block}` block to the project or to the selected environment"))
        };
        let kafka = match (any, &project.runtime.kafka) {
            (false, _) => None,
            (true, None) => return Err(missing("Kafka", "runtime.kafka")),
            (true, Some(runtime)) => Some(registry.kafka(runtime, &project.root)),
        };
        let schema_registry = match (schemas, &project.runtime.schema_registry) {
            (false, _) => None,
            (true, None) => return Err(missing("a Schema Registry", "runtime.schema_registry")),
            (true, Some(runtime)) => Some(registry.schema_registry(runtime, &project.root)),
        };
        let connect = match (connectors, &project.runtime.connect) {
            (false, _) => None,
            (true, None) => return Err(missing("Kafka Connect", "runtime.connect")),
            (true, Some(runtime)) => Some(registry.connect(runtime, &project.root)),
        };
        let flink = jobs::clusters(registry, &subject.compiled, &needs.jobs)?;
        Ok(Self { kafka, schema_registry, connect, flink })
    }
}

/// What the world looked like and what is to be done about it.
#[derive(Clone)]
pub struct Look {
    pub plan: Arc<Plan>,
    pub observations: Arc<Observations>,
    /// What could not be found out and does not keep the plan from being made.
    pub warnings: Diagnostics,
}

/// Why there is no plan.
pub enum NoPlan {
    /// A read was cancelled: by a signal, or because the lock is lost.
    Cancelled,
    Refused(Diagnostics),
}

impl From<Diagnostic> for NoPlan {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Refused(diagnostic.into())
    }
}

/// An answer of a provider actor; one that is gone counts as a read that was stopped.
pub(in crate::actors) fn answered<T>(
    reply: Result<Result<T, ProviderFailure>, MailboxError>,
) -> Result<T, ProviderFailure> {
    reply.unwrap_or(Err(ProviderFailure::Aborted { uncertain: false }))
}

/// Row 19: live observation and a fresh plan.
pub async fn look(
    subject: &Subject,
    state: Arc<OwnershipState>,
    providers: &Providers,
    purpose: Purpose,
    cancel: &CancellationToken,
    observer: &Observer,
) -> Result<Look, NoPlan> {
    let ctx = Ctx::new(purpose, OBSERVE_BUDGET, cancel.clone());
    let needs = subject.needs();
    let told = |kind: ProviderKind, doing: &str| {
        let doing = format!("{}: {doing}", kind.as_str());
        let cancel = cancel.clone();
        move |failure: ProviderFailure| match failure {
            ProviderFailure::Aborted { .. } if cancel.is_cancelled() => NoPlan::Cancelled,
            failure => failure.diagnostic(&doing).into(),
        }
    };
    let topics = async {
        let Some(kafka) = &providers.kafka else { return Ok(Default::default()) };
        observer(&OperationEvent::Observing { provider: ProviderKind::Kafka, resources: needs.topics.len() });
        if needs.topics.is_empty() {
            let probe = kafka::Probe { ctx: ctx.clone() };
            answered(kafka.send(probe).await).map_err(told(ProviderKind::Kafka, "connecting"))?;
            return Ok(Default::default());
        }
        let message = kafka::ObserveTopics { ctx: ctx.clone(), names: needs.topics.clone(), read: ConfigRead::Strict };
        answered(kafka.send(message).await).map_err(told(ProviderKind::Kafka, "reading topics"))
    };
    let inputs = async {
        let Some(kafka) = providers.kafka.as_ref().filter(|_| !needs.inputs.is_empty()) else {
            return Ok(Default::default());
        };
        let message = kafka::ObserveTopics { ctx: ctx.clone(), names: needs.inputs.clone(), read: ConfigRead::None };
        match answered(kafka.send(message).await) {
            Ok(seen) => Ok(seen.into_iter().filter(|(_, live)| !live.exists).map(|(name, _)| name).collect()),
            // Whoever may not see a topic of somebody else does not know whether it exists.
            Err(ProviderFailure::Auth { .. }) => Ok(Default::default()),
            Err(failure) => Err(told(ProviderKind::Kafka, "reading topics")(failure)),
        }
    };
    let schemas = async {
        let Some(registry) = &providers.schema_registry else { return Ok(Default::default()) };
        observer(&OperationEvent::Observing {
            provider: ProviderKind::SchemaRegistry,
            resources: needs.subjects.len(),
        });
        observe_schemas(subject, &needs, registry, &ctx)
            .await
            .map_err(told(ProviderKind::SchemaRegistry, "reading subjects"))
    };
    let connectors = async {
        let Some(workers) = &providers.connect else { return Ok(Default::default()) };
        let resources = needs.connectors.len();
        observer(&OperationEvent::Observing { provider: ProviderKind::KafkaConnect, resources });
        connectors::observe(subject, &needs.connectors, workers, &ctx)
            .await
            .map_err(told(ProviderKind::KafkaConnect, "reading connectors"))
    };
    let running = async {
        if needs.jobs.is_empty() {
            return Ok(Default::default());
        }
        observer(&OperationEvent::Observing { provider: ProviderKind::Flink, resources: needs.jobs.len() });
        jobs::observe(&subject.compiled, &needs.jobs, &providers.flink, &ctx)
            .await
            .map_err(told(ProviderKind::Flink, "reading jobs"))
    };
    let (topics, absent_inputs, (schemas, mut refused), jobs, connectors) =
        tokio::try_join!(topics, inputs, schemas, running, connectors)?;
    let ObservedConnectors { connectors, findings } = connectors;
    let (errors, warnings): (Vec<_>, Vec<_>) = findings.into_iter().partition(Diagnostic::is_error);
    refused.extend(errors);
    if refused.has_errors() {
        return Err(NoPlan::Refused(refused));
    }
    let mut observations = Observations { topics, absent_inputs, jobs, connectors, ..schemas };

    let first = decide(subject, &state, observations.clone()).await?;
    let first = Look { warnings: warnings.into(), ..first };
    let watched = first.plan.watched_topics();
    let Some(kafka) = providers.kafka.as_ref().filter(|_| !watched.is_empty()) else { return Ok(first) };
    let message = kafka::ConsumerLag { ctx: ctx.clone(), topics: watched, groups: Groups::All };
    observations.consumers = Some(match answered(kafka.send(message).await) {
        Ok(evidence) => evidence,
        Err(ProviderFailure::Aborted { .. }) if cancel.is_cancelled() => return Err(NoPlan::Cancelled),
        Err(_) => unreadable_consumers(),
    });
    let second = decide(subject, &state, observations).await?;
    Ok(Look { warnings: first.warnings, ..second })
}

fn unreadable_consumers() -> ConsumerEvidence {
    ConsumerEvidence {
        status: EvidenceStatus::Unavailable,
        reason: Some("consumer_group_listing_failed".to_owned()),
        failures: Vec::new(),
        groups: Default::default(),
    }
}

async fn observe_schemas(
    subject: &Subject,
    needs: &Needs,
    registry: &Addr<SchemaRegistryActor>,
    ctx: &Ctx,
) -> Result<(Observations, Diagnostics), ProviderFailure> {
    let subjects = async {
        let message = schema_registry::ObserveSubjects { ctx: ctx.clone(), subjects: needs.subjects.clone() };
        answered(registry.send(message).await)
    };
    let versions = stream::iter(&needs.versions)
        .map(|wanted| async move {
            let SubjectVersion { subject, version } = wanted.clone();
            let message = schema_registry::VersionOf { ctx: ctx.clone(), subject, version };
            let live = answered(registry.send(message).await)?.is_some();
            Ok::<_, ProviderFailure>(live.then(|| wanted.clone()))
        })
        .buffered(ASKED_AT_ONCE)
        .try_collect::<Vec<_>>();
    let numbers = stream::iter(&needs.numbered)
        .map(|name| async move {
            let message = schema_registry::NextVersion { ctx: ctx.clone(), subject: name.clone() };
            Ok::<_, ProviderFailure>((name.clone(), answered(registry.send(message).await)?))
        })
        .buffered(ASKED_AT_ONCE)
        .try_collect();
    let (subjects, versions, next_versions) = tokio::try_join!(subjects, versions, numbers)?;
    let mut observations = Observations {
        subjects,
        next_versions,
        live_versions: versions.into_iter().flatten().collect(),
        ..Observations::default()
    };

    let checks = compatibility_checks(&Desired::of(&subject.compiled), subject.selection.as_deref(), &observations);
    let schemas = &subject.compiled.artifacts.schemas;
    let wanted: Vec<_> =
        checks.iter().filter_map(|name| schemas.iter().find(|artifact| artifact.subject == *name)).collect();
    let latest = |subject: &str| observations.subjects.get(subject).and_then(|live| live.version);
    let held: Vec<(String, Option<u32>)> = stream::iter(wanted.iter().copied())
        .map(|artifact| async move {
            let message = schema_registry::VersionHolding { ctx: ctx.clone(), artifact: artifact.clone() };
            Ok::<_, ProviderFailure>((artifact.subject.clone(), answered(registry.send(message).await)?))
        })
        .buffered(ASKED_AT_ONCE)
        .try_collect()
        .await?;
    let older = held.iter().filter_map(|(subject, version)| {
        version.filter(|version| Some(*version) < latest(subject)).map(|version| superseded(subject, version))
    });
    let refused: Vec<Diagnostic> = older.collect();
    observations.verdicts = stream::iter(wanted)
        .map(|artifact| async move {
            let message = schema_registry::CheckCompatibility { ctx: ctx.clone(), artifact: artifact.clone() };
            let verdict = match answered(registry.send(message).await)? {
                Verdict::Compatible => CompatibilityVerdict::Compatible,
                Verdict::Incompatible { .. } => CompatibilityVerdict::Incompatible,
            };
            Ok::<_, ProviderFailure>((artifact.subject.clone(), verdict))
        })
        .buffered(ASKED_AT_ONCE)
        .try_collect()
        .await?;
    Ok((observations, refused.into()))
}

/// A registry answers the register of content that it has with the version that it has: the latest one would stay, and every
/// later plan would show the same change again.
fn superseded(subject: &str, version: u32) -> Diagnostic {
    let text = format!("subject '{subject}' holds the declared schema as its older version {version}");
    Diagnostic::new(Code::E213SchemaRegistryResolutionFailed, text).suggest(
        "a registry never makes an older version the latest again: declare the latest schema, or change this one (a 'doc' is enough) so that it becomes a new version",
    )
}

/// Plans beside the arbiter: a large plan must not delay the loss of a lock.
async fn decide(subject: &Subject, state: &Arc<OwnershipState>, observations: Observations) -> Result<Look, NoPlan> {
    let (subject, state) = (subject.clone(), Arc::clone(state));
    let job = tokio::task::spawn_blocking(move || {
        let desired = Desired::of(&subject.compiled);
        let evidence = Evidence::Online { state: &state, observations: &observations };
        let made = plan(PlanInput { desired: &desired, evidence, selection: subject.selection.as_deref() })?;
        Ok(Look { plan: Arc::new(made), observations: Arc::new(observations), warnings: Diagnostics::new() })
    });
    job.await
        .unwrap_or_else(|_| Err(Diagnostic::new(Code::E901Internal, "planning ended unexpectedly").into()))
        .map_err(NoPlan::Refused)
}
