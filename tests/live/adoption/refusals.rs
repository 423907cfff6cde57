//! What is not adopted, with its code, and that nothing is written then.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use super::ground::{adopt_line, create_subject, create_topic, live, settled, stored};
use crate::estate::service;
use crate::faults::{Fault, Order, Proxy, nth};
use crate::harness::Run;
use crate::interruption::world::{REMOTE, Store, World};
use streamt::compiler::artifact::SchemaType;
use streamt::providers::kafka::{ConfigRead, TopicUpdate};

/// ADO-003, ADO-008, ADO-009, ADO-010, ADO-013
#[test]
fn an_adoption_that_is_not_exactly_confirmed_or_not_declared_writes_nothing() {
    for store in [Store::Local, REMOTE[0]] {
        let world = settled("refused", store);
        let before = (stored(&world), live(&world));
        let good = adopt_line(&world, "topic", "a");
        let other = format!("streamt://{}/default/topic/b", world.prefix);
        let own = format!("streamt://{}/default/topic/a", world.prefix);
        for (line, code) in [
            ("adopt --kind topic --name a".to_owned(), "E414_ADOPTION_CONFIRMATION_REQUIRED"),
            (good.replace(&own, &other), "E414_ADOPTION_CONFIRMATION_REQUIRED"),
            (good.replace(&own, &own.to_uppercase()), "E414_ADOPTION_CONFIRMATION_REQUIRED"),
            (good.replace("--confirm-env default", "--confirm-env prod"), "E414_ADOPTION_CONFIRMATION_REQUIRED"),
            (good.replace("--confirm-env default", ""), "E412_ADOPTION_TARGET_INVALID"),
            (good.replace(&format!("--confirm-resource {own}"), ""), "E412_ADOPTION_TARGET_INVALID"),
            (good.replace("--name a", "--name nobody"), "E412_ADOPTION_TARGET_INVALID"),
            (good.replace("--kind topic", "--kind schema"), "E412_ADOPTION_TARGET_INVALID"),
        ] {
            let run = world.run(&line).exits(1);
            assert_eq!(run.errors()[0].0, code, "{line}: {}", run.stdout);
            assert_eq!((stored(&world), live(&world)), before, "{line}");
        }
        let unconfirmed = world.run("adopt --kind topic --name a").exits(1);
        let data = &unconfirmed.json()["data"];
        assert_eq!(data["observed"]["partitions"], 2, "the review comes with the refusal: {data:#}");
        assert_eq!((&data["adopted"], &data["committed"]), (&json!(false), &json!(false)));
        let hint = unconfirmed.json()["errors"][0]["suggestion"].to_string();
        assert!(hint.contains(&own) && hint.contains("--confirm-env default"), "{hint}");

        world.declare("  - {name: a, description: d, topic: {name: PREFIX.a, partitions: 2, replication_factor: 1}}\n");
        assert_eq!(world.refused(&good), "E412_ADOPTION_TARGET_INVALID", "managed is not adopted");
        world.declare("  - {name: a, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.gone, partitions: 2, replication_factor: 1}}\n");
        assert_eq!(world.refused(&good), "E413_ADOPTION_LIVE_NOT_FOUND");
        world.declare("  - {name: a, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.a, partitions: 2, replication_factor: 1}}\n");
        world.data(&good);
        let stood = stored(&world);
        // Another declaration of the same topic, and the same name for another one.
        world.declare("  - {name: z, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.a, partitions: 2, replication_factor: 1}}\n");
        assert_eq!(world.refused(&adopt_line(&world, "topic", "z")), "E415_ADOPTION_STATE_CONFLICT");
        world.declare("  - {name: a, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.b, partitions: 1, replication_factor: 1}}\n");
        assert_eq!(world.refused(&good), "E415_ADOPTION_STATE_CONFLICT");
        assert_eq!(stored(&world), stood);
    }
}

/// ADO-001, ADO-003: what changes between the review and the claim is not claimed.
#[test]
fn a_resource_that_changes_after_its_review_is_not_adopted() {
    let mut world = settled("drift", Store::Local);
    let order = Order::default();
    let kafka = Proxy::kafka(&order, &service("STREAMT_TEST_KAFKA"));
    world.kafka = kafka.address().to_owned();
    world.declare(super::ground::AS_THEY_ARE);
    let topic = format!("{}.a", world.prefix);
    let grown = topic.clone();
    // Between the two reads somebody sets another retention.
    let met = kafka.rule(
        nth(2, |request| request.what == "DescribeConfigs"),
        Fault::call(move |_| {
            change_retention(&grown);
            std::thread::sleep(std::time::Duration::from_millis(500));
        }),
    );
    let run = world.run(&adopt_line(&world, "topic", "a")).exits(1);
    assert_eq!((met.count(), run.errors()[0].0.as_str()), (1, "E414_ADOPTION_CONFIRMATION_REQUIRED"), "{}", run.stdout);
    let data = run.json()["data"].clone();
    assert_eq!(data["observed"]["config"]["retention.ms"], "60000", "what is there now is shown: {data:#}");
    assert_eq!(data["committed"], false);
    assert!(!world.workspace.path(".streamt/state/default.json").exists());
    let status = world.data("state status");
    assert_eq!(status["operation_status"]["status"], "clear");
    assert!(topic.ends_with(".a"));
}

fn change_retention(topic: &str) {
    crate::estate::with_kafka(async |kafka, ctx| {
        let names = [topic.to_owned()];
        let seen = kafka.observe_topics(ctx, &names, ConfigRead::Strict).await.expect("read").remove(topic);
        let update = TopicUpdate {
            current: seen.expect("the topic"),
            desired: crate::support::topic(topic, 2, &[("retention.ms", "60000")]),
        };
        kafka.update_topic(ctx, &crate::support::Open, &update).await.expect("changed");
    });
}

/// ADO-009: on a terminal the exact words are asked for, and nothing else confirms.
#[test]
fn the_exact_words_confirm_on_a_terminal() {
    let world = settled("typed", Store::Local);
    let words = format!("adopt streamt://{}/default/topic/a in default", world.prefix);
    let typed = |input: &str| {
        let line = "adopt --kind topic --name a";
        let binary = env!("CARGO_BIN_EXE_streamt");
        let mut child = Command::new("script")
            .args(["-qefc", &format!("'{binary}' {line}"), "/dev/null"])
            .current_dir(world.workspace.root())
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("script(1), of util-linux, makes the terminal");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("typed");
        Run::of(line, child.wait_with_output().expect("an end"))
    };
    for wrong in ["yes\n", "\n", "", "adopt\n"] {
        let run = typed(wrong).exits(1);
        assert!(run.stdout.contains("E414_ADOPTION_CONFIRMATION_REQUIRED"), "{wrong:?}: {}", run.stdout);
        assert!(!world.workspace.path(".streamt/state/default.json").exists(), "{wrong:?}");
    }
    let run = typed(&format!("{words}\n")).exits(0);
    assert!(run.stdout.contains(&format!("Type '{words}' to adopt it:")), "{}", run.stdout);
    let question = run.stdout.find("Type '").expect("a question");
    assert!(run.stdout.find("partitions:").is_some_and(|at| at < question), "the review comes first: {}", run.stdout);
    assert!(run.stdout.contains("[adopted]") && run.stdout.contains("(serial 1)"), "{}", run.stdout);
}

/// ADO-016, SEC-003: neither output, nor a saved selection, nor the store holds a schema's body or a value under a sensitive key.
#[test]
fn no_body_and_no_sensitive_value_is_shown_or_stored() {
    let world = World::new("secret", REMOTE[1]);
    let name = format!("{}.a", world.prefix);
    create_topic(&name, 1, &[]);
    let body = json!({"type": "record", "name": "R", "fields": [{"name": "s3ntinel_live", "type": "string"}]});
    create_subject(&format!("{name}-value"), SchemaType::Avro, body);
    world.settle();
    world.declare(
        "  - {name: a, description: d, ownership: {mode: adopted}, topic: {name: PREFIX.a, partitions: 1, replication_factor: 1, config: {my.password: s3ntinel-topic}}, schema: {subject: PREFIX.a-value, format: avro, definition: '{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"s3ntinel_declared\",\"type\":\"string\"}]}'}}\n",
    );
    let mut told = String::new();
    for line in [
        "adopt --kind schema --name a".to_owned(),
        "adopt --kind topic --name a".to_owned(),
        "adopt --save-selection s.json -vvv".to_owned(),
        adopt_line(&world, "schema", "a"),
        format!("{} -vvv", adopt_line(&world, "topic", "a")),
    ] {
        let run = world.run(&line);
        told.push_str(&run.stdout);
        told.push_str(&run.stderr);
        let text = world.workspace.run(&line);
        told.push_str(&text.stdout);
        told.push_str(&text.stderr);
    }
    told.push_str(&std::fs::read_to_string(world.workspace.path("s.json")).expect("a file"));
    told.push_str(&stored(&world));
    assert!(told.contains("my.password") && told.contains("sha256:"), "the control");
    assert!(!told.contains("s3ntinel"), "{}", told.lines().find(|line| line.contains("s3ntinel")).unwrap_or_default());
    assert_eq!(world.owned("direct-kafka"), [name]);
}
