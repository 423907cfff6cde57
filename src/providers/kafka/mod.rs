//! Apache Kafka through krafka: what a topic is, whether a change would be accepted, and the changes themselves. Promises:
//! strict observations are complete or fail with a topic's name; a refused change is told with the broker's own message;
//! creates and updates are sent only under a guard. Comparing declarations with observations stays the planner's business.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Ctx, Identity, MutationGuard, ProviderFailure};
use crate::compiler::artifact::TopicArtifact;
use crate::planner::observation::{ConsumerEvidence, TopicObservation};
use crate::project::model::KafkaRuntime;

/// A cluster as one broker describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterFacts {
    pub cluster_id: String,
    pub controller_id: i32,
    pub brokers: Vec<i32>,
}

/// Whether an observation needs the topics' overrides, which take the right to describe configs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigRead {
    Strict,
    /// Metadata only; `config` stays empty.
    None,
}

/// Which consumer groups are asked for their lag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Groups {
    All,
    List(Vec<String>),
}

/// A planned update: what was observed and what is declared.
#[derive(Clone, Debug)]
pub struct TopicUpdate {
    pub current: TopicObservation,
    pub desired: TopicArtifact,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedTopic {
    /// Base64url without padding, 22 characters; none from a broker without topic ids.
    pub topic_id: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdatedTopic {
    /// The new count when partitions were added.
    pub partitions: Option<u32>,
    pub set: Vec<String>,
    pub deleted: Vec<String>,
}

/// One authenticated connection pool to one cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KafkaClient {}

const UNBUILT: ProviderFailure = ProviderFailure::Unsupported { what: "not built yet" };

impl KafkaClient {
    /// Connects, authenticates and reads the cluster's metadata. `project_root` resolves relative TLS files.
    pub async fn connect(_runtime: &KafkaRuntime, _project_root: &Path, _ctx: &Ctx) -> Result<Self, ProviderFailure> {
        Err(UNBUILT)
    }

    pub async fn cluster_facts(&self, _ctx: &Ctx) -> Result<ClusterFacts, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Every topic's name, sorted, internal ones included.
    pub async fn list_topics(&self, _ctx: &Ctx) -> Result<Vec<String>, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Every named topic, absent ones as absent.
    pub async fn observe_topics(
        &self,
        _ctx: &Ctx,
        _names: &[String],
        _read: ConfigRead,
    ) -> Result<BTreeMap<String, TopicObservation>, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Topic ids as 22 characters of base64url; absent topics are left out.
    pub async fn topic_ids(&self, _ctx: &Ctx, _names: &[String]) -> Result<BTreeMap<String, String>, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Asks the broker to validate all planned creates and updates without applying them. The refusals, sorted; empty when
    /// everything would be accepted. An error when the broker could not be asked.
    pub async fn validate_topics(
        &self,
        _ctx: &Ctx,
        _creates: &[TopicArtifact],
        _updates: &[TopicUpdate],
    ) -> Result<Vec<(Identity, ProviderFailure)>, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Creates 1..=256 topics by one request and waits until each has leaders. One outcome a topic, in the order given.
    pub async fn create_topics<G: MutationGuard>(
        &self,
        _ctx: &Ctx,
        _guard: &G,
        topics: &[TopicArtifact],
    ) -> Vec<(String, Result<CreatedTopic, ProviderFailure>)> {
        topics.iter().map(|topic| (topic.name.clone(), Err(UNBUILT))).collect()
    }

    /// Brings a topic from `current` to `desired`: partitions first, then one config request.
    pub async fn update_topic<G: MutationGuard>(
        &self,
        _ctx: &Ctx,
        _guard: &G,
        _update: &TopicUpdate,
    ) -> Result<UpdatedTopic, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Who consumes `topics`. A group that cannot be read is a failure inside the evidence.
    pub async fn consumer_lag(&self, _ctx: &Ctx, _topics: &[String], _groups: &Groups) -> ConsumerEvidence {
        ConsumerEvidence {
            status: crate::planner::observation::EvidenceStatus::Unavailable,
            reason: None,
            failures: Vec::new(),
            groups: BTreeMap::new(),
        }
    }
}
