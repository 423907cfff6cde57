//! One Schema Registry and credential: 8 reads in flight, one mutation, a mailbox of 64.

use std::path::Path;

use actix::{Actor, Context, Handler, Message, ResponseFuture};

use super::provider::Desk;
use crate::messages::schema_registry::{
    CheckCompatibility, LatestOf, ListSubjects, NextVersion, ObserveSubjects, Probe, ReferencesOf, Register,
    SchemaById, SetCompatibility, VersionHolding, VersionOf,
};
use crate::project::model::SchemaRegistryRuntime;
use crate::providers::RegistryClient;

const MAILBOX: usize = 64;
const READS: usize = 8;

/// The actor of one schema registry under one credential.
pub struct SchemaRegistryActor {
    desk: Desk<RegistryClient>,
}

type Reply<M> = ResponseFuture<<M as Message>::Result>;

impl SchemaRegistryActor {
    /// `project_root` resolves relative TLS files.
    pub fn new(runtime: &SchemaRegistryRuntime, project_root: &Path) -> Self {
        Self { desk: Desk::new(RegistryClient::new(runtime, project_root), READS) }
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
        self.desk.read(self, context, message.ctx, async |client, ctx| client.probe(ctx).await)
    }
}

impl Handler<ListSubjects> for SchemaRegistryActor {
    type Result = Reply<ListSubjects>;

    fn handle(&mut self, message: ListSubjects, context: &mut Self::Context) -> Self::Result {
        self.desk.read(self, context, message.ctx, async |client, ctx| client.list_subjects(ctx).await)
    }
}

impl Handler<ObserveSubjects> for SchemaRegistryActor {
    type Result = Reply<ObserveSubjects>;

    fn handle(&mut self, message: ObserveSubjects, context: &mut Self::Context) -> Self::Result {
        let ObserveSubjects { ctx, subjects } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.observe_subjects(ctx, &subjects).await)
    }
}

impl Handler<LatestOf> for SchemaRegistryActor {
    type Result = Reply<LatestOf>;

    fn handle(&mut self, message: LatestOf, context: &mut Self::Context) -> Self::Result {
        let LatestOf { ctx, subject } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.latest(ctx, &subject).await)
    }
}

impl Handler<VersionOf> for SchemaRegistryActor {
    type Result = Reply<VersionOf>;

    fn handle(&mut self, message: VersionOf, context: &mut Self::Context) -> Self::Result {
        let VersionOf { ctx, subject, version } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.version(ctx, &subject, version).await)
    }
}

impl Handler<SchemaById> for SchemaRegistryActor {
    type Result = Reply<SchemaById>;

    fn handle(&mut self, message: SchemaById, context: &mut Self::Context) -> Self::Result {
        let SchemaById { ctx, id } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.schema_by_id(ctx, id).await)
    }
}

impl Handler<ReferencesOf> for SchemaRegistryActor {
    type Result = Reply<ReferencesOf>;

    fn handle(&mut self, message: ReferencesOf, context: &mut Self::Context) -> Self::Result {
        let ReferencesOf { ctx, subject, version } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.references_of(ctx, &subject, version).await)
    }
}

impl Handler<NextVersion> for SchemaRegistryActor {
    type Result = Reply<NextVersion>;

    fn handle(&mut self, message: NextVersion, context: &mut Self::Context) -> Self::Result {
        let NextVersion { ctx, subject } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.next_version(ctx, &subject).await)
    }
}

impl Handler<CheckCompatibility> for SchemaRegistryActor {
    type Result = Reply<CheckCompatibility>;

    fn handle(&mut self, message: CheckCompatibility, context: &mut Self::Context) -> Self::Result {
        let CheckCompatibility { ctx, artifact } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.check_compatibility(ctx, &artifact).await)
    }
}

impl Handler<VersionHolding> for SchemaRegistryActor {
    type Result = Reply<VersionHolding>;

    fn handle(&mut self, message: VersionHolding, context: &mut Self::Context) -> Self::Result {
        let VersionHolding { ctx, artifact } = message;
        self.desk.read(self, context, ctx, async move |client, ctx| client.version_holding(ctx, &artifact).await)
    }
}

impl Handler<Register> for SchemaRegistryActor {
    type Result = Reply<Register>;

    fn handle(&mut self, message: Register, context: &mut Self::Context) -> Self::Result {
        let Register { lease, ctx, current, artifact, planned_version, check_first } = message;
        self.desk.mutate(self, context, lease, async move |client, guard| {
            client.register(&ctx, guard, &current, &artifact, planned_version, check_first).await
        })
    }
}

impl Handler<SetCompatibility> for SchemaRegistryActor {
    type Result = Reply<SetCompatibility>;

    fn handle(&mut self, message: SetCompatibility, context: &mut Self::Context) -> Self::Result {
        let SetCompatibility { lease, ctx, subject, level } = message;
        self.desk.mutate(self, context, lease, async move |client, guard| {
            client.set_compatibility(&ctx, guard, &subject, level).await
        })
    }
}
