//! What `-v` writes on stderr: enough to follow a command, and no secret.

use serde_json::Value;

use crate::harness::{Run, Workspace};

const SECRET: &str = "s3ntinel-of-logs";

/// A project that holds a secret in every place that takes one; nobody answers at its addresses.
fn workspace() -> Workspace {
    let workspace = Workspace::project(
        "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime:
  kafka: {bootstrap_servers: \"127.0.0.1:1\", security_protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN, sasl_username: u, sasl_password: \"${PASSWORD}\"}
  schema_registry: {url: \"http://127.0.0.1:1\", username: u, password: \"${PASSWORD}\"}
  connect: {default: main, clusters: {main: {rest_url: \"http://127.0.0.1:1\"}}}
models:
  - {name: orders, description: d, topic: {name: shop.orders.v1, partitions: 1, replication_factor: 1}, schema: {subject: shop.orders-value, format: avro, definition: '\"string\"'}}
  - {name: sink, description: d, from: [{ref: orders}], sink: {connector: s3-sink, config: {aws.secret.access.key: \"s3ntinel-of-logs\"}}}
",
    );
    workspace.variable("PASSWORD", SECRET).variable("OTHER", SECRET)
}

fn records(run: &Run) -> Vec<Value> {
    let lines = run.stderr.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// SEC-003
#[test]
fn every_level_of_every_command_keeps_the_secrets() {
    let workspace = workspace();
    for command in [
        "validate",
        "compile",
        "build",
        "plan --offline",
        "plan",
        "apply",
        "status",
        "diff",
        "list",
        "show model sink",
        "lineage",
        "state status",
        "state lock-status",
    ] {
        for format in ["text", "json"] {
            let run = workspace.run(&format!("{command} -vvv --log-format {format}"));
            let shown = [run.stdout.as_str(), run.stderr.as_str()].concat();
            assert!(!shown.contains("s3ntinel"), "{command}: {shown}");
            assert!(run.stderr.contains("project loaded"), "{command}: {}", run.stderr);
        }
    }
}

#[test]
fn nothing_is_logged_unless_it_is_asked_for() {
    let workspace = workspace();
    for line in ["list", "list -q", "list -o json"] {
        assert_eq!(workspace.run(line).exits(0).stderr, "", "{line}");
    }
    let asked = workspace.variable("STREAMT_LOG_LEVEL", "info");
    assert!(asked.run("list").exits(0).stderr.contains("project loaded"));
}

#[test]
fn a_level_shows_what_the_ones_below_it_hide() {
    let workspace = workspace();
    let shown = |flag: &str| workspace.run(&format!("status {flag} --log-format json")).exits(1);
    let levels = |run: &Run| {
        let mut found: Vec<String> =
            records(run).iter().map(|record| record["level"].as_str().unwrap().to_owned()).collect();
        found.sort();
        found.dedup();
        found
    };
    assert_eq!(levels(&shown("-v")), ["INFO", "WARN"]);
    assert_eq!(levels(&shown("-vv")), ["DEBUG", "INFO", "WARN"]);
    assert_eq!(levels(&shown("-vvv")), ["DEBUG", "INFO", "TRACE", "WARN"]);
}

/// The counts that a user needs to see that the right project was read, and where the time went.
#[test]
fn a_json_record_is_one_line_with_its_fields_apart() {
    let run = workspace().run("compile --dry-run -v --log-format json").exits(0);
    let records = records(&run);
    let find = |message: &str| {
        let found = records.iter().find(|record| record["fields"]["message"] == message);
        found.unwrap_or_else(|| panic!("{message}: {}", run.stderr))["fields"].clone()
    };
    let loaded = find("project loaded");
    assert_eq!((&loaded["project"], &loaded["models"]), (&"shop".into(), &2.into()), "{loaded}");
    let compiled = find("project compiled");
    assert_eq!((&compiled["topics"], &compiled["schemas"]), (&1.into(), &1.into()), "{compiled}");
    let ended = find("ended");
    assert_eq!((&ended["command"], &ended["exit_code"]), (&"compile".into(), &0.into()), "{ended}");
}
