//! Named resources as they are, for recovery and adoption: each service is asked for its own, all side by side, and one that
//! nothing is asked of is not contacted.

use super::jobs;
use super::observe::answered;
use crate::actors::registry::Registry;
use crate::codes::{Code, Diagnostic};
use crate::compiler::Compiled;
use crate::messages::operation::{OperationEvent, ProviderKind};
use crate::messages::{connect, kafka, schema_registry};
use crate::planner::connector::ConnectorName;
use crate::planner::observation::Observations;
use crate::providers::kafka::ConfigRead;
use crate::providers::{Ctx, ProviderFailure};
use crate::state::recovery::Questions;

/// On whose behalf it is asked, for the words of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asker {
    Recovery,
    Adoption,
}

impl Asker {
    fn told(self, kind: ProviderKind) -> impl FnOnce(ProviderFailure) -> Diagnostic {
        let what = match self {
            Self::Recovery => "reading the targets of the blocked operation",
            Self::Adoption => "reading what is to be adopted",
        };
        move |failure| failure.diagnostic(&format!("{}: {what}", kind.as_str()))
    }

    /// E208.
    fn missing(self, block: &str) -> Diagnostic {
        let (who, hint) = match self {
            Self::Recovery => ("the blocked operation", "restore the configuration that the operation ran with"),
            Self::Adoption => ("the adoption", "add the block to the project or to the selected environment"),
        };
        Diagnostic::new(Code::E208MissingConfig, format!("{who} needs `{block}`, which is not set")).suggest(hint)
    }
}

pub async fn observe(
    compiled: &Compiled,
    registry: &Registry,
    asked: &Questions,
    ctx: &Ctx,
    asker: Asker,
    tell: impl Fn(OperationEvent),
) -> Result<Observations, Diagnostic> {
    let (runtime, root) = (&compiled.project.runtime, &compiled.project.root);
    let topics = async {
        if asked.topics.is_empty() {
            return Ok(Default::default());
        }
        let runtime = runtime.kafka.as_ref().ok_or_else(|| asker.missing("runtime.kafka"))?;
        tell(OperationEvent::Observing { provider: ProviderKind::Kafka, resources: asked.topics.len() });
        let message = kafka::ObserveTopics { ctx: ctx.clone(), names: asked.topics.clone(), read: ConfigRead::Strict };
        answered(registry.kafka(runtime, root).send(message).await).map_err(asker.told(ProviderKind::Kafka))
    };
    let subjects = async {
        if asked.subjects.is_empty() {
            return Ok(Default::default());
        }
        let runtime = runtime.schema_registry.as_ref().ok_or_else(|| asker.missing("runtime.schema_registry"))?;
        tell(OperationEvent::Observing { provider: ProviderKind::SchemaRegistry, resources: asked.subjects.len() });
        let message = schema_registry::ObserveSubjects { ctx: ctx.clone(), subjects: asked.subjects.clone() };
        answered(registry.schema_registry(runtime, root).send(message).await)
            .map_err(asker.told(ProviderKind::SchemaRegistry))
    };
    let connectors = async {
        if asked.connectors.is_empty() {
            return Ok(Default::default());
        }
        let runtime = runtime.connect.as_ref().ok_or_else(|| asker.missing("runtime.connect"))?;
        tell(OperationEvent::Observing { provider: ProviderKind::KafkaConnect, resources: asked.connectors.len() });
        let names = asked.connectors.iter().filter_map(|name| ConnectorName::new(name)).collect();
        let message = connect::ObserveManaged { ctx: ctx.clone(), names };
        answered(registry.connect(runtime, root).send(message).await).map_err(asker.told(ProviderKind::KafkaConnect))
    };
    let running = async {
        if asked.jobs.is_empty() {
            return Ok(Default::default());
        }
        tell(OperationEvent::Observing { provider: ProviderKind::Flink, resources: asked.jobs.len() });
        let clusters = jobs::clusters(registry, compiled, &asked.jobs)?;
        jobs::observe(compiled, &asked.jobs, &clusters, ctx).await.map_err(asker.told(ProviderKind::Flink))
    };
    let (topics, subjects, connectors, jobs) = tokio::try_join!(topics, subjects, connectors, running)?;
    Ok(Observations { topics, subjects, connectors, jobs, ..Observations::default() })
}
