//! Log records on stderr, only when asked for. Only this program's own records are written: a library's might hold request
//! headers. Every line is redacted and escaped on its way out.

use std::io::{self, Write};

use serde_json::Value;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::codes::{escape, redact};

use super::console;
use super::context::Context;

/// Where the formatter writes one record at a time.
#[derive(Clone, Copy)]
struct Stderr {
    json: bool,
}

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        *self
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        console::write_stderr(&if self.json { json_line(&text) } else { text_lines(&text) });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn text_lines(text: &str) -> String {
    escape::lines(&redact::redact_text(text)).into_owned()
}

/// Every string of the record on its own, so that a line stays one JSON object.
fn json_line(line: &str) -> String {
    fn clean(value: &mut Value) {
        match value {
            Value::String(text) => *text = text_lines(text),
            Value::Array(items) => items.iter_mut().for_each(clean),
            Value::Object(entries) => entries.values_mut().for_each(clean),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    match serde_json::from_str::<Value>(line) {
        Ok(mut record) => {
            redact::redact_keys(&mut record);
            clean(&mut record);
            format!("{record}\n")
        }
        Err(_) => text_lines(line),
    }
}

fn level(context: &Context) -> LevelFilter {
    match context.verbose {
        0 if context.quiet => LevelFilter::ERROR,
        0 => match context.variables.get("STREAMT_LOG_LEVEL").map(|level| level.to_ascii_uppercase()).as_deref() {
            Some("ERROR") => LevelFilter::ERROR,
            Some("WARNING" | "WARN") => LevelFilter::WARN,
            Some("INFO") => LevelFilter::INFO,
            Some("DEBUG") => LevelFilter::DEBUG,
            Some("TRACE") => LevelFilter::TRACE,
            None | Some(_) => LevelFilter::OFF,
        },
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        3.. => LevelFilter::TRACE,
    }
}

/// Starts logging when the command line or the environment asks for it.
pub fn start(context: &Context) {
    let level = level(context);
    if level == LevelFilter::OFF || (level == LevelFilter::ERROR && context.verbose == 0 && context.quiet) {
        return;
    }
    let filter = Targets::new().with_target("streamt", level);
    let layer = tracing_subscriber::fmt::layer().with_writer(Stderr { json: context.log_json }).with_ansi(false);
    let registry = tracing_subscriber::registry().with(filter);
    let _ = if context.log_json { registry.with(layer.json()).try_init() } else { registry.with(layer).try_init() };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-006
    #[test]
    fn a_record_loses_its_secrets_and_its_control_characters_and_stays_one_object() {
        let record = serde_json::json!({
            "fields": {"message": "GET https://bob:pw@host/x password=hunter2", "token": "t0ken", "name": "a\u{1b}[31m\u{202e}b", "ms": 3},
        });
        let line = json_line(&format!("{record}\n"));
        assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            read["fields"],
            serde_json::json!({
                "message": "GET https://<redacted> <redacted>",
                "token": "<redacted>",
                "name": "a\\u{1b}[31m\\u{202e}b",
                "ms": 3,
            })
        );
        assert_eq!(text_lines("a password: x, b\u{7}\n"), "a <redacted>, b\\u{7}\n");
    }
}
