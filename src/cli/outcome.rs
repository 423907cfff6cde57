//! What a command returns. Nothing below `main` prints: a command ends in an [`Outcome`] or a [`Failure`], and the console
//! turns either into text or the JSON envelope.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::codes::{Code, Diagnostic, Diagnostics};

use super::doc::Doc;

/// Exit codes that are not about a single command.
pub mod exit {
    pub const OK: u8 = 0;
    pub const FAILURE: u8 = 1;
    pub const USAGE: u8 = 2;
    /// `--detailed-exitcode`: changes are present and nothing blocks them.
    pub const CHANGES: u8 = 2;
    /// `--detailed-exitcode`: changes or requirements are present and `apply` is blocked.
    pub const BLOCKED: u8 = 3;
    /// `--detailed-exitcode`: changes are present, and all of them put back what somebody else changed.
    pub const DRIFT: u8 = 4;
    pub const SIGINT: u8 = 130;
    pub const SIGTERM: u8 = 143;
}

/// A command that did what it was asked.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub data: Value,
    pub text: Doc,
    pub warnings: Diagnostics,
    pub exit: u8,
}

/// A command that did not, or found what the user asked to be told about. `data` and `text` hold what is known all the same.
#[derive(Clone, Debug)]
pub struct Failure {
    pub errors: Diagnostics,
    pub data: Value,
    pub text: Doc,
    pub warnings: Diagnostics,
    pub exit: u8,
}

pub type CmdResult = Result<Outcome, Failure>;

/// The JSON form of a command's data. Data structs hold strings, numbers and lists only, so this cannot fail; were it to,
/// the command would answer `{}`.
pub fn json<T: Serialize>(data: &T) -> Value {
    serde_json::to_value(data).unwrap_or_else(|_| empty())
}

fn empty() -> Value {
    Value::Object(Map::new())
}

impl Outcome {
    pub fn new<T: Serialize>(data: &T, text: Doc) -> Self {
        Self { data: json(data), text, warnings: Diagnostics::new(), exit: exit::OK }
    }

    pub fn warn(mut self, warnings: impl IntoIterator<Item = Diagnostic>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    pub fn exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// The same result, as a failure: for a command whose finding is an error (`--strict`, `--check`, `--health`).
    pub fn fail(self, errors: impl Into<Diagnostics>) -> Failure {
        Failure {
            errors: errors.into(),
            data: self.data,
            text: self.text,
            warnings: self.warnings,
            exit: exit::FAILURE,
        }
    }
}

impl Failure {
    pub fn new(errors: impl Into<Diagnostics>) -> Self {
        Self {
            errors: errors.into(),
            data: empty(),
            text: Doc::new(),
            warnings: Diagnostics::new(),
            exit: exit::FAILURE,
        }
    }

    /// E902, exit 2: an argument form that the command does not take.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Diagnostic::new(Code::E902Usage, message)).exit(exit::USAGE)
    }

    /// A suggestion on every error that has none of its own.
    pub fn hint(mut self, suggestion: &str) -> Self {
        let errors = std::mem::take(&mut self.errors);
        let with_hint = |error: Diagnostic| match error.suggestion {
            None => error.suggest(suggestion),
            Some(_) => error,
        };
        self.errors = errors.into_iter().map(with_hint).collect::<Vec<_>>().into();
        self
    }

    pub fn data<T: Serialize>(mut self, data: &T) -> Self {
        self.data = json(data);
        self
    }

    pub fn text(mut self, text: Doc) -> Self {
        self.text = text;
        self
    }

    pub fn warn(mut self, warnings: impl IntoIterator<Item = Diagnostic>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    pub fn exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }
}

impl From<Diagnostics> for Failure {
    /// Warnings among the findings of a failed load stay warnings.
    fn from(findings: Diagnostics) -> Self {
        let (errors, warnings): (Vec<_>, Vec<_>) = findings.into_iter().partition(Diagnostic::is_error);
        Self::new(errors).warn(warnings)
    }
}

impl From<Diagnostic> for Failure {
    fn from(error: Diagnostic) -> Self {
        Self::new(error)
    }
}
