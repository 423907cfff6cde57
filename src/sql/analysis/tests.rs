use super::super::Outline;
use super::super::parse::parse;
use super::*;

fn input(name: &str, columns: &[(&str, SqlType)]) -> Input {
    let column = |(name, data_type): &(&str, SqlType)| InputColumn {
        name: (*name).into(),
        data_type: data_type.clone(),
        time: if *name == "ts" { InputTime::Event } else { InputTime::None },
    };
    let columns = (!columns.is_empty()).then(|| columns.iter().map(column).collect());
    Input { name: name.into(), model: false, columns, upsert: false }
}

fn inputs() -> Vec<Input> {
    let (text, int) = (SqlType::String, SqlType::Int);
    vec![
        input("o", &[("id", text.clone()), ("amt", int), ("ts", SqlType::Timestamp(3))]),
        input("c", &[("id", text.clone()), ("name", text)]),
        input("x", &[]),
    ]
}

/// `FROM o` and `JOIN o` become calls.
fn analysed(text: &str) -> Analysis {
    let mut sql = text.to_owned();
    for name in ["o", "c", "x"] {
        for word in ["FROM", "JOIN", "TABLE"] {
            sql = sql.replace(&format!("{word} {name}"), &format!("{word} {{{{ source('{name}') }}}}"));
        }
    }
    let outline = Outline::parse(&sql).unwrap();
    let query = parse(&outline).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let (functions, models) = (BTreeMap::new(), BTreeMap::new());
    analyse(&query, Environment { inputs: &inputs(), functions: &functions, models: &models })
}

/// `d <- o.amt transform`
fn lineage(text: &str) -> (Vec<String>, Vec<String>) {
    let inputs = inputs();
    let found = analysed(text);
    let base = |base: &Base| format!("{}.{}", inputs[base.input].name, base.column);
    let column = |column: &OutputColumn| {
        let origins = match &column.origins {
            None => "unknown".to_owned(),
            Some(origins) => {
                let origin = |origin: &Dependency| format!("{} {}", base(&origin.base), origin.kind.as_str());
                origins.iter().map(origin).collect::<Vec<_>>().join(", ")
            }
        };
        format!("{} <- {origins}", column.name.as_deref().unwrap_or("?"))
    };
    let influence = |(of, influence): &(Base, Influence)| format!("{} {}", base(of), influence.as_str());
    (found.columns.iter().map(column).collect(), found.influences.iter().map(influence).collect())
}

#[test]
fn columns_are_traced_through_every_clause() {
    for (text, columns, indirect) in [
        ("SELECT id, amt*2 AS d FROM o", vec!["id <- o.id identity", "d <- o.amt transform"], vec![]),
        (
            "SELECT o.id, c.name FROM o JOIN c ON o.id = c.id",
            vec!["id <- o.id identity", "name <- c.name identity"],
            vec!["o.id join", "c.id join"],
        ),
        (
            "SELECT window_start, SUM(amt) s FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) \
             GROUP BY window_start, window_end",
            vec!["window_start <- o.ts transform", "s <- o.amt aggregate"],
            vec!["o.ts group_by", "o.ts window"],
        ),
        (
            "WITH t AS (SELECT id k, UPPER(id) u FROM o) SELECT u FROM t WHERE k <> ''",
            vec!["u <- o.id transform"],
            vec!["o.id filter"],
        ),
        ("SELECT id FROM o UNION ALL SELECT name FROM c", vec!["id <- o.id identity, c.name identity"], vec![]),
        ("SELECT foo FROM x", vec!["foo <- x.foo identity"], vec![]),
        ("SELECT foo FROM x JOIN o ON x.k = o.id", vec!["foo <- x.foo identity"], vec!["o.id join", "x.k join"]),
        ("SELECT COUNT(*) AS n, 1 AS one_ FROM o", vec!["n <- ", "one_ <- "], vec![]),
        (
            "SELECT CASE WHEN amt > 1 THEN id ELSE 'x' END AS v FROM o",
            vec!["v <- o.id transform"],
            vec!["o.amt conditional"],
        ),
        (
            "SELECT id FROM o WHERE amt IN (SELECT amt FROM o) ORDER BY ts",
            vec!["id <- o.id identity"],
            vec!["o.amt filter", "o.ts sort"],
        ),
    ] {
        let found = lineage(text);
        let expected = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(found, (expected(columns), expected(indirect)), "{text}");
        assert!(analysed(text).lineage_is_complete(), "{text}");
    }
}

#[test]
fn what_cannot_be_traced_is_called_incomplete() {
    for (text, gap) in [
        ("SELECT * FROM x", Gap::InputColumnsUnknown),
        ("SELECT id FROM o JOIN c ON TRUE", Gap::AmbiguousColumn),
        ("SELECT a FROM TABLE(f(1)) AS t", Gap::UnsupportedTableFunction),
        ("SELECT a FROM somewhere.else_", Gap::InputColumnsUnknown),
        ("SELECT id FROM o UNION ALL SELECT id, name FROM c", Gap::UnsupportedClause),
    ] {
        let found = analysed(text);
        assert!(found.gaps.contains(&gap), "{text}: {:?}", found.gaps);
        assert!(!found.lineage_is_complete(), "{text}");
    }
    // A column that tables have without declaring it is of no known column.
    let pseudo = analysed("SELECT id, $rowtime AS at_ FROM o");
    assert!(pseudo.missing.is_empty() && !pseudo.lineage_is_complete(), "{pseudo:?}");
}

fn types(text: &str) -> Vec<String> {
    let shown = |data_type: &SqlType| match data_type {
        SqlType::Unknown => "?".to_owned(),
        known => known.to_string(),
    };
    analysed(text).columns.iter().map(|column| shown(&column.data_type)).collect()
}

#[test]
fn types_follow_flinks_rules_and_are_unknown_otherwise() {
    for (text, expected) in [
        ("SELECT SUM(amt) AS s, AVG(amt) AS a, COUNT(*) AS n FROM o", vec!["INT", "INT", "BIGINT"]),
        (
            "SELECT 1.5 AS a, 1e0 AS b, 3000000000 AS c, 'x' AS d, NULL AS e FROM o",
            vec!["DECIMAL(2, 1)", "DOUBLE", "BIGINT", "STRING", "?"],
        ),
        ("SELECT amt / 2 AS a, amt * 1.5 AS b, amt + 1e0 AS c FROM o", vec!["INT", "DECIMAL(13, 1)", "DOUBLE"]),
        (
            "SELECT ts + INTERVAL '1' DAY AS a, CAST(amt AS BIGINT) AS b, ts AS c FROM o",
            vec!["TIMESTAMP(3)", "BIGINT", "TIMESTAMP(3)"],
        ),
        ("SELECT COALESCE(id, 'x') AS a, CASE WHEN TRUE THEN amt ELSE NULL END AS b FROM o", vec!["STRING", "INT"]),
        (
            "SELECT ARRAY[amt] AS a, ARRAY[amt][1] AS b, MAP['k', amt]['k'] AS c FROM o",
            vec!["ARRAY<INT>", "INT", "INT"],
        ),
        ("SELECT NEW_FUNCTION(amt) AS a, foo AS b FROM x", vec!["?", "?"]),
        ("SELECT JSON_VALUE(id, '$.a' RETURNING DOUBLE) AS a, amt > 1 AS b FROM o", vec!["DOUBLE", "BOOLEAN"]),
        ("SELECT CASE WHEN TRUE THEN amt ELSE id END AS a FROM o", vec!["?"]),
    ] {
        assert_eq!(types(text), expected, "{text}");
    }
}

#[test]
fn nothing_is_missing_where_a_table_is_not_known() {
    for text in [
        "SELECT anything FROM x",
        "SELECT anything, id FROM o JOIN x ON o.id = x.whatever",
        "SELECT t.a FROM TABLE(f(1)) AS t",
        "SELECT $rowtime FROM o",
        "SELECT id AS k FROM o GROUP BY id ORDER BY k",
        "SELECT (SELECT MAX(c.name) FROM c WHERE c.id = o.id) AS n FROM o",
    ] {
        assert_eq!(analysed(text).missing, [], "{text}");
    }
    let found = analysed("SELECT ident, o.nam FROM o");
    let names: Vec<(&str, Option<usize>)> = found.missing.iter().map(|m| (m.name.as_str(), m.input)).collect();
    assert_eq!(names, [("ident", Some(0)), ("nam", Some(0))]);
}

/// A finding is made of what is known and of nothing else.
#[test]
fn a_column_of_unknown_type_may_be_a_time() {
    for (table, column, known) in [("o", "amt", true), ("o", "ts", false), ("x", "foo", false)] {
        for text in [
            format!("SELECT COUNT(*) AS n FROM {table} GROUP BY TUMBLE({column}, INTERVAL '1' HOUR)"),
            format!("SELECT c.name FROM {table} JOIN c FOR SYSTEM_TIME AS OF {table}.{column} ON {table}.id = c.id"),
        ] {
            let found = analysed(&text);
            let odd = found.oddities.iter().any(|(oddity, _)| matches!(oddity, Oddity::NoTimeAttribute { .. }));
            assert_eq!(odd, known, "{text}: {:?}", found.oddities);
        }
    }
}

#[test]
fn windows_and_aliases_that_do_not_go_together_are_named() {
    let odd = |text: &str| analysed(text).oddities.into_iter().map(|(oddity, _)| oddity).collect::<Vec<_>>();
    let window = "TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' HOUR))";
    let without = odd(&format!("SELECT window_start, COUNT(*) AS n FROM {window}"));
    assert_eq!(without, [Oddity::WindowWithoutGroupBy]);
    let missing = odd(&format!("SELECT window_start, COUNT(*) AS n FROM {window} GROUP BY id"));
    assert_eq!(missing, [Oddity::GroupByWithoutWindow]);
    let alias = odd("SELECT id, SUM(amt) AS total FROM o GROUP BY id HAVING total > 1 AND id <> ''");
    assert_eq!(alias, [Oddity::HavingAlias(vec!["total".into()])]);
}

#[test]
fn state_that_never_ends_is_named() {
    let unbounded = |text: &str| analysed(text).unbounded.map(|construct| construct.what);
    assert_eq!(unbounded("SELECT id, COUNT(*) AS n FROM o GROUP BY id"), Some("GROUP BY without a window"));
    assert_eq!(unbounded("SELECT o.id FROM o JOIN c ON o.id = c.id"), Some("a join without time bounds"));
    assert_eq!(unbounded("SELECT DISTINCT id FROM o"), Some("SELECT DISTINCT"));
    assert_eq!(unbounded("SELECT id FROM o WHERE amt > 1"), None);
    assert_eq!(unbounded("SELECT o.id FROM o JOIN x ON o.ts = x.t"), None);
}

fn refusals(text: &str) -> Vec<Refusal> {
    analysed(text).refusals.into_iter().map(|(refusal, _)| refusal).collect()
}

#[test]
fn what_flink_surely_refuses_is_told_with_what_is_wrong() {
    let column = |name: &str| name.to_owned();
    for (text, refusal) in [
        ("SELECT id FROM o WHERE SUM(amt) > 1", Refusal::Misplaced { what: Folding::Aggregate, clause: "WHERE" }),
        (
            "SELECT id FROM o WHERE ROW_NUMBER() OVER (ORDER BY ts) = 1",
            Refusal::Misplaced { what: Folding::Over, clause: "WHERE" },
        ),
        ("SELECT id, MAX(SUM(amt)) AS n FROM o GROUP BY id", Refusal::NestedAggregate),
        ("SELECT id, amt FROM o GROUP BY id", Refusal::NotGrouped { column: column("amt"), keys: true }),
        ("SELECT id, COUNT(*) AS n FROM o", Refusal::NotGrouped { column: column("id"), keys: false }),
        ("SELECT UPPER(id) AS u, SUM(amt) AS n FROM o GROUP BY u", Refusal::GroupByAlias { alias: column("u") }),
        ("SELECT id FROM o UNION ALL SELECT id, name FROM c", Refusal::Widths { what: "UNION", first: 1, other: 2 }),
        (
            "SELECT id, amt FROM o UNION ALL SELECT id, name FROM c",
            Refusal::UnlikeTypes { what: "UNION", place: 2, first: SqlType::Int, other: SqlType::String },
        ),
        ("SELECT id FROM o WHERE id IN (SELECT id, name FROM c)", Refusal::UnlikeSearch { wanted: 1, columns: 2 }),
        ("SELECT (SELECT id, name FROM c) AS v FROM o", Refusal::NoValue { columns: 2 }),
        (
            "SELECT id FROM o JOIN c ON o.id = c.id",
            Refusal::Ambiguous { column: column("id"), tables: vec![column("o"), column("c")] },
        ),
        ("SELECT SUM(id) AS s FROM o", Refusal::NoNumber { function: column("SUM"), given: SqlType::String }),
        ("SELECT id FROM o WHERE amt", Refusal::NoCondition { clause: "WHERE", given: SqlType::Int }),
        (
            "SELECT SUBSTRING(id) AS s FROM o",
            Refusal::ArgumentCount { function: column("SUBSTRING"), given: 1, least: 2, most: 3 },
        ),
    ] {
        assert_eq!(refusals(text), [refusal], "{text}");
    }
}

/// What is not known decides nothing: tables, columns, types and functions.
#[test]
fn nothing_is_refused_that_may_be_right() {
    for text in [
        "SELECT a, COUNT(*) AS n FROM x GROUP BY b",
        "SELECT SUM(a) AS s FROM x WHERE a",
        "SELECT * FROM x UNION ALL SELECT id FROM o",
        "SELECT id, MY_AGGREGATE(amt) AS n FROM o",
        "SELECT MY_FUNCTION(amt) AS n, id FROM o GROUP BY id",
        "SELECT id, SUM(MY_FUNCTION(id)) AS n FROM o GROUP BY id",
        "SELECT id FROM o UNION ALL SELECT MY_FUNCTION(amt) FROM o",
        "SELECT id FROM o JOIN x ON o.id = x.whatever",
        "SELECT id FROM o WHERE id IN (SELECT * FROM x)",
        "SELECT t.a FROM TABLE(f(1)) AS t WHERE t.a",
    ] {
        assert_eq!(refusals(text), [], "{text}");
    }
    // A function that the project declares is its own, whatever its name.
    let declared = BTreeMap::from([("SUM".to_owned(), SqlType::Int), ("SUBSTRING".to_owned(), SqlType::Int)]);
    let sql = "SELECT SUM(id) AS s, SUBSTRING(id) AS t FROM {{ source('o') }} WHERE SUM(id) > 1";
    let query = parse(&Outline::parse(sql).unwrap()).unwrap();
    let models = BTreeMap::new();
    let found = analyse(&query, Environment { inputs: &inputs(), functions: &declared, models: &models });
    assert_eq!(found.refusals, []);
}

#[test]
fn a_table_that_nothing_names_is_told_once_and_common_tables_are_named() {
    let unnamed = |text: &str| -> Vec<(String, bool)> {
        analysed(text).unnamed.into_iter().map(|table| (table.name, table.bare)).collect()
    };
    let lists = [("lists".to_owned(), true)];
    assert_eq!(unnamed("SELECT a FROM lists UNION ALL SELECT b FROM lists"), lists);
    assert_eq!(unnamed("SELECT * FROM TABLE(TUMBLE(TABLE lists, DESCRIPTOR(ts), INTERVAL '1' HOUR))"), lists);
    assert_eq!(unnamed("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM lists)"), lists);
    assert_eq!(unnamed("SELECT id FROM hive.db.lists"), [("hive.db.lists".to_owned(), false)]);
    for text in [
        "WITH t AS (SELECT id FROM o), u AS (SELECT id FROM t) SELECT u.id FROM u JOIN t ON u.id = t.id",
        "SELECT a FROM (VALUES (1)) AS t (a)",
        "SELECT word FROM o, LATERAL TABLE(split(id)) AS s (word)",
        "SELECT e FROM o CROSS JOIN UNNEST(ARRAY[amt]) AS t (e)",
    ] {
        assert_eq!(unnamed(text), [], "{text}");
    }
}

#[test]
fn a_qualifier_that_is_no_table_is_told_with_the_tables_in_sight() {
    let found = analysed("SELECT z.id, a.* FROM o AS t JOIN c ON t.id = c.id");
    let shown: Vec<(&str, Vec<&str>)> = found
        .missing
        .iter()
        .map(|missing| {
            let tables = missing.tables.as_ref().unwrap();
            (missing.name.as_str(), tables.iter().map(|table| table.name.as_str()).collect())
        })
        .collect();
    assert_eq!(shown, [("z", vec!["t", "c"]), ("a", vec!["t", "c"])]);
    assert!(analysed("SELECT idd FROM o").missing[0].tables.is_none());
}
