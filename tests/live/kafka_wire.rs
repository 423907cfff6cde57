//! Real requests on the wire, counted by a proxy between the client and the broker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use streamt::providers::kafka::{ConfigRead, CreateRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf};

use crate::harness::Workspace;
use crate::support::{Open, ctx, kafka, kafka_at, topic, variable};

const API_VERSIONS: i16 = 18;

/// What clients sent.
#[derive(Clone, Default)]
pub struct Wire {
    counts: Arc<Mutex<BTreeMap<i16, usize>>>,
    frames: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    fn note(&self, frame: &[u8]) {
        let key = i16::from_be_bytes([frame[0], frame[1]]);
        *self.counts.lock().expect("unpoisoned").entry(key).or_default() += 1;
        self.frames.lock().expect("unpoisoned").extend_from_slice(frame);
    }

    /// Requests by API key since the last call, without the greeting of each connection.
    fn requests(&self) -> BTreeMap<i16, usize> {
        let mut counts = std::mem::take(&mut *self.counts.lock().expect("unpoisoned"));
        counts.remove(&API_VERSIONS);
        counts
    }

    /// Whether any request held this text.
    pub fn said(&self, text: &str) -> bool {
        self.frames.lock().expect("unpoisoned").windows(text.len()).any(|window| window == text.as_bytes())
    }
}

/// Forwards frames both ways, counts requests by API key and puts its own port into every answer that names the broker's.
pub async fn proxy(broker: String) -> (String, Wire) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let wire = Wire::default();
    let seen = wire.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(&broker).await else { return };
            let port: u32 = broker.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
            let (client_in, client_out) = client.into_split();
            let (server_in, server_out) = server.into_split();
            let seen = seen.clone();
            tokio::spawn(forward(client_in, server_out, move |frame| seen.note(frame)));
            let own = u32::from(address.port());
            tokio::spawn(forward(server_in, client_out, move |frame| {
                let (from, to) = ([&b"127.0.0.1"[..], &port.to_be_bytes()].concat(), own.to_be_bytes());
                let places: Vec<usize> =
                    frame.windows(from.len()).enumerate().filter(|(_, w)| *w == from).map(|(at, _)| at).collect();
                for at in places {
                    frame[at + from.len() - 4..at + from.len()].copy_from_slice(&to);
                }
            }));
        }
    });
    (address.to_string(), wire)
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut each: impl FnMut(&mut [u8])) {
    while let Ok(length) = from.read_u32().await {
        let mut frame = vec![0; length as usize];
        if from.read_exact(&mut frame).await.is_err() {
            return;
        }
        each(&mut frame);
        if to.write_u32(length).await.is_err() || to.write_all(&frame).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_thousand_topics_take_at_most_one_request_for_each_250_and_ten() {
    const TOPICS: usize = 1000;
    // The same topics in every run: making and removing a thousand keeps a small broker busy for other tests, too.
    let names: Vec<String> = (0..TOPICS).map(|number| format!("live-thousand-{number:04}")).collect();
    let direct = kafka().await;
    let there = direct.observe_topics(&ctx(), &names, ConfigRead::None).await.expect("observed");
    let absent = names.iter().filter(|name| !there[*name].exists);
    let topics: Vec<_> = absent.map(|name| topic(name, 1, &[("retention.ms", "1000")])).collect();
    for group in CreateRequest::split(&topics) {
        for (name, outcome) in direct.create_topics(&ctx(), &Open, group).await {
            outcome.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        }
    }

    let (address, wire) = proxy(variable("STREAMT_TEST_KAFKA")).await;
    let few = |what: &str| {
        let counts = wire.requests();
        let requests: usize = counts.values().sum();
        assert!(requests > 2, "{what}: the proxy saw nothing: {counts:?}");
        assert!(requests <= TOPICS / 250 + 10, "{what}: {requests} requests by API key: {counts:?}");
    };
    let client = kafka_at(address.clone()).await;
    let observed = client.observe_topics(&ctx(), &names, ConfigRead::Strict).await.expect("observed");
    assert!(observed.values().all(|topic| topic.exists && topic.config["retention.ms"] == "1000"));
    few("observation");

    let models: String = (names.iter().enumerate())
        .map(|(number, name)| {
            format!("  - {{name: m{number}, topic: {{name: {name}, partitions: 1, replication_factor: 1}}}}\n")
        })
        .collect();
    let workspace = Workspace::project(&format!(
        "project: {{name: many}}\nruntime:\n  kafka: {{bootstrap_servers: \"{address}\"}}\nmodels:\n{models}"
    ));
    let plan =
        tokio::task::spawn_blocking(move || workspace.run("plan -o json").exits(0).json()).await.expect("a plan");
    assert_eq!(plan["data"]["ownership_requirements"].as_array().map(Vec::len), Some(TOPICS));
    few("plan");
}
