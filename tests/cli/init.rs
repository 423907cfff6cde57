//! `init`: what it writes, and what it refuses to touch.

use crate::harness::{Workspace, snapshot};

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn a_new_project_is_written_and_the_next_steps_are_named() {
    let workspace = Workspace::new();
    let run = workspace.run("init --project-dir shop --project-name shop");
    snapshot!(workspace, run, "init_flink");
    assert!(workspace.path("shop/stream_project.yml").is_file());
    assert!(workspace.path("shop/models/.gitkeep").is_file());
}

#[test]
fn a_dry_run_lists_and_writes_nothing() {
    let workspace = Workspace::new();
    let run = workspace.run("init --project-dir shop --dry-run -o json").exits(0);
    assert_eq!(run.json()["data"]["project_name"], "shop");
    assert_eq!(run.json()["data"]["created_files"][0], "stream_project.yml");
    assert!(workspace.snapshot().is_empty());
    assert!(!workspace.path("shop").exists());
}

#[test]
fn an_existing_project_is_refused_before_anything_is_written() {
    let workspace = Workspace::project("# mine\n");
    let before = workspace.snapshot();
    let run = workspace.run("init --project-name shop -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E713_INIT_TARGET_EXISTS");
    assert_eq!(workspace.snapshot(), before);
    workspace.run("init --project-name shop --force").exits(0);
    assert_ne!(workspace.snapshot(), before);
}

#[test]
fn force_replaces_named_files_only_and_never_through_a_link() {
    let workspace = Workspace::new().file("models/mine.yml", "models: []\n").file("elsewhere", "kept");
    std::os::unix::fs::symlink(workspace.path("elsewhere"), workspace.path("stream_project.yml")).unwrap();
    let run = workspace.run("init --project-name shop --force -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E712_INIT_STARTER_FAILED");
    assert_eq!(std::fs::read_to_string(workspace.path("elsewhere")).unwrap(), "kept");
    std::fs::remove_file(workspace.path("stream_project.yml")).unwrap();
    workspace.run("init --project-name shop --force").exits(0);
    assert_eq!(std::fs::read_to_string(workspace.path("models/mine.yml")).unwrap(), "models: []\n");
}

#[test]
fn a_failed_write_takes_back_what_this_run_wrote() {
    let workspace = Workspace::new().file("shop/models", "a file where a directory belongs");
    let before = workspace.snapshot();
    let run = workspace.run("init --project-dir shop -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E712_INIT_STARTER_FAILED");
    assert_eq!(workspace.snapshot(), before);
}

#[test]
fn options_that_exclude_each_other_are_e711() {
    let workspace = Workspace::new();
    let other = format!("--runner-image {DIGEST}");
    for options in [
        "--discover",
        "--discover --kafka localhost:9092",
        "--template nope",
        "--executor kafka_streams",
        "--executor kafka_streams --runner-image streamt:latest",
        "--executor kafka_streams --template flink",
        "--initial-offset latest",
        "--docker-network a --executor flink",
        "--schema-registry http://localhost",
        "--no-schema-registry",
        "--no-schema-registry --template minimal",
        other.as_str(),
        "--project-name a/b",
        "--kafka kafka://localhost:9092",
        "--kafka user:pw@localhost:9092",
    ] {
        let run = workspace.run(&format!("init -p shop -o json {options}")).exits(1);
        assert_eq!(run.errors(), [("E711_INIT_OPTIONS_INVALID".to_owned(), String::new())], "{options}");
        assert!(workspace.snapshot().is_empty(), "{options}");
    }
}

#[test]
fn the_runner_starter_says_what_it_holds() {
    let workspace = Workspace::new();
    let line = format!("init -p shop --executor kafka_streams --runner-image {DIGEST} --dry-run -o json");
    snapshot!(workspace, workspace.run(&line), "init_kafka_streams_json");
}

/// KSC-003: a managed input, a transformation that compiles to a plan, and an application that is only declared.
#[test]
fn the_runner_starter_is_strictly_valid_and_compiles_to_one_job() {
    let workspace = Workspace::new();
    workspace.run(&format!("init -p shop --executor kafka_streams --runner-image {DIGEST}")).exits(0);
    workspace.run("validate --project-dir shop --strict").exits(0);
    let files = workspace.run("compile --project-dir shop -o json").exits(0).json();
    assert_eq!(files["data"]["warnings"], serde_json::Value::Null, "{files}");
    let job = std::fs::read_to_string(workspace.path("shop/generated/kafka_streams/eligible_orders.json")).unwrap();
    let job: serde_json::Value = serde_json::from_str(&job).unwrap();
    assert_eq!(job["image"], DIGEST);
    assert_eq!(job["plan"]["input_topic"], "shop.raw.orders.v1");
    assert_eq!(job["plan"]["projection"][1], serde_json::json!({"column": "amount", "as": "amount"}));
    let exposures = workspace.run("list exposures --project-dir shop -o json").exits(0).json();
    assert_eq!(exposures["data"]["items"][0]["name"], "fraud_app", "{exposures}");
    let refused = workspace.run("plan --project-dir shop -o json").exits(1);
    assert_eq!(refused.errors()[0].0, "E221_KIND_NOT_DEPLOYABLE");
    assert!(refused.stdout.contains("kafka_streams_job 'eligible_orders'"), "{}", refused.stdout);
}

#[test]
fn every_template_is_listed_and_can_be_started_from() {
    let workspace = Workspace::new();
    let list = workspace.run("init --list-templates -o json").exits(0).json();
    for row in list["data"]["templates"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let image = if name == "kafka-streams" { format!("--runner-image {DIGEST}") } else { String::new() };
        let run = workspace.run(&format!("init -p {name} --template {name} {image} -o json")).exits(0);
        assert_eq!(run.json()["data"]["created_files"], row["files"], "{name}");
    }
}
