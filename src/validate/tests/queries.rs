//! SQL, and what it refers to.

use super::*;

#[test]
fn sql_is_checked_by_its_tokens() {
    check(&[
        Case {
            code: Code::W204SqlNoFrom,
            body: "
models:
  - name: m
    materialized: topic
    sql: §SELECT 1 AS a
",
            fix: ("SELECT 1 AS a", "SELECT a FROM {{ ref('n') }}\n  - {name: n}"),
        },
        Case {
            code: Code::W201SqlParseWarning,
            body: "
models:
  - {name: n}
  - name: m
    materialized: topic
    sql: SELECT §\"a\" FROM {{ ref('n') }}
",
            fix: ("\"a\"", "a"),
        },
        Case {
            code: Code::W213SelectStar,
            body: "
models:
  - {name: n}
  - name: m
    materialized: topic
    sql: |
      SELECT
        §*
      FROM {{ ref('n') }}
",
            fix: ("        *", "        a"),
        },
        Case {
            code: Code::E203ConfluentFlinkRequired,
            body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {clusters: {f: {type: rest, rest_url: 'http://f'}}}
models:
  - {name: n}
  - name: m
    materialized: flink
    ml_outputs: {fraud: {columns: [{name: score, type: DOUBLE}]}}
    sql: SELECT §ML_PREDICT('fraud', a) AS p FROM {{ ref('n') }}
",
            fix: ("type: rest", "type: confluent"),
        },
        Case {
            code: Code::W218MlPredictOpaqueOutput,
            body: "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {clusters: {f: {type: confluent, rest_url: 'http://f'}}}
models:
  - {name: n}
  - name: m
    materialized: flink
    ml_outputs: {fraud: {columns: [{name: score, type: DOUBLE}]}}
    sql: SELECT ML_PREDICT(§'scam', a) AS p FROM {{ ref('n') }}
",
            fix: ("'scam'", "'fraud'"),
        },
    ]);
}

#[test]
fn select_star_is_all_a_virtual_topic_can_say() {
    let text = document(
        "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  conduktor: {gateway: {admin_url: 'http://g'}}
models:
  - {name: n}
  - {name: m, materialized: virtual_topic, sql: \"SELECT * FROM {{ ref('n') }} WHERE a = 1\"}
",
    );
    assert_eq!(codes(&text), []);
}

#[test]
fn references_of_models_exist_and_are_used_and_allowed() {
    check(&[
        Case {
            code: Code::E101SourceNotFound,
            body: "
sources:
  - {name: orders, topic: orders, columns: [{name: a}]}
models:
  - name: m
    materialized: topic
    sql: SELECT a FROM {{ source('§ordres') }}
",
            fix: ("ordres", "orders"),
        },
        Case {
            code: Code::W208UnusedFromSource,
            body: "
sources:
  - {name: s, topic: s, columns: [{name: a}]}
models:
  - {name: n}
  - name: m
    materialized: topic
    from: [{source: §s}]
    sql: SELECT a FROM {{ ref('n') }}
",
            fix: ("ref('n')", "source('s')"),
        },
        Case {
            code: Code::W209UnusedFromRef,
            body: "
models:
  - {name: n}
  - {name: o}
  - name: m
    materialized: topic
    from: [{ref: n}, {ref: §o}]
    sql: SELECT a FROM {{ ref('n') }}
",
            fix: ("[{ref: n}, {ref: o}]", "[{ref: n}]"),
        },
        Case {
            code: Code::E106AccessDenied,
            body: "
models:
  - {name: n, group: g, access: private}
  - name: m
    group: h
    materialized: topic
    sql: SELECT a FROM {{ ref('§n') }}
",
            fix: ("group: h", "group: g"),
        },
        Case {
            code: Code::E106AccessDenied,
            body: "
models:
  - {name: n, group: g}
  - name: m
    from: [{ref: §n}]
    sink: {connector: jdbc-sink}
",
            fix: ("group: g}", "group: g, access: protected}"),
        },
        Case {
            code: Code::E104CycleDetected,
            body: "
models:
  - name: a
    materialized: topic
    sql: SELECT x FROM {{ ref('c') }}
  - name: b
    materialized: topic
    sql: SELECT x FROM {{ ref('§a') }}
  - name: c
    materialized: topic
    sql: SELECT x FROM {{ ref('b') }}
",
            fix: ("ref('c')", "ref('d')"),
        },
        Case {
            code: Code::W210SecurityPoliciesNotEnforced,
            body: "models:\n  - {name: m, security: {policies: [{allow: §{roles: [x]}}]}}\n",
            fix: ("{allow: {roles: [x]}}", "{mask: {column: a, method: hash}}"),
        },
    ]);
}

#[test]
fn a_cycle_is_told_in_the_direction_of_the_data() {
    let text = document(
        "
models:
  - {name: b, materialized: topic, sql: \"SELECT x FROM {{ ref('a') }}\"}
  - {name: a, materialized: topic, sql: \"SELECT x FROM {{ ref('c') }}\"}
  - {name: c, materialized: topic, sql: \"SELECT x FROM {{ ref('b') }}\"}
",
    );
    let found = findings(&text);
    let cycles: Vec<_> = found.iter().filter(|finding| finding.code == Code::E104CycleDetected).collect();
    assert_eq!(cycles.len(), 1, "{found:#?}");
    assert_eq!(cycles[0].message, "Dependency cycle: a -> b -> c -> a");
}
