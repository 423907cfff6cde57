//! Consumer groups in `status`: where each stands on each partition.

use serde::Serialize;

use crate::cli::doc::Doc;
use crate::planner::observation::ConsumerEvidence;

#[derive(Serialize)]
pub struct GroupRow {
    group_id: String,
    topics: Vec<GroupTopic>,
}

#[derive(Serialize)]
struct GroupTopic {
    topic: String,
    total_lag: u64,
    partitions: Vec<GroupPartition>,
}

#[derive(Serialize)]
struct GroupPartition {
    partition: i32,
    current_offset: i64,
    end_offset: Option<i64>,
    lag: Option<u64>,
}

pub fn rows(evidence: &ConsumerEvidence) -> Vec<GroupRow> {
    let mut rows: Vec<GroupRow> = Vec::new();
    for (topic, groups) in &evidence.groups {
        for group in groups {
            let partitions = group.partitions.iter().map(|at| GroupPartition {
                partition: at.partition,
                current_offset: at.committed,
                end_offset: at.end,
                lag: at.lag(),
            });
            let entry = GroupTopic { topic: topic.clone(), total_lag: group.lag, partitions: partitions.collect() };
            match rows.iter_mut().find(|row| row.group_id == group.group_id) {
                Some(row) => row.topics.push(entry),
                None => rows.push(GroupRow { group_id: group.group_id.clone(), topics: vec![entry] }),
            }
        }
    }
    rows.sort_by(|a, b| a.group_id.cmp(&b.group_id));
    rows
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

pub fn tables<'a>(doc: &mut Doc, groups: impl Iterator<Item = &'a GroupRow>) {
    for group in groups {
        doc.blank().heading(format!("Consumer group {}", group.group_id));
        let mut rows = Vec::new();
        for topic in &group.topics {
            for at in &topic.partitions {
                let offset = at.current_offset.to_string();
                rows.push(vec![
                    topic.topic.clone(),
                    at.partition.to_string(),
                    offset,
                    number(at.end_offset),
                    number(at.lag),
                ]);
            }
            if topic.partitions.len() > 1 {
                let total = topic.total_lag.to_string();
                rows.push(vec![topic.topic.clone(), "all".to_owned(), "-".to_owned(), "-".to_owned(), total]);
            }
        }
        doc.table(&["TOPIC", "PARTITION", "OFFSET", "END", "LAG"], rows);
    }
}
