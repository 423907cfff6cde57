//! What Flink refuses in a query that can be read. Only what is certain: a function that the project declares, a column or a
//! type that is not known, a form that is not listed here decide nothing.

use super::super::ast::*;
use super::super::types::SqlType;
use super::arity::arity;
use super::relation::{Column, Relation};
use super::scope::{Lookup, Scope};
use super::walk::{children, walk};
use super::*;

/// Why Flink refuses a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// An aggregate, or a call with OVER, in a clause that is read before rows are folded or numbered.
    Misplaced {
        what: Folding,
        clause: &'static str,
    },
    /// An aggregate of an aggregate.
    NestedAggregate,
    /// A column beside GROUP BY or an aggregate that is no key.
    NotGrouped {
        column: String,
        keys: bool,
    },
    /// GROUP BY by an alias of the select list.
    GroupByAlias {
        alias: String,
    },
    /// Sides of a set operation, or rows of VALUES, of unlike width.
    Widths {
        what: &'static str,
        first: usize,
        other: usize,
    },
    /// Sides of a set operation whose columns in one place have no common type; counted from 1.
    UnlikeTypes {
        what: &'static str,
        place: usize,
        first: SqlType,
        other: SqlType,
    },
    /// A query that stands for one value, and its columns.
    NoValue {
        columns: usize,
    },
    /// A query that is searched by IN, ANY or ALL, and what is looked for.
    UnlikeSearch {
        wanted: usize,
        columns: usize,
    },
    /// A bare name that two tables have.
    Ambiguous {
        column: String,
        tables: Vec<String>,
    },
    /// An argument that must be a number.
    NoNumber {
        function: String,
        given: SqlType,
    },
    /// A condition that is no truth value.
    NoCondition {
        clause: &'static str,
        given: SqlType,
    },
    ArgumentCount {
        function: String,
        given: usize,
        least: usize,
        most: usize,
    },
}

/// What gives one value of many rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Folding {
    Aggregate,
    Over,
}

/// Findings of one query are told up to this number.
const MAX_REFUSALS: usize = 50;

/// Aggregates that nothing else is called by.
const AGGREGATES: [&str; 16] = [
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "VAR_POP",
    "VAR_SAMP",
    "COLLECT",
    "LISTAGG",
    "ARRAY_AGG",
    "FIRST_VALUE",
    "LAST_VALUE",
    "JSON_OBJECTAGG",
    "JSON_ARRAYAGG",
];

/// Of numbers alone.
const NUMERIC: [&str; 6] = ["SUM", "AVG", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP"];

impl Analyzer<'_> {
    pub(super) fn refuse(&mut self, refusal: Refusal, span: Span) {
        let found = (refusal, span);
        if self.found.refusals.len() < MAX_REFUSALS && !self.found.refusals.contains(&found) {
            self.found.refusals.push(found);
        }
    }

    fn is_declared(&self, name: &str) -> bool {
        self.environment.functions.contains_key(&name.to_ascii_uppercase())
    }

    fn is_aggregate(&self, name: &str) -> bool {
        AGGREGATES.contains(&name) && !self.is_declared(name)
    }

    /// What folds rows in an expression of this level, and where.
    fn folding(&self, expr: &Expr) -> Option<(Folding, Span)> {
        let mut found = None;
        walk(expr, &mut |expr| {
            let Node::Call(call) = &expr.node else { return };
            match call.over {
                Some(_) => found = found.or(Some((Folding::Over, call.span))),
                None if self.is_aggregate(&call.name) => found = found.or(Some((Folding::Aggregate, call.span))),
                None => {}
            }
        });
        found
    }

    /// A clause that is read before rows are folded.
    pub(super) fn no_folding(&mut self, expr: &Expr, clause: &'static str) {
        if let Some((what, span)) = self.folding(expr) {
            self.refuse(Refusal::Misplaced { what, clause }, span);
        }
    }

    /// HAVING is read behind the aggregates, and before OVER.
    pub(super) fn no_over(&mut self, expr: &Expr, clause: &'static str) {
        let mut found = None;
        walk(expr, &mut |expr| {
            if let Node::Call(call) = &expr.node
                && call.over.is_some()
            {
                found = found.or(Some(call.span));
            }
        });
        if let Some(span) = found {
            self.refuse(Refusal::Misplaced { what: Folding::Over, clause }, span);
        }
    }

    pub(super) fn condition(&mut self, expr: &Expr, found: &Column, clause: &'static str) {
        if !matches!(found.data_type, SqlType::Boolean | SqlType::Unknown) {
            self.refuse(Refusal::NoCondition { clause, given: found.data_type.clone() }, expr.span);
        }
    }

    /// The columns of a query in an expression: of one that is a value, one; of one that is searched, those looked for.
    pub(super) fn inner_width(&mut self, relation: &Relation, wanted: Option<usize>, searched: bool, span: Span) {
        let columns = relation.columns.len();
        match wanted {
            Some(wanted) if !relation.opaque && !relation.guessed && columns != wanted => self.refuse(
                if searched { Refusal::UnlikeSearch { wanted, columns } } else { Refusal::NoValue { columns } },
                span,
            ),
            Some(_) | None => {}
        }
    }

    /// Columns in the same place of two sides that no type covers.
    pub(super) fn unlike_types(&mut self, left: &[Column], right: &[Column], operator: SetOperator) {
        let what = operator.kind.as_str();
        for (place, (one, other)) in left.iter().zip(right).enumerate() {
            let (first, other) = (&one.data_type, &other.data_type);
            if let (Some(a), Some(b)) = (sort(first), sort(other))
                && a != b
            {
                let (first, other) = (first.clone(), other.clone());
                self.refuse(Refusal::UnlikeTypes { what, place: place + 1, first, other }, operator.span);
                return;
            }
        }
    }

    /// What a call is given, by the types of its arguments.
    pub(super) fn arguments(&mut self, call: &Call, types: &[SqlType]) {
        if self.is_declared(&call.name) {
            return;
        }
        if call.over.is_none() && self.is_aggregate(&call.name) {
            for argument in &call.args {
                if let ArgValue::Expr(expr) = &argument.value
                    && let Some((Folding::Aggregate, span)) = self.folding(expr)
                {
                    self.refuse(Refusal::NestedAggregate, span);
                }
            }
        }
        let plain = call.args.iter().all(|arg| arg.name.is_none() && matches!(arg.value, ArgValue::Expr(_)));
        if !plain || call.star {
            return;
        }
        let given = call.args.len();
        if let Some((least, most)) = arity(&call.name)
            && !(least..=most).contains(&given)
        {
            let function = call.name.clone();
            self.refuse(Refusal::ArgumentCount { function, given, least, most }, call.name_span);
        } else if NUMERIC.contains(&call.name.as_str())
            && let Some(given) = types.first().filter(|given| no_number(given))
        {
            let span = match call.args.first().map(|arg| &arg.value) {
                Some(ArgValue::Expr(expr)) => expr.span,
                Some(_) | None => call.span,
            };
            self.refuse(Refusal::NoNumber { function: call.name.clone(), given: given.clone() }, span);
        }
    }

    /// Columns beside GROUP BY or an aggregate that are no keys, one of each item and one of HAVING.
    pub(super) fn not_grouped(&mut self, select: &Select, scope: &Scope<'_>) {
        let item = |item: &Item| matches!(item, Item::Expr { expr, .. } if matches!(self.folding(expr), Some((Folding::Aggregate, _))));
        let folds = select.items.iter().any(item) || select.having.is_some();
        if select.group_by.is_none() && !folds {
            return;
        }
        let Some(keys) = Keys::of(select.group_by.as_ref(), scope) else { return };
        let mut found: Vec<(String, Span)> = Vec::new();
        for item in &select.items {
            match item {
                Item::Expr { expr, .. } => found.extend(self.loose(expr, true, &keys, scope)),
                Item::Star { qualifier, span } if qualifier.is_empty() => {
                    let known = scope.relations.iter().all(|relation| !relation.opaque && relation.merged.is_empty());
                    let columns = scope.relations.iter().flat_map(|relation| &relation.columns);
                    let loose = columns.filter(|_| known).find(|column| !keys.has(column));
                    found.extend(loose.and_then(|column| Some((column.name.as_deref()?.to_owned(), *span))));
                }
                Item::Star { .. } => {}
            }
        }
        if let Some(having) = &select.having {
            found.extend(self.loose(having, false, &keys, scope));
        }
        let keys = select.group_by.is_some();
        found.into_iter().for_each(|(column, span)| self.refuse(Refusal::NotGrouped { column, keys }, span));
    }

    /// The first column of an expression, outside aggregates, that is certainly no key.
    fn loose(&self, expr: &Expr, whole: bool, keys: &Keys<'_>, scope: &Scope<'_>) -> Option<(String, Span)> {
        match &expr.node {
            Node::Path(path) => {
                let Lookup::Column(column, parts) = scope.lookup(path) else { return None };
                let own =
                    scope.relations.iter().flat_map(|relation| &relation.columns).any(|c| std::ptr::eq(c, column));
                // A part of a key may be what a larger expression is made of.
                let covered = keys.has(column) || ((!whole || parts < path.len()) && keys.holds(column));
                // A window's bound beside no key of a window has a finding of its own.
                if !own || covered || (column.bound.is_some() && !keys.window()) {
                    return None;
                }
                Some((column.name.as_deref()?.to_owned(), expr.span))
            }
            Node::Call(call) => {
                let known = call.over.is_none() && !self.is_declared(&call.name) && !self.is_aggregate(&call.name);
                let scalar = known && arity(&call.name).is_some() && !NUMERIC.contains(&call.name.as_str());
                if scalar { self.loose_child(expr, keys, scope) } else { None }
            }
            _ => self.loose_child(expr, keys, scope),
        }
    }

    fn loose_child(&self, expr: &Expr, keys: &Keys<'_>, scope: &Scope<'_>) -> Option<(String, Span)> {
        let mut found = None;
        children(expr, &mut |child| {
            if found.is_none() {
                found = self.loose(child, false, keys, scope);
            }
        });
        found
    }

    /// A key that is an alias of the select list, and no column.
    pub(super) fn alias_key(&mut self, key: &Expr, scope: &Scope<'_>) {
        let Node::Path(path) = &key.node else { return };
        let [only] = path.as_slice() else { return };
        if let Lookup::Column(column, _) = scope.lookup(path)
            && scope.aliases.iter().any(|alias| std::ptr::eq(alias, column))
        {
            self.refuse(Refusal::GroupByAlias { alias: only.text.clone() }, key.span);
        }
    }
}

/// The columns of GROUP BY.
struct Keys<'s> {
    /// That are keys themselves.
    whole: Vec<&'s Column>,
    /// That are part of a key.
    parts: Vec<&'s Column>,
    /// Names of keys that cannot be told to be one column.
    names: Vec<String>,
}

impl<'s> Keys<'s> {
    /// None where a key is nowhere, which is a finding of its own.
    fn of(group: Option<&GroupBy>, scope: &'s Scope<'_>) -> Option<Self> {
        let mut keys = Self { whole: Vec::new(), parts: Vec::new(), names: Vec::new() };
        let mut nowhere = false;
        for key in group.iter().flat_map(|group| &group.keys) {
            walk(key, &mut |expr| {
                let Node::Path(path) = &expr.node else { return };
                match scope.lookup(path) {
                    Lookup::Column(column, parts) => {
                        let whole = std::ptr::eq(expr, key) && parts == path.len();
                        let list = if whole { &mut keys.whole } else { &mut keys.parts };
                        list.push(column);
                    }
                    Lookup::Missing { .. } => nowhere = true,
                    Lookup::Open(..) | Lookup::Ambiguous | Lookup::Hidden => {
                        keys.names.extend(path.iter().map(|part| part.text.clone()));
                    }
                }
            });
        }
        // Of a column that USING or NATURAL made of two, either may be named.
        let merged = scope.relations.iter().flat_map(|relation| &relation.merged);
        keys.names.extend(merged.map(|name| name.to_string()));
        (!nowhere).then_some(keys)
    }

    fn window(&self) -> bool {
        self.whole.iter().any(|key| key.bound.is_some())
    }

    fn has(&self, column: &Column) -> bool {
        let named = |name: &String| column.name.as_deref() == Some(name.as_str());
        self.whole.iter().any(|key| std::ptr::eq(*key, column)) || self.names.iter().any(named)
    }

    /// Whether a key is made of the column.
    fn holds(&self, column: &Column) -> bool {
        self.parts.iter().any(|key| std::ptr::eq(*key, column))
    }
}

/// Kinds of plain values of which none becomes another by itself.
fn sort(data_type: &SqlType) -> Option<u8> {
    match data_type {
        SqlType::Char(_) | SqlType::String | SqlType::Varchar(_) => Some(0),
        SqlType::TinyInt
        | SqlType::SmallInt
        | SqlType::Int
        | SqlType::BigInt
        | SqlType::Float
        | SqlType::Double
        | SqlType::Decimal { .. } => Some(1),
        SqlType::Boolean => Some(2),
        SqlType::Binary(_)
        | SqlType::Varbinary(_)
        | SqlType::Bytes
        | SqlType::Date
        | SqlType::Time(_)
        | SqlType::Timestamp(_)
        | SqlType::TimestampLtz(_)
        | SqlType::Array(_)
        | SqlType::Map(..)
        | SqlType::Multiset(_)
        | SqlType::Row(_)
        | SqlType::Variant
        | SqlType::Unknown => None,
    }
}

/// Whether a type is known and is none that can be summed.
fn no_number(data_type: &SqlType) -> bool {
    !data_type.is_number() && !matches!(data_type, SqlType::Variant | SqlType::Unknown)
}
