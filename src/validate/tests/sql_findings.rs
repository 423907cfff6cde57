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

/// The hint of the one finding of a code.
#[track_caller]
fn told(code: Code, query: &str) -> (String, String) {
    let found = findings(&document(&with(&format!("    sql: |\n      {query}\n"))));
    let finding = found.iter().find(|finding| finding.code == code);
    let finding = finding.unwrap_or_else(|| panic!("{code} is not among {found:#?}"));
    (finding.message.clone(), finding.suggestion.clone().unwrap_or_default())
}

#[test]
fn a_table_without_source_or_ref_is_told_with_the_call_that_is_meant() {
    let code = Code::W234TableNotDeclared;
    raised(code, "SELECT id FROM §s", ("FROM s", "FROM {{ source('s') }}"));
    raised(code, "SELECT t.id FROM {{ source('o') }} t,\n      §hive.db.s u", ("hive.db.s u", "{{ source('s') }} u"));
    assert_eq!(told(code, "SELECT id FROM s").1, "Write {{ source(\"s\") }}");
    let orders = with(
        "    sql: SELECT id FROM {{ source('s') }}\n  - name: orders_by_day\n    materialized: flink\n    sql: SELECT id FROM orders_by_dya\n  - name: n\n    materialized: flink\n    sql: SELECT id FROM orders_by_dya\n",
    );
    let hints: Vec<Option<String>> =
        findings(&document(&orders)).into_iter().filter(|f| f.code == code).map(|f| f.suggestion).collect();
    let own = "Declare its topic as a source and write {{ source(\"…\") }}; a table of a catalog that the cluster has may stay as it is";
    assert_eq!(hints, [Some(own.into()), Some("Did you mean {{ ref(\"orders_by_day\") }}?".into())]);
    // It is the whole answer: types of its columns cannot be told, and nobody need be told so.
    assert_eq!(
        codes(&document(&with("    sql: SELECT id FROM elsewhere\n")))
            .iter()
            .filter(|c| **c == Code::W201SqlParseWarning)
            .count(),
        0
    );
}

#[test]
fn what_flink_refuses_is_told_where_it_stands() {
    for (query, fix) in [
        (
            "SELECT id, §amount, COUNT(*) AS n FROM {{ source('s') }} GROUP BY id",
            ("GROUP BY id", "GROUP BY id, amount"),
        ),
        ("SELECT id FROM {{ source('s') }} WHERE §SUM(amount) > 1", ("SUM(amount)", "amount")),
        (
            "SELECT id FROM {{ source('s') }}\n      §UNION ALL SELECT id, x FROM {{ source('o') }}",
            ("id, x FROM", "id FROM"),
        ),
        ("SELECT SUM(§id) AS n FROM {{ source('s') }}", ("SUM(id)", "SUM(amount)")),
        ("SELECT §SUBSTRING(id) AS n FROM {{ source('s') }}", ("SUBSTRING(id)", "SUBSTRING(id, 2)")),
        ("SELECT id FROM {{ source('s') }} WHERE §amount", ("WHERE amount", "WHERE amount = 1")),
        ("SELECT §id FROM {{ source('s') }} a JOIN {{ source('o') }} b ON a.id = b.id", ("SELECT id", "SELECT a.id")),
    ] {
        raised(Code::W235SqlRefused, query, fix);
    }
    let (message, hint) = told(Code::W235SqlRefused, "SELECT id, COUNT(*) AS n FROM {{ source('s') }}");
    assert_eq!(message, "Model 'm': Flink refuses this: 'id' stands beside an aggregate, and there is no GROUP BY");
    assert_eq!(hint, "Write GROUP BY id, or take the aggregate with OVER");
}

#[test]
fn a_name_that_is_nowhere_is_told_with_the_name_that_is_meant() {
    let told = |query: &str| told(Code::W102MissingSourceColumn, query);
    assert_eq!(told("SELECT amuont FROM {{ source('s') }}").1, "Did you mean 'amount'?");
    let cased = "Did you mean 'amount'? Flink tells upper and lower case apart";
    assert_eq!(told("SELECT AMOUNT FROM {{ source('s') }}").1, cased);
    let (message, hint) = told("SELECT z.id FROM {{ source('s') }} o");
    assert_eq!(message, "Model 'm' uses 'z' as a table, and its query calls none so here");
    assert_eq!(hint, "Available tables: 'o'");
    assert_eq!(told("SELECT s.id FROM {{ source('s') }} o").1, "'s' is called 'o' here");
    assert_eq!(told("SELECT ordesr.id FROM {{ source('s') }} orders").1, "Did you mean 'orders'?");
}

/// A macro's text has no place in a file; the model's `macro` has.
#[test]
fn what_flink_refuses_of_a_macro_stands_at_the_macros_name() {
    let body = "
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
  flink: {default: f, clusters: {f: {rest_url: 'http://f'}}}
sources:
  - {name: s, topic: s, columns: [{name: a, type: INT}, {name: b, type: INT}]}
models:
  - {name: n, materialized: flink, macro: §pick}
";
    let (text, place) = unmarked(body);
    let fs = MemoryFs::new()
        .with("stream_project.yml", text)
        .with("macros/pick.sql.j2", "SELECT a\nFROM {{ source('s') }}\nWHERE COUNT(b) > 1");
    let project = load(&fs, &EnvironmentInput::default()).unwrap().project;
    let found = validate(&project).into_vec();
    let finding = found.iter().find(|finding| finding.code == Code::W235SqlRefused).unwrap();
    assert_eq!(finding.location.as_ref(), Some(&place));
    assert_eq!(finding.explanation.as_deref(), Some("line 3 of what the macro gives: WHERE COUNT(b) > 1"));
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
