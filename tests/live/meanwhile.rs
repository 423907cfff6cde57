//! What others change between the plan and the mutation, or beside the declaration.

use std::process::Command;

use streamt::actors::Runtime;
use streamt::codes::Code;
use streamt::messages::operation::{Control, OperationEvent};

use crate::cli::{ORDERS, edit, grow_by_hand, service, workspace};
use crate::estate::{Estate, Proxy, failed};

/// The plan was to add partitions; by then the topic has more than declared, and nothing is sent.
#[test]
fn a_topic_that_outgrew_the_plan_is_refused_at_the_mutation() {
    let runtime = Runtime::start().expect("a runtime");
    let estate = Estate::new("outgrown");
    estate.declare(&[("a", "  partitions: 1\n  replication_factor: 1")]);
    estate.apply(&runtime);
    estate.declare(&[("a", "  partitions: 3\n  replication_factor: 1")]);
    let topic = estate.topic("a");
    let (outcome, _) = estate.apply_watched(&runtime, Control::default(), move |event| {
        if let OperationEvent::Began { .. } = event {
            grow_by_hand(&topic, 5);
        }
    });
    assert_eq!(failed(&outcome), Code::E401CannotReducePartitions, "{outcome:#?}");
    assert_eq!(estate.live(&["a"])["a"].partitions, Some(5), "nothing was taken away");
}

/// Compatible when it was planned; another version came first, and the registry's own refusal is what the user is told.
#[test]
fn a_schema_that_became_incompatible_is_refused_in_the_registrys_words() {
    let (workspace, prefix) = workspace("overtaken", ORDERS);
    edit(&workspace, "      format: avro\n", "      format: avro\n      compatibility: BACKWARD\n");
    workspace.run("apply").exits(0);
    let field = "\"type\": \"string\"}";
    edit(&workspace, field, &format!("{field}, {{\"name\": \"note\", \"type\": \"string\", \"default\": \"\"}}"));
    let subject = format!("{prefix}.orders-value");
    let url = format!("{}/subjects/{subject}/versions", service("STREAMT_TEST_REGISTRY"));
    let theirs = r#"{"schema": "{\"type\": \"record\", \"name\": \"Order\", \"fields\": [{\"name\": \"id\", \"type\": \"string\"}, {\"name\": \"note\", \"type\": \"int\", \"default\": 0}]}"}"#;
    let proxy = Proxy::start(move |line| {
        if line.starts_with("POST ") {
            let json = "Content-Type: application/json";
            let done = Command::new("curl").args(["-sf", "-H", json, "-d", theirs, &url]).status().expect("curl");
            assert!(done.success());
        }
    });
    edit(&workspace, &service("STREAMT_TEST_REGISTRY"), &proxy.url);
    let run = workspace.run("apply -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E402_SCHEMA_INCOMPATIBLE", "{}", run.stdout);
    assert!(run.stdout.contains(&format!("schema:{subject}")), "{}", run.stdout);
    assert_eq!(run.json()["data"]["committed"], false, "{}", run.stdout);
}

/// A replication factor is never changed, and the difference is said.
#[test]
fn another_replication_factor_than_declared_is_a_warning_and_no_action() {
    let (workspace, prefix) = workspace("replicas", ORDERS);
    workspace.run("apply").exits(0);
    edit(&workspace, "replication_factor: 1", "replication_factor: 3");
    let plan = workspace.run("plan -o json").exits(0);
    assert!(plan.warning_codes().contains(&"W146_TOPIC_REPLICATION_DIFFERS".to_owned()), "{}", plan.stdout);
    assert!(plan.stdout.contains(&format!("{prefix}.orders")), "{}", plan.stdout);
    assert_eq!(plan.json()["data"]["has_changes"], false, "{}", plan.stdout);
    assert_eq!(workspace.run("plan --detailed-exitcode").exits(0).exit, 0);
}
