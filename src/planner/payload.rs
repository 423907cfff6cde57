//! The plan as it stands in a reviewed plan file and in JSON output; its types are also its strict readers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::compiler::artifact::Kind;

use super::connector::ConnectorRemovalAssessment;
use super::impact::ImpactEntry;
use super::model::{OwnershipRequirement, Plan, SafetyBlocker, Verb};
use super::risk::{ChangeRisk, RiskSummary};

/// A verb, or the word `none`.
pub mod verb_or_none {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::Verb;

    pub fn serialize<S: Serializer>(verb: &Option<Verb>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Verb::text(*verb))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Verb>, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "none" => Ok(None),
            word => Verb::parse(word).map(Some).ok_or_else(|| de::Error::custom("not an action word")),
        }
    }
}

/// The figures of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    pub creates: usize,
    pub updates: usize,
    pub deletes: usize,
    pub has_changes: bool,
    pub ownership_requirements: usize,
    pub safety_blockers: usize,
    pub connector_removal_assessments: usize,
    pub gateway_removal_assessments: usize,
    pub is_apply_blocked: bool,
    pub risk: RiskSummary,
}

/// One desired resource.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedResource {
    pub kind: Kind,
    pub name: String,
    #[serde(with = "verb_or_none")]
    pub action: Option<Verb>,
    pub changes: Map<String, Value>,
}

/// A plan as it is printed, saved and compared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanPayload {
    pub summary: Summary,
    /// Sorted by kind, name, action.
    pub resources: Vec<PlannedResource>,
    pub impact: Vec<ImpactEntry>,
    pub change_risks: Vec<ChangeRisk>,
    pub risk_summary: RiskSummary,
    pub ownership_requirements: Vec<OwnershipRequirement>,
    pub safety_blockers: Vec<SafetyBlocker>,
    /// Tombstones that make no action.
    pub connector_removal_assessments: Vec<ConnectorRemovalAssessment>,
    /// Always empty until explicit Gateway rule removal can be planned.
    pub gateway_removal_assessments: Vec<Value>,
}

impl PlanPayload {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut resources: Vec<PlannedResource> = plan
            .changes
            .iter()
            .map(|change| PlannedResource {
                kind: change.kind,
                name: change.name.clone(),
                action: change.verb,
                changes: change.changes.clone(),
            })
            .collect();
        resources.sort_by(|a, b| (a.kind, &a.name, a.action).cmp(&(b.kind, &b.name, b.action)));
        Self {
            summary: plan.summary(),
            resources,
            impact: plan.impact.clone(),
            change_risks: plan.risks.clone(),
            risk_summary: plan.risk_summary.clone(),
            ownership_requirements: plan.requirements.clone(),
            safety_blockers: plan.blockers.clone(),
            connector_removal_assessments: plan.connector_assessments.clone(),
            gateway_removal_assessments: Vec::new(),
        }
    }
}

impl Plan {
    pub fn summary(&self) -> Summary {
        Summary {
            creates: self.creates(),
            updates: self.updates(),
            deletes: self.deletes(),
            has_changes: self.has_changes(),
            ownership_requirements: self.requirements.len(),
            safety_blockers: self.blockers.len(),
            connector_removal_assessments: self.connector_assessments.len(),
            gateway_removal_assessments: 0,
            is_apply_blocked: self.is_apply_blocked(),
            risk: self.risk_summary.clone(),
        }
    }
}
