//! `kill -9` at moments that nobody chose, from a seed that is printed.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::resolve::resolve_with;
use super::world::{STORES, World};
use crate::faults::Moments;

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
    let mut moments = Moments::new("random kills");
    for store in STORES {
        let world = World::new("random", store);
        world.declare(&models(0));
        world.run("apply").exits(0);
        world.declare(&models(1));
        let mut apply = Locked::start(&world, "apply");
        apply.child.wait().expect("an end");
        let whole = apply.since.elapsed();
        let mut blocked = 0;
        for round in 2..ROUNDS + 2 {
            world.declare(&models(round));
            Locked::start(&world, "apply").kill_after(moments.within(whole));
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
            let resolved = resolve_with(&world, "observed", |line| {
                Locked::start(&world, line).kill_after(moments.within(whole / 2));
            });
            assert_eq!(world.operation()["status"], "clear");
            let summary = world.data("plan")["summary"].clone();
            let remaining = summary["creates"].as_u64().unwrap_or(0) + summary["updates"].as_u64().unwrap_or(0);
            assert_eq!(remaining, resolved.count("prior") as u64, "{summary}");
        }
        world.run("apply").exits(0);
        world.run("plan --detailed-exitcode").exits(0);
        assert_eq!(world.owned("direct-kafka"), world.topics(), "ownership is exactly what exists");
        println!("{store:?}: {blocked} of {ROUNDS} rounds were blocked; an apply holds the lock for {whole:?}");
    }
}

/// A command that has taken the lock.
struct Locked {
    child: Child,
    since: Instant,
}

impl Locked {
    /// The failpoints that it passes tell when it has the lock; nothing else is done with them.
    fn start(world: &World, line: &str) -> Self {
        let trace = world.workspace.path("passed");
        let _ = std::fs::remove_file(&trace);
        let mut command = world.command(line);
        let command = command.env("STREAMT_FAILPOINT_TRACE", &trace).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("started");
        while std::fs::metadata(&trace).is_err() && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { child, since: Instant::now() }
    }

    fn kill_after(mut self, wait: Duration) {
        std::thread::sleep(wait);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
