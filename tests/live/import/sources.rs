//! External sources.

use serde_json::{Value, json};
use streamt::compiler::artifact::SchemaType;

use crate::adoption::ground::{create_subject, create_topic, live, stored};
use crate::estate::service;
use crate::faults::{Fault, Order, Proxy, nth};
use crate::interruption::world::{Store, World};

fn named(world: &World, topic: &str) -> String {
    format!("{}_{topic}", world.prefix).replace(['-', '.'], "_")
}

fn row<'a>(data: &'a Value, topic: &str) -> &'a Value {
    data["resources"]
        .as_array()
        .expect("rows")
        .iter()
        .find(|row| row["topic"] == topic)
        .unwrap_or_else(|| panic!("{topic}: {data:#}"))
}

/// A topic for each form of schema, and two without.
fn ground(stem: &str) -> World {
    let world = World::new(stem, Store::Local);
    let name = |topic: &str| format!("{}.{topic}", world.prefix);
    for topic in ["avro", "json", "proto", "plain", "odd"] {
        create_topic(&name(topic), 2, &[]);
    }
    let record = json!({"type": "record", "name": "R", "fields": [
        {"name": "id", "type": "string"}, {"name": "amount", "type": ["null", "double"], "default": null},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]});
    create_subject(&format!("{}-value", name("avro")), SchemaType::Avro, record);
    let object = json!({"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}, "required": ["id"]});
    create_subject(&format!("{}-value", name("json")), SchemaType::Json, object);
    let proto = Value::from("syntax = \"proto3\";\npackage shop;\n\nmessage Order {\n  string id = 1;\n}\n");
    create_subject(&format!("{}-value", name("proto")), SchemaType::Protobuf, proto);
    create_subject(&format!("{}-value", name("odd")), SchemaType::Avro, Value::from("string"));
    world.settle();
    world.declare("  []\n");
    world
}

/// EXP-007, EXP-008, LIM-019, ADO-030, ADO-031, ADO-032, ADO-033, ADO-036, ADO-038, ADO-039, ADO-040, ADO-041
#[test]
fn existing_topics_become_external_sources_and_nothing_else_is_written() {
    let world = ground("import");
    let before = live(&world);
    let include = format!("--include {}.*", world.prefix);
    let preview = world.data(&format!("import {include} --dry-run"));
    assert_eq!((&preview["written"], &preview["imported_count"]), (&json!(false), &json!(5)));
    assert!(!world.workspace.path("sources").exists(), "a dry run writes nothing");
    let printed = world.workspace.run(&format!("import {include} --print")).exits(0).stdout;
    assert!(!world.workspace.path("sources").exists());

    let data = world.data(&format!("import {include}"));
    let text = std::fs::read_to_string(world.workspace.path("sources/imported.kafka.yml")).expect("a file");
    assert_eq!(text, printed, "what is printed is what is written");
    assert_eq!(data["created_files"], json!(["sources/imported.kafka.yml"]));
    assert_eq!(
        (&data["backend"], &data["environment"], &data["written"], &data["discovered_count"], &data["skipped_count"]),
        (&json!("kafka"), &json!("default"), &json!(true), &json!(5), &json!(0))
    );
    assert_eq!(data["discovery"]["access"], "read_only");
    assert_eq!(data["discovery"]["schema_enrichment"], "enabled");
    let topic = |name: &str| format!("{}.{name}", world.prefix);
    let source = |name: &str| {
        let sources = data["sources"].as_array().expect("sources");
        sources.iter().find(|source| source["topic"] == topic(name).as_str()).expect("a source").clone()
    };
    assert!(
        data["sources"].as_array().expect("sources").iter().all(|source| source["ownership"]["mode"] == "external")
    );
    assert_eq!(
        source("avro"),
        json!({
            "name": named(&world, "avro"), "topic": topic("avro"), "ownership": {"mode": "external"},
            "schema": {"registry": "confluent", "subject": format!("{}-value", topic("avro")), "version": 1, "format": "avro"},
            "columns": [
                {"name": "id", "type": "STRING"}, {"name": "amount", "type": "DOUBLE"}, {"name": "at", "type": "TIMESTAMP(3)"},
            ],
        })
    );
    assert_eq!(
        source("json")["columns"],
        json!([{"name": "id", "type": "INT", "required": true}, {"name": "note", "type": "STRING"}])
    );
    assert_eq!(
        (source("proto")["schema"]["format"].clone(), source("proto").get("columns")),
        (json!("protobuf"), None)
    );
    assert_eq!(source("plain").get("schema"), None);
    let avro = row(&data, &topic("avro"));
    assert_eq!(
        (&avro["partitions"], &avro["replication_factor"], &avro["disposition"]),
        (&json!(2), &json!(1), &json!("imported"))
    );
    assert_eq!(
        avro["provenance"],
        json!({"topic": "kafka_metadata", "schema": "schema_registry", "columns": "inferred_avro"})
    );
    assert_eq!(
        avro["completeness"],
        json!({"schema_lookup": "resolved", "columns": "inferred_unverified", "application_logic": "unavailable"})
    );
    assert_eq!(row(&data, &topic("json"))["provenance"]["columns"], "inferred_json_schema");
    assert_eq!(row(&data, &topic("plain"))["completeness"]["schema_lookup"], "not_found");

    world.run("validate").exits(0);
    assert_eq!((live(&world), stored(&world)), (before, String::new()), "neither a service nor the state was written");
    // Nothing is new any more, and the file that stands is no obstacle then.
    let again = world.data(&format!("import {include}"));
    assert_eq!(
        (&again["imported_count"], &again["skipped_count"], &again["written"]),
        (&json!(0), &json!(5), &json!(false))
    );
    assert_eq!(row(&again, &topic("avro"))["disposition"], "already_declared");
    create_topic(&topic("late"), 1, &[]);
    world.settle();
    assert_eq!(world.refused(&format!("import {include}")), "E702_IMPORT_TARGET_EXISTS");
    let run = world.run(&format!("import {include} --dry-run")).exits(0);
    assert!(run.warning_codes().contains(&"W108_IMPORT_TARGET_EXISTS".to_owned()), "{}", run.stdout);
    let more = world.data(&format!("import {include} --output-file sources/more.yml"));
    assert_eq!((&more["imported_count"], &more["skipped_count"]), (&json!(1), &json!(5)));
    assert_eq!(std::fs::read_to_string(world.workspace.path("sources/imported.kafka.yml")).expect("a file"), text);
    world.run("validate").exits(0);
}

/// ADO-030: filters, and the topics of Kafka and its tools.
#[test]
fn filters_choose_the_topics_and_internal_ones_are_never_among_them() {
    let world = ground("filters");
    let prefix = world.prefix.clone();
    let found = |options: &str| {
        let data = world.data(&format!("import --dry-run --no-schemas {options}"));
        let rows = data["resources"].as_array().expect("rows").clone();
        rows.iter().map(|row| row["topic"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let mine = |names: &[&str]| names.iter().map(|name| format!("{prefix}.{name}")).collect::<Vec<_>>();
    assert_eq!(found(&format!("--include {prefix}.*")), mine(&["avro", "json", "odd", "plain", "proto"]), "sorted");
    assert_eq!(found(&format!("--include {prefix}.a* --include {prefix}.pl*")), mine(&["avro", "plain"]));
    assert_eq!(found(&format!("--include {prefix}.* --exclude *.p* --exclude *.[!aj]*")), mine(&["avro", "json"]));
    assert!(found("--include __*").is_empty(), "the broker has topics of its own");
    let data = world.data(&format!("import --dry-run --no-schemas --include {prefix}.avro"));
    assert_eq!(data["discovery"]["schema_enrichment"], "disabled");
    assert_eq!(data["resources"][0]["completeness"]["schema_lookup"], "not_requested");
}

/// ADO-034: one name for two, or for a declaration of the project, and nothing is written at all.
#[test]
fn a_name_that_is_taken_fails_the_whole_import() {
    let world = World::new("names", Store::Local);
    let topic = |name: &str| format!("{}.{name}", world.prefix);
    for name in ["a.b", "a-b", "free"] {
        create_topic(&topic(name), 1, &[]);
    }
    world.settle();
    let include = format!("--include {}.*", world.prefix);
    let refused = |what: &str| {
        let run = world.run(&format!("import {include}")).exits(1);
        assert_eq!(run.errors()[0].0, "E703_IMPORT_NAME_COLLISION", "{what}: {}", run.stdout);
        assert!(!world.workspace.path("sources").exists(), "{what}");
    };
    refused("two topics");
    let message = world.run(&format!("import {include}")).stdout;
    assert!(message.contains(&topic("a.b")) && message.contains(&topic("a-b")), "{message}");
    crate::estate::blocking(crate::support::clean_up([topic("a-b")]));
    while world.topics().contains(&topic("a-b")) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    world.declare(&format!("  - {{name: {}, description: d, topic: {{name: PREFIX.other}}}}\n", named(&world, "free")));
    refused("a model");
    world.declare("  []\n");
    assert_eq!(world.data(&format!("import {include}"))["imported_count"], 2);
}

/// ADO-036: what a rule of the project refuses is not written.
#[test]
fn what_would_not_be_valid_is_not_written() {
    let world = World::new("invalid", Store::Local);
    create_topic(&format!("{}.a", world.prefix), 1, &[]);
    world.settle();
    let path = world.workspace.path("stream_project.yml");
    let text = std::fs::read_to_string(&path).expect("a project");
    world.workspace.write("stream_project.yml", &format!("{text}\nrules: {{sources: {{require_schema: true}}}}\n"));
    let run = world.run(&format!("import --include {}.*", world.prefix)).exits(1);
    assert_eq!(run.errors()[0].0, "E705_IMPORT_VALIDATION_FAILED", "{}", run.stdout);
    assert!(!world.workspace.path("sources").exists());
}

/// ADO-031: what a registry does not answer is left out, told, and not asked for again; a broken one is no reason to import nothing.
#[test]
fn a_registry_that_fails_leaves_columns_out_and_says_so() {
    let mut world = ground("outage");
    let order = Order::default();
    let registry = Proxy::http(&order, &service("STREAMT_TEST_REGISTRY"));
    world.registry = registry.url();
    world.declare("  []\n");
    let include = format!("--include {}.*", world.prefix);
    let run = world.run(&format!("import {include} --dry-run")).exits(0);
    let warned = |run: &crate::harness::Run| {
        run.warning_codes().iter().filter(|code| *code == "W107_SCHEMA_ENRICHMENT_SKIPPED").count()
    };
    assert_eq!(warned(&run), 1, "only what is no record: {}", run.stdout);
    registry.refuse();
    let run = world.run(&format!("import {include} --dry-run")).exits(0);
    let data = run.json()["data"].clone();
    assert_eq!(data["imported_count"], 5);
    assert!(warned(&run) > 0, "{}", run.stdout);
    assert!(
        data["sources"].as_array().expect("sources").iter().all(|source| source.get("schema").is_none()),
        "{data:#}"
    );
    let lookups: Vec<&Value> =
        data["resources"].as_array().expect("rows").iter().map(|row| &row["completeness"]["schema_lookup"]).collect();
    assert!(lookups.iter().all(|one| *one == "failed" || *one == "skipped_after_outage"), "{lookups:?}");
    registry.restore();
    assert!(order.mutations().is_empty());
}

/// ADO-039: not one request that changes something, and no level, list or deletion of a subject.
#[test]
fn an_import_only_reads() {
    let mut world = ground("importreads");
    let order = Order::default();
    let kafka = Proxy::kafka(&order, &service("STREAMT_TEST_KAFKA"));
    let registry = Proxy::http(&order, &service("STREAMT_TEST_REGISTRY"));
    world.kafka = kafka.address().to_owned();
    world.registry = registry.url();
    world.declare("  []\n");
    world.data(&format!("import --include {}.*", world.prefix));
    assert!(order.mutations().is_empty(), "{:?}", order.mutations());
    let asked: Vec<String> =
        order.records().into_iter().map(|record| record.what).filter(|what| what.contains(" /")).collect();
    assert_eq!(asked.len(), 5, "{asked:?}");
    for what in &asked {
        assert!(what.starts_with("GET ") && what.contains("-value/versions/latest"), "{what}");
    }
    // A topic that cannot be described fails it whole.
    let second = World::new("importwhole", Store::Local);
    create_topic(&format!("{}.a", second.prefix), 1, &[]);
    second.settle();
    let mut second = second;
    second.kafka = kafka.address().to_owned();
    second.declare("  []\n");
    let met = kafka.rule(nth(2, |request| request.what == "Metadata"), Fault::CutBefore);
    let run = second.run(&format!("import --include {}.*", second.prefix));
    assert!(met.count() <= 1, "{}", run.stdout);
}
