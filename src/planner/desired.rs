//! What the project wants, in the form in which planning reads it.

use std::collections::{BTreeMap, BTreeSet};

use crate::codes::Location;
use crate::compiler::artifact::{Artifacts, Kind, Ownership};
use crate::compiler::{Compiled, Dag, DesiredResource};
use crate::project::model::{ConnectRuntime, OwnershipMode, Project};

/// An exposure as impact analysis shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredExposure {
    /// Sorted, without repetition.
    pub owners: Vec<String>,
    pub consumer_group: Option<String>,
}

/// The declarations that are no artifacts: who owns what, and who says to consume it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Model or source name → owner.
    pub owners: BTreeMap<String, String>,
    pub exposures: BTreeMap<String, DeclaredExposure>,
    /// Topic → the sources that are declared over it.
    pub readers: BTreeMap<String, Vec<String>>,
    /// Test name → the model or source under test.
    pub tests: BTreeMap<String, String>,
    /// Source name → the topic that it stands for.
    pub source_topics: BTreeMap<String, String>,
    /// Models whose output is external.
    pub external_models: BTreeSet<String>,
    /// `(kind, logical owner)` of every explicit removal.
    pub removals: Vec<(Kind, String)>,
    /// Logical owner of a connector removal → where it is declared.
    pub removal_places: BTreeMap<String, Location>,
}

impl Declared {
    pub fn of(project: &Project) -> Self {
        let models = project.models.iter().map(|model| (&model.name, &model.owner));
        let sources = project.sources.iter().map(|source| (&source.name, &source.owner));
        let exposures = project.exposures.iter().map(|exposure| {
            let named = exposure.owners.iter().filter_map(|owner| owner.get("name"));
            let mut owners: Vec<String> = exposure.owner.iter().chain(named).cloned().collect();
            owners.sort();
            owners.dedup();
            (exposure.name.clone(), DeclaredExposure { owners, consumer_group: exposure.consumer_group.clone() })
        });
        let mut readers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for source in project.sources.iter().filter(|source| source.cluster.is_none()) {
            readers.entry(source.topic.clone()).or_default().push(source.name.clone());
        }
        let connectors = project.connector_removals.iter().map(|r| (Kind::Connector, r.logical_owner.clone()));
        let rules = project.gateway_rule_removals.iter().map(|r| (Kind::GatewayRule, r.logical_owner.clone()));
        Self {
            owners: models.chain(sources).filter_map(|(name, owner)| Some((name.clone(), owner.clone()?))).collect(),
            exposures: exposures.collect(),
            readers,
            tests: project.tests.iter().map(|test| (test.name.clone(), test.model.clone())).collect(),
            source_topics: project.sources.iter().map(|source| (source.name.clone(), source.topic.clone())).collect(),
            external_models: project
                .models
                .iter()
                .filter(|model| model.ownership.mode == OwnershipMode::External)
                .map(|model| model.name.clone())
                .collect(),
            removals: connectors.chain(rules).collect(),
            removal_places: project
                .connector_removals
                .iter()
                .filter_map(|removal| Some((removal.logical_owner.clone(), removal.origin.location()?)))
                .collect(),
        }
    }
}

/// The desired side of a plan.
#[derive(Clone, Debug)]
pub struct Desired<'a> {
    pub project: &'a str,
    pub environment: &'a str,
    /// In kind order, then physical name.
    pub resources: Vec<DesiredResource>,
    pub artifacts: &'a Artifacts,
    pub dag: &'a Dag,
    pub declared: Declared,
    /// The worker clusters of the selected environment.
    pub connect: Option<&'a ConnectRuntime>,
    /// The environment lets nothing be deleted.
    pub forbids_deletion: bool,
}

impl<'a> Desired<'a> {
    pub fn of(compiled: &'a Compiled) -> Self {
        Self {
            project: &compiled.project.name,
            environment: &compiled.project.environment.name,
            resources: compiled.resources(),
            artifacts: &compiled.artifacts,
            dag: &compiled.dag,
            declared: Declared::of(&compiled.project),
            connect: compiled.project.runtime.connect.as_ref(),
            forbids_deletion: compiled.project.environment.forbid_deletion,
        }
    }

    /// Topics that the job of this owner reads and that nothing here makes: those of sources and of external models.
    pub(super) fn external_inputs(&self, owner: &Ownership) -> BTreeSet<&str> {
        let external = |name: &String| {
            let topics = self.artifacts.topics.iter();
            let mut of_model = topics.filter(|topic| topic.ownership.mode == OwnershipMode::External);
            let source = self.declared.source_topics.get(name);
            source.or_else(|| of_model.find(|topic| topic.ownership.name == *name).map(|topic| &topic.name))
        };
        let node = self.dag.nodes.get(&owner.name);
        let upstream = node.into_iter().flat_map(|node| &node.upstream);
        upstream.filter_map(external).map(String::as_str).collect()
    }

    /// The ownership object of the artifact behind each resource, by kind and physical name.
    pub(super) fn owners(&self) -> BTreeMap<(Kind, &'a str), &'a Ownership> {
        let artifacts = self.artifacts;
        let jobs = artifacts.flink_jobs.iter().chain(&artifacts.test_jobs);
        let schemas = artifacts.schemas.iter().map(|a| ((Kind::Schema, a.subject.as_str()), &a.ownership));
        let topics = artifacts.topics.iter().map(|a| ((Kind::Topic, a.name.as_str()), &a.ownership));
        let runners = artifacts.kafka_streams_jobs.iter();
        schemas
            .chain(topics)
            .chain(jobs.map(|a| ((Kind::FlinkJob, a.name.as_str()), &a.ownership)))
            .chain(runners.map(|a| ((Kind::KafkaStreamsJob, a.application_id.as_str()), &a.ownership)))
            .chain(artifacts.connectors.iter().map(|a| ((Kind::Connector, a.name.as_str()), &a.ownership)))
            .chain(
                artifacts.gateway_rules.iter().map(|a| ((Kind::GatewayRule, a.virtual_topic.as_str()), &a.ownership)),
            )
            .collect()
    }
}
