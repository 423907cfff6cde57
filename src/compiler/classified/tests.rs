//! Which columns are hidden, and that no continuous test writes one of their values.

use std::sync::Arc;

use super::*;
use crate::compiler::compile;
use crate::project::{EnvironmentInput, MemoryFs, load};

const PROJECT: &str = "
apiVersion: streamt.dev/v1alpha1
project: {name: p}
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {default: f, clusters: {f: {rest_url: 'http://f:8081'}}}
sources:
  - name: s
    topic: s
    columns:
      - {name: id, type: STRING}
      - {name: n, type: INT, classification: public}
      - {name: mail, type: STRING, classification: internal}
      - {name: pin.code, type: STRING, classification: confidential}
      - {name: pin, type: STRING}
      - {name: domain, expression: \"SPLIT_INDEX(`mail`, '@', 1)\"}
      - {name: half, expression: 'n / 2'}
  - {name: bare, topic: bare}
  - {name: plain, topic: plain, columns: [{name: a, type: STRING}]}
models:
  - {name: m, materialized: flink, sql: \"SELECT id AS k, n, UPPER(mail) AS shout, domain FROM {{ source('s') }}\"}
  - {name: further, materialized: flink, sql: \"SELECT k, shout AS s FROM {{ ref('m') }}\"}
  - {name: unread, materialized: flink, sql: \"SELECT k, NEW 'x' shout AS z FROM {{ ref('m') }}\"}
  - {name: later, materialized: flink, sql: \"SELECT z AS y FROM {{ ref('unread') }}\"}
  - {name: free, materialized: flink, sql: \"SELECT a FROM {{ source('plain') }}\"}
  - name: secured
    materialized: flink
    sql: \"SELECT a, a AS b, a AS c, a AS d FROM {{ source('plain') }}\"
    security:
      classification: {b: sensitive, d: public}
      policies: [{mask: {column: c, method: partial}}]
";

/// Models of which no job can be written.
const OPAQUE: &str = "
  - {name: partly, materialized: flink, sql: \"SELECT k, o.* FROM {{ ref('m') }} JOIN {{ source('bare') }} o ON TRUE\"}
  - {name: open, materialized: flink, sql: \"SELECT ?? FROM {{ source('plain') }}\"}
";

fn project(text: &str) -> Arc<Project> {
    let fs = MemoryFs::new().with("stream_project.yml", text);
    Arc::new(load(&fs, &EnvironmentInput::default()).unwrap().project)
}

fn classified(project: &Project) -> Classified {
    let (models, _) = crate::compiler::resolve::resolve(project);
    Classified::new(project, &models, &Columns::of(project, &models))
}

#[test]
fn a_column_is_hidden_by_its_classification_or_its_mask_and_what_is_made_of_it_through_every_model() {
    let classified = classified(&project(&format!("{PROJECT}{}", OPAQUE.trim_start_matches('\n'))));
    for (table, hidden, shown) in [
        ("s", "mail pin pin.code domain", "id n half other"),
        ("m", "shout domain", "k n"),
        ("further", "s", "k"),
        ("secured", "b c", "a d"),
        ("plain", "", "a"),
        ("open", "", "anything"),
    ] {
        let of = classified.of(table);
        assert!(hidden.split_whitespace().all(|column| of.contains(column)), "{table}: {of:?}");
        assert!(shown.split_whitespace().all(|column| !of.contains(column)), "{table}: {of:?}");
        assert_eq!(of.is_empty(), hidden.is_empty(), "{table}");
    }
}

#[test]
fn what_cannot_be_told_is_hidden() {
    let classified = classified(&project(&format!("{PROJECT}{}", OPAQUE.trim_start_matches('\n'))));
    assert!(
        ["k", "z", "other"].iter().all(|column| classified.of("unread").contains(column)),
        "its SQL is not understood"
    );
    assert!(classified.of("later").contains("y"), "made of what is not known");
    assert!(!classified.of("partly").contains("k") && classified.of("partly").contains("other"), "of a star");
    assert!(classified.of("nowhere").contains("a"));
}

/// Each way by which a value could reach the topic of failures.
#[test]
fn no_continuous_test_writes_a_value_of_a_hidden_column() {
    let tests = "
tests:
  - name: watch
    model: §
    type: continuous
    assertions:
      - not_null: {columns: [¤]}
      - accepted_values: {column: ¤, values: [a]}
      - range: {column: ¤, min: 0, max: 9}
      - accepted_types: {types: {¤: number}}
      - custom_sql: {where: \"`¤` <> 'a'\", detail_column: ¤}
";
    for (model, column, hidden) in
        [("s", "mail", true), ("s", "id", false), ("m", "shout", true), ("m", "k", false), ("unread", "z", true)]
    {
        let text = format!("{PROJECT}{}", tests.replace('§', model).replace('¤', column));
        let compiled = compile(project(&text)).unwrap();
        let sql = &compiled.artifacts.test_jobs[0].sql;
        let selects = &sql[sql.find("INSERT INTO").unwrap()..];
        let redacted = format!(
            "CASE WHEN `{column}` IS NULL THEN CAST(NULL AS STRING) ELSE '<redacted>' END AS violation_details"
        );
        let written = format!("CAST(`{column}` AS STRING) AS violation_details");
        let (some, none) = if hidden { (redacted, written) } else { (written, redacted) };
        assert_eq!((selects.matches(&some).count(), selects.matches(&none).count()), (6, 0), "{model}: {sql}");
        assert_eq!(selects.matches("'' AS record").count(), 6, "{sql}");
    }
}

/// Without a column for the details the first one is written.
#[test]
fn the_first_column_of_a_condition_of_ones_own_is_hidden_too() {
    let text = PROJECT.replace("      - {name: id, type: STRING}\n", "")
        + "tests: [{name: t, model: s, type: continuous, assertions: [{custom_sql: {where: 'TRUE'}}]}]\n";
    let text = text.replace("      - {name: n, type: INT, classification: public}\n", "");
    let text = text.replace("SELECT id AS k, n,", "SELECT 'k' AS k, 1 AS n,").replace("'n / 2'", "'1 / 2'");
    let sql = &compile(project(&text)).unwrap().artifacts.test_jobs[0].sql;
    assert!(sql.contains("CASE WHEN `mail` IS NULL") && !sql.contains("CAST(`mail`"), "{sql}");
}

#[test]
fn a_job_that_reads_hidden_values_is_known() {
    let compiled = compile(project(PROJECT)).unwrap();
    let classified = compiled.classified();
    let reads = |name: &str| {
        let job = compiled.artifacts.flink_jobs.iter().find(|job| job.name == name).unwrap();
        classified.read_by(job, &compiled.models)
    };
    assert!(["m", "further", "unread", "secured"].iter().all(|name| reads(name)));
    assert!(!reads("free"));
}
