//! What `validate` says of SQL, as a user sees it.

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: p}
runtime:
  kafka: {bootstrap_servers: 'localhost:9092'}
  flink: {default: local, clusters: {local: {sql_gateway_url: 'http://localhost:8083'}}}
sources:
  - name: orders
    topic: orders
    columns: [{name: order_id, type: STRING}, {name: amount, type: INT}]
models:
  - name: big_orders
    materialized: flink
    sql: |
      SELECT order_id,
             amonut
      FROM {{ source('orders') }}
";

/// The whole finding with its hint is on stderr; in JSON it is in the answer. Elsewhere warnings are an aside.
#[test]
fn validate_tells_of_a_warning_where_it_is_and_what_to_do() {
    let workspace = Workspace::project(PROJECT);
    let run = workspace.run("validate").exits(0);
    let expected = "\
WARNING: [W102_MISSING_SOURCE_COLUMN] Model 'big_orders' uses column 'amonut', which source 'orders' does not have
  --> stream_project.yml:15:14 (models → 0 → sql)
    |
 15 |              amonut
    |              ^^^^^^
HINT: Did you mean 'amount'?
";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    let json = workspace.run("validate -o json").exits(0).json();
    assert_eq!(json["data"]["warnings"][0]["suggestion"], "Did you mean 'amount'?");
    let quiet = workspace.run("validate -q").exits(0);
    assert_eq!(quiet.stderr, "");
    let plan = workspace.run("plan --offline").exits(0);
    assert!(plan.stderr.contains("W102") && !plan.stderr.contains("HINT: Did you mean"), "{}", plan.stderr);
}

#[test]
fn a_table_that_is_named_by_nothing_is_told_with_the_call_to_write() {
    let bare = PROJECT.replace("amonut", "amount").replace("FROM {{ source('orders') }}", "FROM orders");
    let run = Workspace::project(&bare).run("validate --strict").exits(1);
    assert!(run.stderr.contains("[W234_TABLE_NOT_DECLARED]"), "{}", run.stderr);
    assert!(run.stderr.contains("--> stream_project.yml:16:12"), "{}", run.stderr);
    assert!(run.stderr.contains("HINT: Write {{ source(\"orders\") }}"), "{}", run.stderr);
    assert!(!run.stderr.contains("W201"), "{}", run.stderr);
}
