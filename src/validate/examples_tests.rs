//! The projects under `examples/` are what a newcomer copies: each loads, is strictly valid and compiles, for every environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::compiler::artifact::Kind;
use crate::compiler::{Compiled, compile};
use crate::project::{DiskFs, EnvironmentInput, load};

fn examples() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    assert!(found.len() >= 2, "{found:?}");
    found
}

fn environments(example: &Path) -> Vec<Option<String>> {
    let Ok(entries) = std::fs::read_dir(example.join("environments")) else { return vec![None] };
    let stems = entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned());
    stems.map(Some).collect()
}

fn compiled(example: &Path, environment: Option<String>) -> Compiled {
    let fs = DiskFs::open(example).unwrap();
    let input = EnvironmentInput { requested: environment, ..Default::default() };
    let loaded = load(&fs, &input).unwrap_or_else(|errors| panic!("{}: {errors:#?}", example.display()));
    assert!(loaded.warnings.is_empty(), "{}: {:#?}", example.display(), loaded.warnings);
    let findings = validate(&loaded.project);
    assert!(findings.is_empty(), "{}: {findings:#?}", example.display());
    compile(Arc::new(loaded.project)).unwrap_or_else(|errors| panic!("{}: {errors:#?}", example.display()))
}

#[test]
fn every_example_is_strictly_valid_and_deployable_in_every_environment() {
    for example in examples() {
        assert!(example.join("README.md").is_file(), "{} has no README.md", example.display());
        for environment in environments(&example) {
            let compiled = compiled(&example, environment);
            assert!(compiled.warnings.is_empty(), "{}: {:#?}", example.display(), compiled.warnings);
            assert!(compiled.resources().iter().all(|resource| resource.kind.deployable()), "{}", example.display());
        }
    }
}

#[test]
fn the_payments_example_shows_topics_schemas_and_a_reference() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/payments");
    let compiled = compiled(&example, Some("dev".to_owned()));
    let resources = compiled.resources();
    let of_kind = |kind| resources.iter().filter(|resource| resource.kind == kind).count();
    assert_eq!((of_kind(Kind::Topic), of_kind(Kind::Schema)), (5, 5));
    let requests = compiled.artifacts.schemas.iter().find(|schema| schema.subject == "acme-payments.requests.v1-value");
    let references = &requests.unwrap().references;
    assert_eq!(references.len(), 1);
    assert!(compiled.artifacts.schemas.iter().any(|schema| schema.subject == references[0].subject));
}
