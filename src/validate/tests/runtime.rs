//! What a model needs of the runtime that runs it.

use super::*;

#[test]
fn a_model_needs_the_runtime_that_runs_it() {
    const FLINK: &str =
        "runtime:\n  kafka: {bootstrap_servers: 'b:9092'}\n  flink: {clusters: {f: {rest_url: 'http://f'}}}\n";
    const GATEWAY: &str =
        "runtime:\n  kafka: {bootstrap_servers: 'b:9092'}\n  conduktor: {gateway: {admin_url: 'http://g'}}\n";
    const CONNECT: &str = "runtime:\n  kafka: {bootstrap_servers: 'b:9092'}\n  connect: {default: c, clusters: {c: {rest_url: 'http://c'}}}\n";
    let source = "sources:\n  - {name: s, topic: s, columns: [{name: a, type: INT}]}\n";
    for (code, with, model) in [
        (
            Code::E201GatewayRequired,
            GATEWAY,
            "models:\n  - {name: m, materialized: §virtual_topic, sql: 'SELECT * FROM {{ source(\"s\") }} WHERE a = 1'}\n",
        ),
        (
            Code::E202FlinkRequired,
            FLINK,
            "models:\n  - {name: m, materialized: §flink, sql: 'SELECT a FROM {{ source(\"s\") }}'}\n",
        ),
        (
            Code::W206NoProcessingRuntime,
            FLINK,
            "models:\n  - {name: §m, materialized: topic, sql: 'SELECT a FROM {{ source(\"s\") }}'}\n",
        ),
        (
            Code::W206NoProcessingRuntime,
            GATEWAY,
            "models:\n  - {name: §m, sql: 'SELECT * FROM {{ source(\"s\") }} WHERE a = 1'}\n",
        ),
        (
            Code::E205ConnectRequired,
            CONNECT,
            "models:\n  - name: m\n    from: [{source: s}]\n    sink: §{connector: jdbc-sink}\n",
        ),
        (
            Code::E207ContinuousTestWithoutFlink,
            FLINK,
            "tests:\n  - {name: t, model: s, type: §continuous, assertions: [{not_null: {columns: [a]}}]}\n",
        ),
    ] {
        let body = format!("{source}{model}");
        let (text, place) = unmarked(&body);
        let found = findings(&text);
        assert!(
            found.iter().any(|finding| finding.code == code && finding.location.as_ref() == Some(&place)),
            "{code} is not raised at {place}: {found:#?}\n{text}"
        );
        let good = document(&format!("{with}{}", body.replace('§', "")));
        assert!(!codes(&good).contains(&code), "{code} is raised though the runtime has it\n{good}");
    }
}

#[test]
fn a_filter_that_a_gateway_could_run_is_called_ambiguous_and_a_projection_is_not() {
    check(&[Case {
        code: Code::W205AmbiguousMaterialization,
        body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {clusters: {f: {rest_url: 'http://f'}}}
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}]}
models:
  - {name: §m, sql: 'SELECT * FROM {{ source(\"s\") }} WHERE a = 1'}
",
        fix: ("SELECT *", "SELECT a"),
    }]);
}

#[test]
fn a_sink_needs_its_block_and_the_default_cluster() {
    check(&[
        Case {
            code: Code::E204MissingSinkConfig,
            body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  connect: {default: c, clusters: {c: {rest_url: 'http://c'}}}
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}]}
models:
  - name: m
    from:
      §- {source: s}
    #sink
",
            fix: ("    #sink", "    sink: {connector: jdbc-sink}"),
        },
        Case {
            code: Code::E209InvalidClusterRef,
            body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  connect: {clusters: {c: {rest_url: 'http://c'}}}
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}]}
models:
  - name: m
    from: [{source: s}]
    sink: §{connector: jdbc-sink}
",
            fix: ("connect: {clusters", "connect: {default: c, clusters"),
        },
        Case {
            code: Code::E209InvalidClusterRef,
            body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  connect: {default: c, clusters: {c: {rest_url: 'http://c'}, d: {rest_url: 'http://d'}}}
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}]}
models:
  - name: m
    from: [{source: s}]
    connect_cluster: §d
    sink: {connector: jdbc-sink}
",
            fix: ("connect_cluster: d", "connect_cluster: c"),
        },
        Case {
            code: Code::E209InvalidClusterRef,
            body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  connect: {default: cc, clusters: {cc: {rest_url: 'http://c'}}}
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}]}
models:
  - name: m
    from: [{source: s}]
    connect_cluster: §ccc
    sink: {connector: jdbc-sink}
",
            fix: ("connect_cluster: ccc", "connect_cluster: cc"),
        },
        Case {
            code: Code::E210InvalidConnectionRef,
            body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  connect: {default: c, clusters: {c: {rest_url: 'http://c'}}}
connections:
  warehouse: {type: jdbc, config: {}}
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}]}
models:
  - name: m
    from: [{source: s}]
    sink: {connector: jdbc-sink, connection: §warehose}
",
            fix: ("warehose", "warehouse"),
        },
    ]);
}

#[test]
fn flink_aliases_exist() {
    const BODY: &str = "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {clusters: {main: {rest_url: 'http://f'}}}
models:
  - {name: m, flink_cluster: §mian}
";
    check(&[
        Case { code: Code::E209InvalidClusterRef, body: BODY, fix: ("mian", "main") },
        Case {
            code: Code::E209InvalidClusterRef,
            body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {clusters: {main: {rest_url: 'http://f'}}}
models:
  - {name: m}
tests:
  - {name: t, model: m, type: schema, flink_cluster: §other}
",
            fix: ("flink_cluster: other", "flink_cluster: main"),
        },
    ]);
    for (path, part) in [
        ("defaults.models.cluster", "defaults: {models: {cluster: x}}\n"),
        ("defaults.tests.flink_cluster", "defaults: {tests: {flink_cluster: x}}\n"),
    ] {
        let found = findings(&document(part));
        let hit = found.iter().find(|finding| finding.code == Code::E209InvalidClusterRef);
        let location = hit.and_then(|finding| finding.location.as_ref()).map(ToString::to_string);
        assert_eq!(location.as_deref(), Some(path), "{found:#?}");
    }
}

#[test]
fn flink_settings_make_sense() {
    check(&[
        Case {
            code: Code::E301InvalidStateTtl,
            body: "models:\n  - {name: m, flink: {state_ttl_ms: §0}}\n",
            fix: ("state_ttl_ms: 0", "state_ttl_ms: 1000"),
        },
        Case {
            code: Code::W207StateTtlTooShort,
            body: "models:\n  - {name: m, flink: {state_ttl_ms: §999}}\n",
            fix: ("state_ttl_ms: 999", "state_ttl_ms: 1000"),
        },
        Case {
            code: Code::E208MissingConfig,
            body: "models:\n  - {name: m, flink: {changelog_mode: §upsert}, columns: [{name: a}]}\n",
            fix: ("columns:", "primary_key: [a], columns:"),
        },
    ]);
}
