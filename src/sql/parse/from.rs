//! What a query reads: tables, joins, functions, nested queries, MATCH_RECOGNIZE.

use super::super::ast::*;
use super::super::lex::{TokenKind, call_of};
use super::{MAX_CHAIN, Parsed, Parser};

impl Parser<'_> {
    pub(super) fn from(&mut self) -> Parsed<From> {
        let first = self.table_ref()?;
        let mut joins = Vec::new();
        loop {
            let start = self.here();
            let Some((kind, natural)) = self.join_words()? else { return Ok(From { first, joins }) };
            let span = self.since(start);
            let table = self.table_ref()?;
            let condition = if self.word("ON") {
                Condition::On(self.expr()?)
            } else if self.at_word("USING") {
                self.next += 1;
                Condition::Using(self.column_list()?)
            } else {
                Condition::None
            };
            let wants = match kind {
                JoinKind::Comma | JoinKind::Cross => false,
                JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => !natural,
            };
            match (&condition, wants) {
                (Condition::None, true) if kind != JoinKind::Inner => return self.unexpected("ON or USING"),
                (Condition::On(_) | Condition::Using(_), false) => {
                    return Err(super::SyntaxError { span, message: "this join takes no condition".to_owned() });
                }
                (Condition::None | Condition::On(_) | Condition::Using(_), true | false) => {}
            }
            joins.push(Join { kind, natural, table, condition, span });
            if joins.len() > MAX_CHAIN {
                return self.error(format!("more than {MAX_CHAIN} joins are not analysed"));
            }
        }
    }

    fn join_words(&mut self) -> Parsed<Option<(JoinKind, bool)>> {
        if self.comma()? {
            return Ok(Some((JoinKind::Comma, false)));
        }
        if self.at_words(&["CROSS", "APPLY"]) || self.at_words(&["OUTER", "APPLY"]) {
            return self.error("APPLY is not part of Flink SQL; it is a join with LATERAL TABLE");
        }
        let natural = self.word("NATURAL");
        let kind = if self.word("JOIN") {
            return Ok(Some((JoinKind::Inner, natural)));
        } else if self.word("INNER") {
            JoinKind::Inner
        } else if self.word("CROSS") {
            JoinKind::Cross
        } else if self.word("LEFT") {
            JoinKind::Left
        } else if self.word("RIGHT") {
            JoinKind::Right
        } else if self.word("FULL") {
            JoinKind::Full
        } else if natural {
            return self.unexpected("JOIN");
        } else {
            return Ok(None);
        };
        if matches!(kind, JoinKind::Left | JoinKind::Right | JoinKind::Full) {
            self.word("OUTER");
        }
        if self.at_any(&["SEMI", "ANTI", "ASOF"]) {
            return self.error("this join is not part of Flink SQL; EXISTS and NOT EXISTS do what it does");
        }
        self.expect_word("JOIN")?;
        Ok(Some((kind, natural)))
    }

    pub(super) fn table_ref(&mut self) -> Parsed<TableRef> {
        let start = self.here();
        let mut relation = self.relation()?;
        if self.at_any(&["PIVOT", "UNPIVOT"]) && self.symbol_at(1, "(") {
            return self.error("PIVOT and UNPIVOT are not supported by Flink SQL");
        }
        if self.at_word("MATCH_RECOGNIZE") {
            let table = TableRef { relation, alias: None, columns: Vec::new(), span: self.since(start) };
            relation = Relation::Pattern(Box::new(self.pattern(table)?));
        }
        let (alias, columns) = self.alias()?;
        if self.at_word("MATCH_RECOGNIZE") {
            return self.error("MATCH_RECOGNIZE stands directly behind the table, before the alias");
        }
        if self.at_word("TABLESAMPLE") {
            return self.error("TABLESAMPLE is not supported by Flink SQL");
        }
        self.hints();
        Ok(TableRef { relation, alias, columns, span: self.since(start) })
    }

    fn alias(&mut self) -> Parsed<(Option<Name>, Vec<Name>)> {
        let alias = match self.word("AS") {
            true => Some(self.name("an alias")?),
            false if self.at_name() => Some(self.name("an alias")?),
            false => None,
        };
        let columns = match alias.is_some() && self.at_symbol("(") {
            true => self.column_list()?,
            false => Vec::new(),
        };
        Ok((alias, columns))
    }

    fn relation(&mut self) -> Parsed<Relation> {
        if self.at_symbol("(") {
            return self.nested(|parser| {
                parser.next += 1;
                // A bracket opens a query or tables; only tables can follow a closed bracket with a join.
                let relation = if parser.at_query() || (parser.at_symbol("(") && parser.bracket_holds_query()) {
                    Relation::Derived { lateral: false, query: Box::new(parser.query()?) }
                } else {
                    Relation::Joined(Box::new(parser.from()?))
                };
                parser.expect(")")?;
                Ok(relation)
            });
        }
        let lateral = self.word("LATERAL");
        if lateral && self.symbol("(") {
            let query = self.query()?;
            self.expect(")")?;
            return Ok(Relation::Derived { lateral, query: Box::new(query) });
        }
        if self.at_word("TABLE") && self.symbol_at(1, "(") {
            self.next += 2;
            let call = self.nested(Self::table_function)?;
            self.expect(")")?;
            return Ok(Relation::Function { lateral, call: Box::new(call) });
        }
        if self.word("UNNEST") {
            self.expect("(")?;
            let arrays = self.list(|parser| parser.expr())?;
            self.expect(")")?;
            let ordinality = self.words(&["WITH", "ORDINALITY"]);
            return Ok(Relation::Unnest { arrays, ordinality });
        }
        if self.at_any(&["VALUES", "SELECT", "WITH"]) {
            return self.error("a query in FROM stands in parentheses");
        }
        let called = self.peek().is_some_and(|token| token.kind == TokenKind::Word) && self.symbol_at(1, "(");
        if called {
            let call = self.nested(Self::table_function)?;
            return Ok(Relation::Function { lateral, call: Box::new(call) });
        }
        if lateral {
            return self.unexpected("TABLE or a query in parentheses");
        }
        self.named_table()
    }

    /// Behind `(` and at `(`: whether the innermost of these brackets holds a query, and no join follows its end.
    fn bracket_holds_query(&self) -> bool {
        let mut ahead = 0;
        while self.symbol_at(ahead, "(") {
            ahead += 1;
        }
        let query = ["SELECT", "WITH", "VALUES", "TABLE"].iter().any(|word| self.word_at(ahead, word));
        if !query {
            return false;
        }
        // Behind the bracket that opens here there is a set operation or the end, or else a table's alias or a join.
        let mut depth = 0usize;
        for (index, token) in self.tokens.iter().enumerate().skip(self.next) {
            if token.is_symbol(self.text, "(") {
                depth += 1;
            } else if token.is_symbol(self.text, ")") {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let after = self.tokens.get(index + 1);
                    let goes_on = ["UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH"];
                    return after.is_none_or(|after| {
                        after.is_symbol(self.text, ")") || goes_on.iter().any(|word| after.is_word(self.text, word))
                    });
                }
            }
        }
        false
    }

    /// A table's name or a call of a template.
    pub(super) fn named_table(&mut self) -> Parsed<Relation> {
        if let Some(token) = self.peek()
            && let TokenKind::Call(kind) = token.kind
        {
            let call = call_of(self.text, token.span, kind);
            self.next += 1;
            self.hints();
            let name = Name { text: call.name, span: call.name_span };
            return Ok(Relation::Input { name, version: self.version()? });
        }
        let mut path = vec![self.name("a table")?];
        while self.symbol(".") {
            path.push(self.name("a table")?);
        }
        if path.len() > 3 {
            return self.error("a table has at most a catalog, a database and a name");
        }
        self.hints();
        Ok(Relation::Table { path, version: self.version()? })
    }

    fn version(&mut self) -> Parsed<Option<Box<Expr>>> {
        if !self.at_word("FOR") {
            return Ok(None);
        }
        self.next += 1;
        if self.at_words(&["SYSTEM", "TIME"]) {
            return self.error("Flink writes FOR SYSTEM_TIME AS OF, with an underscore");
        }
        self.expect_word("SYSTEM_TIME")?;
        self.expect_word("AS")?;
        self.expect_word("OF")?;
        Ok(Some(Box::new(self.expr()?)))
    }

    fn pattern(&mut self, table: TableRef) -> Parsed<Pattern> {
        self.next += 1;
        self.expect("(")?;
        let partition = match self.words(&["PARTITION", "BY"]) {
            true => self.list(|parser| parser.expr())?,
            false => Vec::new(),
        };
        let order = if self.words(&["ORDER", "BY"]) { self.order_items()? } else { Vec::new() };
        let measures = match self.word("MEASURES") {
            true => self.list(|parser| {
                let expr = parser.expr()?;
                parser.expect_word("AS")?;
                Ok((expr, parser.name("the name of a measure")?))
            })?,
            false => Vec::new(),
        };
        let mut all_rows = false;
        if self.words(&["ALL", "ROWS", "PER", "MATCH"]) {
            all_rows = true;
        } else {
            self.words(&["ONE", "ROW", "PER", "MATCH"]);
        }
        if self.words(&["AFTER", "MATCH"]) {
            self.expect_word("SKIP")?;
            let known = self.words(&["PAST", "LAST", "ROW"])
                || self.words(&["TO", "NEXT", "ROW"])
                || (self.word("TO") && self.skip_target().is_ok());
            if !known {
                return self.unexpected("PAST LAST ROW, TO NEXT ROW, TO FIRST or TO LAST");
            }
        }
        self.expect_word("PATTERN")?;
        let variables = self.pattern_variables()?;
        if self.word("WITHIN") {
            self.expr()?;
        }
        if self.at_word("SUBSET") {
            return self.error("SUBSET is not supported by Flink's MATCH_RECOGNIZE");
        }
        self.expect_word("DEFINE")?;
        let definitions = self.list(|parser| {
            let name = parser.name("a pattern variable")?;
            parser.expect_word("AS")?;
            Ok((name, parser.expr()?))
        })?;
        self.expect(")")?;
        Ok(Pattern { table, partition, order, measures, all_rows, definitions, variables })
    }

    /// `[FIRST | LAST] A`
    fn skip_target(&mut self) -> Parsed<Name> {
        self.any(&["FIRST", "LAST"]);
        self.name("a pattern variable")
    }

    /// `( A B+ C{2,3}? | D )`: the names; what the rest means is Flink's business.
    fn pattern_variables(&mut self) -> Parsed<Vec<Name>> {
        self.expect("(")?;
        let mut names = Vec::new();
        let mut open = 1usize;
        while open > 0 {
            if self.symbol("(") {
                open += 1;
            } else if self.symbol(")") {
                open -= 1;
            } else if self.at_symbol("|") {
                return self.error("alternatives are not supported by Flink's MATCH_RECOGNIZE");
            } else if self.at_word("PERMUTE") {
                return self.error("PERMUTE is not supported by Flink's MATCH_RECOGNIZE");
            } else if self.at_name() {
                names.push(self.name("a pattern variable")?);
            } else if ["*", "+", "?", "{", "}", ","].iter().any(|symbol| self.symbol(symbol))
                || self.peek().is_some_and(|token| token.kind == TokenKind::Number)
            {
                // A quantifier's number is a token of its own; the symbols were read by the condition.
                if self.peek().is_some_and(|token| token.kind == TokenKind::Number) {
                    self.next += 1;
                }
            } else {
                return self.unexpected("a pattern variable or a quantifier");
            }
        }
        if names.is_empty() {
            return self.unexpected("a pattern variable");
        }
        Ok(names)
    }
}
