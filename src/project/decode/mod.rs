//! From checked trees to typed declarations. Shapes are known to be right here; what is left are the rules that join fields.

mod declarations;
mod models;
mod runtime;
mod settings;

pub use declarations::{exposure, source, test, udf};
pub use models::model;
pub use runtime::{check_tls, runtime};
pub use settings::{connections, defaults, deployment_state, lifecycle, local_state, rules};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::codes::{Code, Diagnostic};

use super::check::{as_bool, as_int};
use super::model::OwnershipMode;
use super::origin::Origin;
use super::parse::printable;
use super::secret::Secret;
use super::source::Source;
use super::value::{Content, Node, Resolved, Style};

/// What decoding a file finds.
pub struct Findings {
    pub source: Arc<Source>,
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
}

impl Findings {
    pub fn new(source: Arc<Source>) -> Self {
        Self { source, errors: Vec::new(), warnings: Vec::new() }
    }

    pub fn origin(&self, section: &'static str, item: impl Into<Arc<str>>) -> Origin {
        Origin::new(self.source.clone(), section, item)
    }

    /// An E501 at a field of a declaration.
    fn refuse(&mut self, origin: &Origin, field: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.error(Code::E501ParseError, origin, field, message, hint);
    }

    fn error(&mut self, code: Code, origin: &Origin, field: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.errors.push(origin.mark(field, Diagnostic::new(code, message).suggest(hint)));
    }

    fn warn(&mut self, code: Code, origin: &Origin, field: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.warnings.push(origin.mark(field, Diagnostic::new(code, message).suggest(hint)));
    }

    /// W225 and W226 for the scalars of a free map or list.
    fn free_scalars(&mut self, origin: &Origin, field: &str, node: Option<&Node>, placeholders: bool) {
        let Some(node) = node else { return };
        let keyed = node.entries().iter().map(|entry| (entry.key.to_string(), &entry.value));
        let listed = node.items().iter().enumerate().map(|(index, item)| (index.to_string(), item));
        for (key, value) in keyed.chain(listed) {
            let Content::Scalar { text, style } = &value.content else { continue };
            if *style == Style::Plain && is_yaml_1_1_boolean(text) {
                self.warn(
                    Code::W225YamlAmbiguousScalar,
                    origin,
                    &format!("{field}.{key}"),
                    format!("'{text}' is a string here, though older YAML readers take it for a boolean"),
                    "write true or false for a boolean, or quotes for the string",
                );
            }
            if placeholders && holds_placeholder(text) {
                self.warn(
                    Code::W226PlaceholderNotExpanded,
                    origin,
                    &format!("{field}.{key}"),
                    format!("'{}' holds a '${{NAME}}' that is not expanded here; the provider receives it as written", printable(&key)),
                    "variables are expanded in 'runtime' only; leave it when a config provider of the cluster resolves it",
                );
            }
        }
    }
}

fn is_yaml_1_1_boolean(text: &str) -> bool {
    ["yes", "no", "on", "off", "y", "n"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn holds_placeholder(text: &str) -> bool {
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        rest = &rest[start + 2..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if super::shape::is_variable(&rest[..end]) && (rest[end..].starts_with('}') || rest[end..].starts_with(":-")) {
            return true;
        }
    }
    false
}

fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::as_str).map(str::to_owned)
}

/// A field that the check has found to be a string.
fn required(node: &Node, key: &str) -> String {
    text(node, key).unwrap_or_default()
}

fn secret(node: &Node, key: &str) -> Option<Secret> {
    node.get(key).and_then(Node::as_str).map(Secret::new)
}

fn integer<T: TryFrom<i64>>(node: &Node, key: &str) -> Option<T> {
    node.get(key).and_then(as_int).and_then(|value| T::try_from(value).ok())
}

fn boolean(node: &Node, key: &str, default: bool) -> bool {
    node.get(key).and_then(as_bool).unwrap_or(default)
}

fn strings(node: &Node, key: &str) -> Vec<String> {
    node.get(key).map(list_of_strings).unwrap_or_default()
}

fn list_of_strings(node: &Node) -> Vec<String> {
    node.items().iter().filter_map(Node::as_str).map(str::to_owned).collect()
}

fn string_map(node: Option<&Node>) -> BTreeMap<String, String> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.to_string(), entry.value.as_str()?.to_owned()))).collect()
}

fn object(node: Option<&Node>) -> Map<String, Value> {
    match node.map(Node::to_json) {
        Some(Value::Object(map)) => map,
        Some(_) | None => Map::new(),
    }
}

fn items<T>(node: &Node, key: &str, decode: impl FnMut(&Node) -> T) -> Vec<T> {
    node.get(key).map(|node| node.items().iter().map(decode).collect()).unwrap_or_default()
}

fn ownership(node: &Node, default: OwnershipMode) -> OwnershipMode {
    match node.get("ownership").and_then(|block| block.get("mode")).and_then(Node::as_str) {
        Some("external") => OwnershipMode::External,
        Some("managed") => OwnershipMode::Managed,
        Some("adopted") => OwnershipMode::Adopted,
        Some(_) | None => default,
    }
}

/// Reports every value that stands twice in a list.
fn repeated<'a>(values: impl Iterator<Item = &'a str>) -> Vec<(usize, String)> {
    let mut seen = std::collections::HashSet::new();
    values
        .enumerate()
        .filter(|(_, value)| !seen.insert(*value))
        .map(|(index, value)| (index, value.to_owned()))
        .collect()
}

/// Whether a value was written at all: a written null is not.
fn written(node: &Node, key: &str) -> bool {
    node.entry(key).is_some_and(|entry| !matches!(entry.value.value(), Resolved::Null))
}
