//! An in-process stand-in for an HTTP service: it plays scripted answers and records every request, for faults that no real
//! service can be asked for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::guard::testing::HandGuard;

/// What the stand-in does with one request.
#[derive(Clone)]
pub enum Play {
    Json(u16, Value),
    /// Sends these bytes and closes the connection.
    Raw(String),
    /// Closes the connection without an answer.
    Drop,
    /// Loses the guard, then closes.
    LoseGuard(HandGuard),
}

pub struct StandIn {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    pub heads: Arc<Mutex<Vec<String>>>,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
    connections: Arc<AtomicUsize>,
}

impl StandIn {
    /// Plays the script in order, one entry a request; past its end every request gets a 500.
    pub async fn start(script: Vec<Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (requests, heads, bodies) = (Arc::default(), Arc::default(), Arc::default());
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        let script = Arc::new(Mutex::new(VecDeque::from(script)));
        let seen = Seen { requests: Arc::clone(&requests), heads: Arc::clone(&heads), bodies: Arc::clone(&bodies) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&script), seen.clone()));
            }
        });
        Self { url, requests, heads, bodies, connections }
    }

    /// How many were opened so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.bodies.lock().expect("unpoisoned").clone()
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("unpoisoned").clone()
    }
}

#[derive(Clone)]
struct Seen {
    requests: Arc<Mutex<Vec<String>>>,
    heads: Arc<Mutex<Vec<String>>>,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

async fn serve(mut stream: TcpStream, script: Arc<Mutex<VecDeque<Play>>>, seen: Seen) {
    loop {
        let mut received = Vec::new();
        let head = loop {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => received.extend_from_slice(&buffer[..read]),
            }
            if let Some(end) = received.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&received[..end]).into_owned();
                let length = head
                    .lines()
                    .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned))
                    .and_then(|length| length.parse::<usize>().ok())
                    .unwrap_or(0);
                while received.len() < end + 4 + length {
                    let mut buffer = [0; 4096];
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(read) => received.extend_from_slice(&buffer[..read]),
                    }
                }
                seen.bodies.lock().expect("unpoisoned").push(received[end + 4..].to_vec());
                break head;
            }
        };
        let line: Vec<&str> = head.lines().next().unwrap_or_default().split(' ').collect();
        seen.requests.lock().expect("unpoisoned").push(format!("{} {}", line[0], line[1]));
        seen.heads.lock().expect("unpoisoned").push(head.clone());
        let play = script.lock().expect("unpoisoned").pop_front();
        let answer = match play.unwrap_or(Play::Json(500, json!({"error_code": 50001, "message": "store"}))) {
            Play::Json(status, body) => {
                let body = body.to_string();
                format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
            Play::Raw(raw) => {
                let _ = stream.write_all(raw.as_bytes()).await;
                let _ = stream.shutdown().await;
                return;
            }
            Play::Drop => return,
            Play::LoseGuard(guard) => {
                guard.0.cancel();
                tokio::time::sleep(Duration::from_millis(100)).await;
                return;
            }
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
