//! `streamt test` without a broker: schema tests, selection, coverage, JUnit, and what cannot be read.

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime:
  kafka: {bootstrap_servers: 127.0.0.1:1}
  flink: {default: local, clusters: {local: {sql_gateway_url: \"http://127.0.0.1:1\"}}}
sources:
  - {name: raw, topic: raw.v1, columns: [{name: id, type: STRING}, {name: total, type: INT}]}
models:
  - {name: valid, materialized: flink, sql: 'SELECT id, total FROM {{ source(\"raw\") }}'}
  - {name: bare, materialized: flink, sql: 'SELECT id FROM {{ source(\"raw\") }}'}
tests:
  - {name: ids, model: valid, type: schema, assertions: [{not_null: {columns: [id]}}, {range: {column: total, min: 0}}]}
  - {name: raw_ids, model: raw, type: schema, assertions: [{unique_key: {key: id}}]}
  - {name: watch, model: valid, type: continuous, assertions: [{not_null: {columns: [id]}}]}
  - {name: first, model: raw, type: sample, assertions: [{not_null: {columns: [id]}}]}
";

#[test]
fn schema_tests_run_without_any_service() {
    let workspace = Workspace::project(PROJECT);
    let before = workspace.snapshot();
    let data = workspace.run("test --type schema -o json").exits(0).json()["data"].clone();
    assert_eq!((&data["passed"], &data["failed"], &data["total"]), (&2.into(), &0.into(), &2.into()), "{data}");
    assert_eq!(
        data["results"][0],
        serde_json::json!({"name": "ids", "status": "passed", "errors": [], "warnings": []})
    );
    let text = workspace.run("test --type schema").exits(0).stdout;
    assert_eq!(text, "passed  ids (schema)\npassed  raw_ids (schema)\n\n2 passed, 0 failed, 0 skipped\n");
    let one = workspace.run("test -m raw --type schema -o json").exits(0).json();
    assert_eq!(one["data"]["results"][0]["name"], "raw_ids");
    let none = workspace.run("test -m bare -o json").exits(0).json();
    assert_eq!(none["data"], serde_json::json!({"results": [], "passed": 0, "failed": 0, "total": 0}));
    assert_eq!(workspace.run("test -m bar -o json").exits(1).errors()[0].0, "E102_MODEL_NOT_FOUND");
    assert_eq!(workspace.snapshot(), before);
}

/// What was not looked at has not passed.
#[test]
fn what_cannot_be_read_or_observed_is_an_error() {
    let workspace = Workspace::project(PROJECT);
    let watch = workspace.run("test --type continuous -o json").exits(1).json();
    assert_eq!(watch["data"]["results"][0]["status"], "error", "{watch}");
    assert_eq!(watch["data"]["passed"], 0);
    let run = workspace.run("test --type sample -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E906_TESTS_FAILED");
    let result = &run.json()["data"]["results"][0];
    assert_eq!(result["status"], "error");
    assert!(
        result["message"].as_str().unwrap().starts_with("E406_CONNECTION_REFUSED: topic:raw.v1: reading records"),
        "{result}"
    );
    assert_eq!(run.json()["data"]["failed"], 1);
}

#[test]
fn a_failed_schema_test_names_the_column_and_fail_fast_stops_behind_it() {
    let workspace = Workspace::project(
        &PROJECT.replace("not_null: {columns: [id]}}, {range", "not_null: {columns: [idd]}}, {range"),
    );
    let run = workspace.run("test --type schema --fail-fast --junit report.xml -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E906_TESTS_FAILED");
    let data = run.json()["data"].clone();
    assert_eq!((&data["failed"], &data["total"]), (&1.into(), &1.into()), "{data}");
    assert_eq!(data["results"][0]["errors"][0], "not_null: 'valid' has no column 'idd'");
    let report = std::fs::read_to_string(workspace.path("report.xml")).unwrap();
    assert!(
        report.contains("<testsuite name=\"shop\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\">"),
        "{report}"
    );
    assert!(report.contains("<failure message=\"not_null: 'valid' has no column 'idd'\">"), "{report}");
    let over = workspace.run("test --type schema --junit stream_project.yml -o json").exits(1);
    assert_eq!(over.errors()[0].0, "E907_OUTPUT_FAILED");
}

/// SEC-003: what a test says may hold what somebody wrote into a record or a declaration.
#[test]
fn what_a_test_says_shows_no_credential_and_commands_no_terminal() {
    let named = "not_null: {columns: [\"i\\e[31md\", \"password=hunter2\"]}}, {range";
    let workspace = Workspace::project(&PROJECT.replace("not_null: {columns: [id]}}, {range", named));
    let run = workspace.run("test --type schema --junit report.xml").exits(1);
    let report = std::fs::read_to_string(workspace.path("report.xml")).unwrap();
    assert!(run.stdout.contains("has no column 'i"), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}') && !report.contains('\u{1b}'), "{}", run.stdout);
    let json = workspace.run("test --type schema -o json").exits(1).stdout;
    for told in [run.stdout, run.stderr, report, json] {
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn coverage_counts_the_models_with_tests_and_runs_none() {
    let workspace = Workspace::project(PROJECT);
    let data = workspace.run("test --coverage -o json").exits(0).json()["data"].clone();
    assert_eq!((&data["covered"], &data["total"], &data["percent"]), (&1.into(), &2.into(), &50.into()), "{data}");
    assert_eq!(data["coverage"][1], serde_json::json!({"model": "bare", "covered": false}));
    workspace.run("test --coverage --fail-fast").exits(2);
}

#[test]
fn coverage_of_sources_alone_says_that_there_is_no_model() {
    let (head, rest) = PROJECT.split_once("models:\n").unwrap();
    let test = rest.lines().find(|line| line.contains("raw_ids")).unwrap();
    let workspace = Workspace::project(&format!("{head}tests:\n{test}\n"));
    let text = workspace.run("test --coverage").exits(0).stdout;
    assert_eq!(text, "There is no model to cover; tests of sources: 1.\n");
    let data = workspace.run("test --coverage -o json").exits(0).json()["data"].clone();
    assert_eq!((&data["covered"], &data["total"], &data["coverage"]), (&0.into(), &0.into(), &serde_json::json!([])));
}

/// A typing error would make a test that looks at nothing.
#[test]
fn validate_finds_an_assertion_over_a_column_that_is_nowhere() {
    let workspace = Workspace::project(&PROJECT.replace("range: {column: total,", "range: {column: totl,"));
    let run = workspace.run("validate --strict -o json").exits(1);
    let warning = &run.json()["warnings"][0];
    assert_eq!(warning["code"], "W103_MISSING_REF_COLUMN", "{warning}");
    assert_eq!(warning["message"], "Test 'ids': range names column 'totl', which model 'valid' does not have");
    let text = workspace.run("validate").exits(0);
    let line = PROJECT.lines().position(|line| line.contains("range: {column: total,")).unwrap();
    let column = PROJECT.lines().nth(line).unwrap().find("total,").unwrap();
    let place = format!("stream_project.yml:{}:{}", line + 1, column + 1);
    assert!(format!("{}{}", text.stdout, text.stderr).contains(&place), "{place}: {}", text.stderr);
}

/// Jobs of models and of continuous tests, and what makes none.
#[test]
fn the_jobs_of_models_and_of_continuous_tests_are_listed() {
    let copied = "  - {name: copied, materialized: topic, executor: flink, sql: 'SELECT id FROM {{ source(\"raw\") }}'}\n  \
                  - {name: written, topic: {name: written.v1}}\n";
    let workspace = Workspace::project(&PROJECT.replace("tests:\n", &format!("{copied}tests:\n")));
    let listed = workspace.run("list jobs -o json").exits(0).json()["data"]["items"].clone();
    let rows: Vec<(&str, &str)> = (listed.as_array().unwrap().iter())
        .map(|item| (item["name"].as_str().unwrap(), item["declared"].as_str().unwrap()))
        .collect();
    assert_eq!(rows, [("bare", "model"), ("copied", "model"), ("valid", "model"), ("test_watch", "test")]);
    let plan = workspace.run("compile --dry-run -o json").exits(0).json();
    assert_eq!(plan["data"]["counts"]["flink_jobs"], 3, "{plan}");
}
