//! How dangerous each change is, and the evidence for that judgement.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::compiler::artifact::Kind;

use super::connector::ConnectorDiff;
use super::impact::ImpactEntry;
use super::model::{Change, Diff, Verb};
use super::observation::{CompatibilityVerdict, EvidenceStatus};
use super::schema::SchemaDiff;
use super::topic::TopicDiff;

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
    ConnectorDiff,
    FlinkJobDiff,
    FlinkJobState,
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
    BackendConfigurationChange,
    CanonicalTopicImpactMissing,
    CompatibilityPolicyChange,
    DeclaredImpactEvidenceIncomplete,
    DownstreamContractImpactUnverified,
    ExistingJobResubmissionStateCompatibilityUnproven,
    LiveConsumerEvidenceIncomplete,
    OperatorStateCompatibilityUnproven,
    PartitionReductionRequested,
    RegistryCompatibilityRejected,
    RegistryCompatibilityVerified,
    ResourceAbsenceNotVerified,
    ResourceAbsenceVerified,
    ResourceRemoval,
    SavepointAvailabilityUnproven,
    SchemaCompatibilityNotProven,
    SchemaUpdateDiffMissing,
    TopicConfigurationOrPartitionChange,
    TopicUpdateDiffMissing,
    UnsupportedPlannedAction,
}

/// What an assessment rests on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RiskEvidence {
    pub status: EvidenceStatus,
    pub sources: BTreeSet<RiskSource>,
    pub reasons: BTreeSet<RiskReason>,
}

/// The assessment of one change.
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

/// Changes of a plan by assessment.
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

/// The assessment of a whole plan: that of its worst change.
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

/// What one row of the classification says.
struct Row {
    assessment: Assessment,
    flags: BTreeSet<RiskFlag>,
    status: EvidenceStatus,
    sources: BTreeSet<RiskSource>,
    reasons: BTreeSet<RiskReason>,
}

impl Row {
    fn new(
        assessment: Assessment,
        flags: &[RiskFlag],
        status: EvidenceStatus,
        sources: &[RiskSource],
        reasons: &[RiskReason],
    ) -> Self {
        Self {
            assessment,
            flags: flags.iter().copied().collect(),
            status,
            sources: sources.iter().copied().collect(),
            reasons: reasons.iter().copied().collect(),
        }
    }
}

/// One risk a change that does something, sorted by kind, resource, action. `impact` is sorted by resource.
pub(super) fn risks(changes: &[Change], impact: &[ImpactEntry], offline: bool) -> Vec<ChangeRisk> {
    let classified = changes.iter().filter_map(|change| {
        let verb = change.verb?;
        let entry = impact.binary_search_by(|entry| entry.resource.as_str().cmp(&change.name)).ok();
        let row = classify(change, verb, entry.map(|at| &impact[at]), offline);
        Some(ChangeRisk {
            kind: change.kind,
            resource: change.name.clone(),
            action: verb,
            assessment: row.assessment,
            risk_flags: row.flags,
            evidence: RiskEvidence { status: row.status, sources: row.sources, reasons: row.reasons },
        })
    });
    let mut risks: Vec<ChangeRisk> = classified.collect();
    risks.sort_by(|a, b| (a.kind, &a.resource, a.action.as_str()).cmp(&(b.kind, &b.resource, b.action.as_str())));
    risks
}

fn classify(change: &Change, verb: Verb, impact: Option<&ImpactEntry>, offline: bool) -> Row {
    match (verb, &change.diff) {
        (Verb::Delete | Verb::Cancel, _) => Row::new(
            Assessment::Destructive,
            &[RiskFlag::Destructive],
            EvidenceStatus::Verified,
            &[RiskSource::PlannedAction],
            &[RiskReason::ResourceRemoval],
        ),
        (Verb::Create | Verb::Register | Verb::Submit, Diff::Job(diff)) if diff.exists() => {
            job_with_state(RiskSource::FlinkJobState, &[RiskReason::ExistingJobResubmissionStateCompatibilityUnproven])
        }
        (Verb::Create | Verb::Register | Verb::Submit, diff) => match absence_was_observed(diff) && !offline {
            true => Row::new(
                Assessment::Safe,
                &[],
                EvidenceStatus::Verified,
                &[RiskSource::LiveResourceState],
                &[RiskReason::ResourceAbsenceVerified],
            ),
            false => Row::new(
                Assessment::Unknown,
                &[RiskFlag::LiveStateUnverified],
                EvidenceStatus::Unavailable,
                &[],
                &[RiskReason::ResourceAbsenceNotVerified],
            ),
        },
        (Verb::Update, Diff::Topic(diff)) => topic_update(diff, impact),
        (Verb::Update, Diff::Schema(diff)) => schema_update(diff),
        (Verb::Update, Diff::Connector(diff)) => connector_update(diff),
        (Verb::Update, Diff::Job(_)) => job_with_state(
            RiskSource::FlinkJobDiff,
            &[RiskReason::OperatorStateCompatibilityUnproven, RiskReason::SavepointAvailabilityUnproven],
        ),
        (Verb::Update, Diff::None) => update_without_diff(change.kind),
        (Verb::Update, Diff::ConnectorRemoval(_)) => unsupported(),
        (Verb::Adopt, _) => unsupported(),
    }
}

fn absence_was_observed(diff: &Diff) -> bool {
    match diff {
        Diff::None | Diff::ConnectorRemoval(_) => false,
        Diff::Topic(diff) => !diff.exists,
        Diff::Schema(diff) => !diff.exists,
        Diff::Connector(diff) => !diff.exists,
        Diff::Job(diff) => !diff.exists(),
    }
}

/// A job that has run: its state is at stake, and nobody has looked at it.
fn job_with_state(source: RiskSource, reasons: &[RiskReason]) -> Row {
    Row::new(
        Assessment::StateMigrationRequired,
        &[RiskFlag::LiveStateUnverified, RiskFlag::SavepointRequired, RiskFlag::StatefulUpgrade],
        EvidenceStatus::Unavailable,
        &[source],
        reasons,
    )
}

fn topic_update(diff: &TopicDiff, impact: Option<&ImpactEntry>) -> Row {
    if diff.reduction.is_some() {
        return Row::new(
            Assessment::Destructive,
            &[RiskFlag::Destructive, RiskFlag::PolicyViolation],
            EvidenceStatus::Verified,
            &[RiskSource::KafkaTopicDiff],
            &[RiskReason::PartitionReductionRequested],
        );
    }
    let mut row = Row::new(
        Assessment::Risky,
        &[],
        EvidenceStatus::Verified,
        &[RiskSource::KafkaTopicDiff],
        &[RiskReason::TopicConfigurationOrPartitionChange],
    );
    let Some(entry) = impact else {
        row.status = EvidenceStatus::Partial;
        row.flags.extend([RiskFlag::ImpactUnverified, RiskFlag::LiveStateUnverified]);
        row.reasons.insert(RiskReason::CanonicalTopicImpactMissing);
        return row;
    };
    row.sources.insert(RiskSource::CanonicalTopicImpact);
    if entry.has_downstream() {
        row.flags.insert(RiskFlag::ConsumerImpact);
    }
    let declared = [&entry.identity_evidence, &entry.graph_evidence];
    if declared.iter().any(|evidence| evidence.status != EvidenceStatus::Verified) {
        row.status = EvidenceStatus::Partial;
        row.flags.insert(RiskFlag::ImpactUnverified);
        row.reasons.insert(RiskReason::DeclaredImpactEvidenceIncomplete);
    }
    if entry.consumer_evidence.status != EvidenceStatus::Verified {
        row.status = EvidenceStatus::Partial;
        row.flags.insert(RiskFlag::LiveStateUnverified);
        row.reasons.insert(RiskReason::LiveConsumerEvidenceIncomplete);
    }
    row
}

fn schema_update(diff: &SchemaDiff) -> Row {
    match diff.content.as_ref().map(|content| content.verdict) {
        Some(CompatibilityVerdict::Incompatible) => Row::new(
            Assessment::SchemaBreaking,
            &[RiskFlag::PolicyViolation, RiskFlag::SchemaBreaking],
            EvidenceStatus::Verified,
            &[RiskSource::SchemaRegistryCompatibility],
            &[RiskReason::RegistryCompatibilityRejected],
        ),
        Some(CompatibilityVerdict::Compatible) => Row::new(
            Assessment::Risky,
            &[RiskFlag::SchemaImpactUnverified],
            EvidenceStatus::Partial,
            &[RiskSource::SchemaRegistryCompatibility],
            &[RiskReason::DownstreamContractImpactUnverified, RiskReason::RegistryCompatibilityVerified],
        ),
        Some(CompatibilityVerdict::Unproven) => Row::new(
            Assessment::Unknown,
            &[RiskFlag::SchemaImpactUnverified],
            EvidenceStatus::Unavailable,
            &[],
            &[RiskReason::SchemaCompatibilityNotProven],
        ),
        None => Row::new(
            Assessment::Risky,
            &[],
            EvidenceStatus::Verified,
            &[RiskSource::SchemaRegistryDiff],
            &[RiskReason::CompatibilityPolicyChange],
        ),
    }
}

fn connector_update(diff: &ConnectorDiff) -> Row {
    let flags: &[RiskFlag] = if diff.removes_a_key() { &[RiskFlag::Destructive] } else { &[] };
    Row::new(
        Assessment::Risky,
        flags,
        EvidenceStatus::Verified,
        &[RiskSource::ConnectorDiff],
        &[RiskReason::BackendConfigurationChange],
    )
}

fn update_without_diff(kind: Kind) -> Row {
    let (flag, reason) = match kind {
        Kind::Topic => (RiskFlag::LiveStateUnverified, RiskReason::TopicUpdateDiffMissing),
        Kind::Schema => (RiskFlag::SchemaImpactUnverified, RiskReason::SchemaUpdateDiffMissing),
        Kind::FlinkJob | Kind::KafkaStreamsJob | Kind::Connector | Kind::GatewayRule => return unsupported(),
    };
    Row::new(Assessment::Unknown, &[flag], EvidenceStatus::Unavailable, &[], &[reason])
}

fn unsupported() -> Row {
    Row::new(
        Assessment::Unknown,
        &[RiskFlag::PolicyViolation],
        EvidenceStatus::Unavailable,
        &[],
        &[RiskReason::UnsupportedPlannedAction],
    )
}
