//! `kill -9` at every durable boundary and at every request of an apply, and in the commands that end what it left.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use serde_json::{Value, json};

use super::resolve::{Resolved, new_file, plan_line, recover_line, resolve_with};
use super::world::{Moment, Store, World};

/// Every kind of change that this version makes: a group of two creates, an update of a configuration, one of a number of
/// partitions, a new subject, a new version of a subject. Each round declares others.
const CHANGES: usize = 6;

fn declare(world: &World, round: usize) {
    let topic = |name: &str, rest: &str| {
        format!("  - {{name: {name}, description: d, topic: {{name: PREFIX.{name}, replication_factor: 1, {rest}}}")
    };
    let schema = |name: &str, definition: &str| {
        format!(", schema: {{subject: PREFIX.{name}-value, format: avro, definition: '{definition}'}}")
    };
    let field = format!(r#"{{"name":"f{round}","type":["null","string"],"default":null}}"#);
    let record = format!(r#"{{"type":"record","name":"R","fields":[{{"name":"id","type":"string"}},{field}]}}"#);
    let retention = 100_000_000 + 60_000 * round;
    world.declare(&format!(
        "{}}}\n{}}}\n{}{}}}\n{}}}\n{}{}}}\n",
        topic("config", &format!("partitions: 1, config: {{retention.ms: {retention}}}")),
        topic("partitions", &format!("partitions: {}", 1 + round)),
        topic("evolving", "partitions: 1"),
        schema("evolving", &record),
        topic(&format!("new{round}a"), "partitions: 1"),
        topic(&format!("new{round}b"), "partitions: 1"),
        schema(&format!("new{round}b"), r#""string""#),
    ));
}

/// The moments of one apply, and where in them its outcome turns.
struct Course {
    moments: Vec<Moment>,
    /// From here on the intent is durable.
    begun: usize,
    /// From here on an action may have happened.
    started: usize,
    /// The first answer of a service: something did happen.
    changed: usize,
    /// From here on everything is committed.
    committed: usize,
}

impl Course {
    fn of(world: &World) -> Self {
        let (run, moments) = world.trace("apply");
        let data = run.exits(0).json()["data"].clone();
        let changes = |key: &str| data[key].as_array().map_or(0, Vec::len);
        assert_eq!(changes("created") + changes("updated"), CHANGES, "{data:#}");
        let all = |name: &str| -> Vec<usize> {
            moments.iter().enumerate().filter(|(_, moment)| moment.name == name).map(|(at, _)| at).collect()
        };
        let (begun, started, committed) = match world.store {
            Store::Local => {
                let lines = all("append.written");
                (all("replace.renamed")[0], lines[0], lines[lines.len() - 1])
            }
            Store::Postgres(_) => {
                let steps = all("step.committed");
                (steps[0], steps[1], steps[steps.len() - 1])
            }
        };
        let changed = all("request.answered")[0];
        Self { begun, started, changed, committed, moments }
    }

    fn blocks(&self, at: usize) -> bool {
        (self.begun..self.committed).contains(&at)
    }
}

/// Kills one after the other of a command's moments, as long as there are any.
struct Cursor {
    left: Mutex<VecDeque<Moment>>,
    met: AtomicUsize,
}

impl Cursor {
    fn of(moments: Vec<Moment>) -> Self {
        Self { left: Mutex::new(moments.into()), met: AtomicUsize::new(0) }
    }

    fn left(&self) -> MutexGuard<'_, VecDeque<Moment>> {
        self.left.lock().expect("whole")
    }

    /// The next moment at which the command was killed; a moment that it does not pass this time waits for another round.
    fn kill(&self, world: &World, line: &str) -> Option<Moment> {
        let moment = self.left().pop_front()?;
        if world.killed_at(line, &moment) {
            self.met.fetch_add(1, Ordering::SeqCst);
            return Some(moment);
        }
        self.left().push_back(moment);
        None
    }
}

/// Projects that are interrupted side by side: most of the time goes by in waiting for services.
const WORKERS: usize = 4;

/// What all of them share.
struct Matrix {
    store: Store,
    course: Course,
    plans: Cursor,
    recoveries: Cursor,
    blocked: AtomicUsize,
    unmet: Mutex<Vec<Moment>>,
}

fn matrix(store: Store) {
    let begun = Instant::now();
    let world = seeded(store);
    declare(&world, 1);
    let course = Course::of(&world);
    let changed = &course.moments[course.changed];
    let blocked = |round: usize| {
        declare(&world, round);
        assert!(world.killed_at("apply", changed));
        world.settle();
    };
    blocked(2);
    let plans = Cursor::of(trace_plan(&world));
    let first = trace_recover(&world);
    blocked(3);
    let later = trace_recover(&world);
    // What only the first recovery of a project passes is met in projects of its own.
    let firsts: Vec<Moment> = first.into_iter().filter(|moment| !later.contains(moment)).collect();
    for moment in &firsts {
        kill_first_recover(store, changed, moment);
    }
    check_names(store, course.moments.iter().chain(plans.left().iter()).chain(&later));
    let recoveries = Cursor::of(later);
    let matrix =
        Matrix { store, course, plans, recoveries, blocked: AtomicUsize::new(0), unmet: Mutex::new(Vec::new()) };
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let matrix = &matrix;
            scope.spawn(move || matrix.work(worker));
        }
    });
    let Matrix { course, plans, recoveries, blocked, unmet, .. } = matrix;
    let unmet = unmet.into_inner().expect("whole");
    println!(
        "{store:?}: {} moments of apply ({blocked:?} blocked), {:?} of recovery-plan, {} of recover, in {:?}",
        course.moments.len() - unmet.len(),
        plans.met,
        recoveries.met.into_inner() + firsts.len(),
        begun.elapsed()
    );
    assert!(unmet.iter().all(|moment| moment.name == "request.begun"), "an answer at once: {unmet:?}");
    assert_eq!(
        (plans.left.into_inner().expect("whole").len(), recoveries.left.into_inner().expect("whole").len()),
        (0, 0)
    );
}

/// The moments that a kill may not miss; more may come.
fn check_names<'a>(store: Store, moments: impl Iterator<Item = &'a Moment>) {
    let names: BTreeSet<&str> = moments.map(|moment| moment.name.as_str()).collect();
    let shared = "lock.taken request.admitted request.begun request.answered new_file.created new_file.flushed new_file.linked \
                  new_file.done lock.released";
    let own = match store {
        Store::Local => {
            "replace.created replace.half replace.synced replace.renamed replace.done append.half append.written append.done \
             pending.created pending.half pending.synced commit.line commit.renamed commit.done recovery.intent recovery.resolution"
        }
        Store::Postgres(_) => "step.begun step.written step.committed step.verified",
    };
    for name in shared.split_whitespace().chain(own.split_whitespace()) {
        assert!(names.contains(name), "{store:?}: {name} is not passed");
    }
}

fn kill_first_recover(store: Store, changed: &Moment, moment: &Moment) {
    let world = seeded(store);
    declare(&world, 1);
    assert!(world.killed_at("apply", changed));
    world.settle();
    let operation = world.operation();
    let resolved = resolve_with(&world, "observed", |line| {
        assert!(world.killed_at(line, moment), "{moment}");
        let left = world.operation();
        assert!(left["status"] == "clear" || left == operation, "recover killed at {moment}: {left}");
    });
    check_end(&world, &resolved, "observed", &format!("{store:?}, the first recovery killed at {moment}"));
}

fn seeded(store: Store) -> World {
    let world = World::new("matrix", store);
    declare(&world, 0);
    world.run("apply").exits(0);
    world
}

impl Matrix {
    /// Every fourth moment.
    fn work(&self, worker: usize) {
        let world = seeded(self.store);
        for at in (worker..self.course.moments.len()).step_by(WORKERS) {
            declare(&world, at + 1);
            self.interrupt(&world, at);
        }
        declare(&world, self.course.moments.len() + 1);
        world.run("apply").exits(0);
        world.run("plan --detailed-exitcode").exits(0);
        assert_eq!(world.owned("direct-kafka"), world.topics(), "ownership is exactly what exists");
    }

    fn interrupt(&self, world: &World, at: usize) {
        let (course, moment) = (&self.course, &self.course.moments[at]);
        if !world.killed_at("apply", moment) {
            self.unmet.lock().expect("whole").push(moment.clone());
            return;
        }
        let context = format!("{:?}, killed at {moment}", self.store);
        let operation = world.operation();
        let status = if course.blocks(at) { "in_progress" } else { "clear" };
        assert_eq!(operation["status"], status, "{context}: {operation}");
        if status == "clear" {
            world.run("plan").exits(0);
            return;
        }
        self.blocked.fetch_add(1, Ordering::SeqCst);
        kill_tidying(world, moment);
        assert_eq!(world.refused("plan"), "E419_STATE_RECOVERY_REQUIRED", "{context}");
        if moment.name.starts_with("request.") {
            world.settle();
        }
        let resolution = resolution(world, course, at, &context);
        kill_plan(world, &self.plans, &operation, &context);
        let resolved = resolve_with(world, resolution, |line| kill_recover(world, &self.recoveries, line, &operation));
        check_end(world, &resolved, resolution, &context);
    }
}

/// The next command finds a line cut short, or an ownership that nothing points at, and is killed while it clears that away.
fn kill_tidying(world: &World, moment: &Moment) {
    let tidying = match moment.name.as_str() {
        "append.half" => "settle.cut",
        "pending.created" | "pending.half" | "pending.synced" => "settle.removed",
        _ => return,
    };
    assert!(world.killed_at("plan", &Moment::new(tidying, 1)), "{tidying} after {moment}");
}

/// A resolution that is legal here, after each that is not was refused: the three take turns.
fn resolution(world: &World, course: &Course, at: usize, context: &str) -> &'static str {
    let file = new_file();
    let refused = |resolution: &str| {
        let code = world.refused(&plan_line(resolution, &file));
        assert!(!world.workspace.path(&file).exists(), "{context}");
        code
    };
    match (at / WORKERS) % 3 {
        0 if at < course.started => "abandoned_before_mutation",
        0 => {
            assert_eq!(refused("abandoned_before_mutation"), "E419_STATE_RECOVERY_REQUIRED", "{context}");
            "observed"
        }
        1 if at < course.changed && course.moments[at].name != "request.begun" => "rolled_back",
        1 if at > course.changed => {
            assert_eq!(refused("rolled_back"), "E409_PLAN_STALE", "{context}");
            "observed"
        }
        _ => "observed",
    }
}

fn trace_plan(world: &World) -> Vec<Moment> {
    let (run, moments) = world.trace(&plan_line("observed", &new_file()));
    run.exits(0);
    moments
}

/// A killed `state recovery-plan` changes nothing, and leaves its file whole or not at all.
fn kill_plan(world: &World, cursor: &Cursor, operation: &Value, context: &str) {
    let file = new_file();
    let Some(moment) = cursor.kill(world, &plan_line("observed", &file)) else { return };
    let context = format!("{context}, then recovery-plan at {moment}");
    assert_eq!(world.operation(), *operation, "{context}");
    if world.workspace.path(&file).exists() {
        let review = world.data(&format!("review {file}"));
        assert_eq!(review["blocked_operation_id"], operation["operation_id"], "{context}");
    } else {
        assert!(!["new_file.linked", "new_file.done"].contains(&moment.name.as_str()), "{context}");
        world.run(&plan_line("observed", &file)).exits(0);
    }
}

fn trace_recover(world: &World) -> Vec<Moment> {
    let file = new_file();
    let planned = world.data(&plan_line("observed", &file));
    let (run, moments) = world.trace(&recover_line(&file, &planned));
    assert_eq!(run.exits(0).json()["data"]["state_changed"], true, "a recovery with every moment");
    moments
}

/// A killed `state recover` is decided or not; the same command again ends it (checked by the caller's).
fn kill_recover(world: &World, cursor: &Cursor, line: &str, operation: &Value) {
    let Some(moment) = cursor.kill(world, line) else { return };
    let left = world.operation();
    assert!(left["status"] == "clear" || left == *operation, "recover killed at {moment}: {left}");
}

/// SAF-030: the next plan holds what was not done, and nothing else.
fn check_end(world: &World, resolved: &Resolved, resolution: &str, context: &str) {
    assert_eq!(resolved.done["control_status"], "clear", "{context}");
    assert_eq!(world.run(&resolved.line).exits(0).json()["data"], resolved.done, "{context}: told the same again");
    let plan = world.data("plan");
    let summary = &plan["summary"];
    let remaining = summary["creates"].as_u64().unwrap_or(0) + summary["updates"].as_u64().unwrap_or(0);
    let expected = match resolution {
        "observed" => resolved.count("prior"),
        _ => CHANGES,
    };
    assert_eq!(remaining, expected as u64, "{context}, {resolution}: {plan:#}");
    assert_eq!(summary["ownership_requirements"], json!(0), "{context}");
}

/// SAF-030, PGS-013, REC-001, REC-009, REC-010, REC-011, REC-012, REC-013, REC-027, REC-035, REC-037, REC-072: killed at any moment
/// of an apply, of its recovery plan or of its recovery, the state can be read, the next command says what is right, and the
/// runbook reaches an end that the next plan proves.
#[test]
fn killed_at_any_moment_with_local_state() {
    matrix(Store::Local);
}

/// The same; REC-034: no row of a recovery stands without the others.
#[test]
fn killed_at_any_moment_with_state_in_postgres_14() {
    matrix(Store::Postgres("14"));
}

/// The same.
#[test]
fn killed_at_any_moment_with_state_in_postgres_18() {
    matrix(Store::Postgres("18"));
}
