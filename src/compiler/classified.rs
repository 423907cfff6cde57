//! Columns whose values are not shown: those with a classification or a mask, and those that are made of them. What cannot
//! be told counts as made of them.

use std::collections::{BTreeSet, HashMap};

use crate::project::Project;
use crate::project::model::{Classification, Column, Model};

use super::artifact::FlinkJobArtifact;
use super::columns::{Columns, order};
use super::resolve::{Names, ResolvedModel};

/// What stands in the place of a value that is not shown.
pub const REDACTED: &str = "<redacted>";

/// The columns of one source or model whose values are not shown.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Hidden {
    names: BTreeSet<String>,
    /// Every other column too, but for these.
    but: Option<BTreeSet<String>>,
}

/// Of what is not known at all.
static EVERYTHING: Hidden = Hidden { names: BTreeSet::new(), but: Some(BTreeSet::new()) };

impl Hidden {
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { names: names.into_iter().map(str::to_owned).collect(), but: None }
    }

    /// A column that holds a hidden one is hidden with it.
    pub fn contains(&self, column: &str) -> bool {
        let inside = |name: &String| name.strip_prefix(column).is_some_and(|rest| rest.starts_with('.'));
        self.names.contains(column)
            || self.names.iter().any(inside)
            || self.but.as_ref().is_some_and(|but| !but.contains(column))
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.but.is_none()
    }
}

/// The hidden columns of every source and model.
pub struct Classified {
    tables: HashMap<String, Hidden>,
}

impl Classified {
    pub fn new(project: &Project, models: &[ResolvedModel], columns: &Columns) -> Self {
        let names = Names::of(project);
        let mut found = Self { tables: HashMap::new() };
        for source in &project.sources {
            let hidden = Hidden { names: declared(&source.columns).into_iter().collect(), but: None };
            found.tables.entry(source.name.clone()).or_insert(hidden);
        }
        for index in order(models) {
            let resolved = &models[index];
            let Some(model) = names.model(&resolved.name) else { continue };
            let mut hidden = found.inherited(resolved, columns);
            hidden.names.extend(declared(&model.columns));
            hidden.names.extend(secured(model));
            found.tables.insert(resolved.name.clone(), hidden);
        }
        found
    }

    /// Of a source or model.
    pub fn of(&self, name: &str) -> &Hidden {
        self.tables.get(name).unwrap_or(&EVERYTHING)
    }

    /// Whether a job reads hidden values, so that what Flink says of its failure may hold some.
    pub fn read_by(&self, job: &FlinkJobArtifact, models: &[ResolvedModel]) -> bool {
        let owner = job.ownership.name.as_str();
        let resolved = models.iter().find(|model| model.name == owner);
        let inputs = resolved.into_iter().flat_map(|model| &model.dependencies);
        !self.of(owner).is_empty() || inputs.into_iter().any(|input| !self.of(input.name()).is_empty())
    }

    /// What a model makes of hidden columns; everything that it may have made of them when that cannot be told.
    fn inherited(&self, resolved: &ResolvedModel, columns: &Columns) -> Hidden {
        let inputs: Vec<&Hidden> = resolved.dependencies.iter().map(|input| self.of(input.name())).collect();
        if inputs.iter().all(|input| input.is_empty()) {
            return Hidden::default();
        }
        let analysis = columns.reading(&resolved.name).and_then(|reading| reading.analysis.as_ref().ok());
        let Some(analysis) = analysis else { return EVERYTHING.clone() };
        let (mut hidden, mut shown) = (BTreeSet::new(), BTreeSet::new());
        for column in &analysis.columns {
            let Some(name) = &column.name else { continue };
            let of_hidden = column.origins.as_ref().is_none_or(|origins| {
                let of = |input: usize, name: &str| inputs.get(input).is_none_or(|input| input.contains(name));
                origins.iter().any(|origin| of(origin.base.input, &origin.base.column))
            });
            if of_hidden { &mut hidden } else { &mut shown }.insert(name.to_string());
        }
        Hidden { names: hidden, but: (!analysis.complete).then_some(shown) }
    }
}

/// Classified columns, and those computed from them.
fn declared(columns: &[Column]) -> Vec<String> {
    let secret = |column: &Column| column.classification.is_some_and(|class| class != Classification::Public);
    let names: Vec<&str> = columns.iter().filter(|column| secret(column)).map(|column| column.name.as_str()).collect();
    let computed = |column: &Column| {
        column.expression.as_ref().is_some_and(|expression| names.iter().any(|name| mentions(expression, name)))
    };
    columns.iter().filter(|column| secret(column) || computed(column)).map(|column| column.name.clone()).collect()
}

/// Columns that the `security` block of a model classifies or masks.
fn secured(model: &Model) -> impl Iterator<Item = String> {
    model.security.iter().flat_map(|security| {
        let classified = security.classification.iter().filter(|(_, class)| **class != Classification::Public);
        let masked = security.masks().map(|(_, column, _)| column.to_owned());
        classified.map(|(name, _)| name.clone()).chain(masked)
    })
}

/// Whether an expression may name a column.
fn mentions(expression: &str, column: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    match column.chars().all(part) {
        true => expression.split(|c| !part(c)).any(|word| word == column),
        false => expression.contains(column) || expression.contains(&column.replace('`', "``")),
    }
}

#[cfg(test)]
mod tests;
