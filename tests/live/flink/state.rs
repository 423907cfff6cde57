//! What a job keeps between records: where, for how long, and what becomes of it when that place is missing.

use std::time::Duration;

use serde_json::{Value, json};

use super::yard::Yard;
use crate::support::eventually;

/// A model that counts the records of each key.
fn counting(settings: &str) -> Yard {
    let yard = Yard::new();
    let upsert = format!("primary_key: [id]\n    flink: {{changelog_mode: upsert, {settings}}}");
    let yaml = yard.yaml().replace("flink: {checkpoint_interval_ms: 1000}", &upsert);
    let (head, query) = yaml.split_once("      SELECT id").expect("a query");
    assert!(head.contains(settings) && query.contains("raw"));
    yard.write(&format!("{head}      SELECT id, COUNT(*) AS seen FROM {{{{ source(\"raw\") }}}} GROUP BY id\n"));
    yard
}

fn put(yard: &Yard, id: &str) {
    yard.put(&format!(r#"{{"id": "{id}", "amount": 1}}"#));
}

/// Key and count of each record, in their order.
fn seen(yard: &Yard, wanted: usize) -> Vec<(Value, Value)> {
    let counted = |text: &String| {
        let record: Value = serde_json::from_str(text).expect("JSON");
        (record["id"].clone(), record["seen"].clone())
    };
    yard.records(wanted).iter().map(counted).collect()
}

/// A key that nobody used for its time is counted anew.
fn forgets(yard: &Yard) {
    // Both are there before the job is, so that it reads them at once.
    put(yard, "a");
    put(yard, "a");
    yard.run("apply -o json").exits(0);
    let counted = |n: u32| (json!("a"), json!(n));
    assert_eq!(seen(yard, 2), [counted(1), counted(2)]);
    std::thread::sleep(Duration::from_secs(5));
    put(yard, "a");
    assert_eq!(seen(yard, 3), [counted(1), counted(2), counted(1)]);
}

fn backend(yard: &Yard, job: &Value) -> Value {
    let path = format!("/jobs/{}/checkpoints/config", job["jid"].as_str().expect("an id"));
    let (status, config) = yard.place.ask("GET", &path);
    assert_eq!(status, 200, "{config}");
    config["state_backend"].clone()
}

#[test]
fn state_is_forgotten_after_its_time() {
    let yard = counting("state_ttl_ms: 3000");
    forgets(&yard);
    let job = yard.place.running(&yard.job());
    assert_eq!(backend(&yard, &job), "HashMapStateBackend");
}

/// By what the JobManager was told, and by what RocksDB itself says in the TaskManager: how many keys it holds, and a block cache of
/// the declared size and of no other. Checkpoints of it complete.
#[test]
fn a_job_keeps_its_state_in_rocksdb_when_that_is_declared() {
    let yard = counting(
        "state_ttl_ms: 3000, checkpoint_interval_ms: 500, state_backend: rocksdb, checkpoint: {incremental: true}, \
         rocksdb: {block_cache_size_mb: 5, write_buffer_size_mb: 3, predefined_options: FLASH_SSD_OPTIMIZED}",
    );
    forgets(&yard);
    let job = yard.place.running(&yard.job());
    assert_eq!(backend(&yard, &job), "EmbeddedRocksDBStateBackend");
    let capacities = eventually(
        || yard.place.metrics(&job, "rocksdb_block-cache-capacity"),
        |found| found.iter().any(|(_, value)| value == "5242880"),
    );
    assert!(!capacities.is_empty() && capacities.iter().all(|(_, value)| value == "5242880"), "{capacities:?}");
    put(&yard, "b");
    let holds =
        |found: &Vec<(String, String)>| found.iter().any(|(_, value)| value.parse::<u64>().is_ok_and(|keys| keys > 0));
    let keys = eventually(|| yard.place.metrics(&job, "rocksdb_estimate-num-keys"), holds);
    assert!(holds(&keys), "{keys:?}");
    let path = format!("/jobs/{}/checkpoints", job["jid"].as_str().expect("an id"));
    let completed = |checkpoints: &Value| checkpoints["counts"]["completed"].as_u64().is_some_and(|count| count > 0);
    let checkpoints = eventually(|| yard.place.ask("GET", &path).1, completed);
    // One that was asked for before all tasks ran counts as failed and is in no history.
    assert!(completed(&checkpoints) && checkpoints["latest"]["failed"].is_null(), "{checkpoints}");
}

/// The job is taken and fails by the name of what is missing.
#[test]
fn a_state_backend_that_the_cluster_lacks_is_told() {
    let yard = Yard::new();
    let settings = "flink: {state_backend: com.example.NoSuchBackendFactory, restart_strategy: {type: none}}";
    yard.write(&yard.yaml().replace("flink: {checkpoint_interval_ms: 1000}", settings));
    yard.run("apply -o json").exits(0);
    yard.place.job_when(&yard.job(), |job| job["state"] == "FAILED");
    let status = yard.told_why();
    assert!(status.stdout.contains("com.example.NoSuchBackendFactory"), "{}", status.stdout);
}
