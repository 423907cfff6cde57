use jsonschema::Validator;

use super::super::fs::MemoryFs;
use super::super::load::{EnvironmentInput, load};
use super::super::parse;
use super::*;

/// Uses every section of the language.
pub const SAMPLE: &str = include_str!("testdata/everything.yml");

fn validator() -> Validator {
    jsonschema::draft202012::new(&json_schema()).unwrap()
}

fn validator_of(definition: &str) -> Validator {
    let mut schema = json_schema();
    let definitions = schema["$defs"].clone();
    schema = json!({"$schema": schema["$schema"], "$ref": format!("#/$defs/{definition}"), "$defs": definitions});
    jsonschema::draft202012::new(&schema).unwrap()
}

fn is_loaded(text: &str) -> bool {
    load(&MemoryFs::new().with("stream_project.yml", text), &EnvironmentInput::default()).is_ok()
}

#[test]
fn the_schema_and_the_loader_accept_a_project_that_uses_everything() {
    let sample = parse::parse(SAMPLE).unwrap().to_json();
    if let Err(error) = validator().validate(&sample) {
        panic!("{error} at {}", error.instance_path());
    }
    let fs = MemoryFs::new().with("stream_project.yml", SAMPLE);
    let loaded = load(&fs, &EnvironmentInput::default()).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!(loaded.warnings.iter().map(|w| w.code.number()).collect::<Vec<_>>(), ["W226"; 1]);
}

/// Every mapping of the sample in turn gets a key that does not exist.
#[test]
fn an_unknown_field_anywhere_is_refused_by_both() {
    let sample = parse::parse(SAMPLE).unwrap().to_json();
    let validator = validator();
    let mut places = Vec::new();
    closed_places(&sample, String::new(), &mut places);
    assert!(places.len() > 60, "{}", places.len());
    for place in places {
        let mut changed = sample.clone();
        changed.pointer_mut(&place).unwrap()["zz_unknown"] = json!("x");
        let loads = is_loaded(&serde_json::to_string(&changed).unwrap());
        let validates = validator.is_valid(&changed);
        assert!(!loads && !validates, "{place}: the loader accepts: {loads}, the schema accepts: {validates}");
    }
}

fn closed_places(value: &Value, path: String, places: &mut Vec<String>) {
    const FREE: [&str; 14] = [
        "config",
        "params",
        "data_requirements",
        "classification",
        "types",
        "clusters",
        "connections",
        "ml_outputs",
        "owners",
        "x-anchors",
        "labels",
        "environments",
        "0",
        "1",
    ];
    match value {
        Value::Object(map) => {
            let last = path.rsplit('/').next().unwrap_or("");
            let parent = path.rsplit('/').nth(1).unwrap_or("");
            let free = path.contains("data_requirements")
                || path.contains("x-anchors")
                || (FREE.contains(&last) && (last.parse::<usize>().is_err() || parent == "owners"))
                    && !path.contains("interceptors");
            if !free {
                places.push(path.clone());
            }
            for (key, value) in map {
                closed_places(value, format!("{path}/{key}"), places);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                closed_places(value, format!("{path}/{index}"), places);
            }
        }
        _ => {}
    }
}

#[test]
fn wrong_types_and_values_are_refused_by_both() {
    for (pointer, value) in [
        ("/models/0/flink/parallelism", json!("two")),
        ("/models/0/flink/parallelism", json!(0)),
        ("/models/0/tags", json!(null)),
        ("/models/0/materialized", json!("table")),
        ("/models/0/name", json!("a b")),
        ("/sources/0/schema/version", json!(0)),
        ("/sources/0/schema/format", json!("xml")),
        ("/apiVersion", json!("v2")),
        ("/project/version", json!(1)),
        ("/runtime/schema_registry/url", json!("ftp://x")),
        ("/deployment_state/backend", json!("s3")),
        ("/lifecycle/connector_removals/0/name", json!(" ")),
    ] {
        let mut changed = parse::parse(SAMPLE).unwrap().to_json();
        *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
        assert!(!validator().is_valid(&changed), "schema: {pointer} = {value}");
        assert!(!is_loaded(&changed.to_string()), "loader: {pointer} = {value}");
    }
}

#[test]
fn folded_words_and_variables_are_accepted_by_the_schema() {
    let mut sample = parse::parse(SAMPLE).unwrap().to_json();
    sample["sources"][0]["schema"]["format"] = json!("AVRO");
    sample["runtime"]["kafka"]["security_protocol"] = json!("${PROTOCOL}");
    sample["runtime"]["kafka_streams"]["stop_timeout"] = json!("${TIMEOUT}");
    sample["runtime"]["schema_registry"]["url"] = json!("${URL:-http://localhost:8081}");
    assert!(validator().is_valid(&sample));
}

#[test]
fn files_of_directories_have_definitions_of_their_own() {
    assert!(validator_of("models_file").is_valid(&json!({"models": [{"name": "a"}]})));
    assert!(!validator_of("models_file").is_valid(&json!({"sources": []})));
    let environment =
        json!({"environment": {"protected": true}, "runtime": {"kafka": {"bootstrap_servers": "b:9092"}}});
    assert!(validator_of("environment_file").is_valid(&environment));
    assert!(!validator_of("environment_file").is_valid(&json!({"environment": {"protectd": true}, "runtime": {}})));
}

#[test]
fn every_field_can_be_described() {
    let partitions = describe("models.topic.partitions").unwrap();
    assert_eq!((partitions.minimum, partitions.maximum), (Some(1), Some(i64::from(i32::MAX))));
    assert_eq!(describe("models.0.access").unwrap().values, ["private", "protected", "public"]);
    assert_eq!(describe("runtime.flink.clusters.main.rest_url").unwrap().kind, "string");
    assert_eq!(describe("environment.protected").unwrap().default, Some(json!(false)));
    assert_eq!(describe("tests.assertions.range.min").unwrap().kind, "number");
    let error = describe("models.topic.partition").unwrap_err();
    assert_eq!(error.suggestion.as_deref(), Some("Did you mean 'partitions'?"));
    assert!(describe("").is_err());
}

#[test]
fn the_reference_has_a_row_for_every_field_and_no_empty_text() {
    let pages = reference();
    let all: String = pages.iter().map(|page| page.text.as_str()).collect();
    for name in
        ["bootstrap_servers", "max_out_of_orderness_ms", "interceptors", "reviewed_plan_max_age_minutes", "foreign_key"]
    {
        assert!(all.contains(&format!("| `{name}` |")), "{name}");
    }
    assert!(!all.contains("|  |  |\n"));
}

#[test]
fn the_reference_of_the_language_is_current() {
    for page in reference() {
        crate::golden::is_current(&format!("docs/reference/language/{}", page.name), &page.text);
    }
}
