//! The strict check of a file against the table of the language: every wrong field is found, each with its place.

mod report;

use crate::codes::{Code, Diagnostic, suggest};

use super::shape::{Field, Fold, Need, Record, Scalars, Shape, Tagged, Text};
use super::source::Source;
use super::value::{Content, Entry, Node, Resolved};

/// Errors reported for one file.
pub const MAX_ERRORS: usize = 100;

/// An integer, also one that a variable gave.
pub fn as_int(node: &Node) -> Option<i64> {
    match node.value() {
        Resolved::Int(value) => Some(value),
        Resolved::Text(text) if node.is_interpolated() => text.trim().parse().ok(),
        _ => None,
    }
}

/// A boolean, also one that a variable gave.
pub fn as_bool(node: &Node) -> Option<bool> {
    match node.value() {
        Resolved::Bool(value) => Some(value),
        Resolved::Text(text) if node.is_interpolated() => match text.trim() {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

pub fn as_number(node: &Node) -> Option<f64> {
    match node.value() {
        Resolved::Int(value) => Some(value as f64),
        Resolved::Float(value) => Some(value),
        Resolved::Text(text) if node.is_interpolated() => {
            text.trim().parse().ok().filter(|value: &f64| value.is_finite())
        }
        _ => None,
    }
}

/// The spelling of the table for what the user wrote.
pub fn choose(values: &'static [&'static str], fold: Fold, written: &str) -> Option<&'static str> {
    values.iter().copied().find(|value| match fold {
        Fold::Exact => *value == written,
        Fold::Lower | Fold::Upper => value.eq_ignore_ascii_case(written),
    })
}

/// Whether a scalar can be what the shape asks for.
fn holds_scalars(shape: Shape) -> bool {
    match shape {
        Shape::Text(_)
        | Shape::Int { .. }
        | Shape::Number { .. }
        | Shape::Bool
        | Shape::True
        | Shape::Choice(..)
        | Shape::PositiveOr(_)
        | Shape::Scalar(_)
        | Shape::Any => true,
        Shape::Either(simple, composed) => holds_scalars(*simple) || holds_scalars(*composed),
        Shape::List(..)
        | Shape::Record(_)
        | Shape::Tagged(_)
        | Shape::OneKey(_)
        | Shape::Map { .. }
        | Shape::AnyMap => false,
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

pub struct Checker<'a> {
    source: &'a Source,
    code: Code,
    path: Vec<Step<'a>>,
    /// Values are secret or belong to `lifecycle`: messages name what is expected, never what was found.
    silent: usize,
    errors: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    /// Errors carry `code`: E501, or E503 in environment files.
    pub fn new(source: &'a Source, code: Code) -> Self {
        Self { source, code, path: Vec::new(), silent: 0, errors: Vec::new() }
    }

    pub fn into_errors(self) -> Vec<Diagnostic> {
        self.errors
    }

    /// Checks `node` as the value at `path`; false when something in it is wrong.
    pub fn check_at(&mut self, path: &[&'a str], node: &'a Node, shape: Shape) -> bool {
        let before = self.errors.len();
        self.path = path.iter().map(|segment| Step::Key(segment)).collect();
        self.silent = usize::from(path.first() == Some(&"lifecycle"));
        self.check(node, shape);
        self.path.clear();
        self.errors.len() == before
    }

    /// Checks one item of a list of declarations.
    pub fn check_item(&mut self, section: &'a str, index: usize, node: &'a Node, record: &'static Record) -> bool {
        let before = self.errors.len();
        self.path = vec![Step::Key(section), Step::Index(index)];
        self.check(node, Shape::Record(record));
        self.path.clear();
        self.errors.len() == before
    }

    /// Checks the keys of a root mapping: unknown ones, missing ones, nulls. Values are left to the caller.
    pub fn check_root(&mut self, node: &'a Node, record: &'static Record, required: &[&str]) {
        for entry in node.entries() {
            match record.field(&entry.key) {
                None if entry.key.starts_with("x-") && record.field("apiVersion").is_some() => {}
                None => self.unknown(entry, record),
                Some(field) if entry.value.is_null() && !field.nullable => {
                    self.path.push(Step::Key(field.name));
                    self.null(&entry.value, field);
                    self.path.pop();
                }
                Some(_) => {}
            }
        }
        for name in required {
            if node.entry(name).is_none() {
                self.missing(node, name);
            }
        }
    }

    fn check(&mut self, node: &'a Node, shape: Shape) {
        if node.is_unset() && holds_scalars(shape) {
            return;
        }
        match shape {
            Shape::Any => {}
            Shape::AnyMap => {
                if self.map(node).is_some() {
                    self.free(node);
                }
            }
            Shape::Text(rule) => self.text(node, rule),
            Shape::Int { min, max } => match as_int(node) {
                Some(value) if value < min || value > max => self.range(node, min, max),
                Some(_) => {}
                None => self.wrong_type(node, "an integer"),
            },
            Shape::Number { min, max } => match as_number(node) {
                Some(value) if value < min || value > max => {
                    let upper = if max.is_finite() { format!(" and at most {max}") } else { String::new() };
                    self.refuse(node, format!("must be at least {min}{upper}"), None);
                }
                Some(_) => {}
                None => self.wrong_type(node, "a number"),
            },
            Shape::Bool => {
                if as_bool(node).is_none() {
                    self.wrong_type(node, "a boolean");
                }
            }
            Shape::True => match as_bool(node) {
                Some(true) => {}
                Some(false) => self.refuse(
                    node,
                    "must be true or a mapping".into(),
                    Some("remove the entry to turn it off".into()),
                ),
                None => self.wrong_type(node, "true or a mapping"),
            },
            Shape::Choice(values, fold) => self.choice(node, values, fold),
            Shape::PositiveOr(word) => match (as_int(node), node.as_str()) {
                (Some(value), _) if (1..=i64::from(i32::MAX)).contains(&value) => {}
                (Some(_), _) => self.range(node, 1, i64::from(i32::MAX)),
                (None, Some(text)) if text == word => {}
                (None, _) => self.wrong_type(node, &format!("a positive integer or '{word}'")),
            },
            Shape::Scalar(scalars) => self.scalar(node, scalars),
            Shape::List(item, max) => self.list(node, *item, max),
            Shape::Record(record) => self.record(node, record, None),
            Shape::Tagged(tagged) => self.tagged(node, tagged),
            Shape::OneKey(fields) => self.one_key(node, fields),
            Shape::Map { key, value } => self.named(node, key, *value),
            Shape::Either(simple, composed) => match node.content {
                Content::Scalar { .. } => self.check(node, *simple),
                Content::Sequence(_) | Content::Mapping(_) => self.check(node, *composed),
            },
        }
    }

    fn text(&mut self, node: &Node, rule: Text) {
        let Resolved::Text(text) = node.value() else {
            return self.wrong_type(node, "a string");
        };
        if !rule.accepts(text) {
            let hint = match rule.max {
                Some(max) if text.chars().count() > max => Some(format!("shorten it to at most {max} characters")),
                _ if text.is_empty() => Some("write a value, or remove the field if it is optional".to_owned()),
                _ => None,
            };
            self.refuse(node, format!("must be {}", rule.expected), hint);
        }
    }

    fn choice(&mut self, node: &Node, values: &'static [&'static str], fold: Fold) {
        let Resolved::Text(written) = node.value() else {
            return self.wrong_type(node, &format!("one of {}", quoted(values)));
        };
        if choose(values, fold, written).is_some() {
            return;
        }
        let message = match self.shown(node) {
            Some(shown) => format!("'{shown}' is not one of {}", quoted(values)),
            None => format!("must be one of {}", quoted(values)),
        };
        let hint = if self.silent == 0 && !node.is_interpolated() {
            suggest::did_you_mean(written, values.iter().copied())
        } else {
            None
        };
        self.refuse(node, message, hint.or_else(|| Some(format!("write one of {}", quoted(values)))));
    }

    fn scalar(&mut self, node: &Node, scalars: Scalars) {
        match (node.value(), scalars) {
            (Resolved::Text(_) | Resolved::Int(_) | Resolved::Bool(_), _)
            | (Resolved::Float(_), Scalars::WithFloats) => {}
            (_, Scalars::WithFloats) => self.wrong_type(node, "a string, an integer, a boolean or a number"),
            (_, Scalars::WithoutFloats) => self.wrong_type(node, "a string, an integer or a boolean"),
        }
    }

    fn list(&mut self, node: &'a Node, item: Shape, max: usize) {
        let Resolved::List(items) = node.value() else {
            return self.wrong_type(node, "a list");
        };
        if items.len() > max {
            return self.refuse(
                node,
                format!("holds {} entries; at most {max} are allowed", items.len()),
                Some("remove entries that are done".into()),
            );
        }
        for (index, node) in items.iter().enumerate() {
            self.path.push(Step::Index(index));
            self.check(node, item);
            self.path.pop();
        }
    }

    fn map(&mut self, node: &'a Node) -> Option<&'a [Entry]> {
        match &node.content {
            Content::Mapping(entries) => Some(entries),
            Content::Scalar { .. } | Content::Sequence(_) => {
                self.wrong_type(node, "a mapping");
                None
            }
        }
    }

    fn record(&mut self, node: &'a Node, record: &'static Record, tag: Option<&str>) {
        let Some(entries) = self.map(node) else { return };
        for entry in entries {
            match record.field(&entry.key) {
                Some(field) => self.field(entry, field),
                None if tag == Some(&*entry.key) => {}
                None => self.unknown(entry, record),
            }
        }
        for field in record.fields {
            if field.need == Need::Required && !entries.iter().any(|entry| &*entry.key == field.name) {
                self.missing(node, field.name);
            }
        }
    }

    fn field(&mut self, entry: &'a Entry, field: &'static Field) {
        self.path.push(Step::Key(field.name));
        self.silent += usize::from(field.secret);
        if !entry.value.is_null() {
            self.check(&entry.value, field.shape);
        } else if !field.nullable {
            self.null(&entry.value, field);
        }
        self.silent -= usize::from(field.secret);
        self.path.pop();
    }

    fn tagged(&mut self, node: &'a Node, tagged: &'static Tagged) {
        if self.map(node).is_none() {
            return;
        }
        let names: Vec<&str> = tagged.variants.iter().map(|(name, _)| *name).collect();
        let written = match node.entry(tagged.tag) {
            None => match tagged.default {
                Some(default) => default,
                None => {
                    let hint = format!("write '{}:' with one of {}", tagged.tag, quoted(&names));
                    self.path.push(Step::Key(tagged.tag));
                    self.error(node.line, node.column, 1, format!("'{}' is required", tagged.tag), Some(hint));
                    self.path.pop();
                    return;
                }
            },
            // Which variant it is, and so which fields it has, is known once the variable is set.
            Some(entry) if entry.value.is_unset() => return,
            Some(entry) => {
                self.path.push(Step::Key(tagged.tag));
                let text = entry.value.as_str();
                let known = text.and_then(|text| names.iter().copied().find(|name| *name == text));
                if known.is_none() {
                    let refused = text.and_then(|text| tagged.refused.iter().find(|(name, _)| *name == text));
                    match (refused, text) {
                        (Some((_, reason)), _) => {
                            let (message, hint) = reason.split_once("; ").unwrap_or((reason, ""));
                            self.refuse(&entry.value, message.into(), Some(hint.into()));
                        }
                        (None, Some(text)) => {
                            let hint = if self.silent == 0 && !entry.value.is_interpolated() {
                                suggest::did_you_mean(text, names.iter().copied())
                            } else {
                                None
                            };
                            let hint = hint.or_else(|| Some(format!("write one of {}", quoted(&names))));
                            self.refuse(&entry.value, format!("must be one of {}", quoted(&names)), hint);
                        }
                        (None, None) => self.wrong_type(&entry.value, &format!("one of {}", quoted(&names))),
                    }
                }
                self.path.pop();
                match known {
                    Some(known) => known,
                    None => return,
                }
            }
        };
        if let Some((_, record)) = tagged.variants.iter().find(|(name, _)| *name == written) {
            self.record(node, record, Some(tagged.tag));
        }
    }

    fn one_key(&mut self, node: &'a Node, fields: &'static [Field]) {
        let Some(entries) = self.map(node) else { return };
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let [entry] = entries else {
            let message = format!("must have exactly one key, found {}", entries.len());
            let hint = if entries.is_empty() {
                format!("write one of {}", quoted(&names))
            } else {
                "begin a new list entry with '- ' for each, and indent its fields below it".to_owned()
            };
            return self.refuse(node, message, Some(hint));
        };
        match fields.iter().find(|field| *field.name == *entry.key) {
            Some(field) => self.field(entry, field),
            None => self.unknown_among(entry, &names, None),
        }
    }

    fn named(&mut self, node: &'a Node, key: Text, value: Shape) {
        let Some(entries) = self.map(node) else { return };
        for entry in entries {
            self.path.push(Step::Key(&entry.key));
            if !key.accepts(&entry.key) {
                let width = entry.key.chars().count();
                self.error(
                    entry.line,
                    entry.column,
                    width,
                    format!("the key must be {}", key.expected),
                    Some("rename it".into()),
                );
            }
            self.check(&entry.value, value);
            self.path.pop();
        }
    }

    /// A map of any form: the parser has refused what JSON cannot keep.
    fn free(&mut self, _node: &Node) {}
}

pub fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}
