//! Operands: literals, columns, CASE, casts, intervals, and what is taken from an operand.

use super::super::ast::*;
use super::super::lex::{Span, TokenKind};
use super::super::types::type_at;
use super::{MAX_CHAIN, Parsed, Parser, SyntaxError};

const UNITS: [&str; 27] = [
    "YEAR",
    "YEARS",
    "QUARTER",
    "QUARTERS",
    "MONTH",
    "MONTHS",
    "WEEK",
    "WEEKS",
    "DAY",
    "DAYS",
    "HOUR",
    "HOURS",
    "MINUTE",
    "MINUTES",
    "SECOND",
    "SECONDS",
    "MILLISECOND",
    "MICROSECOND",
    "NANOSECOND",
    "EPOCH",
    "DOW",
    "ISODOW",
    "DOY",
    "ISOYEAR",
    "DECADE",
    "CENTURY",
    "MILLENNIUM",
];

/// Functions that are written without parentheses.
const BARE_FUNCTIONS: [&str; 11] = [
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "CURRENT_USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "USER",
    "PI",
    "CURRENT_CATALOG",
];

impl Parser<'_> {
    /// An operand and the elements and fields that are taken from it.
    pub(super) fn accessed(&mut self) -> Parsed<Expr> {
        let start = self.here();
        let operand = self.primary()?;
        let mut accesses = Vec::new();
        loop {
            if self.symbol("[") {
                accesses.push(Access::Index(self.expr()?));
                self.expect("]")?;
            } else if self.symbol(".") {
                accesses.push(Access::Field(self.name("a field")?));
            } else if accesses.is_empty() {
                return Ok(operand);
            } else {
                let node = Node::Access(Box::new(operand), accesses);
                return Ok(Expr { node, span: self.since(start) });
            }
            if accesses.len() > MAX_CHAIN {
                return self.error("so many accesses in a row are not analysed");
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.here();
        let Some(token) = self.peek() else { return self.unexpected("an expression") };
        let node = match token.kind {
            TokenKind::Number => {
                self.next += 1;
                Node::Literal(Literal::Number(token.span.of(self.text).to_owned()))
            }
            TokenKind::String => {
                self.string();
                Node::Literal(Literal::String)
            }
            TokenKind::QuotedIdentifier => self.path()?,
            TokenKind::Symbol if self.symbol("(") => self.parenthesized()?,
            TokenKind::Word => self.word_expression()?,
            TokenKind::Call(_) => return self.error("a table stands here instead of an expression"),
            TokenKind::Symbol | TokenKind::Comment | TokenKind::Hint => {
                return match token.is_symbol(self.text, "\"") || token.kind == TokenKind::Hint {
                    true => Err(self.unexpected_token(token)),
                    false => self.unexpected("an expression"),
                };
            }
        };
        Ok(Expr { node, span: self.since(start) })
    }

    /// At a string: it, and those that continue it.
    fn string(&mut self) {
        while self.peek().is_some_and(|token| token.kind == TokenKind::String) {
            self.next += 1;
        }
        if self.word("UESCAPE") && self.peek().is_some_and(|token| token.kind == TokenKind::String) {
            self.next += 1;
        }
    }

    /// Behind `(`: a query, a row or an expression.
    fn parenthesized(&mut self) -> Parsed<Node> {
        if self.at_query() {
            let query = self.query()?;
            self.expect(")")?;
            return Ok(Node::Subquery(Box::new(query)));
        }
        let mut parts = self.list(|parser| parser.expr())?;
        self.expect(")")?;
        Ok(match parts.pop() {
            Some(only) if parts.is_empty() => only.node,
            last => {
                parts.extend(last);
                Node::Row(parts)
            }
        })
    }

    fn word_expression(&mut self) -> Parsed<Node> {
        let Some(token) = self.peek() else { return self.unexpected("an expression") };
        let word = token.span.of(self.text);
        let next_is_string = self.peek_at(1).is_some_and(|next| next.kind == TokenKind::String);
        let called = self.symbol_at(1, "(");
        let is = |text: &str| word.eq_ignore_ascii_case(text);
        if next_is_string && is("X") {
            self.next += 1;
            self.string();
            return Ok(Node::Literal(Literal::Binary));
        }
        if next_is_string && (is("DATE") || is("TIME") || is("TIMESTAMP")) {
            self.next += 1;
            let written = self.peek().map_or("", |token| token.span.of(self.text)).trim_matches('\'');
            let fraction = written.rsplit_once('.').map_or(0, |(_, fraction)| fraction.len());
            let digits = u8::try_from(fraction).unwrap_or(u8::MAX).min(9);
            self.string();
            return Ok(Node::Literal(if is("DATE") {
                Literal::Date
            } else if is("TIME") {
                Literal::Time
            } else {
                Literal::Timestamp { digits }
            }));
        }
        if is("INTERVAL") {
            self.next += 1;
            return self.interval();
        }
        if !called {
            let literal = if is("NULL") || is("UNKNOWN") {
                Some(Literal::Null)
            } else if is("TRUE") || is("FALSE") {
                Some(Literal::Boolean)
            } else {
                None
            };
            if let Some(literal) = literal {
                self.next += 1;
                return Ok(Node::Literal(literal));
            }
        }
        if is("CASE") {
            self.next += 1;
            return self.case();
        }
        if self.symbol_at(1, "[") && (is("ARRAY") || is("MAP") || is("MULTISET")) {
            self.next += 2;
            let items = if self.at_symbol("]") { Vec::new() } else { self.list(|parser| parser.expr())? };
            self.expect("]")?;
            return match () {
                () if is("ARRAY") => Ok(Node::Array(items)),
                () if is("MULTISET") => Ok(Node::Multiset(items)),
                () if items.len() % 2 == 1 => self.error("this MAP has a key without a value"),
                () => Ok(Node::Map(items)),
            };
        }
        if called {
            return self.call_expression(token);
        }
        if BARE_FUNCTIONS.iter().any(|function| is(function)) {
            self.next += 1;
            return Ok(Node::Call(Box::new(super::call::plain(word.to_ascii_uppercase(), token.span))));
        }
        self.path()
    }

    fn path(&mut self) -> Parsed<Node> {
        let start = self.here();
        let mut path = vec![self.name("an expression")?];
        while self.at_symbol(".") && !self.symbol_at(1, "*") {
            self.next += 1;
            path.push(self.name("a name")?);
        }
        if !self.at_symbol("(") {
            return Ok(Node::Path(path));
        }
        let name = path.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".");
        let span = self.since(start);
        Ok(Node::Call(Box::new(self.call(name, span)?)))
    }

    /// Behind CASE.
    fn case(&mut self) -> Parsed<Node> {
        let operand = if self.at_word("WHEN") { None } else { Some(Box::new(self.expr()?)) };
        let mut branches = Vec::new();
        while self.word("WHEN") {
            let condition = self.expr()?;
            while operand.is_some() && self.symbol(",") {
                self.expr()?;
            }
            self.expect_word("THEN")?;
            branches.push((condition, self.expr()?));
        }
        if branches.is_empty() {
            return self.unexpected("WHEN");
        }
        let otherwise = if self.word("ELSE") { Some(Box::new(self.expr()?)) } else { None };
        self.expect_word("END")?;
        Ok(Node::Case { operand, branches, otherwise })
    }

    /// Behind INTERVAL.
    fn interval(&mut self) -> Parsed<Node> {
        if self.at_symbol("-") || self.at_symbol("+") {
            self.next += 1;
        }
        match self.peek().map(|token| token.kind) {
            Some(TokenKind::String) => self.string(),
            Some(TokenKind::Number) => self.next += 1,
            Some(_) | None => return self.unexpected("a number in quotes, as in INTERVAL '1' DAY,"),
        }
        self.interval_unit()?;
        Ok(Node::Interval)
    }

    fn interval_unit(&mut self) -> Parsed<()> {
        self.unit()?;
        self.precision()?;
        if self.word("TO") {
            self.unit()?;
            self.precision()?;
        }
        Ok(())
    }

    fn precision(&mut self) -> Parsed<()> {
        if self.symbol("(") {
            loop {
                match self.peek() {
                    Some(token) if token.kind == TokenKind::Number => self.next += 1,
                    Some(_) | None => return self.unexpected("a precision"),
                }
                if !self.symbol(",") {
                    return self.expect(")");
                }
            }
        }
        Ok(())
    }

    /// A unit of time, upper-cased.
    pub(super) fn unit(&mut self) -> Parsed<String> {
        match UNITS.iter().find(|unit| self.at_word(unit)) {
            Some(unit) => {
                self.next += 1;
                Ok((*unit).to_owned())
            }
            None => self.unexpected("a unit of time"),
        }
    }

    pub(super) fn data_type(&mut self) -> Parsed<super::super::types::SqlType> {
        match type_at(self.text, self.tokens, self.next) {
            Ok((data_type, next)) => {
                self.next = next;
                Ok(data_type)
            }
            Err(error) => {
                let span = self.tokens.iter().map(|token| token.span).find(|span| span.start >= error.offset);
                let span = span.unwrap_or(Span::new(error.offset, error.offset));
                Err(SyntaxError { span, message: error.message })
            }
        }
    }

    /// Behind `CAST (`, to behind `)`.
    pub(super) fn cast(&mut self) -> Parsed<Node> {
        let expr = Box::new(self.expr()?);
        self.expect_word("AS")?;
        let of_interval = self.word("INTERVAL");
        let target = if of_interval {
            self.interval_unit()?;
            super::super::types::SqlType::Unknown
        } else {
            self.data_type()?
        };
        self.expect(")")?;
        Ok(Node::Cast { expr, target, of_interval })
    }
}
