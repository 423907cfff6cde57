//! One finding, as every layer returns it and as the command line prints it.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::Code;

/// A place in a file of the user's: path relative to the project, line and column from 1 (columns count characters).
/// `line` 0 means that only the file, or only a logical name, is known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl Location {
    pub fn new(file: impl Into<Arc<str>>, line: u32, column: u32) -> Self {
        Self { file: file.into(), line, column }
    }

    /// A location without a position: a file as a whole, an option name, a logical path.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, 0, 0)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}:{}", self.file, self.column),
        }
    }
}

/// The line of the user's file that a finding points at, for rendering. Never taken from a file that holds secrets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Excerpt {
    pub line: String,
    /// Characters underlined, from the location's column on; at least 1.
    pub width: u32,
}

/// An error or a warning. `message` is one line without secrets; `suggestion` says what to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Diagnostic {
    pub code: Code,
    pub message: String,
    pub location: Option<Location>,
    /// Where inside the document, segments joined by ` → `, for example `models → 0 → flink → parallelism`.
    pub path: Option<String>,
    pub explanation: Option<String>,
    pub suggestion: Option<String>,
    pub excerpt: Option<Excerpt>,
    /// Present once a durable intent exists.
    pub operation_id: Option<Uuid>,
}

impl Diagnostic {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            location: None,
            path: None,
            explanation: None,
            suggestion: None,
            excerpt: None,
            operation_id: None,
        }
    }

    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    pub fn at_opt(mut self, location: Option<Location>) -> Self {
        self.location = location;
        self
    }

    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    pub fn explain(mut self, explanation: impl Into<String>) -> Self {
        self.explanation = Some(explanation.into());
        self
    }

    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    pub fn suggest_opt(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    pub fn excerpt(mut self, excerpt: Excerpt) -> Self {
        self.excerpt = Some(excerpt);
        self
    }

    pub fn operation(mut self, operation_id: Uuid) -> Self {
        self.operation_id = Some(operation_id);
        self
    }

    pub fn is_error(&self) -> bool {
        self.code.is_error()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.code, self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// Findings in the order in which they were made.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    pub fn has_errors(&self) -> bool {
        self.0.iter().any(Diagnostic::is_error)
    }

    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().filter(|d| d.is_error())
    }

    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().filter(|d| !d.is_error())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.0
    }

    /// Keeps the first of equal findings.
    pub fn dedup(&mut self) {
        let mut seen = HashSet::with_capacity(self.0.len());
        let mut first = self.0.iter().map(|finding| seen.insert(finding)).collect::<Vec<_>>().into_iter();
        self.0.retain(|_| first.next().unwrap_or(true));
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, iter: T) {
        self.0.extend(iter);
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl From<Vec<Diagnostic>> for Diagnostics {
    fn from(list: Vec<Diagnostic>) -> Self {
        Self(list)
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
