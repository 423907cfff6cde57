//! Names of columns: which table of which query level has them.

use super::super::ast::{Expr, Name, Node};
use super::super::types::SqlType;
use super::relation::{Bound, Column, Relation};
use super::*;

/// The tables that a part of a query sees, and those around it.
#[derive(Default)]
pub(super) struct Scope<'s> {
    pub relations: Vec<Relation>,
    pub outer: Option<&'s Scope<'s>>,
    /// A bare name is none of these tables' columns.
    pub qualified: bool,
    /// Columns of the select list, for the clauses behind it.
    pub aliases: Vec<Column>,
}

/// What a path names.
pub(super) enum Lookup<'s> {
    /// The column and how many parts of the path name it.
    Column(&'s Column, usize),
    /// A column of an input whose columns are not known, and the part that names it.
    Open(Option<usize>, usize),
    Ambiguous,
    /// It may be a column of several tables.
    Hidden,
    Missing {
        input: Option<usize>,
        part: usize,
        known: Vec<Arc<str>>,
        /// The part can only be a table, and these are in sight.
        tables: Option<Vec<SeenTable>>,
    },
}

/// What an expression says about time on the two sides of a join.
#[derive(Default)]
pub(super) struct Times {
    pub left: bool,
    pub right: bool,
    pub unknown: bool,
    pub bound: Option<Bound>,
}

impl<'s> Scope<'s> {
    pub fn lookup(&self, path: &[Name]) -> Lookup<'_> {
        match self.qualified(path) {
            Some(found) => found,
            None => self.bare(path),
        }
    }

    /// The tables that a column may be qualified by, the nearest first.
    pub fn tables(&self) -> Vec<SeenTable> {
        let relations = self.levels().flat_map(|scope| &scope.relations);
        let seen =
            relations.filter_map(|relation| Some(SeenTable { name: relation.alias.clone()?, input: relation.input }));
        seen.collect()
    }

    /// The named tables of the nearest level that has a column of this name, when it is in several of them and no join made
    /// one of it.
    pub fn tables_of(&self, column: &str) -> Vec<String> {
        let has = |relation: &&Relation| relation.columns.iter().any(|own| own.name.as_deref() == Some(column));
        let level =
            self.levels().filter(|scope| !scope.qualified).find(|scope| scope.relations.iter().any(|r| has(&r)));
        let relations = level.iter().flat_map(|scope| &scope.relations).filter(has);
        relations.filter_map(|relation| relation.alias.clone()).collect()
    }

    fn levels(&self) -> impl Iterator<Item = &Scope<'s>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    fn qualified(&self, path: &[Name]) -> Option<Lookup<'_>> {
        let [table, column, ..] = path else { return None };
        let of_alias = |relation: &&Relation| relation.alias.as_ref() == Some(&table.text);
        let relation = self.levels().find_map(|scope| scope.relations.iter().find(of_alias))?;
        Some(match relation.columns.iter().find(|known| known.name.as_deref() == Some(column.text.as_str())) {
            Some(found) => Lookup::Column(found, 2),
            None if relation.opaque => Lookup::Open(relation.input, 1),
            None => Lookup::Missing {
                input: relation.input,
                part: 1,
                known: names(std::slice::from_ref(relation)),
                tables: None,
            },
        })
    }

    fn bare(&self, path: &[Name]) -> Lookup<'_> {
        let Some(name) = path.first() else { return Lookup::Hidden };
        let own = |column: &&Column| column.name.as_deref() == Some(name.text.as_str());
        for scope in self.levels().filter(|scope| !scope.qualified) {
            let mut found = scope.relations.iter().flat_map(|relation| &relation.columns).filter(own);
            let opaque = scope.relations.iter().filter(|relation| relation.opaque);
            let opaque: Vec<&Relation> = opaque.collect();
            match (found.next(), found.next()) {
                (Some(only), None) => return Lookup::Column(only, 1),
                (Some(first), Some(_)) => {
                    let mut merged = scope.relations.iter().flat_map(|relation| &relation.merged);
                    let same = merged.any(|merged| **merged == *name.text);
                    return if same { Lookup::Column(first, 1) } else { Lookup::Ambiguous };
                }
                (None, _) if opaque.is_empty() => {}
                (None, _) => {
                    let around = scope.outer.is_some_and(|outer| matches!(outer.bare(path), Lookup::Column(..)));
                    return match opaque.as_slice() {
                        [only] if !around => Lookup::Open(only.input, 0),
                        _ => Lookup::Hidden,
                    };
                }
            }
        }
        if let Some(alias) = self.aliases.iter().find(own) {
            return Lookup::Column(alias, 1);
        }
        let nearest = self.levels().find(|scope| !scope.qualified).map_or(&[][..], |scope| &scope.relations);
        let input = match nearest {
            [only] => only.input,
            [] | [_, ..] => None,
        };
        // A table that is named with its catalog or database.
        let last_of_table = path.len().checked_sub(2).and_then(|at| path.get(at)).filter(|_| path.len() > 2);
        if last_of_table.is_some_and(|table| nearest.iter().any(|r| r.alias.as_ref() == Some(&table.text))) {
            return Lookup::Hidden;
        }
        let tables = (path.len() > 1).then(|| self.tables());
        Lookup::Missing { input, part: 0, known: names(nearest), tables }
    }

    /// The time attributes of an operand, by the side of the join that has them: `left` tables stand before it.
    pub fn times(&self, expr: &Expr, left: usize) -> Times {
        let mut times = Times::default();
        self.add_times(expr, left, &mut times);
        times
    }

    fn add_times(&self, expr: &Expr, left: usize, times: &mut Times) {
        match &expr.node {
            Node::Arithmetic(first, rest) => {
                self.add_times(first, left, times);
                rest.iter().for_each(|(_, operand)| self.add_times(operand, left, times));
            }
            Node::Path(path) => match self.lookup(path) {
                Lookup::Column(column, _) => {
                    let of_left = self.relations.iter().take(left);
                    let of_left = of_left.flat_map(|relation| &relation.columns).any(|own| std::ptr::eq(own, column));
                    times.bound = column.bound;
                    times.unknown |= column.data_type == SqlType::Unknown;
                    if column.time != Time::None {
                        times.left |= of_left;
                        times.right |= !of_left;
                    }
                }
                Lookup::Open(..) | Lookup::Ambiguous | Lookup::Hidden => times.unknown = true,
                Lookup::Missing { .. } => {}
            },
            Node::Literal(_)
            | Node::Interval
            | Node::Sign(_)
            | Node::Not(_)
            | Node::Logic(..)
            | Node::Compare(..)
            | Node::Between { .. }
            | Node::Test(_)
            | Node::InQuery { .. }
            | Node::Exists(_)
            | Node::Quantified { .. }
            | Node::Case { .. }
            | Node::Cast { .. }
            | Node::Call(_)
            | Node::Row(_)
            | Node::Array(_)
            | Node::Map(_)
            | Node::Multiset(_)
            | Node::Access(..)
            | Node::Subquery(_)
            | Node::Collected(_) => {}
        }
    }
}

fn names(relations: &[Relation]) -> Vec<Arc<str>> {
    relations.iter().flat_map(|relation| &relation.columns).filter_map(|column| column.name.clone()).collect()
}
