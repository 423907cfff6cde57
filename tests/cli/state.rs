//! What the commands around PostgreSQL state answer before any server is asked.

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime: {kafka: {bootstrap_servers: \"127.0.0.1:1\"}}
deployment_state:
  backend: postgres
  namespace: platform
  postgres: {dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: hidden_schema}
";
const ADDRESS: &str = "streamt-state://platform/shop/default";

fn confirmed(rest: &str) -> String {
    format!("state init --confirm-project shop --confirm-env default --confirm-address {ADDRESS} {rest} -o json")
}

/// PGS-005 PGS-006 PGS-011: each credential is looked up alone, and nothing falls back to local state.
#[test]
fn a_missing_or_refused_credential_is_e420_and_no_local_state_takes_its_place() {
    let good = "postgresql://w:s3ntinel@127.0.0.1:1/d";
    for (owner, writer, redirecting, why) in [
        (Some(good), None, None, "the variable 'WRITER_DSN' is not set"),
        (Some(good), Some("  "), None, "the variable 'WRITER_DSN' is not set"),
        (Some(good), Some("postgresql://u:s3ntinel@a,b/d"), None, "more than one endpoint"),
        (Some(good), Some("postgresql://u:s3ntinel@db.example.test/d?sslmode=prefer"), None, "unencrypted"),
        (Some(good), Some("postgresql://u:s3ntinel@localhost/d?options=-csearch_path%3Dx"), None, "'options'"),
        (Some(good), Some(good), Some("PGHOST"), "'PGHOST' is set"),
        (Some(good), Some(good), Some("PGSERVICEFILE"), "'PGSERVICEFILE' is set"),
        (Some(good), Some(good), None, "cannot be reached"),
    ] {
        let mut workspace = Workspace::project(PROJECT);
        for (name, value) in [("OWNER_DSN", owner), ("WRITER_DSN", writer)] {
            if let Some(value) = value {
                workspace = workspace.variable(name, value);
            }
        }
        if let Some(name) = redirecting {
            workspace = workspace.variable(name, "");
        }
        for command in ["plan", "apply", "apply --dry-run"] {
            let run = workspace.run(&format!("{command} -o json")).exits(1);
            assert_eq!(run.errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE", "{command}: {}", run.stdout);
            let text = format!("{}{}", run.stdout, run.stderr);
            assert!(text.contains(why), "{command}: {text}");
            assert!(!text.contains("s3ntinel") && !text.contains("hidden_schema"), "{text}");
        }
        assert!(!workspace.path(".streamt/state").exists());
    }
    let workspace = Workspace::project(PROJECT).variable("WRITER_DSN", good);
    for command in
        ["state status -o json".to_owned(), "state lock-status -o json".to_owned(), confirmed("--writer-role w")]
    {
        let run = workspace.run(&command).exits(1);
        assert_eq!(run.errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE", "{}", run.stdout);
        assert!(run.stdout.contains("'OWNER_DSN' is not set"), "{}", run.stdout);
    }
}

#[test]
fn state_init_asks_for_the_whole_address_and_for_a_postgres_backend() {
    let workspace = Workspace::project(PROJECT).variable("OWNER_DSN", "postgresql://o@127.0.0.1:1/d");
    for line in [
        "state init --writer-role w -o json".to_owned(),
        confirmed("--writer-role w").replace("shop --confirm-env", "shap --confirm-env"),
        confirmed("--writer-role w").replace(ADDRESS, "streamt-state://platform/shop/prod"),
        confirmed(&format!("--writer-role {}", "w".repeat(64))),
    ] {
        let run = workspace.run(&line).exits(1);
        assert_eq!(run.errors()[0].0, "E411_STATE_INVALID", "{}", run.stdout);
    }
    workspace.run(&confirmed("--writer-role w --schema-version 1")).exits(2);
    let local = Workspace::project(
        "apiVersion: streamt.dev/v1alpha1\nproject: {name: shop}\nruntime: {kafka: {bootstrap_servers: \"127.0.0.1:1\"}}\n",
    );
    assert_eq!(local.run(&confirmed("--writer-role w")).exits(1).errors()[0].0, "E421_REMOTE_STATE_REQUIRED");
    let status = local.run("state lock-status -o json").exits(0).json();
    assert_eq!((&status["data"]["backend"], &status["data"]["lock_status"]), (&"local".into(), &"available".into()));
}

#[test]
fn the_statements_of_a_store_are_printed_without_a_project_and_without_names() {
    let run = Workspace::new().run("state init --writer-role s3ntinel --print-sql").exits(0);
    assert!(run.stdout.starts_with("CREATE SCHEMA :\"schema\";\n"), "{}", run.stdout);
    assert!(run.stdout.contains("GRANT USAGE ON SCHEMA :\"schema\" TO :\"writer\";"));
    assert!(!run.stdout.contains("s3ntinel"));
}
