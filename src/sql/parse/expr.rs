//! Expressions, by precedence: OR, AND, NOT, tests, `+ - ||`, `* / %`, signs, and what binds tighter.

use super::super::ast::*;
use super::super::lex::Span;
use super::{Parsed, Parser};

/// How tightly an operator binds its operands.
const AND: u8 = 2;
const TEST: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const SIGN: u8 = 7;

/// Tests in a row: `a IS NULL IS TRUE`.
const MAX_TESTS: usize = 3;

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
}
