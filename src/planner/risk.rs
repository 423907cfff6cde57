//! How dangerous each change is, and the evidence for that judgement.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::compiler::artifact::Kind;

use super::model::Verb;
use super::observation::EvidenceStatus;

/// Ascending: the overall word of a plan is the highest of its changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assessment {
    Safe,
    Risky,
    SchemaBreaking,
    StateMigrationRequired,
    Destructive,
    Unknown,
}

impl Assessment {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Risky => "risky",
            Self::SchemaBreaking => "schema_breaking",
            Self::StateMigrationRequired => "state_migration_required",
            Self::Destructive => "destructive",
            Self::Unknown => "unknown",
        }
    }
}

/// In the order of their words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskFlag {
    ConsumerImpact,
    Destructive,
    ImpactUnverified,
    LiveStateUnverified,
    PolicyViolation,
    SavepointRequired,
    SchemaBreaking,
    SchemaImpactUnverified,
    StatefulUpgrade,
}

impl RiskFlag {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConsumerImpact => "consumer_impact",
            Self::Destructive => "destructive",
            Self::ImpactUnverified => "impact_unverified",
            Self::LiveStateUnverified => "live_state_unverified",
            Self::PolicyViolation => "policy_violation",
            Self::SavepointRequired => "savepoint_required",
            Self::SchemaBreaking => "schema_breaking",
            Self::SchemaImpactUnverified => "schema_impact_unverified",
            Self::StatefulUpgrade => "stateful_upgrade",
        }
    }
}

/// In the order of their words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskSource {
    CanonicalTopicImpact,
    KafkaTopicDiff,
    LiveResourceState,
    PlannedAction,
    SchemaRegistryCompatibility,
    SchemaRegistryDiff,
}

/// In the order of their words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskReason {
    CanonicalTopicImpactMissing,
    CompatibilityPolicyChange,
    DeclaredImpactEvidenceIncomplete,
    DownstreamContractImpactUnverified,
    LiveConsumerEvidenceIncomplete,
    PartitionReductionRequested,
    RegistryCompatibilityRejected,
    RegistryCompatibilityVerified,
    ResourceAbsenceNotVerified,
    ResourceAbsenceVerified,
    ResourceRemoval,
    SchemaCompatibilityNotProven,
    SchemaUpdateDiffMissing,
    TopicConfigurationOrPartitionChange,
    TopicUpdateDiffMissing,
    UnsupportedPlannedAction,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RiskEvidence {
    pub status: EvidenceStatus,
    pub sources: BTreeSet<RiskSource>,
    pub reasons: BTreeSet<RiskReason>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRisk {
    pub kind: Kind,
    /// Physical name.
    pub resource: String,
    pub action: Verb,
    pub assessment: Assessment,
    pub risk_flags: BTreeSet<RiskFlag>,
    pub evidence: RiskEvidence,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RiskCounts {
    pub safe: usize,
    pub risky: usize,
    pub schema_breaking: usize,
    pub state_migration_required: usize,
    pub destructive: usize,
    pub unknown: usize,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RiskSummary {
    pub overall: Assessment,
    pub counts: RiskCounts,
    pub risk_flags: BTreeSet<RiskFlag>,
    /// No unknown, and every status verified.
    pub evidence_complete: bool,
}

impl RiskSummary {
    pub fn of(risks: &[ChangeRisk]) -> Self {
        let mut counts = RiskCounts::default();
        for risk in risks {
            match risk.assessment {
                Assessment::Safe => counts.safe += 1,
                Assessment::Risky => counts.risky += 1,
                Assessment::SchemaBreaking => counts.schema_breaking += 1,
                Assessment::StateMigrationRequired => counts.state_migration_required += 1,
                Assessment::Destructive => counts.destructive += 1,
                Assessment::Unknown => counts.unknown += 1,
            }
        }
        Self {
            overall: risks.iter().map(|risk| risk.assessment).max().unwrap_or(Assessment::Safe),
            counts,
            risk_flags: risks.iter().flat_map(|risk| risk.risk_flags.iter().copied()).collect(),
            evidence_complete: risks
                .iter()
                .all(|risk| risk.assessment != Assessment::Unknown && risk.evidence.status == EvidenceStatus::Verified),
        }
    }
}
