//! What one table of FROM gives: an input, a common table, a query, a table function, arrays, a pattern.

use std::sync::Arc;

use super::super::ast::{self, ArgValue, Call, Name, TableRef};
use super::super::lex::Span;
use super::super::types::SqlType;
use super::relation::{Bound, Column, Relation, transformed};
use super::scope::Scope;
use super::*;

impl Analyzer<'_> {
    pub(super) fn table(&mut self, table: &TableRef, scope: &Scope<'_>) -> Vec<Relation> {
        let named = |relation: Relation| vec![relation.renamed(table.alias.as_ref(), &table.columns)];
        match &table.relation {
            ast::Relation::Input { name, version } => {
                let mut relation = self.input(name);
                self.versioned(&mut relation, version.as_deref(), scope);
                named(relation)
            }
            ast::Relation::Table { path, version } => {
                let mut relation = self.named_table(path);
                self.versioned(&mut relation, version.as_deref(), scope);
                named(relation)
            }
            ast::Relation::Derived { lateral, query } => {
                let outer = if *lateral { Some(scope) } else { scope.outer };
                let mut relation = self.query(query, outer);
                relation.lateral = *lateral;
                relation.alias = None;
                named(relation)
            }
            ast::Relation::Function { call, .. } => named(self.function(call, scope)),
            ast::Relation::Unnest { arrays, ordinality } => named(self.unnest(table, arrays, *ordinality, scope)),
            ast::Relation::Joined(from) => {
                let mut relations = self.from(from, scope.outer);
                if table.alias.is_some() {
                    let mut whole = Relation::default();
                    for relation in relations.drain(..) {
                        whole.opaque |= relation.opaque;
                        whole.updating = whole.updating.or(relation.updating);
                        whole.columns.extend(relation.columns);
                    }
                    return named(whole);
                }
                relations
            }
            ast::Relation::Pattern(pattern) => named(self.pattern(pattern, scope)),
        }
    }

    fn versioned(&mut self, relation: &mut Relation, version: Option<&ast::Expr>, scope: &Scope<'_>) {
        let Some(version) = version else { return };
        let found = self.expr(version, scope);
        self.influence(&found.origins, Influence::Join);
        self.needs_time(version, &found, "FOR SYSTEM_TIME AS OF");
        relation.versioned = true;
        relation.updating = None;
        for column in &mut relation.columns {
            column.time = Time::None;
        }
    }

    /// Notes a known column that must be a time attribute and is none.
    pub(super) fn needs_time(&mut self, expr: &ast::Expr, found: &Column, user: &'static str) {
        if let ast::Node::Path(path) = &expr.node
            && found.time == Time::None
            && found.data_type != SqlType::Unknown
        {
            let column = path.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".");
            self.found.oddities.push((Oddity::NoTimeAttribute { column, user }, expr.span));
        }
    }

    fn input(&mut self, name: &Name) -> Relation {
        let inputs = self.environment.inputs;
        let Some(index) = inputs.iter().position(|input| input.name == name.text) else { return Relation::unknown() };
        let input = &inputs[index];
        let updating =
            input.upsert.then_some(Construct { span: name.span, what: "an input whose rows are updated by key" });
        let columns = input.columns.iter().flatten().map(|column| {
            let base = Base { input: index, column: column.name.clone() };
            Column {
                name: Some(column.name.clone()),
                data_type: column.data_type.clone(),
                time: match column.time {
                    InputTime::None => Time::None,
                    InputTime::Event => Time::Event(base.clone()),
                    InputTime::Processing => Time::Processing,
                },
                origins: Some(vec![Dependency { base, kind: Kind::Identity }]),
                bound: None,
                rank: None,
                span: name.span,
            }
        });
        Relation {
            alias: Some(name.text.clone()),
            columns: columns.collect(),
            opaque: input.columns.is_none(),
            input: Some(index),
            updating,
            ..Relation::default()
        }
    }

    /// A common table, or one that the project does not declare.
    fn named_table(&mut self, path: &[Name]) -> Relation {
        let (last, first) = match path {
            [only] => (Some(only), true),
            [.., last] => (Some(last), false),
            [] => (None, false),
        };
        let Some(last) = last else { return Relation::unknown() };
        let cte = self.ctes.iter().rev().find(|(name, _)| first && *name == last.text);
        match cte {
            Some((_, relation)) => Relation { alias: Some(last.text.clone()), input: None, ..relation.clone() },
            None => {
                self.gap(Gap::InputColumnsUnknown);
                let name = path.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".");
                let span = path.first().map_or(last.span, |start| start.span.to(last.span));
                let unnamed = Unnamed { name, bare: first, span };
                if !self.found.unnamed.iter().any(|known| known.name == unnamed.name) {
                    self.found.unnamed.push(unnamed);
                }
                Relation { alias: Some(last.text.clone()), ..Relation::unknown() }
            }
        }
    }

    pub(super) fn explicit_table(&mut self, relation: &ast::Relation) -> Relation {
        match relation {
            ast::Relation::Input { name, .. } => self.input(name),
            ast::Relation::Table { path, .. } => self.named_table(path),
            ast::Relation::Derived { .. }
            | ast::Relation::Function { .. }
            | ast::Relation::Unnest { .. }
            | ast::Relation::Joined(_)
            | ast::Relation::Pattern(_) => Relation::unknown(),
        }
    }

    fn function(&mut self, call: &Call, scope: &Scope<'_>) -> Relation {
        let mut tables = Vec::new();
        let mut descriptor: Option<&Name> = None;
        let mut model = None;
        for argument in &call.args {
            match &argument.value {
                ArgValue::Table { table, partition, order } => {
                    let found = self.table(table, &Scope { outer: scope.outer, ..Scope::default() });
                    let inner = Scope { relations: found, ..Scope::default() };
                    for key in partition.iter().chain(order.iter().map(|item| &item.expr)) {
                        let found = self.expr(key, &inner);
                        self.influence(&found.origins, Influence::Window);
                    }
                    tables.extend(inner.relations);
                }
                ArgValue::Descriptor(names) => descriptor = descriptor.or(names.first()),
                ArgValue::Model(name) => model = Some(name.text.as_str()),
                // A bare word is a table where one is expected: `ML_PREDICT(t, …)` is not, but a query in brackets is.
                ArgValue::Expr(ast::Expr { node: ast::Node::Subquery(query), .. }) => {
                    let relation = self.query(query, scope.outer);
                    tables.push(relation);
                }
                ArgValue::Expr(expr) => {
                    self.expr(expr, scope);
                }
                ArgValue::Word => {}
            }
        }
        let table = tables.into_iter().next();
        match (call.name.as_str(), table) {
            ("TUMBLE" | "HOP" | "CUMULATE" | "SESSION", Some(table)) => self.window(table, descriptor, call.span),
            ("ML_PREDICT", Some(table)) => {
                self.gap(Gap::UnsupportedTableFunction);
                let outputs = model.and_then(|model| self.environment.models.get(model));
                let Some(outputs) = outputs else { return Relation { lateral: true, ..Relation::unknown() } };
                let added = outputs.iter().map(|(name, data_type)| {
                    Column::plain(Some(name.as_str().into()), data_type.clone(), None, call.span)
                });
                Relation { columns: table.columns.iter().cloned().chain(added).collect(), input: None, ..table }
            }
            _ => {
                self.gap(Gap::UnsupportedTableFunction);
                Relation { lateral: true, ..Relation::unknown() }
            }
        }
    }

    /// The columns of a table and the bounds of its windows.
    fn window(&mut self, table: Relation, descriptor: Option<&Name>, span: Span) -> Relation {
        let mut relation = Relation { alias: None, input: None, ..table };
        let column = descriptor
            .and_then(|name| relation.columns.iter().find(|column| column.name.as_deref() == Some(name.text.as_str())));
        if let (Some(name), None, false) = (descriptor, column, relation.opaque) {
            let known = relation.columns.iter().filter_map(|column| column.name.clone()).collect();
            self.missing(Missing { name: name.text.clone(), span: name.span, input: table.input, known, tables: None });
        }
        if let (Some(column), Some(name)) = (column, descriptor)
            && column.time == Time::None
            && column.data_type != SqlType::Unknown
        {
            let oddity = Oddity::NoTimeAttribute { column: name.text.clone(), user: "a window" };
            self.found.oddities.push((oddity, name.span));
        }
        let origins = match column {
            Some(column) => transformed(column.origins.clone(), Kind::Transform),
            None => None,
        };
        let time = match column {
            Some(Column { data_type: SqlType::TimestampLtz(precision), .. }) => SqlType::TimestampLtz(*precision),
            Some(_) | None => SqlType::Timestamp(3),
        };
        let processing = column.is_some_and(|column| column.time == Time::Processing);
        self.influence(&origins, Influence::Window);
        for column in &mut relation.columns {
            column.time = Time::None;
        }
        let bounds = [
            ("window_start", Bound::Start, SqlType::Timestamp(3), Time::None),
            ("window_end", Bound::End, SqlType::Timestamp(3), Time::None),
            ("window_time", Bound::Time, time, if processing { Time::Processing } else { Time::Window }),
        ];
        for (name, bound, data_type, time) in bounds {
            relation.columns.push(Column {
                name: Some(name.into()),
                data_type,
                time,
                origins: origins.clone(),
                bound: Some(bound),
                rank: None,
                span,
            });
        }
        relation
    }

    fn unnest(&mut self, table: &TableRef, arrays: &[ast::Expr], ordinality: bool, scope: &Scope<'_>) -> Relation {
        let mut relation = Relation { lateral: true, ..Relation::default() };
        for array in arrays {
            let found = self.expr(array, scope);
            let origins = transformed(found.origins, Kind::Transform);
            let mut push = |name: Option<&str>, data_type: SqlType| {
                let name = name.map(Arc::from);
                relation.columns.push(Column::plain(name, data_type, origins.clone(), array.span));
            };
            match found.data_type {
                SqlType::Array(element) | SqlType::Multiset(element) => match *element {
                    SqlType::Row(fields) => {
                        fields.into_iter().for_each(|(name, data_type)| push(Some(&name), data_type))
                    }
                    element => push(None, element),
                },
                SqlType::Map(key, value) => {
                    push(Some("KEY"), *key);
                    push(Some("VALUE"), *value);
                }
                _ => {
                    relation.opaque = true;
                    self.gap(Gap::InputColumnsUnknown);
                }
            }
        }
        if ordinality {
            relation.columns.push(Column::plain(Some("ORDINALITY".into()), SqlType::Int, Some(Vec::new()), table.span));
        }
        relation
    }

    fn pattern(&mut self, pattern: &ast::Pattern, scope: &Scope<'_>) -> Relation {
        self.gap(Gap::UnsupportedClause);
        let table = self.table(&pattern.table, scope);
        let inner = Scope { relations: table, ..Scope::default() };
        let mut columns = Vec::new();
        for key in &pattern.partition {
            let found = self.expr(key, &inner);
            self.influence(&found.origins, Influence::Window);
            columns.push(found);
        }
        for (index, item) in pattern.order.iter().enumerate() {
            let found = self.expr(&item.expr, &inner);
            self.influence(&found.origins, Influence::Sort);
            if index == 0 {
                self.needs_time(&item.expr, &found, "MATCH_RECOGNIZE");
            }
        }
        // Each variable is the table under another name; a bare column is read from it too.
        let base = inner.relations.first().cloned().unwrap_or_default();
        let mut variables = vec![Relation { alias: None, ..base.clone() }];
        for name in &pattern.variables {
            if !variables.iter().any(|known| known.alias.as_ref() == Some(&name.text)) {
                variables.push(Relation { alias: Some(name.text.clone()), ..base.clone() });
            }
        }
        let (bare, named) = variables.split_at(1);
        let outer = Scope { relations: bare.to_vec(), ..Scope::default() };
        let inner = Scope { relations: named.to_vec(), outer: Some(&outer), qualified: true, aliases: Vec::new() };
        for (_, condition) in &pattern.definitions {
            let found = self.expr(condition, &inner);
            self.influence(&found.origins, Influence::Filter);
        }
        if pattern.all_rows {
            columns = base.columns.clone();
        }
        for (measure, name) in &pattern.measures {
            let found = self.expr(measure, &inner);
            columns.push(Column {
                name: Some(name.text.as_str().into()),
                origins: None,
                bound: None,
                rank: None,
                span: name.span,
                ..found
            });
        }
        Relation { columns, opaque: base.opaque && pattern.all_rows, ..Relation::default() }
    }
}
