//! Changes that take two requests, and requests that are still on their way when their sender is gone.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};
use streamt::compiler::artifact::TopicArtifact;
use streamt::providers::kafka::{ConfigRead, TopicUpdate};

use super::resolve::{new_file, plan_line, recover_line, resolve};
use super::world::{MODELS, Moment, STORES, World};
use crate::estate::{Proxy, with_kafka};
use crate::support::{Open, eventually, ownership, registry};

/// E409 with one target in a third state; its differences.
#[track_caller]
fn third_state(world: &World) -> Value {
    let run = world.run(&plan_line("observed", &new_file())).exits(1);
    assert_eq!(run.errors()[0].0, "E409_PLAN_STALE", "{}", run.stdout);
    let target = run.json()["data"]["targets"][0].clone();
    assert_eq!((&target["reason"], &target["accepted_as"]), (&json!("third_state"), &Value::Null), "{target}");
    assert_eq!(world.operation()["status"], "in_progress");
    target["differences"].clone()
}

/// REC-009, REC-014, REC-044, REC-067: killed between the two requests of a topic's update.
#[test]
fn a_topic_with_half_of_its_update_is_brought_to_its_declared_form_and_recorded() {
    for store in STORES {
        let world = World::new("half", store);
        let model = |partitions: u32, retention: u64| {
            format!(
                "  - {{name: t, description: d, topic: {{name: PREFIX.t, partitions: {partitions}, replication_factor: 1, config: {{retention.ms: {retention}}}}}}}\n"
            )
        };
        world.declare(&model(1, 86_400_000));
        world.run("apply").exits(0);
        world.declare(&model(3, 90_000_000));
        assert!(world.killed_at("apply", &Moment::new("request.answered", 1)));
        world.settle();
        let differences = third_state(&world);
        assert_eq!(differences, json!({"config.retention.ms": {"from": "86400000", "to": "90000000"}}));

        let name = format!("{}.t", world.prefix);
        with_kafka(async |kafka, ctx| {
            let names = [name.clone()];
            let current = kafka
                .observe_topics(ctx, &names, ConfigRead::Strict)
                .await
                .expect("read")
                .remove(&name)
                .expect("there");
            let config = [("retention.ms".to_owned(), "90000000".to_owned())].into();
            let desired = TopicArtifact {
                name: name.clone(),
                partitions: 3,
                replication_factor: 1,
                config,
                ownership: ownership(),
            };
            kafka.update_topic(ctx, &Open, &TopicUpdate { current, desired }).await.expect("aligned");
        });
        let done = resolve(&world, "observed");
        assert_eq!((done.count("candidate"), &done.done["state_serial"]), (1, &json!(2)));
        world.run("plan --detailed-exitcode").exits(0);
    }
}

fn evolving(fields: usize, level: &str) -> String {
    let field = |i: usize| format!(r#",{{"name":"f{i}","type":["null","string"],"default":null}}"#);
    let fields: String = (0..fields).map(field).collect();
    format!(
        "  - {{name: s, description: d, topic: {{name: PREFIX.s, partitions: 1, replication_factor: 1}}, schema: {{subject: PREFIX.s-value, format: avro, compatibility: {level}, definition: '{{\"type\":\"record\",\"name\":\"R\",\"fields\":[{{\"name\":\"id\",\"type\":\"string\"}}{fields}]}}'}}}}\n"
    )
}

/// REC-041, REC-043, REC-057, REC-067: killed between the registration and the level of a schema's update; either form ends it.
#[test]
fn a_subject_with_half_of_its_update_is_brought_to_either_form_and_resolved() {
    for store in STORES {
        let world = World::new("level", store);
        world.declare(&evolving(0, "BACKWARD"));
        world.run("apply").exits(0);
        let subject = format!("{}.s-value", world.prefix);

        world.declare(&evolving(1, "FULL"));
        assert!(world.killed_at("apply", &Moment::new("request.answered", 1)));
        let differences = third_state(&world);
        assert_eq!(differences["compatibility"], json!({"from": "BACKWARD", "to": "FULL"}), "{differences}");
        registry("DELETE", &format!("subjects/{subject}/versions/2"), None);
        let back = resolve(&world, "rolled_back");
        assert_eq!((back.count("prior"), &back.done["state_serial"]), (1, &json!(1)));
        assert_eq!(world.data("plan")["summary"]["updates"], 1);

        assert!(world.killed_at("apply", &Moment::new("request.answered", 1)));
        third_state(&world);
        registry("PUT", &format!("config/{subject}"), Some(r#"{"compatibility":"FULL"}"#));
        let done = resolve(&world, "observed");
        assert_eq!((done.count("candidate"), &done.done["state_serial"]), (1, &json!(2)));
        world.run("plan --detailed-exitcode").exits(0);
    }
}

/// A proxy before the registry that keeps the first registration back, and what lets it pass.
struct Held {
    proxy: Proxy,
    seen: Receiver<()>,
    go: Sender<()>,
}

impl Held {
    fn start() -> Self {
        let (told, seen) = channel();
        let (go, held) = channel::<()>();
        let held = Mutex::new(held);
        let proxy = Proxy::start(move |line| {
            if line.starts_with("POST") {
                let _ = told.send(());
                let _ = held.lock().map(|held| held.recv_timeout(Duration::from_secs(120)));
            }
        });
        Self { proxy, seen, go }
    }

    /// An apply that is killed while its registration is under way.
    fn kill_apply(&self, world: &World) {
        let mut apply = world.spawn("apply");
        self.seen.recv_timeout(Duration::from_secs(60)).expect("a registration");
        apply.kill().expect("killed");
        apply.wait().expect("gone");
        assert_eq!(world.refused("plan"), "E419_STATE_RECOVERY_REQUIRED");
    }

    /// Lets the registration arrive, and waits until the subject has these versions.
    fn arrive(&self, subject: &str, versions: Value) {
        self.go.send(()).expect("still held");
        let path = format!("subjects/{subject}/versions");
        let there = eventually(|| registry("GET", &path, None), |there| *there == versions);
        assert_eq!(there, versions, "the registration never arrived");
    }
}

/// SAF-030, REC-015, REC-033, REC-041: a schema update whose request is still under way when its sender is killed. Evidence that is
/// taken too early is refused; what arrived is recorded.
#[test]
fn a_schema_update_that_arrives_after_its_sender_was_killed_is_recorded() {
    for store in STORES {
        let held = Held::start();
        let mut world = World::new("late", store);
        world.declare(&evolving(0, "BACKWARD"));
        world.run("apply").exits(0);
        world.registry.clone_from(&held.proxy.url);
        world.declare(&evolving(1, "BACKWARD"));
        held.kill_apply(&world);

        let file = new_file();
        let early = world.data(&plan_line("observed", &file));
        assert_eq!(early["targets"][0]["accepted_as"], "prior");
        let subject = format!("{}.s-value", world.prefix);
        held.arrive(&subject, json!([1, 2]));
        assert_eq!(world.refused(&recover_line(&file, &early)), "E409_PLAN_STALE");
        let done = resolve(&world, "observed");
        assert_eq!((done.count("candidate"), &done.done["state_serial"]), (1, &json!(2)));
        world.run("plan --detailed-exitcode").exits(0);
        assert_eq!(registry("GET", &format!("subjects/{subject}/versions"), None), json!([1, 2]));
        assert_eq!(held.proxy.changes().len(), 1, "nothing was registered again: {:?}", held.proxy.changes());
    }
}

/// REC-005, REC-014: what arrives only after the recovery belongs to nobody; it is shown, and not taken over.
#[test]
fn a_subject_that_arrives_after_the_recovery_is_shown_as_not_owned() {
    for store in STORES {
        let held = Held::start();
        let mut world = World::new("later", store);
        world.registry.clone_from(&held.proxy.url);
        world.declare(MODELS);
        held.kill_apply(&world);
        let done = resolve(&world, "observed");
        assert_eq!((done.count("prior"), &done.done["state_changed"]), (3, &json!(false)));
        held.arrive(&format!("{}.b-value", world.prefix), json!([1]));
        let plan = world.data("plan");
        assert_eq!(plan["summary"]["ownership_requirements"], 1, "{plan:#}");
        assert_eq!(world.refused("apply"), "E410_OWNERSHIP_REQUIRED");
        assert_eq!(held.proxy.changes().len(), 1, "{:?}", held.proxy.changes());
    }
}
