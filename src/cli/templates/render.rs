//! Filling in: `@WORD@` marks a value, `#@registry` … `#@end` a part that needs a schema registry.

use super::{Template, TemplateFile, TemplateOptions};

const DEFAULT_KAFKA: &str = "${KAFKA_BOOTSTRAP_SERVERS:-localhost:9092}";
const DEFAULT_KAFKA_INTERNAL: &str = "${KAFKA_BOOTSTRAP_SERVERS_INTERNAL:-broker:19092}";
const DEFAULT_REGISTRY: &str = "${SCHEMA_REGISTRY_URL:-http://localhost:8081}";
const FLINK_RUNTIME: &str = include_str!("flink/runtime.yml");
const DEFAULT_IMAGE: &str = "${STREAMT_RUNNER_IMAGE}";

/// The files of a new project, in the order in which they are reported.
pub fn render(template: Template, options: &TemplateOptions) -> Vec<TemplateFile> {
    let single = template != Template::MultiEnv;
    files(template)
        .iter()
        .map(|&(path, text)| TemplateFile { path, content: fill(&select_parts(text, single, options), options) })
        .collect()
}

/// Keeps the lines outside parts, and those of parts that apply.
fn select_parts(text: &str, single: bool, options: &TemplateOptions) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut applies = true;
    for line in text.split_inclusive('\n') {
        match line.trim_end() {
            "#@registry" => applies = !options.without_registry,
            "#@single" => applies = single,
            "#@end" => applies = true,
            _ if applies => kept.push_str(line),
            _ => {}
        }
    }
    kept
}

fn fill(text: &str, options: &TemplateOptions) -> String {
    let registry = !options.without_registry;
    let when_registry = |text: &str| if registry { text.to_owned() } else { String::new() };
    let values = [
        ("@FLINK_RUNTIME@\n", FLINK_RUNTIME.to_owned()),
        ("@NAME@", quoted(&options.project_name)),
        ("@TITLE@", options.project_name.clone()),
        ("@N@", topic_prefix(&options.project_name)),
        ("@KAFKA@", value_or(&options.kafka, DEFAULT_KAFKA)),
        ("@KAFKA_INTERNAL@", value_or(&options.kafka_internal, DEFAULT_KAFKA_INTERNAL)),
        ("@REGISTRY@", value_or(&options.schema_registry, DEFAULT_REGISTRY)),
        ("@IMAGE@", value_or(&options.runner_image, DEFAULT_IMAGE)),
        ("@NETWORK@", value_or(&options.docker_network, "bridge")),
        ("@OFFSET@", value_or(&options.initial_offset, "earliest")),
        ("@AND_SCHEMAS@", when_registry(" and schemas")),
        ("@AND_REGISTRY@", when_registry(" and the registry")),
        ("@REGISTRY_VARIABLE@", when_registry(" and `SCHEMA_REGISTRY_URL`")),
        ("@OR_INCOMPATIBLE@", when_registry(" or an incompatible schema")),
    ];
    values.iter().fold(text.to_owned(), |text, (mark, value)| text.replace(mark, value))
}

/// A placeholder stays plain so that it reads well; anything else is quoted as a YAML string.
fn value_or(value: &Option<String>, default: &str) -> String {
    value.as_deref().map_or_else(|| default.to_owned(), quoted)
}

fn quoted(text: &str) -> String {
    let plain = !text.is_empty()
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "null");
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// The project name with every character that a topic name cannot hold as `-`, at most 100 characters.
fn topic_prefix(project: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let prefix: String =
        project.chars().take(100).map(|c| if legal(c) { c.to_ascii_lowercase() } else { '-' }).collect();
    let prefix = prefix.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if prefix.is_empty() { "streamt".to_owned() } else { prefix.to_owned() }
}

fn files(template: Template) -> &'static [(&'static str, &'static str)] {
    match template {
        Template::Quickstart => &[
            ("stream_project.yml", include_str!("quickstart/stream_project.yml")),
            ("models/orders.yml", include_str!("quickstart/models.yml")),
            ("tests/orders.yml", include_str!("quickstart/tests.yml")),
            ("exposures/applications.yml", include_str!("quickstart/exposures.yml")),
            ("README.md", include_str!("quickstart/README.md")),
            (".gitignore", include_str!("gitignore")),
        ],
        Template::Flink => &[
            ("stream_project.yml", include_str!("flink/stream_project.yml")),
            ("sources/.gitkeep", ""),
            ("models/.gitkeep", ""),
            ("tests/.gitkeep", ""),
        ],
        Template::KafkaStreams => &[
            ("stream_project.yml", include_str!("kafka_streams/stream_project.yml")),
            ("README.md", include_str!("kafka_streams/README.md")),
            ("sample_events.jsonl", include_str!("kafka_streams/sample_events.jsonl")),
            ("sources/.gitkeep", ""),
            ("models/.gitkeep", ""),
            ("tests/.gitkeep", ""),
        ],
        Template::MultiEnv => &[
            ("stream_project.yml", include_str!("flink/stream_project.yml")),
            ("environments/dev.yml", include_str!("multi_env/dev.yml")),
            ("environments/staging.yml", include_str!("multi_env/staging.yml")),
            ("environments/prod.yml", include_str!("multi_env/prod.yml")),
            (".env.example", include_str!("multi_env/env.example")),
            (".gitignore", include_str!("gitignore")),
            ("sources/.gitkeep", ""),
            ("models/.gitkeep", ""),
            ("tests/.gitkeep", ""),
        ],
        Template::Minimal => &[("stream_project.yml", include_str!("minimal/stream_project.yml"))],
    }
}
