//! What belongs to others is declared, drawn and, on request, looked at; it is never asked for by a plan and never changed.

use crate::cli::{service, workspace};
use crate::harness::Workspace;
use crate::kafka_wire::proxy;

const MODELS: &str = "  - {name: own, description: d, topic: {name: PREFIX.own, partitions: 1, replication_factor: 1}}
  - {name: theirs, description: d, ownership: {mode: external}, topic: {name: PREFIX.theirs, partitions: 3, replication_factor: 1}}
sources:
  - {name: feed, topic: PREFIX.feed, ownership: {mode: external}}
exposures:
  - {name: app, type: application, consumes: [{source: feed}, {ref: theirs}]}
";

fn through(workspace: &Workspace, address: &str) {
    crate::cli::edit(workspace, &service("STREAMT_TEST_KAFKA"), address);
}

/// EXP-009 EXP-013 LIM-021: with a positive control that the wire would have shown the name.
#[tokio::test]
async fn plan_and_apply_send_no_request_for_what_is_external() {
    let (address, wire) = proxy(service("STREAMT_TEST_KAFKA")).await;
    let (ran, prefix) = tokio::task::spawn_blocking(move || {
        let (workspace, prefix) = workspace("external", MODELS);
        through(&workspace, &address);
        let plan = workspace.run("plan -o json").exits(0).json();
        assert_eq!((&plan["data"]["creates"], &plan["data"]["updates"]), (&1.into(), &0.into()), "{plan}");
        let applied = workspace.run("apply -o json").exits(0).json();
        assert_eq!(applied["data"]["created"], serde_json::json!([format!("topic:{prefix}.own")]), "{applied}");
        assert_eq!(workspace.run("plan --detailed-exitcode").exits(0).exit, 0);
        (workspace, prefix)
    })
    .await
    .expect("no panic");
    let said = |name: &str| wire.said(&format!("{prefix}.{name}"));
    assert!(said("own"), "the wire was not seen");
    assert!(!said("theirs") && !said("feed"));
    let live = crate::estate::with_kafka(async |kafka, ctx| kafka.list_topics(ctx).await.expect("names"));
    assert!(live.contains(&format!("{prefix}.own")) && !live.contains(&format!("{prefix}.theirs")));
    let state = std::fs::read_to_string(ran.path(".streamt/state/default.json")).expect("a state");
    assert!(!state.contains("theirs") && !state.contains("feed"), "{state}");
}

/// EXP-010 EXP-011
#[test]
fn status_looks_at_what_is_external_only_when_asked() {
    let (workspace, prefix) = workspace("include", MODELS);
    workspace.run("apply").exits(0);
    let plain = workspace.run("status --health -o json").exits(0).json();
    assert_eq!(plain["data"]["topics"].as_array().map(Vec::len), Some(1), "{plain}");
    assert_eq!(plain["data"]["external_resources"][0]["observation"], "not_requested", "{plain}");
    assert_eq!(plain["data"]["source_topics"][0]["exists"], serde_json::Value::Null, "{plain}");
    let asked = workspace.run("status --include-external --health -o json").exits(1).json();
    assert_eq!(asked["data"]["source_topics"][0]["exists"], false, "{asked}");
    assert_eq!(asked["data"]["external_resources"][0]["name"], format!("{prefix}.theirs"));
    assert_eq!(asked["data"]["external_resources"][0]["observation"], "verified", "{asked}");
}
