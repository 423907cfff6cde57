//! The SQL subset that the Kafka Streams runner executes: columns of one input, renamed, and a conjunction of simple tests.
//! Whatever else stands in the text is refused at its place.

use super::SqlError;
use super::lex::{Span, Token, TokenKind, tokenize};

/// A query of the subset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// Not empty; output names are unique.
    pub projection: Vec<Projected>,
    pub predicates: Vec<Predicate>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Projected {
    pub column: String,
    pub output: String,
    pub span: Span,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Predicate {
    pub column: String,
    pub test: Test,
    pub span: Span,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Test {
    Null,
    NotNull,
    Compare(Comparison, Literal),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Comparison {
    /// The word of a plan.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "eq",
            Self::NotEqual => "ne",
            Self::Greater => "gt",
            Self::GreaterOrEqual => "ge",
            Self::Less => "lt",
            Self::LessOrEqual => "le",
        }
    }

    /// Whether it needs an order of values.
    pub const fn is_ordering(self) -> bool {
        match self {
            Self::Equal | Self::NotEqual => false,
            Self::Greater | Self::GreaterOrEqual | Self::Less | Self::LessOrEqual => true,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Literal {
    Text(String),
    Boolean(bool),
    /// Within ±(2^53−1).
    Integer(i64),
}

impl Literal {
    /// The column type that it can be compared with.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "STRING",
            Self::Boolean(_) => "BOOLEAN",
            Self::Integer(_) => "BIGINT",
        }
    }
}

/// The largest integer that every reader of a plan holds exactly.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// Reads a query of the subset.
pub fn parse(text: &str) -> Result<Query, SqlError> {
    let tokens = tokenize(text)?;
    let mut reader = Reader { text, tokens, next: 0 };
    let query = reader.query()?;
    match reader.peek() {
        None => Ok(query),
        Some(token) => Err(reader.refuse(token)),
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.next).copied()
    }

    fn error<T>(&self, message: &str) -> Result<T, SqlError> {
        let span = match self.peek() {
            Some(token) => token.span,
            None => Span::new(self.text.len(), self.text.len()),
        };
        Err(SqlError::statement(span, message))
    }

    /// What a token is, that the subset does not have.
    fn refuse(&self, token: Token) -> SqlError {
        let word = token.span.of(self.text);
        let what = match token.kind {
            TokenKind::Comment => "a comment".to_owned(),
            TokenKind::Hint => "a hint".to_owned(),
            TokenKind::QuotedIdentifier => "a quoted name".to_owned(),
            TokenKind::Call(_) => "a second input".to_owned(),
            TokenKind::Word | TokenKind::String | TokenKind::Number | TokenKind::Symbol => {
                format!("`{}`", word.chars().take(40).collect::<String>())
            }
        };
        SqlError::statement(token.span, format!("{what} is not part of the SQL that Kafka Streams models may use"))
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_word(self.text, word));
        self.next += usize::from(found);
        found
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_symbol(self.text, symbol));
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), SqlError> {
        match (self.word(word), self.peek()) {
            (true, _) => Ok(()),
            (false, Some(token)) if token.kind == TokenKind::Word || token.kind == TokenKind::Symbol => {
                self.error(&format!("{word} is expected here"))
            }
            (false, Some(token)) => Err(self.refuse(token)),
            (false, None) => self.error(&format!("{word} is missing")),
        }
    }

    fn query(&mut self) -> Result<Query, SqlError> {
        self.expect("SELECT")?;
        let mut projection: Vec<Projected> = Vec::new();
        loop {
            let item = self.item()?;
            if projection.iter().any(|known| known.output == item.output) {
                let message = format!("two columns of the result have the name '{}'", item.output);
                return Err(SqlError::statement(item.span, message));
            }
            projection.push(item);
            if !self.symbol(",") {
                break;
            }
        }
        self.expect("FROM")?;
        match self.peek().map(|token| token.kind) {
            Some(TokenKind::Call(_)) => self.next += 1,
            Some(_) | None => return self.error("FROM names one source() or ref()"),
        }
        let mut predicates = Vec::new();
        if self.word("WHERE") {
            predicates.push(self.predicate()?);
            while self.word("AND") {
                predicates.push(self.predicate()?);
            }
        }
        self.symbol(";");
        Ok(Query { projection, predicates })
    }

    fn item(&mut self) -> Result<Projected, SqlError> {
        let (column, span) = self.column()?;
        let alias = self.word("AS") || self.peek().is_some_and(|token| self.is_column(token));
        let (output, last) = if alias { self.column()? } else { (column.clone(), span) };
        Ok(Projected { column, output, span: span.to(last) })
    }

    fn is_column(&self, token: Token) -> bool {
        let word = token.span.of(self.text);
        let keyword =
            ["select", "from", "where", "and", "or", "not", "is", "null", "as", "true", "false"].contains(&word);
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        token.kind == TokenKind::Word
            && !keyword
            && word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && word.chars().all(legal)
    }

    fn column(&mut self) -> Result<(String, Span), SqlError> {
        match self.peek() {
            Some(token) if self.is_column(token) => {
                self.next += 1;
                Ok((token.span.of(self.text).to_owned(), token.span))
            }
            Some(token) if token.kind == TokenKind::Word => {
                self.error("a column is expected here: lower-case letters, digits and `_`, no keyword")
            }
            Some(token) => Err(self.refuse(token)),
            None => self.error("a column is missing"),
        }
    }

    fn predicate(&mut self) -> Result<Predicate, SqlError> {
        let negated = self.word("NOT");
        let (column, start) = self.column()?;
        let test = if self.word("IS") {
            let not = !negated && self.word("NOT");
            self.expect("NULL")?;
            if negated || not { Test::NotNull } else { Test::Null }
        } else if negated {
            return self.error("behind NOT only IS NULL is possible");
        } else {
            let comparisons = [
                ("=", Comparison::Equal),
                ("<>", Comparison::NotEqual),
                ("!=", Comparison::NotEqual),
                (">=", Comparison::GreaterOrEqual),
                ("<=", Comparison::LessOrEqual),
                (">", Comparison::Greater),
                ("<", Comparison::Less),
            ];
            let Some((_, comparison)) = comparisons.into_iter().find(|(symbol, _)| self.symbol(symbol)) else {
                return match self.peek() {
                    Some(token) => Err(self.refuse(token)),
                    None => self.error("a comparison is missing"),
                };
            };
            Test::Compare(comparison, self.literal()?)
        };
        let last = self.tokens[self.next - 1].span;
        Ok(Predicate { column, test, span: start.to(last) })
    }

    fn literal(&mut self) -> Result<Literal, SqlError> {
        if self.word("TRUE") {
            return Ok(Literal::Boolean(true));
        }
        if self.word("FALSE") {
            return Ok(Literal::Boolean(false));
        }
        let negative = self.symbol("-");
        let Some(token) = self.peek() else { return self.error("a literal is missing") };
        let word = token.span.of(self.text);
        match token.kind {
            TokenKind::String if !negative && word.starts_with('\'') => {
                self.next += 1;
                Ok(Literal::Text(word[1..word.len() - 1].replace("''", "'")))
            }
            TokenKind::Number => match word.parse::<i64>().ok().filter(|number| *number <= MAX_INTEGER) {
                Some(number) => {
                    self.next += 1;
                    Ok(Literal::Integer(if negative { -number } else { number }))
                }
                None => self.error("numbers are integers up to 9007199254740991"),
            },
            TokenKind::String
            | TokenKind::Word
            | TokenKind::QuotedIdentifier
            | TokenKind::Comment
            | TokenKind::Hint
            | TokenKind::Call(_)
            | TokenKind::Symbol => Err(self.refuse(token)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KSC-001
    #[test]
    fn the_subset_is_read_with_names_and_literals() {
        let text = "SELECT id, total AS amount, ok flag FROM {{ source(\"raw\") }} \
                    WHERE id IS NOT NULL AND NOT total IS NULL AND ok = TRUE AND total >= -5 AND id <> 'it''s';";
        let query = parse(text).unwrap();
        let names: Vec<(&str, &str)> =
            query.projection.iter().map(|item| (item.column.as_str(), item.output.as_str())).collect();
        assert_eq!(names, [("id", "id"), ("total", "amount"), ("ok", "flag")]);
        let tests: Vec<(&str, &Test)> = query.predicates.iter().map(|p| (p.column.as_str(), &p.test)).collect();
        assert_eq!(
            tests,
            [
                ("id", &Test::NotNull),
                ("total", &Test::NotNull),
                ("ok", &Test::Compare(Comparison::Equal, Literal::Boolean(true))),
                ("total", &Test::Compare(Comparison::GreaterOrEqual, Literal::Integer(-5))),
                ("id", &Test::Compare(Comparison::NotEqual, Literal::Text("it's".into()))),
            ]
        );
    }

    /// KSC-001
    #[test]
    fn every_comparison_is_the_one_that_is_written() {
        for (symbol, word) in
            [("=", "eq"), ("<>", "ne"), ("!=", "ne"), (">", "gt"), (">=", "ge"), ("<", "lt"), ("<=", "le")]
        {
            let query = parse(&format!("SELECT a FROM {{{{ source('s') }}}} WHERE a {symbol} 1")).unwrap();
            let Test::Compare(comparison, Literal::Integer(1)) = query.predicates[0].test else { panic!("{query:?}") };
            assert_eq!(comparison.as_str(), word, "{symbol}");
        }
    }

    #[test]
    fn whatever_is_beyond_the_subset_is_refused_at_its_place() {
        for (text, part) in [
            ("SELECT * FROM {{ source('a') }}", "*"),
            ("SELECT a.b FROM {{ source('a') }}", "."),
            ("SELECT `a` FROM {{ source('a') }}", "`a`"),
            ("SELECT A FROM {{ source('a') }}", "A"),
            ("SELECT a + 1 FROM {{ source('a') }}", "+"),
            ("SELECT CAST(a AS INT) FROM {{ source('a') }}", "CAST"),
            ("SELECT a FROM b", "b"),
            ("SELECT a FROM {{ source('a') }} AS x", "AS"),
            ("SELECT a FROM {{ source('a') }}, {{ source('b') }}", ","),
            ("SELECT a FROM {{ source('a') }} -- why", "-- why"),
            ("SELECT a FROM {{ source('a') }} WHERE a = 1 OR a = 2", "OR"),
            ("SELECT a FROM {{ source('a') }} WHERE (a = 1)", "("),
            ("SELECT a FROM {{ source('a') }} WHERE a IN (1)", "IN"),
            ("SELECT a FROM {{ source('a') }} WHERE a = 1.5", "1.5"),
            ("SELECT a FROM {{ source('a') }} WHERE a = 9007199254740992", "9007199254740992"),
            ("SELECT a FROM {{ source('a') }} WHERE a = b", "b"),
            ("SELECT a FROM {{ source('a') }} WHERE NOT a = 1", "="),
            ("SELECT a, b AS a FROM {{ source('a') }}", "b AS a"),
            ("SELECT a FROM {{ source('a') }}; SELECT 1", "SELECT"),
            ("SELECT a FROM {{ source('a') }} GROUP BY a", "GROUP"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(&text[error.offset..error.offset + error.width], part, "{text}: {error}");
        }
        assert!(
            parse("").is_err() && parse("SELECT a").is_err() && parse("SELECT a FROM {{ ref('b') }} WHERE").is_err()
        );
    }
}
