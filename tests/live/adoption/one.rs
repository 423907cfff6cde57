//! One resource at a time.

use serde_json::json;

use super::ground::{adopt_line, create_topic, live, ownership, settled, stored};
use crate::estate::service;
use crate::faults::{Order, Proxy};
use crate::interruption::world::{REMOTE, STORES, Store, World};

/// ADO-001, ADO-002, ADO-004, ADO-005, ADO-007, ADO-010, ADO-011, ADO-012, ADO-014, ADO-015, ADO-017: what exists is shown,
/// confirmed and recorded; nothing of it changes; the same again writes nothing, and a plan finds nothing to do.
#[test]
fn a_topic_and_a_subject_are_adopted_as_they_are() {
    for store in STORES {
        let world = settled("one", store);
        let before = live(&world);
        let plan = world.data("plan");
        assert_eq!(plan["is_apply_blocked"], true, "not ours yet: {plan:#}");
        assert_eq!(world.refused("apply"), "E410_OWNERSHIP_REQUIRED");

        let line = adopt_line(&world, "topic", "a");
        let done = world.data(&line);
        let id = format!("streamt://{}/default/topic/a", world.prefix);
        assert_eq!(
            (&done["resource_id"], &done["kind"], &done["logical_name"]),
            (&json!(id), &json!("topic"), &json!("a"))
        );
        assert_eq!(done["physical_name"], format!("{}.a", world.prefix));
        assert_eq!(
            done["observed"],
            json!({"partitions": 2, "replication_factor": 1, "config": {"retention.ms": "7200000"}})
        );
        assert_eq!(done["desired_managed_attributes"], json!({"partitions": 2, "config": {"retention.ms": "7200000"}}));
        assert_eq!(done["pending_diffs"], json!({}));
        assert_eq!(
            (&done["adopted"], &done["already_owned"], &done["committed"], &done["state_serial"]),
            (&json!(true), &json!(false), &json!(true), &json!(1))
        );
        assert_eq!(done["state_file"].is_string(), store == Store::Local);
        assert!(done["next_command"].as_array().expect("argv").contains(&json!("plan")), "{done:#}");

        let first = ownership(&world);
        let subject = world.data(&adopt_line(&world, "schema", "b"));
        assert_eq!((&subject["observed"]["version"], &subject["observed"]["schema_type"]), (&json!(1), &json!("AVRO")));
        assert_eq!((&subject["adopted"], &subject["state_serial"]), (&json!(true), &json!(2)));
        let second = ownership(&world);
        assert_eq!(second["resources"][&id], first["resources"][&id], "every other record stays as it is");
        assert_eq!(second["resources"][&id]["ownership"], "adopted");
        let record = &second["resources"][format!("streamt://{}/default/schema/b", world.prefix)];
        assert_eq!(
            (&record["backend"], &record["ownership"], &record["physical_name"]),
            (&json!("schema-registry"), &json!("adopted"), &json!(format!("{}.b-value", world.prefix)))
        );
        world.data(&adopt_line(&world, "topic", "b"));

        let stood = stored(&world);
        let again = world.data(&line);
        assert_eq!((&again["adopted"], &again["already_owned"]), (&json!(false), &json!(true)));
        assert_eq!((again["state_serial"].clone(), again.get("committed")), (json!(3), None));
        assert_eq!(stored(&world), stood, "an identical claim writes nothing");
        let unconfirmed = world.data("adopt --kind topic --name a");
        assert_eq!(unconfirmed["already_owned"], true, "and asks for no confirmation");

        assert_eq!(live(&world), before, "nothing was changed");
        let plan = world.data("plan --detailed-exitcode");
        assert_eq!((&plan["has_changes"], &plan["is_apply_blocked"]), (&json!(false), &json!(false)), "{plan:#}");
        world.run("apply").exits(0);
        assert_eq!(live(&world), before);
    }
}

/// ADO-002, ADO-005: what differs is shown beforehand, is no part of the claim, and is the next plan's.
#[test]
fn what_differs_is_pending_until_a_plan_of_its_own_is_applied() {
    let world = World::new("pending", Store::Local);
    create_topic(&format!("{}.a", world.prefix), 1, &[("retention.ms", "7200000"), ("cleanup.policy", "compact")]);
    world.settle();
    world.declare(
        "  - {name: a, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.a, partitions: 3, replication_factor: 1, config: {retention.ms: 60000, segment.ms: 70000}}}\n",
    );
    let before = live(&world);
    let done = world.data(&adopt_line(&world, "topic", "a"));
    assert_eq!(
        done["pending_diffs"],
        json!({
            "partitions": {"from": 1, "to": 3},
            "config.cleanup.policy": {"from": "compact", "to": null},
            "config.retention.ms": {"from": "7200000", "to": "60000"},
            "config.segment.ms": {"from": null, "to": "70000"},
        })
    );
    assert_eq!(live(&world), before);
    let plan = world.data("plan");
    assert_eq!(plan["summary"]["updates"], 1);
    assert_eq!(plan["changes"][0]["changes"], done["pending_diffs"], "the plan shows what the review showed");
    assert_eq!((&plan["changes"][0]["cause"], &plan["drifts"]), (&json!("adopted"), &json!(0)), "nobody changed it");
    world.run("plan --detailed-exitcode").exits(2);
    world.run("apply").exits(0);
    world.settle();
    world.run("plan --detailed-exitcode").exits(0);
    // An owned resource is changed by a plan, not adopted again.
    world.declare(
        "  - {name: a, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.a, partitions: 4, replication_factor: 1}}\n",
    );
    assert_eq!(world.refused(&adopt_line(&world, "topic", "a")), "E415_ADOPTION_STATE_CONFLICT");
}

/// ADO-004, ADO-018, SAF-029: shown, refused, adopted and told again, an adoption asks the services and changes nothing there; a
/// subject is asked for by its name, without a list, a register, a level or a deletion.
#[test]
fn an_adoption_sends_no_change_to_any_service() {
    for store in [Store::Local, REMOTE[1]] {
        let mut world = settled("reads", store);
        let order = Order::default();
        let kafka = Proxy::kafka(&order, &service("STREAMT_TEST_KAFKA"));
        let registry = Proxy::http(&order, &service("STREAMT_TEST_REGISTRY"));
        world.kafka = kafka.address().to_owned();
        world.registry = registry.url();
        world.declare(super::ground::AS_THEY_ARE);
        assert_eq!(world.refused("adopt --kind topic --name a"), "E414_ADOPTION_CONFIRMATION_REQUIRED");
        world.data(&adopt_line(&world, "topic", "a"));
        let topic_reads = order.records().len();
        assert!(topic_reads > 0, "the broker was asked");
        assert!(!order.records().iter().any(|record| record.what.starts_with("GET")), "the registry was not");
        world.data(&adopt_line(&world, "schema", "b"));
        world.data(&adopt_line(&world, "schema", "b"));
        world.data("adopt --save-selection s.json");
        let mutations: Vec<String> = order.mutations().into_iter().map(|record| record.what).collect();
        assert!(mutations.is_empty(), "{store:?}: {mutations:?}");
        let asked: Vec<String> =
            order.records().into_iter().filter(|record| record.what.contains(" /")).map(|record| record.what).collect();
        let subject = format!("{}.b-value", world.prefix);
        assert!(!asked.is_empty());
        for what in &asked {
            assert!(what.starts_with("GET "), "{what}");
            assert!(
                what.contains(&format!("/subjects/{subject}/versions/latest"))
                    || what.contains(&format!("/config/{subject}")),
                "{what}"
            );
        }
    }
}
