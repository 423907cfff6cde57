//! Who consumes a topic, and how far behind: evidence that says what it could not read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use krafka::admin::{
    ConsumerGroupListing, GroupType, ListConsumerGroupOffsetsOptions, ListConsumerGroupsOptions, TopicPartition,
};

use super::{Groups, KafkaClient, OffsetAt, Offsets, Partition};
use crate::planner::observation::{ConsumerEvidence, EvidenceFailure, EvidenceStatus, GroupLag, PartitionLag};
use crate::providers::{Ctx, ProviderFailure};

const READ: Duration = Duration::from_secs(30);
const GROUPS_IN_FLIGHT: usize = 8;

const LISTING: &str = "consumer_group_listing_failed";
const IDENTITY: &str = "invalid_consumer_group_identity";
const LAG: &str = "consumer_group_lag_failed";

/// Committed offsets of one group on the topics asked for.
type Committed = HashMap<TopicPartition, i64>;

impl KafkaClient {
    /// Who consumes `topics`. What cannot be read is a failure inside the evidence; only `Verified` means that there is no
    /// other consumer.
    pub async fn consumer_lag(&self, ctx: &Ctx, topics: &[String], groups: &Groups) -> ConsumerEvidence {
        let mut evidence = Evidence::new(topics);
        let ids = match groups {
            Groups::List(ids) => ids.clone(),
            Groups::All => match self.group_ids(ctx, &mut evidence).await {
                Ok(ids) => ids,
                Err(failure) => {
                    evidence.fail("cluster", LISTING, &failure);
                    return evidence.unavailable();
                }
            },
        };
        let wanted: BTreeSet<&str> = topics.iter().map(String::as_str).collect();
        let committed: Vec<(String, Result<Committed, ProviderFailure>)> = stream::iter(ids)
            .map(|id| async {
                let committed = ctx.read(self.committed(ctx, &id, &wanted)).await;
                (id, committed)
            })
            .buffer_unordered(GROUPS_IN_FLIGHT)
            .collect()
            .await;
        let partitions: BTreeSet<Partition> = committed
            .iter()
            .filter_map(|(_, offsets)| offsets.as_ref().ok())
            .flatten()
            .map(|(tp, _)| (tp.topic.clone(), tp.partition))
            .collect();
        let ends = match self.offsets(ctx, &partitions, OffsetAt::End).await {
            Ok(ends) => ends,
            Err(failure) => {
                evidence.fail("offsets", LAG, &failure);
                Offsets::new()
            }
        };
        for (id, offsets) in committed {
            match offsets {
                Ok(offsets) => evidence.add(&id, &offsets, &ends),
                Err(failure) => evidence.fail(&format!("group:{id}"), LAG, &failure),
            }
        }
        evidence.finish()
    }

    /// Asks every broker: a group is known only to its coordinator.
    async fn group_ids(&self, ctx: &Ctx, evidence: &mut Evidence) -> Result<Vec<String>, ProviderFailure> {
        let options = ListConsumerGroupsOptions::default().timeout(ctx.at_most(READ));
        let brokers = ctx.read(self.call("ListGroups", 0, self.admin.list_consumer_groups(options))).await?;
        let mut ids = BTreeSet::new();
        let mut answered = false;
        let mut last = None;
        for (broker, reply) in brokers {
            match reply.map_err(|error| self.classify(&error)) {
                Ok(listings) => {
                    answered = true;
                    ids.extend(listings.iter().filter_map(|listing| evidence.identity(listing)));
                }
                Err(failure) => {
                    evidence.fail(&format!("broker:{broker}"), LISTING, &failure);
                    last = Some(failure);
                }
            }
        }
        match (answered, last) {
            (false, Some(failure)) => Err(failure),
            (true, _) | (false, None) => Ok(ids.into_iter().collect()),
        }
    }

    async fn committed(&self, ctx: &Ctx, group: &str, topics: &BTreeSet<&str>) -> Result<Committed, ProviderFailure> {
        let options = ListConsumerGroupOffsetsOptions::default().timeout(ctx.at_most(READ));
        let replies = self.call("OffsetFetch", 1, self.admin.list_consumer_group_offsets(group, options)).await?;
        let mut committed = Committed::new();
        for (tp, reply) in replies {
            if !topics.contains(tp.topic.as_str()) {
                continue;
            }
            let offset = reply.map_err(|error| self.classify(&error))?.offset;
            committed.extend(offset.map(|offset| (tp, offset)));
        }
        Ok(committed)
    }
}

struct Evidence {
    failures: Vec<EvidenceFailure>,
    reason: Option<&'static str>,
    groups: BTreeMap<String, Vec<GroupLag>>,
}

impl Evidence {
    fn new(topics: &[String]) -> Self {
        let groups = topics.iter().map(|topic| (topic.clone(), Vec::new())).collect();
        Self { failures: Vec::new(), reason: None, groups }
    }

    fn fail(&mut self, scope: &str, reason: &'static str, failure: &ProviderFailure) {
        self.note(scope, reason, failure.code().as_str(), failure.to_string());
    }

    fn note(&mut self, scope: &str, reason: &'static str, code: &str, message: String) {
        self.reason.get_or_insert(reason);
        self.failures.push(EvidenceFailure { scope: scope.to_owned(), code: code.to_owned(), message });
    }

    /// The id of a group whose offsets can be asked for; workers of Kafka Connect coordinate and do not consume.
    fn identity(&mut self, listing: &ConsumerGroupListing) -> Option<String> {
        let kind = match &listing.group_type {
            Some(GroupType::Unknown(kind)) => kind.as_str(),
            Some(_) | None => listing.protocol_type.as_str(),
        };
        match (kind, listing.group_id.trim().is_empty()) {
            ("connect", _) => None,
            ("share", _) => {
                let message = "is a share group, whose progress is not read".to_owned();
                self.note(&format!("group:{}", listing.group_id), LAG, "unsupported", message);
                None
            }
            (_, true) => {
                self.note("cluster", IDENTITY, "invalid", "a consumer group has a blank name".to_owned());
                None
            }
            (_, false) => Some(listing.group_id.clone()),
        }
    }

    fn add(&mut self, group: &str, committed: &Committed, ends: &Offsets) {
        let mut topics: BTreeMap<&str, Vec<PartitionLag>> = BTreeMap::new();
        let mut unread = false;
        for (tp, offset) in committed {
            let end = ends.get(&(tp.topic.clone(), tp.partition)).and_then(|end| end.as_ref().ok()).copied();
            unread |= end.is_none();
            let lag = PartitionLag { partition: tp.partition, committed: *offset, end };
            topics.entry(tp.topic.as_str()).or_default().push(lag);
        }
        for (topic, mut partitions) in topics {
            partitions.sort_by_key(|lag| lag.partition);
            let lag = partitions.iter().filter_map(PartitionLag::lag).sum();
            let group = GroupLag { group_id: group.to_owned(), lag, partitions };
            self.groups.entry(topic.to_owned()).or_default().push(group);
        }
        if unread {
            let message = "an end offset cannot be read: its lag is not counted".to_owned();
            self.note(&format!("group:{group}"), LAG, "unavailable", message);
        }
    }

    fn finish(self) -> ConsumerEvidence {
        let status = match self.failures.is_empty() {
            true => EvidenceStatus::Verified,
            false => EvidenceStatus::Partial,
        };
        self.with(status)
    }

    fn unavailable(self) -> ConsumerEvidence {
        self.with(EvidenceStatus::Unavailable)
    }

    fn with(mut self, status: EvidenceStatus) -> ConsumerEvidence {
        for groups in self.groups.values_mut() {
            groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        }
        self.failures.sort();
        ConsumerEvidence {
            status,
            reason: self.reason.map(str::to_owned),
            failures: self.failures,
            groups: self.groups,
        }
    }
}
