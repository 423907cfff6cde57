use serde_json::json;

use super::*;
use crate::compiler::artifact::{self, KafkaStreamsJobArtifact};
use crate::compiler::compile as compile_project;
use crate::project::{EnvironmentInput, MemoryFs, load};

const HEAD: &str = "
apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  kafka_streams: {image: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', network: host, initial_offset: latest}
sources:
  - name: s
    topic: s.v1
    columns: [{name: id, type: STRING, required: true}, {name: n, type: BIGINT}, {name: paid, type: BOOLEAN}]
  - {name: back, topic: further.v1, columns: [{name: id, type: STRING, required: true}]}
models:
";

fn compiled(models: &str) -> Result<Vec<KafkaStreamsJobArtifact>, Vec<String>> {
    let fs = MemoryFs::new().with("stream_project.yml", format!("{HEAD}{models}"));
    let project =
        load(&fs, &EnvironmentInput::default()).unwrap_or_else(|errors| panic!("{errors:#?}\n{models}")).project;
    match compile_project(std::sync::Arc::new(project)) {
        Ok(compiled) => Ok(compiled.artifacts.kafka_streams_jobs),
        Err(findings) => Err(findings.errors().map(|f| format!("{} {}", f.code.number(), f.message)).collect()),
    }
}

#[track_caller]
fn refused(models: &str, part: &str) {
    let errors = compiled(models).expect_err(models);
    assert!(errors.iter().any(|error| error.starts_with("E218 ") && error.contains(part)), "{part}: {errors:#?}");
}

fn runner(name: &str, sql: &str, more: &str) -> String {
    format!("  - {{name: {name}, executor: kafka_streams, sql: \"{sql}\"{more}}}\n")
}

/// KSC-001
#[test]
fn a_projection_and_a_filter_become_a_plan() {
    let sql = "SELECT id AS order_id, n FROM {{ source('s') }} WHERE n >= -50 AND NOT id IS NULL AND paid = true AND id <> 'a''b' AND n IS NULL";
    let jobs = compiled(&runner("orders_valid", sql, ", topic: {name: valid.v1}")).unwrap();
    let plan = json!({
        "version": 1,
        "input_topic": "s.v1",
        "output_topic": "valid.v1",
        "schema": {
            "id": {"type": "STRING", "nullable": false},
            "n": {"type": "BIGINT", "nullable": true},
            "paid": {"type": "BOOLEAN", "nullable": true},
        },
        "projection": [{"column": "id", "as": "order_id"}, {"column": "n", "as": "n"}],
        "predicates": [
            {"column": "n", "op": "ge", "value": -50}, {"column": "id", "op": "not_null"},
            {"column": "paid", "op": "eq", "value": true}, {"column": "id", "op": "ne", "value": "a'b"},
            {"column": "n", "op": "is_null"},
        ],
    });
    let artifact = json!({
        "name": "orders_valid",
        "application_id": "streamt-9b95fb05cb8c14825727bcb9d4a83e5d",
        "image": "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "network": "host",
        "initial_offset": "latest",
        "plan": plan,
        "ownership": {"mode": "managed", "project": "shop", "type": "model", "name": "orders_valid"},
    });
    assert_eq!(serde_json::to_value(&jobs[0]).unwrap(), artifact);
    artifact::read::<KafkaStreamsJobArtifact>(artifact, "shop").unwrap();
}

/// KSC-005: other SQL, image or network leave it as it is.
#[test]
fn the_application_id_is_of_project_environment_and_model_alone() {
    for ([project, environment, model], id) in [
        (["payments", "dev", "eu_orders"], "streamt-c4be3515867de640f0dbfe838250d467"),
        (["payments", "prod", "eu_orders"], "streamt-b66a78342bbbebe39339acd826a138a9"),
        (["shop", "default", "orders_valid"], "streamt-9b95fb05cb8c14825727bcb9d4a83e5d"),
        (["prøve", "dev", "m"], "streamt-d36cd438e25f4beb8e5111d4e59a7304"),
    ] {
        assert_eq!(application_id(project, environment, model).as_deref(), Some(id));
    }
    let id = |sql: &str| compiled(&runner("m", sql, "")).unwrap()[0].application_id.clone();
    assert_eq!(id("SELECT id FROM {{ source('s') }}"), id("SELECT n FROM {{ source('s') }} WHERE n > 1"));
}

/// KSC-001
#[test]
fn what_the_runner_cannot_read_is_refused_before_any_artifact() {
    let of = |sql: &str| runner("m", sql, "");
    for (sql, part) in [
        ("SELECT * FROM {{ source('s') }}", ""),
        ("SELECT UPPER(id) AS id FROM {{ source('s') }}", ""),
        ("SELECT id FROM {{ source('s') }} WHERE (n > 1)", ""),
        ("SELECT id FROM {{ source('s') }} WHERE n > 1 OR n < 0", ""),
        ("SELECT id FROM {{ source('s') }} WHERE n = NULL", ""),
        ("SELECT id FROM {{ source('s') }} WHERE n = 9007199254740992", ""),
        ("SELECT id FROM {{ source('s') }} /* x */", ""),
        ("SELECT id, n AS id FROM {{ source('s') }}", ""),
        ("SELECT nope FROM {{ source('s') }}", "the input has no column 'nope'"),
        ("SELECT id FROM {{ source('s') }} WHERE n = 'x'", "the literal is STRING"),
        ("SELECT id FROM {{ source('s') }} WHERE paid > true", "has no order"),
    ] {
        refused(&of(sql), part);
    }
}

#[test]
fn an_input_says_its_columns_once_and_in_the_runners_types() {
    let of = |input: &str| format!("{input}{}", runner("m", "SELECT id FROM {{ ref('i') }}", ""));
    let topic = |columns: &str| format!("  - {{name: i, topic: {{name: i.v1}}{columns}}}\n");
    compiled(&of(&topic(", columns: [{name: id, type: STRING}]"))).unwrap();
    compiled(&of(&topic(", contract: {columns: [{name: id, type: STRING, nullable: false}]}"))).unwrap();
    for (columns, part) in [
        ("", "declares no columns"),
        (", columns: [{name: id, type: VARCHAR}]", "not STRING, BOOLEAN or BIGINT"),
        (", columns: [{name: id, type: string}]", "not STRING, BOOLEAN or BIGINT"),
        (
            ", columns: [{name: id, type: STRING}], contract: {columns: [{name: id, type: STRING, nullable: false}]}",
            "than its contract promises",
        ),
    ] {
        refused(&of(&topic(columns)), part);
    }
}

#[test]
fn what_is_declared_of_the_output_is_what_the_sql_gives() {
    let of = |more: &str| runner("m", "SELECT id, n AS k FROM {{ source('s') }}", more);
    for good in [
        ", columns: [{name: k, type: BIGINT}, {name: id, type: STRING, required: true}]",
        ", contract: {columns: [{name: id}, {name: k, type: BIGINT, nullable: true}]}",
    ] {
        compiled(&of(good)).unwrap();
    }
    for bad in [
        ", columns: [{name: id, type: STRING, required: true}]",
        ", columns: [{name: id, type: STRING}, {name: k, type: BIGINT}]",
        ", columns: [{name: id, type: STRING, required: true}, {name: k, type: BOOLEAN}]",
    ] {
        refused(&of(bad), "columns are not the columns that its SQL gives: id STRING, required, k BIGINT");
    }
    refused(&of(", contract: {columns: [{name: id}, {name: k, nullable: false}]}"), "contract.columns are not");
}

/// KSC-012
#[test]
fn a_circle_of_topics_is_found_behind_the_names_of_sources() {
    let circle = runner("first", "SELECT id FROM {{ source('back') }}", ", topic: {name: first.v1}")
        + &runner("further", "SELECT id FROM {{ ref('first') }}", ", topic: {name: further.v1}");
    refused(&circle, "circle of topics: first.v1 -> further.v1 -> first.v1");
    let own = runner("m", "SELECT id FROM {{ source('back') }}", ", topic: {name: further.v1}");
    refused(&own, "would read and write topic 'further.v1'");
    let line = runner("first", "SELECT id FROM {{ source('s') }}", ", topic: {name: first.v1}")
        + &runner("further", "SELECT id FROM {{ ref('first') }}", ", topic: {name: further.v1}");
    let jobs = compiled(&line).unwrap();
    assert_eq!(jobs[1].plan["schema"], json!({"id": {"type": "STRING", "nullable": false}}), "its input gives it");
}
