//! Queries: clause by clause to the relation that they give.

use std::sync::Arc;

use super::super::ast::*;
use super::super::lex::Span;
use super::super::types::SqlType;
use super::functions::{self, Use};
use super::relation::{Bound, Column, Relation, merged};
use super::scope::{Lookup, Scope};
use super::walk::{paths, walk};
use super::*;

/// Stars over stars double; a table with more columns than this counts as one whose columns are not known.
pub(super) const MAX_COLUMNS: usize = 2_000;

impl Analyzer<'_> {
    pub(super) fn query(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Relation {
        let seen = self.ctes.len();
        let nested = std::mem::replace(&mut self.nested, true);
        for cte in &query.ctes {
            let mut relation = self.query(&cte.query, outer);
            for (column, name) in relation.columns.iter_mut().zip(&cte.columns) {
                column.name = Some(name.text.as_str().into());
            }
            self.ctes.push((cte.name.text.clone(), relation));
        }
        self.nested = nested;
        let (mut relation, tables) = self.body(&query.body, outer);
        self.order(query, &mut relation, tables, outer);
        self.ctes.truncate(seen);
        relation.alias = None;
        relation.input = None;
        relation
    }

    fn order(&mut self, query: &Query, relation: &mut Relation, tables: Vec<Relation>, outer: Option<&Scope<'_>>) {
        if query.order_by.is_empty() {
            return;
        }
        let output = Relation { alias: None, input: None, updating: None, ..relation.clone() };
        let tables = Scope { relations: tables, outer, ..Scope::default() };
        let scope = Scope { relations: vec![output], outer: Some(&tables), ..Scope::default() };
        for (index, item) in query.order_by.iter().enumerate() {
            let found = match &item.expr.node {
                Node::Path(path) if path.len() > 1 => self.expr(&item.expr, &tables),
                _ => self.expr(&item.expr, &scope),
            };
            self.influence(&found.origins, Influence::Sort);
            let by_value = matches!(item.expr.node, Node::Path(_))
                && found.time == Time::None
                && found.data_type != SqlType::Unknown;
            if index > 0 || !by_value {
                continue;
            }
            if query.limit.is_some() {
                let construct = Construct { span: item.expr.span, what: "ORDER BY with LIMIT" };
                relation.updating.get_or_insert(construct);
            } else if !self.nested {
                self.needs_time(&item.expr, &found, "ORDER BY");
            }
        }
    }

    /// The relation of a body, and the tables that ORDER BY sees besides it.
    fn body(&mut self, body: &Body, outer: Option<&Scope<'_>>) -> (Relation, Vec<Relation>) {
        match body {
            Body::Select(select) => self.select(select, outer),
            Body::Nested(query) => (self.query(query, outer), Vec::new()),
            Body::Table(relation) => (self.explicit_table(relation), Vec::new()),
            Body::Values(rows) => (self.values(rows, outer), Vec::new()),
            Body::Set { first, rest } => {
                let mut relation = self.body(first, outer).0;
                for (operator, operand) in rest {
                    let right = self.body(operand, outer).0;
                    self.combine(&mut relation, *operator, right);
                }
                (relation, Vec::new())
            }
        }
    }

    fn combine(&mut self, left: &mut Relation, operator: SetOperator, right: Relation) {
        let updates = match (operator.kind, operator.all) {
            (SetKind::Union, true) => None,
            (SetKind::Union, false) => Some("UNION without ALL"),
            (SetKind::Intersect, _) => Some("INTERSECT"),
            (SetKind::Except, _) => Some("EXCEPT"),
        };
        if let Some(what) = updates {
            left.updating.get_or_insert(Construct { span: operator.span, what });
            self.unbounded(operator.span, what);
        }
        left.updating = left.updating.take().or(right.updating);
        let opaque = left.opaque || right.opaque;
        let (first, other) = (left.columns.len(), right.columns.len());
        let certain = !opaque && !left.guessed && !right.guessed;
        left.guessed |= right.guessed;
        if opaque || first != other {
            self.gap(if opaque { Gap::InputColumnsUnknown } else { Gap::UnsupportedClause });
            if certain {
                self.refuse(Refusal::Widths { what: operator.kind.as_str(), first, other }, operator.span);
            }
            for column in &mut left.columns {
                column.origins = None;
                column.time = Time::None;
                if !certain {
                    column.data_type = SqlType::Unknown;
                }
            }
            left.opaque |= right.opaque;
            return;
        }
        if certain {
            self.unlike_types(&left.columns, &right.columns, operator);
        }
        for (column, other) in left.columns.iter_mut().zip(right.columns) {
            column.origins = merged(column.origins.take(), other.origins);
            column.data_type = match (&column.data_type, other.data_type) {
                (SqlType::Unknown, _) | (_, SqlType::Unknown) => SqlType::Unknown,
                (one, other) => functions::merge(&[one.clone(), other]),
            };
            if column.time != other.time {
                column.time = match (&column.time, &other.time) {
                    (Time::Event(_) | Time::Window, Time::Event(_) | Time::Window) => Time::Window,
                    _ => Time::None,
                };
            }
            column.bound = column.bound.filter(|bound| other.bound == Some(*bound));
            column.rank = None;
        }
    }

    fn values(&mut self, rows: &[Vec<Expr>], outer: Option<&Scope<'_>>) -> Relation {
        let scope = Scope { outer, ..Scope::default() };
        let mut columns: Vec<Column> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let first = rows.first().map_or(0, Vec::len);
            if row.len() != first {
                let span = row.first().zip(row.last()).map(|(start, end)| start.span.to(end.span));
                let refusal = Refusal::Widths { what: "VALUES", first, other: row.len() };
                self.refuse(refusal, span.unwrap_or(Span::new(0, 0)));
            }
            for (at, expr) in row.iter().enumerate() {
                let found = self.expr(expr, &scope);
                match columns.get_mut(at) {
                    Some(column) => {
                        let null = expr.node == Node::Literal(Literal::Null);
                        if !null {
                            column.data_type = functions::merge(&[column.data_type.clone(), found.data_type]);
                        }
                    }
                    None if index == 0 => {
                        let name: Arc<str> = format!("EXPR${at}").into();
                        columns.push(Column { name: Some(name), ..found });
                    }
                    None => {}
                }
            }
        }
        Relation { columns, ..Relation::default() }
    }

    fn select(&mut self, select: &Select, outer: Option<&Scope<'_>>) -> (Relation, Vec<Relation>) {
        let outside = (self.bounds_read.take(), self.windows.len(), std::mem::replace(&mut self.nested, true));
        let reordered = self.reordered.take();
        let relations = match &select.from {
            Some(from) => self.from(from, outer),
            None => Vec::new(),
        };
        let mut updating = relations.iter().find_map(|relation| relation.updating.clone());
        let scope = Scope { relations, outer, ..Scope::default() };
        if let Some(filter) = &select.filter {
            let found = self.expr(filter, &scope);
            self.influence(&found.origins, Influence::Filter);
            self.condition(filter, &found, "WHERE");
            self.no_folding(filter, "WHERE");
            updating = updating.or_else(|| updates_of_filter(filter, &scope));
        }
        for (name, window) in &select.windows {
            let found = self.window_spec(window, &scope);
            self.windows.push((name.text.clone(), found));
        }
        let aliases: Vec<Column> = select
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Expr { alias: Some(alias), expr } => {
                    let name: Arc<str> = alias.text.as_str().into();
                    Some(Column::plain(Some(name), SqlType::Unknown, None, expr.span))
                }
                Item::Expr { alias: None, .. } | Item::Star { .. } => None,
            })
            .collect();
        let scope = Scope { aliases, ..scope };
        let group = select.group_by.as_ref().map(|group| self.group(group, &scope));
        self.bounds_read = None;
        let mut columns = Vec::new();
        let (mut opaque, mut guessed) = (false, false);
        let item_scope = Scope { aliases: Vec::new(), ..scope };
        for item in &select.items {
            self.item(item, &item_scope, &mut columns, &mut opaque);
            guessed |= matches!(item, Item::Star { .. })
                && item_scope.relations.iter().any(|relation| relation.guessed || !relation.merged.is_empty());
        }
        self.not_grouped(select, &item_scope);
        let bounds = self.bounds_read;
        let folds = select.items.iter().any(|item| matches!(item, Item::Expr { expr, .. } if has_aggregate(expr)))
            || select.having.as_ref().is_some_and(has_aggregate);
        let scope =
            Scope { aliases: columns.iter().filter(|column| column.name.is_some()).cloned().collect(), ..item_scope };
        if let Some(having) = &select.having {
            let found = self.expr(having, &scope);
            self.influence(&found.origins, Influence::Filter);
            self.condition(having, &found, "HAVING");
            self.no_over(having, "HAVING");
            self.having_aliases(select, having, &scope);
        }
        if let Some(qualify) = &select.qualify {
            let found = self.expr(qualify, &scope);
            self.influence(&found.origins, Influence::Filter);
            updating = updating.or(Some(Construct { span: qualify.span, what: "QUALIFY" }));
        }
        self.windows.truncate(outside.1);
        let windowed = group.is_some_and(|group| group.windowed);
        if let Some(span) = bounds {
            match &select.group_by {
                None if folds => self.found.oddities.push((Oddity::WindowWithoutGroupBy, span)),
                Some(_) if group.is_some_and(|group| !group.window_named) => {
                    self.found.oddities.push((Oddity::GroupByWithoutWindow, span));
                }
                None | Some(_) => {}
            }
        }
        match (&select.group_by, windowed) {
            (Some(_), true) => updating = None,
            (Some(group), false) => {
                self.unbounded(group.span, "GROUP BY without a window");
                updating.get_or_insert(Construct { span: group.span, what: "GROUP BY without a window" });
                columns.iter_mut().for_each(|column| column.time = Time::None);
            }
            (None, _) if folds => {
                let span = select.items.first().map_or(Span::new(0, 0), item_span);
                updating.get_or_insert(Construct { span, what: "an aggregate over all rows" });
                columns.iter_mut().for_each(|column| column.time = Time::None);
            }
            (None, _) => {}
        }
        if let Some(span) = select.distinct {
            let has = |bound| columns.iter().any(|column| column.bound == Some(bound));
            if !(has(Bound::Start) && has(Bound::End)) {
                self.unbounded(span, "SELECT DISTINCT");
                updating.get_or_insert(Construct { span, what: "SELECT DISTINCT" });
            }
        }
        if let Some(span) = std::mem::replace(&mut self.reordered, reordered) {
            updating.get_or_insert(Construct { span, what: "OVER that is not ordered by time" });
        }
        self.bounds_read = outside.0;
        self.nested = outside.2;
        (Relation { columns, opaque, guessed, updating, ..Relation::default() }, scope.relations)
    }

    fn group(&mut self, group: &GroupBy, scope: &Scope<'_>) -> Group {
        let mut bounds = Vec::new();
        let mut legacy = false;
        let mut unknown = false;
        for key in &group.keys {
            let found = self.expr(key, scope);
            self.influence(&found.origins, Influence::GroupBy);
            self.no_folding(key, "GROUP BY");
            self.alias_key(key, scope);
            bounds.extend(found.bound);
            match &key.node {
                Node::Call(call) if functions::is_legacy_window(&call.name) => {
                    legacy = true;
                    self.influence(&found.origins, Influence::Window);
                    if let Some(Arg { value: ArgValue::Expr(time), .. }) = call.args.first() {
                        let found = self.expr(time, scope);
                        self.needs_time(time, &found, "a window");
                    }
                }
                // A window's bound of a table that is not known.
                Node::Path(path) => {
                    let named = path.last().is_some_and(|name| name.text.starts_with("window_"));
                    unknown |= named && found.bound.is_none();
                }
                _ => {}
            }
        }
        let both = bounds.contains(&Bound::Start) && bounds.contains(&Bound::End);
        Group { windowed: legacy || unknown || both, window_named: legacy || unknown || !bounds.is_empty() }
    }

    fn item(&mut self, item: &Item, scope: &Scope<'_>, columns: &mut Vec<Column>, opaque: &mut bool) {
        match item {
            Item::Expr { expr, alias } => {
                let mut found = self.expr(expr, scope);
                let own = match &expr.node {
                    Node::Path(path) => path.last().map(|name| name.text.as_str()),
                    _ => None,
                };
                found.name = alias.as_ref().map(|alias| alias.text.as_str()).or(own).map(Arc::from);
                found.span = match alias {
                    Some(alias) => expr.span.to(alias.span),
                    None => expr.span,
                };
                columns.push(found);
            }
            Item::Star { qualifier, span } => {
                let wanted = qualifier.last();
                let mut found = false;
                for relation in &scope.relations {
                    if wanted.is_some_and(|name| relation.alias.as_ref() != Some(&name.text)) {
                        continue;
                    }
                    found = true;
                    *opaque |= relation.opaque || columns.len() + relation.columns.len() > MAX_COLUMNS;
                    if *opaque {
                        continue;
                    }
                    let hidden = |column: &&Column| match &column.name {
                        Some(name) => wanted.is_none() && relation.merged.contains(name),
                        None => false,
                    };
                    columns.extend(
                        relation
                            .columns
                            .iter()
                            .filter(|column| !hidden(column))
                            .map(|c| Column { span: *span, ..c.clone() }),
                    );
                }
                if !found {
                    *opaque = true;
                    self.unknown_star(qualifier, scope);
                }
                if *opaque {
                    self.gap(Gap::InputColumnsUnknown);
                }
            }
        }
    }

    /// `z.*` where no table is called so; a row column has a star, too.
    fn unknown_star(&mut self, qualifier: &[Name], scope: &Scope<'_>) {
        let [name] = qualifier else { return };
        if let Lookup::Missing { input, known, .. } = scope.lookup(qualifier)
            && scope.outer.is_none()
        {
            let (text, span, tables) = (name.text.clone(), name.span, Some(scope.tables()));
            self.missing(Missing { name: text, span, input, known, tables });
        }
    }

    /// Bare names in HAVING that are aliases and no columns.
    fn having_aliases(&mut self, select: &Select, having: &Expr, scope: &Scope<'_>) {
        let mut names = Vec::new();
        paths(having, &mut |path| {
            if let [only] = path {
                let column = scope.relations.iter().flat_map(|relation| &relation.columns);
                let known = column.into_iter().any(|column| column.name.as_deref() == Some(only.text.as_str()))
                    || scope.relations.iter().any(|relation| relation.opaque);
                let alias = select
                    .items
                    .iter()
                    .any(|item| matches!(item, Item::Expr { alias: Some(alias), .. } if alias.text == only.text));
                if alias && !known {
                    names.push(only.text.clone());
                }
            }
        });
        names.sort();
        names.dedup();
        if !names.is_empty() {
            self.found.oddities.push((Oddity::HavingAlias(names), having.span));
        }
    }
}

#[derive(Clone, Copy)]
struct Group {
    /// Rows are folded once for each window.
    windowed: bool,
    /// A key has to do with a window.
    window_named: bool,
}

/// The operands of AND, and of brackets around it.
pub(super) fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match &expr.node {
        Node::Logic(operands, Logic::And) => operands.iter().flat_map(conjuncts).collect(),
        _ => vec![expr],
    }
}

/// Top-N and anti-joins.
fn updates_of_filter(filter: &Expr, scope: &Scope<'_>) -> Option<Construct> {
    for conjunct in conjuncts(filter) {
        let construct = |what| Some(Construct { span: conjunct.span, what });
        match &conjunct.node {
            Node::InQuery { negated: true, .. } => return construct("NOT IN"),
            Node::Quantified { all: true, .. } => return construct("a comparison with ALL"),
            Node::Not(inner) => match &inner.node {
                Node::Exists(_) => return construct("NOT EXISTS"),
                Node::InQuery { .. } => return construct("NOT IN"),
                _ => {}
            },
            Node::Compare(comparison, a, b) => {
                let (path, number, first) = match (&a.node, &b.node) {
                    (Node::Path(path), Node::Literal(Literal::Number(number))) => (path, number, *comparison),
                    (Node::Literal(Literal::Number(number)), Node::Path(path)) => (path, number, *comparison),
                    _ => continue,
                };
                let super::scope::Lookup::Column(column, _) = scope.lookup(path) else { continue };
                let Some(rank) = column.rank else { continue };
                let keeps_first = number == "1" && first != Comparison::Less;
                let first_row = rank.by_time && keeps_first;
                if !rank.of_window && !first_row {
                    return construct("Top-N");
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether an aggregate that is no OVER folds the rows of this level.
fn has_aggregate(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |expr| {
        if let Node::Call(call) = &expr.node {
            found |= call.over.is_none() && functions::use_of(&call.name) == Use::Aggregate;
        }
    });
    found
}

fn item_span(item: &Item) -> Span {
    match item {
        Item::Star { span, .. } => *span,
        Item::Expr { expr, .. } => expr.span,
    }
}

/// Where a query's first item stands.
pub(super) fn span_of(query: &Query) -> Span {
    match &query.body {
        Body::Select(select) => select.items.first().map_or(Span::new(0, 0), item_span),
        Body::Values(_) | Body::Nested(_) | Body::Table(_) | Body::Set { .. } => Span::new(0, 0),
    }
}
