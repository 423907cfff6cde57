//! `kill -9` at moments that nobody chose, from a seed that is printed.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::resolve::resolve_with;
use super::world::{STORES, World};

/// Rounds of each store.
const ROUNDS: usize = 6;

fn models(round: usize) -> String {
    let topics: String = (0..5)
        .map(|i| {
            format!("  - {{name: r{round}t{i}, description: d, topic: {{name: PREFIX.r{round}t{i}, partitions: 1, replication_factor: 1}}, schema: {{subject: PREFIX.r{round}t{i}-value, format: avro, definition: '\"string\"'}}}}\n")
        })
        .collect();
    let partitions = 1 + round;
    let retention = 86_400_000 + 60_000 * round;
    format!(
        "{topics}  - {{name: grown, description: d, topic: {{name: PREFIX.grown, partitions: {partitions}, replication_factor: 1}}}}\n  \
         - {{name: kept, description: d, topic: {{name: PREFIX.kept, partitions: 1, replication_factor: 1, config: {{retention.ms: {retention}}}}}}}\n"
    )
}

/// SAF-030, REC-001, REC-005, REC-009: at a random moment of an apply, and at a random moment of its recovery.
#[test]
fn killed_at_random_moments_every_store_reaches_a_proven_end() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64;
    println!("seed {seed}");
    let mut random = seed;
    let mut draw = move |below: Duration| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        below.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
    };
    for store in STORES {
        let world = World::new("random", store);
        world.declare(&models(0));
        let begun = Instant::now();
        world.run("apply").exits(0);
        let whole = begun.elapsed();
        let mut blocked = 0;
        for round in 1..=ROUNDS {
            world.declare(&models(round));
            kill_after(&world, "apply", draw(whole));
            let operation = world.operation();
            println!("{store:?}, round {round}: {operation}");
            if operation["status"] == "clear" {
                world.run("plan").exits(0);
                continue;
            }
            blocked += 1;
            assert_eq!(world.refused("plan"), "E419_STATE_RECOVERY_REQUIRED");
            // A broker may still be busy with what it was sent; nothing is decided before it is done.
            world.settle();
            let resolved = resolve_with(&world, "observed", |line| kill_after(&world, line, draw(whole / 2)));
            assert_eq!(world.operation()["status"], "clear");
            let summary = world.data("plan")["summary"].clone();
            let remaining = summary["creates"].as_u64().unwrap_or(0) + summary["updates"].as_u64().unwrap_or(0);
            assert_eq!(remaining, resolved.count("prior") as u64, "{summary}");
        }
        world.run("apply").exits(0);
        world.run("plan --detailed-exitcode").exits(0);
        assert_eq!(world.owned("direct-kafka"), world.topics(), "ownership is exactly what exists");
        println!("{store:?}: {blocked} of {ROUNDS} rounds were blocked");
    }
}

fn kill_after(world: &World, line: &str, wait: Duration) {
    let mut child = world.spawn(line);
    std::thread::sleep(wait);
    let _ = child.kill();
    let _ = child.wait();
}
