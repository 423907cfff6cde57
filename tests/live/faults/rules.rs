//! Which request meets which fault.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::frames::Request;

/// What becomes of one request and its answer.
#[derive(Clone)]
pub enum Fault {
    /// The request never reaches the server; the connection is cut.
    CutBefore,
    /// The server has answered; the answer is thrown away and the connection is cut.
    LoseAnswer,
    /// The server has answered; the answer is thrown away and the client goes on waiting.
    SwallowAnswer,
    /// The first half of the answer arrives, then the connection is cut.
    HalfAnswer,
    /// The answer arrives in small pieces.
    SlowAnswer { bytes: usize, every: Duration },
    /// The request is late.
    Delay(Duration),
    /// The answer is late.
    DelayAnswer(Duration),
    /// The request waits for the gate.
    Hold(Gate),
    /// The server has answered; the answer waits for the gate.
    HoldAnswer(Gate),
    /// The server never sees the request; the client gets these bytes.
    Answer(Vec<u8>),
    /// The server has answered; the client gets these bytes instead.
    Replace(Vec<u8>),
    /// The server has answered; the client gets what this makes of the answer.
    Edit(Arc<dyn Fn(Vec<u8>) -> Vec<u8> + Send + Sync>),
    /// The server never sees the request; the connection goes silent.
    Silence,
    /// The server has answered; the connection goes silent before the answer.
    SilenceAnswer,
    /// Runs before the request is passed on, which then happens as usual.
    Call(Arc<dyn Fn(&Request) + Send + Sync>),
    /// Runs when the server has answered, before the answer is passed on.
    CallAnswer(Arc<dyn Fn(&Request) + Send + Sync>),
}

impl Fault {
    pub fn call(run: impl Fn(&Request) + Send + Sync + 'static) -> Self {
        Self::Call(Arc::new(run))
    }

    pub fn edit(edit: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::Edit(Arc::new(edit))
    }

    pub fn call_answer(run: impl Fn(&Request) + Send + Sync + 'static) -> Self {
        Self::CallAnswer(Arc::new(run))
    }
}

/// Closed until it is opened, for everybody who waits there. Cloning shares it.
#[derive(Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Gate {
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn passed(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

type Wanted = Box<dyn Fn(&Request) -> bool + Send>;

/// Which requests: the matching ones from the `from`th on, `times` of them.
pub struct Rule {
    wanted: Wanted,
    skip: usize,
    times: usize,
}

/// The first request that matches.
pub fn first(wanted: impl Fn(&Request) -> bool + Send + 'static) -> Rule {
    nth(1, wanted)
}

/// The `n`th request that matches, counted from 1.
pub fn nth(n: usize, wanted: impl Fn(&Request) -> bool + Send + 'static) -> Rule {
    Rule { wanted: Box::new(wanted), skip: n - 1, times: 1 }
}

/// All requests that match.
pub fn every(wanted: impl Fn(&Request) -> bool + Send + 'static) -> Rule {
    Rule { wanted: Box::new(wanted), skip: 0, times: usize::MAX }
}

/// How often a rule has met its request.
#[derive(Clone, Default)]
pub struct Hit(Arc<(Mutex<usize>, Condvar)>);

impl Hit {
    pub fn count(&self) -> usize {
        *self.0.0.lock().expect("whole")
    }

    /// Waits until it was met.
    pub fn hit(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        let (count, changed) = &*self.0;
        let mut count = count.lock().expect("whole");
        while *count == 0 {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            count = changed.wait_timeout(count, left).expect("whole").0;
        }
        true
    }

    fn note(&self) {
        *self.0.0.lock().expect("whole") += 1;
        self.0.1.notify_all();
    }
}

pub(super) struct Armed {
    rule: Rule,
    fault: Fault,
    seen: AtomicUsize,
    hit: Hit,
}

impl Armed {
    pub(super) fn new(rule: Rule, fault: Fault) -> (Self, Hit) {
        let hit = Hit::default();
        (Self { rule, fault, seen: AtomicUsize::new(0), hit: hit.clone() }, hit)
    }

    pub(super) fn meets(&self, request: &Request) -> Option<Fault> {
        if !(self.rule.wanted)(request) {
            return None;
        }
        let seen = self.seen.fetch_add(1, Ordering::SeqCst);
        if seen < self.rule.skip || seen - self.rule.skip >= self.rule.times {
            return None;
        }
        self.hit.note();
        Some(self.fault.clone())
    }
}

/// The bytes of an HTTP answer.
pub fn answer(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
