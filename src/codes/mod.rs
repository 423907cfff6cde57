//! The vocabulary of findings: which codes exist, and the diagnostic that carries one to the user. This is the lowest
//! layer; it knows nothing of projects, providers or terminals. It promises that a code is never a bare string anywhere else.

mod catalogue;
mod diagnostic;
pub mod escape;
mod page;
#[cfg(test)]
mod raised_tests;
pub mod redact;
pub mod suggest;

pub use catalogue::Code;
pub use diagnostic::{Diagnostic, Diagnostics, Excerpt, Location};
pub use page::{Page, PageKind, Retry, WORDS, find_page, page, pages};

impl Code {
    /// Errors fail a command; warnings fail it only under `--strict`.
    pub fn is_error(self) -> bool {
        self.as_str().starts_with('E')
    }

    /// The number without its token, for example `E501`.
    pub fn number(self) -> &'static str {
        &self.as_str()[..4]
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
