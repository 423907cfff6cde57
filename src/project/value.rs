//! The YAML tree with positions: what the decoders read, and what locates a finding in the user's file.
//!
//! Scalars keep their text and style; [`Node::value`] resolves them by the YAML 1.2 core schema.

use std::fmt;

use crate::codes::Location;

/// Largest integer that every reader of JSON keeps exactly (RFC 8259, section 6).
pub const MAX_EXACT: i64 = (1 << 53) - 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
    Folded,
    /// A scalar whose text held `${NAME}` and was filled in: it is read as whatever type its field has.
    Interpolated,
    /// A scalar that needs a variable which is not set: it stands for any value of its field.
    Unset,
}

#[derive(Clone)]
pub struct Node {
    pub line: u32,
    pub column: u32,
    pub content: Content,
}

#[derive(Clone)]
pub enum Content {
    Scalar { text: Box<str>, style: Style },
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

#[derive(Clone)]
pub struct Entry {
    pub key: Box<str>,
    pub line: u32,
    pub column: u32,
    pub value: Node,
}

/// A node with its scalar resolved.
#[derive(Clone, Copy)]
pub enum Resolved<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that does not fit 64 bits.
    HugeInt,
    Float(f64),
    Text(&'a str),
    List(&'a [Node]),
    Map(&'a [Entry]),
}

impl Resolved<'_> {
    /// With its article, for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::HugeInt => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl Node {
    pub fn empty_mapping() -> Self {
        Self { line: 1, column: 1, content: Content::Mapping(Vec::new()) }
    }

    pub fn value(&self) -> Resolved<'_> {
        match &self.content {
            Content::Sequence(items) => Resolved::List(items),
            Content::Mapping(entries) => Resolved::Map(entries),
            Content::Scalar { text, style: Style::Plain } => plain(text),
            Content::Scalar { text, .. } => Resolved::Text(text),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value(), Resolved::Null)
    }

    pub fn is_interpolated(&self) -> bool {
        matches!(self.content, Content::Scalar { style: Style::Interpolated, .. })
    }

    pub fn is_unset(&self) -> bool {
        matches!(self.content, Content::Scalar { style: Style::Unset, .. })
    }

    pub fn as_str(&self) -> Option<&str> {
        match self.value() {
            Resolved::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn items(&self) -> &[Node] {
        match &self.content {
            Content::Sequence(items) => items,
            _ => &[],
        }
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Mapping(entries) => entries,
            _ => &[],
        }
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| &*entry.key == key)
    }

    /// The value of a key; a written null counts as absent.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value).filter(|value| !value.is_null())
    }

    /// The node at a dotted field path, or its nearest written ancestor. Keys that hold dots themselves are matched whole.
    pub fn nearest(&self, field: &str) -> &Node {
        self.descend(field).0
    }

    /// [`Self::nearest`], and whether the whole path was found.
    pub fn descend(&self, field: &str) -> (&Node, bool) {
        let (mut node, mut rest) = (self, field);
        while !rest.is_empty() {
            match node.step(rest) {
                Some((child, remaining)) => (node, rest) = (child, remaining),
                None => return (node, false),
            }
        }
        (node, true)
    }

    /// The segments of a dotted field path: keys that hold dots whole, as far as the path was written.
    pub fn segments<'p>(&self, field: &'p str) -> Vec<&'p str> {
        let (mut node, mut rest, mut segments) = (self, field, Vec::new());
        while !rest.is_empty() {
            match node.step(rest) {
                Some((child, remaining)) => {
                    let taken = rest.len() - remaining.len();
                    segments.push(rest[..taken].trim_end_matches('.'));
                    (node, rest) = (child, remaining);
                }
                None => break,
            }
        }
        segments.extend(rest.split('.').filter(|segment| !segment.is_empty()));
        segments
    }

    /// One step down, by the longest leading part of `path` that names a child.
    fn step<'a, 'p>(&'a self, path: &'p str) -> Option<(&'a Node, &'p str)> {
        let mut end = path.len();
        loop {
            let head = &path[..end];
            let child = match &self.content {
                Content::Scalar { .. } => None,
                Content::Sequence(items) => head.parse::<usize>().ok().and_then(|index| items.get(index)),
                Content::Mapping(_) => self.entry(head).map(|entry| &entry.value),
            };
            if let Some(child) = child {
                return Some((child, path[end..].strip_prefix('.').unwrap_or("")));
            }
            end = head.rfind('.')?;
        }
    }

    pub fn location(&self, file: &std::sync::Arc<str>) -> Location {
        Location::new(file.clone(), self.line, self.column)
    }

    /// As JSON: null, booleans, exact integers, finite floats, strings, lists, maps in the author's order. An interpolated
    /// scalar stays a string.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match self.value() {
            Resolved::Null => Value::Null,
            Resolved::Bool(value) => Value::Bool(value),
            Resolved::Int(value) => Value::from(value),
            Resolved::HugeInt => Value::Null,
            Resolved::Float(value) => Value::from(value),
            Resolved::Text(text) => Value::from(text),
            Resolved::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Resolved::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.to_string(), entry.value.to_json())).collect())
            }
        }
    }
}

/// Kind and place only: a tree may hold secrets.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}:{}", self.value().describe(), self.line, self.column)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.key, self.value)
    }
}

/// YAML 1.2 core schema, section 10.3.2.
fn plain(text: &str) -> Resolved<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Resolved::Null,
        "true" | "True" | "TRUE" => return Resolved::Bool(true),
        "false" | "False" | "FALSE" => return Resolved::Bool(false),
        _ => {}
    }
    let bytes = text.as_bytes();
    if !matches!(bytes[0], b'0'..=b'9' | b'+' | b'-' | b'.') {
        return Resolved::Text(text);
    }
    if let Some(digits) = text.strip_prefix("0o")
        && !digits.is_empty()
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'7'))
    {
        return i64::from_str_radix(digits, 8).map_or(Resolved::HugeInt, Resolved::Int);
    }
    if let Some(digits) = text.strip_prefix("0x")
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return i64::from_str_radix(digits, 16).map_or(Resolved::HugeInt, Resolved::Int);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_or(Resolved::HugeInt, Resolved::Int);
    }
    match unsigned {
        ".inf" | ".Inf" | ".INF" => return Resolved::Float(f64::INFINITY),
        _ if matches!(text, ".nan" | ".NaN" | ".NAN") => return Resolved::Float(f64::NAN),
        _ => {}
    }
    if is_float(unsigned)
        && let Ok(value) = text.parse::<f64>()
    {
        return Resolved::Float(value);
    }
    Resolved::Text(text)
}

/// `(\.[0-9]+ | [0-9]+(\.[0-9]*)?) ([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|text| {
        let text = text.strip_prefix(['+', '-']).unwrap_or(text);
        !text.is_empty() && digits(text)
    });
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_fits
}
