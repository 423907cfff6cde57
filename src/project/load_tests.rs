use super::super::fs::MemoryFs;
use super::super::model::{DeploymentState, OwnershipMode, Reference, SchemaVersion};
use super::*;

pub const HEADER: &str = "apiVersion: streamt.dev/v1alpha1\nproject:\n  name: shop\nruntime:\n  kafka:\n    bootstrap_servers: localhost:9092\n";

fn project(rest: &str) -> MemoryFs {
    MemoryFs::new().with("stream_project.yml", format!("{HEADER}{rest}"))
}

fn loaded(fs: &MemoryFs) -> Loaded {
    load(fs, &EnvironmentInput::default()).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn errors(fs: &MemoryFs) -> Vec<Diagnostic> {
    load(fs, &EnvironmentInput::default()).expect_err("the project must be refused").into_vec()
}

/// `line:column path code`, for each error.
fn places(fs: &MemoryFs) -> Vec<String> {
    errors(fs).iter().map(place).collect()
}

fn place(error: &Diagnostic) -> String {
    let location = error.location.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{location} {} {}", error.path.as_deref().unwrap_or("-"), error.code.number())
}

/// SAF-012
#[test]
fn a_small_project_is_loaded_with_its_defaults() {
    let fs = project("sources:\n  - name: orders_raw\n    topic: orders.raw.v1\n")
        .with(
            "models/orders.yml",
            "models:\n  - name: orders\n    from: orders_raw\n    sink:\n      connector: jdbc-sink\n",
        )
        .with("models/b/deep.yaml", "models:\n  - name: clean\n    sql: SELECT 1\n    topic: {partitions: 3}\n")
        .with("models/.hidden/x.yml", "nonsense: 1\n")
        .with("models/readme.md", "text");
    let project = loaded(&fs).project;
    assert_eq!(project.name, "shop");
    assert_eq!(project.environment.name, "default");
    assert_eq!(project.sources[0].ownership.mode, OwnershipMode::External);
    let names: Vec<&str> = project.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["clean", "orders"]);
    assert_eq!(project.models[1].from, Some(vec![Reference::Model("orders_raw".into())]));
    assert_eq!(project.models[0].ownership.mode, OwnershipMode::Managed);
    assert_eq!(project.deployment_state, DeploymentState::Local { lock_timeout: 30 });
    let origin = &project.models[1].origin;
    assert_eq!(origin.at("sink.connector").unwrap().to_string(), "models/orders.yml:5:18");
    assert_eq!(origin.path("sink.connector"), "models → 0 → sink → connector");
    assert!(loaded(&fs).warnings.is_empty());
}

#[test]
fn every_error_of_every_file_is_reported_with_its_place() {
    let fs = project(
        "models:\n  - name: a\n    flink:\n      paralellism: 2\n      checkpoint_interval_ms: '5'\n    tags: null\n",
    )
    .with("models/x.yml", "models:\n  - sql: SELECT 1\n")
    .with("sources/y.yml", "models: []\nsources:\n  - name: s\n    topic: 'a b'\n");
    assert_eq!(
        places(&fs),
        [
            "stream_project.yml:10:7 models → 0 → flink → paralellism E501",
            "stream_project.yml:11:31 models → 0 → flink → checkpoint_interval_ms E501",
            "stream_project.yml:12:11 models → 0 → tags E501",
            "models/x.yml:2:5 models → 0 → name E501",
            "sources/y.yml:1:1 models E501",
            "sources/y.yml:4:12 sources → 0 → topic E501",
        ]
    );
    let all = errors(&fs);
    assert_eq!(all[0].suggestion.as_deref(), Some("Did you mean 'parallelism'?"));
    assert_eq!(all[0].excerpt.as_ref().unwrap().line, "      paralellism: 2");
    assert!(all.iter().all(|error| error.suggestion.is_some()));
}

#[test]
fn schema_version_is_a_number_or_latest() {
    let block = |version: &str| {
        project(&format!("sources:\n  - name: s\n    topic: t\n    schema:\n      version: {version}\n"))
    };
    assert_eq!(loaded(&block("3")).project.sources[0].schema.as_ref().unwrap().version, SchemaVersion::Number(3));
    assert_eq!(loaded(&block("latest")).project.sources[0].schema.as_ref().unwrap().version, SchemaVersion::Latest);
    for wrong in ["0", "true", "newest", "1.5", "null"] {
        assert_eq!(places(&block(wrong)), ["stream_project.yml:11:16 sources → 0 → schema → version E501"], "{wrong}");
    }
}
