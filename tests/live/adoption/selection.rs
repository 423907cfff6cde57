//! Several at once: a saved selection, reviewed, adopted by its token.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::ground::{AS_THEY_ARE, adopt_line, create_topic, live, ownership, settled, stored};
use crate::interruption::world::{REMOTE, STORES, Store, World};

fn adopt(saved: &Value) -> String {
    let text = |key: &str| saved[key].as_str().unwrap_or_else(|| panic!("{key}: {saved:#}")).to_owned();
    format!("adopt --selection {} --confirm-token {}", text("selection_file"), text("confirm_token"))
}

/// ADO-006, ADO-042, ADO-043, LIM-018: all of them in one operation, by the token of the reviewed file, without a terminal.
#[test]
fn a_reviewed_selection_is_adopted_in_one_operation() {
    for store in STORES {
        let world = settled("bulk", store);
        let before = live(&world);
        let saved = world.data("adopt --save-selection s.json");
        let mode = std::fs::metadata(world.workspace.path("s.json")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(saved["resources"].as_array().map(Vec::len), Some(3));
        assert!(saved["resources"][0]["observed"].is_object(), "with the review of each: {saved:#}");
        let token = saved["confirm_token"].as_str().expect("a token").to_owned();
        assert_eq!(token, format!("adopt:default:{}", saved["checksum"].as_str().expect("a checksum")));
        assert_eq!(ownership(&world), Value::Null, "saving claims nothing");
        let review = world.data("review s.json");
        assert_eq!((&review["kind"], &review["confirm_token"]), (&json!("streamt.adoption-selection"), &json!(token)));
        assert_eq!(review["resources"].as_array().map(Vec::len), Some(3));

        let line = adopt(&saved);
        let done = world.data(&line);
        assert_eq!(
            (&done["adopted"], &done["already_owned"], &done["committed"], &done["state_serial"]),
            (&json!(true), &json!(false), &json!(true), &json!(1))
        );
        assert_eq!(done["checksum"], saved["checksum"]);
        assert_eq!(ownership(&world)["resources"].as_object().map(serde_json::Map::len), Some(3));
        if let Some(database) = &world.database {
            let events = database.texts("SELECT event_kind FROM SCHEMA.operation_history ORDER BY event_index");
            let expected = "intent progress_started progress_completed progress_started progress_completed progress_started \
                            progress_completed succeeded";
            assert_eq!(events.join(" "), expected, "one operation with one action a resource");
        }
        let stood = stored(&world);
        let again = world.data(&line);
        assert_eq!((&again["adopted"], &again["already_owned"]), (&json!(false), &json!(true)));
        assert_eq!(stored(&world), stood, "the same again writes nothing");
        assert_eq!(live(&world), before);
        world.run("plan --detailed-exitcode").exits(0);
        assert_eq!(world.refused("adopt --save-selection t.json"), "E412_ADOPTION_TARGET_INVALID", "nothing is left");
    }
}

/// ADO-042, ADO-043: another token, an edited file, another project, another state or another live resource adopt nothing at all.
#[test]
fn a_selection_that_is_not_the_reviewed_one_adopts_nothing() {
    for store in [Store::Local, REMOTE[0]] {
        let mut world = settled("bulkno", store);
        let saved = world.data("adopt --save-selection s.json");
        let line = adopt(&saved);
        let token = saved["confirm_token"].as_str().expect("a token").to_owned();
        let before = stored(&world);
        let refused_by = |world: &World, line: &str, code: &str| {
            let run = world.run(line).exits(1);
            assert_eq!(run.errors()[0].0, code, "{line}: {}", run.stdout);
            assert_eq!(stored(world), before, "{line}");
            run.json()["errors"][0]["message"].to_string()
        };
        let refused = |line: &str, code: &str| drop(refused_by(&world, line, code));
        for wrong in [
            token.replace("default", "prod"),
            token.replace("adopt:", ""),
            token.to_uppercase(),
            format!("adopt:default:sha256:{}", "0".repeat(64)),
        ] {
            refused(&line.replace(&token, &wrong), "E414_ADOPTION_CONFIRMATION_REQUIRED");
        }
        refused(&line.replace(&format!("--confirm-token {token}"), ""), "E414_ADOPTION_CONFIRMATION_REQUIRED");
        let text = std::fs::read_to_string(world.workspace.path("s.json")).expect("a file");
        world
            .workspace
            .write("edited.json", &text.replace(&format!("{}.a", world.prefix), &format!("{}.x", world.prefix)));
        refused(&line.replace("s.json", "edited.json"), "E408_PLAN_FILE_INVALID");
        refused("adopt --save-selection s.json", "E408_PLAN_FILE_INVALID");

        world.declare(&AS_THEY_ARE.replace("retention.ms: 7200000", "retention.ms: 7300000"));
        refused(&line, "E409_PLAN_STALE");
        // What it says nothing of changed: another declaration, another runtime.
        let more = "  - {name: m, description: d, topic: {name: PREFIX.m, partitions: 1, replication_factor: 1}}\n";
        world.declare(&format!("{AS_THEY_ARE}{more}"));
        let told = refused_by(&world, &line, "E409_PLAN_STALE");
        assert!(told.contains("the project changed after the selection was saved"), "{told}");
        let registry = std::mem::replace(&mut world.registry, "http://127.0.0.1:1".to_owned());
        world.declare(AS_THEY_ARE);
        let told = refused_by(&world, &line, "E409_PLAN_STALE");
        assert!(told.contains("the runtime configuration of the environment changed"), "{told}");
        world.registry = registry;
        world.declare(AS_THEY_ARE);
        let refused = |line: &str, code: &str| drop(refused_by(&world, line, code));
        let other = World::new("bulkother", Store::Local);
        std::fs::copy(world.workspace.path("s.json"), other.workspace.path("s.json")).expect("copied");
        let elsewhere = line.replace(&world.workspace.path("s.json").display().to_string(), "s.json");
        assert_eq!(other.refused(&elsewhere), "E409_PLAN_STALE", "another project");

        // One of three changes: none is adopted.
        crate::estate::blocking(crate::support::clean_up([format!("{}.a", world.prefix)]));
        while world.topics().contains(&format!("{}.a", world.prefix)) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        refused(&line, "E414_ADOPTION_CONFIRMATION_REQUIRED");
        refused("adopt --save-selection later.json", "E413_ADOPTION_LIVE_NOT_FOUND");
        assert!(!world.workspace.path("later.json").exists());
        create_topic(&format!("{}.a", world.prefix), 2, &[("retention.ms", "7200000")]);
        world.settle();
        let schemas = adopt(&world.data("adopt --save-selection schemas.json --kind schema"));
        // The state went on since it was saved: by a resource of it, or by another one.
        world.data(&adopt_line(&world, "topic", "a"));
        assert_eq!(world.refused(&line), "E409_PLAN_STALE");
        let run = world.run(&schemas).exits(1);
        let told = run.json()["errors"][0]["message"].to_string();
        assert!(told.contains("the ownership state changed after the selection was saved"), "{told}");
        let rest = world.data("adopt --save-selection rest.json");
        assert_eq!(rest["resources"].as_array().map(Vec::len), Some(2), "what is recorded is left out: {rest:#}");
        assert_eq!(world.data(&adopt(&rest))["state_serial"], 2);
    }
}

/// A part of an estate at a time.
#[test]
fn kinds_and_names_narrow_a_selection() {
    let world = settled("narrow", Store::Local);
    let names = |line: &str| {
        let file = format!("{}.json", uuid::Uuid::new_v4().simple());
        let saved = world.data(&format!("adopt --save-selection {file} {line}"));
        let rows = saved["resources"].as_array().expect("resources").clone();
        rows.iter()
            .map(|row| format!("{}:{}", row["kind"].as_str().unwrap(), row["logical_name"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["schema:b", "topic:a", "topic:b"]);
    assert_eq!(names("--kind topic"), ["topic:a", "topic:b"]);
    assert_eq!(names("--kind topic --kind schema --include b"), ["schema:b", "topic:b"]);
    assert_eq!(names("--exclude [a]"), ["schema:b", "topic:b"]);
    assert_eq!(world.refused("adopt --save-selection none.json --include nothing*"), "E412_ADOPTION_TARGET_INVALID");
}
