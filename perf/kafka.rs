//! The bare calls that commands are measured against: one client, the least requests that give the same answer.

use std::time::Duration;

use krafka::Kafka;
use krafka::admin::{AdminClient, ConfigResource, NewTopic};

use crate::Failure;

const CHUNK: usize = 500;
/// After a delete the broker removes logs in the background; what is measured next must not pay for it.
const SETTLED: Duration = Duration::from_secs(2);
/// Looks after a deletion.
const DELETIONS: usize = 60;
/// Looks for a topic that marks the end of what came before.
const LOOKS: usize = 600;

fn run<F: Future<Output = Result<(), Failure>>>(work: F) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

fn names(prefix: &str, count: &str) -> Result<Vec<String>, Failure> {
    let count: usize = count.parse()?;
    Ok((0..count).map(|index| format!("{prefix}{index:05}")).collect())
}

/// Connects, describes the topics and their configs.
pub fn describe(servers: &str, prefix: &str, count: &str) -> Result<(), Failure> {
    let names = names(prefix, count)?;
    run(async {
        let admin = Kafka::builder(servers).client_id("streamt-perf").connect().await?.admin();
        let mut seen = 0;
        for chunk in names.chunks(CHUNK) {
            for description in admin.describe_topics(chunk, Default::default()).await?.into_values() {
                description?;
            }
            let resources = chunk.iter().map(|name| ConfigResource::topic(name.as_str()));
            for configs in admin.describe_configs(resources, Default::default()).await?.into_values() {
                configs?;
                seen += 1;
            }
        }
        if seen == names.len() { Ok(()) } else { Err(format!("{seen} of {} topics described", names.len()).into()) }
    })
}

/// Creates the topics in one request; with `led`, waits until every partition has a leader, as an apply does.
pub fn create(servers: &str, prefix: &str, count: &str, led: bool) -> Result<(), Failure> {
    let names = names(prefix, count)?;
    run(async {
        let admin = Kafka::builder(servers).client_id("streamt-perf").connect().await?.admin();
        let mut topics = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let partitions = 1 + i32::try_from(index % 3)?;
            topics.push(
                NewTopic::new(name.as_str(), partitions, 1)?
                    .with_config("retention.ms", (86_400_000 + index).to_string())
                    .with_config("cleanup.policy", "delete"),
            );
        }
        for outcome in admin.create_topics(topics, Default::default()).await?.into_values() {
            outcome?;
        }
        let mut pending = if led { names } else { Vec::new() };
        while !pending.is_empty() {
            let described = admin.describe_topics(&pending, Default::default()).await?;
            let leads = |name: &String| {
                described.get(name).and_then(|topic| topic.as_ref().ok()).is_some_and(|topic| {
                    !topic.partitions.is_empty() && topic.partitions.iter().all(|part| part.leader.is_some())
                })
            };
            pending.retain(|name| !leads(name));
            tokio::time::sleep(Duration::from_millis(if pending.is_empty() { 0 } else { 20 })).await;
        }
        Ok(())
    })
}

/// Deletes every topic with the prefix, and looks until none is left: a broker may be busy with the deletion before.
pub fn delete(servers: &str, prefix: &str) -> Result<(), Failure> {
    run(async {
        let admin = Kafka::builder(servers).client_id("streamt-perf").connect().await?.admin();
        // Topics made a moment ago are not listed before that.
        settled(&admin, prefix).await?;
        let mut deleted = false;
        for _ in 0..DELETIONS {
            let mut names = admin.list_topics(Default::default()).await?;
            names.retain(|name| name.starts_with(prefix));
            if names.is_empty() {
                return if deleted { settled(&admin, prefix).await } else { Ok(()) };
            }
            // What was deleted meanwhile is unknown by now: the next look tells.
            let _ = admin.delete_topics(&names, Default::default()).await;
            deleted = true;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Err(format!("topics with the prefix {prefix} cannot be deleted").into())
    })
}

/// Waits until the broker has caught up with its controller: it shows a new topic only after the files of every change before
/// were made or removed, and what is measured next must not pay for them.
async fn settled(admin: &AdminClient, prefix: &str) -> Result<(), Failure> {
    let marker = format!("{}settled", prefix.replace('.', "-"));
    for outcome in admin.create_topics([NewTopic::new(marker.as_str(), 1, 1)?], Default::default()).await?.into_values()
    {
        outcome?;
    }
    let mut shown = false;
    for _ in 0..LOOKS {
        let described = admin.describe_topics([marker.as_str()], Default::default()).await?;
        shown = described.into_values().any(|topic| topic.is_ok_and(|topic| !topic.partitions.is_empty()));
        if shown {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let _ = admin.delete_topics([marker.as_str()], Default::default()).await;
    tokio::time::sleep(SETTLED).await;
    if shown { Ok(()) } else { Err("the broker is busy: it does not show a new topic in two minutes".into()) }
}
