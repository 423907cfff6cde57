//! What a query gives, from its tree and the columns of its inputs: names, types and origins of its columns, what it filters
//! and groups by, whether its rows are updated, what state it keeps, and which columns it names that are nowhere. It knows
//! what it does not know: a type or an origin that cannot be told is unknown, and nothing is concluded from it.

mod arity;
mod expr;
mod functions;
mod refusals;
mod relation;
mod scope;
mod select;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ast::Query;
use super::lex::Span;
use super::types::SqlType;

pub use refusals::{Folding, Refusal};
use relation::Relation;

/// A table that a query may read by `source()` or `ref()`.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: String,
    pub model: bool,
    /// None = not known.
    pub columns: Option<Vec<InputColumn>>,
    /// Its rows are updated by key.
    pub upsert: bool,
}

#[derive(Clone, Debug)]
pub struct InputColumn {
    pub name: Arc<str>,
    pub data_type: SqlType,
    pub time: InputTime,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputTime {
    None,
    Event,
    Processing,
}

/// What a query is read with.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    pub inputs: &'a [Input],
    /// Return types of declared functions, by upper-cased name.
    pub functions: &'a BTreeMap<String, SqlType>,
    /// Declared outputs of ML models, by name.
    pub models: &'a BTreeMap<String, Vec<(String, SqlType)>>,
}

/// How a column of the output depends on one of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Identity,
    Transform,
    Aggregate,
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Transform => "transform",
            Self::Aggregate => "aggregate",
        }
    }
}

/// A column of an input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Base {
    /// Index in the environment's inputs.
    pub input: usize,
    pub column: Arc<str>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependency {
    pub base: Base,
    pub kind: Kind,
}

/// How a column decides about rows without being in them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Influence {
    Filter,
    Join,
    GroupBy,
    Sort,
    Window,
    Conditional,
}

impl Influence {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Join => "join",
            Self::GroupBy => "group_by",
            Self::Sort => "sort",
            Self::Window => "window",
            Self::Conditional => "conditional",
        }
    }
}

/// Why origins are not all known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Gap {
    InputColumnsUnknown,
    UnsupportedTableFunction,
    UnsupportedClause,
    AmbiguousColumn,
    UnparsedSql,
}

impl Gap {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InputColumnsUnknown => "input_columns_unknown",
            Self::UnsupportedTableFunction => "unsupported_table_function",
            Self::UnsupportedClause => "unsupported_clause",
            Self::AmbiguousColumn => "ambiguous_column",
            Self::UnparsedSql => "unparsed_sql",
        }
    }
}

/// Where a time attribute comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Time {
    None,
    /// An input's event time, passed on unchanged.
    Event(Base),
    /// `window_time`, or the row time of a legacy window.
    Window,
    Processing,
}

/// One column of the output.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputColumn {
    /// None: an expression without alias.
    pub name: Option<Arc<str>>,
    pub data_type: SqlType,
    pub time: Time,
    /// Sorted; none = not known.
    pub origins: Option<Vec<Dependency>>,
    /// The item that gives it.
    pub span: Span,
}

/// A construct of the query and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Construct {
    pub span: Span,
    pub what: &'static str,
}

/// A column that is named and is nowhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    pub name: String,
    pub span: Span,
    /// The input that lacks it; none when it may be any of several.
    pub input: Option<usize>,
    /// Names to choose from.
    pub known: Vec<Arc<str>>,
    /// Set when columns of it are named, as if it was a table: the tables in sight.
    pub tables: Option<Vec<SeenTable>>,
}

/// A table as a query calls it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenTable {
    pub name: String,
    pub input: Option<usize>,
}

/// A table that neither `source()` nor `ref()` nor the query itself names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unnamed {
    /// As written, its parts joined by dots.
    pub name: String,
    /// It may be a table of the project: it has no catalog and no database.
    pub bare: bool,
    pub span: Span,
}

/// What is odd about a query that can be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Oddity {
    /// A window's bound is read, and rows are folded without GROUP BY.
    WindowWithoutGroupBy,
    /// GROUP BY without the window whose bound is read.
    GroupByWithoutWindow,
    /// HAVING uses these aliases of the select list.
    HavingAlias(Vec<String>),
    /// A column that must be a time attribute and is none.
    NoTimeAttribute { column: String, user: &'static str },
}

/// What is known about a query.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Analysis {
    pub columns: Vec<OutputColumn>,
    /// Whether `columns` are all and in order.
    pub complete: bool,
    pub gaps: BTreeSet<Gap>,
    pub influences: BTreeSet<(Base, Influence)>,
    pub missing: Vec<Missing>,
    pub unnamed: Vec<Unnamed>,
    pub refusals: Vec<(Refusal, Span)>,
    pub oddities: Vec<(Oddity, Span)>,
    /// What makes rows of the result be updated.
    pub updating: Option<Construct>,
    /// What keeps state for ever.
    pub unbounded: Option<Construct>,
}

impl Analysis {
    /// Names of all columns, when each is known.
    pub fn names(&self) -> Option<Vec<&str>> {
        self.complete.then(|| self.columns.iter().map(|column| column.name.as_deref()).collect())?
    }

    /// Whether every origin is known.
    pub fn lineage_is_complete(&self) -> bool {
        self.gaps.is_empty() && self.complete && self.columns.iter().all(|column| column.origins.is_some())
    }
}

/// Analyses a query. Total: it never fails, it only knows less.
pub fn analyse(query: &Query, environment: Environment<'_>) -> Analysis {
    let mut analyzer = Analyzer::new(environment);
    let relation = analyzer.query(query, None);
    let mut found = analyzer.found;
    found.complete = !relation.opaque;
    if relation.opaque && found.gaps.is_empty() {
        found.gaps.insert(Gap::InputColumnsUnknown);
    }
    found.updating = relation.updating;
    found.columns = relation.columns.into_iter().map(relation::Column::output).collect();
    found
}

struct Analyzer<'a> {
    environment: Environment<'a>,
    found: Analysis,
    /// Common tables that can be seen, the nearest last.
    ctes: Vec<(String, Relation)>,
    /// Named windows in scope: what [`Analyzer::window_spec`] found of each.
    windows: Vec<(String, (bool, bool))>,
    /// Where the select list being read names a window's bound.
    bounds_read: Option<Span>,
    /// A call in the select list being read whose OVER is ordered by no time.
    reordered: Option<Span>,
    /// Below the outermost query.
    nested: bool,
}

impl<'a> Analyzer<'a> {
    fn new(environment: Environment<'a>) -> Self {
        Self {
            environment,
            found: Analysis::default(),
            ctes: Vec::new(),
            windows: Vec::new(),
            bounds_read: None,
            reordered: None,
            nested: false,
        }
    }

    fn gap(&mut self, gap: Gap) {
        self.found.gaps.insert(gap);
    }

    fn unbounded(&mut self, span: Span, what: &'static str) {
        self.found.unbounded.get_or_insert(Construct { span, what });
    }

    fn influence(&mut self, origins: &Option<Vec<Dependency>>, influence: Influence) {
        for dependency in origins.iter().flatten() {
            self.found.influences.insert((dependency.base.clone(), influence));
        }
    }
}

/// The type of an expression over the columns of one table, as of a computed column.
pub fn expression_type(text: &str, input: &Input) -> SqlType {
    let Ok(tokens) = super::lex::tokenize(text) else { return SqlType::Unknown };
    let tokens: Vec<super::lex::Token> = tokens.into_iter().filter(|token| !token.is_trivia()).collect();
    let Ok(expr) = super::parse::parse_expression(text, &tokens) else { return SqlType::Unknown };
    let (functions, models) = (BTreeMap::new(), BTreeMap::new());
    let environment = Environment { inputs: std::slice::from_ref(input), functions: &functions, models: &models };
    let mut analyzer = Analyzer::new(environment);
    let name = super::ast::Name { text: input.name.clone(), span: expr.span };
    let relation = super::ast::Relation::Input { name, version: None };
    let relations = vec![analyzer.explicit_table(&relation)];
    analyzer.expr(&expr, &scope::Scope { relations, ..scope::Scope::default() }).data_type
}
