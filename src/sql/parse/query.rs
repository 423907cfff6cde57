//! Queries: SELECT and its clauses, set operations.

use super::super::ast::*;
use super::super::lex::{Span, TokenKind};
use super::{MAX_CHAIN, Parsed, Parser};

impl Parser<'_> {
    pub(super) fn query(&mut self) -> Parsed<Query> {
        self.nested(|parser| {
            let ctes = parser.with()?;
            let body = parser.body()?;
            let order_by = match parser.words(&["ORDER", "BY"]) {
                true => parser.order_items()?,
                false => Vec::new(),
            };
            let limit = parser.limit()?;
            Ok(Query { ctes, body, order_by, limit })
        })
    }

    /// Whether a query begins here.
    pub(super) fn at_query(&self) -> bool {
        self.at_any(&["SELECT", "WITH", "VALUES", "TABLE"])
    }

    fn with(&mut self) -> Parsed<Vec<Cte>> {
        if !self.word("WITH") {
            return Ok(Vec::new());
        }
        if self.at_word("RECURSIVE") {
            return self.error("WITH RECURSIVE is not supported on streams");
        }
        self.list(|parser| {
            let name = parser.name("the name of a common table")?;
            let columns = if parser.at_symbol("(") { parser.column_list()? } else { Vec::new() };
            parser.expect_word("AS")?;
            parser.expect("(")?;
            let query = parser.query()?;
            parser.expect(")")?;
            Ok(Cte { name, columns, query })
        })
    }

    fn limit(&mut self) -> Parsed<Option<Span>> {
        let start = self.here();
        let mut found = false;
        if self.word("LIMIT") {
            found = true;
            if !self.word("ALL") {
                self.row_count()?;
                if self.symbol(",") {
                    self.row_count()?;
                }
            }
        }
        if self.word("OFFSET") {
            found = true;
            self.row_count()?;
            self.any(&["ROWS", "ROW"]);
        }
        if self.word("FETCH") {
            found = true;
            if !self.any(&["FIRST", "NEXT"]) {
                return self.unexpected("FIRST or NEXT");
            }
            if !self.at_any(&["ROW", "ROWS"]) {
                self.row_count()?;
            }
            if !self.any(&["ROWS", "ROW"]) {
                return self.unexpected("ROWS");
            }
            self.expect_word("ONLY")?;
        }
        Ok(found.then(|| self.since(start)))
    }

    fn row_count(&mut self) -> Parsed<()> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Number => {
                self.next += 1;
                Ok(())
            }
            Some(_) | None => self.unexpected("a number of rows"),
        }
    }

    /// UNION and EXCEPT, with INTERSECT before them.
    fn body(&mut self) -> Parsed<Body> {
        let first = self.intersection()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.set_operator(&[SetKind::Union, SetKind::Except])? {
            rest.push((operator, self.intersection()?));
            if rest.len() > MAX_CHAIN {
                return self.error(format!("more than {MAX_CHAIN} set operations in a row are not analysed"));
            }
        }
        Ok(if rest.is_empty() { first } else { Body::Set { first: Box::new(first), rest } })
    }

    fn intersection(&mut self) -> Parsed<Body> {
        let first = self.operand()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.set_operator(&[SetKind::Intersect])? {
            rest.push((operator, self.operand()?));
            if rest.len() > MAX_CHAIN {
                return self.error(format!("more than {MAX_CHAIN} set operations in a row are not analysed"));
            }
        }
        Ok(if rest.is_empty() { first } else { Body::Set { first: Box::new(first), rest } })
    }

    fn set_operator(&mut self, kinds: &[SetKind]) -> Parsed<Option<SetOperator>> {
        let start = self.here();
        let Some(kind) = kinds.iter().copied().find(|kind| self.word(kind.as_str())) else { return Ok(None) };
        let all = self.word("ALL");
        if !all {
            self.word("DISTINCT");
        }
        Ok(Some(SetOperator { kind, all, span: self.since(start) }))
    }

    fn operand(&mut self) -> Parsed<Body> {
        if self.symbol("(") {
            let query = self.query()?;
            self.expect(")")?;
            return Ok(Body::Nested(Box::new(query)));
        }
        if self.word("VALUES") {
            let rows = self.list(|parser| {
                let row = parser.word("ROW");
                if row || parser.at_symbol("(") {
                    parser.expect("(")?;
                    let values = parser.list(|parser| parser.expr())?;
                    parser.expect(")")?;
                    return Ok(values);
                }
                Ok(vec![parser.expr()?])
            })?;
            return Ok(Body::Values(rows));
        }
        if self.word("TABLE") {
            return Ok(Body::Table(self.named_table()?));
        }
        if self.at_word("SELECT") {
            return Ok(Body::Select(Box::new(self.select()?)));
        }
        self.unexpected("SELECT")
    }

    fn select(&mut self) -> Parsed<Select> {
        self.expect_word("SELECT")?;
        self.hints();
        let quantifier = self.here();
        let distinct = self.word("DISTINCT").then_some(quantifier);
        if distinct.is_none() {
            self.word("ALL");
        }
        if self.at_word("STREAM") {
            return self.error("SELECT STREAM is not part of Flink SQL");
        }
        let items = self.list(Self::item)?;
        let from = if self.word("FROM") { Some(self.from()?) } else { None };
        let filter = if self.word("WHERE") { Some(self.expr()?) } else { None };
        let group_by = if self.at_words(&["GROUP", "BY"]) { Some(self.group_by()?) } else { None };
        let having = if self.word("HAVING") { Some(self.expr()?) } else { None };
        let windows = match self.word("WINDOW") {
            true => self.list(|parser| {
                let name = parser.name("the name of a window")?;
                parser.expect_word("AS")?;
                Ok((name, parser.window()?))
            })?,
            false => Vec::new(),
        };
        let qualify = if self.word("QUALIFY") { Some(self.expr()?) } else { None };
        Ok(Select { distinct, items, from, filter, group_by, having, windows, qualify })
    }

    fn item(&mut self) -> Parsed<Item> {
        let start = self.here();
        if self.symbol("*") {
            return Ok(Item::Star { qualifier: Vec::new(), span: start });
        }
        let stars = (0..3).find(|parts| {
            let path = (0..=*parts).all(|part| {
                let name = self
                    .peek_at(2 * part)
                    .is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier));
                name && self.symbol_at(2 * part + 1, ".")
            });
            path && self.symbol_at(2 * (parts + 1), "*")
        });
        if let Some(parts) = stars {
            let mut qualifier = Vec::new();
            for _ in 0..=parts {
                qualifier.push(self.name("a table")?);
                self.expect(".")?;
            }
            self.expect("*")?;
            return Ok(Item::Star { qualifier, span: self.since(start) });
        }
        let expr = self.expr()?;
        let alias = match self.word("AS") {
            true => Some(self.name("an alias")?),
            false if self.at_name() => Some(self.name("an alias")?),
            false => None,
        };
        Ok(Item::Expr { expr, alias })
    }

    fn group_by(&mut self) -> Parsed<GroupBy> {
        let span = self.here().to(self.peek_at(1).map_or(self.here(), |token| token.span));
        self.next += 2;
        let mut group = GroupBy { span, keys: Vec::new(), sets: false };
        if !self.any(&["DISTINCT"]) {
            self.word("ALL");
        }
        loop {
            self.grouping(&mut group)?;
            if !self.comma()? {
                return Ok(group);
            }
        }
    }

    fn grouping(&mut self, group: &mut GroupBy) -> Parsed<()> {
        let sets = self.words(&["GROUPING", "SETS"]);
        if sets || (self.symbol_at(1, "(") && (self.at_any(&["ROLLUP", "CUBE"]))) {
            self.next += usize::from(!sets);
            group.sets = true;
            self.expect("(")?;
            return self.nested(|parser| {
                loop {
                    parser.grouping(group)?;
                    if !parser.comma()? {
                        return parser.expect(")");
                    }
                }
            });
        }
        if self.at_symbol("(") && self.symbol_at(1, ")") {
            self.next += 2;
            return Ok(());
        }
        let key = self.expr()?;
        match key.node {
            Node::Row(keys) => group.keys.extend(keys),
            Node::Path(_)
            | Node::Literal(_)
            | Node::Interval
            | Node::Sign(_)
            | Node::Not(_)
            | Node::Logic(..)
            | Node::Compare(..)
            | Node::Between { .. }
            | Node::Arithmetic(..)
            | Node::Test(_)
            | Node::InQuery { .. }
            | Node::Exists(_)
            | Node::Quantified { .. }
            | Node::Case { .. }
            | Node::Cast { .. }
            | Node::Call(_)
            | Node::Array(_)
            | Node::Map(_)
            | Node::Multiset(_)
            | Node::Access(..)
            | Node::Subquery(_)
            | Node::Collected(_) => group.keys.push(key),
        }
        Ok(())
    }

    pub(super) fn order_items(&mut self) -> Parsed<Vec<OrderItem>> {
        self.list(|parser| {
            let expr = parser.expr()?;
            let descending = parser.word("DESC");
            if !descending {
                parser.word("ASC");
            }
            if parser.word("NULLS") && !parser.any(&["FIRST", "LAST"]) {
                return parser.unexpected("FIRST or LAST");
            }
            Ok(OrderItem { expr, descending })
        })
    }
}
