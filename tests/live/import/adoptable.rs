//! Declarations that are ready to be adopted: exactly what is live, so that a plan after the adoption is empty.

use serde_json::{Value, json};
use streamt::compiler::artifact::{SchemaArtifact, SchemaType};
use streamt::project::model::{Compatibility, SchemaReference};

use crate::adoption::ground::{create_subject, create_topic, live};
use crate::interruption::world::{REMOTE, Store, World};
use crate::registry::{artifact, register, registry};

/// ADO-042, beyond it: an estate of every form is imported, adopted by a selection, and a plan of it has nothing to do.
#[test]
fn an_estate_that_was_imported_and_adopted_has_an_empty_plan() {
    for store in [Store::Local, REMOTE[1]] {
        let world = World::new("estate", store);
        let topic = |name: &str| format!("{}.{name}", world.prefix);
        let subject = |name: &str| format!("{}.{name}-value", world.prefix);
        create_topic(&topic("avro"), 3, &[("retention.ms", "7200000"), ("cleanup.policy", "compact,delete")]);
        create_topic(&topic("json"), 1, &[]);
        create_topic(&topic("proto"), 2, &[("min.insync.replicas", "1")]);
        create_topic(&topic("plain"), 1, &[("max.message.bytes", "2000000")]);
        create_topic(&topic("uses"), 1, &[]);
        let record = json!({"type": "record", "name": "Rückgabe_é".replace(['ü', 'é'], "u"), "namespace": "shop", "doc": "naïve: yes\u{2028}no", "fields": [
            {"name": "id", "type": "string", "doc": "a: b # c"}, {"name": "n", "type": ["null", "double"], "default": null},
        ]});
        create_subject(&subject("avro"), SchemaType::Avro, record);
        let object = json!({"type": "object", "properties": {"a: b": {"type": "string", "pattern": "^[a-z]*$"}}});
        create_subject(&subject("json"), SchemaType::Json, object);
        let proto =
            Value::from("syntax = \"proto3\";\npackage shop;\n\nmessage Order {\n  string id = 1; // \"quoted\"\n}\n");
        create_subject(&subject("proto"), SchemaType::Protobuf, proto);
        // One that refers to another, with a level of its own.
        let body = json!({"type": "record", "name": "Uses", "namespace": "shop", "fields": [{"name": "r", "type": "shop.Ruckgabe_u"}]});
        let uses = SchemaArtifact {
            compatibility: Some(Compatibility::FullTransitive),
            references: vec![SchemaReference { name: "shop.Ruckgabe_u".into(), subject: subject("avro"), version: 1 }],
            ..artifact(&subject("uses"), SchemaType::Avro, body)
        };
        crate::estate::blocking(async move { register(&registry(), &uses).await.expect("registered") });
        world.settle();
        world.declare("  []\n");
        let before = live(&world);

        let data = world.data(&format!("import --adoptable --include {}.*", world.prefix));
        assert_eq!(
            (&data["imported_count"], &data["created_files"]),
            (&json!(5), &json!(["models/imported.kafka.yml"]))
        );
        assert_eq!(data["models"].as_array().map(Vec::len), Some(5));
        world.run("validate").exits(0);
        let blocked = world.data("plan");
        assert_eq!((&blocked["is_apply_blocked"], &blocked["has_changes"]), (&json!(true), &json!(false)));
        let saved = world.data("adopt --save-selection s.json");
        assert_eq!(saved["resources"].as_array().map(Vec::len), Some(9), "{saved:#}");
        for row in saved["resources"].as_array().expect("rows") {
            assert_eq!(row["pending_diffs"], json!({}), "{row:#}");
        }
        let token = saved["confirm_token"].as_str().expect("a token");
        world.data(&format!("adopt --selection s.json --confirm-token {token}"));
        let plan = world.data("plan --detailed-exitcode");
        assert_eq!((&plan["has_changes"], &plan["is_apply_blocked"]), (&json!(false), &json!(false)), "{plan:#}");
        world.run("apply").exits(0);
        assert_eq!(live(&world), before);
    }
}
