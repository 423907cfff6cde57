//! `.env` files. Their text never reaches a message: a wrong line is named by its number.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codes::{Code, Diagnostic, Location};

use super::shape::is_variable;

/// Adds the entries of one file to `known`, in order. `process` wins in expansions.
pub fn read(
    file: &Arc<str>,
    text: &str,
    process: &BTreeMap<String, String>,
    known: &mut BTreeMap<String, String>,
) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    while !rest.is_empty() {
        let start = line;
        let result = entry(&mut rest, &mut line, |name| process.get(name).or_else(|| known.get(name)).cloned());
        match result {
            Ok(Some((key, value))) => {
                known.insert(key, value);
            }
            Ok(None) => {}
            Err(problem) => {
                let (code, message, hint) = match problem {
                    Problem::Line => {
                        let hint = "write NAME=value; quote values that hold '#', quotes or line breaks";
                        (Code::E503EnvironmentError, "this line is not NAME=value".to_owned(), hint)
                    }
                    Problem::Quote => {
                        let hint = "close the quotes, and write nothing but a comment after them";
                        (
                            Code::E503EnvironmentError,
                            "the quoted value of this line does not end properly".to_owned(),
                            hint,
                        )
                    }
                    Problem::Unclosed => {
                        let hint = "write ${NAME} or ${NAME:-default}; single quotes keep a value as it is";
                        (Code::E503EnvironmentError, "this line uses a variable that no '}' ends".to_owned(), hint)
                    }
                    Problem::Unset(name) => {
                        let hint =
                            "set it in the environment or in an earlier line, or give a default: ${NAME:-default}";
                        (Code::E502EnvVarError, format!("this line uses the variable {name}, which is not set"), hint)
                    }
                };
                errors.push(Diagnostic::new(code, message).at(Location::new(file.clone(), start, 1)).suggest(hint));
            }
        }
    }
    errors
}

enum Problem {
    Line,
    Quote,
    Unclosed,
    Unset(String),
}

/// Takes one line, or one entry of several lines, off `rest`.
fn entry(
    rest: &mut &str,
    line: &mut u32,
    look_up: impl Fn(&str) -> Option<String>,
) -> Result<Option<(String, String)>, Problem> {
    let (current, after) = split_line(rest);
    let all = *rest;
    *rest = after;
    *line += 1;
    let trimmed = current.trim();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Ok(None);
    }
    let body = match trimmed.strip_prefix("export") {
        Some(body) if body.starts_with([' ', '\t']) => body.trim_start(),
        _ => trimmed,
    };
    let (key, value) = body.split_once('=').ok_or(Problem::Line)?;
    let key = key.trim_end();
    if !is_variable(key) {
        return Err(Problem::Line);
    }
    let value = value.trim_start();
    let Some(quote) = value.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        let value = match value.find(" #").or_else(|| value.find("\t#")) {
            Some(end) => &value[..end],
            None if value.starts_with('#') => "",
            None => value,
        };
        return Ok(Some((key.to_owned(), expand(value.trim_end(), &look_up)?)));
    };
    // A quoted value may span lines, so it is read from the whole text.
    let opened = all.len() - trimmed_tail(all, current, value).len();
    let quoted = &all[opened + 1..];
    let (text, length) = unquote(quoted, quote).ok_or(Problem::Quote)?;
    let end = opened + 1 + length;
    if quote == '"' || end <= current.len() {
        *line += all[..end].matches('\n').count() as u32;
        let (tail, after) = split_line(&all[end..]);
        *rest = after;
        let tail = tail.trim();
        if !(tail.is_empty() || tail.starts_with('#')) {
            return Err(Problem::Quote);
        }
        let value = match text {
            Quoted::Literal(text) => text,
            Quoted::Pieces(pieces) => {
                let mut value = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => value.push_str(&text),
                        Piece::Expand(text) => value.push_str(&expand(&text, &look_up)?),
                    }
                }
                value
            }
        };
        return Ok(Some((key.to_owned(), value)));
    }
    Err(Problem::Quote)
}

/// The part of `all` that begins with `value`, which lies at the end of its first line.
fn trimmed_tail<'a>(all: &'a str, current: &str, value: &str) -> &'a str {
    let trailing = current.len() - current.trim_end().len();
    &all[current.len() - trailing - value.len()..]
}

fn split_line(text: &str) -> (&str, &str) {
    match text.find('\n') {
        Some(end) => (text[..end].strip_suffix('\r').unwrap_or(&text[..end]), &text[end + 1..]),
        None => (text, ""),
    }
}

enum Quoted {
    Literal(String),
    Pieces(Vec<Piece>),
}

enum Piece {
    /// Taken as it is: an escaped character.
    Text(String),
    Expand(String),
}

/// The value and the bytes up to and including the closing quote.
fn unquote(text: &str, quote: char) -> Option<(Quoted, usize)> {
    let mut literal = String::new();
    let mut pieces = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == quote => {
                let value = if quote == '\'' {
                    Quoted::Literal(literal)
                } else {
                    pieces.push(Piece::Expand(literal));
                    Quoted::Pieces(pieces)
                };
                return Some((value, at + c.len_utf8()));
            }
            '\n' if quote == '\'' => return None,
            '\\' => {
                let (_, escaped) = chars.next()?;
                let known = match (quote, escaped) {
                    ('\'', '\\' | '\'') | ('"', '"' | '\\' | '$') => Some(escaped),
                    ('"', 'n') => Some('\n'),
                    ('"', 'r') => Some('\r'),
                    ('"', 't') => Some('\t'),
                    _ => None,
                };
                let text = known.map_or_else(|| format!("\\{escaped}"), String::from);
                if quote == '\'' {
                    literal.push_str(&text);
                } else {
                    pieces.push(Piece::Expand(std::mem::take(&mut literal)));
                    pieces.push(Piece::Text(text));
                }
            }
            _ => literal.push(c),
        }
    }
    None
}

fn expand(text: &str, look_up: &impl Fn(&str) -> Option<String>) -> Result<String, Problem> {
    if super::interpolate::unclosed(text).is_some() {
        return Err(Problem::Unclosed);
    }
    let mut missing = Vec::new();
    let expanded = super::interpolate::expand(text, look_up, &mut missing);
    match missing.into_iter().next() {
        Some(name) => Err(Problem::Unset(name)),
        None => Ok(expanded.unwrap_or_else(|| text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (BTreeMap<String, String>, Vec<(u32, Code)>) {
        let process = BTreeMap::from([("FROM_PROCESS".to_owned(), "p".to_owned())]);
        let mut known = BTreeMap::new();
        let errors = read(&Arc::from(".env"), text, &process, &mut known);
        (known, errors.iter().map(|e| (e.location.as_ref().unwrap().line, e.code)).collect())
    }

    fn value(text: &str) -> String {
        let (known, errors) = parse(text);
        assert!(errors.is_empty(), "{text:?}: {errors:?}");
        known["A"].clone()
    }

    #[test]
    fn unquoted_values_are_trimmed_and_end_at_a_comment() {
        assert_eq!(value("A= b c  # note\n"), "b c");
        assert_eq!(value("export A=b#c"), "b#c");
        assert_eq!(value("A="), "");
        assert_eq!(value("\u{feff}A=1\r\n"), "1");
    }

    #[test]
    fn single_quotes_are_literal_but_for_two_escapes() {
        assert_eq!(value(r"A='a\n${X} \' \\' # note"), r"a\n${X} ' \");
    }

    #[test]
    fn double_quotes_have_escapes_and_span_lines() {
        assert_eq!(value("A=\"a\\tb\\\"\\$HOME \\\\\n  c\"\n"), "a\tb\"$HOME \\\n  c");
        assert_eq!(value("A=\"\\${X}\""), "${X}");
    }

    #[test]
    fn values_expand_from_the_process_first_then_from_earlier_lines() {
        assert_eq!(value("B=1\nA=${B}-${FROM_PROCESS}-${UNSET:-d}"), "1-p-d");
        assert_eq!(value("FROM_PROCESS=x\nA=\"${FROM_PROCESS}\""), "p");
        assert_eq!(parse("A=${UNSET}").1, [(1, Code::E502EnvVarError)]);
    }

    #[test]
    fn wrong_lines_are_named_by_number_and_the_rest_is_read() {
        let (known, errors) = parse("# c\nnonsense SENTINEL\nA=1\n1B=2\nC='open\nD=\"x\" y\nE=3");
        let expected = [2, 4, 5, 6].map(|line| (line, Code::E503EnvironmentError));
        assert_eq!(errors, expected);
        assert_eq!(known.len(), 2);
        let mut map = BTreeMap::new();
        let errors = read(&Arc::from(".env"), "nonsense SENTINEL\nA='SENTINEL", &BTreeMap::new(), &mut map);
        assert!(!format!("{errors:?}").contains("SENTINEL"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([A-C]|=|'|\"|\\\\|\\$\\{A\\}|\\$\\{|:-|#| |\\n|\\r|é|export ){0,40}") {
            let _ = parse(&text);
        }
    }
}
