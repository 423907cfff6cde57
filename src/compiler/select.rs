//! The part of a project that a direct apply or a listing is limited to: models closed over what feeds them.

use std::collections::BTreeSet;

use crate::codes::{Code, Diagnostic, suggest};
use crate::project::model::{OwnershipMode, Reference};

use super::artifact::{Artifacts, Ownership};
use super::{Compiled, Manifest, NodeType};

/// Selected models, closed over everything upstream of them, and the sources that they read directly.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Closure {
    pub models: BTreeSet<String>,
    pub sources: BTreeSet<String>,
}

/// Reads a `--select` expression: `tag:<tag>`. E902 for any other.
pub fn parse_tag(expression: &str) -> Result<&str, Diagnostic> {
    expression.strip_prefix("tag:").filter(|tag| !tag.trim().is_empty()).ok_or_else(|| {
        Diagnostic::new(Code::E902Usage, format!("unsupported selection '{expression}'"))
            .suggest("Use --select tag:<tag> or --target <model>.")
    })
}

impl Closure {
    /// None without `target` and `select`. E102 for an unknown model, E208 when nothing is selected, E418 when the project
    /// declares a removal, which only a reviewed plan may carry out.
    pub fn resolve(
        compiled: &Compiled,
        target: Option<&str>,
        select: Option<&str>,
    ) -> Result<Option<Self>, Diagnostic> {
        let tag = select.map(parse_tag).transpose()?;
        let by_target = target.map(|model| Self::of_target(compiled, model)).transpose()?;
        let by_tag = tag.map(|tag| Self::of_tag(compiled, tag)).transpose()?;
        let models = match (by_target, by_tag) {
            (None, None) => return Ok(None),
            (Some(models), None) | (None, Some(models)) => models,
            (Some(a), Some(b)) => a.intersection(&b).cloned().collect(),
        };
        if models.is_empty() {
            return Err(Diagnostic::new(Code::E208MissingConfig, "--target and --select have no model in common"));
        }
        let project = &compiled.project;
        if !project.connector_removals.is_empty() || !project.gateway_rule_removals.is_empty() {
            let message = "a project with lifecycle removals cannot be applied in part";
            return Err(Diagnostic::new(Code::E418ReviewedPlanRequired, message)
                .suggest("Save a plan with `streamt plan --out FILE` and apply it."));
        }
        Ok(Some(Self { sources: sources_of(compiled, &models), models }))
    }

    fn of_target(compiled: &Compiled, target: &str) -> Result<BTreeSet<String>, Diagnostic> {
        if compiled.model(target).is_none() {
            let known = compiled.models.iter().map(|model| model.name.as_str());
            return Err(Diagnostic::new(Code::E102ModelNotFound, format!("Model '{target}' not found"))
                .suggest_opt(suggest::hint(target, "model", known)));
        }
        Ok(with_upstream(compiled, [target]))
    }

    fn of_tag(compiled: &Compiled, tag: &str) -> Result<BTreeSet<String>, Diagnostic> {
        let tagged = compiled.project.models.iter().filter(|model| model.tags.iter().any(|own| own == tag));
        let models = with_upstream(compiled, tagged.map(|model| model.name.as_str()));
        if models.is_empty() {
            let known = compiled.project.models.iter().flat_map(|model| &model.tags).map(String::as_str);
            return Err(Diagnostic::new(Code::E208MissingConfig, format!("no model has the tag '{tag}'"))
                .suggest_opt(suggest::hint(tag, "tag", known)));
        }
        Ok(models)
    }

    /// Whether an artifact of this owner stays. External ones always do, so that collisions are still seen.
    pub fn keeps(&self, ownership: &Ownership) -> bool {
        ownership.mode == OwnershipMode::External || self.owns(&ownership.name)
    }

    /// Whether a selected model or one of its sources has this name.
    pub fn owns(&self, name: &str) -> bool {
        self.models.contains(name) || self.sources.contains(name)
    }

    /// The artifacts that stay; removals never do.
    pub fn artifacts(&self, all: &Artifacts) -> Artifacts {
        fn kept<T: Clone>(closure: &Closure, items: &[T], owner: impl Fn(&T) -> &Ownership) -> Vec<T> {
            items.iter().filter(|item| closure.keeps(owner(item))).cloned().collect()
        }
        Artifacts {
            schemas: kept(self, &all.schemas, |artifact| &artifact.ownership),
            topics: kept(self, &all.topics, |artifact| &artifact.ownership),
            flink_jobs: kept(self, &all.flink_jobs, |artifact| &artifact.ownership),
            test_jobs: kept(self, &all.test_jobs, |artifact| &artifact.ownership),
            connectors: kept(self, &all.connectors, |artifact| &artifact.ownership),
            gateway_rules: kept(self, &all.gateway_rules, |artifact| &artifact.ownership),
            kafka_streams_jobs: kept(self, &all.kafka_streams_jobs, |artifact| &artifact.ownership),
            connector_removals: Vec::new(),
            gateway_rule_removals: Vec::new(),
        }
    }

    /// The manifest restricted to the selection; exposures and graph stay whole. `artifacts` come from [`Self::artifacts`].
    pub fn manifest<'a>(&self, compiled: &'a Compiled, artifacts: &'a Artifacts) -> Manifest<'a> {
        let mut manifest = Manifest::of(&compiled.project, &compiled.dag, artifacts);
        manifest.sources.retain(|source| self.sources.contains(&source.name));
        manifest.models.retain(|model| self.models.contains(&model.name));
        manifest.tests.retain(|test| self.owns(&test.model));
        manifest
    }
}

fn with_upstream<'a>(compiled: &'a Compiled, starts: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let mut models = BTreeSet::new();
    let mut waiting: Vec<&str> = starts.into_iter().collect();
    while let Some(name) = waiting.pop() {
        let Some(node) = compiled.dag.nodes.get(name) else { continue };
        // Only through models: what an exposure writes into a source is not streamt's to build.
        let new = match node.node_type {
            NodeType::Model => models.insert(name.to_owned()),
            NodeType::Source | NodeType::Exposure => false,
        };
        if new {
            waiting.extend(node.upstream.iter().map(String::as_str));
        }
    }
    models
}

/// Direct sources of the models, from SQL and from `from`.
fn sources_of(compiled: &Compiled, models: &BTreeSet<String>) -> BTreeSet<String> {
    let selected = compiled.models.iter().filter(|model| models.contains(&model.name));
    let read = selected.flat_map(|model| {
        let declared = compiled.project.models.get(model.declaration).and_then(|model| model.from.as_ref());
        model.dependencies.iter().chain(declared.into_iter().flatten())
    });
    let sources = read.filter_map(|reference| match reference {
        Reference::Source(name) => Some(name.clone()),
        Reference::Model(_) => None,
    });
    sources.collect()
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
