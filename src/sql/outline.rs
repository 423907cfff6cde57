//! The outline of one query: its statement, parentheses, outermost SELECT, FROM and WHERE, by spans. It answers what engines a
//! query needs without a full parse.

use super::SqlError;
use super::lex::{Span, Token, tokenize};

/// The tokens of one query and where its parts are.
#[derive(Clone, Debug)]
pub struct Outline<'a> {
    text: &'a str,
    /// Comments left out.
    tokens: Vec<Token>,
}

impl<'a> Outline<'a> {
    /// E105 for a template, E119 for what is not one query.
    pub fn parse(text: &'a str) -> Result<Self, SqlError> {
        let tokens = tokenize(text)?.into_iter().filter(|token| !token.is_trivia()).collect();
        Ok(Self { text, tokens })
    }

    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    pub fn statement(&self) -> Option<Span> {
        Some(self.tokens.first()?.span.to(self.tokens.last()?.span))
    }
}
