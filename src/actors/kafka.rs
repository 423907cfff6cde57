//! One Kafka cluster and credential: 16 reads in flight, one mutation, a mailbox of 64.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Context, Handler, ResponseFuture};
use tokio::sync::OnceCell;

use super::provider::{self, Permits, Watched};
use crate::compiler::artifact::TopicArtifact;
use crate::messages::kafka::{
    ConsumerLag, CreateOutcomes, CreateTopics, ListTopics, ObserveTopics, Offsets, Probe, ReadSample, TopicIds,
    UpdateTopic, ValidateTopics,
};
use crate::project::model::KafkaRuntime;
use crate::providers::{Ctx, KafkaClient, ProviderFailure};

const MAILBOX: usize = 64;
const READS: usize = 16;

/// Connects with its first message, and again after a failed attempt.
struct Connection {
    runtime: KafkaRuntime,
    project_root: PathBuf,
    client: OnceCell<KafkaClient>,
}

impl Connection {
    async fn client(&self, ctx: &Ctx) -> Result<&KafkaClient, ProviderFailure> {
        self.client.get_or_try_init(|| KafkaClient::connect(&self.runtime, &self.project_root, ctx)).await
    }
}

/// The actor of one Kafka cluster under one credential.
pub struct KafkaActor {
    connection: Rc<Connection>,
    reads: Permits,
    mutations: Permits,
}

impl KafkaActor {
    /// `project_root` resolves relative TLS files.
    pub fn new(runtime: KafkaRuntime, project_root: PathBuf) -> Self {
        let connection = Rc::new(Connection { runtime, project_root, client: OnceCell::new() });
        Self { connection, reads: Permits::new(READS), mutations: Permits::new(1) }
    }

    fn read<T: 'static>(
        &self,
        context: &mut Context<Self>,
        ctx: Ctx,
        work: impl AsyncFnOnce(&KafkaClient, &Ctx) -> Result<T, ProviderFailure> + 'static,
    ) -> ResponseFuture<Result<T, ProviderFailure>> {
        self.reads.hold_mailbox(self, context);
        let (permits, connection) = (self.reads.clone(), Rc::clone(&self.connection));
        Box::pin(async move {
            provider::read(permits, &ctx, async { work(connection.client(&ctx).await?, &ctx).await }).await
        })
    }
}

impl Actor for KafkaActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Probe> for KafkaActor {
    type Result = ResponseFuture<<Probe as actix::Message>::Result>;

    fn handle(&mut self, message: Probe, context: &mut Self::Context) -> Self::Result {
        self.read(context, message.ctx, async |client, ctx| client.cluster_facts(ctx).await)
    }
}

impl Handler<ListTopics> for KafkaActor {
    type Result = ResponseFuture<<ListTopics as actix::Message>::Result>;

    fn handle(&mut self, message: ListTopics, context: &mut Self::Context) -> Self::Result {
        self.read(context, message.ctx, async |client, ctx| client.list_topics(ctx).await)
    }
}

impl Handler<ObserveTopics> for KafkaActor {
    type Result = ResponseFuture<<ObserveTopics as actix::Message>::Result>;

    fn handle(&mut self, message: ObserveTopics, context: &mut Self::Context) -> Self::Result {
        let ObserveTopics { ctx, names, read } = message;
        self.read(context, ctx, async move |client, ctx| client.observe_topics(ctx, &names, read).await)
    }
}

impl Handler<TopicIds> for KafkaActor {
    type Result = ResponseFuture<<TopicIds as actix::Message>::Result>;

    fn handle(&mut self, message: TopicIds, context: &mut Self::Context) -> Self::Result {
        let TopicIds { ctx, names } = message;
        self.read(context, ctx, async move |client, ctx| client.topic_ids(ctx, &names).await)
    }
}

impl Handler<ValidateTopics> for KafkaActor {
    type Result = ResponseFuture<<ValidateTopics as actix::Message>::Result>;

    fn handle(&mut self, message: ValidateTopics, context: &mut Self::Context) -> Self::Result {
        let ValidateTopics { ctx, creates, updates } = message;
        self.read(context, ctx, async move |client, ctx| client.validate_topics(ctx, &creates, &updates).await)
    }
}

impl Handler<ConsumerLag> for KafkaActor {
    type Result = ResponseFuture<<ConsumerLag as actix::Message>::Result>;

    fn handle(&mut self, message: ConsumerLag, context: &mut Self::Context) -> Self::Result {
        let ConsumerLag { ctx, topics, groups } = message;
        self.read(context, ctx, async move |client, ctx| Ok(client.consumer_lag(ctx, &topics, &groups).await))
    }
}

impl Handler<Offsets> for KafkaActor {
    type Result = ResponseFuture<<Offsets as actix::Message>::Result>;

    fn handle(&mut self, message: Offsets, context: &mut Self::Context) -> Self::Result {
        let Offsets { ctx, partitions, at } = message;
        self.read(context, ctx, async move |client, ctx| client.offsets(ctx, &partitions, at).await)
    }
}

impl Handler<ReadSample> for KafkaActor {
    type Result = ResponseFuture<<ReadSample as actix::Message>::Result>;

    fn handle(&mut self, message: ReadSample, context: &mut Self::Context) -> Self::Result {
        let ReadSample { ctx, topic, limit } = message;
        self.read(context, ctx, async move |client, ctx| client.read_sample(ctx, &topic, limit).await)
    }
}

/// The same outcome for every member of a group.
fn every(topics: &[TopicArtifact], failure: &ProviderFailure) -> CreateOutcomes {
    topics.iter().map(|topic| (topic.name.clone(), Err(failure.clone()))).collect()
}

impl Handler<CreateTopics> for KafkaActor {
    type Result = ResponseFuture<CreateOutcomes>;

    fn handle(&mut self, message: CreateTopics, context: &mut Self::Context) -> Self::Result {
        self.mutations.hold_mailbox(self, context);
        let (permits, connection) = (self.mutations.clone(), Rc::clone(&self.connection));
        let CreateTopics { lease, ctx, topics } = message;
        let members = Arc::clone(&topics);
        let work = async move |guard: &Watched| match connection.client(&ctx).await {
            Ok(client) => client.create_topics(&ctx, guard, &members).await,
            Err(failure) => every(&members, &failure),
        };
        Box::pin(async move { provider::mutate(permits, lease, work, |failure| every(&topics, &failure)).await })
    }
}

impl Handler<UpdateTopic> for KafkaActor {
    type Result = ResponseFuture<<UpdateTopic as actix::Message>::Result>;

    fn handle(&mut self, message: UpdateTopic, context: &mut Self::Context) -> Self::Result {
        self.mutations.hold_mailbox(self, context);
        let (permits, connection) = (self.mutations.clone(), Rc::clone(&self.connection));
        let UpdateTopic { lease, ctx, update } = message;
        let work = async move |guard: &Watched| connection.client(&ctx).await?.update_topic(&ctx, guard, &update).await;
        Box::pin(provider::mutate(permits, lease, work, Err))
    }
}

#[cfg(test)]
mod tests {
    //! Against an in-process stand-in that speaks the Kafka protocol and notes the order of what it is asked.

    use std::time::Duration;

    use krafka::testing::{ApiKey, FakeBroker};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::actors::lease::testing::{action, lease};
    use crate::compiler::artifact::{OwnerType, Ownership};
    use crate::project::model::OwnershipMode;
    use crate::providers::Purpose;

    fn topic(name: &str) -> TopicArtifact {
        TopicArtifact {
            name: name.to_owned(),
            partitions: 1,
            replication_factor: 1,
            config: Default::default(),
            ownership: Ownership {
                mode: OwnershipMode::Managed,
                project: "shop".to_owned(),
                owner_type: OwnerType::Model,
                name: name.to_owned(),
            },
        }
    }

    /// Each mutation ends with the wait for its leaders before the next one asks anything.
    #[actix::test]
    async fn one_mutation_is_in_flight_and_the_next_waits_for_its_end() {
        let broker = FakeBroker::start().await.expect("a stand-in");
        let actor = KafkaActor::new(KafkaRuntime::plain(broker.bootstrap_servers()), PathBuf::from("/")).start();
        let (core, holder) = lease();
        let create = |index: u32| {
            let ctx = Ctx::new(Purpose::Apply, Duration::from_secs(20), CancellationToken::new());
            let lease = action(&core, &holder, index, index);
            actor.send(CreateTopics { lease, ctx, topics: Arc::from([topic(&format!("t{index}"))]) })
        };
        let (first, second) = tokio::join!(create(0), create(1));
        for outcomes in [first, second] {
            outcomes.expect("answered")[0].1.as_ref().expect("created");
        }
        let asked: Vec<ApiKey> = broker.requests().into_iter().map(|request| request.api_key).collect();
        let creates: Vec<usize> = (0..asked.len()).filter(|at| asked[*at] == ApiKey::CreateTopics).collect();
        let [first, second] = creates[..] else { panic!("{asked:?}") };
        let between = asked[first..second].iter().filter(|key| **key == ApiKey::Metadata).count();
        assert!(between >= 2, "the leaders of the first and the opening read of the second: {asked:?}");
    }
}
