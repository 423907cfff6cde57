//! Tokens of a model's SQL. Strings end at a single `'` (doubled inside; a backslash is an ordinary character, as in Flink),
//! `"` opens nothing, comments do not nest, and a template call is one token.

use super::SqlError;

/// Byte range in the text, end exclusive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    pub fn len(self) -> usize {
        self.end - self.start
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    pub fn of(self, text: &str) -> &str {
        &text[self.start..self.end]
    }

    /// From the start of this one to the end of the other.
    pub fn to(self, last: Span) -> Span {
        Span::new(self.start, last.end)
    }
}

/// Which call of a template.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CallKind {
    Source,
    Ref,
}

impl CallKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Ref => "ref",
        }
    }
}

/// `{{ source("name") }}` or `{{ ref("name") }}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub kind: CallKind,
    pub name: String,
    /// From `{{` to `}}`.
    pub span: Span,
    /// The name without its quotes.
    pub name_span: Span,
}

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// Keyword or bare identifier.
    Word,
    /// `` `x` ``, back-quotes included.
    QuotedIdentifier,
    /// `'x'`, also with the prefixes `U&`, `N` and `_charset`.
    String,
    Number,
    Comment,
    /// `/*+ … */`
    Hint,
    Call(CallKind),
    /// An operator or a punctuation mark; `"` and unknown characters too.
    Symbol,
}

/// A token and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

impl Token {
    /// Whether this is the bare word, in any case.
    pub fn is_word(&self, text: &str, word: &str) -> bool {
        self.kind == TokenKind::Word && self.span.of(text).eq_ignore_ascii_case(word)
    }

    pub fn is_symbol(&self, text: &str, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.span.of(text) == symbol
    }

    /// Tokens that mean nothing to the query itself.
    pub fn is_trivia(&self) -> bool {
        matches!(self.kind, TokenKind::Comment)
    }
}

/// The calls of a text in order. E105 for any other template outside string literals and comments.
pub fn references(text: &str) -> Result<Vec<Call>, SqlError> {
    let mut calls = Vec::new();
    let mut lexer = Lexer { text, at: 0 };
    while let Some(token) = lexer.next_token()? {
        if let TokenKind::Call(kind) = token.kind {
            calls.push(call_of(text, token.span, kind));
        }
    }
    Ok(calls)
}

/// Every token; what lies between two of them is white space.
pub fn tokenize(text: &str) -> Result<Vec<Token>, SqlError> {
    let mut tokens = Vec::with_capacity(text.len() / 5);
    let mut lexer = Lexer { text, at: 0 };
    while let Some(token) = lexer.next_token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

/// Reads the call that a token of kind `Call` covers.
pub fn call_of(text: &str, span: Span, kind: CallKind) -> Call {
    let inside = span.of(text);
    let open = inside.find(['"', '\'']).map_or(span.end, |at| span.start + at + 1);
    let close = inside.rfind(['"', '\'']).map_or(span.end, |at| span.start + at);
    let name_span = Span::new(open, close.max(open));
    Call { kind, name: name_span.of(text).to_owned(), span, name_span }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

const GRAMMAR: &str = "only {{ source(\"name\") }} and {{ ref(\"name\") }} may be used in SQL";

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn next_token(&mut self) -> Result<Option<Token>, SqlError> {
        self.skip_space();
        let start = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let kind = match (first, self.byte(1)) {
            ('-', Some(b'-')) | ('/', Some(b'/')) => {
                self.at = self.rest().find(['\n', '\r']).map_or(self.text.len(), |at| start + at);
                TokenKind::Comment
            }
            ('/', Some(b'*')) if self.byte(2) == Some(b'+') => self.hint()?,
            ('/', Some(b'*')) => {
                let end = self.text[start + 2..].find("*/");
                self.at = end.map(|at| start + 2 + at + 2).ok_or_else(|| self.unterminated(start, 2, "comment"))?;
                TokenKind::Comment
            }
            ('{', Some(b'{')) => TokenKind::Call(self.call()?),
            ('{', Some(b'%' | b'#')) => return Err(SqlError::template(Span::new(start, start + 2), GRAMMAR)),
            ('\'', _) => self.string()?,
            ('`', _) => self.quoted_identifier()?,
            ('0'..='9', _) => self.number(),
            ('.', Some(b'0'..=b'9')) if !self.follows_name() => self.number(),
            (c, _) if is_word_start(c) => self.word()?,
            (c, _) => {
                let pair = self.rest().get(..2).is_some_and(|two| ["<>", "<=", ">=", "!=", "||", "=>"].contains(&two));
                self.at += if pair { 2 } else { c.len_utf8() };
                TokenKind::Symbol
            }
        };
        Ok(Some(Token { kind, span: Span::new(start, self.at) }))
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Whether the character before belongs to a name, so that `.5` behind it cannot be a number.
    fn follows_name(&self) -> bool {
        self.text[..self.at].chars().next_back().is_some_and(|c| is_word_part(c) || matches!(c, '`' | ']' | ')' | '}'))
    }

    fn unterminated(&self, start: usize, width: usize, what: &str) -> SqlError {
        SqlError::statement(Span::new(start, start + width), format!("this {what} is never closed"))
    }

    /// At `'`: to behind its end, doubled quotes inside.
    fn string(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        self.at = self.closing(start, b'\'').ok_or_else(|| self.unterminated(start, 1, "string"))?;
        Ok(TokenKind::String)
    }

    fn quoted_identifier(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        self.at = self.closing(start, b'`').ok_or_else(|| self.unterminated(start, 1, "quoted identifier"))?;
        match template_marker(&self.text[start..self.at]) {
            Some(at) => Err(SqlError::template(Span::new(start + at, start + at + 2), GRAMMAR)),
            None => Ok(TokenKind::QuotedIdentifier),
        }
    }

    /// The offset behind the quote that closes the one at `start`.
    fn closing(&self, start: usize, quote: u8) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            at += bytes.get(at..)?.iter().position(|&b| b == quote)? + 1;
            if bytes.get(at) != Some(&quote) {
                return Some(at);
            }
            at += 1;
        }
    }

    /// At `/*+`: to behind `*/`, which may stand inside a string of the hint.
    fn hint(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        self.at += 3;
        loop {
            let rest = self.rest();
            match rest.find(['\'', '`', '*', '{']).map(|at| (at, rest.as_bytes()[at])) {
                None => return Err(self.unterminated(start, 3, "hint")),
                Some((at, quote @ (b'\'' | b'`'))) => {
                    let open = self.at + at;
                    self.at = self.closing(open, quote).ok_or_else(|| self.unterminated(open, 1, "string"))?;
                }
                Some((at, b'*')) if rest.as_bytes().get(at + 1) == Some(&b'/') => {
                    self.at += at + 2;
                    return Ok(TokenKind::Hint);
                }
                Some((at, b'{')) if template_marker(&rest[at..]) == Some(0) => {
                    return Err(SqlError::template(Span::new(self.at + at, self.at + at + 2), GRAMMAR));
                }
                Some((at, _)) => self.at += at + 1,
            }
        }
    }

    fn number(&mut self) -> TokenKind {
        self.digits();
        if self.byte(0) == Some(b'.') && self.byte(1).is_none_or(|b| b != b'.') {
            self.at += 1;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.byte(0) {
            let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
            if self.byte(1 + sign).is_some_and(|b| b.is_ascii_digit()) {
                self.at += 1 + sign;
                self.digits();
            }
        }
        TokenKind::Number
    }

    fn digits(&mut self) {
        while self.byte(0).is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        let rest = self.rest();
        self.at += rest.find(|c| !is_word_part(c)).unwrap_or(rest.len());
        let word = &self.text[start..self.at];
        if word.eq_ignore_ascii_case("u") && self.rest().starts_with("&'") {
            self.at += 1;
            return self.string();
        }
        let prefix = word.eq_ignore_ascii_case("n") || (word.starts_with('_') && word.len() > 1);
        if prefix && self.byte(0) == Some(b'\'') {
            return self.string();
        }
        Ok(TokenKind::Word)
    }

    /// At `{{`: to behind `}}`. The grammar is closed: `{{ name ( quote ident quote ) }}`, white space between the parts.
    fn call(&mut self) -> Result<CallKind, SqlError> {
        let start = self.at;
        self.at += 2;
        self.skip_space();
        let kind = [CallKind::Source, CallKind::Ref].into_iter().find(|kind| self.rest().starts_with(kind.as_str()));
        let Some(kind) = kind else { return Err(self.call_error(start, GRAMMAR)) };
        self.at += kind.as_str().len();
        // `sources(…)`, `refs(…)`: another function.
        if self.rest().chars().next().is_some_and(is_word_part) {
            return Err(self.call_error(start, GRAMMAR));
        }
        self.expect(start, "(", || format!("the name stands in brackets: {{{{ {}(\"name\") }}}}", kind.as_str()))?;
        self.skip_space();
        let quote = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => quote,
            Some(_) | None => {
                let message = format!("{}() takes one name in quotes", kind.as_str());
                return Err(self.call_error(start, message));
            }
        };
        self.at += 1;
        let name_start = self.at;
        let name_end = self.rest().find(['"', '\'']).map(|at| name_start + at);
        let name_end = match name_end {
            Some(end) if self.text[end..].starts_with(quote) => end,
            Some(_) | None => return Err(self.call_error(start, "the name in this template has no closing quote")),
        };
        if self.text[name_start..name_end].trim().is_empty() {
            return Err(self.call_error(start, format!("{}() takes a name, not a blank", kind.as_str())));
        }
        self.at = name_end + 1;
        let call = format!("{{{{ {}(\"{}\") }}}}", kind.as_str(), &self.text[name_start..name_end]);
        self.expect(start, ")", || format!("a `)` is missing behind the name: {call}"))?;
        self.skip_space();
        // What else may stand behind the call is a filter or an expression.
        let cut_short = self.rest().chars().next().is_none_or(|c| c == '}' || is_word_part(c));
        self.expect(start, "}}", || match cut_short {
            true => format!("`}}}}` is missing behind the call: {call}"),
            false => GRAMMAR.to_owned(),
        })?;
        Ok(kind)
    }

    fn expect(&mut self, start: usize, wanted: &str, message: impl FnOnce() -> String) -> Result<(), SqlError> {
        self.skip_space();
        if !self.rest().starts_with(wanted) {
            return Err(self.call_error(start, message()));
        }
        self.at += wanted.len();
        Ok(())
    }

    /// The error covers the template to its `}}`, if that stands on the same line.
    fn call_error(&self, start: usize, message: impl Into<String>) -> SqlError {
        let line = self.text[start..].split(['\n', '\r']).next().unwrap_or_default();
        let width = line.find("}}").map_or(2, |at| at + 2);
        SqlError::template(Span::new(start, start + width), message)
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Offset of the first template marker.
fn template_marker(text: &str) -> Option<usize> {
    text.as_bytes().windows(2).position(|two| matches!(two, b"{{" | b"{%" | b"{#"))
}

#[cfg(test)]
#[path = "lex_tests.rs"]
mod tests;
