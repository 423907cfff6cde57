//! Reader of one Flink query: recursive descent over the outline's tokens, to the tree of [`super::ast`]. What Flink's grammar
//! has and this reader has not is refused by name, at its place. It ends for every text: nesting and chains are bounded, no
//! alternative is tried twice beyond a bracket's first words.

mod call;
mod expr;
mod from;
mod operand;
mod query;
mod reserved;

use super::ast::{Name, Query};
use super::lex::{Span, Token, TokenKind};
use super::outline::Outline;
use super::types::unquote;

pub use reserved::is_reserved;

/// Why a query was not understood: the words at `span`, and what is wrong with them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    pub span: Span,
    pub message: String,
}

/// Levels of nesting in queries and expressions.
const MAX_DEPTH: u32 = 48;

/// Operators in a row, of one precedence.
const MAX_CHAIN: usize = 400;

/// Reserved words that begin what may follow a list.
const CLAUSES: [&str; 9] = ["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "UNION", "INTERSECT", "EXCEPT", "LIMIT"];

/// What a `"` is told to be.
pub const DOUBLE_QUOTE: &str =
    "a double quote means nothing in Flink SQL: a text stands in single quotes ('…'), a name in backticks (`…`)";

type Parsed<T> = Result<T, SyntaxError>;

/// Reads the whole query of an outline.
pub fn parse(outline: &Outline<'_>) -> Parsed<Query> {
    let mut parser = Parser::new(outline.text(), outline.tokens());
    let query = parser.query()?;
    parser.end()?;
    Ok(query)
}

/// Reads a single expression, as of a computed column or a watermark.
pub fn parse_expression(text: &str, tokens: &[Token]) -> Parsed<super::ast::Expr> {
    let mut parser = Parser::new(text, tokens);
    let expr = parser.expr()?;
    parser.end()?;
    Ok(expr)
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    next: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        Self { text, tokens, next: 0, depth: 0 }
    }

    fn end(&self) -> Parsed<()> {
        match self.peek() {
            None => Ok(()),
            Some(token) => Err(self.unexpected_token(token)),
        }
    }

    fn peek(&self) -> Option<Token> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<Token> {
        self.tokens.get(self.next + ahead).copied()
    }

    /// Where the next token is, or the end of the last.
    fn here(&self) -> Span {
        match self.peek() {
            Some(token) => token.span,
            None => {
                let end = self.tokens.last().map_or(0, |token| token.span.end);
                Span::new(end, end)
            }
        }
    }

    /// From a start to the end of the last token that was read.
    fn since(&self, start: Span) -> Span {
        let end = self.next.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(start.end, |t| t.span.end);
        Span::new(start.start, end.max(start.start))
    }

    fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(SyntaxError { span: self.here(), message: message.into() })
    }

    fn unexpected<T>(&self, wanted: &str) -> Parsed<T> {
        let found = match self.peek() {
            Some(token) => format!("`{}`", self.shown(token)),
            None => "the end".to_owned(),
        };
        self.error(format!("{wanted} is expected, not {found}"))
    }

    fn unexpected_token(&self, token: Token) -> SyntaxError {
        let word = self.shown(token);
        let message = match token.kind {
            TokenKind::Hint => "a hint stands behind SELECT or behind a table, not here".to_owned(),
            TokenKind::Symbol if word == "\"" => DOUBLE_QUOTE.to_owned(),
            TokenKind::Word
            | TokenKind::QuotedIdentifier
            | TokenKind::String
            | TokenKind::Number
            | TokenKind::Comment
            | TokenKind::Call(_)
            | TokenKind::Symbol => format!("`{word}` is not expected here"),
        };
        SyntaxError { span: token.span, message }
    }

    fn shown(&self, token: Token) -> &'a str {
        let word = token.span.of(self.text);
        match word.char_indices().nth(40) {
            Some((at, _)) => &word[..at],
            None => word,
        }
    }

    fn at_word(&self, word: &str) -> bool {
        self.word_at(0, word)
    }

    fn word_at(&self, ahead: usize, word: &str) -> bool {
        self.peek_at(ahead).is_some_and(|token| token.is_word(self.text, word))
    }

    fn at_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.at_word(word))
    }

    fn at_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(ahead, word)| self.word_at(ahead, word))
    }

    fn at_symbol(&self, symbol: &str) -> bool {
        self.symbol_at(0, symbol)
    }

    fn symbol_at(&self, ahead: usize, symbol: &str) -> bool {
        self.peek_at(ahead).is_some_and(|token| token.is_symbol(self.text, symbol))
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        self.next += usize::from(found);
        found
    }

    fn words(&mut self, words: &[&str]) -> bool {
        let found = self.at_words(words);
        if found {
            self.next += words.len();
        }
        found
    }

    fn any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.word(word))
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = self.at_symbol(symbol);
        self.next += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.word(word) { Ok(()) } else { self.unexpected(word) }
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.symbol(symbol) { Ok(()) } else { self.unexpected(&format!("`{symbol}`")) }
    }

    /// Runs a part one level deeper.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return self.error(format!("the query is nested deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    fn hints(&mut self) {
        while self.peek().is_some_and(|token| token.kind == TokenKind::Hint) {
            self.next += 1;
        }
    }

    /// Parts separated by commas, one at least.
    fn list<T>(&mut self, mut part: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut parts = vec![part(self)?];
        while self.comma()? {
            parts.push(part(self)?);
        }
        Ok(parts)
    }

    /// The comma of a list, which an item must follow.
    fn comma(&mut self) -> Parsed<bool> {
        let span = self.here();
        if !self.symbol(",") {
            return Ok(false);
        }
        match self.end_of_list() {
            None => Ok(true),
            Some(behind) => {
                let message = format!("behind this comma {behind} and no further item; one comma is too many");
                Err(SyntaxError { span, message })
            }
        }
    }

    /// What stands here, if it can only be what follows a list. A reserved word that goes on like a name is an item that
    /// lacks its backticks.
    fn end_of_list(&self) -> Option<String> {
        let Some(token) = self.peek() else { return Some("stands the end".to_owned()) };
        let word = token.span.of(self.text);
        if token.kind == TokenKind::Symbol {
            return matches!(word, ")" | "]").then(|| format!("stands `{word}`"));
        }
        let clause = token.kind == TokenKind::Word && CLAUSES.iter().any(|clause| word.eq_ignore_ascii_case(clause));
        let like_a_name = self.peek_at(1).is_none()
            || [",", ".", ")", "="].iter().any(|symbol| self.symbol_at(1, symbol))
            || ["AS", "FROM"].iter().any(|next| self.word_at(1, next))
            || (["GROUP", "ORDER"].iter().any(|by| self.at_word(by)) && !self.word_at(1, "BY"));
        (clause && !like_a_name).then(|| format!("stands {}", word.to_ascii_uppercase()))
    }

    /// Any identifier; a reserved word must be quoted.
    fn name(&mut self, what: &str) -> Parsed<Name> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Word => {
                let word = token.span.of(self.text);
                if CLAUSES.iter().any(|clause| word.eq_ignore_ascii_case(clause)) {
                    return self.error(format!(
                        "{what} is expected, not {}; a name that is a reserved word is written in backticks",
                        word.to_ascii_uppercase()
                    ));
                }
                if is_reserved(word) {
                    return self.error(format!(
                        "`{word}` is a reserved word of Flink SQL; as a name it is written in backticks"
                    ));
                }
                self.next += 1;
                Ok(Name { text: word.to_owned(), span: token.span })
            }
            Some(token) if token.kind == TokenKind::QuotedIdentifier => {
                self.next += 1;
                Ok(Name { text: unquote(token.span.of(self.text)), span: token.span })
            }
            Some(_) | None => self.unexpected(what),
        }
    }

    fn at_name(&self) -> bool {
        self.peek().is_some_and(|token| match token.kind {
            TokenKind::QuotedIdentifier => true,
            TokenKind::Word => !is_reserved(token.span.of(self.text)),
            TokenKind::String
            | TokenKind::Number
            | TokenKind::Comment
            | TokenKind::Hint
            | TokenKind::Call(_)
            | TokenKind::Symbol => false,
        })
    }

    fn column_list(&mut self) -> Parsed<Vec<Name>> {
        self.expect("(")?;
        let names = self.list(|parser| parser.name("a column name"))?;
        self.expect(")")?;
        Ok(names)
    }
}

#[cfg(test)]
mod tests;
