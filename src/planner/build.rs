//! The decision itself: each desired resource compared, then judged, in one pass.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Map;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::DesiredResource;
use crate::compiler::artifact::{ConnectorArtifact, FlinkJobArtifact, Kind, Ownership, SchemaArtifact, TopicArtifact};
use crate::ownership::model::{OwnershipRecord, OwnershipState, ResourceId};
use crate::project::model::OwnershipMode;

use super::cause::{self, Cause, Live};
use super::connector::{
    BackendIdentity, ConnectorClaims, ConnectorDiff, ConnectorRemovalAssessment, Outcome, ResolvedConnectorRemoval,
    default_binding, judge, resolve_removals,
};
use super::flink::JobDiff;
use super::model::{Change, Diff, OwnershipRequirement, Plan, RemovalCandidate, Verb};
use super::observation::{Observations, SchemaObservation, TopicObservation};
use super::ownership::{Claim, backend, decide, explain};
use super::risk::{RiskSummary, risks};
use super::schema::{SchemaDiff, in_dependency_order, pending_versions, unresolved_references};
use super::topic::TopicDiff;
use super::{Evidence, PlanInput, actions, blockers, impact, refuse_undeployable};

pub(super) fn plan(input: PlanInput<'_>) -> Result<Plan, Diagnostics> {
    let desired = input.desired;
    let refused = refuse_undeployable(desired, input.selection);
    if refused.has_errors() {
        return Err(refused);
    }
    let removals = match input.evidence {
        Evidence::Offline => Vec::new(),
        Evidence::Online { state, .. } => resolve_removals(desired, state)?,
    };
    let mut builder = Builder::new(input);
    let deploys =
        |resource: &&DesiredResource| resource.kind == Kind::Connector && resource.mode != OwnershipMode::External;
    if desired.resources.iter().any(|resource| deploys(&resource)) {
        builder.connect = Some(default_binding(desired.connect)?.identity());
    }
    let owners = desired.owners();
    for resource in &desired.resources {
        let owner = owners.get(&(resource.kind, resource.physical_name.as_str())).copied();
        let kept = match (input.selection, owner) {
            (None, _) => true,
            (Some(selection), Some(owner)) => selection.keeps(owner),
            (Some(_), None) => false,
        };
        if kept {
            builder.add(resource, owner);
        }
    }
    for removal in &removals {
        builder.remove(removal);
    }
    builder.finish()
}

struct Builder<'a> {
    input: PlanInput<'a>,
    topics: BTreeMap<&'a str, &'a TopicArtifact>,
    schemas: BTreeMap<&'a str, &'a SchemaArtifact>,
    connectors: BTreeMap<&'a str, &'a ConnectorArtifact>,
    /// Those of models and those of tests.
    jobs: BTreeMap<&'a str, &'a FlinkJobArtifact>,
    test_jobs: BTreeSet<&'a str>,
    /// The cluster that connectors run on; none when the project deploys none.
    connect: Option<BackendIdentity>,
    claims: ConnectorClaims<'a>,
    assessments: Vec<ConnectorRemovalAssessment>,
    changes: Vec<Change>,
    requirements: Vec<OwnershipRequirement>,
    warnings: Diagnostics,
    errors: Diagnostics,
}

impl<'a> Builder<'a> {
    fn new(input: PlanInput<'a>) -> Self {
        let artifacts = input.desired.artifacts;
        Self {
            input,
            topics: artifacts.topics.iter().map(|topic| (topic.name.as_str(), topic)).collect(),
            schemas: artifacts.schemas.iter().map(|schema| (schema.subject.as_str(), schema)).collect(),
            connectors: artifacts.connectors.iter().map(|connector| (connector.name.as_str(), connector)).collect(),
            jobs: artifacts.flink_jobs.iter().chain(&artifacts.test_jobs).map(|job| (job.name.as_str(), job)).collect(),
            test_jobs: artifacts.test_jobs.iter().map(|job| job.name.as_str()).collect(),
            connect: None,
            claims: match input.evidence {
                Evidence::Offline => ConnectorClaims::default(),
                Evidence::Online { state, .. } => ConnectorClaims::of(state),
            },
            assessments: Vec::new(),
            changes: Vec::with_capacity(input.desired.resources.len()),
            requirements: Vec::new(),
            warnings: Diagnostics::new(),
            errors: Diagnostics::new(),
        }
    }

    fn state(&self) -> Option<&'a OwnershipState> {
        match self.input.evidence {
            Evidence::Offline => None,
            Evidence::Online { state, .. } => Some(state),
        }
    }

    fn add(&mut self, resource: &DesiredResource, owner: Option<&Ownership>) {
        let desired = self.input.desired;
        let label = format!("{} '{}'", resource.kind, resource.physical_name);
        let id = ResourceId::new(desired.project, desired.environment, resource.kind, &resource.logical_name);
        let Some(id) = id else {
            let message = format!("the identity of {label} is empty, contains '/' or is longer than 512 characters");
            let error = Diagnostic::new(Code::E411StateInvalid, message).at_opt(resource.location());
            return self.errors.push(error.suggest("give the declaration a shorter, plain name"));
        };
        let record = self.state().and_then(|state| state.resources.get(&id));
        let diff = match self.compare(resource, record) {
            Ok(diff) => diff,
            Err(error) => return self.errors.push(error),
        };
        let (exists, observed_verb, changes) = match &diff {
            Diff::None => (false, None, Map::new()),
            Diff::Topic(diff) => (diff.exists, diff.verb(), diff.changes()),
            Diff::Schema(diff) => (diff.exists, diff.verb(), diff.changes()),
            Diff::Connector(diff) => (diff.exists, diff.verb(), diff.changes()),
            Diff::Job(diff) => (diff.exists(), diff.verb(), diff.changes()),
            // Not what a desired resource is compared to.
            Diff::ConnectorRemoval(_) => (true, None, Map::new()),
        };
        let backend = backend(resource.kind, self.connect.as_ref());
        let other = match resource.kind {
            Kind::Connector => self.claims.other(&backend, &resource.physical_name, &id),
            Kind::Schema | Kind::Topic | Kind::FlinkJob | Kind::KafkaStreamsJob | Kind::GatewayRule => None,
        };
        let claim = Claim {
            mode: resource.mode,
            owner_is_ours: owner.is_some_and(|owner| owner.project == desired.project && owner.mode == resource.mode),
            physical_name: &resource.physical_name,
            backend: &backend,
            exists,
            record,
            other,
        };
        let requirement = decide(claim);
        if let Some(reason) = requirement {
            self.requirements.push(OwnershipRequirement {
                resource_id: id.clone(),
                kind: resource.kind,
                logical_name: resource.logical_name.clone(),
                physical_name: resource.physical_name.clone(),
                reason,
                observed_action: observed_verb,
                ownership_mode: resource.mode,
                message: explain(reason, &label, claim, self.state(), &id),
            });
        } else if let Diff::Topic(TopicDiff { replication_factor: Some(change), .. }) = &diff {
            let message = format!(
                "{label} has replication factor {}, declared is {}; a plan never changes it",
                change.from, change.to
            );
            let warning = Diagnostic::new(Code::W146TopicReplicationDiffers, message);
            self.warnings.push(
                warning
                    .at_opt(resource.location())
                    .suggest("reassign the replicas with the broker's tools, or declare the live factor"),
            );
        }
        let live = self.live(resource);
        let difference = observed_verb.map(|_| cause::of(record, &resource.artifact_checksum, owner, exists, live));
        self.changes.push(Change {
            kind: resource.kind,
            name: resource.physical_name.clone(),
            difference,
            resource_id: id,
            mode: resource.mode,
            verb: observed_verb.filter(|_| requirement.is_none()),
            changes,
            diff,
            observed_verb,
            requirement,
            record: requirement.is_none().then(|| OwnershipRecord {
                physical_name: resource.physical_name.clone(),
                ownership: resource.mode,
                artifact_checksum: resource.artifact_checksum.clone(),
                backend: backend.clone(),
            }),
        });
    }

    /// A tombstone becomes a deletion, or an assessment that says why not.
    fn remove(&mut self, removal: &ResolvedConnectorRemoval) {
        let Evidence::Online { observations, .. } = self.input.evidence else { return };
        let name = removal.connector_name().as_str();
        let outcome = match observations.connectors.get(name) {
            Some(live) => judge(removal, live, self.input.desired.project),
            None => Err(Diagnostic::new(Code::E901Internal, format!("connector '{name}' was not observed"))),
        };
        match outcome {
            Err(error) => self.errors.push(error),
            Ok(Outcome::Assessed(assessment)) => self.assessments.push(assessment),
            Ok(Outcome::Delete(evidence)) => self.changes.push(Change {
                kind: Kind::Connector,
                name: name.to_owned(),
                resource_id: removal.resource_id().clone(),
                mode: OwnershipMode::Managed,
                verb: Some(Verb::Delete),
                changes: Map::new(),
                diff: Diff::ConnectorRemoval(Box::new(evidence)),
                observed_verb: Some(Verb::Delete),
                requirement: None,
                difference: Some(Cause::Intended),
                record: None,
            }),
        }
    }

    fn live(&self, resource: &DesiredResource) -> Option<Live<'a>> {
        let Evidence::Online { observations, .. } = self.input.evidence else { return None };
        match resource.kind {
            Kind::Connector => observations.connectors.get(&resource.physical_name).map(Live::Connector),
            Kind::FlinkJob => observations.jobs.get(&resource.physical_name).map(Live::Job),
            Kind::Topic | Kind::Schema | Kind::KafkaStreamsJob | Kind::GatewayRule => None,
        }
    }

    /// External resources are not compared: nothing may follow from it.
    fn compare(&self, resource: &DesiredResource, record: Option<&OwnershipRecord>) -> Result<Diff, Diagnostic> {
        let name = resource.physical_name.as_str();
        let missing = || {
            let message = format!("{} '{name}' was not observed or is no artifact", resource.kind);
            Diagnostic::new(Code::E901Internal, message)
        };
        match (resource.mode, resource.kind) {
            (OwnershipMode::External, _) => Ok(Diff::None),
            (OwnershipMode::Managed | OwnershipMode::Adopted, Kind::Topic) => {
                let desired = self.topics.get(name).ok_or_else(missing)?;
                let diff = match self.input.evidence {
                    Evidence::Offline => TopicDiff::of(desired, &TopicObservation::absent(name)),
                    Evidence::Online { observations, .. } => {
                        TopicDiff::of(desired, observations.topics.get(name).ok_or_else(missing)?)
                    }
                };
                Ok(Diff::Topic(diff))
            }
            (OwnershipMode::Managed | OwnershipMode::Adopted, Kind::Schema) => {
                let desired = self.schemas.get(name).ok_or_else(missing)?;
                let diff = match self.input.evidence {
                    Evidence::Offline => {
                        SchemaDiff::of(desired, &SchemaObservation::absent(name), &Observations::default())
                    }
                    Evidence::Online { observations, .. } => {
                        let live = observations.subjects.get(name).ok_or_else(missing)?;
                        SchemaDiff::of(desired, live, observations)
                    }
                };
                Ok(Diff::Schema(diff))
            }
            (OwnershipMode::Managed | OwnershipMode::Adopted, Kind::Connector) => {
                let desired = self.connectors.get(name).ok_or_else(missing)?;
                Ok(Diff::Connector(match self.input.evidence {
                    Evidence::Offline => ConnectorDiff::of_absent(desired),
                    Evidence::Online { observations, .. } => {
                        ConnectorDiff::of(desired, observations.connectors.get(name).ok_or_else(missing)?)
                    }
                }))
            }
            (OwnershipMode::Managed | OwnershipMode::Adopted, Kind::FlinkJob) => {
                self.jobs.get(name).ok_or_else(missing)?;
                let declared = &resource.artifact_checksum;
                let recorded = record.map(|record| &record.artifact_checksum);
                Ok(Diff::Job(match self.input.evidence {
                    Evidence::Offline => JobDiff::of_absent(declared),
                    Evidence::Online { observations, .. } => {
                        JobDiff::of(declared, recorded, observations.jobs.get(name).ok_or_else(missing)?)
                    }
                }))
            }
            (OwnershipMode::Managed | OwnershipMode::Adopted, Kind::KafkaStreamsJob | Kind::GatewayRule) => {
                Err(missing())
            }
        }
    }

    fn finish(mut self) -> Result<Plan, Diagnostics> {
        self.check_references();
        self.check_identities();
        if self.errors.has_errors() {
            return Err(self.errors);
        }
        self.order();
        let desired = self.input.desired;
        let (offline, consumers, absent_inputs) = match self.input.evidence {
            Evidence::Offline => (true, None, &BTreeSet::new()),
            Evidence::Online { observations, .. } => {
                (false, observations.consumers.as_ref(), &observations.absent_inputs)
            }
        };
        let removal_candidates = self.removal_candidates();
        self.requirements.sort_by(|a, b| {
            (&a.resource_id, a.reason.as_str(), Verb::text(a.observed_action)).cmp(&(
                &b.resource_id,
                b.reason.as_str(),
                Verb::text(b.observed_action),
            ))
        });
        let impact = impact::impact(desired, &self.changes, consumers, offline);
        let risks = risks(&self.changes, &impact, offline);
        let mut plan = Plan {
            project: desired.project.to_owned(),
            environment: desired.environment.to_owned(),
            offline,
            actions: Vec::new(),
            blockers: blockers::blockers(&self.changes, &self.assessments, desired, absent_inputs),
            risk_summary: RiskSummary::of(&risks),
            changes: self.changes,
            requirements: self.requirements,
            risks,
            impact,
            connector_assessments: self.assessments,
            removal_candidates,
            warnings: self.warnings,
        };
        if !offline && !plan.is_apply_blocked() {
            plan.actions = actions::actions(&plan.changes);
        }
        Ok(plan)
    }

    /// What a schema to register references must exist or be created by this plan. A version that ownership alone keeps from
    /// being created counts: the plan is blocked by that already, and says so.
    fn check_references(&mut self) {
        let Evidence::Online { observations, .. } = self.input.evidence else { return };
        let planned: Vec<&SchemaArtifact> = self
            .changes
            .iter()
            .filter(|change| change.kind == Kind::Schema && change.observed_verb.is_some())
            .filter_map(|change| self.schemas.get(change.name.as_str()).copied())
            .collect();
        let pending = pending_versions(planned.iter().copied(), observations);
        let kept: BTreeSet<&str> =
            self.changes.iter().filter(|c| c.kind == Kind::Schema).map(|change| change.name.as_str()).collect();
        let left_out = |subject: &str| {
            let declared = self.schemas.get(subject).filter(|_| !kept.contains(subject))?;
            Some(declared.ownership.name.as_str())
        };
        for change in self.changes.iter().filter(|change| change.verb.is_some()) {
            let creates = match &change.diff {
                Diff::Schema(diff) => !diff.exists || diff.content.is_some(),
                Diff::None | Diff::Topic(_) | Diff::Connector(_) | Diff::Job(_) | Diff::ConnectorRemoval(_) => false,
            };
            if let Some(schema) = self.schemas.get(change.name.as_str()).copied().filter(|_| creates) {
                self.errors.extend(unresolved_references(schema, observations, &pending, left_out));
            }
        }
    }

    fn check_identities(&mut self) {
        let mut seen = BTreeSet::new();
        for change in &self.changes {
            if !seen.insert(&change.resource_id) {
                let message = format!("two resources share the identity {}", change.resource_id);
                self.errors.push(Diagnostic::new(Code::E411StateInvalid, message));
            }
        }
    }

    /// Kind order, then physical name, deletions last; schemas in dependency order, jobs of tests after those of models.
    fn order(&mut self) {
        let kept = self.changes.iter().filter(|change| change.kind == Kind::Schema);
        let schemas: Vec<&SchemaArtifact> =
            kept.filter_map(|change| self.schemas.get(change.name.as_str()).copied()).collect();
        let order = in_dependency_order(&schemas);
        let positions: BTreeMap<&str, usize> = order.into_iter().enumerate().map(|(at, name)| (name, at)).collect();
        self.changes.sort_by(|a, b| {
            let position = |change: &Change| match change.kind {
                Kind::Schema => positions.get(change.name.as_str()).copied().unwrap_or(usize::MAX),
                Kind::FlinkJob => usize::from(self.test_jobs.contains(change.name.as_str())),
                Kind::Topic | Kind::KafkaStreamsJob | Kind::Connector | Kind::GatewayRule => 0,
            };
            let deletes = |change: &Change| change.verb == Some(Verb::Delete);
            (a.kind, deletes(a), position(a), &a.name).cmp(&(b.kind, deletes(b), position(b), &b.name))
        });
    }

    /// Records without a declaration; a selected plan does not look for them.
    fn removal_candidates(&self) -> Vec<RemovalCandidate> {
        let (Some(state), None) = (self.state(), self.input.selection) else { return Vec::new() };
        let assessed = self.assessments.iter().map(|assessment| &assessment.resource_id);
        let declared: BTreeSet<&ResourceId> =
            self.changes.iter().map(|change| &change.resource_id).chain(assessed).collect();
        let orphans = state.resources.iter().filter(|(id, _)| !declared.contains(id));
        orphans
            .map(|(id, record)| RemovalCandidate {
                resource_id: id.clone(),
                kind: id.kind(),
                physical_name: record.physical_name.clone(),
                ownership: record.ownership,
            })
            .collect()
    }
}
