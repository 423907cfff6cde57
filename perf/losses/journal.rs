//! What leases admitted and when they closed, taken from the program's own log records as they are made.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::Failure;

#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub at: Option<Instant>,
    /// `admitted` or `lease closed`.
    message: String,
    pub epoch: u64,
    /// Place in the one order of admissions and closes of a lease.
    pub number: u64,
    pub reason: String,
    pub operation: String,
}

impl Entry {
    pub fn closes(&self) -> bool {
        self.message == "lease closed"
    }

    pub fn admits(&self) -> bool {
        self.message == "admitted"
    }
}

static ENTRIES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Everything so far.
pub fn entries() -> Vec<Entry> {
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub fn clear() {
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

struct Journal;

impl Subscriber for Journal {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("streamt::actors::lock")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut entry = Entry { at: Some(Instant::now()), ..Entry::default() };
        event.record(&mut entry);
        ENTRIES.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Entry {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "epoch" => self.epoch = value,
            "number" => self.number = value,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "reason" {
            value.clone_into(&mut self.reason);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "operation" => self.operation = format!("{value:?}"),
            _ => {}
        }
    }
}

pub fn start() -> Result<(), Failure> {
    Ok(tracing::subscriber::set_global_default(Journal)?)
}
