//! Changes, and asking the broker whether it would accept them.
//!
//! Every request is polled under the caller's guard, after a read has opened and authenticated the connection. The client
//! sends a write again only after an answer that proves it was not applied; whatever else stays unanswered is uncertain.
#![expect(clippy::disallowed_methods, reason = "waits for a bounded time until the cluster agrees")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures_util::FutureExt;
use krafka::admin::{
    ConfigOp, ConfigResource, CreatePartitionsOptions, CreateTopicsOptions, IncrementalAlterConfigsOptions, NewTopic,
};
use krafka::error::{ErrorCode, KrafkaError};
use tokio::time::Instant;

use super::group::{CreateRequest, MAX_TOPICS};
use super::observe::topic_id;
use super::{ConfigRead, CreatedTopic, KafkaClient, TopicUpdate, UpdatedTopic};
use crate::compiler::artifact::TopicArtifact;
use crate::planner::observation::TopicObservation;
use crate::providers::guard::guarded;
use crate::providers::{Ctx, Identity, MutationGuard, ProviderFailure};

/// Bound on one mutation.
const WRITE: Duration = Duration::from_secs(10);
/// More for each topic of a group: the controller writes them one after the other.
const WRITE_PER_TOPIC: Duration = Duration::from_millis(100);
/// How long a confirmed change is waited for in what brokers tell.
const SETTLE: Duration = Duration::from_secs(30);
/// The wait between two looks at what is not yet visible: it doubles from the first to the longest.
const FIRST_POLL: Duration = Duration::from_millis(10);
const LONGEST_POLL: Duration = Duration::from_millis(200);

type Refusals = BTreeMap<Identity, ProviderFailure>;

impl KafkaClient {
    /// Asks the broker to validate all planned creates and updates without applying them. The refusals, sorted; empty when
    /// everything would be accepted. An error when the broker could not be asked.
    pub async fn validate_topics(
        &self,
        ctx: &Ctx,
        creates: &[TopicArtifact],
        updates: &[TopicUpdate],
    ) -> Result<Vec<(Identity, ProviderFailure)>, ProviderFailure> {
        ctx.read(async {
            let mut refusals = Refusals::new();
            for group in CreateRequest::split(creates) {
                self.validate_creates(ctx, group, &mut refusals).await?;
            }
            for group in updates.chunks(MAX_TOPICS) {
                let grown: Vec<(String, i32)> = group.iter().filter_map(growth).collect();
                if !grown.is_empty() {
                    let items = grown.len();
                    let options =
                        CreatePartitionsOptions::default().validate_only(true).timeout(ctx.at_most(write(grown.len())));
                    let request = self.admin.create_partitions(grown, options);
                    self.refused(&mut refusals, self.call("CreatePartitions", items, request).await?)?;
                }
                let changed: Vec<(ConfigResource, Vec<ConfigOp>)> = group
                    .iter()
                    .map(|update| (ConfigResource::topic(&update.desired.name), ConfigChange::of(update).operations()))
                    .filter(|(_, operations)| !operations.is_empty())
                    .collect();
                if !changed.is_empty() {
                    let options = IncrementalAlterConfigsOptions::default()
                        .validate_only(true)
                        .timeout(ctx.at_most(write(changed.len())));
                    let items = changed.len();
                    let request = self.admin.incremental_alter_configs(changed, options);
                    let replies = self.call("IncrementalAlterConfigs", items, request).await?;
                    let by_name = replies.into_iter().map(|(resource, reply)| (resource.name, reply)).collect();
                    self.refused(&mut refusals, by_name)?;
                }
            }
            Ok(refusals.into_iter().collect())
        })
        .await
    }

    /// A broker may refuse a whole request for one of its members: the halves are then asked on their own, down to the members
    /// that are refused alone.
    async fn validate_creates(
        &self,
        ctx: &Ctx,
        group: &[TopicArtifact],
        refusals: &mut Refusals,
    ) -> Result<(), ProviderFailure> {
        let mut pending = vec![group];
        while let Some(group) = pending.pop() {
            let topics = group.iter().map(|topic| self.new_topic(topic)).collect::<Result<Vec<_>, _>>()?;
            let options = CreateTopicsOptions::default().validate_only(true).timeout(ctx.at_most(write(group.len())));
            let replies = self.call("CreateTopics", group.len(), self.admin.create_topics(topics, options)).await?;
            if group.len() > 1 && is_of_the_request(&replies) {
                let (first, second) = group.split_at(group.len() / 2);
                pending.extend([second, first]);
            } else {
                self.refused(refusals, replies)?;
            }
        }
        Ok(())
    }

    /// Keeps what the broker refuses; whatever says nothing about the topic itself fails the validation as a whole.
    fn refused(
        &self,
        refusals: &mut Refusals,
        replies: HashMap<String, Result<(), KrafkaError>>,
    ) -> Result<(), ProviderFailure> {
        for (name, reply) in replies {
            let Err(error) = reply else { continue };
            match self.classify(&error) {
                failure @ (ProviderFailure::Rejected { .. }
                | ProviderFailure::Auth { .. }
                | ProviderFailure::Conflict { .. }
                | ProviderFailure::NotFound) => {
                    refusals.entry(Identity::Topic(name)).or_insert(failure);
                }
                failure => return Err(failure),
            }
        }
        Ok(())
    }

    /// Creates the topics by one request and waits until each has leaders. One outcome a topic, in the order given.
    pub async fn create_topics<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        topics: &[TopicArtifact],
    ) -> Vec<(String, Result<CreatedTopic, ProviderFailure>)> {
        let all = |failure: ProviderFailure| {
            topics.iter().map(|topic| (topic.name.clone(), Err(failure.clone()))).collect::<Vec<_>>()
        };
        let mut replies = match self.send_creates(ctx, guard, topics).await {
            Ok(replies) => replies,
            Err(failure) => return all(failure),
        };
        let created: Vec<String> =
            topics.iter().map(|t| &t.name).filter(|name| matches!(replies.get(*name), Some(Ok(())))).cloned().collect();
        let Ok(ids) = guarded(guard, self.leaders(ctx, &created)).await else {
            return all(ProviderFailure::Aborted { uncertain: true });
        };
        let outcome = |name: &String| match replies.remove(name) {
            Some(Ok(())) => Ok(CreatedTopic { topic_id: ids.get(name).cloned() }),
            Some(Err(failure)) => Err(failure),
            None => Err(unanswered("create", name)),
        };
        let mut outcome = outcome;
        topics.iter().map(|topic| (topic.name.clone(), outcome(&topic.name))).collect()
    }

    async fn send_creates<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        topics: &[TopicArtifact],
    ) -> Result<HashMap<String, Result<(), ProviderFailure>>, ProviderFailure> {
        let requested = topics.iter().map(|topic| self.new_topic(topic)).collect::<Result<Vec<_>, _>>()?;
        self.open(ctx, topics).await?;
        let options = CreateTopicsOptions::default().timeout(ctx.at_most(write(topics.len())));
        let replies =
            guarded(guard, self.logged("CreateTopics", topics.len(), self.admin.create_topics(requested, options)))
                .await?;
        let replies = replies.map_err(|error| self.classify(&error))?;
        Ok(replies
            .into_iter()
            .map(|(name, reply)| {
                let reply = reply
                    .map_err(|error| self.classify(&error).after_commit("create", vec![Identity::Topic(name.clone())]));
                (name, reply)
            })
            .collect())
    }

    /// Waits for the leaders of topics that were created. What is missing at the end of the wait has no id: the broker has
    /// already confirmed its creation.
    async fn leaders(&self, ctx: &Ctx, names: &[String]) -> BTreeMap<String, String> {
        let end = Instant::now() + SETTLE;
        let mut ids = BTreeMap::new();
        let mut pending: BTreeSet<String> = names.iter().cloned().collect();
        let mut poll = FIRST_POLL;
        while !pending.is_empty() {
            let asked: Vec<String> = pending.iter().cloned().collect();
            if let Ok(described) = self.describe(ctx, &asked).await {
                for (name, description) in described {
                    let Some(description) = description else { continue };
                    let led = !description.partitions.is_empty()
                        && description.partitions.iter().all(|partition| partition.leader.is_some());
                    if led {
                        pending.remove(&name);
                        ids.extend(topic_id(&description).map(|id| (name, id)));
                    }
                }
            }
            if pending.is_empty() || Instant::now() + poll >= end.min(ctx.deadline) {
                break;
            }
            tokio::time::sleep(poll).await;
            poll = LONGEST_POLL.min(poll * 2);
        }
        ids
    }

    /// Brings a topic from `current` to `desired`: partitions first, then one config request.
    pub async fn update_topic<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        update: &TopicUpdate,
    ) -> Result<UpdatedTopic, ProviderFailure> {
        let name = &update.desired.name;
        let fresh = self.observe_topics(ctx, std::slice::from_ref(name), ConfigRead::Strict).await?;
        preimage(fresh.get(name), update)?;

        let change = ConfigChange::of(update);
        let mut updated = UpdatedTopic { partitions: None, set: change.set_keys(), deleted: change.delete.clone() };
        if let Some(grown) = growth(update) {
            let options = CreatePartitionsOptions::default().timeout(ctx.at_most(WRITE));
            let mutation = self.logged("CreatePartitions", 1, self.admin.create_partitions([grown], options));
            let mutation = mutation.map(|replies| one(replies, name));
            self.mutate(ctx, guard, "partitions", name, mutation).await?;
            updated.partitions = Some(update.desired.partitions);
            self.settle(ctx, name, |live| live.partitions >= Some(update.desired.partitions)).await;
        }
        let operations = change.operations();
        if operations.is_empty() {
            return Ok(updated);
        }
        let resource = ConfigResource::topic(name);
        let options = IncrementalAlterConfigsOptions::default().timeout(ctx.at_most(WRITE));
        let request = self.admin.incremental_alter_configs([(resource.clone(), operations)], options);
        let mutation = self.logged("IncrementalAlterConfigs", 1, request).map(|replies| one(replies, &resource));
        match self.mutate(ctx, guard, "configs", name, mutation).await {
            Ok(()) => {
                self.settle(ctx, name, |live| change.is_visible(&update.current, live)).await;
                Ok(updated)
            }
            Err(failure) if updated.partitions.is_none() => Err(failure),
            Err(ProviderFailure::Aborted { .. }) if guard.check().is_err() => {
                Err(ProviderFailure::Aborted { uncertain: true })
            }
            Err(failure) => {
                Err(ProviderFailure::Partial { done: vec!["partitions"], failed: "configs", class: Box::new(failure) })
            }
        }
    }

    /// The controller confirms before every broker has heard: waits until a confirmed change can be read, so that the next
    /// observation does not show it as missing. What cannot be read in time changes nothing about the confirmation.
    async fn settle(&self, ctx: &Ctx, name: &String, visible: impl Fn(&TopicObservation) -> bool) {
        let end = Instant::now() + SETTLE;
        let mut poll = FIRST_POLL;
        while Instant::now() < end.min(ctx.deadline) {
            let observed = self.observe_topics(ctx, std::slice::from_ref(name), ConfigRead::Strict).await;
            if observed.is_err() || observed.is_ok_and(|topics| topics.get(name).is_some_and(&visible)) {
                return;
            }
            tokio::time::sleep(poll).await;
            poll = LONGEST_POLL.min(poll * 2);
        }
    }

    async fn mutate<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        stage: &'static str,
        topic: &str,
        mutation: impl Future<Output = Result<(), KrafkaError>>,
    ) -> Result<(), ProviderFailure> {
        stopped(ctx)?;
        guarded(guard, mutation)
            .await?
            .map_err(|error| self.classify(&error).after_commit(stage, vec![Identity::Topic(topic.to_owned())]))
    }

    /// Opens and authenticates a connection by a read, and stops here when the caller has been told to.
    async fn open(&self, ctx: &Ctx, topics: &[TopicArtifact]) -> Result<(), ProviderFailure> {
        let first: Vec<String> = topics.iter().take(1).map(|topic| topic.name.clone()).collect();
        ctx.read(self.describe(ctx, &first)).await?;
        stopped(ctx)
    }

    fn new_topic(&self, topic: &TopicArtifact) -> Result<NewTopic, ProviderFailure> {
        let unusable = |problem| ProviderFailure::ConfigInvalid { field: "the topic", problem };
        let partitions = i32::try_from(topic.partitions).map_err(|_| unusable("has too many partitions"))?;
        let replicas = i16::try_from(topic.replication_factor).map_err(|_| unusable("has too many replicas"))?;
        let mut new = NewTopic::new(&topic.name, partitions, replicas)
            .map_err(|_| unusable("has a name or a count that Kafka has no form for"))?;
        for (key, value) in &topic.config {
            new = new.with_config(key, value);
        }
        Ok(new)
    }
}

/// No new request is sent once the caller has been told to stop.
fn stopped(ctx: &Ctx) -> Result<(), ProviderFailure> {
    match (ctx.cancel.is_cancelled(), ctx.remaining().is_zero()) {
        (true, _) => Err(ProviderFailure::Aborted { uncertain: false }),
        (false, true) => Err(ProviderFailure::Timeout),
        (false, false) => Ok(()),
    }
}

fn write(topics: usize) -> Duration {
    WRITE + WRITE_PER_TOPIC * u32::try_from(topics).unwrap_or(u32::MAX)
}

/// The reply of a request about one thing.
fn one<K: std::hash::Hash + Eq + ?Sized, Q>(
    replies: Result<HashMap<Q, Result<(), KrafkaError>>, KrafkaError>,
    key: &K,
) -> Result<(), KrafkaError>
where
    Q: std::hash::Hash + Eq + std::borrow::Borrow<K>,
{
    replies?.remove(key).unwrap_or_else(|| Err(KrafkaError::timeout("no reply for the requested item")))
}

/// Whether every member has the same refusal, of a kind that brokers give for a request as a whole.
fn is_of_the_request(replies: &HashMap<String, Result<(), KrafkaError>>) -> bool {
    let mut refusals = replies.values().map(|reply| match reply {
        Err(KrafkaError::Broker { code, message }) => Some((*code, message)),
        Ok(()) | Err(_) => None,
    });
    let first = refusals.next().flatten();
    let whole = matches!(
        first,
        Some((ErrorCode::PolicyViolation | ErrorCode::InvalidRequest | ErrorCode::UnknownServerError, _))
    );
    whole && refusals.all(|refusal| refusal == first)
}

fn unanswered(stage: &'static str, topic: &str) -> ProviderFailure {
    ProviderFailure::Uncertain { stage, unresolved: vec![Identity::Topic(topic.to_owned())] }
}

/// The live topic must be what the plan was made against.
fn preimage(fresh: Option<&TopicObservation>, update: &TopicUpdate) -> Result<(), ProviderFailure> {
    let Some(fresh) = fresh.filter(|topic| topic.exists) else {
        return Err(ProviderFailure::Conflict { what: "the topic is gone" });
    };
    let live = fresh.partitions.unwrap_or_default();
    if live > update.desired.partitions {
        return Err(ProviderFailure::CannotReducePartitions { live, desired: update.desired.partitions });
    }
    if *fresh != update.current {
        return Err(ProviderFailure::Conflict { what: "partitions or configuration" });
    }
    Ok(())
}

/// The new total when partitions are added.
fn growth(update: &TopicUpdate) -> Option<(String, i32)> {
    let grows = update.current.partitions.is_some_and(|current| update.desired.partitions > current);
    let total = i32::try_from(update.desired.partitions).ok()?;
    grows.then(|| (update.desired.name.clone(), total))
}

/// What one config request does: sorted by key.
struct ConfigChange {
    set: BTreeMap<String, String>,
    delete: Vec<String>,
}

impl ConfigChange {
    fn of(update: &TopicUpdate) -> Self {
        let (current, desired) = (&update.current.config, &update.desired.config);
        Self {
            set: desired
                .iter()
                .filter(|(key, value)| current.get(*key) != Some(*value))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            delete: current.keys().filter(|key| !desired.contains_key(*key)).cloned().collect(),
        }
    }

    fn set_keys(&self) -> Vec<String> {
        self.set.keys().cloned().collect()
    }

    /// Whether a topic shows this change. The broker may answer a value in its own spelling.
    fn is_visible(&self, before: &TopicObservation, live: &TopicObservation) -> bool {
        let set = self.set.iter().all(|(key, value)| {
            let shown = live.config.get(key);
            shown == Some(value) || (shown.is_some() && shown != before.config.get(key))
        });
        set && self.delete.iter().all(|key| !live.config.contains_key(key))
    }

    fn operations(&self) -> Vec<ConfigOp> {
        let keys: BTreeSet<&String> = self.set.keys().chain(&self.delete).collect();
        keys.into_iter()
            .map(|key| match self.set.get(key) {
                Some(value) => ConfigOp::set(key, value),
                None => ConfigOp::delete(key),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
