//! `adopt` without a service: what it refuses before it asks anybody, with its code, and that nothing is written then.

use serde_json::json;

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime: {kafka: {bootstrap_servers: '127.0.0.1:1'}}
models:
  - {name: orders, description: d, ownership: {mode: adopted}, topic: {name: orders.v1, partitions: 1, replication_factor: 1}}
  - {name: ours, description: d, topic: {name: ours.v1, partitions: 1, replication_factor: 1}}
";

fn workspace() -> Workspace {
    Workspace::project(PROJECT)
}

/// A selection as saving one writes it: its checksum is the digest of the rest, by any implementation of it.
fn selection(change: impl FnOnce(&mut serde_json::Value)) -> (String, String) {
    let sum = format!("sha256:{}", "0".repeat(64));
    let mut document = json!({
        "kind": "streamt.adoption-selection", "format_version": 1, "streamt_version": "0.1.0", "project": "shop",
        "environment": "default", "environment_fingerprint": sum, "manifest_checksum": sum,
        "state": {
            "backend": "local", "store_id": "6f1c1d0e-3b1a-4c52-9d59-0d9f7a1c2b30",
            "address": "streamt-state://local/shop/default", "serial": 0, "checksum": sum,
        },
        "resources": [{
            "resource_id": "streamt://shop/default/topic/orders", "kind": "topic", "physical_name": "orders.v1",
            "backend": "direct-kafka", "artifact_checksum": sum, "observation_fingerprint": sum,
        }],
    });
    change(&mut document);
    let checksum = streamt::compiler::canonical::Checksum::of(&document).unwrap().to_string();
    document["checksum"] = json!(checksum);
    (document.to_string(), format!("adopt:default:{checksum}"))
}

/// ADO-006, LIM-018: each form takes its own options and no other.
#[test]
fn the_forms_of_an_adoption_are_not_mixed() {
    let workspace = workspace();
    let before = workspace.snapshot();
    for line in [
        "adopt",
        "adopt --kind topic",
        "adopt --name orders",
        "adopt --kind topic --kind schema --name orders",
        "adopt --kind topic --name orders --name ours",
        "adopt --kind nonsense --name orders",
        "adopt --kind topic --name orders --confirm-token x",
        "adopt --kind topic --name orders --include x",
        "adopt --save-selection s.json --name orders",
        "adopt --save-selection s.json --confirm-token x",
        "adopt --save-selection s.json --confirm-env default",
        "adopt --save-selection s.json --selection s.json",
        "adopt --selection s.json --confirm-token x --kind topic",
        "adopt --selection s.json --confirm-token x --name orders",
        "adopt --selection s.json --confirm-token x --exclude o",
        "adopt --selection s.json --confirm-resource streamt://shop/default/topic/orders --confirm-token x",
    ] {
        let run = workspace.run(&format!("{line} -o json")).exits(2);
        assert_eq!(run.errors()[0].0, "E902_USAGE", "{line}");
        assert_eq!(workspace.snapshot(), before, "{line}");
    }
}

/// ADO-008, ADO-010: the name of one adopted declaration, both confirmations or none.
#[test]
fn what_names_no_adopted_declaration_is_refused_before_anybody_is_asked() {
    let workspace = workspace();
    let before = workspace.snapshot();
    for (options, hint) in [
        ("--kind topic --name order", "Did you mean 'orders'?"),
        ("--kind topic --name orders.v1", "orders"),
        ("--kind topic --name ours", "ownership: {mode: adopted}"),
        ("--kind schema --name orders", "declares no schema"),
        ("--kind flink_job --name orders", "kinds that can be adopted"),
        ("--kind kafka_streams_job --name orders", "kinds that can be adopted"),
        ("--kind gateway_rule --name orders", "kinds that can be adopted"),
        ("--kind topic --name orders --confirm-env default", "give both"),
        ("--kind topic --name orders --confirm-resource streamt://shop/default/topic/orders", "give both"),
        ("--save-selection s.json --kind schema", "recorded already"),
    ] {
        let run = workspace.run(&format!("adopt {options} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E412_ADOPTION_TARGET_INVALID", "{options}: {}", run.stdout);
        let told = run.json()["errors"][0]["suggestion"].as_str().unwrap_or_default().to_owned();
        assert!(told.contains(hint), "{options}: {told}");
        let state = workspace.path(".streamt/state/default.json");
        assert!(!state.exists(), "{options}");
    }
    // Only the form that looks at the state has made its directory.
    std::fs::remove_dir_all(workspace.path(".streamt")).unwrap();
    assert_eq!(workspace.snapshot(), before);
}

/// ADO-043: the file first, then the token, both before the project is looked at.
#[test]
fn a_selection_needs_a_sound_file_and_exactly_its_token() {
    let workspace = Workspace::new();
    let (text, token) = selection(|_| {});
    workspace.write("s.json", &text);
    let refused = |line: &str, code: &str| {
        let run = workspace.run(&format!("{line} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, code, "{line}: {}", run.stdout);
    };
    refused("adopt --selection s.json", "E414_ADOPTION_CONFIRMATION_REQUIRED");
    refused("adopt --selection s.json --confirm-token adopt", "E414_ADOPTION_CONFIRMATION_REQUIRED");
    for wrong in [token.replace("default", "prod"), token.to_uppercase(), format!("{token}0")] {
        refused(&format!("adopt --selection s.json --confirm-token {wrong}"), "E414_ADOPTION_CONFIRMATION_REQUIRED");
    }
    // The right token goes on to the project, which is not there.
    refused(&format!("adopt --selection s.json --confirm-token {token}"), "E501_PARSE_ERROR");
    for (name, text) in [
        ("edited", text.replace("orders.v1", "orders.v2")),
        ("cut", text[..text.len() / 2].to_owned()),
        ("plan", "{\"kind\": \"streamt.reviewed-plan\"}".to_owned()),
        ("empty", String::new()),
        ("version", selection(|document| document["format_version"] = json!(2)).0),
        ("other", selection(|document| document["project"] = json!("another")).0),
    ] {
        workspace.write(&format!("{name}.json"), &text);
        refused(&format!("adopt --selection {name}.json --confirm-token {token}"), "E408_PLAN_FILE_INVALID");
        refused(&format!("review {name}.json"), "E408_PLAN_FILE_INVALID");
    }
    refused(&format!("adopt --selection absent.json --confirm-token {token}"), "E408_PLAN_FILE_INVALID");
    std::os::unix::fs::symlink(workspace.path("s.json"), workspace.path("link.json")).unwrap();
    refused(&format!("adopt --selection link.json --confirm-token {token}"), "E408_PLAN_FILE_INVALID");
    let review = workspace.run("review s.json").exits(0);
    assert!(review.stdout.contains(&token) && review.stdout.contains("orders.v1"), "{}", review.stdout);
}

/// SAF-024: the policy of the environment, before anything else of it; and the one environment's own name.
#[test]
fn an_environment_that_requires_remote_state_adopts_nothing_locally() {
    let workspace = Workspace::project(&PROJECT.replace("runtime: {kafka: {bootstrap_servers: '127.0.0.1:1'}}\n", "")).file(
        "environments/prod.yml",
        "environment: {name: prod}\nsafety: {require_remote_state: true}\nruntime: {kafka: {bootstrap_servers: '127.0.0.1:1'}}\n",
    );
    let refused = |options: &str, code: &str| {
        let run = workspace.run(&format!("adopt --kind topic --name orders {options} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, code, "{options}: {}", run.stdout);
    };
    refused("-e prod", "E421_REMOTE_STATE_REQUIRED");
    refused("", "E503_ENVIRONMENT_ERROR");
    refused("-e default", "E503_ENVIRONMENT_ERROR");
    let single = self::workspace();
    for env in ["", "-e default"] {
        let run = single.run(&format!("adopt --kind topic --name orders {env} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E406_CONNECTION_REFUSED", "{}", run.stdout);
    }
    let run = single.run("adopt --kind topic --name orders -e prod -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E503_ENVIRONMENT_ERROR");
}

/// A plan says how the blockade ends.
#[test]
fn a_plan_names_the_command_that_adopts() {
    let page = workspace().run("explain requires_adoption").exits(0);
    assert!(page.stdout.contains("streamt adopt"), "{}", page.stdout);
}
