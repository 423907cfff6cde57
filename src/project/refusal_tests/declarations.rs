//! Sources, models, tests, exposures, functions, connections.

use super::*;

#[test]
fn names() {
    let model = |name: &str| format!("models: [{{name: '{name}'}}]");
    for good in ["a", "A_1", "a.b-c", &"a".repeat(128)] {
        accepted(&[&model(good)]);
    }
    for bad in ["", "-a", ".a", "a..b", "a b", "a/b", "é", &"a".repeat(129)] {
        check(&[(&model(bad), "E501 1:17 models → 0 → name")]);
    }
    check(&[
        ("models: [{name: a, topic: {name: '..'}}]", "E501 1:34 models → 0 → topic → name"),
        ("models: [{name: a, topic: {name: 'a/b'}}]", "E501 1:34 models → 0 → topic → name"),
        ("connections: {'a b': {type: t}}", "E501 1:15 connections → a b"),
    ]);
}

/// SAF-009
#[test]
fn sources() {
    let source = |rest: &str| format!("sources:\n- {{name: s, topic: t, {rest}}}");
    let rows = [
        ("ownership: {mode: shared}", "sources → 0 → ownership → mode"),
        ("ownership: {}", "sources → 0 → ownership → mode"),
        ("ownership: null", "sources → 0 → ownership"),
        ("ownership: {mode: Managed}", "sources → 0 → ownership → mode"),
        ("schema: {version: 0}", "sources → 0 → schema → version"),
        ("schema: {format: xml}", "sources → 0 → schema → format"),
        ("schema: {definition: d, fields: []}", "sources → 0 → schema → fields"),
        ("schema: {compatibility: SOME}", "sources → 0 → schema → compatibility"),
        ("schema: {references: [{name: a, subject: b, version: 1}]}", "sources → 0 → schema → references"),
        (
            "schema: {definition: d, references: [{name: a, subject: b, version: latest}]}",
            "sources → 0 → schema → references → 0 → version",
        ),
        (
            "schema: {definition: d, references: [{name: a, subject: ' ', version: 1}]}",
            "sources → 0 → schema → references → 0 → subject",
        ),
        (
            "schema: {definition: d, references: [{name: a, subject: b, version: 1, id: 2}]}",
            "sources → 0 → schema → references → 0 → id",
        ),
        (
            "schema: {definition: d, references: [{name: a, subject: b, version: 1}, {name: a, subject: c, version: 1}]}",
            "sources → 0 → schema → references → 1 → name",
        ),
        ("schema: {format: avro, timestamp_format: sql}", "sources → 0 → schema → timestamp_format"),
        ("columns: [{name: a}, {name: a}]", "sources → 0 → columns → 1 → name"),
        ("columns: [{name: a, proctime: true, expression: b}]", "sources → 0 → columns → 0"),
        ("columns: [{name: a, metadata: timestamp}]", "sources → 0 → columns → 0"),
        ("columns: [{name: a, type: T, metadata: x}]", "sources → 0 → columns → 0 → metadata"),
        ("columns: [{name: a, classification: secret}]", "sources → 0 → columns → 0 → classification"),
        ("event_time: {}", "sources → 0 → event_time → column"),
        (
            "event_time: {column: a, watermark: {max_out_of_orderness_ms: 8640000000}}",
            "sources → 0 → event_time → watermark → max_out_of_orderness_ms",
        ),
        ("event_time: {column: a, watermark: {expression: e}}", "sources → 0 → event_time → watermark → expression"),
        ("event_time: {column: a, watermark: {strategy: custom}}", "sources → 0 → event_time → watermark"),
        ("event_time: {column: a}, advanced: {event_time: {column: b}}", "sources → 0 → advanced → event_time"),
        ("tags: x", "sources → 0 → tags"),
        ("freshness: {max_lag: 1}", "sources → 0 → freshness → max_lag"),
    ];
    for (text, expected) in rows {
        assert_eq!(paths(&source(text)), [expected], "{text}");
    }
    accepted(&[
        &source("schema: {format: AVRO, compatibility: backward_transitive}"),
        &source("event_time: {column: a, watermark: {max_out_of_orderness_ms: null}}"),
        &source("description: null, schema: null"),
        "sources: [{name: s, topic: ''}]",
    ]);
}

#[test]
fn models() {
    let model = |rest: &str| format!("models:\n- {{name: m, {rest}}}");
    let path = |rest: &str| format!("models → 0 → {rest}");
    let rows = [
        ("sql: a, macro: b", "macro"),
        ("macro: a/b", "macro"),
        ("params: {a: 1}", "params → a"),
        ("from: [{}]", "from → 0"),
        ("from: [{source: a, ref: b}]", "from → 0"),
        ("from: {ref: a}", "from"),
        ("from: ' '", "from"),
        ("materialized: view", "materialized"),
        ("executor: spark", "executor"),
        ("topic: {partitions: 0}", "topic → partitions"),
        ("topic: {config: {a: 1.5}}", "topic → config → a"),
        ("topic: {config: {a: null}}", "topic → config → a"),
        ("topic: {config: {a: [1]}}", "topic → config → a"),
        ("sink: {}", "sink → connector"),
        ("sink: {connector: jdbc-sink, config: {a: null}}", "sink → config → a"),
        ("sink: {connector: jdbc-sink, config: {a: {b: 1}}}", "sink → config → a"),
        ("sink: {connector: jdbc-sink, config: {name: other}}", "sink → config → name"),
        ("sink: {connector: jdbc-sink, config: {connector.class: x}}", "sink → config → connector.class"),
        ("sink: {connector: a}, connector: {type: b}", "connector"),
        ("flink: {parallelism: 1}, advanced: {flink: {parallelism: 2}}", "advanced → flink"),
        ("topic: {name: a}, gateway: {virtual_topic: {name: b}}", "gateway → virtual_topic → name"),
        ("security: {classification: {a: top}}", "security → classification → a"),
        ("security: {policies: [{mask: {column: a, method: blur}}]}", "security → policies → 0 → mask → method"),
        ("security: {policies: [{mask: {column: a, method: hash}, deny: {roles: []}}]}", "security → policies → 0"),
        ("security: {policies: [{grant: {}}]}", "security → policies → 0 → grant"),
        ("security: {policies: [{deny: {}}]}", "security → policies → 0 → deny → roles"),
        ("access: internal", "access"),
        ("version: '1'", "version"),
        ("contract: {columns: [{name: a}, {name: a}]}", "contract → columns → 1 → name"),
        ("contract: {}", "contract → columns"),
        ("materialized: sink, schema: {}", "schema"),
        ("materialized: virtual_topic, schema: {}", "schema"),
        ("from: a, schema: {}", "schema"),
        ("executor: flink", "executor"),
        ("executor: flink, sql: a, materialized: sink", "materialized"),
        ("executor: flink, sql: a, gateway: {}", "gateway"),
        ("executor: flink, sql: a, sink: {connector: c}", "sink"),
        ("executor: kafka_streams, sql: a, materialized: flink", "materialized"),
        ("executor: kafka_streams, sql: a, key: k", "key"),
        ("executor: kafka_streams, sql: a, from: b", "from"),
        ("executor: kafka_streams, sql: a, schema: {}", "schema"),
        ("executor: kafka_streams, sql: a, security: {}", "security"),
        ("executor: kafka_streams, sql: a, primary_key: [a]", "primary_key"),
        ("executor: kafka_streams, sql: a, advanced: {flink: {}}", "flink"),
        ("flink: {parallelism: 0}", "flink → parallelism"),
        ("flink: {state_backend: memory}", "flink → state_backend"),
        ("flink: {checkpoint: {mode: exactly_once}}", "flink → checkpoint → mode"),
        ("flink: {checkpoint: {min_pause_ms: -1}}", "flink → checkpoint → min_pause_ms"),
        ("flink: {checkpoint: {externalized: KEEP}}", "flink → checkpoint → externalized"),
        ("flink: {restart_strategy: {type: often}}", "flink → restart_strategy → type"),
        ("flink: {restart_strategy: {type: none, attempts: 1}}", "flink → restart_strategy → attempts"),
        ("flink: {restart_strategy: {max_backoff_ms: 1}}", "flink → restart_strategy → max_backoff_ms"),
        ("flink: {changelog_mode: retract}", "flink → changelog_mode"),
        ("flink: {rocksdb: {block_cache_size_mb: 0}}", "flink → rocksdb → block_cache_size_mb"),
        ("ml_outputs: {m: {}}", "ml_outputs → m → columns"),
        ("partitions: 3", "partitions"),
    ];
    for (text, expected) in rows {
        assert_eq!(paths(&model(text)), [path(expected)], "{text}");
    }
    accepted(&[
        &model("from: []"),
        &model("executor: kafka_streams, sql: a, materialized: topic"),
        &model("executor: flink, macro: a, materialized: topic, schema: {}"),
        &model(
            "flink: {state_backend: com.example.Factory, state_ttl_ms: -5, restart_strategy: {attempts: 1, delay_ms: 0}}",
        ),
        &model("security: {policies: [{mask: {column: a, method: null}}, {mask: {column: b, method: 'null'}}]}"),
        &model(
            "sink: {connector: jdbc-sink, config: {name: m, connector.class: io.confluent.connect.jdbc.JdbcSinkConnector}}",
        ),
    ]);
}

#[test]
fn an_unknown_field_tells_where_it_belongs() {
    let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}models: [{{name: m, partitions: 3}}]\n"));
    let errors = load(&fs, &EnvironmentInput::default()).unwrap_err().into_vec();
    assert_eq!(errors[0].suggestion.as_deref(), Some("write it under 'topic:'"));
}

#[test]
fn tests_exposures_functions_and_connections() {
    let test = |rest: &str| format!("tests:\n- {{name: t, model: m, type: sample, {rest}}}");
    let assertion = |text: &str| test(&format!("assertions: [{text}]"));
    let exposure = |rest: &str| format!("exposures:\n- {{name: e, type: api, {rest}}}");
    let rows = [
        ("tests: [{name: t, model: m}]".to_owned(), "tests → 0 → type"),
        ("tests: [{name: t, model: m, type: live}]".to_owned(), "tests → 0 → type"),
        (test("sample_size: 0"), "tests → 0 → sample_size"),
        (test("on_failure: {severity: fatal}"), "tests → 0 → on_failure → severity"),
        (test("on_failure: {actions: [{page: true}]}"), "tests → 0 → on_failure → actions → 0 → page"),
        (test("on_failure: {actions: [{dlq: false}]}"), "tests → 0 → on_failure → actions → 0 → dlq"),
        (test("on_failure: {actions: [{dlq: {name: x}}]}"), "tests → 0 → on_failure → actions → 0 → dlq → name"),
        (assertion("{not_null: {columns: a}}"), "tests → 0 → assertions → 0 → not_null → columns"),
        (assertion("{nul: {}}"), "tests → 0 → assertions → 0 → nul"),
        (assertion("{}"), "tests → 0 → assertions → 0"),
        (assertion("{range: {column: a}}"), "tests → 0 → assertions → 0 → range"),
        (assertion("{range: {column: a, min: '1'}}"), "tests → 0 → assertions → 0 → range → min"),
        (
            assertion("{accepted_values: {column: a, values: [[1]]}}"),
            "tests → 0 → assertions → 0 → accepted_values → values → 0",
        ),
        (assertion("{accepted_types: {types: {a: 1}}}"), "tests → 0 → assertions → 0 → accepted_types → types → a"),
        (assertion("{unique_key: {key: a, tolerance: 2}}"), "tests → 0 → assertions → 0 → unique_key → tolerance"),
        (assertion("{custom_sql: {}}"), "tests → 0 → assertions → 0 → custom_sql → where"),
        (
            assertion("{distribution: {column: a, buckets: [{x: 1}]}}"),
            "tests → 0 → assertions → 0 → distribution → buckets → 0 → x",
        ),
        (assertion("{foreign_key: {column: a, ref_model: b}}"), "tests → 0 → assertions → 0 → foreign_key → ref_key"),
        ("exposures: [{name: e}]".to_owned(), "exposures → 0 → type"),
        (exposure("role: writer"), "exposures → 0 → role"),
        (exposure("consumes: [a]"), "exposures → 0 → consumes → 0"),
        (exposure("consumes: [{model: a}]"), "exposures → 0 → consumes → 0 → model"),
        (exposure("sla: {max_error_rate: 2}"), "exposures → 0 → sla → max_error_rate"),
        (exposure("owners: [{name: 1}]"), "exposures → 0 → owners → 0 → name"),
        (exposure("data_requirements: [1]"), "exposures → 0 → data_requirements"),
        ("udfs: [{name: f}]".to_owned(), "udfs → 0 → return_type"),
        ("udfs: [{name: f, return_type: INT, language: go}]".to_owned(), "udfs → 0 → language"),
        ("connections: {c: {}}".to_owned(), "connections → c → type"),
        ("connections: {c: {type: t, config: {a: null}}}".to_owned(), "connections → c → config → a"),
    ];
    for (text, expected) in rows {
        assert_eq!(paths(&text), [expected], "{text}");
    }
    accepted(&[&exposure("consumes: [{}, {source: a, ref: b}], owners: [{name: me}]")]);
}
