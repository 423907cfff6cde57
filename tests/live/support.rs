//! What the live tests share.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use streamt::compiler::artifact::{OwnerType, Ownership, TopicArtifact};
use streamt::project::model::{KafkaRuntime, OwnershipMode};
use streamt::providers::{Ctx, KafkaClient, Lost, MutationGuard, Purpose};
use tokio_util::sync::CancellationToken;

use crate::harness::Workspace;

/// The address of a service, or a failure that says how to get one.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run `make test`, or start the services with `make services` and export its lines")
    })
}

/// The majors of PostgreSQL that the tests of state run against; `make test-postgres-all` names more of them.
pub fn majors() -> Vec<String> {
    let named = std::env::var("STREAMT_TEST_POSTGRES_MAJORS").unwrap_or_else(|_| "14 18".to_owned());
    named.split_whitespace().map(str::to_owned).collect()
}

/// The same test on each major, side by side.
pub fn on_each_major(test: impl Fn(&str) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        let start = |major: String| scope.spawn(move || test(&major));
        let runs: Vec<_> = majors().into_iter().map(start).collect();
        for run in runs {
            run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// What `act` gives once it is good. After a minute and a half it is what came last, for its caller to judge.
pub fn eventually<T>(mut act: impl FnMut() -> T, good: impl Fn(&T) -> bool) -> T {
    let begun = Instant::now();
    loop {
        let came = act();
        if good(&came) || begun.elapsed() > Duration::from_secs(90) {
            return came;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A name that no other test and no earlier run uses.
pub fn unique(stem: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("live-{stem}-{now:x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A right to mutate that nobody takes away.
pub struct Open;

impl MutationGuard for Open {
    fn check(&self) -> Result<(), Lost> {
        Ok(())
    }

    async fn lost(&self) -> Lost {
        std::future::pending().await
    }
}

pub fn ctx() -> Ctx {
    Ctx::new(Purpose::Apply, Duration::from_secs(60), CancellationToken::new())
}

pub fn kafka_runtime(bootstrap_servers: String) -> KafkaRuntime {
    KafkaRuntime::plain(bootstrap_servers)
}

pub async fn kafka_at(bootstrap_servers: String) -> KafkaClient {
    let root = std::path::Path::new("/");
    KafkaClient::connect(&kafka_runtime(bootstrap_servers), root, &ctx()).await.expect("Kafka answers")
}

pub async fn kafka() -> KafkaClient {
    kafka_at(variable("STREAMT_TEST_KAFKA")).await
}

pub fn ownership() -> Ownership {
    Ownership {
        mode: OwnershipMode::Managed,
        project: "shop".to_owned(),
        owner_type: OwnerType::Model,
        name: "orders".to_owned(),
    }
}

pub fn topic(name: &str, partitions: u32, config: &[(&str, &str)]) -> TopicArtifact {
    let config: BTreeMap<String, String> =
        config.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    TopicArtifact { name: name.to_owned(), partitions, replication_factor: 1, config, ownership: ownership() }
}

/// Removes what a test created; streamt itself has no call that deletes a topic.
pub async fn clean_up(names: impl IntoIterator<Item = String>) {
    let kafka = krafka::Kafka::builder(variable("STREAMT_TEST_KAFKA")).connect().await.expect("Kafka answers");
    let _ = kafka.admin().delete_topics(names, krafka::admin::DeleteTopicsOptions::default()).await;
}

/// Copies an example into a workspace, with other words for some.
pub fn example(name: &str, workspace: &Workspace, words: &[(&str, &str)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).expect("an example") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            let text = words.iter().fold(text, |text, (word, other)| text.replace(word, other));
            workspace.write(path.strip_prefix(&root).expect("below").to_str().expect("a path"), &text);
        }
    }
}

/// One request to the registry, as an administrator sends it.
pub fn registry(method: &str, path: &str, body: Option<&str>) -> Value {
    let url = variable("STREAMT_TEST_REGISTRY");
    let (host, base) = url.strip_prefix("http://").expect("plain http").split_once('/').expect("a path");
    let body = body.unwrap_or_default();
    let mut stream = TcpStream::connect(host).expect("connected");
    write!(
        stream,
        "{method} /{base}/{path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let accepted = head.split(' ').nth(1).expect("a status").starts_with('2');
    assert!(accepted || method == "GET", "{method} {path}: {answer}");
    serde_json::from_str(body).unwrap_or(Value::Null)
}
