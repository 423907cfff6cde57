//! Tests of records that were read.

use std::collections::HashSet;

use serde_json::Value;

use crate::compiler::classified::{Hidden, REDACTED};
use crate::project::model::Test;

use super::datum::Datum;
use super::decode::Decoder;
use super::number::Number;
use super::{Accepted, Record, Sample, Verdict, WriterSchemas, run, text, texts, types, unknown_word};

/// Offending records that are shown of one assertion.
const SHOWN: usize = 5;

/// Characters that are shown of a value.
const SHOWN_CHARACTERS: usize = 64;

/// A decoded record and where it stands.
struct Row<'a> {
    record: &'a Record,
    fields: Datum,
}

/// `hidden`: classified columns, whose values are not shown.
pub fn judge_sample(test: &Test, sample: &Sample, schemas: &WriterSchemas, hidden: &Hidden) -> Verdict {
    if sample.records.is_empty() {
        return match (sample.had_records, sample.cut_short) {
            (true, Some(why)) => Verdict::error(test, format!("records are there, and none could be read: {why}")),
            // Markers of transactions, or records whose transactions were aborted.
            (true, None) | (false, _) => none(test, "no messages found"),
        };
    }
    let mut decoder = Decoder::new(schemas);
    let mut rows = Vec::new();
    let mut undecoded = Vec::new();
    for record in &sample.records {
        let Some(value) = &record.value else { continue };
        match decoder.decode(value) {
            Ok(fields) => rows.push(Row { record, fields }),
            Err(why) => undecoded.push(format!("{}: {why}", place(record))),
        }
    }
    if !undecoded.is_empty() {
        let more = undecoded.len().saturating_sub(SHOWN);
        let shown = undecoded[..undecoded.len().min(SHOWN)].join("; ");
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let message =
            format!("{} of {} records cannot be decoded: {shown}{more}", undecoded.len(), sample.records.len());
        return Verdict { sample_size: Some(sample.records.len()), ..Verdict::error(test, message) };
    }
    if rows.is_empty() {
        return Verdict { sample_size: Some(sample.records.len()), ..none(test, "no messages with a value found") };
    }
    let mut verdict = run(test, |kind, body, findings| {
        findings.violations.extend(violations(kind, body, &rows, hidden));
    });
    verdict.sample_size = Some(sample.records.len());
    verdict
}

fn none(test: &Test, message: &str) -> Verdict {
    Verdict { status: super::Status::Failed, ..Verdict::error(test, message) }
}

fn violations(kind: &str, body: &Value, rows: &[Row<'_>], hidden: &Hidden) -> Vec<String> {
    let offenders = |column: &str, wrong: &dyn Fn(&Datum) -> bool| -> Vec<usize> {
        let of = |row: &Row<'_>| wrong(row.fields.field(column));
        rows.iter().enumerate().filter(|(_, row)| of(row)).map(|(index, _)| index).collect()
    };
    let told = |what: String, column: &str, found: Vec<usize>| -> Option<String> {
        (!found.is_empty()).then(|| {
            let shown: Vec<String> =
                found.iter().take(SHOWN).map(|index| shown(&rows[*index], column, hidden.contains(column))).collect();
            format!("{kind}: {what} in {} of {} records: {}", found.len(), rows.len(), shown.join(", "))
        })
    };
    match kind {
        "not_null" => texts(body, "columns")
            .filter_map(|column| {
                let found = offenders(column, &|value| *value == Datum::Null);
                told(format!("column '{column}' is null"), column, found)
            })
            .collect(),
        "accepted_values" => {
            let column = text(body, "column");
            let accepted: Vec<Datum> =
                body.get("values").and_then(Value::as_array).into_iter().flatten().map(Datum::of_json).collect();
            let found = offenders(column, &|value| *value != Datum::Null && !accepted.contains(value));
            told(format!("column '{column}' has another value"), column, found).into_iter().collect()
        }
        "accepted_types" => types(body)
            .filter_map(|(column, word)| {
                let Some(accepted) = Accepted::of(word) else { return Some(unknown_word(column, word)) };
                let found = offenders(column, &|value| *value != Datum::Null && !is_of(value, accepted));
                told(format!("column '{column}' is no {word}"), column, found)
            })
            .collect(),
        "range" => {
            let column = text(body, "column");
            let bound = |name: &str| body.get(name).and_then(|bound| numeric(&Datum::of_json(bound)));
            let (least, most) = (bound("min"), bound("max"));
            let outside = |value: &Datum| match numeric(value) {
                None => *value != Datum::Null,
                Some(number) => {
                    least.as_ref().is_some_and(|least| number < *least)
                        || most.as_ref().is_some_and(|most| number > *most)
                }
            };
            told(format!("column '{column}' is out of range"), column, offenders(column, &outside))
                .into_iter()
                .collect()
        }
        _ => unique(body, rows, hidden).into_iter().collect(),
    }
}

/// Keys that came before, as a share of the records. Nulls are no keys, as in SQL.
fn unique(body: &Value, rows: &[Row<'_>], hidden: &Hidden) -> Option<String> {
    let key = text(body, "key");
    let tolerance = body.get("tolerance").and_then(Value::as_f64).unwrap_or(0.0);
    let mut seen = HashSet::new();
    let keyed = rows.iter().filter(|row| *row.fields.field(key) != Datum::Null);
    let repeated: Vec<&Row<'_>> = keyed.filter(|row| !seen.insert(row.fields.field(key))).collect();
    let share = repeated.len() as f64 / rows.len() as f64;
    (share > tolerance).then(|| {
        let shown: Vec<String> = repeated.iter().take(SHOWN).map(|row| shown(row, key, hidden.contains(key))).collect();
        format!(
            "unique_key: key '{key}' came before in {} of {} records: {}",
            repeated.len(),
            rows.len(),
            shown.join(", ")
        )
    })
}

/// A number, or a text that is one.
fn numeric(value: &Datum) -> Option<Number> {
    match value {
        Datum::Number(number) => Some(number.clone()),
        Datum::Text(text) => Number::parse(text.trim()),
        Datum::Null | Datum::Boolean(_) | Datum::List(_) | Datum::Fields(_) => None,
    }
}

fn is_of(value: &Datum, accepted: Accepted) -> bool {
    let whole = |least: i64, most: i64| matches!(value, Datum::Number(number) if number.fits(least, most));
    let text = match value {
        Datum::Text(text) => Some(text.trim()),
        Datum::Null | Datum::Boolean(_) | Datum::Number(_) | Datum::List(_) | Datum::Fields(_) => None,
    };
    match accepted {
        Accepted::Text => text.is_some(),
        Accepted::Number | Accepted::Double => matches!(value, Datum::Number(_)),
        Accepted::Int => whole(i64::from(i32::MIN), i64::from(i32::MAX)),
        Accepted::Bigint => whole(i64::MIN, i64::MAX),
        Accepted::Boolean => matches!(value, Datum::Boolean(_)),
        Accepted::Timestamp => text.is_some_and(is_timestamp),
        Accepted::Date => text.is_some_and(|text| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()),
        Accepted::Time => {
            text.is_some_and(|text| !text.contains(['-', ' ']) && text.parse::<jiff::civil::Time>().is_ok())
        }
    }
}

/// `2024-01-01 10:00:00.123`, `2024-01-01T10:00:00Z`, `2024-01-01T10:00:00+02:00`.
fn is_timestamp(text: &str) -> bool {
    let timed = text.len() > 10 && matches!(text.as_bytes().get(10), Some(b' ' | b'T'));
    timed && (text.parse::<jiff::Timestamp>().is_ok() || text.parse::<jiff::civil::DateTime>().is_ok())
}

fn place(record: &Record) -> String {
    format!("partition {} offset {}", record.partition, record.offset)
}

fn shown(row: &Row<'_>, column: &str, hidden: bool) -> String {
    let value = row.fields.field(column);
    let text = match (hidden, value) {
        (_, Datum::Null) => return place(row.record),
        (true, _) => REDACTED.to_owned(),
        (false, value) => {
            let text = value.to_string();
            match text.char_indices().nth(SHOWN_CHARACTERS) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    };
    format!("{text} ({})", place(row.record))
}
