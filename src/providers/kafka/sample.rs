//! Reads a few committed records of a topic: no group, no commit, and never beyond where the topic ended when the read began.
#![expect(clippy::disallowed_methods, reason = "ends when no record has come for a while")]

use std::collections::BTreeMap;
use std::time::Duration;

use krafka::admin::{ListOffsetsOptions, OffsetSpec, TopicPartition};
use krafka::consumer::{AutoOffsetReset, Consumer, IsolationLevel};
use tokio::time::Instant;

use super::{KafkaClient, SERVICE};
use crate::assertions::{Record, Sample};
use crate::providers::{Ctx, ProviderFailure};

const READ: Duration = Duration::from_secs(30);
/// Without a record for so long, what has come is all.
const IDLE: Duration = Duration::from_secs(10);
const HARD: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);
const FETCH_BYTES: i32 = 8 << 20;
const PARTITION_BYTES: i32 = 1 << 20;
/// Bytes of all values that are kept.
const KEPT_BYTES: usize = 64 << 20;

const NOTHING_CAME: &str = "no record came for 10 seconds";
const TOO_LONG: &str = "reading took longer than 60 seconds";
const TOO_LARGE: &str = "the records are larger than 64 MiB";

/// One partition between where it began and where it ended.
struct Progress {
    end: i64,
    next: i64,
    records: Vec<Record>,
    paused: bool,
}

impl Progress {
    fn is_done(&self) -> bool {
        self.next >= self.end
    }
}

impl KafkaClient {
    /// At most `limit` records, from the beginning of each partition in turn.
    pub async fn read_sample(&self, ctx: &Ctx, topic: &str, limit: usize) -> Result<Sample, ProviderFailure> {
        let mut partitions = self.extent(ctx, topic).await?;
        partitions.retain(|_, progress| !progress.is_done());
        if partitions.is_empty() {
            return Ok(Sample::default());
        }
        let consumer = self
            .kafka
            .consumer_without_group()
            .isolation_level(IsolationLevel::ReadCommitted)
            .auto_offset_reset(AutoOffsetReset::Earliest)
            .enable_auto_commit(false)
            .fetch_max_wait(POLL)
            .fetch_max_bytes(FETCH_BYTES)
            .max_partition_fetch_bytes(PARTITION_BYTES)
            .build();
        let consumer = ctx.read(async { consumer.await.map_err(|error| self.classify(&error)) }).await?;
        let read = self.read_partitions(ctx, &consumer, topic, &mut partitions, limit).await;
        // Nothing is committed and no group is left: closing drops connections, however it ends.
        let closed = ctx.read(async { Ok(consumer.close().await) }).await;
        if !matches!(closed, Ok(Ok(()))) {
            tracing::debug!(service = SERVICE, topic, "the consumer did not close in order");
        }
        let cut_short = read?;
        Ok(Sample { records: chosen(partitions, limit), cut_short, had_records: true })
    }

    /// Where each partition begins and ends for a reader of committed records.
    async fn extent(&self, ctx: &Ctx, topic: &str) -> Result<BTreeMap<i32, Progress>, ProviderFailure> {
        let described = ctx.read(self.describe(ctx, &[topic.to_owned()])).await?;
        let description = described.into_iter().find_map(|(_, description)| description);
        let description = description.ok_or(ProviderFailure::NotFound)?;
        let at = async |spec: OffsetSpec| {
            let specs =
                description.partitions.iter().map(|partition| (TopicPartition::new(topic, partition.partition), spec));
            let options = ListOffsetsOptions::default().read_committed(true).timeout(ctx.at_most(READ));
            let count = description.partitions.len();
            let replies = ctx.read(self.call("ListOffsets", count, self.admin.list_offsets(specs, options))).await?;
            let offset = |(tp, reply): (TopicPartition, Result<krafka::admin::ListedOffset, _>)| match reply {
                Ok(listed) => Ok((tp.partition, listed.offset)),
                Err(error) => Err(self.classify(&error)),
            };
            replies.into_iter().map(offset).collect::<Result<BTreeMap<i32, i64>, ProviderFailure>>()
        };
        let (begins, ends) = (at(OffsetSpec::Earliest).await?, at(OffsetSpec::Latest).await?);
        let missing = ProviderFailure::Protocol { what: "a partition without an offset" };
        description
            .partitions
            .iter()
            .map(|partition| {
                let number = partition.partition;
                let (Some(next), Some(end)) = (begins.get(&number).copied(), ends.get(&number).copied()) else {
                    return Err(missing.clone());
                };
                Ok((number, Progress { end, next, records: Vec::new(), paused: false }))
            })
            .collect()
    }

    /// Reads until every partition ended or has given its share; says why it stopped before that.
    async fn read_partitions(
        &self,
        ctx: &Ctx,
        consumer: &Consumer,
        topic: &str,
        partitions: &mut BTreeMap<i32, Progress>,
        limit: usize,
    ) -> Result<Option<&'static str>, ProviderFailure> {
        let ctx = &ctx.within(HARD);
        let failed = |error| self.classify(&error);
        ctx.read(async { consumer.assign(topic, partitions.keys().copied().collect()).await.map_err(failed) }).await?;
        for (number, progress) in partitions.iter() {
            ctx.read(async { consumer.seek(topic, *number, progress.next).await.map_err(failed) }).await?;
        }
        let mut share = limit.div_ceil(partitions.len().max(1));
        let (mut last, mut bytes) = (Instant::now(), 0);
        loop {
            let read: usize = partitions.values().map(|progress| progress.records.len()).sum();
            if read >= limit {
                return Ok(None);
            }
            let waiting: Vec<i32> = {
                let open = partitions.iter().filter(|(_, progress)| !progress.is_done());
                open.map(|(number, _)| *number).collect()
            };
            if waiting.is_empty() {
                return Ok(None);
            }
            let all_paused = waiting.iter().all(|number| partitions[number].records.len() >= share);
            if all_paused {
                // The others have no more: what is left is taken from these.
                share += (limit - read).div_ceil(waiting.len());
            }
            for number in waiting {
                let Some(progress) = partitions.get_mut(&number) else { continue };
                let enough = progress.records.len() >= share;
                if enough && !progress.paused {
                    consumer.pause(topic, &[number]).await;
                } else if !enough && progress.paused {
                    consumer.resume(topic, &[number]).await;
                }
                progress.paused = enough;
            }
            let polled = match ctx.read(async { consumer.poll(POLL).await.map_err(failed) }).await {
                Err(ProviderFailure::Timeout) => return Ok(Some(TOO_LONG)),
                polled => polled?,
            };
            if !polled.is_empty() {
                last = Instant::now();
            }
            for record in polled {
                let Some(progress) = partitions.get_mut(&record.partition) else { continue };
                if record.offset >= progress.end {
                    continue;
                }
                let value = record.value.as_ref().map(|value| value.to_vec());
                bytes += value.as_ref().map_or(0, Vec::len);
                progress.records.push(Record { partition: record.partition, offset: record.offset, value });
            }
            if bytes > KEPT_BYTES {
                return Ok(Some(TOO_LARGE));
            }
            for (number, progress) in partitions.iter_mut() {
                // Markers and aborted records move the position and are no records.
                let position = consumer.position(topic, *number).await.unwrap_or(progress.next);
                if position > progress.next {
                    progress.next = position;
                    last = Instant::now();
                }
            }
            if last.elapsed() > IDLE {
                return Ok(Some(NOTHING_CAME));
            }
        }
    }
}

/// An equal share of each partition, then what others have left over; by partition and offset.
fn chosen(partitions: BTreeMap<i32, Progress>, limit: usize) -> Vec<Record> {
    let held: Vec<usize> = partitions.values().map(|progress| progress.records.len()).collect();
    let mut shares = vec![0; held.len()];
    let mut left = limit;
    while left > 0 && shares.iter().zip(&held).any(|(share, held)| share < held) {
        for (share, held) in shares.iter_mut().zip(&held) {
            if *share < *held && left > 0 {
                *share += 1;
                left -= 1;
            }
        }
    }
    partitions
        .into_values()
        .zip(shares)
        .flat_map(|(progress, share)| progress.records.into_iter().take(share))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_gives_its_share_and_spare_ones_fill_up() {
        let held = |counts: &[usize]| -> BTreeMap<i32, Progress> {
            let progress = |(number, count): (usize, &usize)| {
                let number = number as i32;
                let records = (0..*count as i64).map(|offset| Record { partition: number, offset, value: None });
                (number, Progress { end: 9, next: 9, records: records.collect(), paused: false })
            };
            counts.iter().enumerate().map(progress).collect()
        };
        let taken = |counts: &[usize], limit: usize| -> Vec<usize> {
            let records = chosen(held(counts), limit);
            (0..counts.len()).map(|p| records.iter().filter(|r| r.partition == p as i32).count()).collect()
        };
        assert_eq!(taken(&[9, 9, 9], 6), [2, 2, 2]);
        assert_eq!(taken(&[1, 9, 0], 6), [1, 5, 0]);
        assert_eq!(taken(&[1, 1], 6), [1, 1]);
        assert_eq!(taken(&[9, 9], 0), [0, 0]);
        let first: Vec<i64> = chosen(held(&[9]), 3).iter().map(|record| record.offset).collect();
        assert_eq!(first, [0, 1, 2]);
    }
}
