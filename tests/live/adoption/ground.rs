//! What exists before streamt comes: topics and subjects that somebody else made.

use serde_json::Value;
use streamt::compiler::artifact::SchemaType;

use crate::estate::{blocking, with_kafka};
use crate::interruption::world::{Store, World};
use crate::registry::{artifact, register, registry};
use crate::support::{Open, topic};

/// Two topics and a subject, declared as they are.
pub const AS_THEY_ARE: &str =
    "  - {name: a, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.a, partitions: 2, replication_factor: 1, config: {retention.ms: 7200000}}}
  - {name: b, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.b, partitions: 1, replication_factor: 1}, schema: {subject: PREFIX.b-value, format: avro, definition: '\"string\"'}}
";

pub fn create_topic(name: &str, partitions: u32, config: &[(&str, &str)]) {
    let wanted = topic(name, partitions, config);
    with_kafka(async |kafka, ctx| {
        for (name, outcome) in kafka.create_topics(ctx, &Open, std::slice::from_ref(&wanted)).await {
            outcome.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        }
    });
}

pub fn create_subject(name: &str, schema_type: SchemaType, body: Value) {
    let wanted = artifact(name, schema_type, body);
    blocking(async move { register(&registry(), &wanted).await.expect("registered") });
}

/// The ground of [`AS_THEY_ARE`], and a project that declares it.
pub fn settled(stem: &str, store: Store) -> World {
    let world = World::new(stem, store);
    create_topic(&format!("{}.a", world.prefix), 2, &[("retention.ms", "7200000")]);
    create_topic(&format!("{}.b", world.prefix), 1, &[]);
    create_subject(&format!("{}.b-value", world.prefix), SchemaType::Avro, Value::from("string"));
    world.settle();
    world.declare(AS_THEY_ARE);
    world
}

/// What the services show of everything that begins with the world's prefix, as text.
pub fn live(world: &World) -> String {
    let prefix = format!("{}.", world.prefix);
    let topics = with_kafka(async |kafka, ctx| {
        let names = kafka.list_topics(ctx).await.expect("a list");
        let mine: Vec<String> = names.into_iter().filter(|name| name.starts_with(&prefix)).collect();
        kafka.observe_topics(ctx, &mine, streamt::providers::kafka::ConfigRead::Strict).await.expect("topics")
    });
    let subjects = blocking(async {
        let registry = registry();
        let ctx = crate::support::ctx();
        let names = registry.list_subjects(&ctx).await.expect("a list");
        let mine: Vec<String> = names.into_iter().filter(|name| name.starts_with(&prefix)).collect();
        registry.observe_subjects(&ctx, &mine).await.expect("subjects")
    });
    format!("{topics:#?}\n{subjects:#?}")
}

/// The command that adopts one, confirmed.
pub fn adopt_line(world: &World, kind: &str, name: &str) -> String {
    format!(
        "adopt --kind {kind} --name {name} --confirm-resource streamt://{}/default/{kind}/{name} --confirm-env default",
        world.prefix
    )
}

/// The ownership document as it is stored; null when nothing was ever stored.
pub fn ownership(world: &World) -> Value {
    let text = match &world.database {
        None => std::fs::read_to_string(world.workspace.path(".streamt/state/default.json")).ok(),
        Some(database) => database.texts("SELECT state_json FROM SCHEMA.current_state").pop(),
    };
    text.map_or(Value::Null, |text| serde_json::from_str(&text).expect("JSON"))
}

/// Everything that the store holds, as text: nothing was written when it is equal.
pub fn stored(world: &World) -> String {
    match &world.database {
        None => ["default.json", "default.control.jsonl", "default.recovery-history.jsonl"]
            .iter()
            .map(|name| {
                std::fs::read_to_string(world.workspace.path(&format!(".streamt/state/{name}"))).unwrap_or_default()
            })
            .collect(),
        Some(database) => ["operation_control", "operation_history", "state_history", "current_state"]
            .iter()
            .flat_map(|table| database.texts(&format!("SELECT t::text FROM SCHEMA.{table} t ORDER BY 1")))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}
