//! What a running operation shows on stderr: one transient line on a terminal, one plain line per finished action anywhere
//! else. It never holds an endpoint.
#![expect(clippy::disallowed_methods, reason = "draws at most so many times a second")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::codes::escape;
use crate::messages::operation::{Observer, OperationEvent, silent};
use crate::planner::model::Verb;

use super::console;
use super::context::Context;

/// Redrawn at most ten times a second.
const REDRAW: Duration = Duration::from_millis(100);
const ERASE: &str = "\r\u{1b}[2K";

/// The progress of one command.
#[derive(Clone)]
pub struct Progress {
    line: Option<Arc<Mutex<TransientLine>>>,
    plain: bool,
    command: &'static str,
}

#[derive(Default)]
struct TransientLine {
    shown: bool,
    drawn_at: Option<Instant>,
}

impl TransientLine {
    fn draw(&mut self, text: &str, at_once: bool) {
        let recent = self.drawn_at.is_some_and(|at| at.elapsed() < REDRAW);
        if recent && !at_once {
            return;
        }
        self.drawn_at = Some(Instant::now());
        self.shown = true;
        console::write_stderr(&format!("{ERASE}{}", escape::line(text)));
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.shown) {
            console::write_stderr(ERASE);
        }
    }
}

impl Progress {
    pub fn new(context: &Context, command: &'static str) -> Self {
        let shown = !context.json && !context.quiet;
        let dumb = context.variables.get("TERM").is_some_and(|terminal| terminal == "dumb");
        let transient = shown && context.stderr.terminal && !dumb;
        Self { line: transient.then(Arc::default), plain: shown && !transient, command }
    }

    /// For the operation to call.
    pub fn observer(&self) -> Observer {
        match (&self.line, self.plain) {
            (None, false) => silent(),
            (Some(_), _) | (None, true) => {
                let progress = self.clone();
                Arc::new(move |event| progress.event(event))
            }
        }
    }

    /// Takes the transient line away before the result is printed.
    pub fn finish(&self) {
        if let Some(line) = &self.line {
            line.lock().unwrap_or_else(PoisonError::into_inner).erase();
        }
    }

    fn event(&self, event: &OperationEvent) {
        match &self.line {
            Some(line) => {
                let Some((text, at_once)) = transient_text(self.command, event) else { return };
                line.lock().unwrap_or_else(PoisonError::into_inner).draw(&text, at_once);
            }
            None => {
                if let Some(text) = plain_text(self.command, event) {
                    console::write_stderr(&format!("{}\n", escape::line(&text)));
                }
            }
        }
    }
}

fn waiting(remaining: Duration) -> String {
    format!("waiting for the lock of this environment, {} s left", remaining.as_secs())
}

fn past(verb: Verb) -> &'static str {
    match verb {
        Verb::Register => "registered",
        Verb::Create => "created",
        Verb::Update => "updated",
        Verb::Submit => "submitted",
        Verb::Delete => "deleted",
        Verb::Cancel => "cancelled",
        Verb::Adopt => "adopted",
    }
}

/// The text of the line, and whether it must appear even right after another one.
fn transient_text(command: &str, event: &OperationEvent) -> Option<(String, bool)> {
    match event {
        OperationEvent::WaitingForLock { remaining } => Some((waiting(*remaining), true)),
        OperationEvent::Observing { provider, resources } => {
            let noun = if *resources == 1 { "resource" } else { "resources" };
            Some((format!("{command}: reading {resources} {noun} from {}", provider.as_str()), true))
        }
        OperationEvent::Validating => Some((format!("{command}: asking the broker"), true)),
        OperationEvent::ActionStarted { index, total, label, verb } => {
            Some((format!("{verb} {}/{total} {label}", index + 1), false))
        }
        OperationEvent::ActionFinished { index, total, label, verb, succeeded, .. } => {
            let outcome = if *succeeded { past(*verb) } else { "failed" };
            Some((format!("{verb} {}/{total} {label} {outcome}", index + 1), index + 1 == *total))
        }
        OperationEvent::Locked
        | OperationEvent::Planned { .. }
        | OperationEvent::Began { .. }
        | OperationEvent::RecoveryRequired { .. }
        | OperationEvent::Committed { .. }
        | OperationEvent::Released => None,
    }
}

fn plain_text(command: &str, event: &OperationEvent) -> Option<String> {
    match event {
        OperationEvent::WaitingForLock { remaining } => Some(waiting(*remaining)),
        OperationEvent::ActionFinished { index, total, label, verb, succeeded, elapsed } => {
            let outcome = if *succeeded { past(*verb) } else { "failed" };
            Some(format!("{command} [{}/{total}] {label} {outcome} ({:.2}s)", index + 1, elapsed.as_secs_f64()))
        }
        OperationEvent::Locked
        | OperationEvent::Observing { .. }
        | OperationEvent::Planned { .. }
        | OperationEvent::Validating
        | OperationEvent::Began { .. }
        | OperationEvent::ActionStarted { .. }
        | OperationEvent::RecoveryRequired { .. }
        | OperationEvent::Committed { .. }
        | OperationEvent::Released => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::artifact::Kind;
    use crate::messages::operation::Label;

    #[test]
    fn a_finished_action_is_one_plain_line() {
        let event = |succeeded| OperationEvent::ActionFinished {
            index: 1,
            total: 5,
            label: Label { kind: Kind::Topic, name: "orders.clean.v1".into() },
            verb: Verb::Create,
            succeeded,
            elapsed: Duration::from_millis(412),
        };
        assert_eq!(plain_text("apply", &event(true)).unwrap(), "apply [2/5] topic:orders.clean.v1 created (0.41s)");
        assert_eq!(plain_text("apply", &event(false)).unwrap(), "apply [2/5] topic:orders.clean.v1 failed (0.41s)");
        assert_eq!(plain_text("apply", &OperationEvent::Released), None);
        assert_eq!(transient_text("apply", &event(true)).unwrap().0, "create 2/5 topic:orders.clean.v1 created");
    }
}
