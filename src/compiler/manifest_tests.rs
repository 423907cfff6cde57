use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::compiler::compile;
use crate::compiler::testing::*;
use crate::project::model::*;

const NOON: &str = "2026-09-06T12:00:00.123456Z";

fn payments() -> Project {
    project("payments")
}

fn checksum(project: Project) -> String {
    compiled(project).manifest_checksum.to_string()
}

/// The shop project: a Flink model, a sink, an exposure.
pub(super) fn shop() -> Project {
    let mut project = project("shop");
    project.version = Some("1.2.0".into());
    project.runtime.kafka = Some(kafka_runtime());
    project.runtime.flink = Some(flink_runtime());
    project.runtime.connect = Some(connect_runtime());
    let mut orders_raw = source("orders_raw", "orders.raw.v1");
    orders_raw.columns =
        vec![column("order_id", "STRING"), column("amount", "DECIMAL(10, 2)"), column("ts", "TIMESTAMP(3)")];
    orders_raw.columns[0].required = true;
    orders_raw.event_time = Some(EventTime {
        column: "ts".into(),
        watermark: Some(Watermark {
            strategy: WatermarkStrategy::BoundedOutOfOrderness,
            max_out_of_orderness_ms: 2000,
            expression: None,
        }),
        allowed_lateness_ms: None,
    });
    project.sources.push(orders_raw);
    let sql = "SELECT order_id, amount, ts\nFROM {{ source(\"orders_raw\") }}\nWHERE amount > 0\n";
    let mut valid = sql_model("orders_valid", sql);
    valid.materialized = Some(Materialized::Flink);
    valid.tags = vec!["core".into()];
    let mut output = topic("orders.valid.v1");
    output.partitions = Some(3);
    output.config.insert("retention.ms".into(), json!(86400000));
    valid.topic = Some(output);
    valid.flink = Some(FlinkBlock { parallelism: Some(2), ..FlinkBlock::default() });
    project.models.push(valid);
    let mut archive = sink("orders_archive", &[model_ref("orders_valid")], "s3-sink");
    archive.sink.as_mut().unwrap().config.insert("s3.bucket.name".into(), json!("shop-archive"));
    project.models.push(archive);
    let mut billing = exposure("billing");
    billing.role = Some(ExposureRole::Consumer);
    billing.consumes = vec![Some(model_ref("orders_valid"))];
    project.exposures.push(billing);
    project
}

/// SAF-017, CRM-024, CRM-026
#[test]
fn manifest_checksums_are_fixed() {
    assert_eq!(checksum(payments()), "sha256:d7d996750e72e7759d4cd4ae14b9c3ad18af72317f476eb0339be67044e3dece");

    let mut removal = payments();
    removal.connector_removals.push(ConnectorRemoval {
        logical_owner: "archive_orders".into(),
        name: "archive-orders-sink".into(),
        cluster: "primary-connect".into(),
        origin: Default::default(),
    });
    assert_eq!(checksum(removal), "sha256:1000561e121dac1cce59c8ab2deb6bf0195cd4e02c3b83a32531f41fe43fbc8b");

    let mut rule = payments();
    rule.gateway_rule_removals.push(GatewayRuleRemoval {
        logical_owner: "payments_eu".into(),
        name: "payments_eu".into(),
        virtual_topic: "payments.eu".into(),
        physical_topic: "payments.clean.v1".into(),
        interceptors: vec![json!({"type": "mask", "config": {"field": "iban", "method": "redact"}})],
        origin: Default::default(),
    });
    assert_eq!(checksum(rule), "sha256:5e471faa491de2fca53de3fc88705859a1aced5cc6a413c453fe2db61f2f7783");

    let mut one = payments();
    one.version = Some("1.0.0".into());
    let mut raw = source("payments_raw", "payments.raw.v1");
    raw.columns = vec![column("id", "STRING")];
    raw.columns[0].required = true;
    one.sources.push(raw);
    assert_eq!(checksum(one), "sha256:5e27055f7e055fc9d94409837e72d4f0ba35eee63a67fc112944af1c1c9a5b0f");
}

/// All of a real manifest, the Flink job included.
#[test]
fn a_whole_project_has_the_manifest_of_its_specification() {
    let wanted: Value = serde_json::from_str(include_str!("golden/shop_manifest.json")).unwrap();
    let compiled = compiled(shop());
    let mut found = compiled.manifest(NOON);
    assert_eq!(found["compiled_at"], NOON);
    found.as_object_mut().unwrap().shift_remove("compiled_at");
    let text = |value: &Value| String::from_utf8(canonical_value(value).unwrap()).unwrap();
    assert_eq!(text(&found), text(&wanted));
    assert_eq!(compiled.manifest_checksum, Checksum::of(&found).unwrap());
}

#[test]
fn the_printed_manifest_has_its_keys_in_order_and_ends_with_a_line_feed() {
    let compiled = compiled(payments());
    let mut text = Vec::new();
    compiled.manifest_parts().document(NOON).write(&mut text).unwrap();
    let wanted = r#"{
  "version": "0.0.0",
  "project": "payments",
  "compiled_at": "2026-09-06T12:00:00.123456Z",
  "sources": [],
  "models": [],
  "tests": [],
  "exposures": [],
  "dag": {
    "nodes": [],
    "edges": []
  },
  "artifacts": {
    "schemas": [],
    "topics": [],
    "flink_jobs": [],
    "test_jobs": [],
    "connectors": [],
    "gateway_rules": []
  }
}
"#;
    assert_eq!(String::from_utf8(text).unwrap(), wanted);
}

#[test]
fn secrets_of_sinks_change_no_checksum_and_stand_in_no_manifest() {
    let with = |secret: &str| {
        let mut project = shop();
        project.models[1].sink.as_mut().unwrap().config.insert("aws.secret".into(), json!(secret));
        compiled(project)
    };
    let (a, b) = (with("hunter2"), with("correct-horse"));
    assert_eq!(a.manifest_checksum, b.manifest_checksum);
    assert!(!a.manifest(NOON).to_string().contains("hunter2"));
    assert!(!format!("{:?}", a.artifacts).contains("hunter2"));
    assert_ne!(
        a.resources()[2].artifact_checksum,
        b.resources()[2].artifact_checksum,
        "the artifact itself is compared whole"
    );
}

#[test]
fn blocks_of_flink_and_exposures_are_filled() {
    let mut project = shop();
    project.models[0].flink.as_mut().unwrap().checkpoint = json!({"mode": "EXACTLY_ONCE"}).as_object().cloned();
    project.models[0].flink.as_mut().unwrap().restart_strategy = json!({"attempts": 3}).as_object().cloned();
    project.exposures[0].contracts = json!({"schema": "strict"}).as_object().cloned();
    project.exposures[0].access = json!({"purpose": "x"}).as_object().cloned();
    let manifest = compiled(project).manifest(NOON);
    let flink = &manifest["models"][0]["flink"];
    assert_eq!(flink["checkpoint"]["mode"], "EXACTLY_ONCE");
    assert_eq!(flink["checkpoint"].as_object().unwrap().len(), 7);
    assert_eq!(flink["restart_strategy"]["type"], "fixed-delay");
    assert_eq!(manifest["exposures"][0]["contracts"], json!({"schema_": "strict", "compatibility": null}));
    assert_eq!(manifest["exposures"][0]["access"], json!({"roles": [], "purpose": "x"}));
}

/// SAF-049
#[test]
fn the_environment_fingerprint_covers_the_runtime_without_its_secrets() {
    let fingerprint = |password: &str, servers: &str| {
        let mut project = payments();
        project.environment.name = "dev".into();
        project.runtime_document =
            RuntimeDocument::new(json!({"kafka": {"bootstrap_servers": servers, "sasl_password": password}}));
        environment_fingerprint(&project).unwrap().to_string()
    };
    let golden = "sha256:4705a1c421342c92ff1fe7c2c597295f188f0dac448e0fc878ab38d3800f8d1e";
    assert_eq!(fingerprint("one", "localhost:9092"), golden);
    assert_eq!(fingerprint("two", "localhost:9092"), golden);
    assert_ne!(fingerprint("one", "localhost:9093"), golden);
}

/// More declarations than one batch, so that the pieces of the digest are seen to join as the whole does.
#[test]
fn a_large_manifest_hashes_as_its_text_does() {
    let mut project = payments();
    project.models = (0..1030).map(|index| model(&format!("m{index}"))).collect();
    let compiled = compiled(project);
    let mut manifest = compiled.manifest(NOON);
    manifest.as_object_mut().unwrap().shift_remove("compiled_at");
    assert_eq!(compiled.manifest_checksum, Checksum::of(&manifest).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// CRM-027: declarations in any order give the same artifacts; the same order gives the same bytes.
    #[test]
    fn the_order_of_files_changes_no_artifact(order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle(), edges in prop::collection::vec((0..12_usize, 0..12_usize), 0..20)) {
        let build = |order: &[usize]| {
            let mut project = payments();
            project.runtime.connect = Some(connect_runtime());
            project.sources.push(source("s", "s.v1"));
            project.models = order.iter().map(|&index| {
                let inputs: Vec<usize> = edges.iter().filter(|(from, to)| *to == index && from < to).map(|(from, _)| *from).collect();
                let from = inputs.iter().map(|input| format!(" JOIN {{{{ ref('m{input}') }}}} ON TRUE")).collect::<String>();
                sql_model(&format!("m{index}"), &format!("SELECT a FROM {{{{ source('s') }}}}{from}"))
            }).collect();
            compile(Arc::new(project)).unwrap()
        };
        let (a, b) = (build(&order), build(&(0..12).collect::<Vec<_>>()));
        prop_assert_eq!(&a.artifacts, &b.artifacts);
        prop_assert_eq!(&a.dag, &b.dag);
        prop_assert_eq!(a.manifest(NOON)["artifacts"].to_string(), b.manifest(NOON)["artifacts"].to_string());
        let again = build(&order);
        prop_assert_eq!(a.manifest(NOON).to_string(), again.manifest(NOON).to_string());
        prop_assert_eq!(a.manifest_checksum, again.manifest_checksum);
    }
}
