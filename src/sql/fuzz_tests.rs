//! Broken queries without end: statements of the corpus with tokens lost, doubled, swapped and strewn in. Nothing may panic,
//! no finding may point outside the text, and the same text gives the same answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::analysis::{Environment, Input, analyse};
use super::{Outline, parse, runner, tokenize};

/// A generator whose seed is printed with every failure.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn statements() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/sql");
    let mut found = Vec::new();
    for folder in ["accepted", "refused", "updating"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            found.extend(text.split(";\n").filter(|part| !part.trim().is_empty()).map(str::to_owned));
        }
    }
    found.sort();
    found
}

fn pieces(text: &str) -> Vec<String> {
    match tokenize(text) {
        Ok(tokens) => tokens.iter().map(|token| token.span.of(text).to_owned()).collect(),
        Err(_) => text.split_whitespace().map(str::to_owned).collect(),
    }
}

fn mutated(random: &mut Random, statements: &[Vec<String>]) -> String {
    let mut tokens = statements[random.below(statements.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = random.below(tokens.len());
        match random.below(7) {
            0 if tokens.len() > 1 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens.get(at).cloned().unwrap_or_default()),
            2 => {
                let other = random.below(tokens.len());
                tokens.swap(at, other);
            }
            3 => {
                let other = &statements[random.below(statements.len())];
                tokens.insert(at, other[random.below(other.len())].clone());
            }
            4 => {
                let other = &statements[random.below(statements.len())];
                let start = random.below(other.len());
                let end = start + random.below(other.len() - start + 1);
                tokens.splice(at..at, other[start..end].iter().cloned());
            }
            5 => tokens.truncate(at.max(1)),
            _ => {
                let open = ["(", "[", "CASE", "NOT", "-", "ROW(", "{{ ref('t') }}", "é", "'", "`", "/*+", "ARRAY<"];
                let piece = open[random.below(open.len())];
                let count = 1 + random.below(3) * random.below(60);
                tokens.splice(at..at, std::iter::repeat_n(piece.to_owned(), count));
            }
        }
    }
    tokens.join(if random.below(9) == 0 { "" } else { " " })
}

fn examine(text: &str, inputs: &[Input]) {
    let (functions, models) = (BTreeMap::new(), BTreeMap::new());
    let environment = Environment { inputs, functions: &functions, models: &models };
    let inside = |start: usize, end: usize| {
        assert!(
            start <= end && end <= text.len() && text.is_char_boundary(start) && text.is_char_boundary(end),
            "{text}"
        );
    };
    if let Err(error) = runner::parse(text) {
        inside(error.offset, error.offset + error.width);
    }
    let outline = match Outline::parse(text) {
        Ok(outline) => outline,
        Err(error) => return inside(error.offset, error.offset + error.width),
    };
    let query = match parse::parse(&outline) {
        Ok(query) => query,
        Err(error) => return inside(error.span.start, error.span.end),
    };
    let found = analyse(&query, environment);
    found.missing.iter().for_each(|missing| inside(missing.span.start, missing.span.end));
    found.oddities.iter().for_each(|(_, span)| inside(span.start, span.end));
    found.columns.iter().for_each(|column| inside(column.span.start, column.span.end));
    found.updating.iter().chain(&found.unbounded).for_each(|found| inside(found.span.start, found.span.end));
}

fn fuzz(seed: u64, cases: usize) {
    let statements: Vec<Vec<String>> = statements().iter().map(|text| pieces(text)).collect();
    let inputs = super::corpus_tests::tables();
    let mut random = Random(seed);
    let templated: Vec<Vec<String>> = statements
        .into_iter()
        .map(|tokens| {
            let call = |token: String| match token.as_str() {
                "orders" | "clicks" | "rates" | "sensors" | "shipments" => format!("{{{{ source('{token}') }}}}"),
                _ => token,
            };
            tokens.into_iter().map(call).collect()
        })
        .collect();
    for case in 0..cases {
        let state = random.0;
        let text = mutated(&mut random, &templated);
        let examined = std::panic::catch_unwind(|| examine(&text, &inputs));
        assert!(examined.is_ok(), "case {case} of seed {seed} (state {state}): {text}");
    }
}

/// `STREAMT_FUZZ_CASES=1000000 cargo test --release --lib no_broken_query` is the long run.
#[test]
fn no_broken_query_panics_or_points_outside_the_text() {
    let cases = std::env::var("STREAMT_FUZZ_CASES").map_or(3_000, |cases| cases.parse().unwrap());
    fuzz(0x5eed, cases);
}

#[test]
fn deep_and_long_queries_end() {
    let inputs = super::corpus_tests::tables();
    let many = |piece: &str, count: usize| piece.repeat(count);
    for text in [
        format!("SELECT {}1{} FROM t", many("(", 40_000), many(")", 40_000)),
        format!("SELECT {}1{} AS a FROM t", many("(", 30), many(")", 30)),
        format!("SELECT {}1 FROM t", many("NOT ", 40_000)),
        format!("SELECT {}1 FROM t", many("- ", 40_000)),
        format!("SELECT 1{} FROM t", many(" + 1", 40_000)),
        format!("SELECT a{} FROM t", many(" AND a", 40_000)),
        format!("SELECT a{} FROM t", many(" IS NULL", 40_000)),
        format!("SELECT a{} FROM t", many("[1]", 40_000)),
        format!("SELECT a{} FROM t", many(".b", 40_000)),
        format!("SELECT 1{}", many(" UNION ALL SELECT 1", 20_000)),
        format!("SELECT 1 FROM t{}", many(" JOIN t ON a = b", 20_000)),
        format!("SELECT 1 FROM {}t{}", many("(", 30_000), many(")", 30_000)),
        format!("SELECT 1 FROM {}SELECT 1{}", many("(", 40), many(")", 40)),
        format!("SELECT {}1{} FROM t", many("CASE WHEN ", 40_000), many(" THEN 1 END", 40_000)),
        format!("SELECT CAST(a AS {}INT{}) FROM t", many("ARRAY<", 40_000), many(">", 40_000)),
        format!("SELECT {} FROM t", vec!["a"; 40_000].join(",")),
        format!("WITH {} SELECT 1", vec!["a AS (SELECT 1)"; 10_000].join(",")),
        format!("SELECT 1 FROM t{}", many(", t", 399)),
        format!("{}SELECT * FROM {{{{ source('orders') }}}}{}", many("SELECT *, * FROM (", 20), many(")", 20)),
        format!("WITH a AS (SELECT *, * FROM {{{{ source('orders') }}}}) SELECT * FROM a{}", many(", a", 399)),
    ] {
        examine(&text, &inputs);
    }
}
