//! Expressions: their type, and the columns that they are made of.

use super::super::ast::*;
use super::super::types::SqlType;
use super::functions::{self, Use};
use super::relation::{Column, Rank, Relation, merged, transformed};
use super::scope::{Lookup, Scope};
use super::*;

/// Names that tables may have without declaring them.
const PSEUDO: [(&str, SqlType); 7] = [
    ("$rowtime", SqlType::TimestampLtz(3)),
    ("rowtime", SqlType::Timestamp(3)),
    ("$proctime", SqlType::TimestampLtz(3)),
    ("proctime", SqlType::TimestampLtz(3)),
    ("window_start", SqlType::Timestamp(3)),
    ("window_end", SqlType::Timestamp(3)),
    ("window_time", SqlType::Timestamp(3)),
];

/// More names than this that are nowhere are not told one by one.
const MAX_MISSING: usize = 50;

impl Analyzer<'_> {
    /// The value of an expression, as a column without a name.
    pub(super) fn expr(&mut self, expr: &Expr, scope: &Scope<'_>) -> Column {
        let boolean = |origins| Column::plain(None, SqlType::Boolean, transformed(origins, Kind::Transform), expr.span);
        match &expr.node {
            Node::Path(path) => self.path(expr, path, scope),
            Node::Literal(literal) => Column::plain(None, literal_type(literal), Some(Vec::new()), expr.span),
            Node::Interval => Column::plain(None, SqlType::Unknown, Some(Vec::new()), expr.span),
            Node::Sign(operand) => self.derived(operand, scope),
            Node::Not(operand) => {
                let found = self.expr(operand, scope);
                self.condition(operand, &found, "NOT");
                boolean(found.origins)
            }
            Node::Logic(operands, kind) => {
                let mut origins = Some(Vec::new());
                for operand in operands {
                    let found = self.expr(operand, scope);
                    let clause = match kind {
                        Logic::And => "AND",
                        Logic::Or => "OR",
                    };
                    self.condition(operand, &found, clause);
                    origins = merged(origins, found.origins);
                }
                boolean(origins)
            }
            Node::Test(operands) => boolean(self.all(operands, scope).1),
            Node::Compare(_, a, b) => boolean(self.both(a, b, scope)),
            Node::Between { expr, low, high, .. } => {
                let bounds = self.both(low, high, scope);
                boolean(merged(self.expr(expr, scope).origins, bounds))
            }
            Node::Arithmetic(first, rest) => self.arithmetic(expr, first, rest, scope),
            Node::InQuery { expr: operand, query, .. } | Node::Quantified { expr: operand, query, .. } => {
                let found = self.expr(operand, scope);
                let wanted = match (&operand.node, &found.data_type) {
                    (Node::Row(parts), _) => Some(parts.len()),
                    (_, SqlType::Row(_) | SqlType::Unknown) => None,
                    (_, _) => Some(1),
                };
                let (inner, relation) = self.inner(query, scope);
                self.inner_width(&relation, wanted, true, operand.span);
                boolean(merged(found.origins, inner.origins))
            }
            Node::Exists(query) => {
                self.inner(query, scope);
                boolean(Some(Vec::new()))
            }
            Node::Case { operand, branches, otherwise } => {
                self.case(expr, operand.as_deref(), branches, otherwise.as_deref(), scope)
            }
            Node::Cast { expr: operand, target, .. } => {
                let found = self.expr(operand, scope);
                let same = found.data_type == *target;
                let origins = if same { found.origins } else { transformed(found.origins, Kind::Transform) };
                Column::plain(None, target.clone(), origins, expr.span)
            }
            Node::Call(call) => self.call(call, scope),
            Node::Row(parts) => {
                let (types, origins) = self.all(parts, scope);
                let fields = types.iter().enumerate().map(|(at, data_type)| (format!("EXPR${at}"), data_type.clone()));
                let data_type =
                    if types.contains(&SqlType::Unknown) { SqlType::Unknown } else { SqlType::Row(fields.collect()) };
                Column::plain(None, data_type, transformed(origins, Kind::Transform), expr.span)
            }
            Node::Array(parts) | Node::Multiset(parts) => {
                let (types, origins) = self.all(parts, scope);
                let element = functions::merge(&types);
                let data_type = match (&expr.node, element) {
                    (_, SqlType::Unknown) => SqlType::Unknown,
                    (Node::Multiset(_), element) => SqlType::Multiset(Box::new(element)),
                    (_, element) => SqlType::Array(Box::new(element)),
                };
                let data_type = if parts.is_empty() { SqlType::Unknown } else { data_type };
                Column::plain(None, data_type, transformed(origins, Kind::Transform), expr.span)
            }
            Node::Map(parts) => {
                let (types, origins) = self.all(parts, scope);
                let of = |odd: usize| -> Vec<SqlType> { types.iter().skip(odd).step_by(2).cloned().collect() };
                let data_type = match (functions::merge(&of(0)), functions::merge(&of(1))) {
                    (SqlType::Unknown, _) | (_, SqlType::Unknown) => SqlType::Unknown,
                    (key, value) => SqlType::Map(Box::new(key), Box::new(value)),
                };
                let data_type = if parts.is_empty() { SqlType::Unknown } else { data_type };
                Column::plain(None, data_type, transformed(origins, Kind::Transform), expr.span)
            }
            Node::Access(operand, accesses) => self.access(expr, operand, accesses, scope),
            Node::Subquery(query) => {
                let (inner, relation) = self.inner(query, scope);
                self.inner_width(&relation, Some(1), false, expr.span);
                Column::plain(None, inner.data_type, transformed(inner.origins, Kind::Transform), expr.span)
            }
            Node::Collected(query) => {
                let (inner, _) = self.inner(query, scope);
                Column::plain(None, SqlType::Unknown, transformed(inner.origins, Kind::Transform), expr.span)
            }
        }
    }

    /// The same type, no longer the same value.
    fn derived(&mut self, operand: &Expr, scope: &Scope<'_>) -> Column {
        let found = self.expr(operand, scope);
        Column::plain(None, found.data_type, transformed(found.origins, Kind::Transform), found.span)
    }

    fn both(&mut self, a: &Expr, b: &Expr, scope: &Scope<'_>) -> Option<Vec<Dependency>> {
        let first = self.expr(a, scope).origins;
        merged(first, self.expr(b, scope).origins)
    }

    /// Types of those that are not NULL, and what all are made of.
    fn all(&mut self, parts: &[Expr], scope: &Scope<'_>) -> (Vec<SqlType>, Option<Vec<Dependency>>) {
        let mut types = Vec::with_capacity(parts.len());
        let mut origins = Some(Vec::new());
        for part in parts {
            let found = self.expr(part, scope);
            origins = merged(origins, found.origins);
            if part.node != Node::Literal(Literal::Null) {
                types.push(found.data_type);
            }
        }
        (types, origins)
    }

    /// The first column of a sub-query, and all of it.
    fn inner(&mut self, query: &Query, scope: &Scope<'_>) -> (Column, Relation) {
        let bounds = self.bounds_read;
        let relation = self.query(query, Some(scope));
        self.bounds_read = bounds;
        let span = super::select::span_of(query);
        let first = relation.columns.first().cloned();
        (first.unwrap_or_else(|| Column::plain(None, SqlType::Unknown, None, span)), relation)
    }

    fn path(&mut self, expr: &Expr, path: &[Name], scope: &Scope<'_>) -> Column {
        let unknown = |origins| Column::plain(None, SqlType::Unknown, origins, expr.span);
        match scope.lookup(path) {
            Lookup::Column(column, parts) => {
                let mut found = Column { name: None, span: expr.span, ..column.clone() };
                if found.bound.is_some() {
                    self.bounds_read = Some(expr.span);
                }
                if parts < path.len() {
                    found =
                        Column::plain(None, found.data_type, transformed(found.origins, Kind::Transform), expr.span);
                    for field in &path[parts..] {
                        found.data_type = field_type(&found.data_type, &field.text);
                    }
                }
                found
            }
            Lookup::Open(Some(input), part) => {
                let column: Arc<str> = path[part].text.as_str().into();
                let kind = if part + 1 < path.len() { Kind::Transform } else { Kind::Identity };
                unknown(Some(vec![Dependency { base: Base { input, column }, kind }]))
            }
            Lookup::Open(None, _) | Lookup::Hidden => {
                self.gap(Gap::InputColumnsUnknown);
                unknown(None)
            }
            Lookup::Ambiguous => {
                self.gap(Gap::AmbiguousColumn);
                if let Some(name) = path.first() {
                    let tables = scope.tables_of(&name.text);
                    if tables.len() > 1 {
                        self.refuse(Refusal::Ambiguous { column: name.text.clone(), tables }, name.span);
                    }
                }
                unknown(None)
            }
            Lookup::Missing { input, part, known, tables } => {
                let name = &path[part];
                let pseudo = PSEUDO.iter().find(|(pseudo, _)| *pseudo == name.text);
                match pseudo {
                    Some((_, data_type)) => Column::plain(None, data_type.clone(), None, expr.span),
                    None => {
                        self.missing(Missing { name: name.text.clone(), span: name.span, input, known, tables });
                        unknown(None)
                    }
                }
            }
        }
    }

    pub(super) fn missing(&mut self, missing: Missing) {
        if self.found.missing.len() < MAX_MISSING && !self.found.missing.contains(&missing) {
            self.found.missing.push(missing);
        }
        self.gap(Gap::InputColumnsUnknown);
    }

    fn access(&mut self, expr: &Expr, operand: &Expr, accesses: &[Access], scope: &Scope<'_>) -> Column {
        let found = self.expr(operand, scope);
        let (mut data_type, mut origins) = (found.data_type, found.origins);
        for access in accesses {
            data_type = match access {
                Access::Field(name) => field_type(&data_type, &name.text),
                Access::Index(index) => {
                    origins = merged(origins, self.expr(index, scope).origins);
                    match data_type {
                        SqlType::Array(element) => *element,
                        SqlType::Map(_, value) => *value,
                        _ => SqlType::Unknown,
                    }
                }
            };
        }
        Column::plain(None, data_type, transformed(origins, Kind::Transform), expr.span)
    }

    fn arithmetic(&mut self, expr: &Expr, first: &Expr, rest: &[(Operator, Expr)], scope: &Scope<'_>) -> Column {
        let found = self.expr(first, scope);
        let (mut data_type, mut origins) = (found.data_type, found.origins);
        let mut interval = is_interval(first);
        for (operator, operand) in rest {
            let right = self.expr(operand, scope);
            origins = merged(origins, right.origins);
            let right_interval = is_interval(operand);
            data_type = match (interval, right_interval) {
                (false, true) => functions::shifted(&data_type),
                (true, false) => functions::shifted(&right.data_type),
                (true, true) => SqlType::Unknown,
                (false, false) => functions::arithmetic(&data_type, *operator, &right.data_type),
            };
            interval = interval && (right_interval || data_type == SqlType::Unknown);
        }
        Column::plain(None, data_type, transformed(origins, Kind::Transform), expr.span)
    }

    fn case(
        &mut self,
        expr: &Expr,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Column {
        for condition in operand.into_iter().chain(branches.iter().map(|(condition, _)| condition)) {
            let found = self.expr(condition, scope);
            self.influence(&found.origins, Influence::Conditional);
            if operand.is_none() {
                self.condition(condition, &found, "CASE WHEN");
            }
        }
        let mut types = Vec::new();
        let mut origins = Some(Vec::new());
        for branch in branches.iter().map(|(_, result)| result).chain(otherwise) {
            let found = self.expr(branch, scope);
            origins = merged(origins, found.origins);
            if branch.node != Node::Literal(Literal::Null) {
                types.push(found.data_type);
            }
        }
        Column::plain(None, functions::merge(&types), transformed(origins, Kind::Transform), expr.span)
    }

    fn call(&mut self, call: &Call, scope: &Scope<'_>) -> Column {
        let mut types = Vec::new();
        let mut origins = Some(Vec::new());
        for argument in &call.args {
            match &argument.value {
                ArgValue::Expr(expr) => {
                    let found = self.expr(expr, scope);
                    origins = merged(origins, found.origins);
                    let dropped = expr.node == Node::Literal(Literal::Null) && MERGING.contains(&call.name.as_str());
                    if !dropped {
                        types.push(found.data_type);
                    }
                }
                ArgValue::Table { .. } | ArgValue::Descriptor(_) | ArgValue::Model(_) => {
                    self.gap(Gap::UnsupportedTableFunction);
                    origins = None;
                }
                ArgValue::Word => {}
            }
        }
        for item in &call.order_within {
            let found = self.expr(&item.expr, scope);
            self.influence(&found.origins, Influence::Sort);
        }
        if let Some(filter) = &call.filter {
            let found = self.expr(filter, scope);
            self.influence(&found.origins, Influence::Filter);
            self.condition(filter, &found, "FILTER");
        }
        self.arguments(call, &types);
        let rank = call.over.as_ref().and_then(|over| self.over(over, scope));
        if rank.is_some_and(|rank| !is_rank(&call.name) && !rank.by_time && !rank.of_window) {
            self.reordered.get_or_insert(call.span);
        }
        let rank = rank.filter(|_| is_rank(&call.name));
        let folds = call.over.is_some() || functions::use_of(&call.name) == Use::Aggregate;
        let kind = if folds { Kind::Aggregate } else { Kind::Transform };
        if functions::is_window_accessor(&call.name) {
            self.bounds_read = Some(call.span);
        }
        let mut found = Column::plain(None, self.call_type(call, &types), transformed(origins, kind), call.span);
        found.rank = rank;
        found.time = match call.name.as_str() {
            "TUMBLE_ROWTIME" | "HOP_ROWTIME" | "SESSION_ROWTIME" | "MATCH_ROWTIME" => Time::Window,
            "PROCTIME" | "TUMBLE_PROCTIME" | "HOP_PROCTIME" | "SESSION_PROCTIME" | "MATCH_PROCTIME" => Time::Processing,
            _ => Time::None,
        };
        found
    }

    fn call_type(&self, call: &Call, types: &[SqlType]) -> SqlType {
        if let Some(returning) = &call.returning {
            return returning.clone();
        }
        if let Some(declared) = self.environment.functions.get(&call.name.to_ascii_uppercase()) {
            return declared.clone();
        }
        match call.name.as_str() {
            "ROUND" | "TRUNCATE" => {
                let digits = match call.args.get(1).map(|argument| &argument.value) {
                    None => Some(0),
                    Some(ArgValue::Expr(Expr { node: Node::Literal(Literal::Number(text)), .. })) => text.parse().ok(),
                    Some(_) => None,
                };
                functions::rounded(types.first().cloned().unwrap_or(SqlType::Unknown), digits)
            }
            "CEIL" | "CEILING" | "FLOOR" if call.unit.is_some() => types.first().cloned().unwrap_or(SqlType::Unknown),
            name => functions::result(name, types),
        }
    }

    fn over(&mut self, over: &Over, scope: &Scope<'_>) -> Option<Rank> {
        let window = match over {
            Over::Window(window) => window,
            Over::Named(name) => {
                let index = self.windows.iter().rposition(|(known, _)| *known == name.text)?;
                let (partition, order) = self.windows[index].1;
                return Some(Rank { of_window: partition, by_time: order });
            }
        };
        let (of_window, by_time) = self.window_spec(window, scope);
        Some(Rank { of_window, by_time })
    }

    /// Whether the partition holds a window, and whether the order begins with an ascending time.
    pub(super) fn window_spec(&mut self, window: &Window, scope: &Scope<'_>) -> (bool, bool) {
        let bounds = self.bounds_read;
        let mut found = Vec::new();
        for key in &window.partition {
            let column = self.expr(key, scope);
            self.influence(&column.origins, Influence::Window);
            found.extend(column.bound);
        }
        let mut by_time = window.order.is_empty();
        for (index, item) in window.order.iter().enumerate() {
            let column = self.expr(&item.expr, scope);
            self.influence(&column.origins, Influence::Window);
            let unknown = column.data_type == SqlType::Unknown;
            by_time |= index == 0 && (unknown || (column.time != Time::None && !item.descending));
        }
        self.bounds_read = bounds;
        let of_window = found.contains(&super::relation::Bound::Start) && found.contains(&super::relation::Bound::End);
        (of_window, by_time)
    }
}

const MERGING: [&str; 6] = ["COALESCE", "IFNULL", "NVL", "GREATEST", "LEAST", "IF"];

fn is_rank(name: &str) -> bool {
    matches!(name, "ROW_NUMBER" | "RANK" | "DENSE_RANK")
}

fn literal_type(literal: &Literal) -> SqlType {
    match literal {
        Literal::Null => SqlType::Unknown,
        Literal::Boolean => SqlType::Boolean,
        Literal::String => SqlType::String,
        Literal::Binary => SqlType::Bytes,
        Literal::Number(text) => functions::number(text),
        Literal::Date => SqlType::Date,
        Literal::Time => SqlType::Time(0),
        Literal::Timestamp { digits } => SqlType::Timestamp(*digits),
    }
}

fn field_type(data_type: &SqlType, name: &str) -> SqlType {
    match data_type {
        SqlType::Row(fields) => {
            fields.iter().find(|(field, _)| field == name).map_or(SqlType::Unknown, |(_, data_type)| data_type.clone())
        }
        _ => SqlType::Unknown,
    }
}

fn is_interval(expr: &Expr) -> bool {
    match &expr.node {
        Node::Interval => true,
        Node::Cast { of_interval, .. } => *of_interval,
        Node::Sign(operand) => is_interval(operand),
        Node::Arithmetic(first, rest) => is_interval(first) || rest.iter().all(|(_, operand)| is_interval(operand)),
        _ => false,
    }
}
