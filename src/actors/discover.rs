//! Discovery for `import`: topics by their names, then each of them, then the value subjects of those that nobody declares. No
//! lock, no state, nothing but reads.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::coordinator::answered;
use super::registry::Registry;
use crate::codes::{Code, Diagnostic};
use crate::messages::discover::{DiscoverRequest, Discovered, FoundSchema, FoundTopic, Lookup, Subjects};
use crate::messages::operation::{Observer, OperationEvent, ProviderKind};
use crate::messages::{kafka, schema_registry};
use crate::planner::observation::{SchemaObservation, TopicObservation};
use crate::providers::kafka::ConfigRead;
use crate::providers::schema_registry::RegisteredSchema;
use crate::providers::{Ctx, ProviderFailure, Purpose, Reply};

/// Bound of one whole discovery.
const BUDGET: Duration = Duration::from_secs(300);
/// Subjects asked for side by side; an outage is noticed before the next ones are asked for.
const ASKED_AT_ONCE: usize = 8;

/// E701 and the codes of a connection; E208 without a cluster.
pub(super) async fn discover(
    request: DiscoverRequest,
    registry: &Registry,
    observer: &Observer,
    cancel: CancellationToken,
) -> Result<Discovered, Diagnostic> {
    let ctx = Ctx::new(Purpose::Import, BUDGET, cancel);
    let DiscoverRequest { project, wanted, known, subjects, named, configs } = request;
    let runtime = project.runtime.kafka.as_ref().ok_or_else(|| {
        Diagnostic::new(Code::E208MissingConfig, "an import reads a Kafka cluster and `runtime.kafka` is not set")
            .suggest("add a `runtime.kafka` block to the project or to the selected environment")
    })?;
    let cluster = registry.kafka(runtime, &project.root);
    let all = answered(cluster.send(kafka::ListTopics { ctx: ctx.clone() }).await).map_err(told("listing topics"))?;
    let names: Vec<String> = all.into_iter().filter(|name| wanted(name)).collect();
    observer(&OperationEvent::Observing { provider: ProviderKind::Kafka, resources: names.len() });
    let read = if configs { ConfigRead::Strict } else { ConfigRead::None };
    let mut observed = match names.is_empty() {
        true => Default::default(),
        false => {
            let message = kafka::ObserveTopics { ctx: ctx.clone(), names: names.clone(), read };
            answered(cluster.send(message).await).map_err(told("describing topics"))?
        }
    };
    let topics: Vec<TopicObservation> =
        names.into_iter().map(|name| complete(name.clone(), observed.remove(&name))).collect::<Result<_, _>>()?;

    if let Some(absent) = named.keys().find(|topic| topics.iter().all(|found| found.name != **topic)) {
        let text =
            format!("Kafka: topic '{absent}', for which a subject is named, is not among the topics that were found");
        return Err(Diagnostic::new(Code::E701ImportDiscoveryFailed, text)
            .suggest("correct --subject TOPIC=SUBJECT, or what --include and --exclude choose"));
    }
    let asked: Vec<&str> =
        topics.iter().map(|topic| topic.name.as_str()).filter(|name| !known.contains(*name)).collect();
    let service = project.runtime.schema_registry.as_ref().filter(|_| subjects != Subjects::Nothing);
    let mut found = BTreeMap::new();
    if let Some(runtime) = service {
        observer(&OperationEvent::Observing { provider: ProviderKind::SchemaRegistry, resources: asked.len() });
        let actor = registry.schema_registry(runtime, &project.root);
        let mut out = false;
        for some in asked.chunks(ASKED_AT_ONCE) {
            let answers = join_all(some.iter().filter(|_| !out).map(|topic| {
                let (subject, ctx) = (subject_of(topic, &named), ctx.clone());
                let actor = &actor;
                async move {
                    match subjects {
                        Subjects::Whole => {
                            let message = schema_registry::ObserveSubjects { ctx, subjects: vec![subject.clone()] };
                            answered(actor.send(message).await)
                                .map(|mut all| all.remove(&subject).and_then(|live| whole(subject, live)))
                        }
                        Subjects::Latest | Subjects::Nothing => {
                            let message = schema_registry::LatestOf { ctx, subject: subject.clone() };
                            answered(actor.send(message).await).map(|latest| latest.map(|latest| of(subject, latest)))
                        }
                    }
                }
            }))
            .await;
            for (topic, answer) in some.iter().zip(answers) {
                let chosen = named.get(*topic);
                let lookup = match answer {
                    // A person named it: without it the declaration would say something else than was asked for.
                    Ok(None) if chosen.is_some() => return Err(absent_subject(topic, &subject_of(topic, &named))),
                    Err(failure) if chosen.is_some() => {
                        return Err(told("reading the subjects that are named")(failure));
                    }
                    Ok(Some(schema)) => Lookup::Resolved(Box::new(schema)),
                    Ok(None) => Lookup::NotFound,
                    Err(failure) => {
                        out |= is_outage(&failure);
                        let doing = format!("schema:{}: reading", subject_of(topic, &named));
                        Lookup::Failed(Box::new(failure.diagnostic(&doing)))
                    }
                };
                found.insert((*topic).to_owned(), lookup);
            }
        }
        for topic in &asked {
            found.entry((*topic).to_owned()).or_insert(Lookup::Skipped);
        }
    }
    Ok(topics
        .into_iter()
        .map(|topic| FoundTopic { schema: found.remove(&topic.name).unwrap_or(Lookup::NotRequested), topic })
        .collect())
}

/// The conventional subject, unless another one is named.
fn subject_of(topic: &str, named: &BTreeMap<String, String>) -> String {
    named.get(topic).cloned().unwrap_or_else(|| format!("{topic}-value"))
}

fn absent_subject(topic: &str, subject: &str) -> Diagnostic {
    let text = format!("the subject '{subject}', named for topic '{topic}', does not exist");
    Diagnostic::new(Code::E701ImportDiscoveryFailed, text).suggest("correct --subject TOPIC=SUBJECT")
}

fn of(subject: String, latest: RegisteredSchema) -> FoundSchema {
    FoundSchema {
        subject,
        version: latest.version,
        schema: latest.schema,
        schema_type: latest.schema_type,
        references: latest.references,
        compatibility: None,
    }
}

/// None for a subject that does not exist.
fn whole(subject: String, live: SchemaObservation) -> Option<FoundSchema> {
    Some(FoundSchema {
        subject,
        version: live.version?,
        schema: live.schema?,
        schema_type: live.schema_type?,
        references: live.references,
        compatibility: live.own_compatibility,
    })
}

/// E701 for a topic that went away, or of which a part is missing.
fn complete(name: String, seen: Option<TopicObservation>) -> Result<TopicObservation, Diagnostic> {
    match seen {
        Some(topic) if topic.exists && topic.partitions.is_some() && topic.replication_factor.is_some() => Ok(topic),
        Some(_) | None => {
            let text = format!("Kafka: topic '{name}' is listed and cannot be described: it was deleted meanwhile");
            Err(Diagnostic::new(Code::E701ImportDiscoveryFailed, text).suggest("run the command again"))
        }
    }
}

/// Whether the registry as a whole, and not one subject, is the trouble.
fn is_outage(failure: &ProviderFailure) -> bool {
    match failure {
        ProviderFailure::SchemaTypeUnsupported { .. }
        | ProviderFailure::Unreadable { .. }
        | ProviderFailure::Protocol { .. }
        | ProviderFailure::TooLarge
        | ProviderFailure::Ambiguous { .. }
        | ProviderFailure::NotFound => false,
        ProviderFailure::Rejected { reply: Reply::Http { status, .. }, .. } => *status >= 500,
        ProviderFailure::Rejected { reply: Reply::Kafka { .. }, .. } => false,
        ProviderFailure::Config { .. }
        | ProviderFailure::ConfigInvalid { .. }
        | ProviderFailure::Tls { .. }
        | ProviderFailure::Auth { .. }
        | ProviderFailure::Unreachable
        | ProviderFailure::IdentityProviderUnreachable
        | ProviderFailure::Timeout
        | ProviderFailure::Unsupported { .. }
        | ProviderFailure::Conflict { .. }
        | ProviderFailure::CannotReducePartitions { .. }
        | ProviderFailure::Aborted { .. }
        | ProviderFailure::Busy { .. }
        | ProviderFailure::RemovalDrift
        | ProviderFailure::NoSqlGateway
        | ProviderFailure::SqlRefused { .. }
        | ProviderFailure::Uncertain { .. }
        | ProviderFailure::Partial { .. } => true,
    }
}

fn told(doing: &'static str) -> impl FnOnce(ProviderFailure) -> Diagnostic {
    move |failure| undiscovered(failure.diagnostic(&format!("Kafka: {doing}")))
}

/// A failure of no other class is one of the discovery.
pub(super) fn undiscovered(error: Diagnostic) -> Diagnostic {
    match error.code {
        Code::E407DeployError => Diagnostic { code: Code::E701ImportDiscoveryFailed, ..error },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADO-030: a topic that cannot be described completely fails the whole discovery.
    #[test]
    fn a_topic_without_its_parts_is_no_discovery() {
        let whole = TopicObservation {
            name: "a".into(),
            exists: true,
            partitions: Some(1),
            replication_factor: Some(1),
            config: Default::default(),
        };
        assert_eq!(complete("a".into(), Some(whole.clone())), Ok(whole.clone()));
        for seen in [
            None,
            Some(TopicObservation::absent("a")),
            Some(TopicObservation { partitions: None, ..whole.clone() }),
            Some(TopicObservation { replication_factor: None, ..whole }),
        ] {
            assert_eq!(complete("a".into(), seen).unwrap_err().code, Code::E701ImportDiscoveryFailed);
        }
        let failed = |failure| told("describing topics")(failure).code;
        assert_eq!(failed(ProviderFailure::Protocol { what: "x" }), Code::E701ImportDiscoveryFailed);
        assert_eq!(failed(ProviderFailure::Unreachable), Code::E406ConnectionRefused);
        assert_eq!(failed(ProviderFailure::Auth { text: None }), Code::E404AuthFailed);
    }

    /// ADO-031
    #[test]
    fn one_subject_that_cannot_be_read_is_no_outage() {
        let rejected =
            |status| ProviderFailure::Rejected { reply: Reply::Http { status, error_code: None }, text: None };
        for one in [rejected(422), ProviderFailure::TooLarge, ProviderFailure::Protocol { what: "x" }] {
            assert!(!is_outage(&one), "{one:?}");
        }
        for all in [
            rejected(503),
            ProviderFailure::Unreachable,
            ProviderFailure::Timeout,
            ProviderFailure::Auth { text: None },
        ] {
            assert!(is_outage(&all), "{all:?}");
        }
    }
}
