//! Flink SQL as users write it in a model: tokens with byte offsets, the template calls `source()` and `ref()`, an outline of
//! the query, its tree, what it gives and needs, and type texts. Pure and total: any text gives an answer or an error with its
//! place, never a panic, in bounded time. Whether Flink accepts the SQL stays Flink's business; the tree is built on tokens and
//! outline, never under them, so that references, masks and job texts do not depend on it.

pub mod analysis;
pub mod ast;
pub mod lex;
pub mod outline;
pub mod parse;
pub mod runner;
pub mod types;

use crate::codes::Code;

pub use lex::{Call, CallKind, Span, Token, TokenKind, references, tokenize};
pub use outline::Outline;

/// What is wrong with a text: its class decides the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SqlErrorKind {
    /// A template other than the two calls.
    Template,
    /// Not one query: unbalanced, unterminated, empty, another statement.
    Statement,
}

/// A finding in SQL text. `offset` and `width` count bytes of that text; `width` may be 0 at its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    pub kind: SqlErrorKind,
    pub offset: usize,
    pub width: usize,
    pub message: String,
}

impl SqlError {
    pub fn code(&self) -> Code {
        match self.kind {
            SqlErrorKind::Template => Code::E105JinjaSyntaxError,
            SqlErrorKind::Statement => Code::E119CompileFailed,
        }
    }

    fn template(span: Span, message: impl Into<String>) -> Self {
        Self { kind: SqlErrorKind::Template, offset: span.start, width: span.len(), message: message.into() }
    }

    fn statement(span: Span, message: impl Into<String>) -> Self {
        Self { kind: SqlErrorKind::Statement, offset: span.start, width: span.len(), message: message.into() }
    }
}

#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod fuzz_tests;
