//! How far a runner's consumer group has come.

use serde::{Deserialize, Serialize};

use super::scalar::{ClusterId, TopicId};
use crate::compiler::canonical::MAX_INTEGER;

const MAX_PARTITIONS: usize = 1024;

/// Offsets of one partition of the input topic: each is the next record to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionProgress {
    pub partition: u32,
    pub low: u64,
    pub high: u64,
    pub committed: u64,
}

/// The group of an application in one cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupProgress {
    pub cluster_id: ClusterId,
    pub input_topic_id: TopicId,
    pub output_topic_id: TopicId,
    /// Always true: a group that is missing has no offsets to go on from.
    pub group_exists: bool,
    pub active_members: u64,
    /// In order from 0, without gaps; 1 to 1024.
    pub partitions: Vec<PartitionProgress>,
}

impl GroupProgress {
    pub fn check(&self) -> Result<(), &'static str> {
        if !self.group_exists {
            return Err("the progress of a runner names a group that does not exist");
        }
        if self.active_members > MAX_INTEGER {
            return Err("the members of a group are out of range");
        }
        let numbered = (0..).zip(&self.partitions).all(|(number, partition)| partition.partition == number);
        if self.partitions.is_empty() || self.partitions.len() > MAX_PARTITIONS || !numbered {
            return Err("the partitions of a runner are 1 to 1024, numbered from 0");
        }
        let ordered = |p: &PartitionProgress| p.low <= p.committed && p.committed <= p.high && p.high <= MAX_INTEGER;
        if self.partitions.iter().all(ordered) {
            return Ok(());
        }
        Err("a committed offset lies outside its partition")
    }

    /// Whether nothing of an earlier progress was lost: the same cluster, topics and partitions, and no offset before its own.
    pub fn is_at_least(&self, earlier: &Self) -> bool {
        let same = (&self.cluster_id, &self.input_topic_id, &self.output_topic_id)
            == (&earlier.cluster_id, &earlier.input_topic_id, &earlier.output_topic_id);
        let kept = |(now, then): (&PartitionProgress, &PartitionProgress)| {
            now.partition == then.partition
                && now.committed >= then.committed
                && now.low >= then.low
                && now.high >= then.high
        };
        same && self.partitions.len() == earlier.partitions.len()
            && self.partitions.iter().zip(&earlier.partitions).all(kept)
    }
}
