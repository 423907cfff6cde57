//! The oldest broker that is supported: Apache Kafka 3.9.

use crate::cli::{edit, service};
use crate::harness::Workspace;
use crate::support::unique;

#[test]
fn a_project_is_planned_applied_and_updated_on_kafka_3() {
    let name = unique("three");
    let workspace = Workspace::project(&format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: {name}}}
runtime:
  kafka: {{bootstrap_servers: \"{}\"}}
models:
  - {{name: orders, description: d, topic: {{name: {name}.orders, partitions: 1, replication_factor: 1, config: {{retention.ms: 1000, segment.ms: 5000}}}}}}
  - {{name: audit, description: d, topic: {{name: {name}.audit, partitions: 2, replication_factor: 1}}}}
",
        service("STREAMT_TEST_KAFKA_3")
    ));
    assert_eq!(workspace.run("plan --out plan.json -o json").exits(0).json()["data"]["creates"], 2);
    let applied = workspace.run("apply --plan plan.json -o json").exits(0).json();
    assert_eq!(applied["data"]["created"].as_array().map(Vec::len), Some(2), "{applied}");
    workspace.run("plan --detailed-exitcode").exits(0);
    workspace.run("status --health --consumer-groups").exits(0);

    edit(&workspace, "retention.ms: 1000, segment.ms: 5000", "retention.ms: 2000");
    edit(&workspace, "partitions: 1,", "partitions: 3,");
    let plan = workspace.run("plan -o json").exits(0).json();
    let changes: Vec<&String> = plan["data"]["changes"][0]["changes"].as_object().unwrap().keys().collect();
    assert_eq!(changes, ["partitions", "config.retention.ms", "config.segment.ms"], "{plan}");
    assert_eq!(workspace.run("apply -o json").exits(0).json()["data"]["updated"].as_array().map(Vec::len), Some(1));
    workspace.run("plan --detailed-exitcode").exits(0);

    edit(&workspace, "retention.ms: 2000", "retention.msx: 1");
    let refused = workspace.run("apply -o json").exits(1);
    assert_eq!(refused.errors()[0].0, "E407_DEPLOY_ERROR");
    assert!(refused.stdout.contains("retention.msx"), "{}", refused.stdout);
    let state = workspace.run("state status -o json").exits(0).json();
    assert_eq!(state["data"]["operation_status"]["status"], "clear");
}
