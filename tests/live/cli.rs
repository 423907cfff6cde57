//! The life of a project on a real broker and registry, as its user types it.

use std::time::{Duration, Instant};

use crate::harness::Workspace;

pub fn service(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run `make test`, or `make services` and export what it prints"))
}

/// A project with names of its own on the shared services.
pub fn workspace(test: &str, models: &str) -> (Workspace, String) {
    let prefix = format!("cli-{test}-{}", uuid::Uuid::new_v4().simple());
    let yaml = format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: {prefix}}}
runtime:
  kafka: {{bootstrap_servers: \"{}\"}}
  schema_registry: {{url: \"{}\"}}
models:
{}",
        service("STREAMT_TEST_KAFKA"),
        service("STREAMT_TEST_REGISTRY"),
        models.replace("PREFIX", &prefix)
    );
    (Workspace::project(&yaml), prefix)
}

pub const ORDERS: &str = "  - name: orders
    description: Orders
    topic: {name: PREFIX.orders, partitions: 2, replication_factor: 1, config: {retention.ms: 86400000}}
    schema:
      subject: PREFIX.orders-value
      format: avro
      definition: '{\"type\": \"record\", \"name\": \"Order\", \"fields\": [{\"name\": \"id\", \"type\": \"string\"}]}'
";

pub fn edit(workspace: &Workspace, from: &str, to: &str) {
    let text = std::fs::read_to_string(workspace.path("stream_project.yml")).unwrap();
    assert!(text.contains(from), "{from}");
    workspace.write("stream_project.yml", &text.replace(from, to));
}

/// SAF-001 SAF-028 LIM-020
#[test]
fn a_project_is_applied_twice_drifts_and_is_repaired() {
    let (workspace, prefix) = workspace("life", ORDERS);
    let topic = format!("topic:{prefix}.orders");
    assert_eq!(workspace.run("plan --detailed-exitcode").exits(2).exit, 2);
    let dry = workspace.run("apply --dry-run -o json").exits(0).json();
    assert_eq!(dry["data"]["creates"], 2);
    let first = workspace.run("apply -o json").exits(0).json();
    assert!(first["data"]["created"].as_array().unwrap().contains(&topic.clone().into()), "{first}");
    assert_eq!((&first["data"]["committed"], &first["data"]["state_serial"]), (&true.into(), &1.into()));
    let second = workspace.run("plan --detailed-exitcode").exits(0);
    assert!(second.stdout.contains("No changes detected."), "{}", second.stdout);
    let again = workspace.run("apply -o json").exits(0).json();
    assert_eq!(again["data"]["created"], serde_json::json!([]));
    assert_eq!(again["data"]["state_serial"], 1);
    workspace.run("status --health").exits(0);

    // The live value moves away from the declaration.
    edit(&workspace, "retention.ms: 86400000", "retention.ms: 604800000");
    workspace.run("apply").exits(0);
    edit(&workspace, "retention.ms: 604800000", "retention.ms: 86400000");
    let drift = workspace.run("plan -o json").exits(0).json();
    let change = &drift["data"]["changes"][0];
    assert_eq!(change["changes"]["config.retention.ms"], serde_json::json!({"from": "604800000", "to": "86400000"}));
    let status = workspace.run("status --health -o json").exits(1).json();
    assert_eq!(status["data"]["topics"][0]["status"], "DRIFT");
    assert_eq!(workspace.run("diff --detailed-exitcode").exits(2).exit, 2);
    edit(&workspace, "partitions: 2", "partitions: 1");
    for flags in ["", "--force", "--dry-run", "--confirm"] {
        let blocked = workspace.run(&format!("apply {flags} -o json")).exits(1);
        assert_eq!(blocked.errors()[0].0, "E417_SAFETY_BLOCKED", "{flags}");
        assert_eq!(blocked.json()["data"]["safety_blockers"][0]["code"], "kafka_partition_reduction");
    }
    assert_eq!(workspace.run("plan --detailed-exitcode").exits(3).exit, 3);
}

#[test]
fn a_reviewed_plan_is_applied_once_and_refused_when_edited_or_stale() {
    let (workspace, _) = workspace("review", ORDERS);
    workspace.run("plan --out plan.json").exits(0);
    let text = std::fs::read_to_string(workspace.path("plan.json")).unwrap();
    workspace.write("edited.json", &text.replace("\"creates\": 2", "\"creates\": 3"));
    assert_eq!(workspace.run("apply --plan edited.json -o json").exits(1).errors()[0].0, "E408_PLAN_FILE_INVALID");
    edit(&workspace, "partitions: 2", "partitions: 3");
    let stale = workspace.run("apply --plan plan.json -o json").exits(1);
    assert_eq!(stale.errors()[0].0, "E409_PLAN_STALE");
    assert_eq!(stale.json()["data"]["stale"]["field"], "manifest_checksum");
    edit(&workspace, "partitions: 3", "partitions: 2");
    let applied = workspace.run("apply --plan plan.json -o json").exits(0).json();
    assert_eq!(applied["data"]["committed"], true);
    assert_eq!(workspace.run("apply --plan plan.json -o json").exits(1).errors()[0].0, "E409_PLAN_STALE");
}

#[test]
fn what_the_broker_refuses_reaches_the_user_and_leaves_nothing() {
    let (workspace, prefix) = workspace("refuse", ORDERS);
    for (from, to, told) in [
        ("retention.ms: 86400000", "retention.msx: 1", "retention.msx"),
        ("replication_factor: 1", "replication_factor: 99", "eplication factor"),
    ] {
        edit(&workspace, from, to);
        for command in ["apply", "apply --dry-run"] {
            let run = workspace.run(&format!("{command} -o json")).exits(1);
            assert_eq!(run.errors()[0].0, "E407_DEPLOY_ERROR", "{command}: {}", run.stdout);
            assert!(run.stdout.contains(told), "{command}: {}", run.stdout);
        }
        let durable = |name: &str| workspace.path(".streamt/state").join(name).exists();
        assert!(!durable("default.control.jsonl") && !durable("default.json"), "it was asked before any intent");
        let state = workspace.run("state status -o json").exits(0).json();
        assert_eq!(state["data"]["operation_status"]["status"], "clear", "{prefix}");
        edit(&workspace, to, from);
    }
}

/// SAF-030 LIM-024: the marker of a killed apply blocks the next one, and the state stays readable.
#[test]
fn a_killed_apply_blocks_the_next_one() {
    let models: String = (0..120)
        .map(|i| {
            format!(
                "  - {{name: m{i}, description: d, topic: {{name: PREFIX.t{i}, partitions: 1, replication_factor: 1}}, schema: {{subject: PREFIX.t{i}-value, format: avro, definition: '\"string\"'}}}}\n"
            )
        })
        .collect();
    let (workspace, _) = workspace("kill", &models);
    let mut child = workspace
        .command("apply")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    loop {
        let status = workspace.run("state status -o json");
        if status.exit == 0 && status.json()["data"]["operation_status"]["status"] == "in_progress" {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{}", status.stdout);
        assert!(child.try_wait().unwrap().is_none(), "the apply ended before it could be killed");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for command in ["apply", "plan"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E419_STATE_RECOVERY_REQUIRED", "{command}");
    }
    let state = workspace.run("state status -o json").exits(0).json();
    assert!(state["data"]["operation_status"]["operation_id"].is_string(), "{state}");
    assert!(workspace.run("state status").exits(0).stdout.contains("did not finish"));
}

struct Unguarded;

impl streamt::providers::MutationGuard for Unguarded {
    fn check(&self) -> Result<(), streamt::providers::Lost> {
        Ok(())
    }

    async fn lost(&self) -> streamt::providers::Lost {
        std::future::pending().await
    }
}

/// Adds partitions to a topic as an administrator would, behind streamt's back.
pub fn grow_by_hand(topic: &str, partitions: u32) {
    use streamt::compiler::artifact::{OwnerType, Ownership, TopicArtifact};
    use streamt::project::model::OwnershipMode;
    use streamt::providers::kafka::{ConfigRead, TopicUpdate};
    crate::estate::with_kafka(async |kafka, ctx| {
        let names = [topic.to_owned()];
        let current =
            kafka.observe_topics(ctx, &names, ConfigRead::Strict).await.expect("read").remove(topic).expect("there");
        let ownership = Ownership {
            mode: OwnershipMode::Managed,
            project: "other".to_owned(),
            owner_type: OwnerType::Model,
            name: "other".to_owned(),
        };
        let desired = TopicArtifact {
            name: topic.to_owned(),
            partitions,
            replication_factor: 1,
            config: current.config.clone(),
            ownership,
        };
        kafka.update_topic(ctx, &Unguarded, &TopicUpdate { current, desired }).await.expect("grown");
    });
}

#[test]
fn a_topic_changed_by_hand_is_drift_in_plan_status_and_diff() {
    let (workspace, prefix) = workspace("hand", ORDERS);
    workspace.run("apply").exits(0);
    grow_by_hand(&format!("{prefix}.orders"), 4);
    let status = workspace.run("status --health -o json").exits(1).json();
    assert_eq!(
        status["data"]["topics"][0]["drifts"],
        serde_json::json!([{"field": "partitions", "actual": 4, "desired": 2}])
    );
    let shown = workspace.run("show model orders --diff -o json").exits(0).json();
    assert_eq!(shown["data"]["diff"]["status"], "drift", "{shown}");
    let plan = workspace.run("plan").exits(0).stdout;
    assert!(plan.contains("drift]") && plan.contains("blocked: kafka_partition_reduction"), "{plan}");
    assert_eq!(workspace.run("diff -o json").exits(0).json()["data"]["resources"][0]["status"], "drift");
    assert_eq!(workspace.run("apply -o json").exits(1).errors()[0].0, "E417_SAFETY_BLOCKED");
}

#[test]
fn what_exists_and_is_not_recorded_is_never_taken_over() {
    let (workspace, _) = workspace("foreign", ORDERS);
    workspace.run("apply").exits(0);
    std::fs::remove_dir_all(workspace.path(".streamt")).unwrap();
    let run = workspace.run("apply -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E410_OWNERSHIP_REQUIRED");
    let blocking = run.json()["data"]["blocking_ownership_requirements"].clone();
    assert_eq!(blocking[0]["reason"], "requires_adoption", "{blocking}");
    assert_eq!(workspace.run("plan --detailed-exitcode").exits(3).exit, 3);
}

#[test]
fn an_incompatible_schema_is_blocked() {
    let (workspace, _) = workspace("schema", ORDERS);
    edit(&workspace, "      format: avro\n", "      format: avro\n      compatibility: BACKWARD\n");
    workspace.run("apply").exits(0);
    edit(&workspace, "\"type\": \"string\"}]", "\"type\": \"int\"}]");
    let run = workspace.run("apply -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E417_SAFETY_BLOCKED");
    assert_eq!(run.json()["data"]["safety_blockers"][0]["code"], "schema_incompatible");
}

/// A registry answers the register of an older version with that version, and its latest stays: no apply may call that done.
#[test]
fn a_schema_that_went_back_to_an_older_version_is_refused_before_anything_is_sent() {
    let (workspace, _) = workspace("back", ORDERS);
    workspace.run("apply").exits(0);
    let field = "\"type\": \"string\"}";
    let added = format!("{field}, {{\"name\": \"note\", \"type\": \"string\", \"default\": \"\"}}");
    edit(&workspace, field, &added);
    workspace.run("apply").exits(0);
    edit(&workspace, &added, field);
    for command in ["plan", "apply"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E213_SCHEMA_REGISTRY_RESOLUTION_FAILED");
        assert!(run.stdout.contains("as its older version 1"), "{}", run.stdout);
    }
    edit(&workspace, field, &added);
    workspace.run("plan --detailed-exitcode").exits(0);
}

/// A registry that answers every request with the same bytes.
pub fn registry(reply: Vec<u8>) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&reply);
        }
    });
    url
}

/// SEC-008
#[test]
fn a_registry_that_misbehaves_is_told_and_nothing_is_written() {
    let big = format!("[\"{}\"]", "a".repeat(5 * 1024 * 1024));
    let reply = |head: &str, body: &str| {
        format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes()
    };
    for (reply, code, told) in [
        (reply("302 Found\r\nLocation: http://127.0.0.1:9/", ""), "E407_DEPLOY_ERROR", "redirect"),
        (reply("200 OK", &big), "E407_DEPLOY_ERROR", "larger than allowed"),
        (reply("401 Unauthorized", "{\"error_code\":40101,\"message\":\"go away\"}"), "E404_AUTH_FAILED", "go away"),
    ] {
        let (workspace, _) = workspace("registry", ORDERS);
        edit(&workspace, &service("STREAMT_TEST_REGISTRY"), &registry(reply));
        for command in ["plan --out plan.json", "apply"] {
            let run = workspace.run(&format!("{command} -o json")).exits(1);
            assert_eq!(run.errors()[0].0, code, "{command}: {}", run.stdout);
            assert!(run.stdout.contains(told), "{command}: {}", run.stdout);
            assert!(!workspace.path("plan.json").exists());
        }
        let state = workspace.run("state status -o json").exits(0).json();
        assert_eq!(
            (&state["data"]["state_status"], &state["data"]["operation_status"]["status"]),
            (&"absent".into(), &"clear".into())
        );
    }
}

#[test]
fn a_state_directory_that_cannot_be_used_stops_apply_before_any_change() {
    let (workspace, prefix) = workspace("statedir", ORDERS);
    workspace.write(".streamt", "a file where a directory belongs");
    let run = workspace.run("apply -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE");
    std::fs::remove_file(workspace.path(".streamt")).unwrap();
    let plan = workspace.run("plan -o json").exits(0).json();
    assert_eq!(plan["data"]["creates"], 2, "{prefix}: nothing had been created");
}

/// Four records in partition 0 of a topic, of which a group has read one.
fn consumed(topic: &str, group: &str) {
    use krafka::admin::{AlterConsumerGroupOffsetsOptions, TopicPartition};
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let raw = krafka::Kafka::builder(service("STREAMT_TEST_KAFKA")).connect().await.expect("Kafka answers");
        let producer = raw.producer().build().await.expect("a producer");
        for _ in 0..4 {
            let _ = producer.send(krafka::Record::new(topic, "value").partition(0)).await.expect("sent");
        }
        let offsets = [(TopicPartition::new(topic.to_owned(), 0), 1)];
        raw.admin()
            .alter_consumer_group_offsets(group, offsets, AlterConsumerGroupOffsetsOptions::default())
            .await
            .expect("committed");
    });
}

#[test]
fn status_counts_records_and_shows_how_far_each_group_is() {
    let (workspace, prefix) = workspace("lag", ORDERS);
    let (topic, group) = (format!("{prefix}.orders"), format!("{prefix}-billing"));
    let before = workspace.run("status --lag -o json").exits(0).json();
    assert_eq!(before["data"]["topics"][0]["message_count"], serde_json::Value::Null);
    workspace.run("apply").exits(0);
    consumed(&topic, &group);
    let plain = workspace.run("status -o json").exits(0).json();
    assert!(plain["data"]["topics"][0].get("message_count").is_none(), "{plain}");
    let status = workspace.run("status --lag --consumer-groups -o json").exits(0).json();
    assert_eq!(status["data"]["topics"][0]["message_count"], 4, "{status}");
    let own: Vec<_> = status["data"]["consumer_groups"].as_array().unwrap().iter().collect();
    assert_eq!(own.len(), 1, "a group without offsets on these topics is left out: {status}");
    let partitions = serde_json::json!([{"partition": 0, "current_offset": 1, "end_offset": 4, "lag": 3}]);
    assert_eq!(
        *own[0],
        serde_json::json!({"group_id": group, "topics": [{"topic": topic, "total_lag": 3, "partitions": partitions}]})
    );
    let text = workspace.run("status --lag --consumer-groups").exits(0).stdout;
    let row = |start: &str| text.lines().rfind(|line| line.starts_with(start)).map(str::to_owned).unwrap();
    let words = |line: String| line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(row(&topic)), ["0", "1", "4", "3"], "{text}");
    assert!(text.contains("MESSAGES") && text.contains(&format!("Consumer group {group}\n")), "{text}");
}
