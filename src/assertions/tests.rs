//! What tests come to, of columns and of records.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::compiler::classified::Hidden;
use crate::compiler::columns::Columns;
use crate::compiler::testing;
use crate::project::model::OnFailure;
use crate::project::{EnvironmentInput, MemoryFs, load};

fn test(kind: TestType, assertions: Value) -> Test {
    Test { assertions: assertions.as_array().unwrap().clone(), ..testing::test("t", "m", kind) }
}

fn records(values: &[Value]) -> Sample {
    let record = |(offset, value): (usize, &Value)| Record {
        partition: 0,
        offset: offset as i64,
        value: (!value.is_null()).then(|| value.to_string().into_bytes()),
    };
    Sample { records: values.iter().enumerate().map(record).collect(), cut_short: None, had_records: true }
}

fn judged(assertion: Value, values: &[Value]) -> Verdict {
    judge_sample(
        &test(TestType::Sample, json!([assertion])),
        &records(values),
        &WriterSchemas::new(),
        &Hidden::default(),
    )
}

#[track_caller]
fn passes(assertion: Value, values: &[Value]) {
    let verdict = judged(assertion, values);
    assert_eq!(verdict.status, Status::Passed, "{verdict:?}");
}

#[track_caller]
fn fails(assertion: Value, values: &[Value], told: &str) {
    let verdict = judged(assertion, values);
    assert_eq!((verdict.status, verdict.errors.as_slice()), (Status::Failed, [told.to_owned()].as_slice()));
}

#[test]
fn a_missing_key_and_a_null_break_not_null() {
    let assertion = json!({"not_null": {"columns": ["id"]}});
    passes(assertion.clone(), &[json!({"id": 0}), json!({"id": ""})]);
    let told = "not_null: column 'id' is null in 2 of 3 records: partition 0 offset 0, partition 0 offset 2";
    fails(assertion, &[json!({"x": 1}), json!({"id": 1}), json!({"id": null})], told);
}

#[test]
fn accepted_values_are_compared_as_values() {
    let assertion = json!({"accepted_values": {"column": "a", "values": ["x", 1, 0.5, true]}});
    passes(
        assertion.clone(),
        &[json!({"a": "x"}), json!({"a": 1.0}), json!({"a": 0.50}), json!({"a": true}), json!({"a": null})],
    );
    let told = "accepted_values: column 'a' has another value in 2 of 2 records: '1' (partition 0 offset 0), 2 (partition 0 offset 1)";
    fails(assertion, &[json!({"a": "1"}), json!({"a": 2})], told);
}

#[test]
fn a_range_has_exact_bounds_and_takes_numbers_in_texts() {
    let assertion = json!({"range": {"column": "a", "min": 0, "max": 9007199254740993_i64}});
    passes(assertion.clone(), &[json!({"a": 0}), json!({"a": 9007199254740993_i64}), json!({"a": "12.5"}), json!({})]);
    for (value, shown) in
        [(json!(-0.001), "-0.001"), (json!(9007199254740994_i64), "9007199254740994"), (json!("x"), "'x'")]
    {
        let told = format!("range: column 'a' is out of range in 1 of 1 records: {shown} (partition 0 offset 0)");
        fails(assertion.clone(), &[json!({"a": value})], &told);
    }
}

#[test]
fn accepted_types_are_those_of_the_values() {
    for (word, good, bad) in [
        ("string", json!("x"), json!(1)),
        ("number", json!(1.5), json!("1.5")),
        ("int", json!(2147483647), json!(2147483648_i64)),
        ("integer", json!(-1), json!(1.5)),
        ("bigint", json!(i64::MAX), json!(u64::MAX)),
        ("boolean", json!(false), json!("false")),
        ("timestamp", json!("2024-02-29 10:00:00.123"), json!("2024-02-30 10:00:00")),
        ("timestamp", json!("2024-02-29T10:00:00Z"), json!("2024-02-29")),
        ("datetime", json!("2024-02-29T10:00:00+02:00"), json!(1709200800)),
        ("date", json!("2024-02-29"), json!("2024-02-29T10:00:00")),
        ("time", json!("10:00:00"), json!("10 o'clock")),
    ] {
        let assertion = json!({"accepted_types": {"types": {"a": word}}});
        passes(assertion.clone(), &[json!({"a": good}), json!({"a": null})]);
        assert_eq!(judged(assertion, &[json!({"a": bad})]).status, Status::Failed, "{word} {bad}");
    }
    let verdict = judged(json!({"accepted_types": {"types": {"a": "blob"}}}), &[json!({"a": 1})]);
    assert!(verdict.errors[0].starts_with("accepted_types: 'blob' of column 'a' is none of string"), "{verdict:?}");
}

#[test]
fn duplicates_up_to_the_tolerance_pass() {
    let values = [json!({"id": 1}), json!({"id": 1.0}), json!({"id": "1"}), json!({"id": 2})];
    fails(
        json!({"unique_key": {"key": "id"}}),
        &values,
        "unique_key: key 'id' came before in 1 of 4 records: 1 (partition 0 offset 1)",
    );
    passes(json!({"unique_key": {"key": "id", "tolerance": 0.25}}), &values);
}

/// As UNIQUE of SQL: who wants a key in every record says `not_null`.
#[test]
fn nulls_and_missing_keys_are_no_duplicates_and_count_as_records() {
    let unique = |tolerance: f64| json!({"unique_key": {"key": "id", "tolerance": tolerance}});
    let nulls = [json!({"x": 1}), json!({"x": 2}), json!({"id": null}), json!({"id": null})];
    passes(unique(0.0), &nulls);
    let mixed = [json!({}), json!({"id": "a"}), json!({}), json!({"id": "a"})];
    fails(unique(0.0), &mixed, "unique_key: key 'id' came before in 1 of 4 records: 'a' (partition 0 offset 3)");
    passes(unique(0.25), &mixed);
}

#[test]
fn nothing_passes_that_was_not_looked_at() {
    let sample = test(TestType::Sample, json!([{"not_null": {"columns": ["id"]}}]));
    let none = WriterSchemas::new();
    let of = |sample_of: &Sample| judge_sample(&sample, sample_of, &none, &Hidden::default());
    let empty = of(&Sample::default());
    assert_eq!((empty.status, empty.message.as_deref()), (Status::Failed, Some("no messages found")));
    let unread = Sample { had_records: true, cut_short: Some("too slow"), ..Sample::default() };
    assert_eq!(of(&unread).status, Status::Error);
    let tombstones = of(&records(&[Value::Null]));
    assert_eq!((tombstones.status, tombstones.sample_size), (Status::Failed, Some(1)));
    assert_eq!(of(&records(&[Value::Null, json!({"id": 1})])).status, Status::Passed);
    let undecoded = of(&records(&[json!({"id": 1}), json!("sentinel")]));
    assert_eq!(undecoded.status, Status::Error);
    let told = "1 of 2 records cannot be decoded: partition 0 offset 1: it is no object with fields";
    assert_eq!(undecoded.message.as_deref(), Some(told));
    let skipped = judged(json!({"custom_sql": {"where": "TRUE"}}), &[json!({"id": 1})]);
    assert_eq!(skipped.status, Status::Skipped);
    assert_eq!(skipped.warnings, ["custom_sql is not executed by a sample test"]);
    let bare = judge_sample(&test(TestType::Sample, json!([])), &records(&[json!({})]), &none, &Hidden::default());
    assert_eq!(bare.status, Status::Skipped);
}

#[test]
fn a_failure_of_severity_warning_is_told_and_passes() {
    let mut tolerant = test(TestType::Sample, json!([{"not_null": {"columns": ["id"]}}]));
    tolerant.on_failure = Some(OnFailure { severity: Severity::Warning, actions: Vec::new() });
    let verdict = judge_sample(&tolerant, &records(&[json!({})]), &WriterSchemas::new(), &Hidden::default());
    assert_eq!((verdict.status, verdict.errors.len(), verdict.warnings.len()), (Status::Passed, 0, 1));
    let unread = judge_sample(&tolerant, &Sample::default(), &WriterSchemas::new(), &Hidden::default());
    assert_eq!(unread.status, Status::Failed, "there was nothing to tolerate");
}

/// At most five records are shown, long values are cut, and values of classified columns never appear.
#[test]
fn what_is_shown_of_records_is_bounded_and_redacted() {
    let assertion = json!({"accepted_values": {"column": "a", "values": []}});
    let many: Vec<Value> = (0..7).map(|_| json!({"a": "x".repeat(500)})).collect();
    let shown = &judged(assertion.clone(), &many).errors[0];
    assert_eq!((shown.matches("partition").count(), shown.matches('…').count()), (5, 5));
    assert!(shown.len() < 600);
    let hidden = Hidden::of(["a"]);
    let one = records(&[json!({"a": "sentinel"})]);
    let verdict = judge_sample(&test(TestType::Sample, json!([assertion])), &one, &WriterSchemas::new(), &hidden);
    assert!(verdict.errors[0].ends_with("<redacted> (partition 0 offset 0)"), "{verdict:?}");
}

const PROJECT: &str = "
apiVersion: streamt.dev/v1alpha1
project: {name: p}
runtime: {kafka: {bootstrap_servers: 'b:9092'}}
sources:
  - name: s
    topic: s
    columns: [{name: id, type: STRING}, {name: n, type: INT}]
models:
  - {name: m, materialized: flink, sql: \"SELECT id AS k, n, UPPER(id) AS shout, NEW_FN(n) AS odd FROM {{ source('s') }}\"}
";

fn project() -> (Arc<crate::project::Project>, Vec<crate::compiler::ResolvedModel>) {
    let fs = MemoryFs::new().with("stream_project.yml", PROJECT);
    let project = load(&fs, &EnvironmentInput::default()).unwrap().project;
    let (models, _) = crate::compiler::resolve::resolve(&project);
    (Arc::new(project), models)
}

#[test]
fn schema_tests_judge_the_columns_that_the_sql_gives() {
    let (project, models) = project();
    let columns = Columns::of(&project, &models);
    let of = |assertions: Value| {
        let table = columns.table("m").unwrap();
        judge_schema(&test(TestType::Schema, assertions), table.columns.as_deref())
    };
    let good = of(json!([
        {"not_null": {"columns": ["k", "n"]}}, {"unique_key": {"key": "k"}}, {"range": {"column": "n", "min": 0}},
        {"accepted_types": {"types": {"k": "string", "n": "int", "shout": "text"}}},
        {"accepted_values": {"column": "k", "values": ["a"]}},
    ]));
    assert_eq!(good.status, Status::Passed, "{good:?}");
    let bad = of(json!([
        {"not_null": {"columns": ["id"]}}, {"range": {"column": "k", "max": 1}}, {"unique_key": {"key": "id"}},
        {"accepted_types": {"types": {"n": "bigint"}}},
    ]));
    let told = [
        "not_null: 'm' has no column 'id'",
        "range: column 'k' is STRING, no number",
        "unique_key: 'm' has no column 'id'",
        "accepted_types: column 'n' is INT, not bigint",
    ];
    assert_eq!(bad.errors, told);
    let unknown = of(json!([{"accepted_types": {"types": {"odd": "int"}}}]));
    assert_eq!(unknown.status, Status::Passed);
    assert_eq!(unknown.warnings, ["accepted_types: the type of column 'odd' is not known"]);
    let undeclared = judge_schema(&test(TestType::Schema, json!([{"not_null": {"columns": ["a"]}}])), None);
    assert_eq!(undeclared.status, Status::Error);
}

#[test]
fn a_continuous_test_passes_while_all_tasks_of_its_job_run() {
    let watch = test(TestType::Continuous, json!([{"not_null": {"columns": ["id"]}}, {"unique_key": {"key": "id"}}]));
    let of = |state: Option<(&str, bool)>, why: Option<&str>| judge_job(&watch, Some(("test_t", state)), why);
    let runs = of(Some(("RUNNING", true)), None);
    assert_eq!((runs.status, runs.job_status.as_deref()), (Status::Passed, Some("RUNNING")));
    assert_eq!(runs.warnings, ["unique_key is not executed by a continuous test"]);
    let starts = of(Some(("RUNNING", false)), None);
    assert_eq!(starts.status, Status::Failed);
    assert_eq!(starts.errors, ["its job 'test_t' is RUNNING, and not all of its tasks run"]);
    let failed = of(Some(("FAILED", false)), Some("no such topic"));
    assert_eq!(failed.errors, ["its job 'test_t' is FAILED: no such topic"]);
    let absent = of(None, None);
    assert_eq!((absent.status, absent.message.as_deref()), (Status::Skipped, Some("its job 'test_t' is not deployed")));
    assert_eq!(judge_job(&watch, None, None).status, Status::Skipped);
}
