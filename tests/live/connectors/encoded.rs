//! The removal of connectors whose names cannot stand in a path as they are. A sink here is named after its model; a record of
//! another name is what an administrator writes for a connector that another tool had deployed.

use serde_json::{Value, json};
use streamt::compiler::canonical::Checksum;
use streamt::providers::kafka::ConfigRead;

use super::records;
use super::yard::{State, Yard};
use crate::estate::with_kafka;
use crate::load::Load;
use crate::losses::site::on_each_major;
use crate::support::registry;

/// As one path segment.
fn encode(name: &str) -> String {
    let unreserved = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    name.bytes()
        .map(|byte| if unreserved(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// CRM-003, REL-007, REL-008, REL-009: the reviewed workflow through the built program, at a connector whose name is that of
/// its sink and `rest`.
pub fn named(worker: &str, admin: &str, rest: &str) {
    let mut yard = Yard::under(worker, State::Postgres(admin.to_owned()), &["gone", "kept"], Load::Alone);
    yard.subject = true;
    yard.declare(&["gone", "kept"], &[]);
    yard.run("apply -o json").exits(0);
    let (gone, name) = (yard.name("gone"), format!("{}{rest}", yard.name("gone")));
    let path = format!("/connectors/{}", encode(&name));
    let mut config = yard.worker.config(&gone).expect("a connector");
    config["name"] = json!(name);
    yard.worker.delete(&gone);
    yard.worker.put(&encode(&name), &config);
    rename(&yard, &gone, &name, &config);

    let document = || yard.worker.settled("GET", &format!("/connectors/{}", yard.name("kept")), None).1.to_string();
    let around =
        || (document(), topics(&yard), registry("GET", &format!("subjects/{}-value/versions", yard.topic()), None));
    let before = around();
    yard.write(
        &yard.yaml(&["kept"], &["gone"]).replace(
            &format!("logical_owner: {gone}, name: {gone}"),
            &format!("logical_owner: {gone}, name: '{name}'"),
        ),
    );
    yard.run("plan --out plan.json -o json").exits(0);
    let refused = yard.run("apply --plan plan.json --confirm-env default -o json").exits(1).json();
    assert_eq!(refused["errors"][0]["code"], "E503_ENVIRONMENT_ERROR", "{refused}");
    let mark = yard.order.mark("apply");
    let applied = yard.apply_plan().exits(0).json();
    assert_eq!(applied["data"]["deleted"], json!([format!("connector:{name}")]), "{applied}");
    let deletes: Vec<String> = yard.since(mark).into_iter().filter(|what| what.starts_with("DELETE")).collect();
    assert_eq!(deletes, [format!("DELETE {path}")]);

    assert_eq!(yard.worker.settled("GET", &path, None).0, 404);
    assert_eq!(yard.records().iter().filter(|id| id.contains("/connector/")).count(), 1, "{:?}", yard.records());
    assert_eq!(around(), before, "another connector, the topic, the subject");
}

/// Puts the record of `gone` to a connector of another name that is live with `config`.
fn rename(yard: &Yard, gone: &str, name: &str, config: &Value) {
    let artifact = json!({
        "name": name,
        "connector_class": config["connector.class"],
        "topics": [config["topics"]],
        "cluster": "main",
        "config": config,
        "ownership": {"mode": "managed", "project": yard.project, "type": "model", "name": gone},
    });
    let mut state = records::read(yard);
    let record = &mut state["resources"][format!("streamt://{}/default/connector/{gone}", yard.project)];
    record["physical_name"] = json!(name);
    record["artifact_checksum"] = json!(Checksum::of(&artifact).expect("a sum").as_str());
    records::replace(yard, &state);
}

/// The topics of the project, as the broker describes them.
fn topics(yard: &Yard) -> String {
    let names = [yard.topic()];
    let seen = with_kafka(async |kafka, ctx| {
        (kafka.topic_ids(ctx, &names).await, kafka.observe_topics(ctx, &names, ConfigRead::Strict).await)
    });
    assert!(seen.0.is_ok() && seen.1.is_ok(), "{seen:?}");
    format!("{seen:?}")
}

#[test]
fn a_connector_whose_name_must_be_encoded_is_removed_and_nothing_else_moves() {
    on_each_major(|admin| named("STREAMT_TEST_CONNECT", admin, " a é#?"));
}
