use serde_json::json;

use super::testing::*;
use super::tests::{shop, warnings};
use super::*;
use crate::project::model::*;

#[test]
fn a_connector_merges_its_connection_its_config_and_its_masks() {
    let mut project = shop();
    let connection = json!({"connection.url": "jdbc:x", "batch.size": 10});
    project.connections.insert(
        "db".into(),
        Connection { kind: "jdbc".into(), config: connection.as_object().cloned().unwrap(), origin: Origin::default() },
    );
    let mut archive = sink("archive", &[source_ref("raw")], "jdbc-sink");
    let block = archive.sink.as_mut().unwrap();
    block.connection = Some("db".into());
    block.config =
        json!({"batch.size": 20, "ratio": 1.0, "auto.create": true, "topics": "raw.v1", "transforms": "route"})
            .as_object()
            .cloned()
            .unwrap();
    archive.connect_cluster = Some("main".into());
    archive.security = Some(SecurityBlock {
        classification: Default::default(),
        policies: vec![
            json!({"mask": {"column": "a", "method": "null"}}),
            json!({"deny": {"roles": ["x"]}}),
            json!({"mask": {"column": "b", "method": "hash"}}),
        ],
    });
    project.models.push(archive);
    let compiled = compiled(project);
    let connector = &compiled.artifacts.connectors[0];
    assert_eq!(connector.cluster.as_deref(), Some("main"));
    let config: Vec<(&str, &str)> =
        connector.config.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mask = "org.apache.kafka.connect.transforms.MaskField$Value";
    assert_eq!(
        config,
        [
            ("auto.create", "true"),
            ("batch.size", "20"),
            ("connection.url", "jdbc:x"),
            ("connector.class", "io.confluent.connect.jdbc.JdbcSinkConnector"),
            ("name", "archive"),
            ("ratio", "1"),
            ("topics", "raw.v1"),
            ("transforms", "route,mask0,mask2"),
            ("transforms.mask0.fields", "a"),
            ("transforms.mask0.type", mask),
            ("transforms.mask2.fields", "b"),
            ("transforms.mask2.type", mask),
        ]
    );
    assert_eq!(
        warnings(&compiled),
        ["W227 sink 'archive' masks column 'b' with an empty value: Connect has no 'hash'"]
    );
    super::artifact::read::<ConnectorArtifact>(serde_json::to_value(connector).unwrap(), "shop").unwrap();
}

#[test]
fn sinks_that_cannot_work_are_refused() {
    let with = |change: fn(&mut Model)| {
        let mut project = shop();
        let mut archive = sink("archive", &[source_ref("raw")], "s3-sink");
        change(&mut archive);
        project.models.push(archive);
        project.models.push(sink("other", &[source_ref("raw")], "s3-sink"));
        refused(project)
    };
    assert_eq!(with(|m| m.sink = None), ["E204 model 'archive' is a sink without a sink block"]);
    assert_eq!(with(|m| m.from = Some(vec![])), ["E119 sink 'archive' reads no topic"]);
    assert_eq!(
        with(|m| m.from = Some(vec![model_ref("other")])),
        ["E119 sink 'archive' reads 'other', which has no topic"]
    );
    assert_eq!(with(|m| m.sink.as_mut().unwrap().connection = Some("db".into())), ["E210 Connection 'db' not found"]);
    for value in [json!(null), json!([1]), json!({"a": 1})] {
        let mut project = shop();
        let mut archive = sink("archive", &[source_ref("raw")], "s3-sink");
        archive.sink.as_mut().unwrap().config.insert("k".into(), value);
        project.models.push(archive);
        assert_eq!(
            refused(project),
            ["E501 config key 'k' of sink 'archive' must hold a string, a number or a boolean"]
        );
    }
    for key in ["name", "connector.class", "topics"] {
        let mut project = shop();
        let mut archive = sink("archive", &[source_ref("raw")], "s3-sink");
        archive.sink.as_mut().unwrap().config.insert(key.into(), json!("hunter2"));
        project.models.push(archive);
        assert_eq!(
            refused(project),
            [format!("E501 config key '{key}' of sink 'archive' is set by the compiler to another value")]
        );
    }
}

#[test]
fn reserved_keys_of_a_connection_may_only_say_what_the_compiler_says() {
    let load = |connection: &str, own: &str| {
        let text = format!(
            "apiVersion: streamt.dev/v1alpha1
project: {{name: shop}}
runtime:
  kafka: {{bootstrap_servers: 'b:1'}}
  connect: {{default: c, clusters: {{c: {{rest_url: 'http://c'}}}}}}
sources: [{{name: raw, topic: raw.v1}}]
connections:
  db:
    type: jdbc
    config:
      {connection}
models:
  - name: archive
    from: [{{source: raw}}]
    sink:
      connector: s3-sink
      connection: db
      config: {{{own}}}
"
        );
        let fs = crate::project::MemoryFs::new().with("stream_project.yml", text);
        compile(Arc::new(crate::project::load(&fs, &Default::default()).unwrap().project))
    };
    for key in ["name", "connector.class", "topics"] {
        let findings = load(&format!("{key}: hunter2"), "").unwrap_err().into_vec();
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!(finding.code, Code::E501ParseError);
        let place = finding.location.as_ref().unwrap().to_string();
        assert_eq!(place, format!("stream_project.yml:11:{}", 9 + key.len()));
        assert!(!format!("{finding:?}").contains("to hunter2"));
        assert!(finding.suggestion.as_deref().unwrap().contains("connections.db.config"), "{finding:?}");
        load(&format!("{key}: hunter2"), &format!("{key}: {}", canonical(key))).unwrap();
        load(&format!("{key}: {}", canonical(key)), "").unwrap();
    }
    let all = load("{name: a, connector.class: b}", "topics: c").unwrap_err().into_vec();
    assert_eq!(all.len(), 3, "{all:?}");
}

fn canonical(key: &str) -> &'static str {
    match key {
        "name" => "archive",
        "topics" => "raw.v1",
        _ => "io.confluent.connect.s3.S3SinkConnector",
    }
}
