//! What a test's assertions come to: of the declared columns, and of records that were read from a topic. Pure: records and
//! schemas enter as values. It promises that nothing passes without having been looked at: what cannot be decoded is an
//! error of the test, and what is not executed is said.

mod avro;
mod continuous;
mod datum;
mod decode;
mod number;
mod sample;
mod schema;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::project::model::{Severity, Test, TestType};

pub use continuous::judge_job;
pub use decode::schema_ids;
pub use sample::judge_sample;
pub use schema::judge_schema;

/// Records of a sample that names no size.
pub const SAMPLE_SIZE: u32 = 100;

/// One record of a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub partition: i32,
    pub offset: i64,
    /// None: a tombstone.
    pub value: Option<Vec<u8>>,
}

/// What was read of a topic.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Sample {
    pub records: Vec<Record>,
    /// Why fewer were read than there are.
    pub cut_short: Option<&'static str>,
    /// Whether the topic held anything to read.
    pub had_records: bool,
}

/// A writer's schema, by the number that stands in front of each record.
#[derive(Clone, PartialEq, Debug)]
pub enum WriterSchema {
    /// The definition, and those that it refers to.
    Avro {
        definition: Value,
        references: Vec<Value>,
    },
    Json,
    /// Known, and not read here.
    Protobuf,
    /// Why it could not be had.
    Unavailable(String),
}

pub type WriterSchemas = BTreeMap<u32, WriterSchema>;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Passed,
    Failed,
    Skipped,
    /// Could not be judged: counted as failed.
    Error,
}

/// The result of one test.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    pub name: String,
    pub status: Status,
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
    /// Records that were judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Verdict {
    fn new(test: &Test, status: Status) -> Self {
        Self {
            name: test.name.clone(),
            status,
            errors: Vec::new(),
            warnings: Vec::new(),
            sample_size: None,
            job_status: None,
            message: None,
        }
    }

    pub fn error(test: &Test, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { errors: vec![message.clone()], message: Some(message), ..Self::new(test, Status::Error) }
    }

    pub fn skipped(test: &Test, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::new(test, Status::Skipped) }
    }

    pub fn counts_as_failed(&self) -> bool {
        matches!(self.status, Status::Failed | Status::Error)
    }
}

/// Which kinds of assertion a type of test runs.
pub fn executes(test_type: TestType, assertion: &str) -> bool {
    match assertion {
        "not_null" | "accepted_values" | "accepted_types" | "range" => true,
        "unique_key" => test_type != TestType::Continuous,
        "custom_sql" => test_type == TestType::Continuous,
        _ => false,
    }
}

pub fn type_word(test_type: TestType) -> &'static str {
    match test_type {
        TestType::Schema => "schema",
        TestType::Sample => "sample",
        TestType::Continuous => "continuous",
    }
}

/// The assertions that this type of test does not run.
fn skipped_notes(test: &Test) -> Vec<String> {
    let kinds = test.assertions.iter().filter_map(|written| written.as_object()?.keys().next());
    let left = kinds.filter(|kind| !executes(test.test_type, kind));
    left.map(|kind| format!("{kind} is not executed by a {} test", type_word(test.test_type))).collect()
}

/// What running each assertion found.
#[derive(Default)]
struct Findings {
    violations: Vec<String>,
    notes: Vec<String>,
}

/// Runs what a test of this type runs, and says what it does not.
fn run(test: &Test, mut assertion: impl FnMut(&str, &Value, &mut Findings)) -> Verdict {
    let mut findings = Findings::default();
    let mut executed = 0;
    for written in &test.assertions {
        let Some((kind, body)) = written.as_object().and_then(|map| map.iter().next()) else { continue };
        if executes(test.test_type, kind) {
            executed += 1;
            assertion(kind, body, &mut findings);
        } else {
            findings.notes.push(format!("{kind} is not executed by a {} test", type_word(test.test_type)));
        }
    }
    let Findings { violations, notes } = findings;
    if executed == 0 {
        return Verdict { warnings: notes, ..Verdict::skipped(test, "no assertion of this test is executed") };
    }
    let tolerated = test.on_failure.as_ref().is_some_and(|on_failure| on_failure.severity == Severity::Warning);
    let mut verdict = Verdict::new(test, Status::Passed);
    if violations.is_empty() || tolerated {
        verdict.warnings = violations;
    } else {
        verdict.status = Status::Failed;
        verdict.errors = violations;
    }
    verdict.warnings.extend(notes);
    verdict
}

fn text<'a>(body: &'a Value, field: &str) -> &'a str {
    body.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(body: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    body.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn types(body: &Value) -> impl Iterator<Item = (&str, &str)> {
    let types = body.get("types").and_then(Value::as_object).into_iter().flatten();
    types.filter_map(|(column, word)| Some((column.as_str(), word.as_str()?)))
}

/// What `accepted_types` may name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Accepted {
    Text,
    Number,
    Double,
    Int,
    Bigint,
    Boolean,
    Timestamp,
    Date,
    Time,
}

impl Accepted {
    fn of(word: &str) -> Option<Self> {
        Some(match word.trim().to_ascii_lowercase().as_str() {
            "string" | "str" | "text" => Self::Text,
            "number" | "numeric" => Self::Number,
            "double" | "float" => Self::Double,
            "int" | "integer" => Self::Int,
            "bigint" | "long" => Self::Bigint,
            "boolean" | "bool" => Self::Boolean,
            "timestamp" | "datetime" => Self::Timestamp,
            "date" => Self::Date,
            "time" => Self::Time,
            _ => return None,
        })
    }
}

fn unknown_word(column: &str, word: &str) -> String {
    format!(
        "accepted_types: '{word}' of column '{column}' is none of string, number, double, int, bigint, boolean, timestamp, \
         date, time"
    )
}

#[cfg(test)]
mod tests;
