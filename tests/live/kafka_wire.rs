//! Real requests on the wire, counted by a proxy between the client and the broker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use streamt::providers::kafka::{ConfigRead, GROUP};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf};

use crate::support::{Open, clean_up, ctx, kafka, kafka_at, topic, unique, variable};

const API_VERSIONS: i16 = 18;

type Counts = Arc<Mutex<BTreeMap<i16, usize>>>;

/// Forwards frames both ways, counts requests by API key and puts its own port into every answer that names the broker's.
async fn proxy(broker: String) -> (String, Counts) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let counts = Counts::default();
    let seen = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(&broker).await else { return };
            let port: u32 = broker.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
            let (client_in, client_out) = client.into_split();
            let (server_in, server_out) = server.into_split();
            let seen = Arc::clone(&seen);
            tokio::spawn(forward(client_in, server_out, move |frame| {
                let key = i16::from_be_bytes([frame[0], frame[1]]);
                *seen.lock().expect("unpoisoned").entry(key).or_default() += 1;
            }));
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
    (address.to_string(), counts)
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
async fn observing_a_thousand_topics_takes_at_most_one_request_for_each_250_and_ten() {
    const TOPICS: usize = 1000;
    let stem = unique("many");
    let names: Vec<String> = (0..TOPICS).map(|number| format!("{stem}-{number:04}")).collect();
    let topics: Vec<_> = names.iter().map(|name| topic(name, 2, &[("retention.ms", "1000")])).collect();
    let direct = kafka().await;
    for group in topics.chunks(GROUP) {
        for (name, outcome) in direct.create_topics(&ctx(), &Open, group).await {
            outcome.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        }
    }

    let (address, counts) = proxy(variable("STREAMT_TEST_KAFKA")).await;
    let client = kafka_at(address).await;
    let observed = client.observe_topics(&ctx(), &names, ConfigRead::Strict).await.expect("observed");
    assert!(observed.values().all(|topic| topic.exists && topic.config["retention.ms"] == "1000"));

    let counts = counts.lock().expect("unpoisoned").clone();
    let requests: usize = counts.iter().filter(|(key, _)| **key != API_VERSIONS).map(|(_, count)| count).sum();
    assert!(requests > 2, "the proxy saw nothing: {counts:?}");
    assert!(requests <= TOPICS / 250 + 10, "{requests} requests by API key: {counts:?}");
    clean_up(names).await;
}
