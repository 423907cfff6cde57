//! `streamt test` against a real broker and registry: committed records only, Avro through the registry, several partitions.

use krafka::{Kafka, Record};
use serde_json::{Value, json};
use streamt::compiler::artifact::SchemaType;
use streamt::project::model::SchemaReference;

use crate::harness::{Run, Workspace};
use crate::registry::{artifact, record, register, registry};
use crate::support::{Open, clean_up, ctx, kafka, topic, unique, variable};

async fn made(name: &str, partitions: u32) -> Kafka {
    let created = kafka().await.create_topics(&ctx(), &Open, &[topic(name, partitions, &[])]).await;
    assert!(created.iter().all(|(_, outcome)| outcome.is_ok()), "{created:?}");
    Kafka::builder(variable("STREAMT_TEST_KAFKA")).connect().await.expect("Kafka answers")
}

async fn write(raw: &Kafka, records: impl IntoIterator<Item = Record>) {
    let producer = raw.producer().build().await.expect("a producer");
    for record in records {
        let _ = producer.send(record).await.expect("sent");
    }
}

fn workspace(topic: &str, assertions: &str, more: &str) -> Workspace {
    Workspace::project(&format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: shop}}
runtime:
  kafka: {{bootstrap_servers: \"{}\"}}
  schema_registry: {{url: \"{}\"}}
sources:
  - name: orders
    topic: {topic}
    columns:
      - {{name: id, type: STRING}}
      - {{name: total, type: INT}}
      - {{name: mail, type: STRING, classification: sensitive}}
tests:
  - name: orders_are_good
    model: orders
    type: sample
    assertions: [{assertions}]
{more}",
        variable("STREAMT_TEST_KAFKA"),
        variable("STREAMT_TEST_REGISTRY")
    ))
}

fn run(workspace: &Workspace, exit: i32) -> (Run, Value) {
    let run = workspace.run("test -o json").exits(exit);
    assert!(!run.stdout.contains("sentinel") && !run.stderr.contains("sentinel"), "{}", run.stdout);
    let result = run.json()["data"]["results"][0].clone();
    (run, result)
}

const NOT_NULL: &str = "{not_null: {columns: [id]}}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sample_takes_from_every_partition_and_judges_each_record() {
    let name = unique("sample");
    let raw = made(&name, 3).await;
    let order = |partition: i32, id: i32| {
        let value = json!({"id": id.to_string(), "total": id, "mail": "sentinel@example.test"}).to_string();
        Record::new(&name, value).partition(partition)
    };
    write(&raw, (0..40).map(|id| order(0, id)).chain([order(2, 40), order(2, 41)])).await;

    let assertions = format!("{NOT_NULL}, {{range: {{column: total, min: 0, max: 41}}}}, {{unique_key: {{key: id}}}}");
    let (all, result) = run(&workspace(&name, &assertions, ""), 0);
    assert_eq!((&result["status"], &result["sample_size"]), (&"passed".into(), &42.into()), "{result}");
    assert_eq!(all.warning_codes(), Vec::<String>::new());

    let few = workspace(&name, "{accepted_values: {column: id, values: []}}", "    sample_size: 5\n");
    let (failed, result) = run(&few, 1);
    assert_eq!(failed.errors()[0].0, "E906_TESTS_FAILED");
    let told = result["errors"][0].as_str().expect("a text");
    assert!(told.contains("in 5 of 5 records") && told.contains("'40' (partition 2 offset 0)"), "{told}");

    let (_, hidden) = run(&workspace(&name, "{accepted_values: {column: mail, values: []}}", ""), 1);
    assert!(hidden["errors"][0].as_str().expect("a text").contains("<redacted> (partition 0 offset 0)"), "{hidden}");
    let tolerant =
        workspace(&name, "{accepted_values: {column: id, values: []}}", "    on_failure: {severity: warning}\n");
    assert_eq!(run(&tolerant, 0).1["status"], "passed");
    clean_up([name]).await;
}

/// What a transaction took back, and what one has not finished, nobody has read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_committed_records_are_judged_and_markers_end_no_reading_late() {
    let name = unique("committed");
    let raw = made(&name, 1).await;
    let send = async |transactional: &krafka::producer::TransactionalProducer, value: &str| {
        let _ = transactional.send(Record::new(&name, value.to_owned()).partition(0)).await.expect("sent");
    };
    let producer = raw.producer().build_transactional(unique("committed")).await.expect("a producer");
    producer.begin().expect("begun");
    send(&producer, r#"{"id": "a"}"#).await;
    send(&producer, r#"{"id": "b"}"#).await;
    producer.commit().await.expect("committed");
    producer.begin().expect("begun");
    send(&producer, "sentinel: no JSON").await;
    producer.abort().await.expect("aborted");

    let good = workspace(&name, NOT_NULL, "");
    let (ended, result) = run(&good, 0);
    assert_eq!((&result["status"], &result["sample_size"]), (&"passed".into(), &2.into()), "{result}");
    assert_eq!(ended.warning_codes(), Vec::<String>::new(), "the marker at the end was waited for");

    let open = raw.producer().build_transactional(unique("open")).await.expect("a producer");
    open.begin().expect("begun");
    send(&open, "sentinel: no JSON either").await;
    write(&raw, [Record::new(&name, r#"{"id": null}"#).partition(0)]).await;
    let (_, result) = run(&good, 0);
    assert_eq!(result["sample_size"], 2, "nothing behind an open transaction is stable: {result}");
    open.abort().await.expect("aborted");
    let (_, result) = run(&good, 1);
    assert_eq!(
        result["errors"][0], "not_null: column 'id' is null in 1 of 3 records: partition 0 offset 6",
        "{result}"
    );
    clean_up([name]).await;
}

/// A value behind a registry's header.
fn framed(id: u32, payload: &[u8]) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), payload].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_decoded_with_the_schema_of_their_writer() {
    let (name, money, order, plain) = (unique("avro"), unique("money"), unique("order"), unique("json"));
    let raw = made(&name, 1).await;
    let registry = registry();
    let amount = json!({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2});
    let money_record = record("Money", json!([{"name": "amount", "type": amount}]));
    register(&registry, &artifact(&money, SchemaType::Avro, money_record)).await.expect("registered");
    let fields = json!([
        {"name": "id", "type": ["null", "string"]}, {"name": "total", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": amount}, {"name": "tax", "type": "Money"},
    ]);
    let mut referring = artifact(&order, SchemaType::Avro, record("Order", fields));
    referring.references = vec![SchemaReference { name: "Money".to_owned(), subject: money.clone(), version: 1 }];
    let avro = register(&registry, &referring).await.expect("registered").id;
    let object = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let schema = register(&registry, &artifact(&plain, SchemaType::Json, object)).await.expect("registered").id;

    // id "a"; total 7; at 1970-01-01; price 12.34; tax 0.05.
    let good = framed(avro, &[2, 2, b'a', 14, 0, 4, 0x04, 0xD2, 2, 5]);
    let json = framed(schema, br#"{"id": "b", "total": 1, "at": "2024-01-01T00:00:00Z", "price": 12.34}"#);
    write(&raw, [good, json].map(|value| Record::new(&name, value).partition(0))).await;
    let assertions = format!(
        "{NOT_NULL}, {{accepted_types: {{types: {{id: string, total: bigint, at: timestamp, price: number}}}}}}, \
         {{range: {{column: price, min: 12.34, max: 12.34}}}}"
    );
    let judged = workspace(&name, &assertions, "");
    let (_, result) = run(&judged, 0);
    assert_eq!((&result["status"], &result["sample_size"]), (&"passed".into(), &2.into()), "{result}");

    let no_id = framed(avro, &[0, 14, 0, 4, 0x04, 0xD2, 2, 5]);
    write(&raw, [Record::new(&name, no_id).partition(0)]).await;
    let (_, result) = run(&judged, 1);
    assert_eq!(result["errors"], json!(["not_null: column 'id' is null in 1 of 3 records: partition 0 offset 2"]));

    let torn = framed(avro, &[2, 20, b's']);
    let unknown = framed(u32::MAX - 7, b"sentinel");
    write(&raw, [torn, unknown].map(|value| Record::new(&name, value).partition(0))).await;
    let (_, result) = run(&judged, 1);
    assert_eq!(result["status"], "error");
    let told = result["message"].as_str().expect("a text");
    assert!(told.starts_with("2 of 5 records cannot be decoded: partition 0 offset 3: it ends too early"), "{told}");
    assert!(told.contains("partition 0 offset 4: its schema 4294967288 cannot be read"), "{told}");
    clean_up([name]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_topic_fails_and_one_that_is_not_there_is_an_error() {
    let (empty, absent) = (unique("empty"), unique("absent"));
    made(&empty, 2).await;
    let (_, result) = run(&workspace(&empty, NOT_NULL, ""), 1);
    assert_eq!((&result["status"], &result["message"]), (&"failed".into(), &"no messages found".into()));
    let (_, result) = run(&workspace(&absent, NOT_NULL, ""), 1);
    assert_eq!(result["status"], "error");
    assert!(result["message"].as_str().expect("a text").contains("does not exist"), "{result}");
    clean_up([empty]).await;
}

/// What was read is judged, and the command says that it is not all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sample_that_is_too_large_is_cut_short_and_says_so() {
    let name = unique("large");
    let raw = made(&name, 1).await;
    let value = format!("{{\"id\": \"a\", \"pad\": \"{}\"}}", "x".repeat(1_000_000));
    write(&raw, (0..70).map(|_| Record::new(&name, value.clone()).partition(0))).await;
    let (cut, result) = run(&workspace(&name, NOT_NULL, ""), 0);
    assert_eq!(result["status"], "passed", "{result}");
    let read = result["sample_size"].as_u64().expect("a count");
    assert!((67..70).contains(&read), "{read}");
    assert_eq!(cut.warning_codes(), ["W148_SAMPLE_SHORT"]);
    clean_up([name]).await;
}
