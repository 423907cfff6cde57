//! One Kafka Connect worker cluster and credential: 8 reads in flight, one mutation, a mailbox of 64.

use std::path::Path;

use actix::{Actor, Context, Handler, Message, ResponseFuture};

use super::provider::Desk;
use crate::messages::connect::{
    CreateConnector, DeleteManaged, ListConnectors, ObserveManaged, Probe, StatusOf, UpdateConnector, ValidateConfigs,
    ValueTypes,
};
use crate::project::model::ConnectRuntime;
use crate::providers::ConnectClient;

const MAILBOX: usize = 64;
const READS: usize = 8;

/// The actor of one worker cluster under one credential.
pub struct ConnectActor {
    desk: Desk<ConnectClient>,
}

type Reply<M> = ResponseFuture<<M as Message>::Result>;

impl ConnectActor {
    /// `project_root` resolves relative TLS files.
    pub fn new(runtime: &ConnectRuntime, project_root: &Path) -> Self {
        Self { desk: Desk::new(ConnectClient::new(runtime, project_root), READS) }
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
        self.desk.read(self, context, message.ctx, async |client, ctx| client.probe(ctx).await)
    }
}

impl Handler<ObserveManaged> for ConnectActor {
    type Result = Reply<ObserveManaged>;

    fn handle(&mut self, message: ObserveManaged, context: &mut Self::Context) -> Self::Result {
        let ObserveManaged { ctx, names } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.observe(ctx, &names).await)
    }
}

impl Handler<StatusOf> for ConnectActor {
    type Result = Reply<StatusOf>;

    fn handle(&mut self, message: StatusOf, context: &mut Self::Context) -> Self::Result {
        let StatusOf { ctx, name } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.status(ctx, &name).await)
    }
}

impl Handler<ValidateConfigs> for ConnectActor {
    type Result = Reply<ValidateConfigs>;

    fn handle(&mut self, message: ValidateConfigs, context: &mut Self::Context) -> Self::Result {
        let ValidateConfigs { ctx, artifacts } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.validate(ctx, &artifacts).await)
    }
}

impl Handler<ListConnectors> for ConnectActor {
    type Result = Reply<ListConnectors>;

    fn handle(&mut self, message: ListConnectors, context: &mut Self::Context) -> Self::Result {
        self.desk.read(self, context, message.ctx, async |client, ctx| client.list(ctx).await)
    }
}

impl Handler<ValueTypes> for ConnectActor {
    type Result = Reply<ValueTypes>;

    fn handle(&mut self, message: ValueTypes, context: &mut Self::Context) -> Self::Result {
        let ValueTypes { ctx, class } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.value_types(ctx, &class).await)
    }
}

impl Handler<CreateConnector> for ConnectActor {
    type Result = Reply<CreateConnector>;

    fn handle(&mut self, message: CreateConnector, context: &mut Self::Context) -> Self::Result {
        let CreateConnector { lease, ctx, artifact } = message;
        self.desk.mutate(self, context, lease, async move |client, guard| client.create(&ctx, guard, &artifact).await)
    }
}

impl Handler<UpdateConnector> for ConnectActor {
    type Result = Reply<UpdateConnector>;

    fn handle(&mut self, message: UpdateConnector, context: &mut Self::Context) -> Self::Result {
        let UpdateConnector { lease, ctx, current, artifact } = message;
        self.desk.mutate(self, context, lease, async move |client, guard| {
            client.update(&ctx, guard, &current, &artifact).await
        })
    }
}

impl Handler<DeleteManaged> for ConnectActor {
    type Result = Reply<DeleteManaged>;

    fn handle(&mut self, message: DeleteManaged, context: &mut Self::Context) -> Self::Result {
        let DeleteManaged { lease, ctx, current } = message;
        self.desk.mutate(self, context, lease, async move |client, guard| {
            client.delete_managed_connector(&ctx, guard, &current).await
        })
    }
}
