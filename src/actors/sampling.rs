//! Reads what sample tests judge: each topic on its own, a few at once; then the schemas that its records name.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, Message};
use futures_util::{StreamExt, stream};

use super::coordinator::answered;
use super::registry::Registry;
use super::schema_registry::SchemaRegistryActor;
use crate::assertions::{WriterSchema, WriterSchemas, schema_ids};
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::SchemaType;
use crate::messages::operation::Control;
use crate::messages::samples::{SampleAnswer, SampleRequest};
use crate::messages::{kafka, schema_registry};
use crate::project::Project;
use crate::project::model::KafkaRuntime;
use crate::providers::{Ctx, ProviderFailure, Purpose};

/// Bound of one topic, its schemas included.
const BUDGET: Duration = Duration::from_secs(120);
const TOPICS_AT_ONCE: usize = 8;

/// Answers in the order of the requests.
#[derive(Message)]
#[rtype(result = "Vec<SampleAnswer>")]
pub(super) struct RunSamples {
    pub project: Arc<Project>,
    pub requests: Vec<SampleRequest>,
    pub control: Control,
}

/// Runs in the arbiter of the provider actors.
pub(super) async fn read(providers: Rc<Registry>, message: RunSamples) -> Vec<SampleAnswer> {
    let RunSamples { project, requests, control } = message;
    let cancel = control.cancel.requested();
    let (project, providers) = (project.as_ref(), providers.as_ref());
    stream::iter(requests)
        .map(|request| async move {
            let ctx = Ctx::new(Purpose::Test, BUDGET, cancel.clone());
            sample(project, providers, &ctx, &request).await
        })
        .buffered(TOPICS_AT_ONCE)
        .collect()
        .await
}

async fn sample(project: &Project, providers: &Registry, ctx: &Ctx, request: &SampleRequest) -> SampleAnswer {
    let runtime = project.runtime.kafka.as_ref().ok_or_else(|| Box::new(missing()))?;
    let kafka = match &request.servers {
        None => providers.kafka(runtime, &project.root),
        Some(servers) => {
            let proxy = KafkaRuntime { bootstrap_servers: servers.clone(), ..runtime.clone() };
            providers.kafka(&proxy, &project.root)
        }
    };
    let message = kafka::ReadSample { ctx: ctx.clone(), topic: request.topic.clone(), limit: request.limit };
    let told =
        |failure: ProviderFailure| Box::new(failure.diagnostic(&format!("topic:{}: reading records", request.topic)));
    let sample = answered(kafka.send(message).await).map_err(told)?;
    let mut schemas = WriterSchemas::new();
    let registry = project.runtime.schema_registry.as_ref();
    let registry = registry.map(|runtime| providers.schema_registry(runtime, &project.root));
    for id in schema_ids(&sample.records) {
        let schema = match &registry {
            None => WriterSchema::Unavailable("`runtime.schema_registry` is not set".to_owned()),
            Some(registry) => match writer(registry, ctx, id).await {
                Ok(Some(schema)) => schema,
                Ok(None) => WriterSchema::Unavailable("the registry has no such schema".to_owned()),
                Err(failure) => WriterSchema::Unavailable(format!("reading it {failure}")),
            },
        };
        schemas.insert(id, schema);
    }
    Ok((sample, schemas))
}

/// A schema and all that it refers to.
async fn writer(
    registry: &Addr<SchemaRegistryActor>,
    ctx: &Ctx,
    id: u32,
) -> Result<Option<WriterSchema>, ProviderFailure> {
    let message = schema_registry::SchemaById { ctx: ctx.clone(), id };
    let Some(found) = answered(registry.send(message).await)? else { return Ok(None) };
    Ok(Some(match found.schema_type {
        SchemaType::Json => WriterSchema::Json,
        SchemaType::Protobuf => WriterSchema::Protobuf,
        SchemaType::Avro => {
            let mut references = Vec::new();
            for reference in found.references {
                let (subject, version) = (reference.subject, reference.version);
                let message = schema_registry::ReferencesOf { ctx: ctx.clone(), subject, version };
                references.extend(answered(registry.send(message).await)?.into_iter().map(|found| found.schema));
            }
            WriterSchema::Avro { definition: found.schema, references }
        }
    }))
}

fn missing() -> Diagnostic {
    Diagnostic::new(Code::E208MissingConfig, "`runtime.kafka` is not set")
        .suggest("add a `runtime.kafka` block to the project or to the selected environment")
}
