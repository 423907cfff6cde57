//! Names, sources, topics and versions.

use super::*;

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
fn topics_take_no_name_of_the_clusters_own_and_none_that_its_metrics_confuse() {
    check(&[
        Case {
            code: Code::E122InternalTopic,
            body: "models:\n  - {name: m, topic: {name: §__consumer_offsets}}\n",
            fix: ("name: __consumer", "name: consumer"),
        },
        Case {
            code: Code::E122InternalTopic,
            body: "sources:\n  - {name: s, topic: §__s, ownership: {mode: adopted}}\n",
            fix: ("mode: adopted", "mode: external"),
        },
        Case {
            code: Code::W233TopicNamesCollide,
            body: "sources:\n  - {name: s, topic: a.b_c}\nmodels:\n  - {name: m, topic: {name: §a_b.c}}\n",
            fix: ("name: a_b.c", "name: a.b.d"),
        },
    ]);
    let one_topic = "sources:\n  - {name: s, topic: a.b}\n  - {name: t, topic: a.b}\n";
    assert!(!codes(&document(one_topic)).contains(&Code::W233TopicNamesCollide));
}

#[test]
fn versions_follow_each_other() {
    check(&[
        Case {
            code: Code::W217VersionGap,
            body: "models:\n  - {name: m_v1, version: 1}\n  - {name: m_v3, version: §3}\n",
            fix: ("m_v3, version: 3", "m_v2, version: 2"),
        },
        Case {
            code: Code::W217VersionGap,
            body: "models:\n  - {name: m, version: 1}\n  - {name: m_v4, version: §4}\n",
            fix: ("m_v4", "n_v4"),
        },
        Case {
            code: Code::E118DuplicateVersion,
            body: "models:\n  - {name: m, version: 1}\n  - {name: m, version: §1, topic: {name: n}}\n",
            fix: ("version: 1, topic", "version: 2, topic"),
        },
    ]);
    for alone in ["{name: m, version: 7}", "{name: m_v7, version: 7}", "{name: m_v7, version: 7}\n  - {name: m_v6}"] {
        assert_eq!(codes(&document(&format!("models:\n  - {alone}\n"))), [], "{alone}");
    }
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
