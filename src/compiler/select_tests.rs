use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::compiler::testing::*;
use crate::project::Project;
use crate::project::model::*;

/// raw -> a -> b -> c, other -> x; `theirs` is external.
fn shop() -> Project {
    let mut project = project("shop");
    project.sources = vec![source("raw", "raw.v1"), source("other", "other.v1")];
    project.sources[1].schema = Some(SchemaBlock { definition: Some("\"int\"".into()), ..schema() });
    let tagged = |name: &str, sql: &str, tag: &str| Model { tags: vec![tag.into()], ..sql_model(name, sql) };
    project.models = vec![
        tagged("a", "SELECT COUNT(*) FROM {{ source('raw') }}", "core"),
        tagged("b", "SELECT COUNT(*) FROM {{ ref('a') }}", "late"),
        tagged("c", "SELECT COUNT(*) FROM {{ ref('b') }}", "late"),
        tagged("x", "SELECT COUNT(*) FROM {{ source('other') }}", "core"),
        Model { ownership: OwnershipBlock { mode: OwnershipMode::External }, ..model("theirs") },
    ];
    project.tests = vec![test("on_b", "b", TestType::Sample), test("on_x", "x", TestType::Sample)];
    project.tests[1].on_failure = Some(OnFailure { severity: Severity::Error, actions: vec![json!({"dlq": true})] });
    project
}

fn resolved(target: Option<&str>, select: Option<&str>) -> Result<Option<Closure>, String> {
    Closure::resolve(&compiled(shop()), target, select).map_err(|finding| finding.to_string())
}

fn models(target: Option<&str>, select: Option<&str>) -> Vec<String> {
    resolved(target, select).unwrap().unwrap().models.into_iter().collect()
}

#[test]
fn a_selection_is_closed_over_upstream_models() {
    assert_eq!(resolved(None, None), Ok(None));
    assert_eq!(models(Some("b"), None), ["a", "b"]);
    assert_eq!(models(None, Some("tag:late")), ["a", "b", "c"]);
    assert_eq!(models(None, Some("tag:core")), ["a", "x"]);
    assert_eq!(models(Some("c"), Some("tag:core")), ["a"]);
    let closure = resolved(Some("b"), None).unwrap().unwrap();
    assert_eq!(closure.sources, ["raw".to_owned()].into());
}

#[test]
fn selections_that_mean_nothing_are_refused() {
    assert_eq!(resolved(Some("bb"), None).unwrap_err(), "[E102_MODEL_NOT_FOUND] Model 'bb' not found");
    assert!(resolved(None, Some("tag:none")).unwrap_err().starts_with("[E208"));
    assert!(resolved(Some("theirs"), Some("tag:core")).unwrap_err().starts_with("[E208"));
    for expression in ["core", "tag:", "tag: ", "model:a", ""] {
        assert!(resolved(None, Some(expression)).unwrap_err().starts_with("[E902"), "{expression}");
    }
}

/// LIM-008
#[test]
fn a_project_with_removals_is_never_applied_in_part() {
    let mut project = shop();
    project.connector_removals.push(ConnectorRemoval {
        logical_owner: "old".into(),
        name: "n".into(),
        cluster: "c".into(),
        origin: Default::default(),
    });
    let compiled = compiled(project);
    let error = Closure::resolve(&compiled, Some("a"), None).unwrap_err();
    assert_eq!(error.code, Code::E418ReviewedPlanRequired);
    assert_eq!(Closure::resolve(&compiled, None, None), Ok(None));
}

#[test]
fn external_artifacts_stay_and_the_graph_stays_whole() {
    let compiled = compiled(shop());
    let closure = Closure::resolve(&compiled, Some("b"), None).unwrap().unwrap();
    let artifacts = closure.artifacts(&compiled.artifacts);
    let topics: BTreeSet<&str> = artifacts.topics.iter().map(|topic| topic.name.as_str()).collect();
    assert_eq!(topics, ["a", "b", "theirs"].into());
    assert_eq!(artifacts.schemas.len(), 1, "an external schema of an unselected source");
    let manifest = closure.manifest(&compiled, &artifacts);
    let names = |list: Vec<&str>| list.join(" ");
    assert_eq!(names(manifest.models.iter().map(|model| &*model.name).collect()), "a b");
    assert_eq!(names(manifest.sources.iter().map(|source| &*source.name).collect()), "raw");
    assert_eq!(names(manifest.tests.iter().map(|test| &*test.name).collect()), "on_b");
    assert_eq!(manifest.dag, &compiled.dag);
    assert_ne!(manifest.checksum().unwrap(), compiled.manifest_checksum);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Nothing selected reads a model that is not.
    #[test]
    fn a_closure_lacks_no_input(edges in prop::collection::vec((0..10_usize, 0..10_usize), 0..20), target in 0..10_usize) {
        let mut project = project("shop");
        project.models = (0..10).map(|index| {
            let inputs = edges.iter().filter(|(from, to)| from < to && *to == index);
            let from: Vec<Reference> = inputs.map(|(from, _)| model_ref(&format!("m{from}"))).collect();
            Model { from: Some(from), materialized: Some(Materialized::Topic), ..model(&format!("m{index}")) }
        }).collect();
        let compiled = compiled(project);
        let target = format!("m{target}");
        let closure = Closure::resolve(&compiled, Some(&target), None).unwrap().unwrap();
        for name in &closure.models {
            for input in &compiled.model(name).unwrap().dependencies {
                prop_assert!(closure.models.contains(input.name()));
            }
            prop_assert!(*name == target || compiled.dag.upstream(&target).contains(name.as_str()));
        }
    }
}
