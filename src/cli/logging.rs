//! Log records on stderr, only when asked for. Only this program's own records are written: a library's might hold request
//! headers. Every line is redacted and escaped on its way out.

use std::io::{self, Write};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::codes::{escape, redact};

use super::console;
use super::context::Context;

#[derive(Clone, Copy)]
struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        *self
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = redact::redact_text(&String::from_utf8_lossy(bytes));
        console::write_stderr(&escape::lines(&text));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    let layer = tracing_subscriber::fmt::layer().with_writer(Stderr).with_ansi(false);
    let registry = tracing_subscriber::registry().with(filter);
    let _ = if context.log_json { registry.with(layer.json()).try_init() } else { registry.with(layer).try_init() };
}
