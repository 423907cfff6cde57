//! Live observation without plan, lock or state: what `status` asks for and gets. A provider that fails is data, so that the
//! other sections still answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codes::Diagnostic;
use crate::compiler::artifact::FlinkJobArtifact;
use crate::planner::connector::{ConnectorName, ManagedConnectorObservation};
use crate::planner::flink::JobObservation;
use crate::planner::observation::{ConsumerEvidence, SchemaObservation, TopicObservation};
use crate::project::Project;
use crate::providers::VendorText;
use crate::providers::connect::ConnectorStatus;

/// Empty lists ask nothing; a provider that nothing asks is not contacted.
#[derive(Clone, Debug)]
pub struct ObserveRequest {
    pub project: Arc<Project>,
    /// With their configs.
    pub topics: Vec<String>,
    /// Existence and partitions only.
    pub source_topics: Vec<String>,
    pub subjects: Vec<String>,
    /// Names of the default worker cluster.
    pub connectors: Vec<ConnectorName>,
    /// Each on the cluster that it belongs to.
    pub jobs: Vec<FlinkJobArtifact>,
    /// Also why those of them that do not run failed.
    pub failures: bool,
    /// Also who consumes `topics`.
    pub consumers: bool,
    /// Also how many records `topics` hold.
    pub counts: bool,
}

/// Topics, and whether their configs were readable.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ObservedTopics {
    pub topics: BTreeMap<String, TopicObservation>,
    /// False when the right to read configs is missing: `config` is then empty and proves nothing.
    pub configs_read: bool,
}

/// Records of each topic that exists: the sum of end minus beginning over its partitions, an upper bound after compaction. Or
/// why they could not be counted.
pub type RecordCounts = BTreeMap<String, Result<u64, Diagnostic>>;

/// A connector and how it runs; without a status when it does not exist.
#[derive(Clone, PartialEq, Debug)]
pub struct ObservedConnector {
    pub live: ManagedConnectorObservation,
    pub status: Option<ConnectorStatus>,
}

/// A job and, when it does not run and that was asked, why it failed last.
#[derive(Clone, PartialEq, Debug)]
pub struct ObservedJob {
    pub live: JobObservation,
    pub failure: Option<VendorText>,
}

impl ObservedJob {
    /// Why it does not run, as far as Flink tells; none of a job that runs or that somebody stopped. Of a `confidential` one
    /// without what may quote a record.
    pub fn why(&self, confidential: bool) -> Option<String> {
        let safe = self.failure.as_ref().filter(|_| confidential).map(VendorText::without_values);
        crate::providers::flink::why(self.live.job.as_ref()?.state, safe.as_ref().or(self.failure.as_ref()))
    }
}

/// What is there, read without planning.
#[derive(Clone, Debug)]
pub struct Observed {
    pub topics: Result<ObservedTopics, Diagnostic>,
    pub source_topics: Result<BTreeMap<String, TopicObservation>, Diagnostic>,
    pub subjects: Result<BTreeMap<String, SchemaObservation>, Diagnostic>,
    pub connectors: Result<BTreeMap<String, ObservedConnector>, Diagnostic>,
    pub jobs: Result<BTreeMap<String, ObservedJob>, Diagnostic>,
    /// None unless asked for.
    pub consumers: Option<Result<ConsumerEvidence, Diagnostic>>,
    /// None unless asked for, or when the topics could not be read.
    pub counts: Option<Result<RecordCounts, Diagnostic>>,
}
