//! Expressions, by precedence: OR, AND, NOT, tests, `+ - ||`, `* / %`, signs, and what binds tighter.

use super::super::ast::*;
use super::super::lex::{Span, TokenKind};
use super::super::types::type_at;
use super::{MAX_CHAIN, Parsed, Parser, SyntaxError};

/// How tightly an operator binds its operands.
const AND: u8 = 2;
const TEST: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const SIGN: u8 = 7;

/// Tests in a row: `a IS NULL IS TRUE`.
const MAX_TESTS: usize = 3;

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
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(|parser| parser.operators(0))
    }

    /// An operand of a frame or of BETWEEN: no AND.
    pub(super) fn operand_expr(&mut self) -> Parsed<Expr> {
        self.nested(|parser| parser.operators(SUM))
    }

    fn operators(&mut self, min: u8) -> Parsed<Expr> {
        let start = self.here();
        let mut left = self.prefix()?;
        let mut tests = 0;
        loop {
            if min <= PRODUCT && self.product_operator().is_some() {
                left = self.arithmetic(start, left, SIGN, Self::product_operator)?;
            } else if min <= SUM && self.sum_operator().is_some() {
                left = self.arithmetic(start, left, PRODUCT, Self::sum_operator)?;
            } else if min <= TEST && self.at_test() {
                tests += 1;
                if tests > MAX_TESTS {
                    return self.error("so many comparisons in a row are not analysed");
                }
                left = self.test(start, left)?;
            } else if min <= AND && self.at_word("AND") {
                left = self.logic(start, left, Logic::And)?;
            } else if min == 0 && self.at_word("OR") {
                left = self.logic(start, left, Logic::Or)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn logic(&mut self, start: Span, first: Expr, kind: Logic) -> Parsed<Expr> {
        let (word, operand) = match kind {
            Logic::And => ("AND", AND + 1),
            Logic::Or => ("OR", AND),
        };
        let mut operands = vec![first];
        while self.word(word) {
            operands.push(self.operators(operand)?);
        }
        Ok(Expr { node: Node::Logic(operands, kind), span: self.since(start) })
    }

    fn arithmetic(
        &mut self,
        start: Span,
        first: Expr,
        operand: u8,
        operator: fn(&Self) -> Option<(Operator, usize)>,
    ) -> Parsed<Expr> {
        let mut rest = Vec::new();
        while let Some((found, tokens)) = operator(self) {
            self.next += tokens;
            rest.push((found, self.operators(operand)?));
        }
        Ok(Expr { node: Node::Arithmetic(Box::new(first), rest), span: self.since(start) })
    }

    fn sum_operator(&self) -> Option<(Operator, usize)> {
        if self.at_symbol("+") {
            return Some((Operator::Plus, 1));
        }
        if self.at_symbol("-") {
            return Some((Operator::Minus, 1));
        }
        self.at_symbol("||").then_some((Operator::Concat, 1))
    }

    fn product_operator(&self) -> Option<(Operator, usize)> {
        let symbols = [("*", Operator::Times), ("/", Operator::Divide), ("%", Operator::Modulo)];
        if let Some((_, operator)) = symbols.into_iter().find(|(symbol, _)| self.at_symbol(symbol)) {
            return Some((operator, 1));
        }
        let combined = ["UNION", "INTERSECT", "EXCEPT"].iter().any(|word| self.word_at(1, word));
        if self.at_word("MULTISET") && combined {
            let quantified = self.word_at(2, "ALL") || self.word_at(2, "DISTINCT");
            return Some((Operator::Multiset, if quantified { 3 } else { 2 }));
        }
        None
    }

    fn at_test(&self) -> bool {
        let symbols = ["=", "<>", "!=", "<", "<=", ">", ">="];
        let words = [
            "IS",
            "IN",
            "BETWEEN",
            "LIKE",
            "SIMILAR",
            "MEMBER",
            "SUBMULTISET",
            "OVERLAPS",
            "CONTAINS",
            "EQUALS",
            "PRECEDES",
            "SUCCEEDS",
            "IMMEDIATELY",
        ];
        let negatable = ["IN", "BETWEEN", "LIKE", "SIMILAR", "MEMBER", "SUBMULTISET"];
        symbols.iter().any(|symbol| self.at_symbol(symbol))
            || self.at_any(&words)
            || (self.at_word("NOT") && negatable.iter().any(|word| self.word_at(1, word)))
            || (self.at_word("FORMAT") && self.word_at(1, "JSON"))
    }

    fn test(&mut self, start: Span, left: Expr) -> Parsed<Expr> {
        let comparisons = [
            ("=", Comparison::Equal),
            ("<>", Comparison::NotEqual),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        if let Some((symbol, comparison)) = comparisons.into_iter().find(|(symbol, _)| self.at_symbol(symbol)) {
            if symbol == "!=" {
                return self.error("Flink writes `<>` for not equal");
            }
            self.next += 1;
            let all = self.word("ALL");
            if all || self.any(&["ANY", "SOME"]) {
                self.expect("(")?;
                if !self.at_query() {
                    return self.error("ANY, SOME and ALL of a list are not analysed");
                }
                let query = self.query()?;
                self.expect(")")?;
                let node = Node::Quantified { expr: Box::new(left), query: Box::new(query), all };
                return Ok(Expr { node, span: self.since(start) });
            }
            let right = self.operators(SUM)?;
            let node = Node::Compare(comparison, Box::new(left), Box::new(right));
            return Ok(Expr { node, span: self.since(start) });
        }
        let negated = self.word("NOT");
        let node = if self.word("IS") {
            let mut operands = vec![left];
            operands.extend(self.is_test()?);
            Node::Test(operands)
        } else if self.word("IN") {
            self.in_test(left, negated)?
        } else if self.word("BETWEEN") {
            self.any(&["ASYMMETRIC", "SYMMETRIC"]);
            let low = Box::new(self.operators(SUM)?);
            self.expect_word("AND")?;
            let high = Box::new(self.operators(SUM)?);
            Node::Between { expr: Box::new(left), low, high, negated }
        } else if self.at_any(&["LIKE", "SIMILAR"]) {
            self.next += 1;
            self.word("TO");
            let mut operands = vec![left, self.operators(SUM)?];
            if self.word("ESCAPE") {
                operands.push(self.operators(SUM)?);
            }
            Node::Test(operands)
        } else if self.at_any(&["MEMBER", "SUBMULTISET"]) {
            self.next += 1;
            self.word("OF");
            Node::Test(vec![left, self.operators(SUM)?])
        } else if self.word("FORMAT") {
            self.next += 1;
            return Ok(left);
        } else {
            self.word("IMMEDIATELY");
            self.next += 1;
            Node::Test(vec![left, self.operators(SUM)?])
        };
        Ok(Expr { node, span: self.since(start) })
    }

    /// Behind IS; the other operand of DISTINCT FROM.
    fn is_test(&mut self) -> Parsed<Option<Expr>> {
        self.word("NOT");
        if self.any(&["NULL", "TRUE", "FALSE", "UNKNOWN", "EMPTY"]) || self.words(&["A", "SET"]) {
            return Ok(None);
        }
        if self.words(&["DISTINCT", "FROM"]) {
            return Ok(Some(self.operators(SUM)?));
        }
        if self.word("JSON") {
            self.any(&["VALUE", "OBJECT", "ARRAY", "SCALAR"]);
            return Ok(None);
        }
        self.unexpected("NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM")
    }

    fn in_test(&mut self, left: Expr, negated: bool) -> Parsed<Node> {
        self.expect("(")?;
        if self.at_query() {
            let query = Box::new(self.query()?);
            self.expect(")")?;
            return Ok(Node::InQuery { expr: Box::new(left), query, negated });
        }
        let mut operands = self.list(|parser| parser.expr())?;
        self.expect(")")?;
        operands.insert(0, left);
        Ok(Node::Test(operands))
    }

    fn prefix(&mut self) -> Parsed<Expr> {
        let start = self.here();
        if self.at_word("NOT") {
            let mut negations = 0;
            while self.word("NOT") {
                negations += 1;
            }
            let operand = self.operators(TEST)?;
            return Ok(match negations % 2 {
                0 => operand,
                _ => Expr { node: Node::Not(Box::new(operand)), span: self.since(start) },
            });
        }
        if self.at_symbol("-") || self.at_symbol("+") {
            while self.symbol("-") || self.symbol("+") {}
            let operand = self.accessed()?;
            return Ok(Expr { node: Node::Sign(Box::new(operand)), span: self.since(start) });
        }
        self.accessed()
    }

    /// An operand and the elements and fields that are taken from it.
    fn accessed(&mut self) -> Parsed<Expr> {
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
            self.string();
            return Ok(Node::Literal(if is("DATE") {
                Literal::Date
            } else if is("TIME") {
                Literal::Time
            } else {
                Literal::Timestamp
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
