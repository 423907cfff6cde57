//! The outline of one query: its statement, its parentheses, its outermost SELECT with items, FROM and WHERE, all by spans.
//! It answers which engine a query needs without a full parse, and stays right where a full parser gives up.

use super::SqlError;
use super::lex::{Span, Token, TokenKind, tokenize};
use super::types::unquote;

/// The tokens of one query and where its parts are.
#[derive(Clone, Debug)]
pub struct Outline<'a> {
    text: &'a str,
    /// Without comments and without a final `;`.
    tokens: Vec<Token>,
    /// How many brackets are open before each token.
    depths: Vec<u32>,
    select: Option<Select>,
}

/// The outermost SELECT; of a set operation its first operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Select {
    pub items: Vec<SelectItem>,
    /// What follows FROM, to the next clause.
    pub from: Option<Span>,
    /// What follows WHERE, to the next clause.
    pub predicate: Option<Span>,
    /// Tokens of `from` and `predicate`.
    from_tokens: (usize, usize),
    predicate_tokens: (usize, usize),
}

/// One item of a select list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectItem {
    pub span: Span,
    /// Without the alias.
    pub expression: Span,
    /// Alias, else the column's own name; none for `*` and for an expression without alias.
    pub name: Option<String>,
}

/// What keeps a query from running in a Gateway filter, and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    pub span: Span,
    pub what: &'static str,
}

const CLAUSES: [&str; 12] =
    ["FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT"];

const STATEFUL_CALLS: [&str; 23] = [
    "TUMBLE",
    "HOP",
    "SESSION",
    "CUMULATE",
    "ROW_NUMBER",
    "LAG",
    "LEAD",
    "RANK",
    "DENSE_RANK",
    "FIRST_VALUE",
    "LAST_VALUE",
    "NTH_VALUE",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "COLLECT",
    "LISTAGG",
    "ML_PREDICT",
    "ML_EVALUATE",
    "UNNEST",
    "ARRAY_AGG",
];

const STATEFUL_WORDS: [&str; 11] = [
    "JOIN",
    "MATCH_RECOGNIZE",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "HAVING",
    "LATERAL",
    "UNNEST",
    "LIMIT",
    "FETCH",
    "OFFSET",
];

/// Words that end an operand but are no alias, and words behind which a name is an operand.
const NO_ALIAS: [&str; 12] =
    ["END", "NULL", "TRUE", "FALSE", "UNKNOWN", "YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
const BEFORE_OPERAND: [&str; 18] = [
    "AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "ESCAPE", "SIMILAR", "TO", "FROM", "DISTINCT", "THEN", "ELSE",
    "WHEN", "REGEXP", "RLIKE", "CASE",
];

/// Columns of these names are functions without parentheses.
const NO_COLUMN: [&str; 9] = [
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "NULL",
    "TRUE",
    "FALSE",
    "NOT",
];

impl<'a> Outline<'a> {
    /// E105 for a template outside the grammar, E119 for what is not one query.
    pub fn parse(text: &'a str) -> Result<Self, SqlError> {
        let mut tokens: Vec<Token> = tokenize(text)?.into_iter().filter(|token| !token.is_trivia()).collect();
        while tokens.last().is_some_and(|token| token.is_symbol(text, ";")) {
            tokens.pop();
        }
        let depths = depths(text, &tokens)?;
        let Some(first) = tokens.first() else {
            return Err(SqlError::statement(Span::new(0, 0), "the SQL holds no query"));
        };
        let query =
            ["SELECT", "WITH", "VALUES"].iter().any(|word| first.is_word(text, word)) || first.is_symbol(text, "(");
        if !query {
            let word = first.span.of(text);
            let message =
                format!("a model's SQL is one query that begins with SELECT, WITH or VALUES, not with `{word}`");
            return Err(SqlError::statement(first.span, message));
        }
        if let Some(end) = tokens.iter().find(|token| token.is_symbol(text, ";")) {
            return Err(SqlError::statement(end.span, "a model's SQL is one query; a second statement begins here"));
        }
        let mut outline = Self { text, tokens, depths, select: None };
        outline.select = outline.outermost_select();
        Ok(outline)
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// None for VALUES and for a query in parentheses.
    pub fn select(&self) -> Option<&Select> {
        self.select.as_ref()
    }

    /// The first construct that needs an engine with state or with more than one table; none = every row stands alone.
    pub fn stateful(&self) -> Option<Span> {
        if let Some(first) = self.tokens.first().filter(|token| token.is_word(self.text, "WITH")) {
            return Some(first.span);
        }
        let mut selects = 0;
        for (index, token) in self.tokens.iter().enumerate() {
            if token.kind != TokenKind::Word || self.symbol_before(index, ".") {
                continue;
            }
            let next = self.tokens.get(index + 1);
            let next_is = |word: &str| next.is_some_and(|next| next.is_word(self.text, word));
            let opens = next.is_some_and(|next| next.is_symbol(self.text, "("));
            let word = token.span.of(self.text);
            let is = |word: &str| token.is_word(self.text, word);
            selects += usize::from(is("SELECT"));
            let found = (opens && contains(&STATEFUL_CALLS, word))
                || contains(&STATEFUL_WORDS, word)
                || (next_is("BY") && (is("GROUP") || is("ORDER")))
                || (is("SELECT") && (selects > 1 || next_is("DISTINCT")))
                || (is("OVER") && (opens || next.is_some_and(|next| next.kind == TokenKind::Word)))
                || (is("FOR") && next_is("SYSTEM_TIME"));
            if found {
                return Some(
                    next.filter(|_| !opens && next_is("BY")).map_or(token.span, |next| token.span.to(next.span)),
                );
            }
        }
        let select = self.select.as_ref()?;
        self.comma_at_depth(select.from_tokens)
    }

    /// `SELECT * FROM x` and nothing else.
    pub fn is_plain_copy(&self) -> bool {
        let Some(select) = &self.select else { return false };
        let ends_with_from = select.from_tokens.1 == self.tokens.len();
        self.selects_star(select) && self.one_table(select) && ends_with_from
    }

    /// The predicate (none = every row) when a Gateway filter can run the query, else the first obstacle.
    pub fn gateway_filter(&self) -> Result<Option<Span>, Obstacle> {
        let whole = self.tokens[0].span.to(self.tokens[self.tokens.len() - 1].span);
        let Some(select) = &self.select else {
            return Err(Obstacle { span: whole, what: "the query is no plain SELECT" });
        };
        if let Some(span) = self.stateful() {
            return Err(Obstacle { span, what: "this needs a stream processor" });
        }
        if !self.selects_star(select) {
            let span = select.items.first().map_or(whole, |item| item.span);
            return Err(Obstacle { span, what: "a projection; only `SELECT *` can be filtered" });
        }
        if !self.one_table(select) {
            return Err(Obstacle { span: select.from.unwrap_or(whole), what: "FROM must name one table" });
        }
        let end = if select.predicate.is_some() { select.predicate_tokens.1 } else { select.from_tokens.1 };
        if let Some(extra) = self.tokens.get(end) {
            return Err(Obstacle { span: extra.span, what: "a clause beyond WHERE" });
        }
        self.conjunction(select.predicate_tokens)?;
        Ok(select.predicate)
    }

    /// `column op literal` joined by AND.
    fn conjunction(&self, (start, end): (usize, usize)) -> Result<(), Obstacle> {
        let mut at = start;
        while at < end {
            let obstacle = |index: usize| Obstacle {
                span: self.tokens[index.min(end - 1)].span,
                what: "WHERE must be `column op literal` joined by AND, with =, <>, <, <=, >, >= or REGEXP",
            };
            let token = |index: usize| self.tokens[..end].get(index).ok_or_else(|| obstacle(index));
            let column = token(at)?;
            let name = column.span.of(self.text);
            let is_column = column.kind == TokenKind::QuotedIdentifier
                || (column.kind == TokenKind::Word && !contains(&NO_COLUMN, name));
            let operator = token(at + 1)?;
            let is_operator =
                ["=", "<>", "<", "<=", ">", ">="].iter().any(|symbol| operator.is_symbol(self.text, symbol))
                    || operator.is_word(self.text, "REGEXP");
            if !is_column || !is_operator {
                return Err(obstacle(if is_column { at + 1 } else { at }));
            }
            at += 2;
            let signed = ["-", "+"].iter().any(|sign| token(at).is_ok_and(|token| token.is_symbol(self.text, sign)));
            at += usize::from(signed);
            let literal = token(at)?;
            let is_literal = literal.kind == TokenKind::Number
                || (!signed && literal.kind == TokenKind::String)
                || (!signed && ["TRUE", "FALSE"].iter().any(|word| literal.is_word(self.text, word)));
            if !is_literal {
                return Err(obstacle(at));
            }
            at += 1;
            if at < end {
                if !token(at)?.is_word(self.text, "AND") || at + 1 == end {
                    return Err(obstacle(at));
                }
                at += 1;
            }
        }
        Ok(())
    }

    fn selects_star(&self, select: &Select) -> bool {
        matches!(select.items.as_slice(), [only] if only.expression.of(self.text) == "*")
    }

    /// A table name or a call, with or without an alias.
    fn one_table(&self, select: &Select) -> bool {
        let (start, end) = select.from_tokens;
        let is_name = |token: &Token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier);
        let mut rest = &self.tokens[start..end];
        match rest {
            [first, tail @ ..] if matches!(first.kind, TokenKind::Call(_)) => rest = tail,
            [first, tail @ ..] if is_name(first) => {
                rest = tail;
                while let [dot, name, tail @ ..] = rest {
                    if !dot.is_symbol(self.text, ".") || !is_name(name) {
                        break;
                    }
                    rest = tail;
                }
            }
            _ => return false,
        }
        if let [first, tail @ ..] = rest
            && first.is_word(self.text, "AS")
        {
            rest = tail;
            if rest.is_empty() {
                return false;
            }
        }
        matches!(rest, []) || matches!(rest, [alias] if is_name(alias))
    }

    fn symbol_before(&self, index: usize, symbol: &str) -> bool {
        index.checked_sub(1).is_some_and(|before| self.tokens[before].is_symbol(self.text, symbol))
    }

    fn comma_at_depth(&self, (start, end): (usize, usize)) -> Option<Span> {
        let depth = *self.depths.get(start)?;
        (start..end)
            .find(|&index| self.depths[index] == depth && self.tokens[index].is_symbol(self.text, ","))
            .map(|index| self.tokens[index].span)
    }

    fn outermost_select(&self) -> Option<Select> {
        let at_top = |index: usize| self.depths[index] == 0;
        let start = (0..self.tokens.len()).find(|&i| at_top(i) && self.tokens[i].is_word(self.text, "SELECT"))?;
        let clauses: Vec<usize> = (start + 1..self.tokens.len()).filter(|&i| at_top(i) && self.is_clause(i)).collect();
        let end_of = |index: usize| clauses.iter().copied().find(|&i| i > index).unwrap_or(self.tokens.len());
        let clause = |word: &str| {
            let operands_end = clauses.iter().copied().find(|&i| self.joins_queries(i)).unwrap_or(self.tokens.len());
            let at = clauses.iter().copied().find(|&i| i < operands_end && self.tokens[i].is_word(self.text, word));
            at.map_or((0, 0), |at| (at + 1, end_of(at)))
        };
        let (from_tokens, predicate_tokens) = (clause("FROM"), clause("WHERE"));
        let mut first_item = start + 1;
        let set_quantifier = |token: &Token| token.is_word(self.text, "DISTINCT") || token.is_word(self.text, "ALL");
        while self.tokens.get(first_item).is_some_and(|token| token.kind == TokenKind::Hint || set_quantifier(token)) {
            first_item += 1;
        }
        Some(Select {
            items: self.items(first_item, end_of(start)),
            from: self.span_of(from_tokens),
            predicate: self.span_of(predicate_tokens),
            from_tokens,
            predicate_tokens,
        })
    }

    fn joins_queries(&self, index: usize) -> bool {
        ["UNION", "INTERSECT", "EXCEPT"].iter().any(|word| self.tokens[index].is_word(self.text, word))
    }

    fn is_clause(&self, index: usize) -> bool {
        let token = &self.tokens[index];
        let word = token.span.of(self.text);
        if token.kind != TokenKind::Word || !contains(&CLAUSES, word) || self.symbol_before(index, ".") {
            return false;
        }
        // `a IS [NOT] DISTINCT FROM b` is an expression.
        let distinct_before = index >= 2
            && self.tokens[index - 1].is_word(self.text, "DISTINCT")
            && ["IS", "NOT"].iter().any(|word| self.tokens[index - 2].is_word(self.text, word));
        !(token.is_word(self.text, "FROM") && distinct_before)
    }

    fn span_of(&self, (start, end): (usize, usize)) -> Option<Span> {
        (start < end).then(|| self.tokens[start].span.to(self.tokens[end - 1].span))
    }

    fn items(&self, start: usize, end: usize) -> Vec<SelectItem> {
        let mut items = Vec::new();
        let mut first = start;
        for index in start..=end {
            let splits = index == end || (self.depths[index] == 0 && self.tokens[index].is_symbol(self.text, ","));
            if splits {
                if first < index {
                    items.push(self.item(first, index));
                }
                first = index + 1;
            }
        }
        items
    }

    fn item(&self, start: usize, end: usize) -> SelectItem {
        let tokens = &self.tokens[start..end];
        let span = tokens[0].span.to(tokens[tokens.len() - 1].span);
        let is_name = |token: &Token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier);
        let is_one_of =
            |token: &Token, words: &[&str]| token.kind == TokenKind::Word && contains(words, token.span.of(self.text));
        let (name, operands) = match tokens {
            [operands @ .., keyword, name] if keyword.is_word(self.text, "AS") && is_name(name) => {
                (Some(name), operands)
            }
            [.., dot, name] if dot.is_symbol(self.text, ".") && is_name(name) => {
                let path = tokens.iter().all(|token| is_name(token) || token.is_symbol(self.text, "."));
                (Some(name).filter(|_| path), tokens)
            }
            [only] if is_name(only) && !is_one_of(only, &NO_COLUMN) => (Some(only), tokens),
            [operands @ .., before, name] if is_name(name) && !is_one_of(name, &NO_ALIAS) => {
                let complete = match before.kind {
                    TokenKind::Word => !is_one_of(before, &BEFORE_OPERAND),
                    TokenKind::QuotedIdentifier | TokenKind::String | TokenKind::Number => true,
                    TokenKind::Symbol => before.is_symbol(self.text, ")") || before.is_symbol(self.text, "]"),
                    TokenKind::Comment | TokenKind::Hint | TokenKind::Call(_) => false,
                };
                if complete { (Some(name), &tokens[..=operands.len()]) } else { (None, tokens) }
            }
            _ => (None, tokens),
        };
        let expression = match operands {
            [first, .., last] => first.span.to(last.span),
            [only] => only.span,
            [] => span,
        };
        let name = name.map(|token| unquote(token.span.of(self.text)));
        SelectItem { span, expression, name }
    }
}

fn contains(words: &[&str], word: &str) -> bool {
    words.iter().any(|candidate| candidate.eq_ignore_ascii_case(word))
}

/// Open brackets before each token. Parentheses and square brackets must pair.
fn depths(text: &str, tokens: &[Token]) -> Result<Vec<u32>, SqlError> {
    let mut depths = Vec::with_capacity(tokens.len());
    let mut open: Vec<(Token, &str)> = Vec::new();
    for token in tokens {
        let symbol = if token.kind == TokenKind::Symbol { token.span.of(text) } else { "" };
        if matches!(symbol, ")" | "]") {
            let closes = open.pop().is_some_and(|(_, opening)| matches!((opening, symbol), ("(", ")") | ("[", "]")));
            if !closes {
                return Err(SqlError::statement(token.span, format!("this `{symbol}` closes nothing")));
            }
        }
        depths.push(open.len() as u32);
        if matches!(symbol, "(" | "[") {
            open.push((*token, symbol));
        }
    }
    match open.last() {
        Some((token, symbol)) => Err(SqlError::statement(token.span, format!("this `{symbol}` is never closed"))),
        None => Ok(depths),
    }
}

#[cfg(test)]
#[path = "outline_tests.rs"]
mod tests;
