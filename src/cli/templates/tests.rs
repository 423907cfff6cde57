//! Each template as `init` would write it: loads, is strictly valid, compiles.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::compiler::compile;
use crate::project::{EnvironmentInput, MemoryFs, Project, load};
use crate::validate::validate;

const IMAGE: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn options(project_name: &str) -> TemplateOptions {
    TemplateOptions {
        project_name: project_name.to_owned(),
        runner_image: Some(IMAGE.to_owned()),
        ..TemplateOptions::default()
    }
}

fn strictly_valid(template: Template, options: &TemplateOptions, environment: Option<&str>) -> Project {
    let files = render(template, options);
    let fs = files.iter().fold(MemoryFs::new(), |fs, file| fs.with(file.path, file.content.as_str()));
    // The values that a user puts in place of the example's.
    let example = files.iter().find(|file| file.path == ".env.example");
    let assignments = example.iter().flat_map(|file| file.content.lines()).filter(|line| !line.starts_with('#'));
    let variables = assignments.filter_map(|line| line.split_once('='));
    let variables: BTreeMap<String, String> = variables.map(|(name, value)| (name.into(), value.into())).collect();
    let input = EnvironmentInput { variables, requested: environment.map(str::to_owned), ..Default::default() };
    let loaded = load(&fs, &input).unwrap_or_else(|errors| panic!("{template:?}: {errors:#?}"));
    assert!(loaded.warnings.is_empty(), "{template:?}: {:#?}", loaded.warnings);
    let findings = validate(&loaded.project);
    assert!(findings.is_empty(), "{template:?}: {findings:#?}");
    loaded.project
}

#[test]
fn every_template_is_strictly_valid_and_compiles_under_awkward_project_names() {
    for template in Template::ALL {
        for name in ["orders", "Größe & \"Co\": 100% {yes}", "true", "2024.q1", "- x", "#1", "a'b\\c"] {
            let environments: &[Option<&str>] = match template {
                Template::MultiEnv => &[Some("dev"), Some("staging"), Some("prod")],
                Template::Quickstart | Template::Flink | Template::KafkaStreams | Template::Minimal => &[None],
            };
            for environment in environments {
                let project = strictly_valid(template, &options(name), *environment);
                assert_eq!(project.name, name);
                let compiled = compile(Arc::new(project)).unwrap_or_else(|errors| panic!("{template:?}: {errors:#?}"));
                assert!(compiled.warnings.is_empty(), "{template:?}: {:#?}", compiled.warnings);
            }
        }
    }
}

#[test]
fn quickstart_deploys_two_topics_with_schemas_or_without_a_registry_topics_alone() {
    let compiled = compile(Arc::new(strictly_valid(Template::Quickstart, &options("shop"), None))).unwrap();
    assert_eq!((compiled.artifacts.topics.len(), compiled.artifacts.schemas.len()), (2, 2));
    assert!(compiled.artifacts.topics.iter().all(|topic| topic.name.starts_with("shop.")));

    let without = TemplateOptions { without_registry: true, ..options("shop") };
    let project = strictly_valid(Template::Quickstart, &without, None);
    assert!(project.runtime.schema_registry.is_none());
    let compiled = compile(Arc::new(project)).unwrap();
    assert_eq!((compiled.artifacts.topics.len(), compiled.artifacts.schemas.len()), (2, 0));
    let files = render(Template::Quickstart, &without);
    assert!(files.iter().all(|file| !file.content.to_lowercase().contains("registry")), "{files:#?}");
}

#[test]
fn given_addresses_are_written_and_read_back() {
    let given = TemplateOptions {
        kafka: Some("a.example:9092,b.example:9092".to_owned()),
        schema_registry: Some("https://registry.example/x".to_owned()),
        ..options("shop")
    };
    let project = strictly_valid(Template::Quickstart, &given, None);
    assert_eq!(project.runtime.kafka.unwrap().bootstrap_servers, "a.example:9092,b.example:9092");
    assert_eq!(project.runtime.schema_registry.unwrap().url, "https://registry.example/x");
}

#[test]
fn nothing_is_left_to_fill_in() {
    for template in Template::ALL {
        for file in render(template, &options("shop")) {
            let left = file.content.split('@').skip(1).any(|part| part.starts_with(|c: char| c.is_ascii_uppercase()));
            assert!(!left && !file.content.contains("#@"), "{}:\n{}", file.path, file.content);
        }
    }
}

#[test]
fn names_of_templates_are_unique_and_read_back() {
    for template in Template::ALL {
        assert_eq!(Template::parse(template.as_str()), Some(template));
        assert!(!template.description().is_empty());
    }
    assert_eq!(Template::parse("nothing"), None);
}

#[test]
fn the_first_file_is_the_project_file_and_no_two_files_are_one() {
    for template in Template::ALL {
        let files = render(template, &options("shop"));
        assert_eq!(files[0].path, "stream_project.yml");
        let paths: std::collections::BTreeSet<_> = files.iter().map(|file| file.path).collect();
        assert_eq!(paths.len(), files.len());
    }
}
