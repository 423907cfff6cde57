//! Calls: functions with a grammar of their own, table functions and their arguments, aggregates, OVER.

use super::super::ast::*;
use super::super::lex::{Span, Token, TokenKind};
use super::{Parsed, Parser, is_reserved};

/// Reserved words that are functions when a bracket follows.
const FUNCTIONS: [&str; 82] = [
    "ABS",
    "ARRAY_AGG",
    "AVG",
    "CARDINALITY",
    "CEIL",
    "CEILING",
    "CHAR_LENGTH",
    "CHARACTER_LENGTH",
    "CLASSIFIER",
    "COALESCE",
    "COLLECT",
    "CORR",
    "COUNT",
    "COVAR_POP",
    "COVAR_SAMP",
    "CUME_DIST",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "DENSE_RANK",
    "ELEMENT",
    "EVERY",
    "EXP",
    "FIRST_VALUE",
    "FLOOR",
    "GROUPING",
    "HOUR",
    "INTERSECTION",
    "JSON_ARRAY",
    "JSON_ARRAYAGG",
    "JSON_EXISTS",
    "JSON_OBJECT",
    "JSON_OBJECTAGG",
    "JSON_QUERY",
    "JSON_VALUE",
    "LAG",
    "LAST_VALUE",
    "LEAD",
    "LEFT",
    "LN",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "LOWER",
    "MATCH_NUMBER",
    "MAX",
    "MIN",
    "MINUTE",
    "MOD",
    "MONTH",
    "NEXT",
    "NTH_VALUE",
    "NTILE",
    "NULLIF",
    "OCTET_LENGTH",
    "PERCENT_RANK",
    "PERCENTILE_CONT",
    "PERCENTILE_DISC",
    "PERIOD",
    "POWER",
    "PREV",
    "RANK",
    "REGR_COUNT",
    "REGR_SXX",
    "REGR_SYY",
    "RIGHT",
    "ROW_NUMBER",
    "SECOND",
    "SOME",
    "SQRT",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "SUM",
    "TRUNCATE",
    "UPPER",
    "UUID",
    "VAR_POP",
    "VAR_SAMP",
    "YEAR",
    "DAY",
    "WEEK",
    "DATE",
    "REPLACE",
];

/// A call without arguments.
pub(super) fn plain(name: String, span: Span) -> Call {
    Call {
        name,
        name_span: span,
        args: Vec::new(),
        star: false,
        distinct: false,
        order_within: Vec::new(),
        filter: None,
        over: None,
        returning: None,
        unit: None,
        span,
    }
}

fn expr_arg(expr: Expr) -> Arg {
    Arg { name: None, value: ArgValue::Expr(expr) }
}

impl Parser<'_> {
    /// At a word that a bracket follows.
    pub(super) fn call_expression(&mut self, token: Token) -> Parsed<Node> {
        let word = token.span.of(self.text).to_ascii_uppercase();
        let simple = |parser: &mut Self| {
            parser.next += 2;
        };
        match word.as_str() {
            "CAST" | "TRY_CAST" => {
                simple(self);
                self.cast()
            }
            "EXISTS" => {
                simple(self);
                let query = self.query()?;
                self.expect(")")?;
                Ok(Node::Exists(Box::new(query)))
            }
            "ROW" => {
                simple(self);
                let parts = if self.at_symbol(")") { Vec::new() } else { self.list(|parser| parser.expr())? };
                self.expect(")")?;
                Ok(Node::Row(parts))
            }
            "ARRAY" | "MULTISET" | "MAP" => {
                simple(self);
                let query = self.query()?;
                self.expect(")")?;
                Ok(Node::Collected(Box::new(query)))
            }
            "UNIQUE" | "CURSOR" => self.error(format!("{word} is not supported by Flink SQL")),
            _ => {
                let grammar = ["EXTRACT", "POSITION", "TRIM", "SUBSTRING", "OVERLAY", "CONVERT", "TRANSLATE", "IF"];
                let function = grammar.contains(&word.as_str()) || FUNCTIONS.contains(&word.as_str());
                if !function && is_reserved(&word) {
                    return self.unexpected("an expression");
                }
                self.next += 1;
                Ok(Node::Call(Box::new(self.call(word, token.span)?)))
            }
        }
    }

    /// At the bracket of a call, to behind everything that belongs to it.
    pub(super) fn call(&mut self, name: String, name_span: Span) -> Parsed<Call> {
        let mut call = plain(if name.contains('.') { name } else { name.to_ascii_uppercase() }, name_span);
        self.expect("(")?;
        match call.name.as_str() {
            "EXTRACT" => {
                call.unit = Some(self.unit()?);
                self.expect_word("FROM")?;
                call.args.push(expr_arg(self.expr()?));
            }
            "POSITION" => {
                call.args.push(expr_arg(self.operand_expr()?));
                self.expect_word("IN")?;
                call.args.push(expr_arg(self.expr()?));
                if self.word("FROM") {
                    call.args.push(expr_arg(self.expr()?));
                }
            }
            "TRIM" => self.trim(&mut call)?,
            "SUBSTRING" => self.separated(&mut call, &["FROM", "FOR"])?,
            "OVERLAY" => self.separated(&mut call, &["PLACING", "FROM", "FOR"])?,
            "CONVERT" | "TRANSLATE" => self.separated(&mut call, &["USING"])?,
            "CEIL" | "CEILING" | "FLOOR" => {
                call.args.push(expr_arg(self.expr()?));
                if self.word("TO") {
                    call.unit = Some(self.unit()?);
                } else if self.symbol(",") {
                    call.args.push(expr_arg(self.expr()?));
                }
            }
            "TIMESTAMPADD" | "TIMESTAMPDIFF" => {
                call.unit = Some(self.unit()?);
                while self.symbol(",") {
                    call.args.push(expr_arg(self.expr()?));
                }
            }
            "JSON_OBJECT" | "JSON_OBJECTAGG" => self.json_pairs(&mut call)?,
            "JSON_VALUE" | "JSON_QUERY" | "JSON_EXISTS" | "JSON_ARRAY" | "JSON_ARRAYAGG" => {
                if !self.at_symbol(")") && !self.at_words(&["NULL", "ON"]) && !self.at_words(&["ABSENT", "ON"]) {
                    call.args = self.list(|parser| Ok(expr_arg(parser.expr()?)))?;
                }
                self.json_clauses(&mut call)?;
            }
            _ => self.arguments(&mut call)?,
        }
        self.expect(")")?;
        self.behind_call(&mut call)?;
        call.span = self.since(name_span);
        Ok(call)
    }

    fn arguments(&mut self, call: &mut Call) -> Parsed<()> {
        if self.at_symbol(")") {
            return Ok(());
        }
        if self.at_symbol("*") && self.symbol_at(1, ")") {
            self.next += 1;
            call.star = true;
            return Ok(());
        }
        call.distinct = self.word("DISTINCT");
        if !call.distinct {
            self.word("ALL");
        }
        call.args = self.list(Self::argument)?;
        if self.words(&["ORDER", "BY"]) {
            call.order_within = self.order_items()?;
        }
        self.null_treatment();
        Ok(())
    }

    fn null_treatment(&mut self) {
        if self.at_words(&["IGNORE", "NULLS"]) || self.at_words(&["RESPECT", "NULLS"]) {
            self.next += 2;
        }
    }

    fn argument(&mut self) -> Parsed<Arg> {
        let mut name = None;
        if self.symbol_at(1, "=>") {
            let token = self.peek();
            let word = token.filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier));
            let Some(token) = word else { return self.unexpected("the name of an argument") };
            name = Some(super::unquote(token.span.of(self.text)).to_ascii_uppercase());
            self.next += 2;
        }
        let start = self.here();
        let value = if self.at_word("TABLE") && !self.symbol_at(1, ".") {
            self.next += 1;
            if self.at_symbol("(") {
                return self.error("a query as an argument stands in parentheses without TABLE");
            }
            let relation = self.named_table()?;
            let alias = match self.word("AS") {
                true => Some(self.name("an alias")?),
                false => None,
            };
            let table = TableRef { relation, alias, columns: Vec::new(), span: self.since(start) };
            self.partitioned(table)?
        } else if self.at_word("DESCRIPTOR") && self.symbol_at(1, "(") {
            self.next += 1;
            ArgValue::Descriptor(self.column_list()?)
        } else if self.at_word("MODEL")
            && self.peek_at(1).is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier))
        {
            self.next += 1;
            let mut model = self.name("a model")?;
            while self.symbol(".") {
                model = self.name("a model")?;
            }
            ArgValue::Model(model)
        } else if self.word("DEFAULT") {
            ArgValue::Word
        } else if self.at_symbol("(") && self.word_at(1, "SELECT") {
            let expr = self.expr()?;
            match expr.node {
                Node::Subquery(query) if self.at_words(&["PARTITION", "BY"]) => {
                    let relation = Relation::Derived { lateral: false, query };
                    let table = TableRef { relation, alias: None, columns: Vec::new(), span: self.since(start) };
                    self.partitioned(table)?
                }
                _ => ArgValue::Expr(expr),
            }
        } else {
            ArgValue::Expr(self.expr()?)
        };
        Ok(Arg { name, value })
    }

    fn partitioned(&mut self, table: TableRef) -> Parsed<ArgValue> {
        let partition = match self.words(&["PARTITION", "BY"]) {
            true if self.symbol("(") => {
                let keys = self.list(|parser| parser.expr())?;
                self.expect(")")?;
                keys
            }
            // The comma behind a key may begin the next argument: a name and `=>`, a descriptor, an interval.
            true => {
                let mut keys = vec![self.expr()?];
                while self.at_symbol(",") && self.key_follows() {
                    self.next += 1;
                    keys.push(self.expr()?);
                }
                keys
            }
            false => Vec::new(),
        };
        let order = match self.words(&["ORDER", "BY"]) {
            true if self.symbol("(") => {
                let order = self.order_items()?;
                self.expect(")")?;
                order
            }
            true => vec![OrderItem { expr: self.expr()?, descending: self.any(&["ASC", "DESC"]) }],
            false => Vec::new(),
        };
        Ok(ArgValue::Table { table, partition, order })
    }

    fn key_follows(&self) -> bool {
        let name = self.peek_at(1).is_some_and(|token| match token.kind {
            TokenKind::QuotedIdentifier => true,
            TokenKind::Word => !is_reserved(token.span.of(self.text)) && !self.word_at(1, "DESCRIPTOR"),
            TokenKind::String
            | TokenKind::Number
            | TokenKind::Comment
            | TokenKind::Hint
            | TokenKind::Call(_)
            | TokenKind::Symbol => false,
        });
        name && !self.symbol_at(2, "=>") && !self.symbol_at(2, "(")
    }

    /// A call in FROM.
    pub(super) fn table_function(&mut self) -> Parsed<Call> {
        let start = self.here();
        let mut name = match self.peek() {
            Some(token) if token.kind == TokenKind::Word && self.symbol_at(1, "(") => {
                self.next += 1;
                token.span.of(self.text).to_owned()
            }
            Some(_) | None => self.name("a table function")?.text,
        };
        while self.symbol(".") {
            name = format!("{name}.{}", self.name("a table function")?.text);
        }
        let span = self.since(start);
        self.call(name, span)
    }

    fn trim(&mut self, call: &mut Call) -> Parsed<()> {
        let side = self.any(&["BOTH", "LEADING", "TRAILING"]);
        if side && self.word("FROM") {
            call.args.push(expr_arg(self.expr()?));
            return Ok(());
        }
        call.args.push(expr_arg(self.expr()?));
        if self.word("FROM") {
            call.args.insert(0, expr_arg(self.expr()?));
        }
        Ok(())
    }

    /// Operands with words or commas between them.
    fn separated(&mut self, call: &mut Call, words: &[&str]) -> Parsed<()> {
        call.args.push(expr_arg(self.expr()?));
        while self.symbol(",") || self.any(words) {
            call.args.push(expr_arg(self.expr()?));
        }
        Ok(())
    }

    fn json_pairs(&mut self, call: &mut Call) -> Parsed<()> {
        while !self.at_symbol(")") && !self.at_words(&["NULL", "ON"]) && !self.at_words(&["ABSENT", "ON"]) {
            // `KEY` may be a column's name too.
            let keyword = self.at_word("KEY") && !self.word_at(1, "VALUE") && !self.symbol_at(1, ":");
            self.next += usize::from(keyword);
            call.args.push(expr_arg(self.expr()?));
            if !self.word("VALUE") && !self.symbol(":") && !self.symbol(",") {
                return self.unexpected("VALUE");
            }
            call.args.push(expr_arg(self.expr()?));
            if !self.symbol(",") {
                break;
            }
        }
        self.json_clauses(call)
    }

    fn json_clauses(&mut self, call: &mut Call) -> Parsed<()> {
        loop {
            if self.word("RETURNING") {
                call.returning = Some(self.data_type()?);
            } else if self.word("PASSING") {
                return self.error("PASSING is not supported by Flink SQL");
            } else if self.words(&["FORMAT", "JSON"]) {
            } else if self.word("WITHOUT") || self.word("WITH") {
                self.any(&["CONDITIONAL", "UNCONDITIONAL"]);
                self.word("ARRAY");
                self.expect_word("WRAPPER")?;
            } else if self.any(&["NULL", "ERROR", "TRUE", "FALSE", "UNKNOWN", "ABSENT"]) {
                self.json_condition()?;
            } else if self.word("EMPTY") {
                self.any(&["ARRAY", "OBJECT"]);
                self.json_condition()?;
            } else if self.word("DEFAULT") {
                self.expr()?;
                self.json_condition()?;
            } else {
                return Ok(());
            }
        }
    }

    fn json_condition(&mut self) -> Parsed<()> {
        self.expect_word("ON")?;
        match self.any(&["EMPTY", "ERROR", "NULL"]) {
            true => Ok(()),
            false => self.unexpected("EMPTY, ERROR or NULL"),
        }
    }

    fn behind_call(&mut self, call: &mut Call) -> Parsed<()> {
        self.null_treatment();
        if self.words(&["WITHIN", "GROUP"]) {
            self.expect("(")?;
            if !self.words(&["ORDER", "BY"]) {
                return self.unexpected("ORDER BY");
            }
            call.order_within = self.order_items()?;
            self.expect(")")?;
        }
        if self.at_word("FILTER") && self.symbol_at(1, "(") {
            self.next += 2;
            self.expect_word("WHERE")?;
            call.filter = Some(self.expr()?);
            self.expect(")")?;
        }
        self.null_treatment();
        if self.word("OVER") {
            call.over = Some(match self.at_symbol("(") {
                true => Over::Window(self.window()?),
                false => Over::Named(self.name("a window")?),
            });
        }
        Ok(())
    }

    /// `( [name] [PARTITION BY …] [ORDER BY …] [frame] )`
    pub(super) fn window(&mut self) -> Parsed<Window> {
        self.expect("(")?;
        let mut window = Window::default();
        if self.at_name() && !self.at_any(&["PARTITION", "ORDER", "ROWS", "RANGE"]) {
            window.base = Some(self.name("a window")?);
        }
        if self.words(&["PARTITION", "BY"]) {
            window.partition = self.list(|parser| parser.expr())?;
        }
        if self.words(&["ORDER", "BY"]) {
            window.order = self.order_items()?;
        }
        if self.at_any(&["GROUPS"]) {
            return self.error("GROUPS frames are not supported by Flink SQL");
        }
        if self.any(&["ROWS", "RANGE"]) {
            if self.word("BETWEEN") {
                self.bound()?;
                self.expect_word("AND")?;
            }
            self.bound()?;
            if self.at_word("EXCLUDE") {
                return self.error("EXCLUDE in a frame is not supported by Flink SQL");
            }
        }
        self.expect(")")?;
        Ok(window)
    }

    fn bound(&mut self) -> Parsed<()> {
        if self.words(&["CURRENT", "ROW"]) {
            return Ok(());
        }
        if !self.word("UNBOUNDED") {
            self.operand_expr()?;
        }
        match self.any(&["PRECEDING", "FOLLOWING"]) {
            true => Ok(()),
            false => self.unexpected("PRECEDING or FOLLOWING"),
        }
    }
}
