use crate::compiler::testing::*;
use crate::project::model::*;

use super::*;

fn one(project: &Project) -> (ResolvedModel, Vec<String>) {
    let (mut models, findings) = resolve(project);
    let texts = findings.iter().map(|finding| format!("{} {}", finding.code.number(), finding.message)).collect();
    (models.remove(0), texts)
}

fn with(model: Model) -> Project {
    let mut project = project("shop");
    project.sources.push(source("s", "s.v1"));
    project.sources.push(source("t", "t.v1"));
    project.models.push(model);
    project
}

fn with_gateway(model: Model) -> Project {
    let mut project = with(model);
    project.runtime.gateway = Some(gateway_runtime());
    project
}

/// Whatever file a model stands in.
#[test]
fn models_are_resolved_in_the_order_of_their_names() {
    let mut project = with(model("b"));
    project.models.extend([model("c"), model("a")]);
    let names: Vec<String> = resolve(&project).0.into_iter().map(|model| model.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn materialization_follows_its_rules_in_order() {
    use Materialized::*;
    let alias =
        || Some(GatewayBlock { virtual_topic: Some(VirtualTopicBlock { name: Some("a".into()), compression: None }) });
    let copy = "SELECT * FROM {{ source(\"s\") }}";
    let filter = "SELECT * FROM {{ source(\"s\") }} WHERE a = 'GROUP BY'";
    let projection = "SELECT a FROM {{ source(\"s\") }} WHERE b IN (1, 2)";
    let count = "SELECT COUNT(*) FROM {{ source(\"s\") }}";
    let cases = [
        ("a bare model", model("m"), Topic, Topic),
        ("from without SQL", sink("m", &[source_ref("s")], "s3-sink"), Sink, Sink),
        ("from beats an alias", Model { gateway: alias(), ..sink("m", &[source_ref("s")], "x") }, Sink, Sink),
        ("a copy", sql_model("m", copy), Topic, Topic),
        ("a filter", sql_model("m", filter), VirtualTopic, Flink),
        ("a projection", sql_model("m", projection), Flink, Flink),
        ("an aggregate", sql_model("m", count), Flink, Flink),
        ("an alias", Model { gateway: alias(), ..sql_model("m", copy) }, VirtualTopic, VirtualTopic),
        ("written topic", Model { materialized: Some(Topic), ..sql_model("m", count) }, Topic, Topic),
        (
            "written virtual topic",
            Model { materialized: Some(VirtualTopic), ..sql_model("m", filter) },
            VirtualTopic,
            VirtualTopic,
        ),
        ("executor flink", Model { executor: Some(Executor::Flink), ..sql_model("m", copy) }, Flink, Flink),
        (
            "executor flink and topic",
            Model { executor: Some(Executor::Flink), materialized: Some(Topic), ..sql_model("m", copy) },
            Topic,
            Topic,
        ),
        (
            "executor kafka_streams",
            Model { executor: Some(Executor::KafkaStreams), ..sql_model("m", count) },
            Topic,
            Topic,
        ),
    ];
    for (what, declaration, with_both, without_gateway) in cases {
        let mut both = with_gateway(declaration.clone());
        both.runtime.flink = Some(flink_runtime());
        assert_eq!(one(&both).0.materialized, with_both, "{what} with Gateway and Flink");
        assert_eq!(one(&with(declaration)).0.materialized, without_gateway, "{what} without either");
    }
}

#[test]
fn what_gateway_cannot_run_is_e220_unless_flink_can() {
    let projection = sql_model("m", "SELECT a FROM {{ source(\"s\") }} WHERE b IN (1, 2)");
    let (resolved, findings) = one(&with_gateway(projection.clone()));
    assert_eq!(resolved.materialized, Materialized::VirtualTopic);
    assert_eq!(
        findings,
        ["E220 Gateway cannot run the SQL of virtual topic 'm': a projection; only `SELECT *` can be filtered"]
    );
    let explicit = Model { materialized: Some(Materialized::VirtualTopic), ..projection };
    let mut both = with_gateway(explicit);
    both.runtime.flink = Some(flink_runtime());
    assert!(one(&both).1[0].starts_with("E220"));
}

#[test]
fn a_masked_virtual_topic_is_e219() {
    let mut masked = sql_model("m", "SELECT * FROM {{ source(\"s\") }} WHERE a = 1");
    masked.security = Some(SecurityBlock {
        classification: Default::default(),
        policies: vec![
            serde_json::json!({"allow": {"roles": ["r"]}}),
            serde_json::json!({"mask": {"column": "iban", "method": "redact"}}),
        ],
    });
    assert_eq!(one(&with_gateway(masked)).1, ["E219 virtual topic 'm' cannot mask column 'iban'"]);
}

#[test]
fn dependencies_are_sources_then_models_each_once() {
    let sql = "SELECT * FROM {{ ref(\"b\") }} JOIN {{ source(\"t\") }} JOIN {{ source('s') }} JOIN {{ ref('b') }} JOIN {{ source(\"t\") }} -- {{ ref('x') }}";
    let mut project = with(sql_model("a", sql));
    project.models.push(model("b"));
    let (resolved, findings) = one(&project);
    assert_eq!(resolved.dependencies, [source_ref("t"), source_ref("s"), model_ref("b")]);
    assert_eq!(resolved.calls.len(), 5);
    assert!(findings.is_empty(), "{findings:?}");
    let from = Model { from: Some(vec![model_ref("b"), source_ref("s"), model_ref("b")]), ..model("a") };
    let mut project = with(from);
    project.models.push(model("b"));
    assert_eq!(one(&project).0.dependencies, [model_ref("b"), source_ref("s")]);
}

#[test]
fn unknown_names_and_self_references_are_refused() {
    let sql = "SELECT * FROM {{ source(\"sx\") }}, {{ ref(\"orders_x\") }}, {{ ref(\"m\") }}";
    let mut project = with(sql_model("m", sql));
    project.models.push(model("orders"));
    let (_, findings) = resolve(&project);
    let texts: Vec<String> =
        findings.iter().map(|f| format!("{} {} / {:?}", f.code.number(), f.message, f.suggestion)).collect();
    assert_eq!(
        texts,
        [
            "E101 Source 'sx' not found / Some(\"Available sources: 's', 't'\")",
            "E102 Model 'orders_x' not found / Some(\"Did you mean 'orders'?\")",
            "E104 Dependency cycle: m -> m / Some(\"A model cannot read its own output.\")",
        ]
    );
}

#[test]
fn a_name_of_the_other_kind_is_proposed_as_it_is_written() {
    let hints = |project: &Project| -> Vec<String> {
        resolve(project).1.into_iter().filter_map(|finding| finding.suggestion).collect()
    };
    let mut project =
        with(sql_model("m", "SELECT * FROM {{ ref(\"s\") }}, {{ ref(\"tt\") }}, {{ source(\"ordrs\") }}"));
    project.models.push(model("orders"));
    project.sources[1].name = "ttt".into();
    let expected = [
        "'s' is a source: write {{ source(\"s\") }}",
        "Did you mean {{ source(\"ttt\") }}?",
        "Did you mean {{ ref(\"orders\") }}?",
    ];
    assert_eq!(hints(&project), expected);
    let mut sink = model("k");
    sink.from = Some(vec![source_ref("orders"), model_ref("s")]);
    let mut project = with(sink);
    project.models.push(model("orders"));
    assert_eq!(hints(&project), ["'orders' is a model: write `ref: orders`", "'s' is a source: write `source: s`"]);
}

#[test]
fn every_sql_error_is_reported_with_its_model() {
    for (sql, finding) in [
        (
            "SELECT {{ config() }}",
            "E105 the SQL of model 'm': only {{ source(\"name\") }} and {{ ref(\"name\") }} may be used in SQL",
        ),
        (
            "INSERT INTO x SELECT 1",
            "E119 the SQL of model 'm': a model's SQL is one query that begins with SELECT, WITH or VALUES, not with `INSERT`",
        ),
        ("SELECT (1", "E119 the SQL of model 'm': this `(` is never closed"),
        ("  ", "E119 the SQL of model 'm': the SQL holds no query"),
    ] {
        assert_eq!(one(&with(sql_model("m", sql))).1, [finding]);
    }
    let unbalanced = sql_model("m", "SELECT (a FROM {{ source('s') }}");
    assert_eq!(one(&with(unbalanced)).0.dependencies, [source_ref("s")], "what is known stays known");
}

#[test]
fn macros_are_rendered_before_anything_looks_at_the_sql() {
    let mut project = with(Model { macro_name: Some("count".into()), ..model("m") });
    project.macros.insert("count".into(), "SELECT COUNT(*) FROM {{ source('s') }}".into());
    let (resolved, findings) = one(&project);
    assert_eq!(resolved.sql.as_deref(), Some("SELECT COUNT(*) FROM {{ source(\"s\") }}"));
    assert_eq!((resolved.materialized, findings.len()), (Materialized::Flink, 0));
    project.macros.insert("count".into(), "{{ '{{ config() }}' }}".into());
    assert!(one(&project).1[0].starts_with("E105 the SQL that macro 'count' gives model 'm'"));
}

/// Every rule of the executors, for projects that no loader has checked.
#[test]
fn executors_refuse_what_they_cannot_run() {
    let runner = |change: fn(&mut Model)| {
        let mut model = sql_model("m", "SELECT a FROM {{ source('s') }}");
        model.executor = Some(Executor::KafkaStreams);
        change(&mut model);
        let mut project = with(model);
        project.runtime.kafka_streams = Some(KafkaStreamsRuntime {
            image: String::new(),
            network: String::new(),
            initial_offset: InitialOffset::Earliest,
            startup_timeout: 60,
            stop_timeout: 30,
        });
        one(&project).1
    };
    assert!(runner(|_| {}).is_empty());
    let changes: [fn(&mut Model); 10] = [
        |m| m.flink = Some(FlinkBlock::default()),
        |m| m.flink_cluster = Some("f".into()),
        |m| m.connect_cluster = Some("c".into()),
        |m| m.key = Some("k".into()),
        |m| m.primary_key = Some(vec!["k".into()]),
        |m| m.schema = Some(schema()),
        |m| m.security = Some(SecurityBlock { classification: Default::default(), policies: vec![] }),
        |m| m.ml_outputs = Some(Default::default()),
        |m| m.from = Some(vec![]),
        |m| m.materialized = Some(Materialized::Flink),
    ];
    for change in changes {
        let findings = runner(change);
        assert!(findings.len() == 1 && findings[0].starts_with("E501"), "{findings:?}");
    }
    assert!(runner(|m| m.sql = None)[0].starts_with("E501"));
    let mut no_runtime = sql_model("m", "SELECT a FROM {{ source('s') }}");
    no_runtime.executor = Some(Executor::KafkaStreams);
    assert_eq!(
        one(&with(no_runtime)).1,
        ["E222 model 'm' runs on Kafka Streams, but the runtime has no kafka_streams"]
    );
    let mut flink = sql_model("m", "SELECT a FROM {{ source('s') }}");
    flink.executor = Some(Executor::Flink);
    flink.materialized = Some(Materialized::Sink);
    flink.gateway = Some(GatewayBlock { virtual_topic: None });
    assert_eq!(one(&with(flink)).1.len(), 2);
}

#[test]
fn inputs_of_rules_and_connectors_are_physical_names() {
    let mut project = with_gateway(model("bare"));
    project.models.push(sql_model("view", "SELECT * FROM {{ ref('bare') }} WHERE a = 1"));
    project.models[1].topic = Some(topic("view.alias"));
    project.models.push(sql_model("nested", "SELECT * FROM {{ ref('view') }} WHERE b = 2"));
    project.models.push(sink("archive", &[source_ref("s"), model_ref("view"), model_ref("bare")], "s3-sink"));
    let (models, findings) = resolve(&project);
    assert!(findings.is_empty(), "{findings:?}");
    let by_name = |name: &str| models.iter().find(|model| model.name == name).unwrap();
    assert_eq!(by_name("view").gateway_input.as_deref(), Some("bare"));
    assert_eq!(by_name("view").output, Some(Output::Gateway("view.alias".into())));
    assert_eq!(by_name("view").filter.as_deref(), Some("a = 1"));
    assert_eq!(by_name("nested").gateway_input.as_deref(), Some("view.alias"));
    assert_eq!(by_name("archive").connector_inputs, ["s.v1", "view.alias", "bare"]);
    assert_eq!((by_name("archive").process, by_name("archive").output.clone()), (Some(Process::Connect), None));
}
