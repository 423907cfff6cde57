//! Stands in for a Kafka Connect worker on which nothing exists: it notes every request, so that a test can show that nobody
//! asked, and answers 404 to each.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

pub struct Worker {
    pub address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let notes = Arc::clone(&notes);
                std::thread::spawn(move || answer(&stream, &notes));
            }
        });
        Self { address, seen }
    }

    /// Every connection and every request so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer(stream: &TcpStream, notes: &Mutex<Vec<String>>) {
    let note = |what: &str| notes.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
    note("a connection");
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(first)) = lines.next() {
        note(&first);
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let body = r#"{"error_code":404,"message":"not found"}"#;
        let head = format!(
            "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = stream;
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}
