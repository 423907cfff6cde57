//! What `-v` tells of an operation, and that it tells no secret.

use crate::cli::service;
use crate::harness::Workspace;
use crate::support::unique;

/// SEC-003: the password that works is among the secrets that are looked for.
#[test]
fn an_apply_can_be_followed_step_by_step_and_shows_no_secret() {
    let name = unique("logs");
    let yaml = format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: {name}}}
runtime:
  kafka: {{bootstrap_servers: \"{}\", security_protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN, sasl_username: admin, sasl_password: \"${{PASSWORD}}\"}}
  schema_registry: {{url: \"{}\", username: u, password: s3ntinel}}
models:
  - {{name: orders, description: d, topic: {{name: {name}.orders, partitions: 1, replication_factor: 1}}, schema: {{subject: {name}.orders-value, format: avro, definition: '\"string\"'}}}}
",
        service("STREAMT_TEST_KAFKA_SASL"),
        service("STREAMT_TEST_REGISTRY"),
    );
    let workspace = Workspace::project(&yaml).variable("PASSWORD", "admin-secret");
    let run = workspace.run("apply -vvv").exits(0);
    let mut rest = run.stderr.as_str();
    for told in [
        "command=\"apply\"",
        "project loaded",
        "lock taken",
        "runtime.kafka",
        "operation begun",
        "action started",
        "POST path=\"subjects",
        "action completed",
        "action started",
        "CreateTopics",
        "action completed",
        "operation committed",
        "lock released",
        "exit_code=0",
    ] {
        let at = rest.find(told).unwrap_or_else(|| panic!("{told} does not follow: {}", run.stderr));
        rest = &rest[at..];
    }
    assert!(run.stderr.contains("writes a durable step") && run.stderr.contains("status=200"), "{}", run.stderr);
    for command in ["plan", "status --lag --consumer-groups", "diff", "apply"] {
        for format in ["text", "json"] {
            let run = workspace.run(&format!("{command} -vvv --log-format {format}")).exits(0);
            for secret in ["admin-secret", "s3ntinel", "dTpzM250aW5lbA"] {
                assert!(!run.stderr.contains(secret) && !run.stdout.contains(secret), "{command}: {}", run.stderr);
            }
        }
    }
    for secret in ["admin-secret", "s3ntinel", "dTpzM250aW5lbA"] {
        assert!(!run.stderr.contains(secret), "{}", run.stderr);
    }
    crate::estate::blocking(crate::support::clean_up([format!("{name}.orders")]));
}

/// SEC-003
#[test]
fn a_session_with_postgresql_is_logged_without_its_dsn() {
    let name = unique("logs-pg").replace('-', "_");
    let yaml = format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: shop}}
runtime: {{kafka: {{bootstrap_servers: \"127.0.0.1:1\"}}}}
deployment_state:
  backend: postgres
  namespace: tests
  postgres: {{dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: {name}}}
"
    );
    let dsn = service("STREAMT_TEST_POSTGRES_18");
    let (user, _) = dsn.split_once('@').expect("a login");
    let password = user.rsplit_once(':').expect("a password").1.to_owned();
    let workspace = Workspace::project(&yaml).variable("OWNER_DSN", &dsn);
    let run = workspace.run("state status -vvv").exits(0);
    assert!(run.stderr.contains("PostgreSQL session opened"), "{}", run.stderr);
    assert!(!run.stderr.contains(&password), "{}", run.stderr);
}
