//! How the targets of a blocked operation stand: exactly as before it, exactly as it intended, or provably neither. A total
//! function over observations; it asks nobody, repairs nothing and never takes the nearest form.

mod connectors;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::control::{AcceptedAs, Intent, OperationKind, Presence, ProgressEntry, Resolution, Target};
use super::model::{
    FLINK_BACKEND, KAFKA_BACKEND, OwnershipRecord, OwnershipState, ResourceId, SCHEMA_REGISTRY_BACKEND,
};
use crate::compiler::DesiredResource;
use crate::compiler::artifact::{ConnectorArtifact, FlinkJobArtifact, Kind, Ownership, SchemaArtifact, TopicArtifact};
use crate::compiler::canonical::Checksum;
use crate::planner::Desired;
use crate::planner::flink::JobObservation;
use crate::planner::model::{Action, Verb};
use crate::planner::observation::{Observations, SchemaObservation, TopicObservation};
use crate::planner::schema::creates_version;
use crate::planner::topic::TopicDiff;
use crate::project::model::OwnershipMode;

/// What was seen of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    Present,
    Absent,
    /// Not asked for, or not read completely.
    Unreadable,
}

/// Why a target is accepted in neither form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// What is live is neither the prior nor the intended form.
    ThirdState,
    /// Nothing that streamt keeps could prove its content.
    ContentNotProvable,
    /// It is both, and they are recorded differently.
    Ambiguous,
    /// Record and declaration name different resources or modes.
    WrongBinding,
    Unreadable,
}

impl Reason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ThirdState => "third_state",
            Self::ContentNotProvable => "content_not_provable",
            Self::Ambiguous => "ambiguous",
            Self::WrongBinding => "wrong_binding",
            Self::Unreadable => "unreadable",
        }
    }
}

/// One action of the blocked intent and how its resource stands. Exactly one of `accepted_as` and `reason` is set.
#[derive(Clone, PartialEq, Debug)]
pub struct Assessment {
    pub action: Action,
    pub presence: Seen,
    pub accepted_as: Option<AcceptedAs>,
    pub reason: Option<Reason>,
    /// Live against desired; sensitive values are `<redacted>`.
    pub differences: Map<String, Value>,
    /// Digest of the normal form; none when nothing complete was read.
    fingerprint: Option<Checksum>,
    left: Left,
}

/// What ownership holds of a target once it is accepted as a candidate.
#[derive(Clone, PartialEq, Debug)]
enum Left {
    Recorded(OwnershipRecord),
    Removed,
    /// It can be no candidate.
    Nothing,
}

impl Assessment {
    /// The entry of `targets[]` in results.
    pub fn data(&self) -> Value {
        json!({
            "resource_id": self.action.resource_id, "action": self.action.action, "presence": self.presence,
            "accepted_as": self.accepted_as, "reason": self.reason, "differences": self.differences,
        })
    }
}

/// The names to observe for an intent. Sorted, without repetition.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Questions {
    pub topics: Vec<String>,
    pub subjects: Vec<String>,
    pub connectors: Vec<String>,
    pub jobs: Vec<String>,
}

/// None when the intent holds a kind that this version cannot observe, or a connector deletion that has no evidence or that the
/// record or the project contradicts: then no provider is asked at all.
pub fn questions(intent: &Intent, prior: &OwnershipState, desired: &Desired<'_>) -> Option<Questions> {
    let claims = intent.kind == OperationKind::Adopt;
    if intent.actions.iter().any(|action| (action.action == Verb::Adopt) != claims) {
        return None;
    }
    let declared = Declarations::of(desired);
    let (mut topics, mut subjects, mut connectors, mut jobs) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for action in &intent.actions {
        let record = prior.resources.get(&action.resource_id).map(|record| record.physical_name.as_str());
        let name =
            declared.find(&action.resource_id).map(|declared| declared.resource.physical_name.as_str()).or(record);
        match action.resource_id.kind() {
            Kind::Topic => topics.extend(name.map(str::to_owned)),
            Kind::Schema => subjects.extend(name.map(str::to_owned)),
            Kind::Connector => match connectors::deletion(action) {
                Some(evidence) => {
                    connectors::proved_record(action, evidence, prior, desired)?;
                    connectors.insert(evidence.connector_name().as_str().to_owned());
                }
                None if action.action == Verb::Delete => return None,
                None => connectors.extend(name.map(str::to_owned)),
            },
            // On which cluster a job that is no longer declared ran, nothing says.
            Kind::FlinkJob => jobs.extend(declared.find(&action.resource_id).and(name).map(str::to_owned)),
            Kind::KafkaStreamsJob | Kind::GatewayRule => return None,
        }
    }
    Some(Questions {
        topics: topics.into_iter().collect(),
        subjects: subjects.into_iter().collect(),
        connectors: connectors.into_iter().collect(),
        jobs: jobs.into_iter().collect(),
    })
}

/// One assessment an action, in order. `progress`: what is durable of the operation.
pub fn classify(
    intent: &Intent,
    prior: &OwnershipState,
    desired: &Desired<'_>,
    observations: &Observations,
    progress: &[ProgressEntry],
) -> Vec<Assessment> {
    let declared = Declarations::of(desired);
    let assess = |action: &Action| {
        let judged = match connectors::deletion(action) {
            Some(evidence) => connectors::judge_deletion(
                evidence,
                connectors::proved_record(action, evidence, prior, desired),
                progress.iter().any(|entry| entry.action_index == action.index),
                desired.project,
                action.resource_id.logical_name(),
                observations.connectors.get(evidence.connector_name().as_str()),
            ),
            // Of a control version that knew no evidence: nothing is inferred from what is there (REC-065).
            None if (action.resource_id.kind(), action.action) == (Kind::Connector, Verb::Delete) => {
                Judged::refused(Seen::Unreadable, Reason::ContentNotProvable)
            }
            None => judge(
                action,
                prior.resources.get(&action.resource_id),
                declared.find(&action.resource_id),
                observations,
            ),
        };
        let Judged { presence, verdict, differences, fingerprint, left } = judged;
        let (accepted_as, reason) = match verdict {
            Ok(accepted) => (Some(accepted), None),
            Err(reason) => (None, Some(reason)),
        };
        Assessment { action: action.clone(), presence, accepted_as, reason, differences, fingerprint, left }
    };
    intent.actions.iter().map(assess).collect()
}

/// The evidence of a resolution: every target in an accepted form, and the ownership that `observed` leaves.
#[derive(Clone, PartialEq, Debug)]
pub struct Proof {
    pub targets: Vec<Target>,
    pub candidate: Option<OwnershipState>,
}

/// The assessments again when one of them does not carry the resolution. Records outside the targets stay byte for byte
/// (REC-030); the serial steps once, and only if a record changes (REC-010).
pub fn prove(
    resolution: Resolution,
    prior: &OwnershipState,
    assessments: Vec<Assessment>,
) -> Result<Proof, Vec<Assessment>> {
    let mut targets = Vec::with_capacity(assessments.len());
    let mut resources = prior.resources.clone();
    for assessment in &assessments {
        let presence = match assessment.presence {
            Seen::Present => Presence::Present,
            Seen::Absent => Presence::Absent,
            Seen::Unreadable => return Err(assessments),
        };
        let (Some(accepted_as), Some(fingerprint)) = (assessment.accepted_as, assessment.fingerprint.clone()) else {
            return Err(assessments);
        };
        match (resolution, accepted_as, &assessment.left) {
            (Resolution::Observed | Resolution::RolledBack, AcceptedAs::Prior, _) => {}
            (Resolution::Observed, AcceptedAs::Candidate, Left::Recorded(record)) => {
                resources.insert(assessment.action.resource_id.clone(), record.clone());
            }
            (Resolution::Observed, AcceptedAs::Candidate, Left::Removed) => {
                resources.remove(&assessment.action.resource_id);
            }
            (Resolution::Observed | Resolution::RolledBack, AcceptedAs::Candidate, _)
            | (Resolution::AbandonedBeforeMutation, _, _) => return Err(assessments),
        }
        targets.push(Target { action: assessment.action.clone(), presence, accepted_as, fingerprint });
    }
    let candidate = match resolution {
        Resolution::Observed if resources == prior.resources => Some(prior.clone()),
        Resolution::Observed => Some(OwnershipState { serial: prior.serial + 1, resources, ..prior.clone() }),
        Resolution::RolledBack | Resolution::AbandonedBeforeMutation => None,
    };
    Ok(Proof { targets, candidate })
}

/// What the project declares, by kind and logical name.
struct Declarations<'a> {
    project: &'a str,
    resources: BTreeMap<(Kind, &'a str), &'a DesiredResource>,
    topics: BTreeMap<&'a str, &'a TopicArtifact>,
    schemas: BTreeMap<&'a str, &'a SchemaArtifact>,
    connectors: BTreeMap<&'a str, &'a ConnectorArtifact>,
    jobs: BTreeMap<&'a str, &'a FlinkJobArtifact>,
    /// The backend of a connector; empty when no cluster can be bound.
    connect: String,
}

struct Declaration<'a> {
    resource: &'a DesiredResource,
    artifact: Form<'a>,
    backend: String,
    ours: bool,
}

#[derive(Clone, Copy)]
enum Form<'a> {
    Topic(&'a TopicArtifact),
    Schema(&'a SchemaArtifact),
    Connector(&'a ConnectorArtifact),
    Job(&'a FlinkJobArtifact),
}

impl<'a> Declarations<'a> {
    fn of(desired: &'a Desired<'_>) -> Self {
        let artifacts = desired.artifacts;
        Self {
            project: desired.project,
            resources: desired.resources.iter().map(|r| ((r.kind, r.logical_name.as_str()), r)).collect(),
            topics: artifacts.topics.iter().map(|topic| (topic.name.as_str(), topic)).collect(),
            schemas: artifacts.schemas.iter().map(|schema| (schema.subject.as_str(), schema)).collect(),
            connectors: artifacts.connectors.iter().map(|connector| (connector.name.as_str(), connector)).collect(),
            jobs: artifacts.flink_jobs.iter().chain(&artifacts.test_jobs).map(|job| (job.name.as_str(), job)).collect(),
            connect: connectors::binding(desired).map(|bound| bound.identity().as_str().to_owned()).unwrap_or_default(),
        }
    }

    fn find(&self, id: &ResourceId) -> Option<Declaration<'a>> {
        let resource = *self.resources.get(&(id.kind(), id.logical_name()))?;
        let name = resource.physical_name.as_str();
        let (artifact, backend) = match resource.kind {
            Kind::Topic => (Form::Topic(self.topics.get(name)?), KAFKA_BACKEND),
            Kind::Schema => (Form::Schema(self.schemas.get(name)?), SCHEMA_REGISTRY_BACKEND),
            Kind::Connector => (Form::Connector(self.connectors.get(name)?), self.connect.as_str()),
            Kind::FlinkJob => (Form::Job(self.jobs.get(name)?), FLINK_BACKEND),
            Kind::KafkaStreamsJob | Kind::GatewayRule => return None,
        };
        let Ownership { mode, project, .. } = match artifact {
            Form::Topic(topic) => &topic.ownership,
            Form::Schema(schema) => &schema.ownership,
            Form::Connector(connector) => &connector.ownership,
            Form::Job(job) => &job.ownership,
        };
        let ours = project == self.project && *mode == resource.mode && *mode != OwnershipMode::External;
        Some(Declaration { resource, artifact, backend: backend.to_owned(), ours })
    }
}

struct Judged {
    presence: Seen,
    verdict: Result<AcceptedAs, Reason>,
    differences: Map<String, Value>,
    fingerprint: Option<Checksum>,
    left: Left,
}

impl Judged {
    fn refused(presence: Seen, reason: Reason) -> Self {
        Self { presence, verdict: Err(reason), differences: Map::new(), fingerprint: None, left: Left::Nothing }
    }
}

/// The live side of a target, complete, beside the form that is wanted.
struct Compared {
    exists: bool,
    fingerprint: Option<Checksum>,
    is_candidate: bool,
    /// Digests of the artifacts that what is live would be under this declaration's ownership.
    rebuilt: Vec<Checksum>,
    differences: Map<String, Value>,
}

fn judge(
    action: &Action,
    record: Option<&OwnershipRecord>,
    declared: Option<Declaration<'_>>,
    observations: &Observations,
) -> Judged {
    let Some(Declaration { resource, artifact, backend, ours }) = declared else {
        return Judged::refused(Seen::Unreadable, Reason::ContentNotProvable);
    };
    let compared = match artifact {
        Form::Topic(topic) => observations.topics.get(&topic.name).and_then(|live| compare_topic(topic, live)),
        Form::Schema(schema) => {
            observations.subjects.get(&schema.subject).and_then(|live| compare_schema(schema, live))
        }
        Form::Connector(connector) => {
            observations.connectors.get(&connector.name).map(|live| connectors::compare(connector, live))
        }
        Form::Job(job) => observations.jobs.get(&job.name).map(compare_job),
    };
    let Some(compared) = compared else { return Judged::refused(Seen::Unreadable, Reason::Unreadable) };
    let presence = if compared.exists { Seen::Present } else { Seen::Absent };
    let bound = record.is_none_or(|record| {
        record.physical_name == resource.physical_name && record.backend == backend && record.ownership == resource.mode
    });
    if !ours || !bound || backend.is_empty() {
        return Judged::refused(presence, Reason::WrongBinding);
    }
    let is_prior = match action.action {
        Verb::Create | Verb::Register | Verb::Adopt => !compared.exists,
        // A live job never shows what it runs (REC-054); one that is not there was not submitted (REC-055).
        Verb::Submit if !compared.exists => true,
        Verb::Update => match record {
            Some(record) => compared.exists && compared.rebuilt.contains(&record.artifact_checksum),
            None => return Judged::refused(presence, Reason::WrongBinding),
        },
        // The form that a deletion would have left or kept is not in the action (REC-059, REC-061).
        Verb::Submit | Verb::Delete | Verb::Cancel => return Judged::refused(presence, Reason::ContentNotProvable),
    };
    let same_record = record.is_some_and(|record| record.artifact_checksum == resource.artifact_checksum);
    let verdict = match (is_prior, compared.exists && compared.is_candidate) {
        (true, true) if same_record => Ok(AcceptedAs::Prior),
        (true, true) => Err(Reason::Ambiguous),
        (true, false) => Ok(AcceptedAs::Prior),
        (false, true) => Ok(AcceptedAs::Candidate),
        (false, false) => Err(Reason::ThirdState),
    };
    let record = OwnershipRecord {
        physical_name: resource.physical_name.clone(),
        ownership: resource.mode,
        artifact_checksum: resource.artifact_checksum.clone(),
        backend,
    };
    let differences = if verdict.is_err() { compared.differences } else { Map::new() };
    Judged { presence, verdict, differences, fingerprint: compared.fingerprint, left: Left::Recorded(record) }
}

/// Of a live job nothing but its name can be compared: it is never what was declared, however healthy it looks.
fn compare_job(live: &JobObservation) -> Compared {
    match live.exists() {
        false => absent(Kind::FlinkJob),
        true => Compared {
            exists: true,
            fingerprint: None,
            is_candidate: false,
            rebuilt: Vec::new(),
            differences: Map::new(),
        },
    }
}

/// None for an observation that lacks a part of the topic (REC-046).
fn compare_topic(desired: &TopicArtifact, live: &TopicObservation) -> Option<Compared> {
    if !live.exists {
        return Some(absent(Kind::Topic));
    }
    let (partitions, replication_factor) = (live.partitions?, live.replication_factor?);
    if partitions == 0 || replication_factor == 0 {
        return None;
    }
    let rebuilt = TopicArtifact {
        name: live.name.clone(),
        partitions,
        replication_factor,
        config: live.config.clone(),
        ownership: desired.ownership.clone(),
    };
    let form = json!({
        "kind": Kind::Topic, "presence": Presence::Present, "name": live.name, "partitions": partitions,
        "replication_factor": replication_factor, "config": live.config,
    });
    let mut differences = TopicDiff::of(desired, live).changes();
    differences.shift_remove("partitions_error");
    let mut differs = |field: &str, from: u64, to: u64| {
        if from != to {
            differences.insert(field.to_owned(), json!({"from": from, "to": to}));
        }
    };
    differs("partitions", partitions.into(), desired.partitions.into());
    differs("replication_factor", replication_factor.into(), desired.replication_factor.into());
    Some(Compared {
        exists: true,
        fingerprint: Checksum::of(&form).ok(),
        is_candidate: rebuilt == *desired,
        rebuilt: Checksum::of(&rebuilt).ok().into_iter().collect(),
        differences,
    })
}

/// None for an observation that lacks a part of the subject (REC-043). A level that is not declared is any level.
fn compare_schema(desired: &SchemaArtifact, live: &SchemaObservation) -> Option<Compared> {
    if !live.exists {
        return Some(absent(Kind::Schema));
    }
    let (version, schema_id) = (live.version.filter(|version| *version > 0)?, live.schema_id.filter(|id| *id > 0)?);
    let (schema, schema_type) = (live.schema.as_ref()?, live.schema_type?);
    let form = json!({
        "kind": Kind::Schema, "presence": Presence::Present, "subject": live.subject, "version": version,
        "schema_id": schema_id, "schema": schema, "schema_type": schema_type, "compatibility": live.compatibility,
        "references": live.references,
    });
    let under = |compatibility| {
        let rebuilt = SchemaArtifact {
            subject: live.subject.clone(),
            schema: schema.clone(),
            schema_type,
            compatibility,
            references: live.references.clone(),
            ownership: desired.ownership.clone(),
        };
        Checksum::of(&rebuilt).ok()
    };
    let level_stands = desired.compatibility.is_none() || desired.compatibility == live.compatibility;
    // A prior declaration without a level does not claim a subject that carries the level now intended as its own.
    let level_was_set = desired.compatibility.is_some() && live.own_compatibility == desired.compatibility;
    let mut rebuilt: Vec<Checksum> = live.compatibility.and_then(|level| under(Some(level))).into_iter().collect();
    if !level_was_set {
        rebuilt.extend(under(None));
    }
    let mut differences = Map::new();
    let mut differs = |field: &str, from: Value, to: Value| {
        if from != to {
            differences.insert(field.to_owned(), json!({"from": from, "to": to}));
        }
    };
    let content = |schema: &Value| Checksum::of(schema).map_or(Value::Null, |sum| json!(sum));
    differs("schema", content(schema), content(&desired.schema));
    differs("schema_type", json!(schema_type), json!(desired.schema_type));
    differs("references", json!(live.references), json!(desired.references));
    if !level_stands {
        differs("compatibility", json!(live.compatibility), json!(desired.compatibility));
    }
    Some(Compared {
        exists: true,
        fingerprint: Checksum::of(&form).ok(),
        is_candidate: level_stands && !creates_version(desired, live),
        rebuilt,
        differences,
    })
}

fn absent(kind: Kind) -> Compared {
    let form = json!({"kind": kind, "presence": Presence::Absent});
    Compared {
        exists: false,
        fingerprint: Checksum::of(&form).ok(),
        is_candidate: false,
        rebuilt: Vec::new(),
        differences: Map::new(),
    }
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
