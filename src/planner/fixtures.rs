//! Builders for the tests of planning.

use std::collections::BTreeMap;

use serde_json::Value;

use super::connector::ManagedConnectorObservation;
use super::flink::{JobId, JobObservation, JobState, LiveJob, Tasks};
use super::observation::{Observations, SchemaObservation, SubjectVersion, TopicObservation};
use super::{Declared, Desired, Evidence, Plan, PlanInput, Selection, plan};
use crate::codes::Diagnostics;
use crate::compiler::artifact::{
    Artifacts, ConnectorArtifact, FlinkJobArtifact, Kind, OwnerType, Ownership, SchemaArtifact, SchemaType,
    TopicArtifact,
};
use crate::compiler::canonical::Checksum;
use crate::compiler::{Dag, DagNode, DesiredResource, NodeType};
use crate::ownership::model::{
    FLINK_BACKEND, KAFKA_BACKEND, OwnershipRecord, OwnershipState, ResourceId, SCHEMA_REGISTRY_BACKEND,
};
use crate::project::model::{Compatibility, ConnectRuntime, OwnershipMode, SchemaReference};

pub const PROJECT: &str = "payments";
pub const ENVIRONMENT: &str = "prod";

pub fn owner(name: &str) -> Ownership {
    Ownership {
        mode: OwnershipMode::Managed,
        project: PROJECT.to_owned(),
        owner_type: OwnerType::Model,
        name: name.to_owned(),
    }
}

pub fn job(name: &str) -> FlinkJobArtifact {
    FlinkJobArtifact {
        name: name.to_owned(),
        sql: "INSERT INTO x SELECT 1".to_owned(),
        cluster: None,
        parallelism: None,
        checkpoint_interval_ms: None,
        state_backend: None,
        state_ttl_ms: None,
        ownership: owner(name),
    }
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Owned by the model of the name before the first dot.
pub fn topic(name: &str, partitions: u32, config: &[(&str, &str)]) -> TopicArtifact {
    TopicArtifact {
        name: name.to_owned(),
        partitions,
        replication_factor: 1,
        config: texts(config),
        ownership: owner(name.split('.').next().unwrap_or(name)),
    }
}

pub fn live_topic(name: &str, partitions: u32, config: &[(&str, &str)]) -> TopicObservation {
    TopicObservation {
        name: name.to_owned(),
        exists: true,
        partitions: Some(partitions),
        replication_factor: Some(1),
        config: texts(config),
    }
}

/// `a-value` is owned by the model `a`.
pub fn schema(subject: &str, schema: Value) -> SchemaArtifact {
    SchemaArtifact {
        subject: subject.to_owned(),
        schema,
        schema_type: SchemaType::Avro,
        compatibility: None,
        references: Vec::new(),
        ownership: owner(subject.split(['-', '.']).next().unwrap_or(subject)),
    }
}

pub fn reference(subject: &str, version: u32) -> SchemaReference {
    SchemaReference { name: format!("{subject}.type"), subject: subject.to_owned(), version }
}

pub fn live_schema(subject: &str, version: u32, schema: Value) -> SchemaObservation {
    SchemaObservation {
        subject: subject.to_owned(),
        exists: true,
        version: Some(version),
        schema_id: Some(7),
        schema: Some(schema),
        schema_type: Some(SchemaType::Avro),
        compatibility: Some(Compatibility::Backward),
        own_compatibility: None,
        references: Vec::new(),
    }
}

pub fn dag(nodes: &[(&str, &str)], edges: &[(&str, &str)]) -> Dag {
    let node = |(name, kind): &(&str, &str)| {
        let ends = |start: bool| {
            let mut names: Vec<String> = edges
                .iter()
                .filter(|(from, to)| if start { to == name } else { from == name })
                .map(|(from, to)| (if start { *from } else { *to }).to_owned())
                .collect();
            names.sort();
            names
        };
        let node_type = match *kind {
            "source" => NodeType::Source,
            "exposure" => NodeType::Exposure,
            _ => NodeType::Model,
        };
        let node = DagNode {
            name: (*name).to_owned(),
            node_type,
            materialized: None,
            upstream: ends(true),
            downstream: ends(false),
        };
        ((*name).to_owned(), node)
    };
    Dag { nodes: nodes.iter().map(node).collect() }
}

/// A project, what it owns and what is live.
#[derive(Clone, Debug)]
pub struct World {
    pub artifacts: Artifacts,
    pub dag: Dag,
    pub declared: Declared,
    pub state: OwnershipState,
    pub observations: Observations,
    pub selection: Option<Selection>,
    pub connect: Option<ConnectRuntime>,
    pub forbids_deletion: bool,
}

impl World {
    pub fn new() -> Self {
        Self {
            artifacts: Artifacts::default(),
            dag: Dag::default(),
            declared: Declared::default(),
            state: OwnershipState::empty(PROJECT, ENVIRONMENT),
            observations: Observations::default(),
            selection: None,
            connect: Some(super::connector::testing::runtime()),
            forbids_deletion: false,
        }
    }

    pub fn with_connector(mut self, connector: ConnectorArtifact, live: Option<ManagedConnectorObservation>) -> Self {
        let observed = live.unwrap_or_else(|| super::connector::testing::absent(&connector.name));
        self.observations.connectors.insert(connector.name.clone(), observed);
        self.artifacts.connectors.push(connector);
        self
    }

    pub fn with_topic(mut self, topic: TopicArtifact, live: Option<TopicObservation>) -> Self {
        let observed = live.unwrap_or_else(|| TopicObservation::absent(&topic.name));
        self.observations.topics.insert(topic.name.clone(), observed);
        self.artifacts.topics.push(topic);
        self
    }

    pub fn with_schema(mut self, schema: SchemaArtifact, live: Option<SchemaObservation>) -> Self {
        let observed = live.unwrap_or_else(|| SchemaObservation::absent(&schema.subject));
        self.observations.subjects.insert(schema.subject.clone(), observed);
        self.artifacts.schemas.push(schema);
        self
    }

    pub fn with_job(mut self, job: FlinkJobArtifact, state: Option<JobState>) -> Self {
        let id = JobId::parse(&"a".repeat(32)).unwrap();
        let live = state.map(|state| LiveJob { id, state, tasks: Tasks::default() });
        self.observations.jobs.insert(job.name.clone(), JobObservation { name: job.name.clone(), job: live });
        self.artifacts.flink_jobs.push(job);
        self
    }

    /// Records every declared resource as it is declared.
    pub fn owned(mut self) -> Self {
        for resource in self.desired().resources {
            if resource.mode != OwnershipMode::External {
                self.state.resources.insert(id(resource.kind, &resource.logical_name), record(&resource));
            }
        }
        self
    }

    pub fn live_version(mut self, subject: &str, version: u32) -> Self {
        self.observations.live_versions.insert(SubjectVersion { subject: subject.to_owned(), version });
        self
    }

    pub fn next_version(mut self, subject: &str, version: u32) -> Self {
        self.observations.next_versions.insert(subject.to_owned(), version);
        self
    }

    pub fn desired(&self) -> Desired<'_> {
        let resource = |kind, name: &str, ownership: &Ownership, artifact_checksum| DesiredResource {
            kind,
            logical_name: ownership.name.clone(),
            physical_name: name.to_owned(),
            mode: ownership.mode,
            artifact_checksum,
            origin: Default::default(),
            field: "",
        };
        let mut resources = Vec::new();
        for schema in &self.artifacts.schemas {
            let checksum = Checksum::of(schema).unwrap();
            resources.push(resource(Kind::Schema, &schema.subject, &schema.ownership, checksum));
        }
        for topic in &self.artifacts.topics {
            resources.push(resource(Kind::Topic, &topic.name, &topic.ownership, Checksum::of(topic).unwrap()));
        }
        for connector in &self.artifacts.connectors {
            let checksum = Checksum::of(connector).unwrap();
            resources.push(resource(Kind::Connector, &connector.name, &connector.ownership, checksum));
        }
        for job in self.artifacts.flink_jobs.iter().chain(&self.artifacts.test_jobs) {
            resources.push(resource(Kind::FlinkJob, &job.name, &job.ownership, Checksum::of(job).unwrap()));
        }
        for rule in &self.artifacts.gateway_rules {
            let checksum = Checksum::of(rule).unwrap();
            resources.push(resource(Kind::GatewayRule, &rule.virtual_topic, &rule.ownership, checksum));
        }
        resources.sort_by(|a, b| (a.kind, &a.physical_name).cmp(&(b.kind, &b.physical_name)));
        Desired {
            project: PROJECT,
            environment: ENVIRONMENT,
            resources,
            artifacts: &self.artifacts,
            dag: &self.dag,
            declared: self.declared.clone(),
            connect: self.connect.as_ref(),
            forbids_deletion: self.forbids_deletion,
        }
    }

    pub fn try_plan(&self) -> Result<Plan, Diagnostics> {
        let evidence = Evidence::Online { state: &self.state, observations: &self.observations };
        plan(PlanInput { desired: &self.desired(), evidence, selection: self.selection.as_ref() })
    }

    pub fn plan(&self) -> Plan {
        self.try_plan().unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    pub fn plan_offline(&self) -> Plan {
        plan(PlanInput { desired: &self.desired(), evidence: Evidence::Offline, selection: None })
            .unwrap_or_else(|errors| panic!("{errors:?}"))
    }
}

pub fn id(kind: Kind, logical_name: &str) -> ResourceId {
    ResourceId::new(PROJECT, ENVIRONMENT, kind, logical_name).unwrap()
}

pub fn record(resource: &DesiredResource) -> OwnershipRecord {
    OwnershipRecord {
        physical_name: resource.physical_name.clone(),
        ownership: resource.mode,
        artifact_checksum: resource.artifact_checksum.clone(),
        backend: match resource.kind {
            Kind::Schema => SCHEMA_REGISTRY_BACKEND.to_owned(),
            Kind::Connector => super::connector::testing::binding().identity().as_str().to_owned(),
            Kind::FlinkJob => FLINK_BACKEND.to_owned(),
            Kind::Topic | Kind::KafkaStreamsJob | Kind::GatewayRule => KAFKA_BACKEND.to_owned(),
        },
    }
}
