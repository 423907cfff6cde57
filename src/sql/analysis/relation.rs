//! Relations while a query is read: their columns, and what the joins of FROM make of them.

use std::sync::Arc;

use super::super::ast::{self, Condition, JoinKind, Name};
use super::super::lex::Span;
use super::super::types::SqlType;
use super::scope::Scope;
use super::*;

/// A column in scope.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: Option<Arc<str>>,
    pub data_type: SqlType,
    pub time: Time,
    pub origins: Option<Vec<Dependency>>,
    pub bound: Option<Bound>,
    pub rank: Option<Rank>,
    pub span: Span,
}

/// Which bound of a window a column is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    Start,
    End,
    Time,
}

/// A column that numbers the rows of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rank {
    pub of_window: bool,
    /// By a time attribute, ascending.
    pub by_time: bool,
}

impl Column {
    pub fn plain(name: Option<Arc<str>>, data_type: SqlType, origins: Option<Vec<Dependency>>, span: Span) -> Self {
        Self { name, data_type, time: Time::None, origins, bound: None, rank: None, span }
    }

    pub fn output(self) -> OutputColumn {
        OutputColumn {
            name: self.name,
            data_type: self.data_type,
            time: self.time,
            origins: self.origins,
            span: self.span,
        }
    }
}

/// A table in scope.
#[derive(Clone, Default, Debug)]
pub(super) struct Relation {
    pub alias: Option<String>,
    pub columns: Vec<Column>,
    /// It may have more columns than these.
    pub opaque: bool,
    /// The input that it is, unchanged.
    pub input: Option<usize>,
    pub updating: Option<Construct>,
    /// It is looked up for each row of what stands before it.
    pub lateral: bool,
    /// It is read as of a time.
    pub versioned: bool,
    /// Its columns cannot be told apart by name from those of the table it is joined with.
    pub merged: Vec<Arc<str>>,
    /// How many columns it has is not certain.
    pub guessed: bool,
}

impl Relation {
    pub fn unknown() -> Self {
        Self { opaque: true, ..Self::default() }
    }

    pub fn renamed(mut self, alias: Option<&Name>, columns: &[Name]) -> Self {
        if let Some(alias) = alias {
            self.alias = Some(alias.text.clone());
        }
        if columns.is_empty() {
            return self;
        }
        if self.opaque {
            self.columns = columns.iter().map(|name| Column::plain(None, SqlType::Unknown, None, name.span)).collect();
            self.opaque = false;
        }
        self.input = None;
        for (column, name) in self.columns.iter_mut().zip(columns) {
            column.name = Some(name.text.as_str().into());
        }
        self
    }
}

impl Analyzer<'_> {
    /// The relations of FROM, in order.
    pub(super) fn from(&mut self, from: &ast::From, outer: Option<&Scope<'_>>) -> Vec<Relation> {
        let mut scope = Scope { outer, ..Scope::default() };
        let first = self.table(&from.first, &scope);
        scope.relations.extend(first);
        for join in &from.joins {
            let mut right = self.table(&join.table, &scope);
            let left = scope.relations.len();
            let known: usize = scope.relations.iter().map(|relation| relation.columns.len()).sum();
            for relation in right.iter_mut().filter(|_| known > 4 * super::select::MAX_COLUMNS) {
                *relation = Relation { alias: relation.alias.take(), ..Relation::unknown() };
            }
            let lateral = right.iter().any(|relation| relation.lateral || relation.versioned);
            scope.relations.extend(right);
            let mut bounded = lateral;
            match &join.condition {
                Condition::On(condition) => {
                    let found = self.expr(condition, &scope);
                    self.influence(&found.origins, Influence::Join);
                    self.condition(condition, &found, "ON");
                    self.no_folding(condition, "ON");
                    bounded |= self.is_bounded(condition, &scope, left);
                }
                Condition::Using(names) => {
                    for name in names {
                        let text: Arc<str> = name.text.as_str().into();
                        for side in [0..left, left..scope.relations.len()] {
                            let part = scope.relations.get(side).unwrap_or_default();
                            let columns = part.iter().flat_map(|relation| &relation.columns);
                            let column = columns.into_iter().find(|column| column.name.as_deref() == Some(&*text));
                            let origins = column.and_then(|column| column.origins.clone());
                            self.influence(&origins, Influence::Join);
                        }
                        scope.relations[left].merged.push(text);
                    }
                }
                Condition::None if join.natural => {
                    let names: Vec<Arc<str>> = scope.relations[..left]
                        .iter()
                        .flat_map(|r| &r.columns)
                        .filter_map(|c| c.name.clone())
                        .collect();
                    scope.relations[left].merged.extend(names);
                }
                Condition::None => {}
            }
            self.join(join, bounded, &mut scope.relations, left);
        }
        scope.relations
    }

    fn join(&mut self, join: &ast::Join, bounded: bool, relations: &mut [Relation], left: usize) {
        if bounded {
            return;
        }
        // A comma or a cross join may get its bounds from WHERE.
        let conditional = match join.kind {
            JoinKind::Comma | JoinKind::Cross => false,
            JoinKind::Inner => !matches!(join.condition, Condition::None),
            JoinKind::Left | JoinKind::Right | JoinKind::Full => true,
        };
        if !conditional {
            return;
        }
        self.unbounded(join.span, "a join without time bounds");
        let outer = match join.kind {
            JoinKind::Left | JoinKind::Right | JoinKind::Full => true,
            JoinKind::Comma | JoinKind::Cross | JoinKind::Inner => false,
        };
        for relation in relations.iter_mut() {
            for column in &mut relation.columns {
                column.time = Time::None;
            }
        }
        if outer {
            let construct = Construct { span: join.span, what: "an outer join without time bounds" };
            relations[left].updating.get_or_insert(construct);
        }
    }

    /// Whether a condition bounds the time between the two sides, or may do so.
    fn is_bounded(&mut self, condition: &ast::Expr, scope: &Scope<'_>, left: usize) -> bool {
        let mut bounds = Vec::new();
        for conjunct in super::select::conjuncts(condition) {
            let (a, b) = match &conjunct.node {
                ast::Node::Compare(_, a, b) => (&**a, vec![&**b]),
                ast::Node::Between { expr, low, high, .. } => (&**expr, vec![&**low, &**high]),
                _ => continue,
            };
            for b in b {
                let (x, y) = (scope.times(a, left), scope.times(b, left));
                if x.unknown || y.unknown || (x.left && y.right) || (x.right && y.left) {
                    return true;
                }
                if x.bound.is_some() && x.bound == y.bound {
                    bounds.extend(x.bound);
                }
            }
        }
        bounds.contains(&Bound::Start) && bounds.contains(&Bound::End)
    }
}

/// The origins of something made of a column.
pub(super) fn transformed(origins: Option<Vec<Dependency>>, kind: Kind) -> Option<Vec<Dependency>> {
    let mut origins = origins?;
    for dependency in &mut origins {
        dependency.kind = dependency.kind.max(kind);
    }
    Some(origins)
}

/// Both; the larger kind where they meet.
pub(super) fn merged(a: Option<Vec<Dependency>>, b: Option<Vec<Dependency>>) -> Option<Vec<Dependency>> {
    let (mut a, b) = (a?, b?);
    for dependency in b {
        match a.binary_search_by(|known| known.base.cmp(&dependency.base)) {
            Ok(at) => a[at].kind = a[at].kind.max(dependency.kind),
            Err(at) => a.insert(at, dependency),
        }
    }
    Some(a)
}
