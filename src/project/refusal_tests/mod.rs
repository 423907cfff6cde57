//! Each refusal of the language, table by table: the text, where it is reported, under which code.

mod declarations;
mod lifecycle;
mod sections;

use super::super::fs::MemoryFs;
use super::*;

const HEADER: &str =
    "apiVersion: streamt.dev/v1alpha1\nproject: {name: shop}\nruntime: {kafka: {bootstrap_servers: 'b:9092'}}\n";

fn report(fs: &MemoryFs) -> Vec<String> {
    let Err(errors) = load(fs, &EnvironmentInput::default()) else { return vec!["accepted".to_owned()] };
    errors
        .iter()
        .map(|error| {
            assert!(error.suggestion.is_some(), "no suggestion: {error:?}");
            let location = error.location.as_ref().map(ToString::to_string).unwrap_or_default();
            let place = location.strip_prefix("stream_project.yml:").unwrap_or(&location);
            format!("{} {place} {}", error.code.number(), error.path.as_deref().unwrap_or("-"))
        })
        .collect()
}

/// Appends to a sound project; lines are counted from the appended text.
fn check(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}\n"));
        let shifted: Vec<String> = report(&fs)
            .into_iter()
            .map(|line| match line.split_once(' ').and_then(|(code, rest)| Some((code, rest.split_once(':')?))) {
                Some((code, (row, rest))) if row.parse::<u32>().is_ok() => {
                    format!("{code} {}:{rest}", row.parse::<u32>().unwrap().saturating_sub(3))
                }
                _ => line,
            })
            .collect();
        assert_eq!(shifted, [*expected], "{text}");
    }
}

/// The logical paths of the errors, all E501.
fn paths(text: &str) -> Vec<String> {
    let lines = report(&MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}\n")));
    lines
        .into_iter()
        .map(|line| {
            line.strip_prefix("E501 ")
                .and_then(|rest| rest.split_once(' '))
                .map_or(line.clone(), |(_, path)| path.to_owned())
        })
        .collect()
}

fn accepted(texts: &[&str]) {
    check(&texts.iter().map(|text| (*text, "accepted")).collect::<Vec<_>>());
}

fn runtime(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let fs = MemoryFs::new().with(
            "stream_project.yml",
            format!("apiVersion: streamt.dev/v1alpha1\nproject: {{name: shop}}\nruntime:\n  {text}\n"),
        );
        let found: Vec<String> = report(&fs)
            .into_iter()
            .map(|line| {
                line.split(' ').enumerate().filter(|(i, _)| *i != 1).map(|(_, part)| part).collect::<Vec<_>>().join(" ")
            })
            .collect();
        let expected = if *expected == "accepted" { "accepted".to_owned() } else { (*expected).to_owned() };
        assert_eq!(found, [expected], "{text}");
    }
}

#[test]
fn files_of_a_project() {
    assert_eq!(report(&MemoryFs::new()), ["E501 stream_project.yml -"]);
    let both = MemoryFs::new().with("stream_project.yml", HEADER).with("stream_project.yaml", HEADER);
    assert_eq!(report(&both), ["E501 stream_project.yaml -"]);
    let yaml = MemoryFs::new().with("stream_project.yaml", HEADER);
    assert_eq!(report(&yaml), ["accepted"]);
    let file = |path: &str, bytes: &[u8]| MemoryFs::new().with("stream_project.yml", HEADER).with(path, bytes.to_vec());
    assert_eq!(report(&file("tests/a.yml", b"models: []")), ["E501 tests/a.yml:1:1 models"]);
    assert_eq!(report(&file("models/a.yml", b"models:\n - name: \xff")), ["E501 models/a.yml:2:1 -"]);
    assert_eq!(report(&file("models/a.yml", &vec![b' '; (4 << 20) + 1])), ["E501 models/a.yml -"]);
    assert_eq!(report(&file("models/a.yml", b"\xef\xbb\xbfmodels: []")), ["accepted"]);
    assert_eq!(report(&file("models/a.yml", b"")), ["accepted"]);
    assert_eq!(report(&file("generated/a.yml", b"nonsense")), ["accepted"]);
}

#[test]
fn a_project_of_more_than_64_mib_is_refused() {
    let mut fs = MemoryFs::new().with("stream_project.yml", HEADER);
    let filler = format!("models: []\n#{}", "x".repeat((4 << 20) - 64));
    for index in 0..17 {
        fs = fs.with(&format!("models/{index}.yml"), filler.clone());
    }
    assert_eq!(report(&fs), ["E501 . -"]);
}

#[test]
fn older_names_load_with_a_warning_where_they_stand() {
    let text = "sources: [{name: s, topic: t, advanced: {event_time: {column: a}}}]\nmodels:\n- name: m\n  connector: {type: jdbc-sink, config: {a: 1}}\n  advanced: {flink: {parallelism: 2}, connect_cluster: c}\n";
    let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}"));
    let loaded = load(&fs, &EnvironmentInput::default()).unwrap();
    let told: Vec<String> =
        loaded.warnings.iter().map(|w| format!("{} {}", w.code.number(), w.path.clone().unwrap())).collect();
    assert_eq!(
        told,
        [
            "W229 sources → 0 → advanced → event_time",
            "W229 models → 0 → connector",
            "W229 models → 0 → advanced → flink",
            "W229 models → 0 → advanced → connect_cluster",
        ]
    );
    let model = &loaded.project.models[0];
    assert_eq!(model.sink.as_ref().unwrap().connector, "jdbc-sink");
    assert_eq!(model.flink.as_ref().unwrap().parallelism, Some(2));
    assert_eq!(model.origin.at("flink.parallelism").unwrap().to_string(), "stream_project.yml:8:35");
    assert!(loaded.project.sources[0].event_time.is_some());
}

#[test]
fn words_that_older_yaml_takes_for_booleans_are_told() {
    let text = "models: [{name: m, topic: {config: {a: yes, b: 'no', c: Off, d: true}}}]\ntests: [{name: t, model: m, type: schema, assertions: [{accepted_values: {column: a, values: [Y, n, z]}}]}]\n";
    let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}"));
    let loaded = load(&fs, &EnvironmentInput::default()).unwrap();
    assert_eq!(loaded.warnings.iter().map(|w| w.code.number()).collect::<Vec<_>>(), ["W225"; 4]);
    assert_eq!(loaded.project.models[0].topic.as_ref().unwrap().config["a"], "yes");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    /// A sound document with some bytes changed, dropped or repeated never makes the loader panic, and every error has a suggestion.
    #[test]
    fn a_damaged_project_is_refused_or_loaded(edits in proptest::collection::vec((0usize..6000, 0usize..12, proptest::num::u8::ANY), 1..6)) {
        let mut bytes = include_bytes!("../testdata/everything.yml").to_vec();
        for (at, length, byte) in edits {
            let at = at % bytes.len();
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, [byte]);
        }
        if let Err(errors) = load(&MemoryFs::new().with("stream_project.yml", bytes), &EnvironmentInput::default()) {
            proptest::prop_assert!(!errors.is_empty());
            for error in errors.iter() {
                proptest::prop_assert!(error.suggestion.is_some() && error.location.is_some());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_make_the_loader_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let fs = MemoryFs::new().with("stream_project.yml", bytes.clone()).with("models/a.yml", bytes.clone()).with(".env", bytes);
        let _ = load(&fs, &EnvironmentInput::default());
    }
}
