//! `kill -9` at every moment of an adoption, of one and of several: nothing or all of it is claimed, the services are as they were,
//! and the runbook ends what is left.

use super::ground::{adopt_line, create_topic, live, ownership};
use crate::interruption::resolve::{new_file, plan_line, resolve};
use crate::interruption::world::{Moment, Store, World};
use serde_json::Value;

/// How many topics one moment claims: by name, or by a selection.
const MANY: usize = 2;
/// Moments of one adoption, at most.
const MOMENTS: usize = 48;

fn names(round: usize, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("t{round}x{index}")).collect()
}

/// Topics for every round at once, each declared as it is.
fn world(store: Store, count: usize) -> World {
    let world = World::new("adoptkill", store);
    let all: Vec<String> = (0..MOMENTS).flat_map(|round| names(round, count)).collect();
    for name in &all {
        create_topic(&format!("{}.{name}", world.prefix), 1, &[]);
    }
    world.settle();
    let models: String = all
        .iter()
        .map(|name| {
            format!(
                "  - {{name: {name}, description: d, ownership: {{mode: adopted}}, topic: {{name: PREFIX.{name}, partitions: 1, replication_factor: 1}}}}\n"
            )
        })
        .collect();
    world.declare(&models);
    world
}

/// The command that adopts the topics of a round.
fn line(world: &World, round: usize, count: usize) -> String {
    if count == 1 {
        return adopt_line(world, "topic", &names(round, 1)[0]);
    }
    let file = format!("s{round}-{}.json", uuid::Uuid::new_v4().simple());
    let saved = world.data(&format!("adopt --save-selection {file} --include t{round}x*"));
    format!("adopt --selection {file} --confirm-token {}", saved["confirm_token"].as_str().expect("a token"))
}

fn owned(world: &World, round: usize, count: usize) -> usize {
    let state = ownership(world);
    let owns =
        |name: &String| state["resources"].get(format!("streamt://{}/default/topic/{name}", world.prefix)).is_some();
    names(round, count).iter().filter(|name| owns(name)).count()
}

fn serial(world: &World) -> u64 {
    world.data("state status")["state_serial"].as_u64().unwrap_or(0)
}

fn matrix(store: Store, count: usize) {
    let world = world(store, count);
    let before = live(&world);
    let (run, moments) = world.trace(&line(&world, 0, count));
    run.exits(0);
    assert!(moments.len() < MOMENTS, "{moments:?}");
    assert!(
        !moments.iter().any(|moment| moment.name.starts_with("request.")),
        "no permission to change anything was asked for: {moments:?}"
    );
    let position = |name: &str, last: bool| {
        let found: Vec<usize> = (0..moments.len()).filter(|at| moments[*at].name == name).collect();
        let found = if last { found.last() } else { found.first() };
        *found.unwrap_or_else(|| panic!("{name} is not passed: {moments:?}"))
    };
    let (begun, committed) = match store {
        Store::Local => (position("replace.renamed", false), position("append.written", true)),
        Store::Postgres(_) => (position("step.committed", false), position("step.committed", true)),
    };
    assert!(begun < committed);
    let mut blocked = 0;
    for (at, moment) in moments.iter().enumerate() {
        let round = at + 1;
        let line = line(&world, round, count);
        let start = serial(&world);
        let context = format!("{store:?}, {count} killed at {moment}");
        assert!(world.killed_at(&line, moment), "{context}");
        let operation = world.operation();
        match at {
            at if at < begun => {
                assert_eq!(operation["status"], "clear", "{context}");
                assert_eq!((owned(&world, round, count), serial(&world)), (0, start), "{context}");
            }
            at if at >= committed => {
                assert_eq!(operation["status"], "clear", "{context}");
                assert_eq!(serial(&world), start + 1, "{context}");
                // Whoever takes the lock next puts a local commit into its place.
                world.run("plan").exits(0);
                assert_eq!((owned(&world, round, count), serial(&world)), (count, start + 1), "{context}");
                assert_eq!(world.data(&line)["already_owned"], true, "{context}");
            }
            _ => {
                blocked += 1;
                assert_eq!(
                    (&operation["status"], &operation["kind"]),
                    (&"in_progress".into(), &"adopt".into()),
                    "{context}"
                );
                assert_eq!(operation["last_completed_action_index"], Value::Null, "{context}");
                end(&world, round, count, &line, start, at, &context);
            }
        }
    }
    assert!(blocked > 0);
    println!("{store:?}, {count} at a time: {} moments of adopt, {blocked} blocked", moments.len());
    assert_eq!(live(&world), before, "nothing was changed at any moment");
}

/// The way out: what was begun claims nothing, until a recovery says what is so.
fn end(world: &World, round: usize, count: usize, line: &str, start: u64, at: usize, context: &str) {
    for command in ["plan", "apply", line] {
        assert_eq!(world.refused(command), "E419_STATE_RECOVERY_REQUIRED", "{context}: {command}");
    }
    assert_eq!(owned(world, round, count), 0, "{context}");
    // What exists as declared was not rolled back.
    assert_eq!(world.refused(&plan_line("rolled_back", &new_file())), "E409_PLAN_STALE", "{context}");
    if at.is_multiple_of(2) {
        let done = resolve(world, "abandoned_before_mutation").done;
        assert_eq!((&done["control_status"], &done["state_changed"]), (&"clear".into(), &false.into()), "{context}");
        assert_eq!((owned(world, round, count), serial(world)), (0, start), "{context}");
        let again = match count {
            1 => line.to_owned(),
            _ => self::line(world, round, count),
        };
        assert_eq!(world.data(&again)["adopted"], true, "{context}");
    } else {
        let resolved = resolve(world, "observed");
        assert_eq!(resolved.count("candidate"), count, "{context}");
        assert_eq!(resolved.done["state_changed"], true, "{context}");
        assert_eq!(world.data(&resolved.line), resolved.done, "{context}: told the same again");
    }
    assert_eq!((owned(world, round, count), serial(world)), (count, start + 1), "{context}");
}

/// ADO-004, ADO-011, SAF-029, SAF-030, REC-001, REC-003, REC-013, REC-014: of one resource, local state.
#[test]
fn an_adoption_killed_at_any_moment_with_local_state() {
    matrix(Store::Local, 1);
    matrix(Store::Local, MANY);
}

/// The same; ADO-042: of several, all or none.
#[test]
fn an_adoption_killed_at_any_moment_with_state_in_postgres_14() {
    matrix(Store::Postgres("14"), 1);
    matrix(Store::Postgres("14"), MANY);
}

/// The same.
#[test]
fn an_adoption_killed_at_any_moment_with_state_in_postgres_18() {
    matrix(Store::Postgres("18"), 1);
    matrix(Store::Postgres("18"), MANY);
}

/// ADO-042: the file of a selection stands whole or not at all, and nothing is claimed.
#[test]
fn a_selection_that_is_killed_while_it_is_saved_is_whole_or_absent() {
    let world = world(Store::Local, MANY);
    let (run, moments) = world.trace("adopt --save-selection s.json --include t0x*");
    run.exits(0);
    for name in ["new_file.created", "new_file.flushed", "new_file.linked", "new_file.done"] {
        assert!(moments.iter().any(|moment| moment.name == name), "{name}: {moments:?}");
    }
    for (at, moment) in moments.iter().enumerate() {
        let file = format!("k{at}.json");
        assert!(world.killed_at(&format!("adopt --save-selection {file} --include t0x*"), moment), "{moment}");
        assert_eq!(world.operation()["status"], "clear", "{moment}");
        if world.workspace.path(&file).exists() {
            assert_eq!(
                world.data(&format!("review {file}"))["resources"].as_array().map(Vec::len),
                Some(MANY),
                "{moment}"
            );
        }
    }
    assert_eq!(ownership(&world), Value::Null);
}

/// REC-014, REC-056: what is gone when the recovery looks was never claimed, and what differs from its declaration is in neither
/// form; giving the adoption up is always possible.
#[test]
fn an_interrupted_adoption_is_resolved_by_what_is_there() {
    for store in [Store::Local, Store::Postgres("18")] {
        let begun = match store {
            Store::Local => Moment::new("replace.done", 1),
            Store::Postgres(_) => Moment::new("step.verified", 1),
        };
        let world = world(store, 1);
        let topic = format!("{}.t1x0", world.prefix);
        assert!(world.killed_at(&line(&world, 1, 1), &begun));
        crate::estate::blocking(crate::support::clean_up([topic.clone()]));
        while world.topics().contains(&topic) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let back = resolve(&world, "rolled_back");
        assert_eq!((back.count("prior"), &back.done["state_changed"]), (1, &false.into()));
        assert_eq!(owned(&world, 1, 1), 0);

        // The declaration of t2 is what was begun, and the live topic is another one by now.
        assert!(world.killed_at(&line(&world, 2, 1), &begun));
        let topic = format!("{}.t2x0", world.prefix);
        crate::estate::blocking(crate::support::clean_up([topic.clone()]));
        while world.topics().contains(&topic) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        create_topic(&topic, 3, &[]);
        world.settle();
        let run = world.run(&plan_line("observed", &new_file())).exits(1);
        assert_eq!(run.errors()[0].0, "E409_PLAN_STALE");
        assert_eq!(run.json()["data"]["targets"][0]["reason"], "third_state", "{}", run.stdout);
        assert_eq!(resolve(&world, "abandoned_before_mutation").done["state_changed"], false);
    }
}
