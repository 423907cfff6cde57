use serde_json::json;

use crate::planner::payload::PlanPayload;

use super::*;

fn payload() -> PlanPayload {
    let risk = json!({
        "overall": "risky", "risk_flags": ["consumer_impact"], "evidence_complete": false,
        "counts": {"safe": 1, "risky": 1, "schema_breaking": 0, "state_migration_required": 0, "destructive": 0, "unknown": 0},
    });
    serde_json::from_value(json!({
        "summary": {
            "creates": 1, "updates": 1, "deletes": 0, "has_changes": true, "ownership_requirements": 2, "safety_blockers": 1,
            "connector_removal_assessments": 0, "gateway_removal_assessments": 0, "is_apply_blocked": true, "risk": risk,
        },
        "resources": [
            {"kind": "schema", "name": "orders-value", "action": "register", "changes": {}},
            {"kind": "topic", "name": "orders.clean.v1", "action": "update", "changes": {
                "partitions": {"from": 3, "to": 6},
                "config.retention.ms": {"from": "86400000", "to": null},
                "config.cleanup.policy": {"from": null, "to": "compact"},
            }},
            {"kind": "topic", "name": "orders.old", "action": "none", "changes": {}},
            {"kind": "topic", "name": "orders.raw.v1", "action": "none", "changes": {}},
            {"kind": "topic", "name": "quiet", "action": "none", "changes": {}},
        ],
        "impact": [{
            "resource": "orders.clean.v1", "logical_type": "model", "logical_name": "orders_clean",
            "logical_resource": "model/orders_clean", "change_type": "topic_update", "downstream_models": ["daily"],
            "exposures": [{"name": "board", "owners": ["bi"], "consumer_group": null}], "owners": ["bi", "shop|team"],
            "consumers": [{"group_id": "billing", "lag": 7, "declared": false, "declared_exposures": []}],
            "identity_evidence": {"status": "verified", "source": "manifest_artifact_ownership", "reason": null},
            "graph_evidence": {"status": "verified", "source": "declared_project_dag", "reason": null},
            "consumer_evidence": {"status": "verified", "source": "kafka_consumer_groups", "reason": null, "failures": []},
        }],
        "change_risks": [
            {"kind": "schema", "resource": "orders-value", "action": "register", "assessment": "safe", "risk_flags": [],
             "evidence": {"status": "verified", "sources": ["live_resource_state"], "reasons": ["resource_absence_verified"]}},
            {"kind": "topic", "resource": "orders.clean.v1", "action": "update", "assessment": "risky",
             "risk_flags": ["consumer_impact"],
             "evidence": {"status": "verified", "sources": ["kafka_topic_diff"],
                          "reasons": ["topic_configuration_or_partition_change"]}},
        ],
        "risk_summary": risk,
        "ownership_requirements": [
            {"resource_id": "streamt://shop/dev/topic/old", "kind": "topic", "logical_name": "old", "physical_name": "orders.old",
             "reason": "requires_adoption", "observed_action": "none", "ownership_mode": "managed",
             "message": "exists and is not recorded"},
            {"resource_id": "streamt://shop/dev/topic/raw", "kind": "topic", "logical_name": "raw", "physical_name": "orders.raw.v1",
             "reason": "external", "observed_action": "none", "ownership_mode": "external", "message": "external"},
        ],
        "safety_blockers": [
            {"code": "kafka_partition_reduction", "kind": "topic", "resource": "orders.clean.v1", "action": "update",
             "message": "6 partitions exist, 3 are declared", "details": {"field": "partitions", "current": 6, "desired": 3}},
        ],
        "connector_removal_assessments": [], "gateway_removal_assessments": [],
    }))
    .unwrap()
}

#[test]
fn a_plan_shows_changes_blockers_and_impact() {
    let payload = payload();
    let view = View {
        plan: &payload,
        offline: false,
        drifted: &[(crate::compiler::artifact::Kind::Topic, "orders.clean.v1".into())],
        no_longer_declared: &["streamt://shop/dev/topic/gone".into()],
        next: Some("streamt apply"),
    };
    insta::assert_snapshot!(render(view).render(false), @r"
    + schema  orders-value
    ~ topic   orders.clean.v1  [risky, blocked: kafka_partition_reduction, drift]
        partitions:            3 -> 6
        config.retention.ms:   86400000 -> (removed)
        config.cleanup.policy: (new) -> compact
    = topic   orders.old       [not ours]
    = topic   orders.raw.v1    [external]
    1 of these was changed outside this project [drift]; a blocker keeps it so.

    Risk Classification:
      topic orders.clean.v1: risky (consumer_impact)

    Ownership Requirements:
      streamt://shop/dev/topic/old [requires_adoption]: exists and is not recorded

    Safety Blockers:
      kafka_partition_reduction topic orders.clean.v1: 6 partitions exist, 3 are declared

    Impact Analysis:
      orders.clean.v1
        models:    daily
        exposures: board
        owners:    bi, shop|team
        consumers: billing (lag 7) [undeclared]

    No longer declared (nothing is deleted):
      streamt://shop/dev/topic/gone

    Plan: 1 to create, 1 to update, 0 to delete, risk: risky, 1 ownership requirement, 1 safety blocker (blocked)
    Next: streamt apply
    ");
}

#[test]
fn an_offline_plan_without_changes_says_so() {
    let mut payload = payload();
    payload.summary.has_changes = false;
    payload.resources.clear();
    payload.impact.clear();
    payload.change_risks.clear();
    payload.ownership_requirements.clear();
    payload.safety_blockers.clear();
    let text =
        render(View { plan: &payload, offline: true, drifted: &[], no_longer_declared: &[], next: None }).render(false);
    assert!(text.starts_with("Offline plan: assumes no existing resources"), "{text}");
    assert!(text.contains("No changes detected."), "{text}");
}

#[test]
fn consumers_that_were_not_observed_are_unknown_and_never_none() {
    let mut payload = payload();
    payload.impact[0].consumers.clear();
    let consumers = |payload: &PlanPayload| {
        let text = render(View { plan: payload, offline: false, drifted: &[], no_longer_declared: &[], next: None })
            .render(false);
        text.lines().find(|line| line.contains("consumers:")).unwrap().trim().to_owned()
    };
    assert!(consumers(&payload).ends_with("none seen"));
    payload.impact[0].consumer_evidence.status = crate::planner::observation::EvidenceStatus::Unavailable;
    payload.impact[0].consumer_evidence.reason = Some("kafka_not_configured".into());
    assert!(consumers(&payload).ends_with("unknown (kafka_not_configured)"));
}

#[test]
fn markdown_cells_cannot_become_markup() {
    let mut payload = payload();
    payload.safety_blockers[0].message = "<script>|\n`password=hunter2`".into();
    let facts = Facts { offline: false, project_directory: ".", environment: "dev", checksum: Some("sha256:00") };
    let text = markdown(&payload, facts);
    assert!(text.contains("| kafka_partition_reduction | orders.clean.v1 | &lt;script&gt;&#124; `*** |"), "{text}");
    assert!(text.contains("shop&#124;team") && text.contains("- Apply: **blocked**"), "{text}");
    assert!(!text.contains("hunter2"));
}
