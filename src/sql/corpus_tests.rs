//! Our answers to the corpus of queries under `tests/corpus/sql`, whose folders say what Flink's planner answered.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::analysis::{Analysis, Environment, Input, InputColumn, InputTime, Oddity, Refusal, analyse};
use super::lex::{Token, TokenKind, tokenize};
use super::types::{SqlType, type_at};
use super::{Outline, parse};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/sql")
}

fn statements(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    text.split(";\n").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn folder(name: &str) -> Vec<String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory().join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| statements(file)).collect()
}

/// The tables of the corpus as inputs.
pub(super) fn tables() -> Vec<Input> {
    statements(&directory().join("tables.sql")).iter().map(|text| table(text)).collect()
}

fn table(text: &str) -> Input {
    let tokens: Vec<Token> = tokenize(text).unwrap();
    let word = |at: usize| tokens[at].span.of(text);
    let mut columns: Vec<InputColumn> = Vec::new();
    let mut event_time = None;
    let mut at = 4;
    loop {
        if tokens[at].is_word(text, "WATERMARK") {
            event_time = Some(word(at + 2).to_owned());
        } else if !tokens[at].is_word(text, "PRIMARY") {
            let processing = tokens[at + 1].is_word(text, "AS");
            let data_type =
                if processing { SqlType::TimestampLtz(3) } else { type_at(text, &tokens, at + 1).unwrap().0 };
            let time = if processing { InputTime::Processing } else { InputTime::None };
            columns.push(InputColumn { name: word(at).into(), data_type, time });
        }
        let mut open = 0i32;
        while open > 0 || !(tokens[at].is_symbol(text, ",") || tokens[at].is_symbol(text, ")")) {
            open += i32::from(["(", "<"].contains(&word(at))) - i32::from([")", ">"].contains(&word(at)));
            at += 1;
        }
        if tokens[at].is_symbol(text, ")") {
            break;
        }
        at += 1;
    }
    for column in columns.iter_mut().filter(|column| Some(&*column.name) == event_time.as_deref()) {
        column.time = InputTime::Event;
    }
    let upsert = text.contains("'upsert-kafka'");
    Input { name: word(2).to_owned(), model: false, columns: Some(columns), upsert }
}

/// The query with `source()` in place of the corpus's tables.
fn templated(text: &str, inputs: &[Input]) -> String {
    let Ok(tokens) = tokenize(text) else { return text.to_owned() };
    let mut result = String::new();
    let mut end = 0;
    for (at, token) in tokens.iter().enumerate() {
        let word = token.span.of(text).trim_matches('`');
        let name = matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier);
        let before = at.checked_sub(1).map(|before| tokens[before].span.of(text)).unwrap_or_default();
        let is_table = name
            && ["FROM", "JOIN", "TABLE", ",", "("].contains(&before)
            && inputs.iter().any(|input| input.name == word)
            && tokens.get(at + 1).is_none_or(|next| !next.is_symbol(text, "."));
        if is_table {
            result.push_str(&text[end..token.span.start]);
            result.push_str(&format!("{{{{ source(\"{word}\") }}}}"));
            end = token.span.end;
        }
    }
    result + &text[end..]
}

fn analysed(text: &str, inputs: &[Input]) -> Result<Analysis, String> {
    let outline = Outline::parse(text).map_err(|error| {
        assert!(error.offset + error.width <= text.len(), "{text}");
        error.message
    })?;
    let query = parse::parse(&outline).map_err(|error| {
        assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{text}");
        error.message
    })?;
    let (functions, models) = (BTreeMap::new(), BTreeMap::new());
    Ok(analyse(&query, Environment { inputs, functions: &functions, models: &models }))
}

fn check(folder_name: &str, wrong: impl Fn(&Result<Analysis, String>) -> bool) -> usize {
    let inputs = tables();
    let statements = folder(folder_name);
    let mut failures = Vec::new();
    for text in &statements {
        let answer = analysed(&templated(text, &inputs), &inputs);
        if wrong(&answer) {
            let shown = match answer {
                Err(message) => message,
                Ok(found) => format!(
                    "{:?} {:?} {:?} {:?} {:?}",
                    found.missing, found.refusals, found.oddities, found.updating, found.gaps
                ),
            };
            failures.push(format!("{text}\n    {shown}"));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), statements.len(), failures.join("\n"));
    statements.len()
}

fn only_arguments(found: &Analysis) -> bool {
    matches!(found.refusals.as_slice(), [(Refusal::ArgumentCount { .. }, _)])
}

/// Of what Flink refuses.
fn nothing(found: &Analysis) -> bool {
    found.missing.is_empty() && found.unnamed.is_empty() && found.refusals.is_empty() && !no_time(found)
}

fn no_time(found: &Analysis) -> bool {
    found.oddities.iter().any(|(oddity, _)| matches!(oddity, Oddity::NoTimeAttribute { .. }))
}

#[test]
fn what_flink_accepts_is_read_without_a_finding() {
    // A table with its catalog and database is one of the cluster's, and the planner of the corpus has it.
    let named = |found: &Analysis| found.unnamed.iter().all(|table| !table.bare);
    let certain = |found: &Analysis| found.missing.is_empty() && found.refusals.is_empty() && named(found);
    let silent = |found: &Analysis| certain(found) && found.oddities.is_empty();
    let accepted =
        check("accepted", |answer| !matches!(answer, Ok(found) if silent(found) && found.updating.is_none()));
    let updating = check(
        "updating",
        |answer| !matches!(answer, Ok(found) if certain(found) && !no_time(found) && found.updating.is_some()),
    );
    assert!(accepted + updating >= 150, "{accepted} + {updating}");
}

#[test]
fn what_flink_refuses_is_answered_as_its_file_says() {
    let file = |name: &str| statements(&directory().join("refused").join(name));
    let inputs = tables();
    let mut count = 0;
    let mut wrong = Vec::new();
    for (name, right) in [
        ("syntax.sql", (|answer| answer.is_err()) as fn(&Result<Analysis, String>) -> bool),
        ("columns.sql", |answer| matches!(answer, Ok(found) if !found.missing.is_empty())),
        ("time.sql", |answer| matches!(answer, Ok(found) if found.missing.is_empty() && no_time(found))),
        ("tables.sql", |answer| matches!(answer, Ok(found) if found.missing.is_empty() && !found.unnamed.is_empty())),
        ("certain.sql", |answer| matches!(answer, Ok(found) if found.missing.is_empty() && !found.refusals.is_empty())),
        ("arguments.sql", |answer| matches!(answer, Ok(found) if only_arguments(found))),
        ("unseen.sql", |answer| matches!(answer, Ok(found) if nothing(found))),
    ] {
        for text in file(name) {
            let answer = analysed(&templated(&text, &inputs), &inputs);
            count += 1;
            if !right(&answer) {
                let shown = answer.map(|found| (found.missing, found.unnamed, found.refusals, found.oddities));
                wrong.push(format!("{name}: {text}\n    {shown:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 100, "{count}");
}

/// A text is a text, whatever its length: every one of them is written as STRING.
fn without_lengths(data_type: SqlType) -> SqlType {
    let inner = |of: Box<SqlType>| Box::new(without_lengths(*of));
    match data_type {
        SqlType::Char(_) | SqlType::Varchar(_) => SqlType::String,
        SqlType::Array(of) => SqlType::Array(inner(of)),
        SqlType::Multiset(of) => SqlType::Multiset(inner(of)),
        SqlType::Map(key, value) => SqlType::Map(inner(key), inner(value)),
        SqlType::Row(fields) => {
            SqlType::Row(fields.into_iter().map(|(name, of)| (name, without_lengths(of))).collect())
        }
        other => other,
    }
}

/// `types.tsv` holds what `DESCRIBE` of Flink says of a view over each expression.
#[test]
fn every_type_is_the_one_that_flink_describes() {
    let inputs = tables();
    let text = fs::read_to_string(directory().join("types.tsv")).unwrap();
    let (mut wrong, mut unknown, mut count) = (Vec::new(), Vec::new(), 0);
    for line in text.lines() {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap();
        let (described, table, expression) = (cell(), cell(), cell());
        count += 1;
        let query = templated(&format!("SELECT {expression} AS c FROM {table}"), &inputs);
        let found = analysed(&query, &inputs).unwrap_or_else(|error| panic!("{query}: {error}"));
        let tokens: Vec<Token> = tokenize(described).unwrap();
        let wanted = without_lengths(type_at(described, &tokens, 0).unwrap().0);
        match without_lengths(found.columns[0].data_type.clone()) {
            SqlType::Unknown => unknown.push(expression),
            given if given != wanted => wrong.push(format!("{expression}: {given}, not {described}")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 250 && unknown.len() * 20 <= count, "not known: {unknown:?}");
}
