//! `validate --check-schemas` against a real registry: what is read is judged, and nothing is written.

use serde_json::json;
use streamt::compiler::artifact::SchemaType;
use streamt::project::model::SchemaReference;

use crate::cli::{registry as answering, service};
use crate::front::{Answer, Front};
use crate::harness::{Run, Workspace};
use crate::registry::{artifact, record, register, registry};
use crate::support::unique;

fn project(registry: &str, sources: &[String]) -> Workspace {
    Workspace::project(&format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: checks}}
runtime:
  kafka: {{bootstrap_servers: 127.0.0.1:1}}
  schema_registry: {{url: \"{registry}\"}}
sources:
{}",
        sources.concat()
    ))
}

fn source(name: &str, schema: &str) -> String {
    format!("  - {{name: {name}, topic: checks.{name}, schema: {{{schema}}}}}\n")
}

fn row(run: &Run, source: &str) -> serde_json::Value {
    let data = run.json()["data"]["schema_checks"].clone();
    let rows = data.as_array().unwrap_or_else(|| panic!("{}", run.stdout));
    rows.iter().find(|row| row["source"] == source).unwrap_or_else(|| panic!("{source}: {data}")).clone()
}

#[tokio::test]
async fn subjects_versions_formats_and_selectors_are_checked() {
    let (base, user, order) = (unique("base"), unique("user"), unique("json"));
    let registry = registry();
    let id = record("Base", json!([{"name": "id", "type": "string"}]));
    register(&registry, &artifact(&base, SchemaType::Avro, id)).await.expect("registered");
    let mut referring = artifact(&user, SchemaType::Avro, record("User", json!([{"name": "b", "type": "Base"}])));
    referring.references = vec![SchemaReference { name: "Base".to_owned(), subject: base.clone(), version: 1 }];
    register(&registry, &referring).await.expect("registered");
    let object = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    register(&registry, &artifact(&order, SchemaType::Json, object)).await.expect("registered");

    let good = [
        source("pinned", &format!("subject: {base}, version: 1, format: avro")),
        source("latest", &format!("subject: {order}, format: json")),
        source("refers", &format!("subject: {user}")),
    ];
    let url = service("STREAMT_TEST_REGISTRY");
    let workspace = project(&url, &good);
    let before = workspace.snapshot();
    let run = workspace.run("validate --check-schemas -o json").exits(0);
    for source in ["pinned", "latest", "refers"] {
        assert_eq!((&row(&run, source)["status"], &row(&run, source)["version"]), (&"verified".into(), &1.into()));
    }
    assert_eq!(workspace.snapshot(), before);

    let bad = [
        source("other", "registry: glue"),
        source("absent", "registry: confluent"),
        source("version", &format!("subject: {base}, version: 9")),
        source("format", &format!("subject: {order}, format: avro")),
    ];
    let run = project(&url, &bad).run("validate --check-schemas -o json").exits(1);
    let codes: Vec<String> = run.errors().into_iter().map(|(code, _)| code).collect();
    assert_eq!(
        codes,
        [
            "E212_SCHEMA_REGISTRY_SELECTOR_UNSUPPORTED",
            "E215_SCHEMA_SUBJECT_NOT_FOUND",
            "E215_SCHEMA_SUBJECT_NOT_FOUND",
            "E217_SCHEMA_FORMAT_MISMATCH"
        ]
    );
    let lines: Vec<String> = run.errors().into_iter().map(|(_, at)| at.split(':').nth(1).unwrap().to_owned()).collect();
    assert_eq!(lines, ["7", "8", "9", "10"]);
    let statuses = ["absent", "version", "format"].map(|source| row(&run, source)["status"].clone());
    assert_eq!(statuses, ["missing", "missing", "format_mismatch"]);
    project(&url, &bad).run("validate").exits(0);
}

fn reply(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[test]
fn a_registry_that_cannot_be_read_is_e214_and_a_type_of_its_own_e216() {
    let declared = [source("orders", "subject: orders-value")];
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = project(&format!("http://{nobody}"), &declared).run("validate --check-schemas -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E214_SCHEMA_REGISTRY_UNAVAILABLE");
    assert_eq!(row(&run, "orders")["status"], "unavailable");
    assert!(run.stdout.contains("cannot be reached"), "{}", run.stdout);

    let foreign = answering(reply(
        "{\"subject\": \"orders-value\", \"id\": 1, \"version\": 1, \"schemaType\": \"THRIFT\", \"schema\": \"struct A {}\"}",
    ));
    let run = project(&foreign, &declared).run("validate --check-schemas -o json").exits(1);
    assert_eq!(run.errors()[0], ("E216_SCHEMA_TYPE_UNSUPPORTED".to_owned(), "stream_project.yml:7:60".to_owned()));
    assert!(run.stdout.contains("type 'THRIFT'"), "{}", run.stdout);
    assert_eq!(
        (&row(&run, "orders")["status"], &row(&run, "orders")["format"]),
        (&"format_mismatch".into(), &"thrift".into())
    );
}

/// A reference that leads nowhere, which a registry itself would not have let in: the front stands in for one that lost a schema.
#[test]
fn a_reference_that_does_not_resolve_is_e213() {
    let front = Front::start(None, "127.0.0.1:1", |request| {
        let path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
        match path.split('?').next().unwrap_or_default() {
            path if path.starts_with("/subjects/orders-value/versions/") => Answer::Say(
                "200 OK",
                "{\"subject\": \"orders-value\", \"id\": 1, \"version\": 1, \"schema\": \"\\\"Base\\\"\", \"references\": [{\"name\": \"Base\", \"subject\": \"base\", \"version\": 3}]}".to_owned(),
            ),
            path if path.starts_with("/config") => Answer::Say("200 OK", "{\"compatibilityLevel\": \"BACKWARD\"}".to_owned()),
            _ => Answer::Say("404 Not Found", "{\"error_code\": 40402, \"message\": \"Version not found\"}".to_owned()),
        }
    });
    let workspace = project(&format!("http://127.0.0.1:{}", front.port), &[source("orders", "subject: orders-value")]);
    let before = workspace.snapshot();
    let run = workspace.run("validate --check-schemas -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E213_SCHEMA_REGISTRY_RESOLUTION_FAILED", "{}", run.stdout);
    assert!(
        run.errors()[0].1.starts_with("stream_project.yml:7:") && run.stdout.contains("base version 3"),
        "{}",
        run.stdout
    );
    assert_eq!(row(&run, "orders")["status"], "reference_unresolved");
    assert_eq!(workspace.snapshot(), before);
}
