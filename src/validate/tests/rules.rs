//! The project's own rules, and masking.

use super::*;

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
fn rules_that_are_not_written_find_nothing() {
    let text = document(
        "models:\n  - {name: m}\nsources:\n  - {name: s, topic: s, columns: [{name: a}]}\nexposures:\n  - {name: e, type: api, consumes: [{source: s}, {ref: m}]}\n",
    );
    assert_eq!(codes(&text), []);
}
