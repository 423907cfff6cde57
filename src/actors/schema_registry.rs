//! One Schema Registry and credential: 8 reads in flight, one mutation, a mailbox of 64.

use std::path::Path;
use std::rc::Rc;

use actix::{Actor, Context, Handler, Message, ResponseFuture};

use super::provider::{self, Permits, Watched};
use crate::actors::lease::ActionLease;
use crate::messages::schema_registry::{
    CheckCompatibility, LatestOf, ListSubjects, NextVersion, ObserveSubjects, Probe, ReferencesOf, Register,
    SchemaById, SetCompatibility, VersionHolding, VersionOf,
};
use crate::project::model::SchemaRegistryRuntime;
use crate::providers::{Ctx, ProviderFailure, RegistryClient};

const MAILBOX: usize = 64;
const READS: usize = 8;

/// The actor of one schema registry under one credential.
pub struct SchemaRegistryActor {
    /// A client that cannot be built answers every message with the reason.
    client: Rc<Result<RegistryClient, ProviderFailure>>,
    reads: Permits,
    mutations: Permits,
}

type Reply<M> = ResponseFuture<<M as Message>::Result>;

impl SchemaRegistryActor {
    /// `project_root` resolves relative TLS files.
    pub fn new(runtime: &SchemaRegistryRuntime, project_root: &Path) -> Self {
        let client = Rc::new(RegistryClient::new(runtime, project_root));
        Self { client, reads: Permits::new(READS), mutations: Permits::new(1) }
    }

    fn read<T: 'static>(
        &self,
        context: &mut Context<Self>,
        ctx: Ctx,
        work: impl AsyncFnOnce(&RegistryClient, &Ctx) -> Result<T, ProviderFailure> + 'static,
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
        work: impl AsyncFnOnce(&RegistryClient, &Watched) -> Result<T, ProviderFailure> + 'static,
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

impl Actor for SchemaRegistryActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Probe> for SchemaRegistryActor {
    type Result = Reply<Probe>;

    fn handle(&mut self, message: Probe, context: &mut Self::Context) -> Self::Result {
        self.read(context, message.ctx, async |client, ctx| client.probe(ctx).await)
    }
}

impl Handler<ListSubjects> for SchemaRegistryActor {
    type Result = Reply<ListSubjects>;

    fn handle(&mut self, message: ListSubjects, context: &mut Self::Context) -> Self::Result {
        self.read(context, message.ctx, async |client, ctx| client.list_subjects(ctx).await)
    }
}

impl Handler<ObserveSubjects> for SchemaRegistryActor {
    type Result = Reply<ObserveSubjects>;

    fn handle(&mut self, message: ObserveSubjects, context: &mut Self::Context) -> Self::Result {
        let ObserveSubjects { ctx, subjects } = message;
        self.read(context, ctx, async move |client, ctx| client.observe_subjects(ctx, &subjects).await)
    }
}

impl Handler<LatestOf> for SchemaRegistryActor {
    type Result = Reply<LatestOf>;

    fn handle(&mut self, message: LatestOf, context: &mut Self::Context) -> Self::Result {
        let LatestOf { ctx, subject } = message;
        self.read(context, ctx, async move |client, ctx| client.latest(ctx, &subject).await)
    }
}

impl Handler<VersionOf> for SchemaRegistryActor {
    type Result = Reply<VersionOf>;

    fn handle(&mut self, message: VersionOf, context: &mut Self::Context) -> Self::Result {
        let VersionOf { ctx, subject, version } = message;
        self.read(context, ctx, async move |client, ctx| client.version(ctx, &subject, version).await)
    }
}

impl Handler<SchemaById> for SchemaRegistryActor {
    type Result = Reply<SchemaById>;

    fn handle(&mut self, message: SchemaById, context: &mut Self::Context) -> Self::Result {
        let SchemaById { ctx, id } = message;
        self.read(context, ctx, async move |client, ctx| client.schema_by_id(ctx, id).await)
    }
}

impl Handler<ReferencesOf> for SchemaRegistryActor {
    type Result = Reply<ReferencesOf>;

    fn handle(&mut self, message: ReferencesOf, context: &mut Self::Context) -> Self::Result {
        let ReferencesOf { ctx, subject, version } = message;
        self.read(context, ctx, async move |client, ctx| client.references_of(ctx, &subject, version).await)
    }
}

impl Handler<NextVersion> for SchemaRegistryActor {
    type Result = Reply<NextVersion>;

    fn handle(&mut self, message: NextVersion, context: &mut Self::Context) -> Self::Result {
        let NextVersion { ctx, subject } = message;
        self.read(context, ctx, async move |client, ctx| client.next_version(ctx, &subject).await)
    }
}

impl Handler<CheckCompatibility> for SchemaRegistryActor {
    type Result = Reply<CheckCompatibility>;

    fn handle(&mut self, message: CheckCompatibility, context: &mut Self::Context) -> Self::Result {
        let CheckCompatibility { ctx, artifact } = message;
        self.read(context, ctx, async move |client, ctx| client.check_compatibility(ctx, &artifact).await)
    }
}

impl Handler<VersionHolding> for SchemaRegistryActor {
    type Result = Reply<VersionHolding>;

    fn handle(&mut self, message: VersionHolding, context: &mut Self::Context) -> Self::Result {
        let VersionHolding { ctx, artifact } = message;
        self.read(context, ctx, async move |client, ctx| client.version_holding(ctx, &artifact).await)
    }
}

impl Handler<Register> for SchemaRegistryActor {
    type Result = Reply<Register>;

    fn handle(&mut self, message: Register, context: &mut Self::Context) -> Self::Result {
        let Register { lease, ctx, current, artifact, planned_version, check_first } = message;
        self.mutate(context, lease, async move |client, guard| {
            client.register(&ctx, guard, &current, &artifact, planned_version, check_first).await
        })
    }
}

impl Handler<SetCompatibility> for SchemaRegistryActor {
    type Result = Reply<SetCompatibility>;

    fn handle(&mut self, message: SetCompatibility, context: &mut Self::Context) -> Self::Result {
        let SetCompatibility { lease, ctx, subject, level } = message;
        self.mutate(context, lease, async move |client, guard| {
            client.set_compatibility(&ctx, guard, &subject, level).await
        })
    }
}
