//! Many processes at one address, and many addresses in one store.

use super::world::{STORES, Store, World};

const CONTENDERS: usize = 20;

/// The serial of an apply of one model. Local state is waited for 30 seconds, which twenty may exceed: then again.
fn contend(world: &World, model: usize) -> u64 {
    loop {
        let run = world.run(&format!("apply --target m{model}"));
        if run.exit == 1 && run.errors()[0].0 == "E422_STATE_LOCK_TIMEOUT" {
            continue;
        }
        return run.exits(0).json()["data"]["state_serial"].as_u64().expect("a serial");
    }
}

/// SAF-025, PGS-013: twenty processes, one address: each waits for its turn, and the serials have no gap and no repetition.
#[test]
fn twenty_processes_racing_for_one_address_finish_with_contiguous_serials() {
    for store in STORES {
        let world = World::new("race", store);
        let models: String = (0..CONTENDERS)
            .map(|i| {
                format!("  - {{name: m{i}, description: d, topic: {{name: PREFIX.m{i}, partitions: 1, replication_factor: 1}}}}\n")
            })
            .collect();
        world.declare(&models);
        let mut serials: Vec<u64> = std::thread::scope(|scope| {
            let contenders: Vec<_> = (0..CONTENDERS)
                .map(|i| {
                    scope.spawn({
                        let world = &world;
                        move || contend(world, i)
                    })
                })
                .collect();
            contenders.into_iter().map(|contender| contender.join().expect("a serial")).collect()
        });
        serials.sort_unstable();
        assert_eq!(serials, (1..=CONTENDERS as u64).collect::<Vec<_>>(), "{store:?}");
        if let Some(database) = &world.database {
            let rows =
                database.texts("SELECT s.state_serial::text FROM SCHEMA.state_history s ORDER BY s.state_serial");
            assert_eq!(rows, (1..=CONTENDERS).map(|serial| serial.to_string()).collect::<Vec<_>>());
        }
        assert_eq!(world.owned("direct-kafka"), world.topics());
        world.run("plan --detailed-exitcode").exits(0);
    }
}

/// SAF-025: addresses of one store do not get into each other's way. `perf/README.md` has the figure of a hundred rounds.
#[test]
fn eight_addresses_of_one_store_are_applied_side_by_side_without_a_conflict() {
    const ROUNDS: u64 = 3;
    for major in ["14", "18"] {
        let first = World::new("side", Store::Postgres(major));
        let mut worlds: Vec<World> = (1..8).map(|_| first.beside()).collect();
        worlds.push(first);
        for round in 1..=ROUNDS {
            std::thread::scope(|scope| {
                for world in &worlds {
                    scope.spawn(move || {
                        world.declare(&format!(
                            "  - {{name: a, description: d, topic: {{name: PREFIX.a, partitions: 1, replication_factor: 1, config: {{retention.ms: {}}}}}}}\n",
                            86_400_000 + 60_000 * round
                        ));
                        let data = world.data("apply");
                        assert_eq!(data["state_serial"], round, "{data:#}");
                    });
                }
            });
        }
        // The first is the last: its store goes with it.
        drop(worlds);
    }
}
