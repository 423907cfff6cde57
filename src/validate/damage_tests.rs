//! A large sound project with some of its words exchanged: whatever still loads is judged and compiled, or refused, without a panic.

use std::cell::Cell;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::compiler::compile;
use crate::project::{EnvironmentInput, MemoryFs, load};

const SOUND: &str = include_str!("../project/testdata/everything.yml");

const STRANGE: [&str; 24] = [
    "''",
    "0",
    "-1",
    "null",
    "{}",
    "[]",
    "true",
    "9223372036854775808",
    "\"\\u00e9 \\0\"",
    "\"{{ ref('a') }}\"",
    "\"{{\"",
    "\"SELECT\"",
    "\"SELECT * FROM {{ source('orders') }} WHERE (\"",
    "\"SELECT a FROM t GROUP BY\"",
    "\"WITH x AS (SELECT 1) SELECT * FROM x JOIN {{ ref('m') }} ON 1\"",
    "\"ROW<a ROW<b INT>\"",
    "\"DECIMAL(\"",
    "virtual_topic",
    "flink",
    "sink",
    "topic",
    "kafka_streams",
    "external",
    "x",
];

/// Where words begin and end that stand as values.
fn words() -> Vec<(usize, usize)> {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in SOUND.char_indices() {
        match (start, word(c)) {
            (None, true) => start = Some(at),
            (Some(begin), false) => {
                if c != ':' {
                    found.push((begin, at));
                }
                start = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
    found
}

#[test]
fn no_exchange_of_words_makes_loading_judging_or_compiling_panic() {
    let words = words();
    let loaded = Cell::new(0);
    let edit = (0..words.len(), prop_oneof![(0..STRANGE.len()).prop_map(Err), (0..words.len()).prop_map(Ok)]);
    let outcome = TestRunner::new(Config::with_cases(400)).run(&vec(edit, 1..4), |mut edits| {
        edits.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        edits.dedup_by_key(|(at, _)| *at);
        let mut text = SOUND.to_owned();
        for (at, by) in edits {
            let (start, end) = words[at];
            let by = match by {
                Ok(other) => &SOUND[words[other].0..words[other].1],
                Err(strange) => STRANGE[strange],
            };
            text.replace_range(start..end, by);
        }
        let Ok(found) = load(&MemoryFs::new().with("stream_project.yml", text), &EnvironmentInput::default()) else {
            return Ok(());
        };
        loaded.set(loaded.get() + 1);
        for finding in validate(&found.project).iter() {
            prop_assert!(!finding.message.is_empty());
        }
        let _ = compile(Arc::new(found.project));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(loaded.get() > 40, "only {} of 400 still loaded", loaded.get());
}
