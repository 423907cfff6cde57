//! Columns whose values are not shown: those with a classification, and those of models that are made of them.

use std::collections::{BTreeSet, HashMap};

use crate::compiler::ResolvedModel;
use crate::compiler::columns::Columns;
use crate::project::Project;
use crate::project::model::{Classification, Column, Reference};

/// Models between a column and the source that it comes from.
const MAX_HOPS: usize = 64;

pub struct Classified<'a> {
    project: &'a Project,
    models: &'a [ResolvedModel],
    columns: &'a Columns,
    known: HashMap<String, BTreeSet<String>>,
}

impl<'a> Classified<'a> {
    pub fn new(project: &'a Project, models: &'a [ResolvedModel], columns: &'a Columns) -> Self {
        Self { project, models, columns, known: HashMap::new() }
    }

    /// Of a source or model.
    pub fn of(&mut self, name: &str) -> BTreeSet<String> {
        self.find(name, MAX_HOPS)
    }

    fn find(&mut self, name: &str, hops: usize) -> BTreeSet<String> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let declared = |columns: &[Column]| -> BTreeSet<String> {
            let secret = |column: &&Column| column.classification.is_some_and(|class| class != Classification::Public);
            columns.iter().filter(secret).map(|column| column.name.clone()).collect()
        };
        let project = self.project;
        let mut found = match project.sources.iter().find(|source| source.name == name) {
            Some(source) => declared(&source.columns),
            None => project
                .models
                .iter()
                .find(|model| model.name == name)
                .map_or_else(BTreeSet::new, |model| declared(&model.columns)),
        };
        if let (Some(hops), Some(resolved)) = (hops.checked_sub(1), self.models.iter().find(|model| model.name == name))
        {
            found.extend(self.inherited(resolved, hops));
        }
        self.known.insert(name.to_owned(), found.clone());
        found
    }

    /// What a model makes of classified columns; what it may have made of them when that cannot be told.
    fn inherited(&mut self, resolved: &ResolvedModel, hops: usize) -> BTreeSet<String> {
        let inputs: Vec<BTreeSet<String>> = resolved
            .dependencies
            .iter()
            .map(|(Reference::Source(name) | Reference::Model(name))| self.find(name, hops))
            .collect();
        let all = || inputs.iter().flatten().cloned().collect::<BTreeSet<String>>();
        if inputs.iter().all(BTreeSet::is_empty) {
            return BTreeSet::new();
        }
        let analysis = self.columns.reading(&resolved.name).and_then(|reading| reading.analysis.as_ref().ok());
        let Some(analysis) = analysis else { return all() };
        let mut found = if analysis.complete { BTreeSet::new() } else { all() };
        for column in &analysis.columns {
            let of_classified = column.origins.as_ref().is_none_or(|origins| {
                let of = |input: usize, name: &str| inputs.get(input).is_some_and(|input| input.contains(name));
                origins.iter().any(|origin| of(origin.base.input, &origin.base.column))
            });
            found.extend(column.name.as_ref().filter(|_| of_classified).map(ToString::to_string));
        }
        found
    }
}
