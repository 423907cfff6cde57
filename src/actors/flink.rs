//! One Flink cluster and credential: 4 reads in flight, one submission, a mailbox of 32.

use std::path::Path;

use actix::{Actor, Context, Handler, Message, ResponseFuture};

use super::provider::Desk;
use crate::messages::flink::{ExplainJob, FailuresOf, ObserveJobs, Probe, SubmitJob};
use crate::project::model::{FlinkCluster, KafkaRuntime, SchemaRegistryRuntime};
use crate::providers::FlinkClient;

const MAILBOX: usize = 32;
const READS: usize = 4;

/// The actor of one cluster under one credential, for jobs that log in to one Kafka and one registry.
pub struct FlinkActor {
    desk: Desk<FlinkClient>,
}

type Reply<M> = ResponseFuture<<M as Message>::Result>;

impl FlinkActor {
    /// `project_root` resolves relative TLS files.
    pub fn new(
        cluster: &FlinkCluster,
        kafka: Option<&KafkaRuntime>,
        registry: Option<&SchemaRegistryRuntime>,
        project_root: &Path,
    ) -> Self {
        Self { desk: Desk::new(FlinkClient::new(cluster, kafka, registry, project_root), READS) }
    }
}

impl Actor for FlinkActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Probe> for FlinkActor {
    type Result = Reply<Probe>;

    fn handle(&mut self, message: Probe, context: &mut Self::Context) -> Self::Result {
        self.desk.read(self, context, message.ctx, async |client, ctx| client.probe(ctx).await)
    }
}

impl Handler<ObserveJobs> for FlinkActor {
    type Result = Reply<ObserveJobs>;

    fn handle(&mut self, message: ObserveJobs, context: &mut Self::Context) -> Self::Result {
        let ObserveJobs { ctx, names } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.observe(ctx, &names).await)
    }
}

impl Handler<FailuresOf> for FlinkActor {
    type Result = Reply<FailuresOf>;

    fn handle(&mut self, message: FailuresOf, context: &mut Self::Context) -> Self::Result {
        let FailuresOf { ctx, jobs } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.failures(ctx, &jobs).await)
    }
}

impl Handler<ExplainJob> for FlinkActor {
    type Result = Reply<ExplainJob>;

    fn handle(&mut self, message: ExplainJob, context: &mut Self::Context) -> Self::Result {
        let ExplainJob { ctx, artifact } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.explain(ctx, &artifact).await)
    }
}

impl Handler<SubmitJob> for FlinkActor {
    type Result = Reply<SubmitJob>;

    fn handle(&mut self, message: SubmitJob, context: &mut Self::Context) -> Self::Result {
        let SubmitJob { lease, ctx, artifact, id } = message;
        self.desk
            .mutate(self, context, lease, async move |client, guard| client.submit(&ctx, guard, &artifact, &id).await)
    }
}
