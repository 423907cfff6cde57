use proptest::prelude::*;
use proptest::sample::select;

use super::super::parse::full;
use super::*;

/// Equal down to places and styles.
fn same(a: &Node, b: &Node) -> bool {
    (a.line, a.column) == (b.line, b.column)
        && match (&a.content, &b.content) {
            (Content::Scalar { text, style }, Content::Scalar { text: other, style: its }) => {
                text == other && style == its
            }
            (Content::Sequence(items), Content::Sequence(others)) => {
                items.len() == others.len() && items.iter().zip(others).all(|(a, b)| same(a, b))
            }
            (Content::Mapping(entries), Content::Mapping(others)) => {
                entries.len() == others.len()
                    && entries.iter().zip(others).all(|(a, b)| {
                        (&a.key, a.line, a.column) == (&b.key, b.line, b.column) && same(&a.value, &b.value)
                    })
            }
            (Content::Scalar { .. } | Content::Sequence(_) | Content::Mapping(_), _) => false,
        }
}

/// The quick tree, which is the full one.
fn quick(text: &str) -> Option<Node> {
    let tree = read(text)?;
    match full(text) {
        Ok(whole) => assert!(same(&tree, &whole), "the trees differ: {text:?}"),
        Err(problems) => panic!("read though it is wrong: {text:?}: {problems:?}"),
    }
    Some(tree)
}

#[test]
fn what_project_files_consist_of_is_read_in_one_pass() {
    for text in [
        "models:\n  - name: a # the first\n    tags: [x, 'y', {k: v}]\n\n    columns:\n      - {name: id, type: STRING, required: true}\n",
        "# only\n\na:\n- b\n- c: 1\n  d: \"2\"\n-   - x\n    - y\ne: -1.5\n",
        "models:\n  - name: é\n    sql: |\n      SELECT *\n\n        FROM x -- #\n    description: 'it''s'\n",
        "a: |-\n  one\n   two\n\n# end\nb: {}\nc: []",
        "a: http://host:1/x#y\n'b c': \"d: e # f\"\n",
    ] {
        assert!(quick(text).is_some(), "{text:?}");
    }
}

#[test]
fn what_is_not_plain_is_left_to_the_full_parser() {
    for text in [
        "",
        "a:\n",
        "a: &x 1\n",
        "a: *x\n",
        "a: !!str 1\n",
        "a: >\n  x\n",
        "a: |+\n  x\n",
        "a: \"\\n\"\n",
        "a: b\n  c\n",
        "a: 'b\n  c'\n",
        "a: [b,\n  c]\n",
        "a: {b}\n",
        "a: [b, ]\n",
        "a: [b: c]\n",
        "? a\n: b\n",
        "---\na: b\n",
        "a:\tb\n",
        "a: b\r\n",
        "a: 1\na: 2\n",
        "1: a\n",
        "<<: {a: b}\n",
        "a: 99999999999999999999\n",
        "a: .nan\n",
        "a: b: c\n",
        "- a\n",
        "a: 'b' c\n",
        "a: @b\n",
        "a:\n  b: 1\n c: 2\n",
        "a: \u{85}\n",
        "a: |\n  x\n y\n",
    ] {
        assert!(quick(text).is_none(), "{text:?}");
    }
    let deep = format!("a: {}{}\n", "[".repeat(40), "]".repeat(40));
    assert!(quick(&deep).is_none());
}

const SCALARS: [&str; 40] = [
    "a",
    "some text",
    "1",
    "-2",
    "1.5",
    "true",
    "null",
    "~",
    "''",
    "'it''s'",
    "\"dq x\"",
    "\"a: b # c\"",
    "[a, b]",
    "{x: 1, y: [p, 'q']}",
    "[]",
    "{}",
    "a:b",
    "é 日",
    "http://h:1/p",
    "x#y",
    "x # c",
    "'a' # c",
    "[a, b] # c",
    "-x",
    "a-b: c",
    "'x': y",
    "  spaced  ",
    "2020-01-01",
    "+5",
    "\u{a0}x",
    "a\"b",
    "{\"k\": v}",
    "[{a: b}, {c: d}]",
    "<<",
    "a,b",
    "a]",
    "{{ x }}",
    "${X}",
    "[a -, c]",
    "- nested",
];

const PIECES: [&str; 48] = [
    "a",
    "b",
    "c: ",
    "d: ",
    "e:\n",
    "\n",
    "\n  ",
    "\n    ",
    "\n- ",
    "\n  - ",
    "\n  -\n",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ",",
    "'",
    "\"",
    "''",
    "#",
    " # x",
    "# y\n",
    "|\n",
    "|-\n",
    " |\n    l1\n    l2\n",
    " |-\n  t\n\n  u\n\n",
    ": ",
    ":",
    " ",
    "  ",
    "1",
    "-1",
    "null",
    "é",
    "-",
    "?",
    "!",
    "&",
    "*",
    ">",
    "\\",
    "<<",
    "---\n",
    "\t",
    "k: v\n",
    "- k: v\n  k3: w\n",
];

/// The lines of a block collection, not yet indented.
fn block() -> impl Strategy<Value = Vec<String>> {
    let leaf = select(&SCALARS[..]).prop_map(|scalar| vec![format!("a: {scalar}")]);
    leaf.prop_recursive(3, 24, 4, |inner| {
        let shape = (0..7_usize, 0..4_usize, select(&SCALARS[..]), inner);
        let item = move |(kind, indent, scalar, lines): (usize, usize, &str, Vec<String>), key: usize, list: bool| {
            let head = if list { "-".to_owned() } else { format!("{}:", ["a", "b c", "'d'", "é"][key]) };
            let pad = " ".repeat(if list { indent.max(1) } else { indent });
            let mut block: Vec<String> = Vec::new();
            match kind {
                0 | 1 => block.extend([head]),
                2 if list => {
                    let mut lines = lines.iter();
                    block.extend(lines.next().map(|first| format!("- {first}")));
                    block.extend(lines.map(|line| format!("  {line}")));
                    return block;
                }
                3 => {
                    block.push(format!("{head} {}", ["|", "|-", "| ", ">"][indent]));
                    block.extend(lines.iter().map(|line| format!("  {pad}{line}")));
                    return block;
                }
                4 => block.extend([format!("{head} # note"), String::new(), "   # more".to_owned()]),
                _ => {
                    block.push(format!("{head} {scalar}"));
                    return block;
                }
            }
            block.extend(lines.iter().map(|line| format!("{pad}{line}")));
            block
        };
        (proptest::collection::vec(shape, 1..4), any::<bool>()).prop_map(move |(shapes, list)| {
            shapes.into_iter().enumerate().flat_map(|(key, shape)| item(shape, key, list)).collect()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_pieces_give_the_full_tree_or_none(pieces in proptest::collection::vec(select(&PIECES[..]), 0..12)) {
        quick(&pieces.concat());
    }

    #[test]
    fn any_block_gives_the_full_tree_or_none(lines in block(), at in any::<prop::sample::Index>(), piece in select(&PIECES[..])) {
        let mut text = lines.join("\n");
        quick(&text);
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        text.insert_str(places[at.index(places.len())], piece);
        quick(&text);
        text.push('\n');
        quick(&text);
    }
}
