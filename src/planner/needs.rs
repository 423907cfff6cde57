//! The questions whose answers a plan needs.

use std::collections::BTreeSet;

use crate::compiler::artifact::{ConnectorArtifact, Ownership, SchemaArtifact};
use crate::project::model::OwnershipMode;

use super::connector::ConnectorDiff;
use super::observation::{Observations, SubjectVersion};
use super::schema::{creates_version, references_are_live, version_of};
use super::{Desired, Selection};

/// What to observe before planning. Every list is sorted and without repetition.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Topics, with their configs.
    pub topics: Vec<String>,
    /// Subjects: latest version, effective and own level.
    pub subjects: Vec<String>,
    /// Referenced versions: does exactly this one exist live? → `Observations::live_versions`.
    pub versions: Vec<SubjectVersion>,
    /// Subjects whose next version number is needed (highest ever used + 1) → `Observations::next_versions`.
    pub numbered: Vec<String>,
    /// Topics of others that jobs of models read: do they exist? → `Observations::absent_inputs`.
    pub inputs: Vec<String>,
    /// Flink jobs, those of tests too, on the cluster that each belongs to.
    pub jobs: Vec<String>,
    /// Connectors of the default cluster, desired ones and those of removals: one strict read each.
    pub connectors: Vec<String>,
}

fn observed(ownership: &Ownership, selection: Option<&Selection>) -> bool {
    ownership.mode != OwnershipMode::External && selection.is_none_or(|selection| selection.keeps(ownership))
}

fn schemas<'a>(
    desired: &Desired<'a>,
    selection: Option<&'a Selection>,
) -> impl Iterator<Item = &'a SchemaArtifact> + use<'a> {
    desired.artifacts.schemas.iter().filter(move |schema| observed(&schema.ownership, selection))
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.collect::<BTreeSet<T>>().into_iter().collect()
}

/// External resources are not asked for: nothing is planned for them.
pub fn needed(desired: &Desired<'_>, selection: Option<&Selection>) -> Needs {
    let artifacts = desired.artifacts;
    let topics = artifacts.topics.iter().filter(|topic| observed(&topic.ownership, selection));
    let connectors = artifacts.connectors.iter().filter(|connector| observed(&connector.ownership, selection));
    let jobs = artifacts.flink_jobs.iter().chain(&artifacts.test_jobs);
    let jobs = jobs.filter(|job| observed(&job.ownership, selection));
    let readers = artifacts.flink_jobs.iter().filter(|job| observed(&job.ownership, selection));
    let inputs = readers.flat_map(|job| desired.external_inputs(&job.ownership)).map(str::to_owned);
    // A project with removals is never planned in part.
    let removed = artifacts.connector_removals.iter().map(|removal| removal.name.clone());
    let references = || schemas(desired, selection).flat_map(|schema| &schema.references);
    let referenced: BTreeSet<&String> = references().map(|reference| &reference.subject).collect();
    let numbered = schemas(desired, selection).filter(|schema| referenced.contains(&schema.subject));
    Needs {
        topics: sorted(topics.map(|topic| topic.name.clone())),
        subjects: sorted(schemas(desired, selection).map(|schema| schema.subject.clone())),
        versions: sorted(references().map(version_of)),
        numbered: sorted(numbered.map(|schema| schema.subject.clone())),
        inputs: sorted(inputs),
        jobs: sorted(jobs.map(|job| job.name.clone())),
        connectors: sorted(connectors.map(|connector| connector.name.clone()).chain(removed)),
    }
}

/// Connectors that would be created or updated: ask the worker to judge their configuration.
pub fn config_checks<'a>(
    desired: &Desired<'a>,
    selection: Option<&'a Selection>,
    observations: &Observations,
) -> Vec<&'a ConnectorArtifact> {
    let connectors = desired.artifacts.connectors.iter();
    let differs = |connector: &&ConnectorArtifact| {
        let live = observations.connectors.get(&connector.name);
        live.is_some_and(|live| ConnectorDiff::of(connector, live).verb().is_some())
    };
    connectors.filter(|connector| observed(&connector.ownership, selection)).filter(differs).collect()
}

/// Subjects whose desired content differs from the latest version and whose references are all live: ask the registry for
/// a verdict on each. Those with a pending reference cannot be asked about and are unproven.
pub fn compatibility_checks(
    desired: &Desired<'_>,
    selection: Option<&Selection>,
    observations: &Observations,
) -> Vec<String> {
    let checkable = schemas(desired, selection).filter(|schema| {
        let live = observations.subjects.get(&schema.subject).filter(|live| live.exists);
        live.is_some_and(|live| creates_version(schema, live)) && references_are_live(schema, observations)
    });
    sorted(checkable.map(|schema| schema.subject.clone()))
}
