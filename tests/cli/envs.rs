//! Environments whose variables are not all set where the command runs: a pull request has no secrets of production.

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
models:
  - {name: orders, description: Orders, topic: {name: shop.orders.v1, partitions: 3, replication_factor: 1}}
";

const DEV: &str = "environment: {description: Laptop}
runtime:
  kafka: {bootstrap_servers: 127.0.0.1:1, sasl_mechanism: PLAIN, security_protocol: SASL_SSL, sasl_username: app, sasl_password: hunter2}
  schema_registry: {url: \"http://127.0.0.1:2\"}
";

const PROD: &str = "environment: {description: Live, protected: true}
runtime:
  kafka: {bootstrap_servers: \"${PROD_KAFKA}\", sasl_mechanism: PLAIN, security_protocol: SASL_SSL, sasl_username: app, sasl_password: \"${PROD_PASSWORD}\"}
  schema_registry: {url: \"${PROD_REGISTRY}\"}
";

fn workspace() -> Workspace {
    Workspace::project(PROJECT).file("environments/dev.yml", DEV).file("environments/prod.yml", PROD)
}

#[test]
fn environments_are_listed_whatever_their_variables() {
    let run = workspace().run("envs list").exits(0);
    assert_eq!(run.stdout, "dev          Laptop\nprod         Live [protected]\n");
    let odd = PROD.replace("protected: true", "protected: maybe");
    let broken = workspace().file("environments/odd.yml", &odd);
    let run = broken.run("envs list -o json").exits(1);
    let rows = run.json()["data"]["environments"].clone();
    assert_eq!((&rows[0]["name"], &rows[2]["protected"]), (&"dev".into(), &true.into()));
    assert!(rows[1]["error"].is_string(), "{rows}");
    assert_eq!(run.errors(), [("E503_ENVIRONMENT_ERROR".to_owned(), "environments/odd.yml:1:45".to_owned())]);
}

#[test]
fn an_environment_is_shown_with_the_variables_that_it_lacks_here() {
    let workspace = workspace();
    let data = workspace.run("envs show prod -o json").exits(0).json()["data"].clone();
    assert_eq!(data["unset_variables"], serde_json::json!(["PROD_KAFKA", "PROD_PASSWORD", "PROD_REGISTRY"]));
    assert_eq!(data["runtime"]["kafka"]["bootstrap_servers"], "${PROD_KAFKA}");
    assert_eq!(data["runtime"]["kafka"]["sasl_password"], "****");
    let text = workspace.run("envs show prod").exits(0).stdout;
    assert!(text.ends_with("\nNot set here: PROD_KAFKA, PROD_PASSWORD, PROD_REGISTRY\n"), "{text}");
    let set = workspace
        .variable("PROD_KAFKA", "kafka:9092")
        .variable("PROD_PASSWORD", "hunter2")
        .variable("PROD_REGISTRY", "http://registry");
    let run = set.run("envs show prod -o json").exits(0);
    assert_eq!(run.json()["data"]["runtime"]["schema_registry"]["url"], "http://registry");
    assert!(run.json()["data"].get("unset_variables").is_none());
    assert!(!run.stdout.contains("hunter2"));
}

#[test]
fn all_environments_are_checked_without_their_secrets_and_one_alone_is_not() {
    let workspace = workspace();
    let data = workspace.run("validate --all-envs --strict -o json").exits(0).json()["data"].clone();
    assert_eq!(data["all_valid"], true);
    assert!(data["environments"][0].get("unset_variables").is_none(), "{data}");
    assert_eq!(data["environments"][1]["unset_variables"][0], "PROD_KAFKA");
    let text = workspace.run("validate --all-envs").exits(0).stdout;
    assert!(text.contains("Valid: prod (not set here: PROD_KAFKA, PROD_PASSWORD, PROD_REGISTRY)\n"), "{text}");
    for command in ["validate", "compile", "plan --offline", "apply --confirm-env prod"] {
        let run = workspace.run(&format!("{command} -e prod -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E502_ENV_VAR_ERROR", "{command}");
    }
    workspace.write("environments/prod.yml", &PROD.replace("schema_registry: {", "schema_registry: {nope: 1, "));
    let run = workspace.run("validate --all-envs -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E501_PARSE_ERROR");
    assert_eq!(run.json()["data"]["environments"][0]["valid"], true);
}

#[test]
fn two_environments_are_compared_and_secrets_stay_masked() {
    let run = workspace().variable("PROD_PASSWORD", "hunter3").run("envs diff dev prod -o json").exits(0);
    assert!(!run.stdout.contains("hunter"), "{}", run.stdout);
    let diffs = run.json()["data"]["diffs"].clone();
    let row = |key: &str| diffs.as_array().unwrap().iter().find(|row| row["key"] == key).cloned().unwrap();
    assert_eq!(
        row("kafka.sasl_password"),
        serde_json::json!({"key": "kafka.sasl_password", "dev": "****", "prod": "****", "differs": true})
    );
    assert_eq!(row("schema_registry.url")["prod"], "${PROD_REGISTRY}");
    assert_eq!(row("protected")["dev"], false);
}
