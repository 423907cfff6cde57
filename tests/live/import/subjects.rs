//! Subjects that are not named after their topics.

use serde_json::{Value, json};
use streamt::compiler::artifact::SchemaType;

use crate::adoption::ground::{create_subject, create_topic};
use crate::interruption::world::{Store, World};

/// Two topics, of which one has its schema under the name of its record.
fn ground(stem: &str) -> World {
    let world = World::new(stem, Store::Local);
    let name = |topic: &str| format!("{}.{topic}", world.prefix);
    create_topic(&name("orders"), 1, &[]);
    create_topic(&name("plain"), 1, &[]);
    let record =
        json!({"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "string"}]});
    create_subject(&name("Order"), SchemaType::Avro, record);
    create_subject(&format!("{}-value", name("plain")), SchemaType::Avro, Value::from("string"));
    world.settle();
    world.declare("  []\n");
    world
}

/// ADO-031, beyond it: the named subject in the place of the conventional one, for a source and for a claim.
#[test]
fn a_named_subject_is_read_for_its_topic() {
    let world = ground("subjects");
    let (topic, subject) = (format!("{}.orders", world.prefix), format!("{}.Order", world.prefix));
    let line = format!("import --include {}.* --subject {topic}={subject}", world.prefix);
    let data = world.data(&format!("{line} --dry-run"));
    let sources = data["sources"].as_array().expect("sources").clone();
    let source = |topic: &str| sources.iter().find(|one| one["topic"] == topic).expect("a source").clone();
    assert_eq!(source(&topic)["schema"]["subject"], json!(subject));
    assert_eq!(source(&topic)["columns"], json!([{"name": "id", "type": "STRING"}]));
    let plain = format!("{}.plain", world.prefix);
    assert_eq!(source(&plain)["schema"]["subject"], json!(format!("{plain}-value")), "the others keep the convention");

    world.data(&format!("{line} --adoptable"));
    let saved = world.data("adopt --save-selection s.json");
    let token = saved["confirm_token"].as_str().expect("a token");
    world.data(&format!("adopt --selection s.json --confirm-token {token}"));
    let plan = world.data("plan --detailed-exitcode");
    assert_eq!((&plan["has_changes"], &plan["is_apply_blocked"]), (&json!(false), &json!(false)), "{plan:#}");
    assert!(world.owned("schema-registry").contains(&subject));
}

/// What was asked for by name is there, or nothing is written.
#[test]
fn a_named_subject_that_is_not_there_fails_the_whole_import() {
    let world = ground("nosubject");
    let include = format!("--include {}.*", world.prefix);
    let topic = format!("{}.orders", world.prefix);
    for named in [format!("{topic}={topic}-key"), format!("{}.nowhere={topic}", world.prefix)] {
        let run = world.run(&format!("import {include} --subject {named}")).exits(1);
        assert_eq!(run.errors()[0].0, "E701_IMPORT_DISCOVERY_FAILED", "{}", run.stdout);
        assert!(!world.workspace.path("sources").exists());
    }
}
