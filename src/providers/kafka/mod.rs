//! Apache Kafka through krafka: what a topic is, whether a change would be accepted, and the changes themselves. Promises:
//! strict observations are complete or fail with a topic's name; a refused change is told with the broker's own message;
//! creates and updates are sent only under a guard. Comparing declarations with observations stays the planner's business.
#![expect(clippy::disallowed_methods, reason = "measures how long a request took")]

mod connect;
mod errors;
mod group;
mod identity;
mod lag;
mod mutate;
mod observe;
mod offsets;
mod sample;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use krafka::Kafka;
use krafka::admin::AdminClient;
use krafka::error::KrafkaError;

use tokio::time::Instant;

use super::ProviderFailure;
use crate::compiler::artifact::TopicArtifact;
use crate::planner::observation::TopicObservation;
use crate::project::secret::Secret;

pub use group::{CreateRequest, MAX_TOPICS};

/// The block of the runtime, for log records.
const SERVICE: &str = "runtime.kafka";

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

/// Topic and number.
pub type Partition = (String, i32);

/// One offset a partition, or why it could not be read.
pub type Offsets = BTreeMap<Partition, Result<i64, ProviderFailure>>;

/// Which end of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetAt {
    /// The first record that is kept.
    Beginning,
    /// The next record to be written.
    End,
}

/// A planned update: what was observed and what is declared.
#[derive(Clone, Debug)]
pub struct TopicUpdate {
    pub current: TopicObservation,
    pub desired: TopicArtifact,
}

/// A topic of a create request that took effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedTopic {
    /// Base64url without padding, 22 characters; none from a broker without topic ids.
    pub topic_id: Option<String>,
}

/// A topic whose alteration took effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdatedTopic {
    /// The new count when partitions were added.
    pub partitions: Option<u32>,
    pub set: Vec<String>,
    pub deleted: Vec<String>,
}

/// One authenticated connection pool to one cluster. Cheap to clone.
#[derive(Clone)]
pub struct KafkaClient {
    kafka: Kafka,
    admin: Arc<AdminClient>,
    secrets: Arc<[Secret]>,
}

impl fmt::Debug for KafkaClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaClient").finish_non_exhaustive()
    }
}

impl KafkaClient {
    fn classify(&self, error: &KrafkaError) -> ProviderFailure {
        errors::classify(error, &self.secrets)
    }

    /// A request whose outcome is told by class; `items` is how many things it is about.
    async fn call<T>(
        &self,
        request: &'static str,
        items: usize,
        call: impl Future<Output = Result<T, KrafkaError>>,
    ) -> Result<T, ProviderFailure> {
        self.logged(request, items, call).await.map_err(|error| self.classify(&error))
    }

    /// The same outcome, and a log record of it.
    async fn logged<T>(
        &self,
        request: &'static str,
        items: usize,
        call: impl Future<Output = Result<T, KrafkaError>>,
    ) -> Result<T, KrafkaError> {
        tracing::trace!(service = SERVICE, request, items, "request");
        let begun = Instant::now();
        let outcome = call.await;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &outcome {
            Ok(_) => tracing::debug!(service = SERVICE, request, items, ms, "answered"),
            Err(error) => tracing::warn!(service = SERVICE, request, items, ms, "request {}", self.classify(error)),
        }
        outcome
    }
}
