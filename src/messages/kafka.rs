//! The conversation with a Kafka cluster. Reads carry a [`Ctx`]; mutations consume an [`ActionLease`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::Message;

use crate::actors::lease::ActionLease;
use crate::assertions::Sample;
use crate::compiler::artifact::TopicArtifact;
use crate::planner::observation::{ConsumerEvidence, TopicObservation};
use crate::providers::kafka::{
    self, ClusterFacts, ConfigRead, CreatedTopic, Groups, OffsetAt, Partition, TopicUpdate, UpdatedTopic,
};
use crate::providers::{Ctx, Identity, ProviderFailure};

/// Connects and describes the cluster.
#[derive(Message)]
#[rtype(result = "Result<ClusterFacts, ProviderFailure>")]
pub struct Probe {
    pub ctx: Ctx,
}

/// Every topic's name, sorted, internal ones included.
#[derive(Message)]
#[rtype(result = "Result<Vec<String>, ProviderFailure>")]
pub struct ListTopics {
    pub ctx: Ctx,
}

/// Every named topic, absent ones as absent.
#[derive(Message)]
#[rtype(result = "Result<BTreeMap<String, TopicObservation>, ProviderFailure>")]
pub struct ObserveTopics {
    pub ctx: Ctx,
    pub names: Vec<String>,
    pub read: ConfigRead,
}

/// Topic ids as 22 characters of base64url; absent topics are left out.
#[derive(Message)]
#[rtype(result = "Result<BTreeMap<String, String>, ProviderFailure>")]
pub struct TopicIds {
    pub ctx: Ctx,
    pub names: Vec<String>,
}

/// Asks the broker whether it would accept all of this, changing nothing. Replies with the refusals.
#[derive(Message)]
#[rtype(result = "Result<Vec<(Identity, ProviderFailure)>, ProviderFailure>")]
pub struct ValidateTopics {
    pub ctx: Ctx,
    pub creates: Vec<TopicArtifact>,
    pub updates: Vec<TopicUpdate>,
}

/// Who consumes the topics; a group that cannot be read is data inside the evidence.
#[derive(Message)]
#[rtype(result = "Result<ConsumerEvidence, ProviderFailure>")]
pub struct ConsumerLag {
    pub ctx: Ctx,
    pub topics: Vec<String>,
    pub groups: Groups,
}

/// Where partitions begin or end; what cannot be read of one partition is data.
#[derive(Message)]
#[rtype(result = "Result<kafka::Offsets, ProviderFailure>")]
pub struct Offsets {
    pub ctx: Ctx,
    pub partitions: BTreeSet<Partition>,
    pub at: OffsetAt,
}

/// A few committed records of a topic.
#[derive(Message)]
#[rtype(result = "Result<Sample, ProviderFailure>")]
pub struct ReadSample {
    pub ctx: Ctx,
    pub topic: String,
    pub limit: usize,
}

/// One outcome a member, in the order given.
pub type CreateOutcomes = Vec<(String, Result<CreatedTopic, ProviderFailure>)>;

/// One topic, or one group in one request.
#[derive(Message)]
#[rtype(result = "CreateOutcomes")]
pub struct CreateTopics {
    pub lease: ActionLease,
    pub ctx: Ctx,
    pub topics: Arc<[TopicArtifact]>,
}

/// From the planned current form to the desired one, refused when the live topic is another.
#[derive(Message)]
#[rtype(result = "Result<UpdatedTopic, ProviderFailure>")]
pub struct UpdateTopic {
    pub lease: ActionLease,
    pub ctx: Ctx,
    pub update: TopicUpdate,
}
