//! Topics that belong to a tested model or source and are not what it writes: failures of tests, dead letters.

use super::*;
use crate::planner::{Evidence, PlanInput, plan};

/// The model `a`, that `b` reads, with a test whose failures go to a topic of their own.
fn tested() -> World {
    let failures =
        crate::compiler::artifact::TopicArtifact { name: "_failures".to_owned(), ..topic("a._failures", 1, &[]) };
    let mut world = World::new().with_topic(topic("a.v1", 1, &[]), None).with_topic(failures, None);
    world.dag = dag(
        &[("a", "model"), ("b", "model"), ("failures", "source"), ("alarms", "model"), ("pager", "exposure")],
        &[("a", "b"), ("failures", "alarms"), ("alarms", "pager")],
    );
    world
}

fn downstream(world: &World) -> Vec<(String, Vec<String>, usize)> {
    let mut desired = world.desired();
    for resource in desired.resources.iter_mut().filter(|resource| resource.physical_name == "_failures") {
        resource.logical_name = resource.physical_name.clone();
    }
    let evidence = Evidence::Online { state: &world.state, observations: &world.observations };
    let plan = plan(PlanInput { desired: &desired, evidence, selection: None }).unwrap();
    let entries = plan.impact.into_iter();
    entries
        .inspect(|entry| assert_eq!(entry.graph_evidence.status, EvidenceStatus::Verified))
        .map(|entry| (entry.resource, entry.downstream_models, entry.exposures.len()))
        .collect()
}

#[test]
fn the_topic_of_failures_does_not_feed_what_reads_the_tested_model() {
    let none = ("_failures".to_owned(), Vec::<String>::new(), 0);
    assert_eq!(downstream(&tested()), [none, ("a.v1".to_owned(), vec!["b".to_owned()], 0)]);
}

#[test]
fn it_feeds_what_reads_a_source_that_is_declared_over_it() {
    let mut world = tested();
    world.declared.readers = [("_failures".to_owned(), vec!["failures".to_owned()])].into();
    assert_eq!(downstream(&world)[0], ("_failures".to_owned(), vec!["alarms".to_owned()], 1));
}
