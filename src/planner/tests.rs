//! What a plan says of one project, one owner's memory and one live world.

mod references;
mod topics_of_tests;

use serde_json::{Value, json};

use super::Cause;
use super::fixtures::*;
use super::flink::JobState;
use super::impact::ChangeType;
use super::model::{BlockerCode, Plan, RequirementReason, Verb};
use super::needs::{Needs, compatibility_checks};
use super::observation::{
    CompatibilityVerdict, ConsumerEvidence, EvidenceFailure, EvidenceStatus, GroupLag, SubjectVersion,
};
use super::risk::{Assessment, ChangeRisk};
use super::{Selection, needed, refuse_undeployable};
use crate::codes::Code;
use crate::compiler::artifact::GatewayRuleArtifact;
use crate::project::model::{Compatibility, OwnershipMode};

fn verbs(plan: &Plan) -> Vec<(String, Option<Verb>)> {
    plan.changes.iter().map(|change| (change.label(), change.verb)).collect()
}

fn actions(plan: &Plan) -> Vec<(u32, &str, &str)> {
    plan.actions.iter().map(|a| (a.index, a.resource_id.as_str(), a.action.as_str())).collect()
}

fn only_risk(plan: &Plan) -> Value {
    assert_eq!(plan.risks.len(), 1, "{:?}", plan.risks);
    let ChangeRisk { assessment, risk_flags, evidence, .. } = &plan.risks[0];
    json!([assessment, risk_flags, evidence.status, evidence.sources, evidence.reasons])
}

fn text(schema: &str) -> Value {
    json!({"type": schema})
}

fn consumers(status: EvidenceStatus, groups: &[(&str, &str, u64)]) -> ConsumerEvidence {
    let mut evidence = ConsumerEvidence { status, reason: None, failures: Vec::new(), groups: Default::default() };
    for (topic, group, lag) in groups {
        let lag = GroupLag { group_id: (*group).to_owned(), lag: *lag, partitions: Vec::new() };
        evidence.groups.entry((*topic).to_owned()).or_default().push(lag);
    }
    evidence
}

/// SAF-015, SAF-033
#[test]
fn a_new_project_creates_schemas_before_topics_by_name() {
    let world = World::new()
        .with_topic(topic("b.v1", 1, &[]), None)
        .with_topic(topic("a.v1", 1, &[]), None)
        .with_schema(schema("a-value", text("string")), None);
    let plan = world.plan();
    assert_eq!(
        actions(&plan),
        [
            (0, "streamt://payments/prod/schema/a", "register"),
            (1, "streamt://payments/prod/topic/a", "create"),
            (2, "streamt://payments/prod/topic/b", "create"),
        ]
    );
    assert_eq!((plan.creates(), plan.updates(), plan.deletes()), (3, 0, 0));
    assert!(plan.has_changes() && !plan.is_apply_blocked());
}

/// SAF-034
#[test]
fn what_is_owned_and_equal_is_left_alone() {
    let world = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
    let plan = world.plan();
    assert_eq!(verbs(&plan), [("topic:a.v1".to_owned(), None)]);
    assert!(!plan.has_changes() && plan.actions.is_empty() && plan.requirements.is_empty());
    assert!(!plan.changes[0].is_drift());
}

/// SAF-014, SAF-035, SAF-046
#[test]
fn a_live_topic_without_a_record_needs_adoption_and_nothing_happens_to_it() {
    let world = World::new()
        .with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 6, &[])))
        .with_topic(topic("b.v1", 1, &[]), None);
    let plan = world.plan();
    assert_eq!(plan.changes[0].verb, None);
    assert_eq!(plan.changes[0].observed_verb, Some(Verb::Update));
    let requirement = &plan.requirements[0];
    assert_eq!(requirement.reason, RequirementReason::RequiresAdoption);
    assert_eq!(requirement.observed_action, Some(Verb::Update));
    assert_eq!(
        requirement.message,
        "topic 'a.v1' exists without a record of this project; declare it adopted and run `streamt adopt`, or declare it external"
    );
    assert!(plan.is_apply_blocked() && plan.blockers.is_empty());
    assert!(plan.actions.is_empty(), "a blocked plan has no actions at all");
    assert_eq!(plan.creates(), 1, "what would be done beside it stays visible");
}

#[test]
fn a_renamed_declaration_is_told_who_holds_the_record() {
    let mut world = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
    world.artifacts.topics[0].ownership.name = "renamed".to_owned();
    let plan = world.plan();
    assert_eq!(
        plan.requirements[0].message,
        "topic 'a.v1' exists, but is recorded as streamt://payments/prod/topic/a; give the declaration its recorded name again"
    );
}

/// SAF-010, SAF-038
#[test]
fn an_external_topic_is_listed_and_never_compared() {
    let mut external = topic("a.v1", 1, &[]);
    external.ownership.mode = OwnershipMode::External;
    let mut world = World::new().with_topic(external, None);
    world.observations.topics.clear();
    let plan = world.plan();
    assert_eq!(verbs(&plan), [("topic:a.v1".to_owned(), None)]);
    assert_eq!(plan.requirements[0].reason, RequirementReason::External);
    assert_eq!(plan.requirements[0].observed_action, None);
    assert!(!plan.is_apply_blocked());
    assert_eq!(needed(&world.desired(), None), Needs::default());
}

#[test]
fn live_change_by_hand_is_drift_and_a_change_of_the_declaration_is_not() {
    let by_hand =
        World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[("retention.ms", "1")]))).owned();
    assert!(by_hand.plan().changes[0].is_drift());

    let mut declared = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
    declared.artifacts.topics[0].partitions = 4;
    let plan = declared.plan();
    assert_eq!((plan.changes[0].verb, plan.changes[0].is_drift()), (Some(Verb::Update), false));

    let gone = World::new().with_topic(topic("a.v1", 1, &[]), None).owned();
    let plan = gone.plan();
    assert_eq!((plan.changes[0].verb, plan.changes[0].is_drift()), (Some(Verb::Create), true));
}

/// SAF-040, SAF-041, SAF-047, SAF-065
#[test]
fn a_partition_reduction_blocks_the_plan_and_says_how_far() {
    let world = World::new().with_topic(topic("a.v1", 3, &[]), Some(live_topic("a.v1", 6, &[]))).owned();
    let plan = world.plan();
    assert_eq!(
        serde_json::to_value(&plan.blockers).unwrap(),
        json!([{"code": "kafka_partition_reduction", "kind": "topic", "resource": "a.v1", "action": "update",
            "message": "partitions cannot be reduced from 6 to 3 (E401_CANNOT_REDUCE_PARTITIONS)",
            "details": {"field": "partitions", "current": 6, "desired": 3}}])
    );
    assert_eq!(
        only_risk(&plan),
        json!([
            "destructive",
            ["destructive", "policy_violation"],
            "verified",
            ["kafka_topic_diff"],
            ["partition_reduction_requested"]
        ])
    );
    assert!(plan.is_apply_blocked() && plan.actions.is_empty());
    assert_eq!(plan.blockers_of(&plan.changes[0]).len(), 1);
    assert_eq!(plan.risk_of(&plan.changes[0]).unwrap().assessment, Assessment::Destructive);
}

/// SAF-042
#[test]
fn an_incompatible_schema_blocks_under_the_level_of_its_subject() {
    let mut world = World::new()
        .with_schema(schema("a-value", text("int")), Some(live_schema("a-value", 3, text("string"))))
        .owned();
    world.observations.verdicts.insert("a-value".to_owned(), CompatibilityVerdict::Incompatible);
    let plan = world.plan();
    assert_eq!(
        serde_json::to_value(&plan.blockers).unwrap(),
        json!([{"code": "schema_incompatible", "kind": "schema", "resource": "a-value", "action": "update",
            "message": "the schema is not BACKWARD compatible with version 3 (E402_SCHEMA_INCOMPATIBLE)",
            "details": {"current_version": 3, "compatibility": "BACKWARD"}}])
    );
    assert_eq!(
        Value::Object(plan.changes[0].changes.clone()),
        json!({"schema_incompatible": {"current_version": 3,
            "message": "the schema is not BACKWARD compatible with version 3 (E402_SCHEMA_INCOMPATIBLE)"}})
    );
    assert_eq!(
        only_risk(&plan),
        json!([
            "schema_breaking",
            ["policy_violation", "schema_breaking"],
            "verified",
            ["schema_registry_compatibility"],
            ["registry_compatibility_rejected"]
        ])
    );
}

/// SAF-046
#[test]
fn ownership_neutralises_before_blockers_are_derived() {
    let mut world =
        World::new().with_schema(schema("a-value", text("int")), Some(live_schema("a-value", 3, text("string"))));
    world.observations.verdicts.insert("a-value".to_owned(), CompatibilityVerdict::Incompatible);
    let plan = world.plan();
    assert_eq!((plan.blockers.len(), plan.risks.len(), plan.requirements.len()), (0, 0, 1));
}

/// SAF-045
#[test]
fn blockers_stand_in_kind_order_then_by_resource() {
    let mut world = World::new()
        .with_topic(topic("b.v1", 1, &[]), Some(live_topic("b.v1", 2, &[])))
        .with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 2, &[])))
        .with_schema(schema("z-value", text("int")), Some(live_schema("z-value", 1, text("string"))))
        .owned();
    world.observations.verdicts.insert("z-value".to_owned(), CompatibilityVerdict::Incompatible);
    let order: Vec<(BlockerCode, String)> =
        world.plan().blockers.into_iter().map(|blocker| (blocker.code, blocker.resource)).collect();
    assert_eq!(
        order,
        [
            (BlockerCode::SchemaIncompatible, "z-value".to_owned()),
            (BlockerCode::KafkaPartitionReduction, "a.v1".to_owned()),
            (BlockerCode::KafkaPartitionReduction, "b.v1".to_owned()),
        ]
    );
}

#[test]
fn schema_updates_are_as_risky_as_their_proof() {
    let world = |verdict| {
        let mut world = World::new()
            .with_schema(schema("a-value", text("int")), Some(live_schema("a-value", 3, text("string"))))
            .owned();
        world.observations.verdicts.extend(Option::map(verdict, |v| ("a-value".to_owned(), v)));
        world.plan()
    };
    let compatible = world(Some(CompatibilityVerdict::Compatible));
    assert_eq!(
        Value::Object(compatible.changes[0].changes.clone()),
        json!({"schema": {"from_version": 3, "to_version": 4, "compatible": true}})
    );
    assert_eq!(
        only_risk(&compatible),
        json!([
            "risky",
            ["schema_impact_unverified"],
            "partial",
            ["schema_registry_compatibility"],
            ["downstream_contract_impact_unverified", "registry_compatibility_verified"]
        ])
    );
    let unproven = world(None);
    assert_eq!(
        Value::Object(unproven.changes[0].changes.clone()),
        json!({"schema": {"from_version": 3, "to_version": 4, "compatible": null}})
    );
    assert_eq!(
        only_risk(&unproven),
        json!(["unknown", ["schema_impact_unverified"], "unavailable", [], ["schema_compatibility_not_proven"]])
    );
    assert!(!unproven.is_apply_blocked());
}

#[test]
fn a_level_alone_is_a_risky_update_and_an_undeclared_level_is_not_compared() {
    let mut declared = schema("a-value", text("string"));
    declared.compatibility = Some(Compatibility::Full);
    let live = live_schema("a-value", 3, text("string"));
    let plan = World::new().with_schema(declared, Some(live.clone())).owned().plan();
    assert_eq!(
        Value::Object(plan.changes[0].changes.clone()),
        json!({"compatibility": {"from": "BACKWARD", "to": "FULL"}})
    );
    assert_eq!(
        only_risk(&plan),
        json!(["risky", [], "verified", ["schema_registry_diff"], ["compatibility_policy_change"]])
    );
    let plan = World::new().with_schema(schema("a-value", text("string")), Some(live)).owned().plan();
    assert_eq!(plan.changes[0].verb, None);
}

#[test]
fn other_references_alone_are_a_new_version() {
    let mut declared = schema("a-value", text("string"));
    declared.references = vec![reference("base", 2)];
    let mut live = live_schema("a-value", 3, text("string"));
    live.references = vec![reference("base", 1)];
    let mut world = World::new().with_schema(declared, Some(live)).owned().live_version("base", 2);
    assert_eq!(compatibility_checks(&world.desired(), None, &world.observations), ["a-value"]);
    world.observations.verdicts.insert("a-value".to_owned(), CompatibilityVerdict::Compatible);
    assert_eq!(
        Value::Object(world.plan().changes[0].changes.clone()),
        json!({"schema": {"from_version": 3, "to_version": 4, "compatible": true},
            "references": {"from": [{"name": "base.type", "subject": "base", "version": 1}],
                "to": [{"name": "base.type", "subject": "base", "version": 2}]}})
    );
}

#[test]
fn content_is_compared_as_canonical_json() {
    let declared = schema("a-value", json!({"type": "record", "default": 1}));
    let live = live_schema("a-value", 1, serde_json::from_str(r#"{"default": 1.0, "type": "record"}"#).unwrap());
    assert_eq!(World::new().with_schema(declared, Some(live)).owned().plan().changes[0].verb, None);
}

#[test]
fn the_needs_of_a_plan_are_named_beforehand() {
    let world = references::chain(true).with_topic(topic("b.v1", 1, &[]), None).with_topic(topic("a.v1", 1, &[]), None);
    assert_eq!(
        needed(&world.desired(), None),
        Needs {
            topics: vec!["a.v1".to_owned(), "b.v1".to_owned()],
            subjects: vec!["a-value".to_owned(), "z-value".to_owned()],
            versions: vec![SubjectVersion { subject: "z-value".to_owned(), version: 2 }],
            numbered: vec!["z-value".to_owned()],
            inputs: Vec::new(),
            jobs: Vec::new(),
            connectors: Vec::new(),
        }
    );
    let selection = Selection { models: ["b".to_owned()].into(), sources: Default::default() };
    let needs = needed(&world.desired(), Some(&selection));
    assert_eq!(needs, Needs { topics: vec!["b.v1".to_owned()], ..Needs::default() });
}

#[test]
fn a_missing_observation_is_an_internal_error_and_never_taken_as_absence() {
    let mut world = World::new().with_topic(topic("a.v1", 1, &[]), None);
    world.observations.topics.clear();
    assert_eq!(world.try_plan().unwrap_err().into_vec()[0].code, Code::E901Internal);
}

#[test]
fn another_replication_factor_is_warned_of() {
    let mut live = live_topic("a.v1", 1, &[]);
    live.replication_factor = Some(3);
    let plan = World::new().with_topic(topic("a.v1", 1, &[]), Some(live)).owned().plan();
    let warnings = plan.warnings.into_vec();
    assert_eq!(warnings[0].code, Code::W146TopicReplicationDiffers);
    assert_eq!(warnings[0].message, "topic 'a.v1' has replication factor 3, declared is 1; a plan never changes it");
    assert!(plan.changes[0].verb.is_none() && !plan.changes[0].is_drift());
}

/// SAF-002, SAF-004, SAF-036, LIM-002
#[test]
fn a_record_without_a_declaration_is_a_removal_candidate_and_nothing_else() {
    let mut world = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
    world.artifacts.topics.clear();
    let plan = world.plan();
    assert!(plan.changes.is_empty() && plan.actions.is_empty() && !plan.has_changes() && !plan.is_apply_blocked());
    assert_eq!(plan.removal_candidates.len(), 1);
    assert_eq!(plan.removal_candidates[0].resource_id.as_str(), "streamt://payments/prod/topic/a");
    // SAF-039
    world.selection = Some(Selection::default());
    assert!(world.plan().removal_candidates.is_empty());
}

#[test]
fn an_offline_plan_assumes_nothing_and_authorises_nothing() {
    let mut adopted = topic("b.v1", 1, &[]);
    adopted.ownership.mode = OwnershipMode::Adopted;
    let world = World::new().with_topic(topic("a.v1", 1, &[]), None);
    let plan = world.plan_offline();
    assert_eq!(verbs(&plan), [("topic:a.v1".to_owned(), Some(Verb::Create))]);
    assert!(plan.actions.is_empty() && !plan.is_apply_blocked());
    assert_eq!(
        only_risk(&plan),
        json!(["unknown", ["live_state_unverified"], "unavailable", [], ["resource_absence_not_verified"]])
    );
    assert_eq!(plan.impact[0].consumer_evidence.reason.as_deref(), Some("offline"));
    let plan = world.with_topic(adopted, None).plan_offline();
    assert_eq!(
        plan.requirements[0].message,
        "topic 'b.v1' is declared adopted; offline, its adoption cannot be verified"
    );
}

#[test]
fn a_verified_create_is_safe() {
    let plan = World::new().with_topic(topic("a.v1", 1, &[]), None).plan();
    assert_eq!(
        only_risk(&plan),
        json!(["safe", [], "verified", ["live_resource_state"], ["resource_absence_verified"]])
    );
    assert!(plan.risk_summary.evidence_complete);
    assert_eq!(plan.impact[0].change_type, ChangeType::TopicCreate);
    assert_eq!(plan.impact[0].consumer_evidence.status, EvidenceStatus::Verified);
}

/// A topic `a.v1` of the model `a`, to be updated; `b` and the dashboard `d` are downstream.
fn updated() -> World {
    let mut world = World::new().with_topic(topic("a.v1", 4, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
    world.dag = dag(
        &[("s", "source"), ("a", "model"), ("b", "model"), ("d", "exposure")],
        &[("s", "a"), ("a", "b"), ("b", "d")],
    );
    world.declared.owners =
        [("a", "team-a"), ("b", "team-b"), ("s", "team-s")].map(|(n, o)| (n.to_owned(), o.to_owned())).into();
    let exposure = super::desired::DeclaredExposure {
        owners: vec!["team-d".to_owned()],
        consumer_group: Some("dashboard".to_owned()),
    };
    world.declared.exposures = [("d".to_owned(), exposure)].into();
    world
}

#[test]
fn impact_names_models_exposures_owners_and_undeclared_groups() {
    let mut world = updated();
    assert_eq!(world.plan().watched_topics(), ["a.v1"]);
    world.observations.consumers =
        Some(consumers(EvidenceStatus::Verified, &[("a.v1", "stranger", 5), ("a.v1", "dashboard", 0)]));
    let plan = world.plan();
    assert_eq!(
        serde_json::to_value(&plan.impact).unwrap(),
        json!([{"resource": "a.v1", "logical_type": "model", "logical_name": "a", "logical_resource": "model/a",
            "change_type": "topic_update", "downstream_models": ["b"],
            "exposures": [{"name": "d", "owners": ["team-d"], "consumer_group": "dashboard"}],
            "owners": ["team-a", "team-b", "team-d"],
            "consumers": [
                {"group_id": "dashboard", "lag": 0, "declared": true, "declared_exposures": ["d"]},
                {"group_id": "stranger", "lag": 5, "declared": false, "declared_exposures": []}],
            "identity_evidence": {"status": "verified", "source": "manifest_artifact_ownership", "reason": null},
            "graph_evidence": {"status": "verified", "source": "declared_project_dag", "reason": null},
            "consumer_evidence": {"status": "verified", "source": "kafka_consumer_groups", "reason": null,
                "failures": []}}])
    );
    assert_eq!(
        only_risk(&plan),
        json!([
            "risky",
            ["consumer_impact"],
            "verified",
            ["canonical_topic_impact", "kafka_topic_diff"],
            ["topic_configuration_or_partition_change"]
        ])
    );
}

#[test]
fn unknown_consumers_are_never_presented_as_no_consumers() {
    let mut world = updated();
    let mut partial = consumers(EvidenceStatus::Partial, &[]);
    let failure = |scope: &str| EvidenceFailure {
        scope: scope.to_owned(),
        code: "consumer_group_lag_failed".to_owned(),
        message: "no answer".to_owned(),
    };
    partial.failures = vec![failure("consumer_group/z"), failure("consumer_group/b")];
    world.observations.consumers = Some(partial);
    let plan = world.plan();
    assert_eq!(
        only_risk(&plan),
        json!([
            "risky",
            ["consumer_impact", "live_state_unverified"],
            "partial",
            ["canonical_topic_impact", "kafka_topic_diff"],
            ["live_consumer_evidence_incomplete", "topic_configuration_or_partition_change"]
        ])
    );
    assert_eq!(plan.impact[0].consumer_evidence.failures[0].scope, "consumer_group/b");
    assert!(!plan.risk_summary.evidence_complete);
    world.observations.consumers = None;
    assert_eq!(world.plan().impact[0].consumer_evidence.status, EvidenceStatus::Unavailable);
}

#[test]
fn an_owner_outside_the_graph_leaves_the_impact_unverified() {
    let mut world = updated();
    world.dag.nodes.clear();
    world.observations.consumers = Some(consumers(EvidenceStatus::Verified, &[]));
    let plan = world.plan();
    assert_eq!(plan.impact[0].graph_evidence.reason.as_deref(), Some("logical_identity_not_in_dag"));
    assert_eq!(
        only_risk(&plan),
        json!([
            "risky",
            ["impact_unverified"],
            "partial",
            ["canonical_topic_impact", "kafka_topic_diff"],
            ["declared_impact_evidence_incomplete", "topic_configuration_or_partition_change"]
        ])
    );
}

#[test]
fn kinds_without_a_deployer_are_refused_by_one_error_that_names_them() {
    let mut world = World::new().with_topic(topic("a.v1", 1, &[]), None);
    world.artifacts.gateway_rules.push(GatewayRuleArtifact {
        name: "g".to_owned(),
        virtual_topic: "g".to_owned(),
        physical_topic: "a.v1".to_owned(),
        interceptors: Vec::new(),
        ownership: owner("g"),
    });
    let refused = refuse_undeployable(&world.desired(), None).into_vec();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].code, Code::E221KindNotDeployable);
    assert_eq!(refused[0].message, "this version cannot deploy gateway_rule 'g'");
    assert_eq!(world.try_plan().unwrap_err().into_vec(), refused);
    // What lies outside a selection is not deployed, so it is not refused.
    world.selection = Some(Selection { models: ["a".to_owned()].into(), sources: Default::default() });
    assert_eq!(world.plan().creates(), 1);
    let mut external = job("j");
    external.ownership.mode = OwnershipMode::External;
    let external = World::new().with_job(external, None);
    assert_eq!(external.plan().requirements[0].reason, RequirementReason::External);
}

/// SAF-033, SAF-034: an absent job is submitted, and one that runs what is recorded is left alone.
#[test]
fn a_job_is_submitted_when_it_is_absent_and_left_alone_while_it_runs() {
    let world = World::new().with_job(job("j"), None);
    let plan = world.plan();
    let action = |plan: &Plan| plan.actions.iter().map(|action| action.action).collect::<Vec<_>>();
    assert_eq!(action(&plan), [Verb::Submit]);
    assert_eq!(plan.changes[0].record.as_ref().unwrap().backend, "flink");
    assert_eq!(plan.risks[0].assessment, Assessment::Safe);
    assert_eq!(world.plan_offline().risks[0].assessment, Assessment::Unknown);
    for state in [JobState::Running, JobState::Created, JobState::Initializing] {
        let world = World::new().with_job(job("j"), Some(state)).owned();
        assert!(!world.plan().has_changes(), "{state}");
    }
    // Gone without a declaration to change it: submitted again, as drift.
    let gone = World::new().with_job(job("j"), None).owned().plan();
    assert_eq!((action(&gone), gone.changes[0].cause()), (vec![Verb::Submit], Some(Cause::Drift)));
}

/// SAF-043, SAF-065, SAF-070, LIM-006
#[test]
fn a_running_job_whose_declaration_changed_is_blocked_and_leaves_no_action() {
    let mut world = World::new().with_job(job("j"), Some(JobState::Running)).owned();
    world.artifacts.flink_jobs[0].sql = "INSERT INTO x SELECT 2".to_owned();
    let plan = world.plan();
    assert_eq!(plan.changes[0].verb, Some(Verb::Update));
    let [blocker] = plan.blockers.as_slice() else { panic!("{:?}", plan.blockers) };
    assert_eq!((blocker.code.as_str(), blocker.action), ("flink_update_requires_savepoint", Verb::Update));
    assert!(plan.actions.is_empty() && plan.is_apply_blocked());
    let risk = &plan.risks[0];
    assert_eq!(
        (risk.assessment, risk.evidence.status),
        (Assessment::StateMigrationRequired, EvidenceStatus::Unavailable)
    );
    let flags: Vec<&str> = risk.risk_flags.iter().map(|flag| flag.as_str()).collect();
    assert_eq!(flags, ["live_state_unverified", "savepoint_required", "stateful_upgrade"]);
}

/// SAF-044
#[test]
fn a_job_that_does_not_run_is_never_submitted_again_without_evidence() {
    for state in JobState::ALL.into_iter().filter(|state| !state.runs()) {
        for changed in [false, true] {
            let mut world = World::new().with_job(job("j"), Some(state)).owned();
            if changed {
                world.artifacts.flink_jobs[0].sql = "INSERT INTO x SELECT 2".to_owned();
            }
            let plan = world.plan();
            let [blocker] = plan.blockers.as_slice() else { panic!("{state}: {:?}", plan.blockers) };
            assert_eq!(blocker.code.as_str(), "flink_resubmit_requires_state_evidence");
            assert_eq!(blocker.details["current_status"], state.as_str());
            assert!(plan.actions.is_empty(), "{state}");
        }
    }
}

/// SAF-014, LIM-017: what runs under the name of a declared job without a record is somebody else's.
#[test]
fn a_live_job_without_a_record_is_not_taken_over() {
    for state in JobState::ALL {
        let plan = World::new().with_job(job("j"), Some(state)).plan();
        assert_eq!(plan.requirements[0].reason, RequirementReason::RequiresAdoption, "{state}");
        assert!(plan.blockers.is_empty() && plan.actions.is_empty(), "a neutralised change raises no blocker");
    }
}

/// SAF-045: topics before jobs, jobs of models before those of tests.
#[test]
fn jobs_come_after_topics_and_those_of_tests_last() {
    let mut world =
        World::new().with_topic(topic("z.v1", 1, &[]), None).with_job(job("m"), None).with_job(job("a"), None);
    let test = world.artifacts.flink_jobs.remove(1);
    world.artifacts.test_jobs.push(test);
    let names: Vec<String> = world.plan().changes.into_iter().map(|change| change.name).collect();
    assert_eq!(names, ["z.v1", "m", "a"]);
}

/// SAF-016
#[test]
fn identity_follows_the_declaration_and_not_the_physical_name() {
    let mut world = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
    let before = world.plan().changes[0].resource_id.clone();
    world.artifacts.topics[0].name = "a.v2".to_owned();
    world.observations.topics.insert("a.v2".to_owned(), live_topic("a.v2", 1, &[]));
    let plan = world.plan();
    assert_eq!(plan.changes[0].resource_id, before);
    assert_eq!(plan.requirements[0].reason, RequirementReason::StateMismatch);
    assert_eq!(
        plan.requirements[0].message,
        "the state records 'a.v1' on direct-kafka, not topic 'a.v2' on direct-kafka"
    );
}

#[test]
fn two_resources_of_one_identity_are_refused() {
    let world = World::new().with_topic(topic("a.v1", 1, &[]), None).with_topic(topic("a.v2", 1, &[]), None);
    assert_eq!(world.try_plan().unwrap_err().into_vec()[0].code, Code::E411StateInvalid);
}
