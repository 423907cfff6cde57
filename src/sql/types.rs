//! Type texts: the column types that users write.

use std::fmt;

use super::lex::{Token, TokenKind, tokenize};

/// A Flink SQL type. `Unknown` is a type that this tool cannot name; it is never compared.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SqlType {
    Char(u32),
    String,
    /// Length; `VARCHAR(n)`.
    Varchar(u32),
    Binary(u32),
    Varbinary(u32),
    Bytes,
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Date,
    Time(u8),
    Timestamp(u8),
    TimestampLtz(u8),
    Array(Box<SqlType>),
    Map(Box<SqlType>, Box<SqlType>),
    Multiset(Box<SqlType>),
    Row(Vec<(String, SqlType)>),
    /// Flink 2.2 and later.
    Variant,
    Unknown,
}

/// As DDL of Flink spells it; an unknown type is written as STRING.
impl SqlType {
    /// Of the types that hold numbers.
    pub fn is_number(&self) -> bool {
        match self {
            Self::TinyInt
            | Self::SmallInt
            | Self::Int
            | Self::BigInt
            | Self::Float
            | Self::Double
            | Self::Decimal { .. } => true,
            Self::Char(_)
            | Self::String
            | Self::Varchar(_)
            | Self::Binary(_)
            | Self::Varbinary(_)
            | Self::Bytes
            | Self::Boolean
            | Self::Date
            | Self::Time(_)
            | Self::Timestamp(_)
            | Self::TimestampLtz(_)
            | Self::Array(_)
            | Self::Map(..)
            | Self::Multiset(_)
            | Self::Row(_)
            | Self::Variant
            | Self::Unknown => false,
        }
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(length) => write!(f, "CHAR({length})"),
            Self::String | Self::Unknown => f.write_str("STRING"),
            Self::Varchar(length) => write!(f, "VARCHAR({length})"),
            Self::Binary(length) => write!(f, "BINARY({length})"),
            Self::Varbinary(length) => write!(f, "VARBINARY({length})"),
            Self::Bytes => f.write_str("BYTES"),
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal { precision, scale } => write!(f, "DECIMAL({precision}, {scale})"),
            Self::Date => f.write_str("DATE"),
            Self::Time(precision) => write!(f, "TIME({precision})"),
            Self::Timestamp(precision) => write!(f, "TIMESTAMP({precision})"),
            Self::TimestampLtz(precision) => write!(f, "TIMESTAMP_LTZ({precision})"),
            Self::Array(element) => write!(f, "ARRAY<{element}>"),
            Self::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
            Self::Multiset(element) => write!(f, "MULTISET<{element}>"),
            Self::Row(fields) => {
                f.write_str("ROW<")?;
                for (index, (name, data_type)) in fields.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{} {data_type}", quoted(name))?;
                }
                f.write_str(">")
            }
            Self::Variant => f.write_str("VARIANT"),
        }
    }
}

/// A name in back-quotes.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Why a text names no column type of Flink; `offset` in bytes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    pub offset: usize,
    pub message: String,
}

/// Levels of nesting that a type text may have.
const MAX_DEPTH: usize = 64;

/// Reads the text of a column type. Synonyms that Flink refuses but every generated DDL translates (TEXT, LONG, BOOL, REAL,
/// DATETIME) are read; `TIMESTAMP WITH TIME ZONE`, INTERVAL, NUMBER, STRUCT and JSON are no column types.
pub fn parse_type(text: &str) -> Result<SqlType, TypeError> {
    let tokens = tokenize(text).map_err(|error| TypeError { offset: error.offset, message: error.message })?;
    let tokens: Vec<Token> = tokens.into_iter().filter(|token| !token.is_trivia()).collect();
    let mut parser = Parser { text, tokens: &tokens, next: 0, synonyms: true };
    let data_type = parser.data_type(0)?;
    match parser.peek() {
        None => Ok(data_type),
        Some(token) => Err(parser.error(format!("`{}` is not expected here", token.span.of(text)))),
    }
}

/// Reads a type that begins at a token, as Flink itself spells it; the index of the token behind it.
pub(super) fn type_at(text: &str, tokens: &[Token], start: usize) -> Result<(SqlType, usize), TypeError> {
    let mut parser = Parser { text, tokens, next: start, synonyms: false };
    let data_type = parser.data_type(0)?;
    Ok((data_type, parser.next))
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    next: usize,
    /// Whether the words that generated DDL translates are types.
    synonyms: bool,
}

/// Types that Flink does not know by these words.
const SYNONYMS: [&str; 4] = ["TEXT", "LONG", "BOOL", "DATETIME"];

impl Parser<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.next).copied()
    }

    fn error(&self, message: impl Into<String>) -> TypeError {
        let offset = self.peek().map_or(self.text.len(), |token| token.span.start);
        TypeError { offset, message: message.into() }
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_word(self.text, word));
        self.next += usize::from(found);
        found
    }

    fn words(&mut self, words: &[&str]) -> bool {
        let start = self.next;
        let found = words.iter().all(|word| self.word(word));
        if !found {
            self.next = start;
        }
        found
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_symbol(self.text, symbol));
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), TypeError> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.error(format!("`{symbol}` is missing"))) }
    }

    fn data_type(&mut self, depth: usize) -> Result<SqlType, TypeError> {
        if depth > MAX_DEPTH {
            return Err(self.error("the type is nested too deeply"));
        }
        let mut data_type = self.single(depth)?;
        loop {
            if self.word("ARRAY") {
                data_type = SqlType::Array(Box::new(data_type));
            } else if self.word("MULTISET") {
                data_type = SqlType::Multiset(Box::new(data_type));
            } else if !self.words(&["NOT", "NULL"]) && !self.word("NULL") {
                return Ok(data_type);
            }
        }
    }

    fn single(&mut self, depth: usize) -> Result<SqlType, TypeError> {
        let Some(token) = self.peek().filter(|token| token.kind == TokenKind::Word) else {
            return Err(self.error("a type name is missing"));
        };
        let name = token.span.of(self.text).to_ascii_uppercase();
        if !self.synonyms && SYNONYMS.contains(&name.as_str()) {
            return Err(self.error(format!("`{}` is no type of Flink SQL", token.span.of(self.text))));
        }
        self.next += 1;
        Ok(match name.as_str() {
            "STRING" | "TEXT" => SqlType::String,
            "CHAR" | "CHARACTER" if self.word("VARYING") => self.length()?.map_or(SqlType::String, SqlType::Varchar),
            "CHAR" | "CHARACTER" => SqlType::Char(self.length()?.unwrap_or(1)),
            "VARCHAR" => self.length()?.map_or(SqlType::String, SqlType::Varchar),
            "BINARY" if self.word("VARYING") => self.length()?.map_or(SqlType::Bytes, SqlType::Varbinary),
            "BINARY" => SqlType::Binary(self.length()?.unwrap_or(1)),
            "VARBINARY" => self.length()?.map_or(SqlType::Bytes, SqlType::Varbinary),
            "BYTES" => SqlType::Bytes,
            "BOOLEAN" | "BOOL" => SqlType::Boolean,
            "TINYINT" => SqlType::TinyInt,
            "SMALLINT" => SqlType::SmallInt,
            "INT" | "INTEGER" => SqlType::Int,
            "BIGINT" | "LONG" => SqlType::BigInt,
            "FLOAT" | "REAL" => SqlType::Float,
            "DOUBLE" => {
                self.word("PRECISION");
                SqlType::Double
            }
            "DECIMAL" | "NUMERIC" | "DEC" => self.decimal()?,
            "DATE" => SqlType::Date,
            "TIME" => {
                let precision = self.precision()?.unwrap_or(0);
                self.words(&["WITHOUT", "TIME", "ZONE"]);
                SqlType::Time(precision)
            }
            "TIMESTAMP" => self.timestamp()?,
            "TIMESTAMP_LTZ" => SqlType::TimestampLtz(self.precision()?.unwrap_or(6)),
            "DATETIME" => SqlType::Timestamp(3),
            "VARIANT" => SqlType::Variant,
            "ARRAY" => {
                self.expect("<")?;
                let element = self.data_type(depth + 1)?;
                self.expect(">")?;
                SqlType::Array(Box::new(element))
            }
            "MULTISET" => {
                self.expect("<")?;
                let element = self.data_type(depth + 1)?;
                self.expect(">")?;
                SqlType::Multiset(Box::new(element))
            }
            "MAP" => {
                self.expect("<")?;
                let key = self.data_type(depth + 1)?;
                self.expect(",")?;
                let value = self.data_type(depth + 1)?;
                self.expect(">")?;
                SqlType::Map(Box::new(key), Box::new(value))
            }
            "ROW" => self.row(depth)?,
            _ => {
                self.next -= 1;
                return Err(self.error(format!("`{}` is no column type of Flink", token.span.of(self.text))));
            }
        })
    }

    fn timestamp(&mut self) -> Result<SqlType, TypeError> {
        let precision = self.precision()?.unwrap_or(6);
        if self.words(&["WITH", "LOCAL", "TIME", "ZONE"]) {
            return Ok(SqlType::TimestampLtz(precision));
        }
        if self.words(&["WITH", "TIME", "ZONE"]) {
            self.next -= 3;
            return Err(self.error("Flink has no TIMESTAMP WITH TIME ZONE; use TIMESTAMP_LTZ"));
        }
        self.words(&["WITHOUT", "TIME", "ZONE"]);
        Ok(SqlType::Timestamp(precision))
    }

    fn decimal(&mut self) -> Result<SqlType, TypeError> {
        if !self.symbol("(") {
            return Ok(SqlType::Decimal { precision: 10, scale: 0 });
        }
        let precision = self.number(1, 38, "a precision of 1 to 38")?;
        let scale = if self.symbol(",") { self.number(0, precision, "a scale up to the precision")? } else { 0 };
        self.expect(")")?;
        Ok(SqlType::Decimal { precision: precision as u8, scale: scale as u8 })
    }

    fn row(&mut self, depth: usize) -> Result<SqlType, TypeError> {
        let close = if self.symbol("(") {
            ")"
        } else {
            self.expect("<")?;
            ">"
        };
        let mut fields = Vec::new();
        while !self.symbol(close) {
            if !fields.is_empty() {
                self.expect(",")?;
            }
            let name = match self.peek() {
                Some(token) if token.kind == TokenKind::Word => token.span.of(self.text).to_owned(),
                Some(token) if token.kind == TokenKind::QuotedIdentifier => unquote(token.span.of(self.text)),
                Some(_) | None => return Err(self.error("a field name is missing")),
            };
            self.next += 1;
            fields.push((name, self.data_type(depth + 1)?));
            if self.peek().is_some_and(|token| token.kind == TokenKind::String) {
                self.next += 1;
            }
        }
        Ok(SqlType::Row(fields))
    }

    fn precision(&mut self) -> Result<Option<u8>, TypeError> {
        if !self.symbol("(") {
            return Ok(None);
        }
        let precision = self.number(0, 9, "a precision of 0 to 9")?;
        self.expect(")")?;
        Ok(Some(precision as u8))
    }

    fn length(&mut self) -> Result<Option<u32>, TypeError> {
        if !self.symbol("(") {
            return Ok(None);
        }
        let length = self.number(1, i32::MAX as u32, "a length of 1 to 2147483647")?;
        self.expect(")")?;
        Ok(Some(length))
    }

    fn number(&mut self, min: u32, max: u32, what: &str) -> Result<u32, TypeError> {
        let token = self.peek().filter(|token| token.kind == TokenKind::Number);
        let value = token.and_then(|token| token.span.of(self.text).parse().ok());
        match value.filter(|value| (min..=max).contains(value)) {
            Some(value) => {
                self.next += 1;
                Ok(value)
            }
            None => Err(self.error(format!("{what} is wanted here"))),
        }
    }
}

/// The name inside back-quotes.
pub fn unquote(quoted: &str) -> String {
    quoted.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(quoted).replace("``", "`")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_of_a_family_is_read() {
        for (text, wanted) in [
            ("string", SqlType::String),
            ("VARCHAR", SqlType::String),
            ("varchar(10)", SqlType::Varchar(10)),
            ("CHARACTER", SqlType::Char(1)),
            ("TEXT", SqlType::String),
            ("VARBINARY", SqlType::Bytes),
            ("LONG", SqlType::BigInt),
            ("INTEGER", SqlType::Int),
            ("REAL", SqlType::Float),
            ("DOUBLE PRECISION", SqlType::Double),
            ("DECIMAL", SqlType::Decimal { precision: 10, scale: 0 }),
            ("DEC( 38 , 18 )", SqlType::Decimal { precision: 38, scale: 18 }),
            ("NUMERIC(5)", SqlType::Decimal { precision: 5, scale: 0 }),
            ("TIME", SqlType::Time(0)),
            ("TIMESTAMP", SqlType::Timestamp(6)),
            ("TIMESTAMP(3) WITHOUT TIME ZONE", SqlType::Timestamp(3)),
            ("TIMESTAMP(3) WITH LOCAL TIME ZONE", SqlType::TimestampLtz(3)),
            ("TIMESTAMP_LTZ(3)", SqlType::TimestampLtz(3)),
            ("DATETIME", SqlType::Timestamp(3)),
            ("INT NOT NULL ARRAY", SqlType::Array(Box::new(SqlType::Int))),
            ("MULTISET<INT>", SqlType::Multiset(Box::new(SqlType::Int))),
            (
                "MAP<STRING, ARRAY<ROW<`a b` INT 'c', d BOOL>>>",
                SqlType::Map(
                    Box::new(SqlType::String),
                    Box::new(SqlType::Array(Box::new(SqlType::Row(vec![
                        ("a b".into(), SqlType::Int),
                        ("d".into(), SqlType::Boolean),
                    ])))),
                ),
            ),
        ] {
            assert_eq!(parse_type(text).as_ref(), Ok(&wanted), "{text}");
        }
    }

    #[test]
    fn what_flink_has_not_is_refused_at_its_place() {
        for (text, offset) in [
            ("", 0),
            ("NUMBER", 0),
            ("JSON", 0),
            ("STRUCT<a INT>", 0),
            ("INTERVAL", 0),
            ("TIMESTAMP(3) WITH TIME ZONE", 13),
            ("DECIMAL(39, 1)", 8),
            ("DECIMAL(5, 6)", 11),
            ("TIME(10)", 5),
            ("ARRAY<>", 5),
            ("ARRAY<INT", 9),
            ("INT INT", 4),
            ("VARCHAR(0)", 8),
            ("'INT'", 0),
        ] {
            assert_eq!(parse_type(text).map_err(|error| error.offset), Err(offset), "{text}");
        }
        let deep = "ARRAY<".repeat(100_000);
        assert!(parse_type(&deep).is_err());
    }

    proptest! {
        #[test]
        fn no_type_text_panics(text in "(ARRAY|MAP|ROW|<|>|\\(|\\)|,| |INT|DECIMAL|[0-9]{1,12}|`|'|a|é){0,20}") {
            if let Err(error) = parse_type(&text) {
                prop_assert!(error.offset <= text.len());
            }
        }
    }
}
