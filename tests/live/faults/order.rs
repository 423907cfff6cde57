//! One sequence of everything that any proxy saw, with the marks that a test puts between.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

use super::frames::Request;

#[derive(Clone, Debug)]
pub struct Record {
    /// Place in the one order.
    pub number: usize,
    pub at: Instant,
    /// The same moment on the clock that log records of other processes have.
    pub clock: SystemTime,
    /// The proxy's name, or `test` for a mark.
    pub proxy: &'static str,
    pub connection: u64,
    pub what: String,
    pub mutates: bool,
}

/// Shared by the proxies of a test; cloning shares it.
#[derive(Clone, Default)]
pub struct Order(Arc<(Mutex<Vec<Record>>, Condvar)>);

impl Order {
    fn push(&self, proxy: &'static str, connection: u64, what: String, mutates: bool) -> usize {
        let (records, changed) = &*self.0;
        let mut records = records.lock().expect("whole");
        let number = records.len();
        records.push(Record { number, at: Instant::now(), clock: SystemTime::now(), proxy, connection, what, mutates });
        changed.notify_all();
        number
    }

    /// A request that a proxy read to its end and has not passed on yet.
    pub(super) fn admit(&self, proxy: &'static str, connection: u64, request: &Request) -> usize {
        self.push(proxy, connection, request.what.clone(), request.mutates)
    }

    /// A moment of the test's own.
    pub fn mark(&self, what: &str) -> usize {
        self.push("test", 0, what.to_owned(), false)
    }

    pub fn records(&self) -> Vec<Record> {
        self.0.0.lock().expect("whole").clone()
    }

    /// What changes something, in order.
    pub fn mutations(&self) -> Vec<Record> {
        self.records().into_iter().filter(|record| record.mutates).collect()
    }

    /// Waits for a record, an old one included.
    pub fn wait(&self, within: Duration, wanted: impl Fn(&Record) -> bool) -> Option<Record> {
        let deadline = Instant::now() + within;
        let (records, changed) = &*self.0;
        let mut records = records.lock().expect("whole");
        loop {
            if let Some(found) = records.iter().find(|record| wanted(record)) {
                return Some(found.clone());
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            records = changed.wait_timeout(records, left).expect("whole").0;
        }
    }
}
