//! One Flink cluster and credential: 4 reads in flight, one submission, a mailbox of 32.

use std::path::Path;
use std::rc::Rc;

use actix::{Actor, Context, Handler, Message, ResponseFuture};

use super::provider::{self, Permits, Watched};
use crate::actors::lease::ActionLease;
use crate::messages::flink::{ExplainJob, FailureOf, ObserveJobs, Probe, SubmitJob};
use crate::project::model::{FlinkCluster, KafkaRuntime, SchemaRegistryRuntime};
use crate::providers::{Ctx, FlinkClient, ProviderFailure};

const MAILBOX: usize = 32;
const READS: usize = 4;

/// The actor of one cluster under one credential, for jobs that log in to one Kafka and one registry.
pub struct FlinkActor {
    /// A client that cannot be built answers every message with the reason.
    client: Rc<Result<FlinkClient, ProviderFailure>>,
    reads: Permits,
    mutations: Permits,
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
        let client = Rc::new(FlinkClient::new(cluster, kafka, registry, project_root));
        Self { client, reads: Permits::new(READS), mutations: Permits::new(1) }
    }

    fn read<T: 'static>(
        &self,
        context: &mut Context<Self>,
        ctx: Ctx,
        work: impl AsyncFnOnce(&FlinkClient, &Ctx) -> Result<T, ProviderFailure> + 'static,
    ) -> ResponseFuture<Result<T, ProviderFailure>> {
        self.reads.hold_mailbox(self, context);
        let (permits, client) = (self.reads.clone(), Rc::clone(&self.client));
        Box::pin(async move {
            provider::read(permits, &ctx, async {
                match client.as_ref() {
                    Ok(client) => work(client, &ctx).await,
                    Err(failure) => Err(failure.clone()),
                }
            })
            .await
        })
    }

    fn mutate<T: 'static>(
        &self,
        context: &mut Context<Self>,
        lease: ActionLease,
        work: impl AsyncFnOnce(&FlinkClient, &Watched) -> Result<T, ProviderFailure> + 'static,
    ) -> ResponseFuture<Result<T, ProviderFailure>> {
        self.mutations.hold_mailbox(self, context);
        let (permits, client) = (self.mutations.clone(), Rc::clone(&self.client));
        let work = async move |guard: &Watched| match client.as_ref() {
            Ok(client) => work(client, guard).await,
            Err(failure) => Err(failure.clone()),
        };
        Box::pin(provider::mutate(permits, lease, work, Err))
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
        self.read(context, message.ctx, async |client, ctx| client.probe(ctx).await)
    }
}

impl Handler<ObserveJobs> for FlinkActor {
    type Result = Reply<ObserveJobs>;

    fn handle(&mut self, message: ObserveJobs, context: &mut Self::Context) -> Self::Result {
        let ObserveJobs { ctx, names } = message;
        self.read(context, ctx, async move |client, ctx| client.observe(ctx, &names).await)
    }
}

impl Handler<FailureOf> for FlinkActor {
    type Result = Reply<FailureOf>;

    fn handle(&mut self, message: FailureOf, context: &mut Self::Context) -> Self::Result {
        let FailureOf { ctx, id } = message;
        self.read(context, ctx, async move |client, ctx| client.failure(ctx, &id).await)
    }
}

impl Handler<ExplainJob> for FlinkActor {
    type Result = Reply<ExplainJob>;

    fn handle(&mut self, message: ExplainJob, context: &mut Self::Context) -> Self::Result {
        let ExplainJob { ctx, artifact } = message;
        self.read(context, ctx, async move |client, ctx| client.explain(ctx, &artifact).await)
    }
}

impl Handler<SubmitJob> for FlinkActor {
    type Result = Reply<SubmitJob>;

    fn handle(&mut self, message: SubmitJob, context: &mut Self::Context) -> Self::Result {
        let SubmitJob { lease, ctx, artifact, id } = message;
        self.mutate(context, lease, async move |client, guard| client.submit(&ctx, guard, &artifact, &id).await)
    }
}
