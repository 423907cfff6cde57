//! Reads: names, topics with their overrides, ids.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{StreamExt, TryStreamExt, stream};
use krafka::admin::{
    ConfigEntry, ConfigResource, DescribeClusterOptions, DescribeConfigsOptions, DescribeTopicsOptions,
    ListTopicsOptions, TopicDescription,
};

use super::{ClusterFacts, ConfigRead, KafkaClient};
use crate::planner::observation::TopicObservation;
use crate::providers::{Ctx, Identity, ProviderFailure};

/// Topics per request.
const CHUNK: usize = 500;
const CHUNKS_IN_FLIGHT: usize = 4;
/// Bound on one read.
const READ: Duration = Duration::from_secs(30);
/// `DYNAMIC_TOPIC_CONFIG`: the value was set on the topic itself.
const TOPIC_OVERRIDE: i8 = 1;
/// A topic that is deleted between its metadata and its configs is looked at again this often.
const RACES: u32 = 3;

impl KafkaClient {
    pub async fn cluster_facts(&self, ctx: &Ctx) -> Result<ClusterFacts, ProviderFailure> {
        let options = DescribeClusterOptions::default().timeout(ctx.at_most(READ));
        let cluster = ctx.read(self.call("DescribeCluster", 1, self.admin.describe_cluster(options))).await?;
        let mut brokers: Vec<i32> = cluster.brokers.iter().map(|broker| broker.id).collect();
        brokers.sort_unstable();
        Ok(ClusterFacts { cluster_id: cluster.cluster_id, controller_id: cluster.controller_id, brokers })
    }

    /// Every topic's name, sorted, internal ones included.
    pub async fn list_topics(&self, ctx: &Ctx) -> Result<Vec<String>, ProviderFailure> {
        let options = ListTopicsOptions::default().include_internal(true).timeout(ctx.at_most(READ));
        ctx.read(self.call("Metadata", 0, self.admin.list_topics(options))).await
    }

    /// Every named topic, absent ones as absent.
    pub async fn observe_topics(
        &self,
        ctx: &Ctx,
        names: &[String],
        read: ConfigRead,
    ) -> Result<BTreeMap<String, TopicObservation>, ProviderFailure> {
        ctx.read(
            stream::iter(names.chunks(CHUNK).map(<[String]>::to_vec))
                .map(|chunk| self.observe_chunk(ctx, chunk, read))
                .buffer_unordered(CHUNKS_IN_FLIGHT)
                .try_fold(BTreeMap::new(), async |mut all, mut chunk| {
                    all.append(&mut chunk);
                    Ok(all)
                }),
        )
        .await
    }

    /// Topic ids as 22 characters of base64url; absent topics are left out.
    pub async fn topic_ids(&self, ctx: &Ctx, names: &[String]) -> Result<BTreeMap<String, String>, ProviderFailure> {
        let mut ids = BTreeMap::new();
        for chunk in names.chunks(CHUNK) {
            for (name, description) in ctx.read(self.describe(ctx, chunk)).await? {
                if let Some(description) = description {
                    let id = topic_id(&description);
                    ids.insert(name, id.ok_or(ProviderFailure::Unsupported { what: "topic ids" })?);
                }
            }
        }
        Ok(ids)
    }

    async fn observe_chunk(
        &self,
        ctx: &Ctx,
        names: Vec<String>,
        read: ConfigRead,
    ) -> Result<BTreeMap<String, TopicObservation>, ProviderFailure> {
        let mut observed = BTreeMap::new();
        let mut pending = names;
        for _ in 0..RACES {
            let mut described = BTreeMap::new();
            for (name, description) in self.describe(ctx, &pending).await? {
                match description {
                    Some(description) => {
                        described.insert(name.clone(), observation(&name, &description)?);
                    }
                    None => {
                        observed.insert(name.clone(), TopicObservation::absent(name));
                    }
                }
            }
            pending.clear();
            let mut configs = match read {
                ConfigRead::Strict => self.overrides(ctx, described.keys()).await?,
                ConfigRead::None => HashMap::new(),
            };
            for (name, mut topic) in described {
                match (read, configs.remove(&name)) {
                    (ConfigRead::None, _) => {
                        observed.insert(name, topic);
                    }
                    (ConfigRead::Strict, Some(config)) => {
                        topic.config = config;
                        observed.insert(name, topic);
                    }
                    (ConfigRead::Strict, None) => pending.push(name),
                }
            }
            if pending.is_empty() {
                return Ok(observed);
            }
        }
        Err(ProviderFailure::Protocol { what: "a topic has metadata and no configuration" })
    }

    /// One metadata request; absent topics are None.
    pub(super) async fn describe(
        &self,
        ctx: &Ctx,
        names: &[String],
    ) -> Result<Vec<(String, Option<TopicDescription>)>, ProviderFailure> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let options = DescribeTopicsOptions::default().timeout(ctx.at_most(READ));
        let replies = self.call("Metadata", names.len(), self.admin.describe_topics(names, options)).await?;
        replies
            .into_iter()
            .map(|(name, reply)| match reply {
                Ok(description) => Ok((name, Some(description))),
                Err(error) => match self.classify(&error) {
                    ProviderFailure::NotFound => Ok((name, None)),
                    failure => Err(failure),
                },
            })
            .collect()
    }

    /// One config request: the overrides of each topic that still exists.
    async fn overrides(
        &self,
        ctx: &Ctx,
        names: impl Iterator<Item = &String>,
    ) -> Result<HashMap<String, BTreeMap<String, String>>, ProviderFailure> {
        let resources: Vec<ConfigResource> = names.map(ConfigResource::topic).collect();
        if resources.is_empty() {
            return Ok(HashMap::new());
        }
        let options = DescribeConfigsOptions::default().timeout(ctx.at_most(READ));
        let replies =
            self.call("DescribeConfigs", resources.len(), self.admin.describe_configs(resources, options)).await?;
        let mut configs = HashMap::with_capacity(replies.len());
        for (resource, reply) in replies {
            match reply.map_err(|error| self.classify(&error)) {
                Ok(entries) => {
                    configs.insert(resource.name.clone(), explicit(&resource.name, entries)?);
                }
                Err(ProviderFailure::NotFound) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(configs)
    }
}

/// Only what is set on the topic itself; inherited values and defaults are nobody's declaration.
fn explicit(topic: &str, entries: Vec<ConfigEntry>) -> Result<BTreeMap<String, String>, ProviderFailure> {
    let mut config = BTreeMap::new();
    for entry in entries {
        if entry.config_source != TOPIC_OVERRIDE {
            continue;
        }
        match entry.value {
            Some(value) if !entry.is_sensitive => {
                config.insert(entry.name, value);
            }
            Some(_) | None => {
                let identity = Identity::Topic(topic.to_owned());
                return Err(ProviderFailure::Unreadable { identity, what: "the value of an override is hidden" });
            }
        }
    }
    Ok(config)
}

fn observation(name: &str, description: &TopicDescription) -> Result<TopicObservation, ProviderFailure> {
    let unreadable = |what| ProviderFailure::Unreadable { identity: Identity::Topic(name.to_owned()), what };
    let first = description.partitions.first().ok_or_else(|| unreadable("no partitions"))?;
    let partitions = u32::try_from(description.partitions.len()).map_err(|_| unreadable("partition count"))?;
    let replicas = u16::try_from(first.replicas.len()).map_err(|_| unreadable("replica count"))?;
    Ok(TopicObservation {
        name: name.to_owned(),
        exists: true,
        partitions: Some(partitions),
        replication_factor: Some(replicas),
        config: BTreeMap::new(),
    })
}

/// 22 characters of base64url; none when the broker gave no id.
pub(super) fn topic_id(description: &TopicDescription) -> Option<String> {
    (description.topic_id != [0; 16]).then(|| URL_SAFE_NO_PAD.encode(description.topic_id))
}
