//! What is said of a wrong field: place, message, hint and excerpt, and nothing of a value that is secret.

use std::fmt::Write as _;

use super::{Checker, MAX_ERRORS, Step, quoted};
use crate::codes::{Diagnostic, suggest};
use crate::project::parse::printable;
use crate::project::shape::{Field, Record, Shape};
use crate::project::value::{Entry, MAX_EXACT, Node, Resolved};

impl Checker<'_> {
    pub(super) fn unknown(&mut self, entry: &Entry, record: &'static Record) {
        let names: Vec<&str> =
            record.fields.iter().filter(|field| field.moved.is_none()).map(|field| field.name).collect();
        let below = record.fields.iter().find_map(|field| inside(field.shape, &entry.key).then_some(field.name));
        self.unknown_among(entry, &names, below);
    }

    pub(super) fn unknown_among(&mut self, entry: &Entry, names: &[&str], below: Option<&str>) {
        let key = printable(&entry.key);
        let hint = suggest::did_you_mean(&entry.key, names.iter().copied())
            .or_else(|| below.map(|parent| format!("write it under '{parent}:'")))
            .or_else(|| match names {
                [] => Some("no field is allowed here; remove it".to_owned()),
                names if names.len() <= 16 => Some(format!("allowed here: {}", quoted(names))),
                _ => Some(format!("remove it; `streamt explain yaml {}` lists what is allowed here", self.explained())),
            });
        let mut path = self.logical();
        if !path.is_empty() {
            path.push_str(" → ");
        }
        path.push_str(&key);
        let width = entry.key.chars().count();
        self.push(entry.line, entry.column, width, format!("unknown field '{key}'"), hint, path);
    }

    pub(super) fn missing(&mut self, node: &Node, name: &str) {
        let mut path = self.logical();
        if !path.is_empty() {
            path.push_str(" → ");
        }
        path.push_str(name);
        self.push(node.line, node.column, 1, format!("'{name}' is required"), Some(format!("add '{name}:'")), path);
    }

    pub(super) fn null(&mut self, node: &Node, field: &Field) {
        self.error(
            node.line,
            node.column,
            1,
            format!("'{}' must not be null", field.name),
            Some("write a value, or remove the key".into()),
        );
    }

    pub(super) fn range(&mut self, node: &Node, min: i64, max: i64) {
        let message =
            if max == MAX_EXACT { format!("must be at least {min}") } else { format!("must be from {min} to {max}") };
        self.refuse(node, message, None);
    }

    pub(super) fn wrong_type(&mut self, node: &Node, expected: &str) {
        let found = node.value();
        let hint = match (expected, found) {
            ("a string", Resolved::Int(_) | Resolved::Float(_) | Resolved::Bool(_) | Resolved::HugeInt) => {
                Some("write it in quotes".to_owned())
            }
            ("a string", Resolved::List(_)) => {
                Some("write one string, for example with commas between the values".to_owned())
            }
            ("a list", Resolved::Text(_) | Resolved::Int(_) | Resolved::Bool(_) | Resolved::Float(_)) => {
                Some("write it as a list: ['…'], or each entry on a line that begins with '- '".to_owned())
            }
            ("a list", Resolved::Map(_)) => Some("begin each entry with '- '".to_owned()),
            ("a boolean", Resolved::Text(_)) => Some("write true or false, without quotes".to_owned()),
            ("an integer" | "a number", Resolved::Text(_)) if !node.is_interpolated() => {
                Some("write the number without quotes, units or '_'".to_owned())
            }
            ("a mapping", Resolved::List(_)) => Some("write 'key: value' lines without '- '".to_owned()),
            (_, Resolved::Null) => Some("write a value, or remove the key".to_owned()),
            _ => None,
        };
        let found = if node.is_interpolated() { "what the variable holds" } else { found.describe() };
        self.refuse(node, format!("must be {expected}, found {found}"), hint);
    }

    pub(super) fn refuse(&mut self, node: &Node, message: String, hint: Option<String>) {
        let width = node.as_str().map_or(1, |text| text.chars().count());
        let message = match self.path.last() {
            Some(Step::Key(name)) => format!("'{}' {message}", printable(name)),
            Some(Step::Index(index)) => format!("entry {index} {message}"),
            None => message,
        };
        let hint = hint.or_else(|| {
            Some(format!("correct the value; `streamt explain yaml {}` tells what the field takes", self.explained()))
        });
        self.error(node.line, node.column, width, message, hint);
    }

    /// What may be shown of a value.
    pub(super) fn shown(&self, node: &Node) -> Option<String> {
        let text = node.as_str().filter(|_| self.silent == 0 && !node.is_interpolated())?;
        Some(printable(text))
    }

    pub(super) fn error(&mut self, line: u32, column: u32, width: usize, message: String, hint: Option<String>) {
        let path = self.logical();
        self.push(line, column, width, message, hint, path);
    }

    pub(super) fn push(
        &mut self,
        line: u32,
        column: u32,
        width: usize,
        message: String,
        hint: Option<String>,
        path: String,
    ) {
        // Beyond the limit nothing more is shown; only a file of nonsense gets here.
        if self.errors.len() >= 10 * MAX_ERRORS {
            return;
        }
        let mut diagnostic =
            Diagnostic::new(self.code, message).at(self.source.location(line, column)).path(path).suggest_opt(hint);
        if self.silent == 0 {
            diagnostic.excerpt = self.source.excerpt(line, column, width);
        }
        self.errors.push(diagnostic);
    }

    /// The field as `streamt explain yaml` takes it.
    fn explained(&self) -> String {
        let keys = self.path.iter().filter_map(|step| match step {
            Step::Key(key) => Some(printable(key)),
            Step::Index(_) => None,
        });
        keys.collect::<Vec<_>>().join(".")
    }

    pub(super) fn logical(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            if !path.is_empty() {
                path.push_str(" → ");
            }
            match step {
                Step::Key(key) => path.push_str(&printable(key)),
                Step::Index(index) => {
                    let _ = write!(path, "{index}");
                }
            }
        }
        path
    }
}

/// Whether a field of this name exists directly inside a block.
fn inside(shape: Shape, name: &str) -> bool {
    match shape {
        Shape::Record(record) => record.field(name).is_some(),
        Shape::Tagged(tagged) => tagged.variants.iter().any(|(_, record)| record.field(name).is_some()),
        Shape::Text(_)
        | Shape::Int { .. }
        | Shape::Number { .. }
        | Shape::Bool
        | Shape::True
        | Shape::Choice(..)
        | Shape::PositiveOr(_)
        | Shape::Scalar(_)
        | Shape::List(..)
        | Shape::OneKey(_)
        | Shape::Map { .. }
        | Shape::Either(..)
        | Shape::Any
        | Shape::AnyMap => false,
    }
}
