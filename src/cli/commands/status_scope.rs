//! What of a project `status` looks at.

use crate::cli::glob::Glob;
use crate::compiler::Compiled;
use crate::compiler::artifact::{ConnectorArtifact, FlinkJobArtifact, Kind, SchemaArtifact, TopicArtifact};
use crate::project::model::OwnershipMode;

use super::job_rows;

/// The declarations, apart by whose they are.
pub struct Scope<'a> {
    pub topics: Vec<&'a TopicArtifact>,
    pub schemas: Vec<&'a SchemaArtifact>,
    pub connectors: Vec<&'a ConnectorArtifact>,
    /// Those of models and those of tests.
    pub jobs: Vec<&'a FlinkJobArtifact>,
    pub sources: Vec<(&'a str, &'a str)>,
    pub external: Vec<(Kind, &'a str)>,
}

impl<'a> Scope<'a> {
    /// Those that the filter keeps.
    pub fn of(compiled: &'a Compiled, filter: Option<&Glob>) -> Self {
        let keeps = |name: &str| filter.is_none_or(|filter| filter.matches(name));
        let artifacts = &compiled.artifacts;
        let ours = |mode: OwnershipMode| mode != OwnershipMode::External;
        let external_topics = artifacts.topics.iter().filter(|topic| !ours(topic.ownership.mode));
        let external_connectors = artifacts.connectors.iter().filter(|connector| !ours(connector.ownership.mode));
        let external_jobs =
            artifacts.flink_jobs.iter().chain(&artifacts.test_jobs).filter(|job| !ours(job.ownership.mode));
        let external_schemas = artifacts.schemas.iter().filter(|schema| !ours(schema.ownership.mode));
        Self {
            topics: artifacts.topics.iter().filter(|topic| ours(topic.ownership.mode) && keeps(&topic.name)).collect(),
            schemas: (artifacts.schemas.iter())
                .filter(|schema| ours(schema.ownership.mode) && keeps(&schema.subject))
                .collect(),
            connectors: (artifacts.connectors.iter())
                .filter(|connector| ours(connector.ownership.mode) && keeps(&connector.name))
                .collect(),
            jobs: job_rows::own(compiled).filter(|job| keeps(&job.name)).collect(),
            sources: (compiled.project.sources.iter())
                .map(|source| (source.name.as_str(), source.topic.as_str()))
                .filter(|(name, topic)| keeps(name) || keeps(topic))
                .collect(),
            external: external_schemas
                .map(|schema| (Kind::Schema, schema.subject.as_str()))
                .chain(external_topics.map(|topic| (Kind::Topic, topic.name.as_str())))
                .chain(external_jobs.map(|job| (Kind::FlinkJob, job.name.as_str())))
                .chain(external_connectors.map(|connector| (Kind::Connector, connector.name.as_str())))
                .filter(|(_, name)| keeps(name))
                .collect(),
        }
    }
}
