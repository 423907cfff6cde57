//! From a `Project` to its artifacts and manifest. Pure but for `files`, which writes them: no network, no state, no clock but
//! the timestamp handed in. It promises equal bytes for equal input in any file order, artifacts free of secrets, and nothing
//! at all on failure.

pub mod artifact;
pub mod canonical;
pub mod classified;
pub mod columns;
mod connectors;
mod context;
pub mod cycle;
pub mod dag;
pub mod files;
pub mod flink;
mod gateway;
pub mod kafka_streams;
mod macros;
pub mod manifest;
pub mod resolve;
mod schemas;
pub mod strict_json;
#[cfg(test)]
pub mod testing;
mod topics;
pub mod unique;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use crate::codes::{Code, Diagnostic, Diagnostics, Location};
use crate::project::model::{OwnershipMode, Project};
use crate::project::origin::Origin;

use artifact::{Artifacts, ConnectorArtifact, Kind, OwnerType, Ownership};
use canonical::{CanonicalError, Checksum};
use classified::Classified;
use columns::Columns;
use context::Context;
pub use dag::{Dag, DagNode, NodeType};
use manifest::Manifest;
pub use manifest::environment_fingerprint;
pub use resolve::{Output, Process, ResolvedModel};
pub use topics::{Shape as TopicShape, TEST_FAILURES};

/// A compiled project: immutable and shared by plan, exports and coordinator.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub project: Arc<Project>,
    pub artifacts: Artifacts,
    pub dag: Dag,
    /// Sorted by name.
    pub models: Vec<ResolvedModel>,
    pub manifest_checksum: Checksum,
    /// W227.
    pub warnings: Diagnostics,
    resources: Vec<DesiredResource>,
}

/// One desired resource in the form that planning needs, whatever its kind.
#[derive(Clone, Debug)]
pub struct DesiredResource {
    pub kind: Kind,
    /// Last segment of the resource id.
    pub logical_name: String,
    pub physical_name: String,
    pub mode: OwnershipMode,
    /// `sha256:` over the artifact object, ownership included; of a connector over its form bound to a cluster.
    pub artifact_checksum: Checksum,
    /// The declaration that made it, and the field there.
    pub origin: Origin,
    pub field: &'static str,
}

impl DesiredResource {
    /// Where it is declared. Reads the file's tree again: for findings only.
    pub fn location(&self) -> Option<Location> {
        self.origin.at(self.field)
    }
}

impl Compiled {
    /// The manifest, for printing or hashing.
    pub fn manifest_parts(&self) -> Manifest<'_> {
        Manifest::of(&self.project, &self.dag, &self.artifacts)
    }

    /// The manifest as JSON, key order of its specification; `compiled_at` is RFC 3339 with six fraction digits.
    pub fn manifest(&self, compiled_at: &str) -> Value {
        // Every part was canonicalized for the checksum already.
        serde_json::to_value(self.manifest_parts().document(compiled_at)).unwrap_or_default()
    }

    /// Every desired resource in kind order, then physical name. Flink jobs stand before the jobs of tests.
    pub fn resources(&self) -> Vec<DesiredResource> {
        self.resources.clone()
    }

    /// Index in `models` of a model.
    pub fn model(&self, name: &str) -> Option<&ResolvedModel> {
        let index = self.models.binary_search_by(|model| model.name.as_str().cmp(name)).ok()?;
        self.models.get(index)
    }

    /// Which columns are not shown. Analyses every model again: for who is about to show something.
    pub fn classified(&self) -> Classified {
        Classified::new(&self.project, &self.models, &Columns::of(&self.project, &self.models))
    }

    /// A connector with its cluster named: the form of every checksum and of every comparison.
    pub fn bound(&self, connector: &ConnectorArtifact) -> ConnectorArtifact {
        bound(&self.project, connector)
    }
}

fn bound(project: &Project, connector: &ConnectorArtifact) -> ConnectorArtifact {
    let default = project.runtime.connect.as_ref().and_then(|connect| connect.default.clone());
    ConnectorArtifact { cluster: connector.cluster.clone().or(default), ..connector.clone() }
}

/// Compiles the whole project. Errors carry E1xx, E2xx, E427 or E501 and the place of the declaration; all of one step are
/// returned together. Warnings of a compilation that fails come with its errors.
pub fn compile(project: Arc<Project>) -> Result<Compiled, Diagnostics> {
    assemble(project)?.seal()
}

/// The findings of a compilation, without its digests: the errors of [`compile`], or its warnings.
pub fn check(project: Arc<Project>) -> Result<Diagnostics, Diagnostics> {
    assemble(project).map(|unsealed| unsealed.warnings)
}

/// A compilation but for its digests.
struct Unsealed {
    project: Arc<Project>,
    artifacts: Artifacts,
    dag: Dag,
    models: Vec<ResolvedModel>,
    warnings: Diagnostics,
    /// The topics that tests asked for, and by which test.
    topics_of_tests: BTreeMap<String, usize>,
}

fn assemble(project: Arc<Project>) -> Result<Unsealed, Diagnostics> {
    refuse_errors(unique::check_names(&project))?;
    let (models, findings) = resolve::resolve(&project);
    refuse_errors(findings)?;
    let dag = Dag::build(&project, &models);
    let order = dag.order().map_err(|path| cycle_found(&project, &path))?;
    let mut context = Context::new(&project, &models);

    let mut artifacts = Artifacts { schemas: schemas::compile(&mut context), ..Artifacts::default() };
    artifacts.topics = topics::compile(&mut context, &order);
    let columns = Columns::of(&project, &models);
    let tables = flink::Sources { columns: &columns, schemas: &artifacts.schemas };
    artifacts.flink_jobs = flink::compile(&mut context, &order, &tables);
    artifacts.test_jobs = flink::compile_tests(&mut context, &tables);
    artifacts.kafka_streams_jobs = kafka_streams::compile(&mut context, &models, &order, &columns);
    artifacts.connectors = connectors::compile(&mut context, &order);
    artifacts.gateway_rules = gateway::compile(&mut context, &order);
    unique::check_artifacts(&mut context, &artifacts, &models);
    let topics_of_tests = topics::compile_for_tests(&mut context, &mut artifacts.topics);
    artifacts.connector_removals = connectors::removals(&mut context, &artifacts.connectors);
    artifacts.gateway_rule_removals = gateway::removals(&mut context);

    let warnings = refuse_errors(context.findings)?;
    Ok(Unsealed { project, artifacts, dag, models, warnings, topics_of_tests })
}

impl Unsealed {
    fn seal(self) -> Result<Compiled, Diagnostics> {
        let Self { project, artifacts, dag, models, warnings, topics_of_tests } = self;
        let sealed = seal(&project, &dag, &artifacts, &topics_of_tests);
        let (resources, manifest_checksum) = sealed.map_err(|CanonicalError| {
            Diagnostics::from(Diagnostic::new(
                Code::E119CompileFailed,
                "the manifest holds a value that has no canonical form",
            ))
        })?;
        Ok(Compiled { project, artifacts, dag, models, manifest_checksum, warnings, resources })
    }
}

fn refuse_errors(findings: Diagnostics) -> Result<Diagnostics, Diagnostics> {
    if findings.has_errors() { Err(findings) } else { Ok(findings) }
}

fn cycle_found(project: &Project, path: &[&str]) -> Diagnostics {
    let finding = Diagnostic::new(Code::E104CycleDetected, format!("Dependency cycle: {}", path.join(" -> ")));
    let models = project.models.iter().map(|model| (&model.name, &model.origin));
    let exposures = project.exposures.iter().map(|exposure| (&exposure.name, &exposure.origin));
    let declaration = models.chain(exposures).find(|(name, _)| path.contains(&name.as_str()));
    match declaration {
        Some((_, origin)) => origin.mark("", finding).into(),
        None => finding.into(),
    }
}

/// The checksums of a finished compilation.
fn seal(
    project: &Project,
    dag: &Dag,
    artifacts: &Artifacts,
    topics_of_tests: &BTreeMap<String, usize>,
) -> Result<(Vec<DesiredResource>, Checksum), CanonicalError> {
    let (resources, checksum) = rayon::join(
        || resources(project, artifacts, topics_of_tests),
        || Manifest::of(project, dag, artifacts).checksum(),
    );
    Ok((resources?, checksum?))
}

/// The checksums of many artifacts, on every core.
fn checksums<T: Serialize + Sync>(artifacts: &[T]) -> Result<Vec<Checksum>, CanonicalError> {
    artifacts.par_iter().map(Checksum::of).collect()
}

fn resources(
    project: &Project,
    artifacts: &Artifacts,
    topics_of_tests: &BTreeMap<String, usize>,
) -> Result<Vec<DesiredResource>, CanonicalError> {
    let mut list = Resources { names: resolve::Names::of(project), resources: Vec::new() };
    for (schema, checksum) in artifacts.schemas.iter().zip(checksums(&artifacts.schemas)?) {
        list.add(Kind::Schema, &schema.subject, "schema", &schema.ownership, checksum);
    }
    for (topic, checksum) in artifacts.topics.iter().zip(checksums(&artifacts.topics)?) {
        match topics_of_tests.get(&topic.name) {
            None => list.add(Kind::Topic, &topic.name, "topic", &topic.ownership, checksum),
            Some(&test) => {
                let origin = project.tests.get(test).map(|test| &test.origin);
                list.push(Kind::Topic, &topic.name, &topic.name, topic.ownership.mode, checksum, origin, "");
            }
        }
    }
    for job in &artifacts.flink_jobs {
        let model = list.names.model(&job.ownership.name);
        let field = if model.is_some_and(|model| model.macro_name.is_some()) { "macro" } else { "sql" };
        let origin = model.map(|model| &model.origin);
        list.push(Kind::FlinkJob, &job.name, &job.name, job.ownership.mode, Checksum::of(job)?, origin, field);
    }
    for job in &artifacts.test_jobs {
        let test = project.tests.iter().find(|test| job.name.strip_prefix("test_") == Some(&test.name));
        let origin = test.map(|test| &test.origin);
        list.push(Kind::FlinkJob, &job.name, &job.name, job.ownership.mode, Checksum::of(job)?, origin, "");
    }
    for job in &artifacts.kafka_streams_jobs {
        list.add(Kind::KafkaStreamsJob, &job.application_id, "sql", &job.ownership, Checksum::of(job)?);
    }
    for connector in &artifacts.connectors {
        let checksum = Checksum::of(&bound(project, connector))?;
        list.add(Kind::Connector, &connector.name, "sink", &connector.ownership, checksum);
    }
    for rule in &artifacts.gateway_rules {
        list.add(Kind::GatewayRule, &rule.virtual_topic, "gateway", &rule.ownership, Checksum::of(rule)?);
    }
    let mut resources = list.resources;
    resources.sort_by(|a, b| (a.kind, &a.physical_name).cmp(&(b.kind, &b.physical_name)));
    Ok(resources)
}

struct Resources<'a> {
    names: resolve::Names<'a>,
    resources: Vec<DesiredResource>,
}

impl<'a> Resources<'a> {
    /// A resource that its owner's declaration names and places.
    fn add(&mut self, kind: Kind, physical: &str, field: &'static str, ownership: &Ownership, checksum: Checksum) {
        let origin: Option<&'a Origin> = match ownership.owner_type {
            OwnerType::Model => self.names.model(&ownership.name).map(|model| &model.origin),
            OwnerType::Source => self.names.source(&ownership.name).map(|source| &source.origin),
        };
        self.push(kind, &ownership.name, physical, ownership.mode, checksum, origin, field);
    }

    #[allow(clippy::too_many_arguments)]
    fn push(
        &mut self,
        kind: Kind,
        logical: &str,
        physical: &str,
        mode: OwnershipMode,
        artifact_checksum: Checksum,
        origin: Option<&Origin>,
        field: &'static str,
    ) {
        self.resources.push(DesiredResource {
            kind,
            logical_name: logical.to_owned(),
            physical_name: physical.to_owned(),
            mode,
            artifact_checksum,
            origin: origin.cloned().unwrap_or_default(),
            field,
        });
    }
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;

#[cfg(test)]
mod connector_tests;
#[cfg(test)]
mod loaded_tests;
