use proptest::prelude::*;

use super::*;
use crate::codes::Code;

fn outline(text: &str) -> Outline<'_> {
    Outline::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn stateful(text: &str) -> Option<&str> {
    outline(text).stateful().map(|span| span.of(text))
}

#[test]
fn what_is_not_one_query_is_e119_at_its_place() {
    for (text, offset) in [
        ("", 0),
        ("-- nothing", 0),
        ("INSERT INTO t SELECT 1", 0),
        ("SET 'a' = 'b'; SELECT 1", 0),
        ("SELECT 1; SELECT 2", 8),
        ("SELECT (1", 7),
        ("SELECT 1)", 8),
        ("SELECT a[1)", 10),
        ("SELECT ((1)", 7),
    ] {
        let error = Outline::parse(text).unwrap_err();
        assert_eq!((error.code(), error.offset), (Code::E119CompileFailed, offset), "{text}");
    }
    for text in
        ["SELECT 1;", "SELECT 1 ; ;", "select 1", "WITH a AS (SELECT 1) SELECT * FROM a", "VALUES (1)", "(SELECT 1)"]
    {
        assert!(Outline::parse(text).is_ok(), "{text}");
    }
}

#[test]
fn stateful_constructs_are_found_outside_literals_only() {
    for (text, construct) in [
        ("SELECT COUNT(*) FROM t", "COUNT"),
        ("SELECT a FROM t group by a", "group by"),
        ("SELECT a FROM t ORDER BY a", "ORDER BY"),
        ("SELECT DISTINCT a FROM t", "SELECT"),
        ("SELECT a FROM t JOIN u ON t.x = u.x", "JOIN"),
        ("SELECT a FROM t, u", ","),
        ("SELECT a FROM t LIMIT 3", "LIMIT"),
        ("SELECT a FROM t FETCH FIRST 3 ROWS ONLY", "FETCH"),
        ("SELECT a FROM t WHERE a IN (SELECT b FROM u)", "SELECT"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "WITH"),
        ("SELECT LAG(a) OVER (PARTITION BY b) FROM t", "LAG"),
        ("SELECT f(a) OVER w FROM t WINDOW w AS ()", "OVER"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))", "MATCH_RECOGNIZE"),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", "UNION"),
        ("SELECT a FROM t FOR SYSTEM_TIME AS OF t.p", "FOR"),
        ("SELECT a FROM t CROSS APPLY UNNEST(b)", "UNNEST"),
        ("SELECT * FROM TABLE(TUMBLE(DATA => x))", "TUMBLE"),
        ("SELECT ml_predict(a) FROM t", "ml_predict"),
    ] {
        assert_eq!(stateful(text), Some(construct), "{text}");
    }
    for text in [
        "SELECT * FROM {{ source(\"s\") }} WHERE a = 'GROUP BY'",
        "SELECT `count`, `order` FROM t -- GROUP BY x",
        "SELECT t.limit, count FROM t",
        "SELECT CAST(a AS TIMESTAMP(3) WITH LOCAL TIME ZONE), f(a, b) FROM t",
        "SELECT a, b FROM t WHERE c IN (1, 2)",
        "SELECT 'a\\', b FROM t",
    ] {
        assert_eq!(stateful(text), None, "{text}");
    }
}

#[test]
fn a_plain_copy_has_nothing_but_its_table() {
    for text in [
        "SELECT * FROM {{ source(\"s\") }}",
        "select * from a.b AS c;",
        "SELECT * FROM t c",
        "SELECT /* x */ * FROM `t`",
    ] {
        assert!(outline(text).is_plain_copy(), "{text}");
    }
    for text in [
        "SELECT * FROM t WHERE a = 1",
        "SELECT a FROM t",
        "SELECT *, a FROM t",
        "SELECT t.* FROM t",
        "SELECT * FROM t, u",
        "SELECT * FROM t LIMIT 1",
        "SELECT * FROM (SELECT 1)",
        "SELECT *",
        "VALUES (1)",
        "SELECT * FROM t UNION ALL SELECT * FROM u",
    ] {
        assert!(!outline(text).is_plain_copy(), "{text}");
    }
}

#[test]
fn gateway_runs_conjunctions_of_column_and_literal_only() {
    for (text, predicate) in [
        ("SELECT * FROM t", None),
        ("SELECT * FROM t WHERE region = 'EU'", Some("region = 'EU'")),
        (
            "SELECT * FROM t WHERE\n a >= -1.5 AND `b c` <> 'x' and d REGEXP '^a' ;",
            Some("a >= -1.5 AND `b c` <> 'x' and d REGEXP '^a'"),
        ),
        ("SELECT * FROM t WHERE paid = TRUE", Some("paid = TRUE")),
    ] {
        let found = outline(text).gateway_filter().map(|span| span.map(|span| span.of(text).to_owned()));
        assert_eq!(found, Ok(predicate.map(str::to_owned)), "{text}");
    }
    for (text, obstacle) in [
        ("SELECT * FROM t WHERE a = 1 OR b = 2", "OR"),
        ("SELECT * FROM t WHERE NOT a = 1", "NOT"),
        ("SELECT * FROM t WHERE a IN (1, 2)", "IN"),
        ("SELECT * FROM t WHERE a IS NULL", "IS"),
        ("SELECT * FROM t WHERE a LIKE 'x'", "LIKE"),
        ("SELECT * FROM t WHERE a BETWEEN 1 AND 2", "BETWEEN"),
        ("SELECT * FROM t WHERE a != 1", "!="),
        ("SELECT * FROM t WHERE upper(a) = 'X'", "("),
        ("SELECT * FROM t WHERE a = b", "b"),
        ("SELECT * FROM t WHERE a + 1 = 2", "+"),
        ("SELECT * FROM t WHERE a = 1 + 2", "+"),
        ("SELECT * FROM t WHERE t.a = 1", "."),
        ("SELECT * FROM t WHERE a = DATE '2020-01-01'", "DATE"),
        ("SELECT * FROM t WHERE CURRENT_DATE = 'x'", "CURRENT_DATE"),
        ("SELECT * FROM t WHERE a = 1 AND", "AND"),
        ("SELECT * FROM t WHERE a =", "="),
        ("SELECT * FROM t WHERE (a = 1)", "("),
        ("SELECT a FROM t WHERE a = 1", "a"),
        ("SELECT * FROM t LIMIT 1", "LIMIT"),
        ("SELECT * FROM t /*+ OPTIONS('a'='b') */", "t /*+ OPTIONS('a'='b') */"),
        ("VALUES (1)", "VALUES (1)"),
    ] {
        let found = outline(text).gateway_filter().map_err(|obstacle| obstacle.span.of(text));
        assert_eq!(found, Err(obstacle), "{text}");
    }
}

#[test]
fn select_items_have_their_output_names() {
    let text = "SELECT a, t.b, `c d`, f(x, y) AS e, g(x) h, CASE WHEN a THEN 1 END, a IS NULL, a AND b, INTERVAL '1' DAY, t.*, \
                x IS DISTINCT FROM y AS same, 1 + 2 FROM t WHERE a = 1";
    let outline = outline(text);
    let items = &outline.select().unwrap().items;
    let names: Vec<Option<&str>> = items.iter().map(|item| item.name.as_deref()).collect();
    let wanted =
        [Some("a"), Some("b"), Some("c d"), Some("e"), Some("h"), None, None, None, None, None, Some("same"), None];
    assert_eq!(names, wanted);
    assert_eq!(items[3].expression.of(text), "f(x, y)");
    assert_eq!(items[4].expression.of(text), "g(x)");
    assert_eq!(items[1].expression.of(text), "t.b");
}

#[test]
fn clauses_end_where_the_next_one_begins() {
    let text = "SELECT a FROM t WHERE a = 1 AND b = (SELECT 1 FROM u WHERE x) GROUP BY a UNION SELECT b FROM v WHERE c";
    let outline = outline(text);
    let select = outline.select().unwrap();
    assert_eq!(select.from.unwrap().of(text), "t");
    assert_eq!(select.predicate.unwrap().of(text), "a = 1 AND b = (SELECT 1 FROM u WHERE x)");
    let text = "SELECT 1 UNION SELECT a FROM t WHERE b";
    assert_eq!(Outline::parse(text).unwrap().select().unwrap().predicate, None);
}

proptest! {
    #[test]
    fn no_query_panics(text in "(SELECT|FROM|WHERE|GROUP BY|AS|DISTINCT|IS|UNION|\\*|,|\\(|\\)|\\[|\\]|;|\\.|=|-|1|'a'|`b`|t| |AND|WITH|VALUES){0,24}") {
        if let Ok(outline) = Outline::parse(&text) {
            outline.stateful();
            outline.is_plain_copy();
            if let Ok(Some(span)) = outline.gateway_filter() {
                prop_assert!(!span.of(&text).is_empty());
            }
            for item in outline.select().map(|select| select.items.as_slice()).unwrap_or_default() {
                prop_assert!(item.expression.start >= item.span.start && item.expression.end <= item.span.end);
            }
        }
    }
}
