//! What exists at the services of a project, for declarations that are made from it. Nothing is ever written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::codes::Diagnostic;
use crate::compiler::artifact::SchemaType;
use crate::planner::observation::TopicObservation;
use crate::project::Project;
use crate::project::model::{Compatibility, SchemaReference};
use crate::providers::connect::ListedConnector;

/// Whether a topic or a connector is wanted, by its name.
pub type Wanted = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How much is read of each subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subjects {
    Nothing,
    /// The latest version.
    Latest,
    /// The latest version and the levels: everything that a claim would manage.
    Whole,
}

pub struct DiscoverRequest {
    pub project: Arc<Project>,
    pub wanted: Wanted,
    /// Topics that are described, and whose subjects are left alone.
    pub known: BTreeSet<String>,
    pub subjects: Subjects,
    /// Subjects that are read in the place of a topic's own `<topic>-value`, by topic.
    pub named: BTreeMap<String, String>,
    /// The overrides of each topic too, which takes the right to describe configurations.
    pub configs: bool,
}

impl fmt::Debug for DiscoverRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiscoverRequest")
            .field("known", &self.known.len())
            .field("subjects", &self.subjects)
            .field("configs", &self.configs)
            .finish_non_exhaustive()
    }
}

/// The latest version of the subject that was read for a topic.
#[derive(Clone, PartialEq, Debug)]
pub struct FoundSchema {
    pub subject: String,
    pub version: u32,
    pub schema: Value,
    pub schema_type: SchemaType,
    pub references: Vec<SchemaReference>,
    /// The subject's own level, when it was read and there is one.
    pub compatibility: Option<Compatibility>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Lookup {
    NotRequested,
    NotFound,
    Resolved(Box<FoundSchema>),
    Failed(Box<Diagnostic>),
    /// The registry did not answer before, so it was not asked again.
    Skipped,
}

#[derive(Clone, PartialEq, Debug)]
pub struct FoundTopic {
    /// Complete: it exists, with partitions and replicas.
    pub topic: TopicObservation,
    pub schema: Lookup,
}

/// Sorted by name.
pub type Discovered = Vec<FoundTopic>;

/// Which connectors of the default worker cluster are looked at.
pub struct ConnectorsRequest {
    pub project: Arc<Project>,
    pub wanted: Wanted,
    /// Connectors whose classes are left alone.
    pub known: BTreeSet<String>,
}

impl fmt::Debug for ConnectorsRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorsRequest").finish_non_exhaustive()
    }
}

/// Connectors that are wanted, sorted by name, and the types of the settings of the classes of unknown sinks among them.
#[derive(Debug, Default)]
pub struct FoundConnectors {
    pub connectors: Vec<ListedConnector>,
    pub types: BTreeMap<String, BTreeMap<String, String>>,
}
