//! The example of the documentation, as its README tells a reader to run it.

use crate::cli::service;
use crate::harness::Workspace;
use crate::support::example;

/// The example under names of its own.
fn payments() -> Workspace {
    let own = format!("p{}-acme-", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let workspace = Workspace::new()
        .variable("KAFKA_BOOTSTRAP_SERVERS", &service("STREAMT_TEST_KAFKA"))
        .variable("SCHEMA_REGISTRY_URL", &service("STREAMT_TEST_REGISTRY"))
        .variable("PROD_KAFKA_BOOTSTRAP_SERVERS", &service("STREAMT_TEST_KAFKA"))
        .variable("PROD_KAFKA_SECURITY_PROTOCOL", "PLAINTEXT")
        .variable("PROD_SCHEMA_REGISTRY_URL", &service("STREAMT_TEST_REGISTRY"));
    example("payments", &workspace, &[("acme-", &own)]);
    workspace
}

/// SAF-023 SAF-058
#[test]
fn the_payments_example_is_applied_twice_in_dev() {
    let workspace = payments();
    let all = workspace.run("validate --strict --all-envs -o json").exits(0).json();
    assert_eq!(all["data"]["all_valid"], true, "{all}");

    let first = workspace.run("apply -e dev -o json").exits(0);
    assert_eq!(first.warning_codes(), ["W106_LOCAL_STATE_ONLY"]);
    assert_eq!(first.json()["data"]["created"].as_array().map(Vec::len), Some(10), "{}", first.stdout);
    workspace.run("plan -e dev --detailed-exitcode").exits(0);
    let second = workspace.run("apply -e dev -o json").exits(0).json();
    assert_eq!(second["data"]["unchanged"].as_array().map(Vec::len), Some(10), "{second}");
    assert_eq!((&second["data"]["created"], &second["data"]["state_serial"]), (&serde_json::json!([]), &1.into()));
    workspace.run("status -e dev --health").exits(0);
    let tree = workspace.run("lineage -e dev").exits(0).stdout;
    assert!(tree.contains("payment_processor (exposure)"), "{tree}");
}

/// SAF-052 SAF-058 SAF-063: the plan alone is not enough; the environment is confirmed, too.
#[test]
fn the_payments_example_is_applied_in_prod_by_a_reviewed_plan_alone() {
    let workspace = payments();
    assert_eq!(workspace.run("apply -e prod -o json").exits(1).errors()[0].0, "E418_REVIEWED_PLAN_REQUIRED");
    workspace.run("plan --env prod --out reviewed.plan.json").exits(0);
    let apply = "apply --env prod --plan reviewed.plan.json";
    for confirm in ["", "--confirm-env dev", "--force"] {
        let run = workspace.run(&format!("{apply} {confirm} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E503_ENVIRONMENT_ERROR", "{confirm}");
    }
    let applied = workspace.run(&format!("{apply} --confirm-env prod -o json")).exits(0);
    assert_eq!(applied.warning_codes(), ["W142_PROTECTED_ENVIRONMENT", "W106_LOCAL_STATE_ONLY"]);
    assert_eq!(applied.json()["data"]["created"].as_array().map(Vec::len), Some(10), "{}", applied.stdout);
    workspace.run("plan --env prod --detailed-exitcode").exits(0);
    let again = workspace.run(&format!("{apply} --confirm-env prod -o json")).exits(1);
    assert_eq!(again.errors()[0].0, "E409_PLAN_STALE");
}
