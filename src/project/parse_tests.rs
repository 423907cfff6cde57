use proptest::prelude::*;

use super::super::source::Source;
use super::super::value::{Node, Resolved};
use super::*;

fn problems(text: &str) -> Vec<(u32, u32, String)> {
    parse(text).unwrap_err().into_iter().map(|p| (p.line, p.column, p.message)).collect()
}

fn first(text: &str) -> (u32, u32, String) {
    problems(text).remove(0)
}

#[test]
fn scalars_follow_the_core_schema_of_yaml_1_2() {
    let tree =
        parse("a: yes\nb: true\nc: 0o17\nd: 2020-01-01\ne: 1.5\nf: '1'\ng: ~\nh: 0x1F\ni: -7\nj: 1e3\nk: 1_000\n")
            .unwrap();
    let kind = |key: &str| tree.entry(key).unwrap().value.value().describe();
    assert_eq!(kind("a"), "a string");
    assert_eq!(kind("b"), "a boolean");
    assert!(matches!(tree.get("c").unwrap().value(), Resolved::Int(15)));
    assert_eq!(kind("d"), "a string");
    assert_eq!(kind("e"), "a number");
    assert_eq!(kind("f"), "a string");
    assert_eq!(kind("g"), "null");
    assert!(matches!(tree.get("h").unwrap().value(), Resolved::Int(31)));
    assert!(matches!(tree.get("i").unwrap().value(), Resolved::Int(-7)));
    assert_eq!(kind("j"), "a number");
    assert_eq!(kind("k"), "a string");
}

#[test]
fn an_empty_or_null_document_is_an_empty_mapping() {
    for text in ["", "---\n", "# only a comment\n", "~\n"] {
        assert!(parse(text).unwrap().entries().is_empty(), "{text:?}");
    }
}

/// LIM-014
#[test]
fn duplicate_keys_are_refused_with_the_first_place() {
    let found = parse("a: 1\nb: 2\na: 3\n").unwrap_err();
    assert_eq!((found[0].line, found[0].column), (3, 1));
    assert!(found[0].suggestion.as_deref().unwrap().contains("line 1"));
}

#[test]
fn several_documents_tags_and_other_keys_are_refused_where_they_stand() {
    assert!(first("a: 1\n---\nb: 2\n").2.contains("more than one"));
    let (line, _, message) = first("a: !custom 1\n");
    assert_eq!(line, 1);
    assert!(message.contains("tags"));
    assert!(first("1: a\n").2.contains("a key must be a string"));
    assert!(first("? [a]\n: b\n").2.contains("a list"));
    assert!(first("- a\n").2.contains("must be a mapping"));
}

#[test]
fn numbers_that_json_cannot_keep_are_refused() {
    assert!(first("a: 9007199254740992\n").2.contains("2^53"));
    assert!(first("a: 99999999999999999999\n").2.contains("2^53"));
    assert!(first("a: 1e20\n").2.contains("2^53"));
    assert!(first("a: .nan\n").2.contains("finite"));
    assert!(first("a: -.inf\n").2.contains("finite"));
    assert!(parse("a: 9007199254740991\nb: 1e22\nc: '9007199254740992'\n").is_ok());
}

#[test]
fn all_problems_of_a_file_are_found_together_in_order() {
    let found = problems("a: !x 1\nb: .nan\nb: 2\n");
    assert_eq!(found.iter().map(|p| p.0).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn aliases_and_merge_keys_expand_and_own_keys_win() {
    let tree = parse("x-a: &a {p: 1, q: 2}\nb:\n  <<: *a\n  q: 3\nc: *a\n").unwrap();
    let b = tree.get("b").unwrap();
    assert!(matches!(b.get("p").unwrap().value(), Resolved::Int(1)));
    assert!(matches!(b.get("q").unwrap().value(), Resolved::Int(3)));
    assert!(tree.get("c").unwrap().get("q").is_some());
    assert!(first("a:\n  <<: 1\n").2.contains("merge key"));
}

#[test]
fn expansion_and_depth_are_bounded() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..9 {
        let before = level - 1;
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 10].join(",")));
    }
    assert!(first(&bomb).2.contains("expand"));
    let deep = format!("a: {}{}\n", "[".repeat(80), "]".repeat(80));
    assert!(first(&deep).2.contains("nesting"));
}

fn find<'a>(tree: &'a Node, path: &str) -> &'a Node {
    tree.nearest(path)
}

/// For every character of a scalar, the located character in the file is the same one.
fn check_locations(text: &str, path: &str) {
    let source = Source::new("f.yml", text.to_owned(), false);
    let node = find(&source.tree().unwrap(), path).clone();
    let scalar = node.as_str().unwrap();
    for (offset, expected) in scalar.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        let (place, _) = source.locate(&node, offset, 1);
        let row = super::super::locate::lines(text).nth(place.line as usize - 1).unwrap();
        let found = row.chars().nth(place.column as usize - 1);
        assert_eq!(found, Some(expected), "offset {offset} of {scalar:?} in {text:?}, told {place}");
    }
}

#[test]
fn places_inside_scalars_are_those_of_the_file() {
    check_locations("sql: SELECT a FROM b\n", "sql");
    check_locations("sql: SELECT a\n  FROM b\n\n  WHERE c\n", "sql");
    check_locations("sql: \"SELECT é FROM b\"\n", "sql");
    check_locations("sql: 'it''s'\n", "sql");
    check_locations("sql: 'SELECT a\n    FROM b'\n", "sql");
    check_locations("sql: \"SELECT a\n    FROM \\\n   b\"\n", "sql");
    check_locations("m:\n  - sql: |\n      SELECT a\n        , b\n\n      FROM c\n", "m.0.sql");
    check_locations("m:\n  - sql: |-\n\n      SELECT ü\n      FROM c\n", "m.0.sql");
    check_locations(
        "m:\n  - sql: >\n      SELECT a\n      FROM b\n\n      WHERE c\n        AND d\n      LIMIT 1\n",
        "m.0.sql",
    );
    check_locations("m:\n  - sql: |2\n       a\n      b\n", "m.0.sql");
    check_locations("m:\n  - sql: &q |\n\n      SELECT a\n", "m.0.sql");
    check_locations("m:\n  - sql: !!str |\n      | a\n", "m.0.sql");
    check_locations("sql: &q SELECT a\n", "sql");
    check_locations("sql: !!str &q 12\n", "sql");
    check_locations("sql: &q 'it''s'\n", "sql");
    check_locations("m:\n  - sql: | # note\n      SELECT a\n", "m.0.sql");
}

#[test]
fn lines_with_secrets_are_never_shown() {
    let text = "runtime:\n  kafka:\n    sasl_password: SENTINEL\n    sasl_username: me\nlifecycle:\n  connector_removals:\n    - name: x\nmodels: []\n";
    let source = Source::new("stream_project.yml", text.to_owned(), false);
    assert!(source.excerpt(3, 5, 1).is_none());
    assert!(source.excerpt(4, 5, 1).is_some());
    assert!(source.excerpt(7, 7, 1).is_none());
    assert!(source.excerpt(8, 1, 1).is_some());
    let broken = Source::new("p.yml", format!("{text}x: [\n"), false);
    assert!(broken.excerpt(3, 1, 1).is_none());
    let flow = Source::new(
        "p.yml",
        "a: {password: SENTINEL}\nb: {url: 'https://u:SENTINEL@h'}\nc:\n  token: |\n    SENTINEL\n\
         d: {basic.auth.user.info: 'u:SENTINEL'}\ne: {authorization: SENTINEL}\n"
            .to_owned(),
        false,
    );
    for line in [1, 2, 4, 5, 6, 7] {
        assert!(flow.excerpt(line, 1, 1).is_none(), "{line}");
    }
    assert!(!format!("{source:?} {:?}", source.tree()).contains("SENTINEL"));
}

/// A line is found and judged without reading the file up to it: these files have as many findings as lines.
#[test]
fn the_excerpts_of_a_long_file_cost_no_reading_from_its_start() {
    let rows = |end: &str| (0..20_000).map(|row| format!("- {{name: m{row:05}}}\r\n")).collect::<String>() + end;
    for text in [rows(""), rows("x: [")] {
        let source = Source::new("f.yml", text, false);
        source.excerpt(1, 1, 1).unwrap();
        let began = std::time::Instant::now();
        for line in 1..=20_000 {
            assert_eq!(source.excerpt(line, 3, 4).unwrap().line, format!("- {{name: m{:05}}}", line - 1));
        }
        assert!(source.excerpt(20_002, 1, 1).is_none());
        assert!(began.elapsed() < std::time::Duration::from_secs(15), "{:?}", began.elapsed());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_yaml_like_text_makes_the_parser_panic(text in "([a-c<]|: |- |\\n|  |\\[|\\]|\\{|\\}|&a |\\*a|!|\\||>|'|\"|#|,|\\?|~|1|\\.|---|\\t|%|@|`|\\\\|\\r){0,60}") {
        if let Ok(tree) = parse(&text) {
            let source = Source::new("f", text, false);
            walk(&source, &tree);
        }
    }
}

fn walk(source: &Source, node: &Node) {
    if let Some(text) = node.as_str() {
        for offset in 0..=text.len() + 1 {
            let _ = source.locate(node, offset, 3);
        }
    }
    node.items().iter().for_each(|item| walk(source, item));
    node.entries().iter().for_each(|entry| walk(source, &entry.value));
}
