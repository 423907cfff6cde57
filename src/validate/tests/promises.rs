//! Tests, exposures, contracts and keys.

use super::*;

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
            code: Code::W237DeadLettersNotWritten,
            body: "
models:
  - {name: m}
tests:
  - name: t
    model: m
    type: continuous
    on_failure: {actions: [{dlq: §{topic: dead}}]}
",
            fix: ("{actions: [{dlq: {topic: dead}}]}", "{severity: warning}"),
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

const SHOP: &str = "
sources:
  - {name: s, topic: s, columns: [{name: id, type: STRING}, {name: at, expression: 'NOW()'}]}
  - {name: bare, topic: bare}
models:
  - {name: m, materialized: topic, sql: \"SELECT id AS k FROM {{ source('s') }}\"}
  - {name: all_, materialized: topic, sql: \"SELECT * FROM {{ source('bare') }}\"}
  - {name: odd, materialized: flink, sql: \"SELECT k, NEW 'x' y AS z FROM {{ ref('m') }}\", columns: [{name: k}]}
  - {name: declared, columns: [{name: a}], contract: {enforced: false, columns: [{name: b}]}}
  - {name: open}
tests:
";

/// Wherever an assertion names a column, of a source, of a model's SQL, of a declaration.
#[test]
fn an_assertion_names_a_column_that_its_source_or_model_has() {
    for (model, good, bad, assertion) in [
        ("s", "id", "idd", "not_null: {columns: [at, §]}"),
        ("s", "id", "ID", "accepted_values: {column: §, values: [a]}"),
        ("m", "k", "id", "range: {column: §, min: 0}"),
        ("m", "k", "kk", "accepted_types: {types: {§: string}}"),
        ("m", "k", "id", "unique_key: {key: §}"),
        ("m", "k", "id", "custom_sql: {where: 'TRUE', detail_column: §}"),
        ("declared", "a", "c", "max_lag: {column: §, max_seconds: 1}"),
        ("declared", "b", "c", "distribution: {column: §, buckets: []}"),
        ("m", "k", "id", "foreign_key: {column: §, ref_model: s, ref_key: id}"),
        ("m", "id", "k", "foreign_key: {column: k, ref_model: s, ref_key: §}"),
    ] {
        let body = format!("{SHOP}  - {{name: t, model: {model}, type: schema, assertions: [{assertion}]}}\n");
        let (text, place) = unmarked(&body);
        let wrong = text.lines().last().unwrap().to_owned();
        let of = |column: &str| {
            let (before, after) = wrong.split_at(place.column as usize - 1);
            findings(&text.replace(&wrong, &format!("{before}{column}{after}")))
                .into_iter()
                .filter(|f| matches!(f.code, Code::W102MissingSourceColumn | Code::W103MissingRefColumn))
                .map(|f| (f.code, f.location))
                .collect::<Vec<_>>()
        };
        let is_source = model == "s" || assertion.ends_with("ref_key: §}");
        let code = if is_source { Code::W102MissingSourceColumn } else { Code::W103MissingRefColumn };
        // Of a mapping, the place is the value's.
        let behind = if assertion.contains("{§: ") { bad.len() as u32 + 2 } else { 0 };
        let place = Location { column: place.column + behind, ..place.clone() };
        assert_eq!(of(bad), [(code, Some(place))], "{assertion}");
        assert_eq!(of(good), [], "{assertion}");
    }
}

#[test]
fn a_column_of_an_assertion_that_is_nearly_right_is_told() {
    let text = document(&format!(
        "{SHOP}  - {{name: t, model: m, type: schema, assertions: [unique_key: {{key: kk}}, range: {{column: K, min: 1}}]}}\n"
    ));
    let found = findings(&text);
    let told: Vec<_> = found.iter().filter(|f| f.message.contains("'t'")).map(|f| f.suggestion.as_deref()).collect();
    assert_eq!(told, [Some("Available columns: 'k'"), Some("Did you mean 'k'?")]);
}

#[test]
fn an_assertion_over_columns_that_are_not_all_known_is_not_judged() {
    for model in ["bare", "all_", "odd", "open"] {
        let text = document(&format!(
            "{SHOP}  - {{name: t, model: {model}, type: sample, assertions: [unique_key: {{key: anything}}]}}\n"
        ));
        let found: Vec<_> = findings(&text).into_iter().filter(|finding| finding.message.contains("'t'")).collect();
        assert!(found.is_empty(), "{model}: {found:#?}");
    }
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
