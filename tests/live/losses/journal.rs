//! What a run of the program logged of its lease, against what the proxies saw.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::faults::Record;

pub struct Journal {
    /// Place in the order of admissions and closes, and time.
    admitted: Vec<(u64, SystemTime)>,
    pub closed: Option<(u64, SystemTime)>,
    pub reason: String,
}

impl Journal {
    /// From the log records of `-vvv --log-format json`.
    pub fn read(stderr: &str) -> Self {
        let mut journal = Self { admitted: Vec::new(), closed: None, reason: String::new() };
        for line in stderr.lines() {
            let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
            let fields = &record["fields"];
            let Some(number) = fields["number"].as_u64() else { continue };
            let text = record["timestamp"].as_str().expect("a time");
            let at: jiff::Timestamp = text.parse().expect("a time");
            let at = SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(at.as_microsecond()).expect("today"));
            match fields["message"].as_str() {
                Some("admitted") => journal.admitted.push((number, at)),
                Some("lease closed") => {
                    journal.closed = Some((number, at));
                    journal.reason = fields["reason"].as_str().unwrap_or_default().to_owned();
                }
                _ => {}
            }
        }
        journal
    }

    /// No admission is numbered after the close, and every request that changed something follows an admission of its own that
    /// is numbered before it. The program's clock is read to the microsecond.
    pub fn explains(&self, changes: &[Record]) {
        let close = self.closed.map_or(u64::MAX, |(number, _)| number);
        assert!(self.admitted.iter().all(|(number, _)| *number < close), "admitted after the close");
        let mut before = SystemTime::UNIX_EPOCH;
        for change in changes {
            let explained = self.admitted.iter().any(|(_, at)| before <= *at && *at <= change.clock);
            assert!(explained, "{} was sent without an admission since the request before it", change.what);
            before = change.clock;
        }
    }
}
