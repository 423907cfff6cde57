use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::compiler::canonical::Checksum;

fn owner(name: &str) -> Ownership {
    Ownership { mode: OwnershipMode::Managed, project: "shop".into(), owner_type: OwnerType::Model, name: name.into() }
}

fn of_payments(name: &str) -> Ownership {
    Ownership { project: "payments".into(), ..owner(name) }
}

fn config(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn digest<A: Artifact>(artifact: &A) -> String {
    Checksum::of(artifact).unwrap().to_string()
}

/// SAF-017
#[test]
fn artifact_checksums_are_fixed() {
    let clean = TopicArtifact {
        name: "payments.clean.v1".into(),
        partitions: 6,
        replication_factor: 3,
        config: config(&[("retention.ms", "604800000"), ("cleanup.policy", "delete")]),
        ownership: of_payments("payments_clean"),
    };
    assert_eq!(digest(&clean), "sha256:b393cfd7582eedc6bcaebcc0e420ca837454c6afb9533c4f0dcdb8685a1f7b65");
    let orders = TopicArtifact { name: "orders.v1".into(), ownership: owner("orders"), ..clean };
    assert_eq!(digest(&orders), "sha256:72b23d28b68ca76af0f41259b12b9f618a01a414ae82f7a2c14811e7c642579f");

    let connector = ConnectorArtifact {
        name: "archive_orders".into(),
        connector_class: "io.confluent.connect.s3.S3SinkConnector".into(),
        topics: vec!["payments.clean.v1".into()],
        cluster: Some("main".into()),
        config: config(&[
            ("name", "archive_orders"),
            ("connector.class", "io.confluent.connect.s3.S3SinkConnector"),
            ("topics", "payments.clean.v1"),
            ("flush.size", "1000"),
            ("s3.bucket.name", "archive"),
        ]),
        ownership: of_payments("archive_orders"),
    };
    assert_eq!(digest(&connector), "sha256:cc545747a6ba6a205eab704f9a3906106b47ba06b0ab5b8d7f5ef57646fd807d");
    let connector = ConnectorArtifact {
        name: "orders-sink".into(),
        connector_class: "io.example.SinkConnector".into(),
        topics: vec!["orders.v1".into(), "refunds.v1".into()],
        cluster: Some("primary".into()),
        config: config(&[
            ("name", "orders-sink"),
            ("connector.class", "io.example.SinkConnector"),
            ("topics", "orders.v1,refunds.v1"),
            ("tasks.max", "2"),
            ("connection.password", "s3cret"),
        ]),
        ownership: owner("orders_sink"),
    };
    assert_eq!(digest(&connector), "sha256:d9a0a47c68185fc46e98fbdf830464f03adb80eebf26f08c5c66dd6fa20193dc");

    let rule = |ownership: Ownership, input: &str, alias: &str| GatewayRuleArtifact {
        name: ownership.name.clone(),
        virtual_topic: alias.into(),
        physical_topic: input.into(),
        interceptors: vec![Interceptor {
            interceptor_type: "filter".into(),
            config: json!({"where": "region = 'EU'"}).as_object().unwrap().clone(),
        }],
        ownership,
    };
    assert_eq!(
        digest(&rule(of_payments("payments_eu"), "payments.clean.v1", "payments.eu")),
        "sha256:6bcceaa989cb02b19e5a422bcbcb5d7386dccc97bc606ec9e35e85e6e81c6d68"
    );
    assert_eq!(
        digest(&rule(owner("orders_eu"), "orders.v1", "orders.eu")),
        "sha256:5672a97dc1b4cf7b85d252df9c36252e30a2d6b85120a0c50c5bf617bda0236f"
    );

    let fields = json!([{"name": "id", "type": "string"}, {"name": "amount", "type": "double"}]);
    let schema = SchemaArtifact {
        subject: "orders.v1-value".into(),
        schema: json!({"type": "record", "name": "Order", "fields": fields}),
        schema_type: SchemaType::Avro,
        compatibility: Some(Compatibility::Backward),
        references: Vec::new(),
        ownership: Ownership { owner_type: OwnerType::Source, ..owner("orders") },
    };
    assert_eq!(digest(&schema), "sha256:f8e41c91f45977fc9cb263b3dde2317e2fffe8ac8c32b5f80aeb01caa48696d5");
    let fields = json!([{"name": "id", "type": "string"}, {"name": "customer", "type": "com.shop.Customer"}]);
    let reference =
        SchemaReference { name: "com.shop.Customer".into(), subject: "customers.v1-value".into(), version: 2 };
    let schema = SchemaArtifact {
        schema: json!({"type": "record", "name": "Order", "fields": fields}),
        references: vec![reference],
        ..schema
    };
    assert_eq!(digest(&schema), "sha256:c8950b256ab6f5cbbf630433e82ff35163bcb1d7362c4333d4a14a56bafcb38b");

    let job = FlinkJobArtifact {
        name: "revenue_processor".into(),
        sql: "INSERT INTO t SELECT 1;".into(),
        cluster: Some("local".into()),
        parallelism: Some(1),
        checkpoint_interval_ms: Some(60000),
        state_backend: None,
        state_ttl_ms: None,
        ownership: owner("revenue"),
    };
    assert_eq!(digest(&job), "sha256:2dbf50ab326e0faa34c1453c2397b1f7f07bf3b5f2c599874bcd1a5eb1102266");
}

fn every_artifact() -> [(&'static str, Value); 8] {
    let ownership = json!({"mode": "managed", "project": "shop", "type": "model", "name": "o"});
    let rule = json!({"name": "o", "virtualTopic": "a", "physicalTopic": "b", "ownership": ownership, "interceptors": [
        {"type": "filter", "config": {"where": "a = 1"}}, {"type": "mask", "config": {"field": "f", "method": "null", "forRoles": ["r"]}}]});
    [
        (
            "schema",
            json!({"subject": "s", "schema": {"type": "string"}, "schema_type": "AVRO", "compatibility": null,
            "references": [{"name": "n", "subject": "s", "version": 1}], "ownership": ownership}),
        ),
        (
            "topic",
            json!({"name": "t", "partitions": 1, "replication_factor": 1, "config": {"a": "b"}, "ownership": ownership}),
        ),
        (
            "flink_job",
            json!({"name": "j", "sql": "x", "cluster": null, "parallelism": null, "checkpoint_interval_ms": null,
            "state_backend": null, "state_ttl_ms": 1, "ownership": ownership}),
        ),
        (
            "connector",
            json!({"name": "c", "connector_class": "x.Y", "topics": ["t"], "cluster": null,
            "config": {"name": "c", "connector.class": "x.Y", "topics": "t"}, "ownership": ownership}),
        ),
        ("gateway_rule", rule.clone()),
        (
            "kafka_streams_job",
            json!({"name": "o", "application_id": format!("streamt-{}", "0".repeat(32)), "image": "i",
            "network": "bridge", "initial_offset": "earliest", "plan": {}, "ownership": ownership}),
        ),
        ("connector removal", json!({"logicalOwner": "o", "name": "n", "cluster": "c"})),
        ("gateway rule removal", json!({"logicalOwner": "o", "priorArtifact": rule})),
    ]
}

/// Reads as the kind says and prints again.
fn reread(kind: &str, value: Value) -> Result<Value, ArtifactError> {
    fn again<A: Artifact>(value: Value) -> Result<Value, ArtifactError> {
        read::<A>(value, "shop").map(|artifact| serde_json::to_value(artifact).unwrap())
    }
    match kind {
        "schema" => again::<SchemaArtifact>(value),
        "topic" => again::<TopicArtifact>(value),
        "flink_job" => again::<FlinkJobArtifact>(value),
        "connector" => again::<ConnectorArtifact>(value),
        "gateway_rule" => again::<GatewayRuleArtifact>(value),
        "kafka_streams_job" => again::<KafkaStreamsJobArtifact>(value),
        "connector removal" => again::<ConnectorRemovalArtifact>(value),
        "gateway rule removal" => again::<GatewayRuleRemovalArtifact>(value),
        other => panic!("{other}"),
    }
}

#[test]
fn every_kind_reads_what_it_prints_and_refuses_all_else() {
    for (kind, artifact) in every_artifact() {
        assert_eq!(reread(kind, artifact.clone()).as_ref(), Ok(&artifact), "{kind}");
        for key in artifact.as_object().unwrap().keys().filter(|key| *key != "references") {
            let mut missing = artifact.clone();
            missing.as_object_mut().unwrap().shift_remove(key);
            assert!(reread(kind, missing).is_err(), "{kind} without {key}");
            let mut other = artifact.clone();
            other[key] = json!(true);
            if key != "schema" && key != "plan" {
                assert!(reread(kind, other).is_err(), "{kind} with a boolean {key}");
            }
        }
        let mut unknown = artifact.clone();
        unknown["extra"] = json!(1);
        assert!(reread(kind, unknown).is_err(), "{kind} with an unknown key");
        if artifact.get("ownership").is_some() {
            for (key, value) in [("project", "other"), ("mode", "owned"), ("type", "test"), ("name", "")] {
                let mut foreign = artifact.clone();
                foreign["ownership"][key] = json!(value);
                assert!(reread(kind, foreign).is_err(), "{kind} with ownership {key} {value:?}");
            }
        }
    }
}

#[test]
fn rules_beyond_types_are_refused_too() {
    let all: BTreeMap<&str, Value> = every_artifact().into_iter().collect();
    for (kind, pointer, value) in [
        ("topic", "/name", json!("a/b")),
        ("topic", "/name", json!("..")),
        ("topic", "/partitions", json!(0)),
        ("topic", "/partitions", json!(2147483648_u64)),
        ("topic", "/replication_factor", json!(32768)),
        ("topic", "/config/a", json!(1)),
        ("schema", "/schema", json!({"default": 9007199254740993_u64})),
        ("schema", "/references/0/version", json!(0)),
        ("schema", "/schema_type", json!("avro")),
        ("connector", "/config/topics", json!("u")),
        ("connector", "/config/name", json!("d")),
        ("connector", "/topics", json!([])),
        ("connector", "/cluster", json!(" ")),
        ("gateway_rule", "/interceptors/0/type", json!("encrypt")),
        ("gateway_rule", "/interceptors/0/config/where", json!(" ")),
        ("gateway_rule", "/interceptors/1/config/forRoles", json!(["r", "r"])),
        ("gateway_rule", "/interceptors/1/config/forRoles", json!(null)),
        ("kafka_streams_job", "/application_id", json!("streamt-ABC")),
        ("kafka_streams_job", "/name", json!("other")),
        ("connector removal", "/logicalOwner", json!("a/b")),
        ("connector removal", "/name", json!("x".repeat(257))),
        ("gateway rule removal", "/logicalOwner", json!("other")),
        ("gateway rule removal", "/priorArtifact/ownership/mode", json!("adopted")),
    ] {
        let mut artifact = all[kind].clone();
        *artifact.pointer_mut(pointer).unwrap() = value.clone();
        let error = reread(kind, artifact).expect_err(&format!("{kind} {pointer} {value}"));
        assert_eq!(error.kind, kind);
    }
    let secret = read::<TopicArtifact>(json!({"name": "hunter2"}), "shop").unwrap_err();
    assert!(!format!("{secret} {secret:?}").contains("hunter2"));
}

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9é'\\\\\"\n ]{0,8}".prop_map(|tail| format!("x{tail}"))
}

fn ownership() -> impl Strategy<Value = Ownership> {
    let mode = prop_oneof![Just(OwnershipMode::External), Just(OwnershipMode::Managed), Just(OwnershipMode::Adopted)];
    let owner_type = prop_oneof![Just(OwnerType::Model), Just(OwnerType::Source)];
    (mode, owner_type, text()).prop_map(|(mode, owner_type, name)| Ownership {
        mode,
        project: "shop".into(),
        owner_type,
        name,
    })
}

proptest! {
    #[test]
    fn topics_and_schemas_read_back_from_their_text(
        name in "[a-z0-9._-]{1,20}x", partitions in 1..=i32::MAX as u32, replicas in 1..=32767_u16,
        settings in prop::collection::btree_map(text(), ".*", 0..5), ownership in ownership(), version in 1..u32::MAX,
    ) {
        let topic = TopicArtifact { name: name.clone(), partitions, replication_factor: replicas, config: settings.clone(), ownership: ownership.clone() };
        let printed = serde_json::from_slice(&canonical(&topic)).unwrap();
        prop_assert_eq!(read::<TopicArtifact>(printed, "shop").unwrap(), topic);

        let references = vec![SchemaReference { name: name.clone(), subject: name.clone(), version }];
        let schema = SchemaArtifact { subject: name, schema: json!(settings), schema_type: SchemaType::Json, compatibility: Some(Compatibility::FullTransitive), references, ownership };
        let printed = serde_json::from_slice(&canonical(&schema)).unwrap();
        prop_assert_eq!(read::<SchemaArtifact>(printed, "shop").unwrap(), schema);
    }

    #[test]
    fn processes_read_back_from_their_text(
        name in text(), topics in prop::collection::vec(text(), 1..4), cluster in prop::option::of(text()), sql in text(),
        settings in prop::collection::btree_map(text(), ".*", 0..5), ownership in ownership(), number in prop::option::of(0..u32::MAX),
    ) {
        let mut config = settings;
        for (key, value) in RESERVED_CONFIG.iter().zip([name.clone(), sql.clone(), topics.join(",")]) {
            config.insert(key.to_string(), value);
        }
        let connector = ConnectorArtifact { name: name.clone(), connector_class: sql.clone(), topics: topics.clone(), cluster: cluster.clone(), config, ownership: ownership.clone() };
        let printed = serde_json::from_slice(&canonical(&connector)).unwrap();
        prop_assert_eq!(read::<ConnectorArtifact>(printed, "shop").unwrap(), connector);

        let job = FlinkJobArtifact { name: name.clone(), sql: sql.clone(), cluster, parallelism: number, checkpoint_interval_ms: number.map(u64::from), state_backend: Some(sql.clone()), state_ttl_ms: None, ownership: ownership.clone() };
        let printed = serde_json::from_slice(&canonical(&job)).unwrap();
        prop_assert_eq!(read::<FlinkJobArtifact>(printed, "shop").unwrap(), job);

        let filter = Interceptor { interceptor_type: "filter".into(), config: Map::from_iter([("where".to_owned(), json!(sql))]) };
        let rule = GatewayRuleArtifact { name: name.clone(), virtual_topic: topics[0].clone(), physical_topic: sql, interceptors: vec![filter], ownership };
        let printed = serde_json::from_slice(&canonical(&rule)).unwrap();
        prop_assert_eq!(read::<GatewayRuleArtifact>(printed, "shop").unwrap(), rule);
    }
}

fn canonical<A: Artifact>(artifact: &A) -> Vec<u8> {
    crate::compiler::canonical::to_canonical(artifact).unwrap()
}
