//! What every pass reads: the project by name, and what was decided about each model.

use std::collections::{HashMap, HashSet};

use crate::codes::{Code, Diagnostic, Diagnostics, Location};
use crate::compiler::Process;
use crate::compiler::columns::Columns;
use crate::compiler::kafka_streams::{Plan, Runners};
use crate::compiler::resolve::ResolvedModel;
use crate::project::Project;
use crate::project::model::{Model, Reference, Source};
use crate::project::origin::Origin;

use super::facts::Facts;

pub(super) struct Ctx<'a> {
    pub project: &'a Project,
    pub columns: &'a Columns,
    /// The first declaration of each name.
    pub sources: HashMap<&'a str, &'a Source>,
    pub models: HashMap<&'a str, &'a Model>,
    /// In declaration order, one for each model.
    pub facts: Vec<Facts<'a>>,
    /// Names that a test has as its model.
    pub tested: HashSet<&'a str>,
    /// What Kafka Streams would run of each of its models, or why it cannot.
    pub plans: HashMap<&'a str, Result<Plan, Vec<Diagnostic>>>,
    /// Topics through which its jobs would feed themselves.
    pub circles: Vec<Diagnostic>,
}

impl<'a> Ctx<'a> {
    pub fn new(project: &'a Project, resolution: &'a [ResolvedModel], columns: &'a Columns) -> Self {
        let mut sources = HashMap::with_capacity(project.sources.len());
        for source in &project.sources {
            sources.entry(source.name.as_str()).or_insert(source);
        }
        let mut models = HashMap::with_capacity(project.models.len());
        for model in &project.models {
            models.entry(model.name.as_str()).or_insert(model);
        }
        let tested = project.tests.iter().map(|test| test.model.as_str()).collect();
        let facts = Facts::gather(project, resolution, columns);
        let runners = Runners::new(project, resolution, columns);
        let executed = facts.iter().filter(|facts| facts.resolved.process == Some(Process::KafkaStreams));
        let plans =
            executed.map(|facts| (facts.model.name.as_str(), runners.plan(facts.model, facts.resolved))).collect();
        Self { project, columns, sources, models, facts, tested, plans, circles: runners.circles() }
    }

    pub fn source_hint(&self, name: &str) -> Option<String> {
        crate::codes::suggest::hint(name, "source", self.project.sources.iter().map(|source| source.name.as_str()))
    }

    pub fn model_hint(&self, name: &str) -> Option<String> {
        crate::codes::suggest::hint(name, "model", self.project.models.iter().map(|model| model.name.as_str()))
    }

    pub fn declares(&self, reference: &Reference) -> bool {
        match reference {
            Reference::Source(name) => self.sources.contains_key(name.as_str()),
            Reference::Model(name) => self.models.contains_key(name.as_str()),
        }
    }
}

/// A finding in a part of the project that is no declaration of its own; it is located by its logical path.
pub(super) fn at_path(code: Code, path: &str, message: String) -> Diagnostic {
    Diagnostic::new(code, message).at(Location::named(path)).path(path.replace('.', " → "))
}

/// `'a', 'b'`
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// ` at file:line:column`, when it is known.
pub(super) fn place(origin: &Origin) -> String {
    origin.location().map_or_else(String::new, |location| format!(" at {location}"))
}

/// One pass.
pub(super) type Pass = fn(&Ctx, &mut Diagnostics);
