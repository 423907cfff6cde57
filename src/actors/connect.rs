//! One Kafka Connect worker cluster and credential: 8 reads in flight, one mutation, a mailbox of 64.

use std::path::Path;
use std::rc::Rc;

use actix::{Actor, Context, Handler, Message, ResponseFuture};

use super::provider::{self, Permits, Watched};
use crate::actors::lease::ActionLease;
use crate::messages::connect::{
    CreateConnector, DeleteManaged, ObserveManaged, Probe, StatusOf, UpdateConnector, ValidateConfig,
};
use crate::project::model::ConnectRuntime;
use crate::providers::{ConnectClient, Ctx, ProviderFailure};

const MAILBOX: usize = 64;
const READS: usize = 8;

/// The actor of one worker cluster under one credential.
pub struct ConnectActor {
    /// A client that cannot be built answers every message with the reason.
    client: Rc<Result<ConnectClient, ProviderFailure>>,
    reads: Permits,
    mutations: Permits,
}

type Reply<M> = ResponseFuture<<M as Message>::Result>;

impl ConnectActor {
    /// `project_root` resolves relative TLS files.
    pub fn new(runtime: &ConnectRuntime, project_root: &Path) -> Self {
        let client = Rc::new(ConnectClient::new(runtime, project_root));
        Self { client, reads: Permits::new(READS), mutations: Permits::new(1) }
    }

    fn read<T: 'static>(
        &self,
        context: &mut Context<Self>,
        ctx: Ctx,
        work: impl AsyncFnOnce(&ConnectClient, &Ctx) -> Result<T, ProviderFailure> + 'static,
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
        work: impl AsyncFnOnce(&ConnectClient, &Watched) -> Result<T, ProviderFailure> + 'static,
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

impl Actor for ConnectActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Probe> for ConnectActor {
    type Result = Reply<Probe>;

    fn handle(&mut self, message: Probe, context: &mut Self::Context) -> Self::Result {
        self.read(context, message.ctx, async |client, ctx| client.probe(ctx).await)
    }
}

impl Handler<ObserveManaged> for ConnectActor {
    type Result = Reply<ObserveManaged>;

    fn handle(&mut self, message: ObserveManaged, context: &mut Self::Context) -> Self::Result {
        let ObserveManaged { ctx, names } = message;
        self.read(context, ctx, async move |client, ctx| client.observe(ctx, &names).await)
    }
}

impl Handler<StatusOf> for ConnectActor {
    type Result = Reply<StatusOf>;

    fn handle(&mut self, message: StatusOf, context: &mut Self::Context) -> Self::Result {
        let StatusOf { ctx, name } = message;
        self.read(context, ctx, async move |client, ctx| client.status(ctx, &name).await)
    }
}

impl Handler<ValidateConfig> for ConnectActor {
    type Result = Reply<ValidateConfig>;

    fn handle(&mut self, message: ValidateConfig, context: &mut Self::Context) -> Self::Result {
        let ValidateConfig { ctx, artifact } = message;
        self.read(context, ctx, async move |client, ctx| client.validate(ctx, &artifact).await)
    }
}

impl Handler<CreateConnector> for ConnectActor {
    type Result = Reply<CreateConnector>;

    fn handle(&mut self, message: CreateConnector, context: &mut Self::Context) -> Self::Result {
        let CreateConnector { lease, ctx, artifact } = message;
        self.mutate(context, lease, async move |client, guard| client.create(&ctx, guard, &artifact).await)
    }
}

impl Handler<UpdateConnector> for ConnectActor {
    type Result = Reply<UpdateConnector>;

    fn handle(&mut self, message: UpdateConnector, context: &mut Self::Context) -> Self::Result {
        let UpdateConnector { lease, ctx, current, artifact } = message;
        self.mutate(context, lease, async move |client, guard| client.update(&ctx, guard, &current, &artifact).await)
    }
}

impl Handler<DeleteManaged> for ConnectActor {
    type Result = Reply<DeleteManaged>;

    fn handle(&mut self, message: DeleteManaged, context: &mut Self::Context) -> Self::Result {
        let DeleteManaged { lease, ctx, current } = message;
        self.mutate(context, lease, async move |client, guard| {
            client.delete_managed_connector(&ctx, guard, &current).await
        })
    }
}
