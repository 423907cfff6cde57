//! Where partitions begin and end.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka::admin::{ListOffsetsOptions, OffsetSpec, TopicPartition};

use super::{KafkaClient, OffsetAt, Offsets, Partition};
use crate::providers::{Ctx, ProviderFailure};

const READ: Duration = Duration::from_secs(30);

impl KafkaClient {
    /// One offset a partition, records of open transactions included. What cannot be read of one partition is data.
    pub async fn offsets(
        &self,
        ctx: &Ctx,
        partitions: &BTreeSet<Partition>,
        at: OffsetAt,
    ) -> Result<Offsets, ProviderFailure> {
        if partitions.is_empty() {
            return Ok(Offsets::new());
        }
        let spec = match at {
            OffsetAt::Beginning => OffsetSpec::Earliest,
            OffsetAt::End => OffsetSpec::Latest,
        };
        let specs = partitions.iter().map(|(topic, number)| (TopicPartition::new(topic.as_str(), *number), spec));
        let options = ListOffsetsOptions::default().timeout(ctx.at_most(READ));
        let replies =
            ctx.read(self.call("ListOffsets", partitions.len(), self.admin.list_offsets(specs, options))).await?;
        let mut offsets: Offsets = replies
            .into_iter()
            .map(|(tp, reply)| {
                let offset = reply.map(|listed| listed.offset).map_err(|error| self.classify(&error));
                ((tp.topic, tp.partition), offset)
            })
            .collect();
        for partition in partitions {
            let unanswered = || Err(ProviderFailure::Protocol { what: "a partition without an offset" });
            offsets.entry(partition.clone()).or_insert_with(unanswered);
        }
        Ok(offsets)
    }
}
