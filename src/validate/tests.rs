//! Every rule by a small project that breaks it, at the place marked `§`, and by its neighbour that does not.

use std::collections::BTreeSet;

use super::*;
use crate::codes::{Code, Diagnostic, Location};
use crate::project::{EnvironmentInput, MemoryFs, Project, load};

/// A project that breaks one rule. The marked place is where the finding must point; `fix` replaces text so that the rule holds.
struct Case {
    code: Code,
    body: &'static str,
    fix: (&'static str, &'static str),
}

const HEAD: &str = "apiVersion: streamt.dev/v1alpha1\nproject: {name: p}\n";
const RUNTIME: &str = "runtime:\n  kafka: {bootstrap_servers: 'b:9092'}\n";

fn document(body: &str) -> String {
    let body = body.trim_start_matches('\n');
    let runtime = if body.starts_with("runtime:") { "" } else { RUNTIME };
    format!("{HEAD}{runtime}{body}")
}

fn loaded(text: &str) -> Project {
    let fs =
        MemoryFs::new().with("stream_project.yml", text).with("macros/m.sql.j2", "SELECT a, b FROM {{ source('s') }}");
    match load(&fs, &EnvironmentInput::default()) {
        Ok(loaded) => loaded.project,
        Err(errors) => panic!("does not load: {errors:#?}\n{text}"),
    }
}

fn findings(text: &str) -> Vec<Diagnostic> {
    validate(&loaded(text)).into_vec()
}

fn codes(text: &str) -> Vec<Code> {
    findings(text).iter().map(|finding| finding.code).collect()
}

/// The document without its mark, and the mark's place.
fn unmarked(body: &str) -> (String, Location) {
    let text = document(body);
    let at = text.find('§').expect("a case marks its place");
    let line = text[..at].matches('\n').count() + 1;
    let column = text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
    let location = Location::new("stream_project.yml", line as u32, column as u32);
    (text.replace('§', ""), location)
}

fn check(cases: &[Case]) {
    for Case { code, body, fix } in cases {
        let (text, place) = unmarked(body);
        let found = findings(&text);
        let hit = found.iter().find(|finding| finding.code == *code && finding.location.as_ref() == Some(&place));
        assert!(hit.is_some(), "{code} is not raised at {place}; found {found:#?} in\n{text}");
        assert!(text.contains(fix.0), "the fix of {code} replaces {:?}, which is not in\n{text}", fix.0);
        let good = text.replace(fix.0, fix.1);
        let still: Vec<_> = findings(&good).into_iter().filter(|finding| finding.code == *code).collect();
        assert!(still.is_empty(), "{code} is raised for the neighbour: {still:#?} in\n{good}");
    }
}

#[test]
fn names_are_taken_once() {
    check(&[
        Case {
            code: Code::E103DuplicateName,
            body: "sources:\n  - {name: a, topic: a}\n  - {name: §a, topic: b}\n",
            fix: ("{name: a, topic: b}", "{name: b, topic: b}"),
        },
        Case {
            code: Code::E103DuplicateName,
            body: "models:\n  - {name: a}\n  - {name: §a, topic: {name: b}}\n",
            fix: ("{name: a, topic", "{name: b, topic"),
        },
        Case {
            code: Code::E103DuplicateName,
            body: "
models:
  - {name: m}
tests:
  - {name: t, model: m, type: schema}
  - {name: §t, model: m, type: sample}
",
            fix: ("{name: t, model: m, type: sample}", "{name: u, model: m, type: sample}"),
        },
        Case {
            code: Code::E103DuplicateName,
            body: "exposures:\n  - {name: e, type: api}\n  - {name: §e, type: dashboard}\n",
            fix: ("{name: e, type: dashboard}", "{name: f, type: dashboard}"),
        },
        Case {
            code: Code::E103DuplicateName,
            body: "udfs:\n  - {name: f, return_type: INT}\n  - {name: §f, return_type: STRING}\n",
            fix: ("{name: f, return_type: STRING}", "{name: g, return_type: STRING}"),
        },
        Case {
            code: Code::E111NameCollision,
            body: "sources:\n  - {name: a, topic: a}\nmodels:\n  - {name: §a, topic: {name: b}}\n",
            fix: ("{name: a, topic: {", "{name: m, topic: {"),
        },
        Case {
            code: Code::E111NameCollision,
            body: "models:\n  - {name: a}\nexposures:\n  - {name: §a, type: api}\n",
            fix: ("{name: a, type: api}", "{name: e, type: api}"),
        },
    ]);
}

#[test]
fn sources_and_schema_references_are_sound() {
    check(&[
        Case {
            code: Code::E120EventTimeColumnNotFound,
            body: "
sources:
  - name: s
    topic: s
    columns: [{name: ts, type: TIMESTAMP(3)}]
    event_time: {column: §tss}
",
            fix: ("column: tss", "column: ts"),
        },
        Case {
            code: Code::E121SchemaReferenceCycle,
            body: "
models:
  - name: a
    schema:
      definition: '{}'
      references:
        - {name: x, subject: other, version: 1}
        - {name: b, subject: §b-value, version: 1}
  - name: b
    schema:
      definition: '{}'
      references: [{name: a, subject: a-value, version: 1}]
",
            fix: ("subject: a-value", "subject: elsewhere"),
        },
        Case {
            code: Code::E121SchemaReferenceCycle,
            body: "
sources:
  - name: s
    topic: s
    schema:
      subject: own
      definition: '{}'
      references: [{name: s, subject: §own, version: 1}]
",
            fix: ("name: s, subject: own", "name: s, subject: shared"),
        },
    ]);
}

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

#[test]
fn tests_name_what_exists_and_say_what_is_not_run() {
    check(&[
        Case {
            code: Code::E107TestModelNotFound,
            body: "models:\n  - {name: orders}\ntests:\n  - {name: t, model: §ordres, type: schema}\n",
            fix: ("ordres", "orders"),
        },
        Case {
            code: Code::W211SampleSizeIgnored,
            body: "models:\n  - {name: m}\ntests:\n  - {name: t, model: m, type: schema, sample_size: §5}\n",
            fix: ("type: schema", "type: sample"),
        },
        Case {
            code: Code::W228AssertionNotExecuted,
            body: "
models:
  - {name: m}
tests:
  - name: t
    model: m
    type: sample
    assertions:
      - not_null: {columns: [a]}
      - §throughput: {min_per_second: 1}
",
            fix: ("throughput: {min_per_second: 1}", "unique_key: {key: a}"),
        },
        Case {
            code: Code::E112DlqModelNotFound,
            body: "
models:
  - {name: m}
tests:
  - name: t
    model: m
    type: schema
    on_failure: {actions: [{dlq: {model: §n}}]}
",
            fix: ("dlq: {model: n}", "dlq: {model: m}"),
        },
    ]);
}

#[test]
fn exposures_name_what_exists() {
    check(&[
        Case {
            code: Code::E108ExposureModelNotFound,
            body: "models:\n  - {name: orders}\nexposures:\n  - {name: e, type: api, consumes: [{ref: §ordres}]}\n",
            fix: ("ordres", "orders"),
        },
        Case {
            code: Code::E109ExposureSourceNotFound,
            body: "sources:\n  - {name: s, topic: s}\nexposures:\n  - {name: e, type: api, produces: [{source: §t}]}\n",
            fix: ("{source: t}", "{source: s}"),
        },
        Case {
            code: Code::E110ExposureDependencyNotFound,
            body: "models:\n  - {name: m}\nexposures:\n  - {name: e, type: api, depends_on: [{ref: §n}]}\n",
            fix: ("{ref: n}", "{ref: m}"),
        },
        Case {
            code: Code::E113ExposureReferenceInvalid,
            body: "
sources:
  - {name: s, topic: s}
models:
  - {name: m}
exposures:
  - {name: e, type: api, consumes: [§{source: s, ref: m}]}
",
            fix: ("{source: s, ref: m}", "{source: s}, {ref: m}"),
        },
        Case {
            code: Code::W212SlaNotEnforced,
            body: "exposures:\n  - {name: e, type: api, sla: §{availability: '99.9'}}\n",
            fix: (", sla: {availability: '99.9'}", ""),
        },
        Case {
            code: Code::E104CycleDetected,
            body: "
sources:
  - {name: s, topic: s, columns: [{name: a}]}
models:
  - {name: m, materialized: topic, sql: \"SELECT a FROM {{ source('s') }}\"}
exposures:
  - name: e
    type: application
    consumes: [{ref: m}]
    produces: §[{source: s}]
",
            fix: ("    produces: [{source: s}]", ""),
        },
    ]);
}

#[test]
fn type_texts_are_flinks() {
    check(&[
        Case {
            code: Code::W302UnknownTypeText,
            body: "models:\n  - {name: m, columns: [{name: a, type: INT}, {name: b, type: §NUMBER}]}\n",
            fix: ("NUMBER", "'DECIMAL(10, 2)'"),
        },
        Case {
            code: Code::W302UnknownTypeText,
            body: "sources:\n  - {name: s, topic: s, columns: [{name: a, type: §STRUCT}]}\n",
            fix: ("STRUCT", "'ROW<x INT>'"),
        },
        Case {
            code: Code::W302UnknownTypeText,
            body: "models:\n  - {name: m, contract: {columns: [{name: a, type: §JSON}]}}\n",
            fix: ("JSON", "STRING"),
        },
        Case {
            code: Code::W302UnknownTypeText,
            body: "exposures:\n  - {name: e, type: api, columns: [{name: a, type: §VARCHAR2}]}\n",
            fix: ("VARCHAR2", "VARCHAR"),
        },
    ]);
}

#[test]
fn contracts_promise_what_is_declared() {
    check(&[
        Case {
            code: Code::E114ContractMissingColumn,
            body: "models:\n  - {name: m, columns: [{name: amount}], contract: {columns: [{name: §amont}]}}\n",
            fix: ("amont", "amount"),
        },
        Case {
            code: Code::E114ContractMissingColumn,
            body: "
models:
  - {name: n}
  - name: m
    materialized: topic
    sql: SELECT a AS amount FROM {{ ref('n') }}
    contract: {columns: [{name: §a}]}
",
            fix: ("contract: {columns: [{name: a}]}", "contract: {columns: [{name: amount}]}"),
        },
        Case {
            code: Code::E115ContractTypeMismatch,
            body: "models:\n  - {name: m, columns: [{name: a, type: BIGINT}], contract: {columns: [{name: a, type: §STRING}]}}\n",
            fix: ("type: STRING", "type: LONG"),
        },
        Case {
            code: Code::W303ContractMissingColumn,
            body: "models:\n  - {name: m, columns: [{name: a}], contract: {enforced: false, columns: [{name: §b}]}}\n",
            fix: ("{name: b}", "{name: a}"),
        },
        Case {
            code: Code::W304ContractTypeMismatch,
            body: "models:\n  - {name: m, columns: [{name: a, type: INT}], contract: {enforced: false, columns: [{name: a, type: §DATE}]}}\n",
            fix: ("type: DATE", "type: SMALLINT"),
        },
        Case {
            code: Code::E116ContractBreakingChange,
            body: "
models:
  - {name: m, columns: [{name: a}, {name: b}], contract: {columns: [{name: a}]}}
exposures:
  - {name: e, type: api, consumes: [{ref: m}], columns: [{name: §b}]}
",
            fix: ("columns: [{name: b}]}", "columns: [{name: a}]}"),
        },
        Case {
            code: Code::E116ContractBreakingChange,
            body: "
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}]}
exposures:
  - {name: e, type: api, consumes: [{source: s}], columns: [{name: a}, {name: §c}]}
",
            fix: ("{name: c}", "{name: a, type: INT}"),
        },
        Case {
            code: Code::E117ContractConsumerTypeMismatch,
            body: "
models:
  - {name: m, columns: [{name: a, type: BIGINT}]}
exposures:
  - {name: e, type: api, consumes: [{ref: m}], columns: [{name: a, type: §STRING}]}
",
            fix: ("type: STRING", "type: BIGINT"),
        },
    ]);
}

#[test]
fn an_empty_contract_is_evidence_and_unknown_families_are_not_compared() {
    let consumer = "exposures:\n  - {name: e, type: api, consumes: [{ref: m}], columns: [{name: a, type: STRING}]}\n";
    let with = |model: &str| codes(&document(&format!("models:\n  - {model}\n{consumer}")));
    assert_eq!(with("{name: m, contract: {columns: []}}"), [Code::E116ContractBreakingChange]);
    assert_eq!(with("{name: m}"), []);
    assert_eq!(with("{name: m, columns: [{name: a, type: 'ARRAY<INT>'}]}"), []);
    assert_eq!(with("{name: m, columns: [{name: a}]}"), []);
}

#[test]
fn keys_are_output_columns() {
    check(&[
        Case {
            code: Code::E211InvalidKeyColumn,
            body: "models:\n  - {name: m, key: §ordre_id, columns: [{name: order_id}]}\n",
            fix: ("ordre_id", "order_id"),
        },
        Case {
            code: Code::E211InvalidKeyColumn,
            body: "models:\n  - {name: m, primary_key: [a, §c], columns: [{name: a}, {name: b}]}\n",
            fix: ("[a, c]", "[a, b]"),
        },
        Case {
            code: Code::E211InvalidKeyColumn,
            body: "
models:
  - {name: n}
  - name: m
    key: §b
    materialized: topic
    sql: SELECT a FROM {{ ref('n') }}
    columns: [{name: b}]
",
            fix: ("SELECT a", "SELECT a, b"),
        },
    ]);
    let unknown = "models:\n  - {name: n}\n  - {name: m, key: b, materialized: topic, sql: \"SELECT a, x + 1 FROM {{ ref('n') }}\"}\n";
    assert!(!codes(&document(unknown)).contains(&Code::E211InvalidKeyColumn));
}

#[test]
fn topic_rules_hold() {
    let cases: [(Code, &str, &str, (&str, &str)); 9] = [
        (
            Code::E602RuleMinPartitions,
            "min_partitions: 3",
            "topic: {partitions: §2}",
            ("partitions: 2", "partitions: 3"),
        ),
        (
            Code::E603RuleMaxPartitions,
            "max_partitions: 3",
            "topic: {partitions: §4}",
            ("partitions: 4", "partitions: 3"),
        ),
        (
            Code::E604RuleMinReplication,
            "min_replication_factor: 2",
            "topic: {replication_factor: §1}",
            ("replication_factor: 1", "replication_factor: 2"),
        ),
        (
            Code::E605RuleMaxReplication,
            "max_replication_factor: 3",
            "topic: {replication_factor: §4}",
            ("replication_factor: 4", "replication_factor: 3"),
        ),
        (
            Code::E606RuleMaxRetention,
            "max_retention_ms: 1000",
            "topic: {config: §{retention.ms: '1001'}}",
            ("'1001'", "-1"),
        ),
        (
            Code::E607RuleRequiredConfig,
            "required_config: [cleanup.policy]",
            "topic: {config: §{retention.ms: 1}}",
            ("{retention.ms: 1}", "{cleanup.policy: compact}"),
        ),
        (Code::E608RuleNamingPattern, "naming_pattern: 'a\\.'", "topic: {name: §x.a.b}", ("x.a.b", "a.b")),
        (Code::E609RuleForbiddenPrefix, "forbidden_prefixes: [tmp-]", "topic: {name: §tmp-a}", ("tmp-a", "a-tmp-")),
        (Code::E610RuleForbiddenSuffix, "forbidden_suffixes: [-old]", "topic: {name: §a-old}", ("a-old", "-olda")),
    ];
    for (code, rule, topic, fix) in cases {
        let body = format!("rules: {{topics: {{{rule}}}}}\nmodels:\n  - {{name: m, {topic}}}\n");
        check(&[Case { code, body: body.leak(), fix }]);
    }
}

#[test]
fn sizes_are_judged_with_defaults_filled_in() {
    let body = |defaults: &str| {
        format!("defaults: {defaults}\nrules: {{topics: {{min_partitions: 3}}}}\nmodels:\n  - {{name: m}}\n")
    };
    let found = |defaults: &str| codes(&document(&body(defaults)));
    assert_eq!(found("{topic: {partitions: 2}}"), [Code::E602RuleMinPartitions]);
    assert_eq!(found("{topic: {partitions: 3}}"), []);
    assert_eq!(found("{topic: {partitions: 2}, models: {topic: {partitions: 3}}}"), []);
    assert_eq!(found("{topic: {partitions: 3}, models: {topic: {partitions: 2}}}"), [Code::E602RuleMinPartitions]);
}

#[test]
fn names_of_others_are_not_judged() {
    let rules = "rules: {topics: {naming_pattern: 'a'}}\n";
    check(&[Case {
        code: Code::E601NamingViolation,
        body: "
rules: {topics: {naming_pattern: a}}
sources:
  - {name: s, topic: §b, ownership: {mode: adopted}}
",
        fix: ("topic: b", "topic: ab"),
    }]);
    let external = format!("{rules}sources:\n  - {{name: s, topic: b}}\n");
    assert!(!codes(&document(&external)).contains(&Code::E601NamingViolation));
}

#[test]
fn model_source_and_region_rules_hold() {
    check(&[
        Case {
            code: Code::E611RuleRequireDescription,
            body: "rules: {models: {require_description: true}}\nmodels:\n  - {name: §m, description: ' '}\n",
            fix: ("description: ' '", "description: d"),
        },
        Case {
            code: Code::E612RuleRequireOwner,
            body: "rules: {models: {require_owner: true}}\nmodels:\n  - {name: §m}\n",
            fix: ("{name: m}", "{name: m, owner: o}"),
        },
        Case {
            code: Code::E613RuleRequireTests,
            body: "rules: {models: {require_tests: true}}\nmodels:\n  - {name: §m}\n#t\n",
            fix: ("#t\n", "tests:\n  - {name: t, model: m, type: schema}\n"),
        },
        Case {
            code: Code::E614RuleInvalidOwner,
            body: "rules: {models: {valid_owners: [a, b]}}\nmodels:\n  - {name: m, owner: §c}\n",
            fix: ("owner: c", "owner: b"),
        },
        Case {
            code: Code::E615RuleMaxDependencies,
            body: "
rules: {models: {max_dependencies: 1}}
models:
  - {name: a}
  - {name: b}
  - {name: §m, materialized: topic, sql: \"SELECT a.x AS x FROM {{ ref('a') }} a JOIN {{ ref('b') }} b ON a.x = b.x\"}
",
            fix: ("ref('b')", "ref('a')"),
        },
        Case {
            code: Code::E616RuleRequireSchema,
            body: "rules: {sources: {require_schema: true}}\nsources:\n  - {name: §s, topic: s}\n",
            fix: ("topic: s}", "topic: s, schema: {subject: x}}"),
        },
        Case {
            code: Code::E617RuleRequireFreshness,
            body: "rules: {sources: {require_freshness: true}}\nsources:\n  - {name: §s, topic: s}\n",
            fix: ("topic: s}", "topic: s, freshness: {max_lag_seconds: 5}}"),
        },
        Case {
            code: Code::E618RuleRequireClassification,
            body: "
rules: {security: {require_classification: true}}
sources:
  - {name: s, topic: s, columns: [{name: a, classification: public}, §{name: b}]}
",
            fix: ("{name: b}", "{name: b, classification: internal}"),
        },
        Case {
            code: Code::E620RuleDataResidency,
            body: "rules: {data_residency: {allowed_regions: [eu]}}\nmodels:\n  - {name: m, region: §us}\n",
            fix: ("region: us", "region: eu"),
        },
        Case {
            code: Code::E620RuleDataResidency,
            body: "rules: {data_residency: {allowed_regions: [eu]}}\nsources:\n  - {name: s, topic: s, region: §us}\n",
            fix: ("region: us", "region: eu"),
        },
    ]);
}

#[test]
fn sensitive_columns_are_masked_wherever_they_are_passed_on() {
    check(&[
        Case {
            code: Code::E619RuleSensitiveRequiresMasking,
            body: "
rules: {security: {sensitive_columns_require_masking: true}}
sources:
  - {name: s, topic: s, columns: [{name: a}, {name: iban, classification: sensitive}]}
models:
  - name: §m
    materialized: topic
    sql: SELECT a, s.iban AS account FROM {{ source('s') }} s
",
            fix: ("SELECT a, s.iban AS account", "SELECT a"),
        },
        Case {
            code: Code::E619RuleSensitiveRequiresMasking,
            body: "
rules: {security: {sensitive_columns_require_masking: true}}
sources:
  - {name: s, topic: s, columns: [{name: a}, {name: iban, classification: highly_sensitive}]}
models:
  - name: m
    from: [{source: s}]
    sink: {connector: jdbc-sink}
    security: §{policies: [{mask: {column: a, method: redact}}]}
",
            fix: ("mask: {column: a", "mask: {column: iban"),
        },
        Case {
            code: Code::E619RuleSensitiveRequiresMasking,
            body: "
rules: {security: {sensitive_columns_require_masking: true}}
models:
  - name: m
    security:
      classification: §{iban: sensitive}
",
            fix: ("{iban: sensitive}", "{iban: internal}"),
        },
    ]);
}

#[test]
fn a_column_that_may_be_another_inputs_is_not_called_unmasked() {
    let found = |sql: &str| {
        let text = document(&format!(
            "
rules: {{security: {{sensitive_columns_require_masking: true}}}}
sources:
  - {{name: s, topic: s, columns: [{{name: a}}, {{name: iban, classification: sensitive}}]}}
  - {{name: o, topic: o, columns: [{{name: a}}]}}
models:
  - name: m
    materialized: topic
    sql: {sql}
"
        ));
        codes(&text).contains(&Code::E619RuleSensitiveRequiresMasking)
    };
    let join = "FROM {{ source('s') }} JOIN {{ source('o') }} x ON s.a = x.a";
    assert!(found(&format!("SELECT s.iban {join}")));
    assert!(found(&format!("SELECT iban {join}")));
    assert!(found(&format!("SELECT s.* {join}")));
    assert!(!found(&format!("SELECT x.* {join}")));
    assert!(!found(&format!("SELECT x.iban {join}")));
    assert!(!found("SELECT * FROM (SELECT a FROM {{ source('s') }})"));
    assert!(!found("SELECT a FROM {{ source('s') }} WHERE iban IS NOT NULL"));
}

#[test]
fn versions_follow_each_other() {
    check(&[
        Case {
            code: Code::W217VersionGap,
            body: "models:\n  - {name: m, version: 1}\n  - {name: m, version: §3, topic: {name: n}}\n",
            fix: ("version: 3", "version: 2"),
        },
        Case {
            code: Code::E118DuplicateVersion,
            body: "models:\n  - {name: m, version: 1}\n  - {name: m, version: §1, topic: {name: n}}\n",
            fix: ("version: 1, topic", "version: 2, topic"),
        },
    ]);
    assert_eq!(codes(&document("models:\n  - {name: m, version: 7}\n")), []);
    let two = "models:\n  - {name: m, version: 1}\n  - {name: m, version: 2, topic: {name: n}}\n";
    assert_eq!(codes(&document(two)), [Code::E103DuplicateName]);
}

#[test]
fn sources_are_used_and_described() {
    check(&[
        Case {
            code: Code::W202UnusedSource,
            body: "sources:\n  - {name: §s, topic: s, columns: [{name: a}]}\n#e\n",
            fix: ("#e\n", "exposures:\n  - {name: e, type: api, consumes: [{source: s}]}\n"),
        },
        Case {
            code: Code::W202UnusedSource,
            body: "sources:\n  - {name: §s, topic: s, columns: [{name: a}]}\n#e\n",
            fix: ("#e\n", "tests:\n  - {name: t, model: s, type: schema}\n"),
        },
        Case {
            code: Code::W203SourceNoColumns,
            body: "sources:\n  - {name: §s, topic: s}\nexposures:\n  - {name: e, type: api, consumes: [{source: s}]}\n",
            fix: ("topic: s}", "topic: s, columns: [{name: a}]}"),
        },
    ]);
}

#[test]
fn rules_that_are_not_written_find_nothing() {
    let text = document(
        "models:\n  - {name: m}\nsources:\n  - {name: s, topic: s, columns: [{name: a}]}\nexposures:\n  - {name: e, type: api, consumes: [{source: s}, {ref: m}]}\n",
    );
    assert_eq!(codes(&text), []);
}

#[test]
fn findings_come_in_the_order_of_the_passes() {
    let text = document(
        "
rules: {models: {require_owner: true}}
sources:
  - {name: unused, topic: u}
  - {name: unused, topic: v}
models:
  - {name: m, key: x, columns: [{name: y}], version: 1}
  - {name: m, topic: {name: n}, owner: o, version: 3}
tests:
  - {name: t, model: nowhere, type: schema}
exposures:
  - {name: e, type: api, consumes: [{ref: nothing}]}
",
    );
    let first = [
        Code::E103DuplicateName,
        Code::E103DuplicateName,
        Code::E107TestModelNotFound,
        Code::E108ExposureModelNotFound,
        Code::E211InvalidKeyColumn,
        Code::E612RuleRequireOwner,
        Code::W217VersionGap,
        Code::W202UnusedSource,
        Code::W202UnusedSource,
    ];
    assert_eq!(codes(&text), first);
}

#[test]
fn every_finding_names_a_place_a_path_and_no_two_lines() {
    let text = document(
        "
rules: {models: {require_owner: true, require_tests: true}}
models:
  - {name: m, key: x, columns: [{name: y, type: NUMBER}], sql: \"SELECT * FROM {{ ref('n') }}\"}
",
    );
    let found = findings(&text);
    assert!(found.len() >= 5, "{found:#?}");
    for finding in &found {
        assert!(finding.location.is_some() && finding.path.is_some(), "{finding:#?}");
        assert!(!finding.message.contains('\n'), "{finding:#?}");
    }
    let distinct: BTreeSet<String> = found.iter().map(|finding| format!("{finding:?}")).collect();
    assert_eq!(distinct.len(), found.len(), "a finding is made twice: {found:#?}");
}
