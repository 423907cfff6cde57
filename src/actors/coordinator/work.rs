//! The actions of a plan as the calls that carry them out, in blocks: one action, or one group of topic creates.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::codes::{Code, Diagnostic};
use crate::compiler::Compiled;
use crate::compiler::artifact::{ConnectorArtifact, FlinkJobArtifact, Kind, SchemaArtifact, TopicArtifact};
use crate::messages::operation::Label;
use crate::planner::Plan;
use crate::planner::connector::{ConnectorName, ManagedConnectorObservation};
use crate::planner::flink::cluster_of;
use crate::planner::model::{Action, Diff, Verb};
use crate::planner::observation::{CompatibilityVerdict, Observations, SchemaObservation};
use crate::project::model::Compatibility;
use crate::providers::kafka::{CreateRequest, MAX_TOPICS, TopicUpdate};
use crate::state::control::MAX_GROUP;

use super::jobs::submit_budget;

/// One action as its provider is asked.
#[derive(Clone, Debug)]
pub enum Call {
    CreateTopic(TopicArtifact),
    UpdateTopic(Box<TopicUpdate>),
    Register(Box<RegisterCall>),
    SetLevel {
        subject: String,
        level: Compatibility,
    },
    SubmitJob(Box<JobCall>),
    CreateConnector(Box<ConnectorArtifact>),
    UpdateConnector(Box<ConnectorUpdate>),
    /// Exactly what is deleted.
    DeleteConnector(Box<ManagedConnectorObservation>),
}

impl Call {
    fn created_topic(&self) -> Option<&TopicArtifact> {
        match self {
            Self::CreateTopic(topic) => Some(topic),
            Self::UpdateTopic(_)
            | Self::Register(_)
            | Self::SetLevel { .. }
            | Self::SubmitJob(_)
            | Self::CreateConnector(_)
            | Self::UpdateConnector(_)
            | Self::DeleteConnector(_) => None,
        }
    }
}

/// A job, the alias of its cluster, and the time that its submission may take.
#[derive(Clone, Debug)]
pub struct JobCall {
    pub artifact: FlinkJobArtifact,
    pub cluster: String,
    pub budget: Duration,
    /// Its failure may quote values of classified columns.
    pub confidential: bool,
}

#[derive(Clone, Debug)]
pub struct ConnectorUpdate {
    pub current: ManagedConnectorObservation,
    pub artifact: ConnectorArtifact,
}

#[derive(Clone, Debug)]
pub struct RegisterCall {
    pub current: SchemaObservation,
    pub artifact: SchemaArtifact,
    pub planned_version: Option<u32>,
    pub check_first: bool,
}

#[derive(Clone, Debug)]
pub struct Work {
    pub action: Action,
    pub label: Label,
    pub call: Call,
}

/// Everything that an apply sends, in order.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    pub works: Vec<Work>,
    /// Ranges of `works`, contiguous, without gaps.
    pub blocks: Vec<Range<usize>>,
}

impl Schedule {
    /// `actions` are the reviewed ones of a reviewed plan, else the plan's own.
    pub fn of(
        plan: &Plan,
        actions: &[Action],
        compiled: &Compiled,
        observations: &Observations,
    ) -> Result<Self, Diagnostic> {
        let topics: HashMap<&str, &TopicArtifact> =
            compiled.artifacts.topics.iter().map(|topic| (topic.name.as_str(), topic)).collect();
        let schemas: HashMap<&str, &SchemaArtifact> =
            compiled.artifacts.schemas.iter().map(|schema| (schema.subject.as_str(), schema)).collect();
        let connectors: HashMap<&str, &ConnectorArtifact> =
            compiled.artifacts.connectors.iter().map(|connector| (connector.name.as_str(), connector)).collect();
        let jobs: HashMap<&str, &FlinkJobArtifact> =
            (compiled.artifacts.flink_jobs.iter().chain(&compiled.artifacts.test_jobs))
                .map(|job| (job.name.as_str(), job))
                .collect();
        let changes: BTreeMap<_, _> = plan.changes.iter().map(|change| (&change.resource_id, change)).collect();
        let classified = LazyCell::new(|| compiled.classified());
        let mut works = Vec::with_capacity(actions.len());
        for action in actions {
            let change = changes.get(&action.resource_id).ok_or_else(|| unplanned(action))?;
            let name = change.name.as_str();
            let call = match (change.kind, action.action, &change.diff) {
                (Kind::Topic, Verb::Create, _) => topics.get(name).map(|topic| Call::CreateTopic((*topic).clone())),
                (Kind::Topic, Verb::Update, _) => topics.get(name).and_then(|desired| {
                    let current = observations.topics.get(name)?.clone();
                    Some(Call::UpdateTopic(Box::new(TopicUpdate { current, desired: (*desired).clone() })))
                }),
                (Kind::Schema, Verb::Update, Diff::Schema(diff)) if diff.content.is_none() => schemas
                    .get(name)
                    .and_then(|schema| schema.compatibility)
                    .map(|level| Call::SetLevel { subject: name.to_owned(), level }),
                (Kind::Schema, Verb::Register | Verb::Update, _) => schemas.get(name).map(|artifact| {
                    let absent = || SchemaObservation::absent(name);
                    Call::Register(Box::new(RegisterCall {
                        current: observations.subjects.get(name).cloned().unwrap_or_else(absent),
                        artifact: (*artifact).clone(),
                        planned_version: observations.next_versions.get(name).copied(),
                        check_first: match &change.diff {
                            Diff::Schema(diff) => diff
                                .content
                                .as_ref()
                                .is_some_and(|content| content.verdict == CompatibilityVerdict::Unproven),
                            Diff::None
                            | Diff::Topic(_)
                            | Diff::Connector(_)
                            | Diff::Job(_)
                            | Diff::ConnectorRemoval(_) => false,
                        },
                    }))
                }),
                // What lives is never submitted again: the id of the operation would not be the one that it runs under.
                (Kind::FlinkJob, Verb::Submit, Diff::Job(diff)) if !diff.exists() => match jobs.get(name) {
                    Some(artifact) => Some(Call::SubmitJob(Box::new(JobCall {
                        artifact: (*artifact).clone(),
                        cluster: cluster_of(&compiled.project, artifact)?.0.to_owned(),
                        budget: submit_budget(compiled, artifact),
                        confidential: classified.read_by(artifact, &compiled.models),
                    }))),
                    None => None,
                },
                (Kind::Connector, Verb::Create, _) => {
                    connectors.get(name).map(|artifact| Call::CreateConnector(Box::new(compiled.bound(artifact))))
                }
                (Kind::Connector, Verb::Update, _) => connectors.get(name).and_then(|artifact| {
                    let current = observations.connectors.get(name)?.clone();
                    let artifact = compiled.bound(artifact);
                    Some(Call::UpdateConnector(Box::new(ConnectorUpdate { current, artifact })))
                }),
                (Kind::Connector, Verb::Delete, Diff::ConnectorRemoval(_)) => {
                    let evidence = action.connector_evidence.as_ref();
                    let live = observations.connectors.get(name);
                    live.filter(|live| evidence.is_some_and(|reviewed| reviewed.is_of(live)))
                        .map(|live| Call::DeleteConnector(Box::new(live.clone())))
                }
                (
                    Kind::Topic | Kind::Schema,
                    Verb::Register | Verb::Create | Verb::Submit | Verb::Delete | Verb::Cancel | Verb::Adopt,
                    _,
                )
                | (Kind::Connector, Verb::Register | Verb::Submit | Verb::Delete | Verb::Cancel | Verb::Adopt, _)
                // No update of a job is ever sent (SAF-070).
                | (Kind::FlinkJob | Kind::KafkaStreamsJob | Kind::GatewayRule, _, _) => None,
            };
            let label = Label { kind: change.kind, name: name.to_owned() };
            works.push(Work { action: action.clone(), label, call: call.ok_or_else(|| unplanned(action))? });
        }
        let blocks = blocks(&works);
        Ok(Self { works, blocks })
    }

    pub fn block(&self, index: usize) -> &[Work] {
        self.blocks.get(index).map_or(&[], |range| &self.works[range.clone()])
    }

    /// The topics of a block of creates.
    pub fn creates(block: &[Work]) -> Option<Arc<[TopicArtifact]>> {
        block.iter().map(|work| work.call.created_topic().cloned()).collect()
    }

    /// What the broker can be asked beforehand.
    pub fn to_validate(&self) -> (Vec<TopicArtifact>, Vec<TopicUpdate>) {
        let (mut creates, mut updates) = (Vec::new(), Vec::new());
        for work in &self.works {
            match &work.call {
                Call::CreateTopic(topic) => creates.push(topic.clone()),
                Call::UpdateTopic(update) => updates.push(update.as_ref().clone()),
                Call::Register(_)
                | Call::SetLevel { .. }
                | Call::SubmitJob(_)
                | Call::CreateConnector(_)
                | Call::UpdateConnector(_)
                | Call::DeleteConnector(_) => {}
            }
        }
        (creates, updates)
    }

    /// The connector that a block of one changes.
    pub fn connector(block: &[Work]) -> Option<ConnectorName> {
        let [work] = block else { return None };
        match &work.call {
            Call::CreateConnector(artifact) => ConnectorName::new(&artifact.name),
            Call::UpdateConnector(update) => Some(update.current.name().clone()),
            Call::DeleteConnector(current) => Some(current.name().clone()),
            Call::CreateTopic(_)
            | Call::UpdateTopic(_)
            | Call::Register(_)
            | Call::SetLevel { .. }
            | Call::SubmitJob(_) => None,
        }
    }

    pub fn actions(&self) -> Vec<Action> {
        self.works.iter().map(|work| work.action.clone()).collect()
    }
}

fn unplanned(action: &Action) -> Diagnostic {
    let text = format!("{} {} has no counterpart in the plan", action.action, action.resource_id);
    Diagnostic::new(Code::E901Internal, text)
}

const _: () = assert!(MAX_TOPICS <= MAX_GROUP, "a create request is one group of the control");

/// Maximal runs of topic creates, each as large as one request may be; everything else stands alone.
fn blocks(works: &[Work]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut filling: Option<CreateRequest> = None;
    for (index, work) in works.iter().enumerate() {
        let topic = work.call.created_topic();
        let joins = topic.zip(filling.as_mut()).is_some_and(|(topic, request)| request.takes(topic));
        match blocks.last_mut() {
            Some(last) if joins => last.end = index + 1,
            Some(_) | None => {
                filling = topic.map(CreateRequest::of);
                blocks.push(index..index + 1);
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::artifact::{OwnerType, Ownership};
    use crate::compiler::testing;
    use crate::planner::connector::testing::{connector, live, tombstone};
    use crate::planner::fixtures::{World, id, job};
    use crate::planner::flink::JobState;
    use crate::project::model::{FlinkRuntime, Materialized, Model, OwnershipMode};
    use crate::state::model::ResourceId;

    fn work(index: usize, create: bool) -> Work {
        let name = format!("t{index}");
        let ownership = Ownership {
            mode: OwnershipMode::Managed,
            project: "p".into(),
            owner_type: OwnerType::Model,
            name: name.clone(),
        };
        let topic = TopicArtifact {
            name: name.clone(),
            partitions: 1,
            replication_factor: 1,
            config: BTreeMap::new(),
            ownership,
        };
        let call = match create {
            true => Call::CreateTopic(topic),
            false => Call::SetLevel { subject: name.clone(), level: Compatibility::Full },
        };
        let action = Action {
            index: index as u32,
            resource_id: ResourceId::new("p", "e", Kind::Topic, &name).expect("an id"),
            action: Verb::Create,
            gateway_evidence: None,
            connector_evidence: None,
            kafka_streams_evidence: None,
        };
        Work { action, label: Label { kind: Kind::Topic, name }, call }
    }

    fn sizes(pattern: &[bool]) -> Vec<usize> {
        let works: Vec<Work> = pattern.iter().enumerate().map(|(index, create)| work(index, *create)).collect();
        blocks(&works).into_iter().map(|block| block.len()).collect()
    }

    #[test]
    fn only_runs_of_topic_creates_form_groups_and_only_up_to_their_bound() {
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[false, false]), [1, 1]);
        assert_eq!(sizes(&[false, true, true, false, true]), [1, 2, 1, 1]);
        assert_eq!(sizes(&[true; MAX_GROUP]), [MAX_GROUP]);
        assert_eq!(sizes(&[true; MAX_GROUP + 2]), [MAX_GROUP, 2]);
    }

    /// CRM-071: what is sent to be deleted is what was reviewed, or nothing is.
    #[test]
    fn only_the_reviewed_connector_is_deleted() {
        let gone = connector("gone", &[("tasks.max", "2")]);
        let mut world = World::new().with_connector(gone.clone(), Some(live(&gone))).owned();
        world.artifacts.connectors.clear();
        world.artifacts.connector_removals.push(tombstone(&gone));
        let plan = world.plan();
        let compiled = testing::compiled(testing::project("payments"));
        let calls = |actions: &[Action], observations: &Observations| {
            let schedule = Schedule::of(&plan, actions, &compiled, observations);
            schedule.map(|schedule| schedule.works.into_iter().map(|work| work.call).collect::<Vec<_>>())
        };
        let sent = calls(&plan.actions, &world.observations).expect("a schedule");
        assert!(matches!(sent.as_slice(), [Call::DeleteConnector(current)] if **current == live(&gone)), "{sent:?}");
        let bare = Action { connector_evidence: None, ..plan.actions[0].clone() };
        assert_eq!(calls(&[bare], &world.observations).expect_err("no evidence").code, Code::E901Internal);
        world.observations.connectors.insert("gone".into(), live(&connector("gone", &[("tasks.max", "3")])));
        assert_eq!(calls(&plan.actions, &world.observations).expect_err("another form").code, Code::E901Internal);
    }

    /// SAF-070: whatever is asked for, a job that is listed is not submitted and none is updated.
    #[test]
    fn only_a_job_that_is_not_there_is_submitted() {
        let mut project = testing::project("payments");
        project.runtime.kafka = Some(testing::kafka_runtime());
        project.runtime.flink = Some(FlinkRuntime {
            default: Some("main".into()),
            clusters: BTreeMap::from([("main".into(), testing::flink_cluster())]),
        });
        project.sources.push(testing::source("raw", "raw.v1"));
        let model = testing::sql_model("m", "SELECT 1 AS a FROM {{ source('raw') }}");
        project.models.push(Model { materialized: Some(Materialized::Flink), ..model });
        let compiled = testing::compiled(project);
        let call = |state: Option<JobState>, action: Verb| {
            let plan = World::new().with_job(job("m"), state).plan();
            let action = Action {
                index: 0,
                resource_id: id(Kind::FlinkJob, "m"),
                action,
                gateway_evidence: None,
                connector_evidence: None,
                kafka_streams_evidence: None,
            };
            let schedule = Schedule::of(&plan, &[action], &compiled, &Observations::default());
            schedule.map(|schedule| schedule.works[0].call.clone())
        };
        assert!(matches!(call(None, Verb::Submit), Ok(Call::SubmitJob(job)) if job.cluster == "main"));
        for state in JobState::ALL {
            assert!(call(Some(state), Verb::Submit).is_err(), "{state}");
        }
        for verb in [Verb::Update, Verb::Cancel, Verb::Delete] {
            assert!(call(None, verb).is_err() && call(Some(JobState::Running), verb).is_err(), "{verb}");
        }
    }

    proptest::proptest! {
        #[test]
        fn blocks_cover_every_action_once_and_in_order(pattern in proptest::collection::vec(proptest::bool::ANY, 0..700)) {
            let works: Vec<Work> = pattern.iter().enumerate().map(|(index, create)| work(index, *create)).collect();
            let covered: Vec<usize> = blocks(&works).into_iter().flatten().collect();
            proptest::prop_assert_eq!(covered, (0..works.len()).collect::<Vec<_>>());
        }
    }
}
