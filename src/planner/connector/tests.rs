//! Connectors and their removals in whole plans.

use super::testing::{ALIAS, URL, absent, binding, connector, live, present, runtime, tombstone};
use super::{RemovalStatus, resolve_removals};
use crate::codes::Code;
use crate::compiler::artifact::{ConnectorArtifact, ConnectorRemovalArtifact, Kind};
use crate::compiler::canonical::Checksum;
use crate::ownership::model::OwnershipRecord;
use crate::planner::fixtures::{World, id, live_topic, topic};
use crate::planner::model::{BlockerCode, RequirementReason, Verb};
use crate::planner::needed;
use crate::planner::risk::{Assessment, RiskFlag};
use crate::project::model::OwnershipMode;

fn sink() -> ConnectorArtifact {
    connector("archive", &[("connection.password", "s3cret")])
}

fn record_of(connector: &ConnectorArtifact) -> OwnershipRecord {
    OwnershipRecord {
        physical_name: connector.name.clone(),
        ownership: OwnershipMode::Managed,
        artifact_checksum: Checksum::of(connector).unwrap(),
        backend: binding().identity().as_str().to_owned(),
    }
}

/// A project with the tombstone of [`sink`], that connector's record, and a live connector.
fn removal(record: Option<OwnershipRecord>, seen: super::ManagedConnectorObservation) -> World {
    let mut world = World::new();
    world.artifacts.connector_removals.push(tombstone(&sink()));
    world.observations.connectors.insert("archive".to_owned(), seen);
    if let Some(record) = record {
        world.state.resources.insert(id(Kind::Connector, "archive"), record);
        world.state.serial = 3;
    }
    world
}

fn codes(world: &World) -> Vec<Code> {
    world.try_plan().unwrap_err().iter().map(|error| error.code).collect()
}

#[test]
fn a_connector_is_created_updated_or_left_alone() {
    let world = World::new().with_connector(sink(), None);
    let plan = world.plan();
    assert_eq!((plan.creates(), plan.is_apply_blocked(), plan.risk_summary.overall), (1, false, Assessment::Safe));
    let record = plan.changes[0].record.as_ref().unwrap();
    assert_eq!(record, &record_of(&sink()));
    assert!(plan.actions[0].connector_evidence.is_none());

    let world = World::new().with_connector(sink(), Some(live(&sink()))).owned();
    assert!(!world.plan().has_changes());

    let seen = present(
        "archive",
        &[
            ("name", "archive"),
            ("connector.class", "io.example.SinkConnector"),
            ("topics", "orders.v1"),
            ("extra", "1"),
        ],
    );
    let world = World::new().with_connector(sink(), Some(seen)).owned();
    let plan = world.plan();
    assert_eq!((plan.updates(), plan.changes[0].is_drift()), (1, true));
    assert_eq!(plan.risks[0].assessment, Assessment::Risky);
    assert_eq!(plan.risks[0].risk_flags, [RiskFlag::Destructive].into(), "a key disappears");
    let shown = serde_json::to_string(&plan.payload()).unwrap();
    assert!(shown.contains("connection.password") && !shown.contains("s3cret"), "{shown}");
}

/// SAF-009, SAF-014
#[test]
fn a_live_connector_without_a_record_is_not_touched() {
    let plan = World::new().with_connector(sink(), Some(live(&sink()))).plan();
    assert_eq!(plan.requirements[0].reason, RequirementReason::RequiresAdoption);
    let mut other_cluster = World::new().with_connector(sink(), Some(live(&sink()))).owned();
    let record = other_cluster.state.resources.get_mut(&id(Kind::Connector, "archive")).unwrap();
    record.backend = record.backend.replace("e9b1", "0000");
    assert_eq!(other_cluster.plan().requirements[0].reason, RequirementReason::StateMismatch);
    let mut legacy = World::new().with_connector(sink(), Some(live(&sink()))).owned();
    legacy.state.resources.get_mut(&id(Kind::Connector, "archive")).unwrap().backend = "kafka-connect".to_owned();
    assert_eq!(legacy.plan().requirements[0].reason, RequirementReason::StateMismatch);
}

/// CRM-010: the alias is no part of the namespace.
#[test]
fn one_connector_is_never_recorded_twice() {
    let mut world = World::new().with_connector(sink(), None);
    let mut record = record_of(&sink());
    record.backend = record.backend.replace(":primary:", ":other:");
    world.state.resources.insert(id(Kind::Connector, "elsewhere"), record);
    let plan = world.plan();
    assert_eq!(plan.requirements[0].reason, RequirementReason::StateMismatch);
    assert!(plan.requirements[0].message.contains("connector/elsewhere"), "{}", plan.requirements[0].message);
}

#[test]
fn an_external_connector_is_neither_read_nor_bound() {
    let mut external = sink();
    external.ownership.mode = OwnershipMode::External;
    let mut world = World::new();
    world.artifacts.connectors.push(external);
    world.connect = None;
    assert!(needed(&world.desired(), None).connectors.is_empty());
    assert_eq!(world.plan().requirements[0].reason, RequirementReason::External);
}

/// CRM-006, CRM-046, CRM-054, CRM-060, CRM-064, CRM-065, CRM-067, CRM-071
#[test]
fn a_proved_record_and_a_matching_observation_make_one_deletion() {
    let seen = live(&sink());
    let plan = removal(Some(record_of(&sink())), seen.clone()).plan();
    assert_eq!(
        (plan.deletes(), plan.is_apply_blocked(), plan.risk_summary.overall),
        (1, false, Assessment::Destructive)
    );
    let [action] = &plan.actions[..] else { panic!("{:?}", plan.actions) };
    assert_eq!((action.index, action.action, action.resource_id.logical_name()), (0, Verb::Delete, "archive"));
    let evidence = action.connector_evidence.as_ref().unwrap();
    assert_eq!(evidence.current_fingerprint(), seen.fingerprint());
    assert_eq!(evidence.desired_fingerprint(), absent("archive").fingerprint());
    assert_eq!(evidence.prior_artifact_checksum(), &Checksum::of(&sink()).unwrap());
    let keys: Vec<String> = serde_json::to_value(action).unwrap().as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["index", "resource_id", "action", "gateway_evidence", "connector_evidence"]);
    assert!(plan.connector_assessments.is_empty() && plan.removal_candidates.is_empty());
    let shown = serde_json::to_string(&plan.payload()).unwrap();
    assert!(!shown.contains("s3cret") && !shown.contains("example.test"), "{shown}");
}

/// SAF-069
#[test]
fn an_environment_that_forbids_deletions_blocks_the_plan_of_one() {
    let mut world = removal(Some(record_of(&sink())), live(&sink()));
    world.forbids_deletion = true;
    let plan = world.plan();
    assert!(plan.actions.is_empty() && plan.is_apply_blocked() && plan.deletes() == 1);
    let [blocker] = &plan.blockers[..] else { panic!("{:?}", plan.blockers) };
    assert_eq!((blocker.code, blocker.action), (BlockerCode::DeletionForbidden, Verb::Delete));
    assert_eq!((blocker.kind, blocker.resource.as_str()), (Kind::Connector, "archive"));

    let mut harmless = World::new().with_connector(sink(), None);
    harmless.forbids_deletion = true;
    let plan = harmless.plan();
    assert_eq!((plan.creates(), plan.blockers.len()), (1, 0));
}

/// CRM-055, CRM-056, CRM-058, CRM-059, CRM-060, CRM-061
#[test]
fn every_other_outcome_is_an_assessment_and_no_action() {
    let mut other = sink();
    other.config.insert("tasks.max".to_owned(), "4".to_owned());
    let recorded = || Some(record_of(&sink()));
    let drift = BlockerCode::ConnectorRemovalStateProviderDrift;
    let table = [
        (recorded(), absent("archive"), RemovalStatus::StateProviderDrift, Some(drift)),
        (recorded(), live(&other), RemovalStatus::StateProviderDrift, Some(drift)),
        (None, absent("archive"), RemovalStatus::AlreadyAbsent, None),
        (None, live(&sink()), RemovalStatus::OwnershipRequired, Some(BlockerCode::ConnectorRemovalOwnershipRequired)),
    ];
    for (record, seen, status, blocker) in table {
        let world = removal(record, seen);
        let plan = world.plan();
        assert!(plan.actions.is_empty() && !plan.has_changes(), "{status:?}");
        let [assessment] = &plan.connector_assessments[..] else { panic!("{status:?}") };
        assert_eq!((assessment.status, assessment.logical_owner.as_str()), (status, "archive"));
        assert_eq!(plan.blockers.iter().map(|blocker| blocker.code).collect::<Vec<_>>(), Vec::from_iter(blocker));
        assert_eq!(plan.is_apply_blocked(), blocker.is_some());
        assert!(plan.blockers.iter().all(|blocker| blocker.details.is_empty() && blocker.action == Verb::Delete));
        let keys: Vec<String> =
            serde_json::to_value(assessment).unwrap().as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["resource_id", "logical_owner", "connector_name", "backend_identity", "status"]);
        assert!(plan.removal_candidates.is_empty(), "a tombstone is a declaration");
    }
}

/// CRM-053
#[test]
fn a_live_connector_that_forms_no_artifact_fails_the_plan() {
    let seen = present("archive", &[("name", "archive"), ("topics", "orders.v1")]);
    assert_eq!(codes(&removal(Some(record_of(&sink())), seen)), [Code::E427ConnectorRemovalInvalid]);
}

/// CRM-040, CRM-041, CRM-043, CRM-044, CRM-045, CRM-057
#[test]
fn a_record_that_grants_no_authority_fails_before_anything_is_asked() {
    let spoil = |change: &dyn Fn(&mut OwnershipRecord)| {
        let mut record = record_of(&sink());
        change(&mut record);
        let world = removal(Some(record), live(&sink()));
        let errors = resolve_removals(&world.desired(), &world.state).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.code).collect::<Vec<_>>(), [Code::E427ConnectorRemovalInvalid]);
        assert_eq!(codes(&world), [Code::E427ConnectorRemovalInvalid]);
    };
    spoil(&|record| record.ownership = OwnershipMode::Adopted);
    spoil(&|record| record.backend = "kafka-connect".to_owned());
    spoil(&|record| record.backend = "kafka-connect:v2:primary".to_owned());
    spoil(&|record| record.backend = record.backend.replace(":primary:", ":other:"));
    spoil(&|record| record.backend = record.backend.replace("e9b1", "0000"));
    spoil(&|record| record.physical_name = "other".to_owned());

    let mut twice = removal(Some(record_of(&sink())), live(&sink()));
    let mut second = record_of(&sink());
    second.backend = second.backend.replace(":primary:", ":other:");
    twice.state.resources.insert(id(Kind::Connector, "elsewhere"), second);
    assert_eq!(codes(&twice), [Code::E427ConnectorRemovalInvalid]);
    let mut elsewhere = removal(None, live(&sink()));
    elsewhere.state.resources.insert(id(Kind::Connector, "elsewhere"), record_of(&sink()));
    assert_eq!(codes(&elsewhere), [Code::E427ConnectorRemovalInvalid]);
    let mut unbound = removal(None, live(&sink()));
    let legacy = OwnershipRecord { backend: "kafka-connect".to_owned(), ..record_of(&sink()) };
    unbound.state.resources.insert(id(Kind::Connector, "elsewhere"), legacy);
    assert_eq!(codes(&unbound), [Code::E427ConnectorRemovalInvalid]);
}

/// CRM-020, CRM-021, CRM-042, CRM-057
#[test]
fn claims_of_one_connector_exclude_each_other() {
    let mut wanted = removal(Some(record_of(&sink())), live(&sink()));
    wanted.artifacts.connectors.push(sink());
    assert_eq!(codes(&wanted), [Code::E427ConnectorRemovalInvalid]);
    let mut same_name = removal(Some(record_of(&sink())), live(&sink()));
    let mut other_owner = sink();
    other_owner.ownership.name = "another".to_owned();
    other_owner.ownership.mode = OwnershipMode::External;
    same_name.artifacts.connectors.push(other_owner);
    assert_eq!(codes(&same_name), [Code::E427ConnectorRemovalInvalid]);
    for again in [
        ConnectorRemovalArtifact { logical_owner: "another".to_owned(), ..tombstone(&sink()) },
        ConnectorRemovalArtifact { name: "another".to_owned(), ..tombstone(&sink()) },
    ] {
        let mut twice = removal(Some(record_of(&sink())), live(&sink()));
        twice.artifacts.connector_removals.push(again);
        assert_eq!(codes(&twice), [Code::E427ConnectorRemovalInvalid]);
    }
    // One owner for two names, and no record that contradicts either.
    let mut unrecorded = removal(None, absent("archive"));
    unrecorded.observations.connectors.insert("another".to_owned(), absent("another"));
    let again = ConnectorRemovalArtifact { name: "another".to_owned(), ..tombstone(&sink()) };
    unrecorded.artifacts.connector_removals.push(again);
    assert_eq!(codes(&unrecorded), [Code::E427ConnectorRemovalInvalid]);
}

/// CRM-010
#[test]
fn another_alias_of_the_same_endpoint_is_the_same_namespace() {
    let mut world = removal(Some(record_of(&sink())), live(&sink()));
    let mut clusters = runtime();
    let again = clusters.clusters[ALIAS].clone();
    clusters.clusters.insert("again".to_owned(), again);
    clusters.clusters.get_mut("again").unwrap().rest_url = URL.to_uppercase();
    world.connect = Some(clusters);
    let mut wanted = sink();
    wanted.ownership.name = "another".to_owned();
    wanted.ownership.mode = OwnershipMode::External;
    wanted.cluster = Some("again".to_owned());
    world.artifacts.connectors.push(wanted);
    assert_eq!(codes(&world), [Code::E427ConnectorRemovalInvalid]);
}

/// CRM-009, CRM-041
#[test]
fn a_removal_names_the_default_cluster_and_needs_one() {
    let cluster = |cluster: &str| {
        let mut world = removal(None, absent("archive"));
        world.artifacts.connector_removals[0].cluster = cluster.to_owned();
        world
    };
    for other in ["unknown", "Primary", "_primary", "primary "] {
        assert_eq!(codes(&cluster(other)), [Code::E209InvalidClusterRef], "{other}");
    }
    let mut configured = cluster("second");
    let mut clusters = runtime();
    clusters.clusters.insert("second".to_owned(), clusters.clusters[ALIAS].clone());
    configured.connect = Some(clusters);
    assert_eq!(codes(&configured), [Code::E209InvalidClusterRef], "configured, and not the default");
    let mut none = cluster(ALIAS);
    none.connect = None;
    assert_eq!(codes(&none), [Code::E205ConnectRequired]);
    let mut no_default = cluster(ALIAS);
    no_default.connect = Some(crate::project::model::ConnectRuntime { default: None, ..runtime() });
    assert_eq!(codes(&no_default), [Code::E205ConnectRequired]);
}

/// CRM-002, SAF-002: nothing but a tombstone deletes.
#[test]
fn a_connector_that_is_no_longer_declared_is_reported_and_left_alone() {
    let mut world = World::new();
    world.state.resources.insert(id(Kind::Connector, "archive"), record_of(&sink()));
    world.state.serial = 1;
    world.observations.connectors.insert("archive".to_owned(), live(&sink()));
    let plan = world.plan();
    assert!(plan.actions.is_empty() && plan.changes.is_empty());
    assert_eq!(plan.removal_candidates.len(), 1);
}

/// CRM-025, CRM-027
#[test]
fn deletions_come_after_the_other_connectors_and_in_the_order_of_their_names() {
    let mut world = World::new()
        .with_connector(connector("zeta", &[]), None)
        .with_topic(topic("t.v1", 1, &[]), Some(live_topic("t.v1", 1, &[])));
    for name in ["gone-b", "gone-a"] {
        let gone = connector(name, &[]);
        world.artifacts.connector_removals.push(tombstone(&gone));
        world.observations.connectors.insert(name.to_owned(), live(&gone));
        world.state.resources.insert(id(Kind::Connector, name), record_of(&gone));
    }
    world.state.resources.insert(id(Kind::Topic, "t"), crate::planner::fixtures::record(&world.desired().resources[0]));
    world.state.serial = 1;
    let plan = world.plan();
    let order: Vec<(&str, Verb)> = plan.active().map(|change| (change.name.as_str(), change.verb.unwrap())).collect();
    assert_eq!(order, [("zeta", Verb::Create), ("gone-a", Verb::Delete), ("gone-b", Verb::Delete)]);
    assert_eq!(plan.actions.iter().map(|action| action.index).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(needed(&world.desired(), None).connectors, ["gone-a", "gone-b", "zeta"]);
}

/// CRM-062
#[test]
fn offline_nothing_is_assessed() {
    let plan = removal(Some(record_of(&sink())), live(&sink())).plan_offline();
    assert!(plan.connector_assessments.is_empty() && plan.actions.is_empty() && !plan.has_changes());
}
