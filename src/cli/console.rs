//! The two streams. Everything that reaches a terminal, a pipe or a file of the caller's passes here, once a command has
//! ended; progress and questions while it runs have files of their own.

use std::io::{self, Write};

use crate::codes::{Code, Diagnostic, Diagnostics};

use super::context::Context;
use super::diagnostic;
use super::envelope::Envelope;
use super::outcome::{CmdResult, exit};

/// Writes the result of a command and returns the exit code.
pub fn finish(context: &Context, command: &str, result: CmdResult) -> u8 {
    let (data, text, errors, warnings, code) = match result {
        Ok(outcome) => (outcome.data, outcome.text, Diagnostics::new(), outcome.warnings, outcome.exit),
        Err(failure) => (failure.data, failure.text, failure.errors, failure.warnings, failure.exit),
    };
    let written = if context.json {
        let envelope = Envelope::new(command, &data, &errors, &warnings).render();
        findings(context, &errors, if context.verbose > 0 { &warnings } else { &NONE }, true);
        write_stdout(envelope.as_bytes())
    } else {
        let shown = if context.quiet { String::new() } else { text.render(context.stdout.colour) };
        let written = write_stdout(shown.as_bytes());
        // Elsewhere warnings are an aside; here they are the answer.
        let hints = command == "validate" || context.verbose > 0;
        findings(context, &errors, if context.quiet { &NONE } else { &warnings }, hints);
        written
    };
    match written {
        Ok(()) => code,
        Err(error) => output_failed(context, &error),
    }
}

static NONE: Diagnostics = Diagnostics::new();

/// Warnings first, so that an error is the last thing on the screen.
fn findings(context: &Context, errors: &Diagnostics, warnings: &Diagnostics, hints: bool) {
    let warnings = warnings.iter().map(|warning| (warning, hints && !context.quiet));
    let errors = errors.iter().map(|error| (error, !context.quiet));
    let mut stderr = io::BufWriter::new(io::stderr().lock());
    // One at a time: there may be thousands. A closed stderr is nobody's loss.
    for (finding, whole) in warnings.chain(errors) {
        let text = diagnostic::render(finding, whole).render(context.stderr.colour);
        if stderr.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
    let _ = stderr.flush();
}

/// A closed stderr is nobody's loss: there is no one left to tell.
pub fn write_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Writes text that is the whole answer (help, a usage envelope) and returns the exit code of having done so.
pub fn print(text: &str) -> u8 {
    match write_stdout(text.as_bytes()) {
        Ok(()) => exit::OK,
        Err(_) => exit::FAILURE,
    }
}

fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn output_failed(context: &Context, error: &io::Error) -> u8 {
    if error.kind() != io::ErrorKind::BrokenPipe {
        let error = Diagnostic::new(Code::E907OutputFailed, format!("stdout cannot be written: {}", error.kind()))
            .suggest("Free space or choose another target; the command itself has ended");
        write_stderr(&diagnostic::render(&error, true).render(context.stderr.colour));
    }
    exit::FAILURE
}

/// Replaces the screen of a terminal, for a command that repeats itself.
pub fn write_screen(text: &str) {
    let _ = write_stdout(format!("\u{1b}[2J\u{1b}[H{text}").as_bytes());
}
