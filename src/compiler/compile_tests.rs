use std::time::Instant;

use proptest::prelude::*;
use serde_json::json;

use super::testing::*;
use super::*;
use crate::project::model::*;

pub(super) fn shop() -> Project {
    let mut project = project("shop");
    project.sources.push(source("raw", "raw.v1"));
    project.runtime.connect = Some(connect_runtime());
    project
}

pub(super) fn warnings(compiled: &Compiled) -> Vec<String> {
    compiled.warnings.iter().map(|finding| format!("{} {}", finding.code.number(), finding.message)).collect()
}

/// SAF-015, SAF-017, SAF-018
#[test]
fn resources_carry_identity_owner_and_checksum_in_kind_order() {
    let mut project = shop();
    project.runtime.flink = Some(flink_runtime());
    project.runtime.gateway = Some(gateway_runtime());
    let mut orders = sql_model("orders", "SELECT COUNT(*) AS n FROM {{ source('raw') }}");
    orders.topic = Some(topic("z.orders"));
    orders.schema = Some(SchemaBlock {
        format: Some(SchemaFormat::Json),
        definition: Some("{\"type\": \"string\"}".into()),
        ..schema()
    });
    project.models.push(orders);
    project.models.push(Model { ownership: OwnershipBlock { mode: OwnershipMode::External }, ..model("a.theirs") });
    project.models.push(sink("archive", &[model_ref("orders")], "s3-sink"));
    project.models.push(sql_model("eu", "SELECT * FROM {{ source('raw') }} WHERE a = 1"));
    project.models[3].topic = Some(topic("orders.eu"));
    let mut checked = test("checked", "orders", TestType::Sample);
    checked.on_failure = Some(OnFailure { severity: Severity::Error, actions: vec![json!({"dlq": true})] });
    project.tests.push(checked);
    let compiled = compiled(project);
    let found: Vec<(Kind, String, String, OwnershipMode)> = compiled
        .resources()
        .into_iter()
        .map(|resource| (resource.kind, resource.logical_name, resource.physical_name, resource.mode))
        .collect();
    let managed = OwnershipMode::Managed;
    assert_eq!(
        found,
        [
            (Kind::Schema, "orders".into(), "z.orders-value".into(), managed),
            (Kind::Topic, "a.theirs".into(), "a.theirs".into(), OwnershipMode::External),
            (Kind::Topic, "orders__dlq".into(), "orders__dlq".into(), managed),
            (Kind::Topic, "orders".into(), "z.orders".into(), managed),
            (Kind::FlinkJob, "orders".into(), "orders".into(), managed),
            (Kind::Connector, "archive".into(), "archive".into(), managed),
            (Kind::GatewayRule, "eu".into(), "orders.eu".into(), managed),
        ]
    );
    let topic = compiled.artifacts.topics.iter().find(|topic| topic.name == "z.orders").unwrap();
    let resource = &compiled.resources()[3];
    assert_eq!(resource.artifact_checksum, Checksum::of(topic).unwrap());
    assert_eq!(topic.ownership.name, "orders");
}

/// SAF-016
#[test]
fn a_new_physical_name_keeps_the_logical_name() {
    let compiled_with = |name: &str| {
        let mut project = shop();
        project.models.push(Model { topic: Some(topic(name)), description: Some(name.into()), ..model("orders") });
        compiled(project).resources().remove(0)
    };
    let (before, after) = (compiled_with("orders.v1"), compiled_with("orders.v2"));
    assert_eq!(before.logical_name, after.logical_name);
    assert_ne!(before.physical_name, after.physical_name);
    assert_ne!(before.artifact_checksum, after.artifact_checksum);
}

#[test]
fn checksums_of_a_whole_project_are_fixed() {
    let mut project = shop();
    project.models.push(model("orders_valid"));
    let mut output = topic("orders.valid.v1");
    output.partitions = Some(3);
    output.config.insert("retention.ms".into(), json!(86400000));
    project.models[0].topic = Some(output);
    project.models.push(sink("orders_archive", &[model_ref("orders_valid")], "s3-sink"));
    project.models[1].sink.as_mut().unwrap().config.insert("s3.bucket.name".into(), json!("shop-archive"));
    let compiled = compiled(project);
    assert_eq!(compiled.artifacts.connectors[0].cluster, None);
    let checksums: Vec<String> =
        compiled.resources().iter().map(|resource| resource.artifact_checksum.to_string()).collect();
    assert_eq!(
        checksums,
        [
            "sha256:719b3c5c06ef9de20554a757b33d9b110098995343248a7ffbedff3b9233cbbe",
            "sha256:453e1c56e83a8d25744ecd667fdec9cf1b023f19233414f1dcd7c565128aebb1",
        ]
    );
}

#[test]
fn every_process_is_compiled_beside_its_topic() {
    let mut project = shop();
    project.sources[0].columns = vec![column("a", "STRING")];
    project.runtime.kafka_streams = Some(KafkaStreamsRuntime {
        image: "sha256:0".into(),
        network: "bridge".into(),
        initial_offset: InitialOffset::Earliest,
        startup_timeout: 60,
        stop_timeout: 30,
    });
    project.models.push(sql_model("agg", "SELECT COUNT(*) AS n FROM {{ source('raw') }}"));
    project.models.push(sql_model("copy", "SELECT * FROM {{ source('raw') }}"));
    project
        .models
        .push(Model { executor: Some(Executor::KafkaStreams), ..sql_model("ks", "SELECT a FROM {{ source('raw') }}") });
    let mut continuous = test("watch", "agg", TestType::Continuous);
    continuous.assertions = vec![json!({"not_null": {"columns": ["n"]}})];
    project.tests.push(continuous);
    project.tests.push(test("idle", "agg", TestType::Continuous));
    let compiled = compiled(project);
    let names: Vec<&str> = compiled.artifacts.topics.iter().map(|topic| topic.name.as_str()).collect();
    assert_eq!(names, ["agg", "copy", "ks", TEST_FAILURES]);
    let jobs: Vec<&str> = compiled.artifacts.flink_jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(jobs, ["agg", "copy_processor"]);
    let tests: Vec<&str> = compiled.artifacts.test_jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(tests, ["test_watch"]);
    let runners: Vec<&str> = compiled.artifacts.kafka_streams_jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(runners, ["ks"]);
    assert_eq!(warnings(&compiled), [""; 0]);
    let failures = &compiled.artifacts.topics[3];
    assert_eq!((failures.ownership.name.as_str(), failures.ownership.owner_type), ("agg", OwnerType::Model));
}

#[test]
fn topic_defaults_apply_from_the_nearest_level() {
    let mut project = shop();
    project.defaults.topic = TopicDefaults { partitions: Some(6), replication_factor: Some(3) };
    project.defaults.model_topic = TopicDefaults { partitions: Some(12), replication_factor: None };
    project.models.push(model("plain"));
    project.models.push(Model { topic: Some(TopicBlock { partitions: Some(2), ..topic("own") }), ..model("own") });
    let mut checked = test("checked", "raw", TestType::Sample);
    checked.on_failure = Some(OnFailure {
        severity: Severity::Error,
        actions: vec![json!({"dlq": {"topic": "dead"}}), json!({"dlq": {"topic": "own"}})],
    });
    project.tests.push(checked);
    let shapes: Vec<(String, u32, u16)> = compiled(project)
        .artifacts
        .topics
        .into_iter()
        .map(|topic| (topic.name, topic.partitions, topic.replication_factor))
        .collect();
    assert_eq!(shapes, [("own".into(), 2, 3), ("plain".into(), 12, 3), ("dead".into(), 6, 3)]);
}

#[test]
fn topic_config_becomes_strings() {
    let mut project = shop();
    let mut block = topic("t");
    block.config =
        json!({"preallocate": true, "retention.ms": 60000, "cleanup.policy": "compact"}).as_object().cloned().unwrap();
    project.models.push(Model { topic: Some(block), ..model("m") });
    let config = compiled(project).artifacts.topics.remove(0).config;
    let texts: Vec<(&str, &str)> = config.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(texts, [("cleanup.policy", "compact"), ("preallocate", "true"), ("retention.ms", "60000")]);
    let mut project = shop();
    let mut block = topic("t");
    block.config.insert("x".into(), json!([1]));
    project.models.push(Model { topic: Some(block), ..model("m") });
    assert_eq!(refused(project), ["E501 topic config 'x' of model 'm' must be a string, an integer or a boolean"]);
    for (length, fits) in [(32_767, true), (32_768, false)] {
        let mut project = shop();
        let mut block = topic("t");
        block.config.insert("x".into(), "1".repeat(length).into());
        project.models.push(Model { topic: Some(block), ..model("m") });
        match fits {
            true => assert_eq!(compiled(project).artifacts.topics[0].config["x"].len(), length),
            false => assert!(refused(project)[0].contains("'x' of model 'm' must be at most 32767 bytes long")),
        }
    }
}

#[test]
fn a_generated_avro_schema_has_a_nullable_field_for_every_data_column() {
    let mut project = shop();
    project.name = "payments".into();
    let mut raw = source("payments_raw", "payments.raw.v1");
    raw.columns = vec![column("id", "STRING"), column("amount", "DECIMAL(10,2)")];
    raw.columns[1].description = Some("paid".into());
    raw.schema = Some(schema());
    project.sources = vec![raw];
    let golden = "sha256:722100850e0f9bc230884de5b3bff47a121e3c6a45b1d6553541a7f09098c857";
    assert_eq!(compiled(project.clone()).resources()[0].artifact_checksum.as_str(), golden);

    let types = [
        ("BOOLEAN", json!("boolean")),
        ("SMALLINT", json!("int")),
        ("BIGINT", json!("long")),
        ("FLOAT", json!("float")),
        ("DOUBLE", json!("double")),
        ("BYTES", json!("bytes")),
        ("DECIMAL", json!({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18})),
        ("TIMESTAMP_LTZ(3)", json!({"type": "long", "logicalType": "timestamp-millis"})),
        ("DATE", json!({"type": "int", "logicalType": "date"})),
        ("TIME", json!({"type": "int", "logicalType": "time-millis"})),
        ("ARRAY<INT>", json!("string")),
        ("NONSENSE", json!("string")),
    ];
    let raw = &mut project.sources[0];
    raw.name = "1pay-ments.raw".into();
    raw.columns = types.iter().enumerate().map(|(index, (text, _))| column(&format!("c{index}"), text)).collect();
    raw.columns.push(Column { proctime: true, data_type: None, ..column("p", "") });
    raw.columns.push(Column { metadata: Some("offset".into()), ..column("o", "BIGINT") });
    raw.columns.push(Column { expression: Some("a + b".into()), data_type: None, ..column("e", "") });
    let body = compiled(project.clone()).artifacts.schemas.remove(0).schema;
    assert_eq!(body["name"], "_1pay_ments_raw");
    let fields = body["fields"].as_array().unwrap();
    assert_eq!(fields.len(), types.len());
    for (field, (text, wanted)) in fields.iter().zip(&types) {
        assert_eq!(field["type"], json!(["null", wanted]), "{text}");
    }
    project.sources[0].columns.push(column("not-a-name", "INT"));
    assert!(refused(project)[0].starts_with("E119"));
}

#[test]
fn a_schema_of_which_nothing_is_told_is_no_silence() {
    let told = |format, mode, columns| {
        let mut project = shop();
        let block = SchemaBlock { format, compatibility: Some(Compatibility::Backward), ..schema() };
        project.models.push(Model { schema: Some(block), ownership: OwnershipBlock { mode }, columns, ..model("m") });
        let compiled = compile(Arc::new(project)).unwrap();
        assert!(compiled.artifacts.schemas.is_empty());
        warnings(&compiled).into_iter().filter(|warning| warning.starts_with("W236")).collect::<Vec<_>>()
    };
    let bare = "W236 the schema of model 'm' has neither a definition nor columns to make one from: no subject is registered, and no compatibility is set";
    assert_eq!(told(None, OwnershipMode::Managed, vec![]), [bare]);
    assert_eq!(told(Some(SchemaFormat::Avro), OwnershipMode::Adopted, vec![]), [bare]);
    assert_eq!(told(None, OwnershipMode::External, vec![]), [""; 0]);
    let json = told(Some(SchemaFormat::Json), OwnershipMode::Managed, vec![column("a", "INT")]);
    assert!(json[0].contains("no definition, and only Avro is made from columns"), "{json:?}");
}

#[test]
fn schemas_are_taken_as_written_or_refused() {
    let artifact = |block: SchemaBlock| {
        let mut project = shop();
        project.models.push(Model { schema: Some(block), columns: vec![column("a", "INT")], ..model("m") });
        compile(Arc::new(project)).map(|compiled| compiled.artifacts.schemas)
    };
    let with = |format: SchemaFormat, definition: &str| SchemaBlock {
        format: Some(format),
        definition: Some(definition.into()),
        ..schema()
    };
    let proto = artifact(with(SchemaFormat::Protobuf, "syntax = \"proto3\";")).unwrap().remove(0);
    assert_eq!((proto.schema_type.as_str(), proto.schema), ("PROTOBUF", json!("syntax = \"proto3\";")));
    let json_schema = artifact(with(SchemaFormat::Json, "{\"type\": \"object\"}")).unwrap().remove(0);
    assert_eq!((json_schema.subject.as_str(), json_schema.schema), ("m-value", json!({"type": "object"})));
    assert!(artifact(SchemaBlock { format: Some(SchemaFormat::Json), ..schema() }).unwrap().is_empty());
    let reference = |name: &str| SchemaReference { name: name.into(), subject: "s".into(), version: 1 };
    let block =
        SchemaBlock { references: vec![reference("b"), reference("a")], ..with(SchemaFormat::Avro, "\"string\"") };
    assert_eq!(artifact(block).unwrap()[0].references, [reference("a"), reference("b")]);
    for (definition, why) in [
        ("{not json", "is not JSON (line 1, column 2 of the definition)"),
        ("{\"default\": 9007199254740992}", "holds a number outside ±(2^53−1); write it as a string"),
        ("{\"a\": 1, \"a\": 2}", "repeats a key or is nested deeper than 64 levels"),
        ("", "is not JSON (line 1, column 0 of the definition)"),
    ] {
        let findings = artifact(with(SchemaFormat::Avro, definition)).unwrap_err();
        let finding = findings.iter().next().unwrap();
        assert_eq!(
            (finding.code, finding.message.as_str()),
            (Code::E501ParseError, &*format!("the schema of model 'm' {why}"))
        );
    }
    let mut sink_with_schema = sink("m", &[source_ref("raw")], "s3-sink");
    sink_with_schema.schema = Some(schema());
    let mut project = shop();
    project.models.push(sink_with_schema);
    assert!(refused(project)[0].starts_with("E501 model 'm' has a schema"));
}

#[test]
fn gateway_rules_carry_the_predicate_as_written() {
    let mut project = shop();
    project.runtime.gateway = Some(gateway_runtime());
    project.models.push(sql_model("eu", "SELECT * FROM {{ source('raw') }}\nWHERE region = 'EU'  AND a > 1;\n"));
    project.models.push(Model {
        materialized: Some(Materialized::VirtualTopic),
        ..sql_model("all", "SELECT * FROM {{ ref('eu') }}")
    });
    project.models.push(Model { materialized: Some(Materialized::VirtualTopic), ..model("nothing") });
    assert_eq!(refused(project.clone()), ["E119 virtual topic 'nothing' reads no topic"]);
    project.models.pop();
    let rules = compiled(project).artifacts.gateway_rules;
    assert_eq!(rules[0].interceptors[0].config["where"], "region = 'EU'  AND a > 1");
    assert_eq!((rules[0].physical_topic.as_str(), rules[0].virtual_topic.as_str()), ("raw.v1", "eu"));
    assert_eq!((rules[1].physical_topic.as_str(), rules[1].interceptors.len()), ("eu", 0));
}

/// EXP-005
#[test]
fn names_and_physical_names_must_not_meet() {
    let mut twice = shop();
    twice.models = vec![model("m"), model("m")];
    twice.exposures = vec![exposure("raw")];
    assert_eq!(
        refused(twice),
        ["E103 Duplicate model name 'm'", "E111 'raw' is the name of both the source and this exposure"]
    );
    let mut topics = shop();
    topics.models =
        vec![Model { topic: Some(topic("t")), ..model("a") }, Model { topic: Some(topic("t")), ..model("b") }];
    assert_eq!(refused(topics), ["E111 model 'b' and model 'a' both make the topic 't'"]);
    let mut subjects = shop();
    let block = SchemaBlock { subject: Some("raw.v1-value".into()), definition: Some("\"int\"".into()), ..schema() };
    subjects.sources[0].schema = Some(block.clone());
    subjects.models = vec![Model { schema: Some(block), ..model("a") }];
    assert_eq!(refused(subjects), ["E111 model 'a' and source 'raw' both make the schema subject 'raw.v1-value'"]);
    let mut jobs = shop();
    jobs.models = vec![
        sql_model("a", "SELECT * FROM {{ source('raw') }}"),
        sql_model("a_processor", "SELECT COUNT(*) AS n FROM {{ source('raw') }}"),
    ];
    assert_eq!(refused(jobs), ["E111 model 'a_processor' and model 'a' both make the Flink job 'a_processor'"]);
    let mut aliases = shop();
    aliases.runtime.gateway = Some(gateway_runtime());
    for name in ["a", "b"] {
        aliases.models.push(Model {
            topic: Some(topic("same")),
            ..sql_model(name, "SELECT * FROM {{ source('raw') }} WHERE x = 1")
        });
    }
    assert_eq!(refused(aliases), ["E111 model 'b' and model 'a' both make the Gateway alias 'same'"]);
}

/// CRM-023, CRM-025, CRM-028
#[test]
fn removals_meet_no_desired_connector_and_no_other_removal() {
    let removal = |owner: &str, name: &str, cluster: &str| ConnectorRemoval {
        logical_owner: owner.into(),
        name: name.into(),
        cluster: cluster.into(),
        origin: Origin::default(),
    };
    let with = |removals: Vec<ConnectorRemoval>| {
        let mut project = shop();
        project.models.push(sink("archive", &[source_ref("raw")], "s3-sink"));
        project.connector_removals = removals;
        project
    };
    let compiled = compiled(with(vec![removal("old", "b", "main"), removal("older", "a", "main")]));
    let names: Vec<&str> = compiled.artifacts.connector_removals.iter().map(|removal| removal.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert!(compiled.resources().iter().all(|resource| resource.logical_name != "old"));
    for removals in [
        vec![removal("archive", "x", "main")],
        vec![removal("old", "archive", "main")],
        vec![removal("old", "x", "main"), removal("old", "y", "main")],
        vec![removal("old", "x", "main"), removal("older", "x", "main")],
    ] {
        let findings = refused(with(removals));
        assert!(findings.len() == 1 && findings[0].starts_with("E427 removal of connector"), "{findings:?}");
    }
    compile(Arc::new(with(vec![removal("old", "archive", "elsewhere")]))).unwrap();
}

/// EXP-006
#[test]
fn cycles_are_e104_with_their_path() {
    let mut project = shop();
    project.models = vec![
        sql_model("c", "SELECT a FROM {{ ref('b') }}"),
        sql_model("b", "SELECT a FROM {{ ref('a') }}"),
        sql_model("a", "SELECT a FROM {{ ref('c') }} JOIN {{ source('raw') }}"),
    ];
    assert_eq!(refused(project), ["E104 Dependency cycle: a -> b -> c -> a"]);
    let mut feedback = shop();
    feedback.models = vec![sql_model("m", "SELECT a FROM {{ source('raw') }}")];
    let mut app = exposure("app");
    app.consumes = vec![Some(model_ref("m"))];
    app.produces = vec![Some(source_ref("raw"))];
    feedback.exposures.push(app);
    assert_eq!(refused(feedback), ["E104 Dependency cycle: app -> raw -> m -> app"]);
}

/// EXP-003
#[test]
fn exposures_stand_in_the_graph_in_every_direction() {
    let mut project = shop();
    project.models = vec![sql_model("m", "SELECT a FROM {{ source('raw') }}"), model("out")];
    let mut app = exposure("app");
    app.consumes = vec![Some(model_ref("m"))];
    app.depends_on = vec![Some(source_ref("raw")), None];
    app.produces = vec![Some(model_ref("out")), Some(model_ref("unknown"))];
    project.exposures.push(app);
    let dag = compiled(project).dag;
    let edges: Vec<(&str, &str)> = dag.edges().collect();
    assert_eq!(edges, [("app", "out"), ("m", "app"), ("raw", "app"), ("raw", "m")]);
    assert_eq!(dag.order().unwrap(), ["raw", "m", "app", "out"]);
    assert_eq!(dag.upstream("out"), ["app", "m", "raw"].into());
    assert_eq!(dag.downstream("raw"), ["app", "m", "out"].into());
    assert_eq!(dag.upstream("unknown"), [].into());
}

#[test]
fn a_chain_of_fifty_thousand_models_overflows_no_stack() {
    let mut project = shop();
    project.models = (0..50_000)
        .map(|index| match index {
            0 => model("m0"),
            _ => Model {
                from: Some(vec![model_ref(&format!("m{}", index - 1))]),
                materialized: Some(Materialized::Topic),
                ..model(&format!("m{index}"))
            },
        })
        .collect();
    let (models, _) = resolve::resolve(&project);
    let dag = Dag::build(&project, &models);
    assert_eq!(dag.order().unwrap().len(), 50_001);
    assert_eq!(dag.upstream("m49999").len(), 49_999);
}

#[test]
fn every_error_of_a_step_is_reported_at_once() {
    let mut project = shop();
    project.models = vec![
        sql_model("a", "SELECT {{ x }}"),
        sql_model("b", "SELECT (1"),
        sql_model("c", "SELECT * FROM {{ ref('z') }}"),
    ];
    assert_eq!(refused(project).len(), 3);
    let mut project = shop();
    let mut checked = test("checked", "nowhere", TestType::Sample);
    checked.on_failure =
        Some(OnFailure { severity: Severity::Error, actions: vec![json!({"dlq": {"model": "none"}})] });
    project.tests.push(checked);
    project.models.push(Model { sink: None, ..sink("s", &[source_ref("raw")], "x") });
    let codes: Vec<String> = refused(project).iter().map(|finding| finding[..4].to_owned()).collect();
    assert_eq!(codes, ["E204", "E112", "E107"]);
}

/// Ten times the models take about ten times as long.
#[test]
fn compilation_is_linear_in_models_and_edges() {
    let generated = |count: usize| {
        let mut project = shop();
        project.models = (0..count)
            .map(|index| {
                let input = if index % 10 == 0 { "source('raw')".to_owned() } else { format!("ref('m{}')", index - 1) };
                sql_model(
                    &format!("m{index}"),
                    &format!("SELECT a, COUNT(*) AS n FROM {{{{ {input} }}}} WHERE b > 1 GROUP BY a"),
                )
            })
            .collect();
        Arc::new(project)
    };
    let time = |count: usize| {
        let project = generated(count);
        let start = Instant::now();
        assert_eq!(compile(project).unwrap().artifacts.topics.len(), count);
        start.elapsed().as_secs_f64()
    };
    time(200);
    // Other work on the machine can spoil one comparison, hardly all of them; a quadratic step would spoil them all.
    let ratios: Vec<f64> = (0..4).map(|_| time(10_000) / time(1000)).take_while(|ratio| *ratio > 25.0).collect();
    assert!(ratios.len() < 4, "10 000 models took {ratios:?} times as long as 1 000");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The order is right, or the reported cycle is one.
    #[test]
    fn an_order_respects_every_edge_or_names_a_real_cycle(edges in prop::collection::vec((0..15_usize, 0..15_usize), 0..30)) {
        let mut project = shop();
        project.models = (0..15).map(|index| {
            let from: Vec<Reference> = edges.iter().filter(|(_, to)| *to == index).map(|(from, _)| model_ref(&format!("m{from:02}"))).collect();
            Model { from: Some(from), materialized: Some(Materialized::Topic), ..model(&format!("m{index:02}")) }
        }).collect();
        let (models, _) = resolve::resolve(&project);
        let dag = Dag::build(&project, &models);
        let found: std::collections::BTreeSet<(&str, &str)> = dag.edges().collect();
        match dag.order() {
            Ok(order) => {
                let at = |name: &str| order.iter().position(|other| *other == name).unwrap();
                prop_assert!(found.iter().all(|(from, to)| at(from) < at(to)));
                prop_assert_eq!(order.len(), dag.nodes.len());
            }
            Err(path) => {
                prop_assert!(path.len() >= 2 && path.first() == path.last());
                prop_assert!(path.windows(2).all(|pair| found.contains(&(pair[0], pair[1]))), "{:?}", path);
            }
        }
    }
}
