//! `kill -9` in the commands that write a file or make a store.

use std::os::unix::fs::PermissionsExt;

use super::world::{REMOTE, STORES, World};

fn model(partitions: u32) -> String {
    format!(
        "  - {{name: a, description: d, topic: {{name: PREFIX.a, partitions: {partitions}, replication_factor: 1}}}}\n"
    )
}

/// SAF-030: the plan of before or the plan of now, whole, for its owner alone; and nothing pending.
#[test]
fn a_killed_plan_leaves_its_file_whole_or_as_it_was() {
    for store in STORES {
        let world = World::new("plan", store);
        world.declare(&model(1));
        let (run, moments) = world.trace("plan --out plan.json");
        run.exits(0);
        assert!(moments.iter().any(|moment| moment.name == "file.renamed"), "{moments:?}");
        let path = world.workspace.path("plan.json");
        for (round, moment) in moments.iter().enumerate() {
            let before = std::fs::read(&path).expect("a plan");
            world.declare(&model(2 + round as u32));
            assert!(world.killed_at("plan --out plan.json", moment), "{moment}");
            assert_eq!(world.operation()["status"], "clear", "{moment}");
            let replaced = std::fs::read(&path).expect("a plan") != before;
            let renamed = moments.iter().position(|one| one.name == "file.renamed").expect("renamed");
            assert_eq!(replaced, round >= renamed, "{moment}");
            world.run("review plan.json").exits(0);
            let mode = std::fs::metadata(&path).expect("a plan").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{moment}");
            if replaced {
                world.run("apply --plan plan.json --dry-run").exits(0);
            } else {
                assert_eq!(world.refused("apply --plan plan.json --dry-run"), "E409_PLAN_STALE", "{moment}");
            }
        }
    }
}

/// PGS-001, SAF-030: nothing of a store stands, or all of it; the same command again ends it.
#[test]
fn a_killed_state_init_leaves_a_whole_store_or_none() {
    for store in REMOTE {
        let world = World::uninitialized("init", store);
        let line = world.init_line();
        let (run, moments) = world.trace(&line);
        assert_eq!(run.exits(0).json()["data"]["outcome"], "initialized");
        let names: Vec<&str> = moments.iter().map(|moment| moment.name.as_str()).collect();
        assert_eq!(names, ["init.locked", "init.written", "init.committed"]);
        for (at, moment) in moments.iter().enumerate() {
            let committed = at == 2;
            let world = World::uninitialized("init", store);
            let line = world.init_line();
            assert!(world.killed_at(&line, moment), "{moment}");
            let expected = if committed { ("ready", "already_initialized") } else { ("uninitialized", "initialized") };
            assert_eq!(world.data("state status")["store_status"], expected.0, "{moment}");
            assert_eq!(world.data(&line)["outcome"], expected.1, "{moment}");
            world.run("plan").exits(0);

            // A second address of the same store.
            let other = world.beside_uninitialized();
            let line = other.init_line();
            assert!(other.killed_at(&line, moment), "{moment}");
            let expected =
                if committed { ("registered", "already_initialized") } else { ("unregistered", "address_registered") };
            assert_eq!(other.data("state status")["address_status"], expected.0, "{moment}");
            assert_eq!(other.data(&line)["outcome"], expected.1, "{moment}");
            other.run("plan").exits(0);
        }
    }
}
