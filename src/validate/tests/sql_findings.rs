//! What the analysis of SQL tells a user, each at its place in the project file.

use super::*;

const SOURCES: &str = "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {default: f, clusters: {f: {rest_url: 'http://f'}}}
sources:
  - name: s
    topic: s
    columns: [{name: id, type: STRING}, {name: amount, type: INT}, {name: ts, type: TIMESTAMP(3)}, {name: at_, type: TIMESTAMP(3)}]
    event_time: {column: ts}
  - {name: o, topic: o, columns: [{name: id, type: STRING}, {name: x, type: INT}]}
";

fn with(model: &str) -> String {
    format!("{SOURCES}models:\n  - name: m\n    materialized: flink\n{model}")
}

/// One finding for one query, marked in its text.
#[track_caller]
fn raised(code: Code, query: &str, fixed: (&str, &str)) {
    let body = with(&format!("    sql: |\n      {query}\n"));
    let body: &'static str = body.leak();
    let fix = (fixed.0.to_owned().leak() as &'static str, fixed.1.to_owned().leak() as &'static str);
    check(&[Case { code, body, fix }]);
}

#[test]
fn a_column_that_is_nowhere_is_told_where_it_is_named() {
    raised(Code::W102MissingSourceColumn, "SELECT id, §amont FROM {{ source('s') }}", ("amont", "amount"));
    raised(Code::W102MissingSourceColumn, "SELECT a.id FROM {{ source('s') }} a WHERE a.§idd = ''", ("idd", "id"));
    let chain = with(
        "    sql: SELECT id FROM {{ source('s') }}\n  - name: n\n    materialized: flink\n    sql: SELECT §amount FROM {{ ref('m') }}\n",
    );
    check(&[Case {
        code: Code::W103MissingRefColumn,
        body: chain.leak(),
        fix: ("SELECT amount FROM", "SELECT id FROM"),
    }]);
}

#[test]
fn what_flink_would_refuse_or_never_forget_is_told() {
    raised(Code::W201SqlParseWarning, "SELECT id, amount AS §value FROM {{ source('s') }}", ("value", "v"));
    raised(
        Code::W230UpdatingResult,
        "SELECT id, COUNT(*) AS n FROM {{ source('s') }} §GROUP BY id",
        ("GROUP BY id", "GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), id"),
    );
    raised(Code::W101StateTtlRecommended, "SELECT §DISTINCT id FROM {{ source('s') }}", ("DISTINCT ", ""));
    raised(
        Code::W232NoTimeAttribute,
        "SELECT window_start FROM TABLE(TUMBLE(TABLE {{ source('s') }}, DESCRIPTOR(§at_), INTERVAL '1' HOUR))",
        ("DESCRIPTOR(at_)", "DESCRIPTOR(ts)"),
    );
    raised(
        Code::W214WindowNoGroupBy,
        "SELECT §window_start, SUM(amount) AS n FROM TABLE(TUMBLE(TABLE {{ source('s') }}, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
        ("INTERVAL '1' HOUR))", "INTERVAL '1' HOUR)) GROUP BY window_start, window_end"),
    );
    raised(
        Code::W215WindowGroupByMissingTvf,
        "SELECT §window_start, id FROM TABLE(TUMBLE(TABLE {{ source('s') }}, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY id",
        ("GROUP BY id", "GROUP BY id, window_start, window_end"),
    );
    raised(
        Code::W216HavingSelectAlias,
        "SELECT id, SUM(amount) AS total FROM {{ source('s') }} GROUP BY id HAVING §total > 1",
        ("HAVING total", "HAVING SUM(amount)"),
    );
}

#[test]
fn settings_of_the_model_answer_updates_and_state() {
    let query = "    sql: SELECT id, COUNT(*) AS n FROM {{ source('s') }} GROUP BY id\n";
    let answered =
        with(&format!("    primary_key: [id]\n    flink: {{changelog_mode: upsert, state_ttl_ms: 60000}}\n{query}"));
    let found = codes(&document(&answered));
    assert!(!found.contains(&Code::W230UpdatingResult) && !found.contains(&Code::W101StateTtlRecommended), "{found:?}");
}

#[test]
fn declared_types_are_those_that_the_sql_gives() {
    let declared = with(
        "    columns: [{name: id, type: STRING}, {name: total, type: §BIGINT}]\n    sql: SELECT id, amount AS total FROM {{ source('s') }}\n",
    );
    check(&[Case {
        code: Code::W301ColumnTypeMismatch,
        body: declared.leak(),
        fix: ("type: BIGINT}]", "type: INT}]"),
    }]);
    let promised = with(
        "    contract: {columns: [{name: total, type: §STRING}]}\n    sql: SELECT amount * 2 AS total FROM {{ source('s') }}\n",
    );
    check(&[Case {
        code: Code::E115ContractTypeMismatch,
        body: promised.leak(),
        fix: ("type: STRING}]}", "type: INT}]}"),
    }]);
}

/// What is not known is not compared, and a plain query has no finding.
#[test]
fn an_unknown_type_makes_no_finding() {
    let unknown = with(
        "    contract: {columns: [{name: t, type: INT}]}\n    columns: [{name: t, type: INT}]\n    sql: SELECT NEW_FUNCTION(amount) AS t FROM {{ source('s') }} WHERE x.y.z = 1\n",
    );
    let found = codes(&document(&unknown));
    for code in [Code::E115ContractTypeMismatch, Code::W301ColumnTypeMismatch] {
        assert!(!found.contains(&code), "{found:?}");
    }
    let plain = with(
        "    sql: SELECT s.id, o.x FROM {{ source('s') }} s JOIN {{ source('o') }} o ON s.id = o.id\n    flink: {state_ttl_ms: 60000}\n",
    );
    assert_eq!(codes(&document(&plain)), []);
}

/// KSC-001
#[test]
fn sql_beyond_the_runners_subset_is_an_error_at_its_place() {
    let runner = "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  kafka_streams: {image: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', network: host}
sources:
  - {name: s, topic: s.v1, columns: [{name: id, type: STRING}, {name: n, type: BIGINT}]}
models:
  - name: m
    executor: kafka_streams
    sql: SELECT id FROM {{ source('s') }} WHERE ";
    for (predicate, fix) in
        [("n §+ 1 > 2", ("n + 1 > 2", "n > 2")), ("§id > 2", ("id > 2", "n > 2")), ("§m = 1", ("m = 1", "n = 1"))]
    {
        let body = format!("{runner}{predicate}\n");
        check(&[Case { code: Code::E218KafkaStreamsInvalid, body: body.leak(), fix }]);
    }
    assert!(findings(&document(&format!("{runner}n >= 100 AND id IS NOT NULL\n"))).is_empty());
}

/// A place in the text is the user's, behind a call and on a later line as well.
#[test]
fn a_finding_behind_a_template_call_stands_where_the_user_wrote_it() {
    raised(
        Code::W102MissingSourceColumn,
        "SELECT s.id, o.x\n      FROM {{ source('s') }} AS s JOIN {{   source(\"o\")   }} AS o ON s.id = o.§idx",
        ("o.idx", "o.id"),
    );
    let folded = with(
        "    flink: {state_ttl_ms: 1}\n    sql: >-\n      SELECT id,\n      §amont\n      FROM {{ source('s') }}\n",
    );
    check(&[Case { code: Code::W102MissingSourceColumn, body: folded.leak(), fix: ("amont", "amount") }]);
}

#[test]
fn a_finding_in_what_a_macro_gives_stands_at_the_macros_name_and_shows_the_line() {
    let body = "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {default: f, clusters: {f: {rest_url: 'http://f'}}}
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}, {name: c, type: INT}]}
models:
  - {name: n, materialized: flink, macro: §m}
";
    check(&[Case { code: Code::W102MissingSourceColumn, body, fix: ("name: c,", "name: b,") }]);
    let (text, _) = unmarked(body);
    let found = findings(&text);
    let finding = found.iter().find(|finding| finding.code == Code::W102MissingSourceColumn).unwrap();
    let shown = "line 1 of what the macro gives: SELECT a, b FROM {{ source(\"s\") }}";
    assert_eq!(finding.explanation.as_deref(), Some(shown));
}

/// The place is the column's type; a source that only topics and tests use may keep its number.
#[test]
fn an_event_time_that_is_a_number_is_refused_where_flink_reads_it() {
    let body = "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {default: f, clusters: {f: {rest_url: 'http://f'}}}
sources:
  - name: s
    topic: s
    columns: [{name: ms, type: §BIGINT}, {name: at, type: TIMESTAMP_LTZ(3), expression: 'TO_TIMESTAMP_LTZ(ms, 3)'}]
    event_time: {column: ms}
models:
  - {name: m, materialized: flink, sql: \"SELECT ms FROM {{ source('s') }}\"}
";
    check(&[Case { code: Code::E120EventTimeColumnNotFound, body, fix: ("{column: ms}", "{column: at}") }]);
    check(&[Case {
        code: Code::E120EventTimeColumnNotFound,
        body,
        fix: ("  - {name: m, materialized: flink, sql: \"SELECT ms FROM {{ source('s') }}\"}", "  - {name: m}"),
    }]);
}

/// KSC-010 KSC-011: what the runner's SQL gives is what an application may need.
#[test]
fn an_application_needs_columns_that_the_runner_writes() {
    let body = "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  kafka_streams: {image: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', network: host}
sources:
  - {name: s, topic: s.v1, columns: [{name: id, type: STRING}, {name: n, type: BIGINT}]}
models:
  - {name: m, executor: kafka_streams, sql: \"SELECT id AS k, n FROM {{ source('s') }}\"}
exposures:
  - name: app
    type: application
    consumes: [{ref: m}]
    columns: [{name: §id}]
";
    check(&[Case {
        code: Code::E116ContractBreakingChange,
        body,
        fix: ("{name: id}]\n", "{name: k, type: STRING}]\n"),
    }]);
    let typed = body.replace("{name: §id}", "{name: n, type: §STRING}").leak();
    check(&[Case {
        code: Code::E117ContractConsumerTypeMismatch,
        body: typed,
        fix: ("n, type: STRING", "n, type: BIGINT"),
    }]);
}
