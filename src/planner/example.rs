//! Plans of projects that were loaded and compiled, not built by hand.

use std::path::Path;
use std::sync::Arc;

use super::observation::{Observations, SchemaObservation, TopicObservation};
use super::{Desired, Evidence, Plan, PlanInput, Selection, needed, plan, refuse_undeployable};
use crate::codes::Code;
use crate::compiler::{Compiled, compile};
use crate::ownership::model::OwnershipState;
use crate::project::fs::{DiskFs, MemoryFs, ProjectFs};
use crate::project::load::{EnvironmentInput, load};

fn compiled(fs: &dyn ProjectFs, environment: Option<&str>) -> Compiled {
    let input = EnvironmentInput { requested: environment.map(str::to_owned), ..EnvironmentInput::default() };
    compile(Arc::new(load(fs, &input).unwrap().project)).unwrap()
}

fn payments() -> Compiled {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/payments");
    compiled(&DiskFs::open(&directory).unwrap(), Some("dev"))
}

/// Against an empty cluster and an empty registry.
fn first(compiled: &Compiled, selection: Option<&Selection>) -> Plan {
    let desired = Desired::of(compiled);
    let needs = needed(&desired, selection);
    let observations = Observations {
        topics: needs.topics.iter().map(|name| (name.clone(), TopicObservation::absent(name))).collect(),
        subjects: needs.subjects.iter().map(|name| (name.clone(), SchemaObservation::absent(name))).collect(),
        next_versions: needs.numbered.iter().map(|name| (name.clone(), 1)).collect(),
        ..Observations::default()
    };
    let state = OwnershipState::empty(desired.project, desired.environment);
    let evidence = Evidence::Online { state: &state, observations: &observations };
    plan(PlanInput { desired: &desired, evidence, selection }).unwrap()
}

/// SAF-015, SAF-033
#[test]
fn the_example_project_creates_everything_it_owns_references_first() {
    let compiled = payments();
    let plan = first(&compiled, None);
    assert!(!plan.is_apply_blocked(), "{:?}", plan.requirements);
    assert_eq!(plan.actions.len(), plan.changes.iter().filter(|change| change.requirement.is_none()).count());
    let position = |name: &str| plan.changes.iter().position(|change| change.name == name).unwrap();
    for schema in &compiled.artifacts.schemas {
        for reference in &schema.references {
            assert!(position(&reference.subject) < position(&schema.subject));
        }
    }
    assert!(compiled.artifacts.schemas.iter().any(|schema| !schema.references.is_empty()));
    for action in &plan.actions {
        assert_eq!(action.resource_id.project(), compiled.project.name);
        assert_eq!(action.resource_id.environment(), "dev");
    }
    let owned = |entry: &super::impact::ImpactEntry| !entry.owners.is_empty() && entry.logical_name.is_some();
    assert!(plan.impact.iter().all(owned), "every topic of the example has an owner");
}

/// SAF-005
#[test]
fn a_target_of_the_example_limits_its_plan() {
    let compiled = payments();
    let selection = Selection::resolve(&compiled, Some("accounts"), None).unwrap().unwrap();
    let limited = first(&compiled, Some(&selection));
    assert!(limited.active().all(|change| selection.models.contains(change.resource_id.logical_name())));
    assert!(limited.actions.len() < first(&compiled, None).actions.len());
    let error = Selection::resolve(&compiled, Some("acounts"), None).unwrap_err();
    assert_eq!((error.code, error.suggestion.as_deref()), (Code::E102ModelNotFound, Some("Did you mean 'accounts'?")));
}

#[test]
fn a_model_that_needs_a_gateway_rule_is_refused_unless_it_is_left_out() {
    let fs = MemoryFs::new().with(
        "stream_project.yml",
        r#"
apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime:
  kafka: {bootstrap_servers: "localhost:9092"}
  conduktor: {gateway: {admin_url: "http://localhost:8888", proxy_bootstrap: "localhost:6969"}}
models:
  - name: orders
    topic: {partitions: 1, replication_factor: 1}
  - name: totals
    materialized: virtual_topic
    sql: SELECT * FROM {{ ref("orders") }} WHERE region = 'north'
"#,
    );
    let compiled = compiled(&fs, None);
    let refused = refuse_undeployable(&Desired::of(&compiled), None).into_vec();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].code, Code::E221KindNotDeployable);
    assert_eq!(refused[0].message, "this version cannot deploy gateway_rule 'totals'");
    let selection = Selection::resolve(&compiled, Some("orders"), None).unwrap();
    assert_eq!(first(&compiled, selection.as_ref()).creates(), 1);
}
