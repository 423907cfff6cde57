//! What is known about each model before the passes begin: the compiler's resolution, the outline of its SQL, and where it
//! names what it reads.

use crate::codes::Diagnostic;
use crate::compiler::columns::{Columns, Reading};
use crate::compiler::resolve::{ResolvedModel, at_sql};
use crate::project::Project;
use crate::project::model::{Materialized, Model, Reference};
use crate::sql::analysis::{Analysis, Input};
use crate::sql::outline::Outline;
use crate::sql::parse::SyntaxError;
use crate::sql::{CallKind, Span};

pub(super) struct Facts<'a> {
    pub model: &'a Model,
    pub resolved: &'a ResolvedModel,
    /// None without SQL, and where the SQL is no query (which the resolution reports).
    outline: Option<Outline<'a>>,
    reading: Option<&'a Reading>,
}

impl<'a> Facts<'a> {
    /// One for each model, in declaration order.
    pub fn gather(project: &'a Project, resolution: &'a [ResolvedModel], columns: &'a Columns) -> Vec<Self> {
        let mut facts: Vec<Self> = resolution
            .iter()
            .filter_map(|resolved| {
                let model = project.models.get(resolved.declaration)?;
                let outline = resolved.sql.as_deref().and_then(|sql| Outline::parse(sql).ok());
                Some(Self { model, resolved, outline, reading: columns.reading(&resolved.name) })
            })
            .collect();
        facts.sort_by_key(|facts| facts.resolved.declaration);
        facts
    }

    pub fn outline(&self) -> Option<&Outline<'a>> {
        self.outline.as_ref()
    }

    /// What the SQL means, or where it is not understood; none without SQL that can be outlined.
    pub fn analysis(&self) -> Option<Result<&'a Analysis, &'a SyntaxError>> {
        self.reading.map(|reading| reading.analysis.as_ref())
    }

    /// The tables that the SQL may read.
    pub fn inputs(&self) -> &'a [Input] {
        self.reading.map_or(&[], |reading| &reading.inputs)
    }

    pub fn has_sql(&self) -> bool {
        self.model.sql.is_some() || self.model.macro_name.is_some()
    }

    pub fn dependencies(&self) -> &'a [Reference] {
        &self.resolved.dependencies
    }

    pub fn materialized(&self) -> Materialized {
        self.resolved.materialized
    }

    /// The diagnostic at a span of the SQL; what a macro gives has no place but the macro's name, and is shown.
    pub fn mark_sql(&self, span: Span, diagnostic: Diagnostic) -> Diagnostic {
        let marked = at_sql(self.model, span, diagnostic);
        match (&self.model.macro_name, self.resolved.sql.as_deref().and_then(|sql| sql.split_at_checked(span.start))) {
            (Some(_), Some((before, after))) => {
                let line = before.matches('\n').count() + 1;
                let head = before.rsplit('\n').next().unwrap_or_default();
                let tail = after.split('\n').next().unwrap_or_default();
                marked.explain(format!("line {line} of what the macro gives: {}", format!("{head}{tail}").trim()))
            }
            (None, _) | (Some(_), None) => marked,
        }
    }

    /// The diagnostic where the model names a dependency: in its SQL, else in `from`.
    pub fn mark_dependency(&self, dependency: &Reference, diagnostic: Diagnostic) -> Diagnostic {
        let kind = match dependency {
            Reference::Source(_) => CallKind::Source,
            Reference::Model(_) => CallKind::Ref,
        };
        let call = self.resolved.calls.iter().find(|call| call.kind == kind && call.name == dependency.name());
        if let Some(call) = call {
            return self.mark_sql(call.name_span, diagnostic);
        }
        let index = self.model.from.iter().flatten().position(|entry| entry == dependency).unwrap_or_default();
        let key = match dependency {
            Reference::Source(_) => "source",
            Reference::Model(_) => "ref",
        };
        self.model.origin.mark(&format!("from.{index}.{key}"), diagnostic)
    }

    /// The output columns in order, when each is known and has a name.
    pub fn output_names(&self) -> Option<Vec<&str>> {
        if let Some(Ok(analysis)) = self.analysis()
            && let Some(names) = analysis.names()
        {
            return Some(names);
        }
        let select = self.outline()?.select()?;
        select.items.iter().map(|item| item.name.as_deref()).collect()
    }

    /// Whether a column of an input is certainly in the output under its own name. A star over a nested query, and a
    /// qualifier that may be another input's alias, decide nothing.
    pub fn passes_on(&self, input: &str, column: &str) -> bool {
        let Some(outline) = self.outline() else { return !self.has_sql() };
        let Some(select) = outline.select() else { return false };
        let text = outline.text();
        let nested = outline.tokens().iter().filter(|token| token.is_word(text, "SELECT")).count() > 1;
        let alone = self.dependencies().len() == 1;
        select.items.iter().any(|item| {
            let (qualifier, name) = match item.expression.of(text).trim().rsplit_once('.') {
                Some((qualifier, name)) => (Some(unquoted(qualifier)), unquoted(name)),
                None => (None, unquoted(item.expression.of(text))),
            };
            let of_input = alone || qualifier.is_none_or(|qualifier| qualifier == input);
            of_input && ((name == "*" && !nested) || name == column)
        })
    }
}

fn unquoted(name: &str) -> &str {
    name.trim().trim_matches('`')
}
