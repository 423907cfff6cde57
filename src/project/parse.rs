//! From the text of one YAML file to its tree: one document, string keys, no duplicates, aliases and merge keys resolved.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};

use super::quick;
use super::value::{Content, Entry, MAX_EXACT, Node, Resolved, Style};

/// Nodes that aliases and merge keys may copy in one file.
pub const MAX_COPIED_NODES: usize = 100_000;
/// Nesting of lists and mappings.
pub const MAX_DEPTH: usize = 64;

/// What is wrong with a file's YAML, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub line: u32,
    pub column: u32,
    /// Logical path, outermost first.
    pub path: Vec<String>,
    pub message: String,
    pub suggestion: Option<String>,
    /// Characters underlined.
    pub width: u32,
}

/// A file's tree, or everything that is wrong with its YAML. An empty file is an empty mapping.
pub fn parse(text: &str) -> Result<Node, Vec<Problem>> {
    match quick::read(text) {
        Some(tree) => Ok(tree),
        None => full(text),
    }
}

/// [`parse`] by the parser of the whole of YAML.
pub(super) fn full(text: &str) -> Result<Node, Vec<Problem>> {
    // The scanner is foreign code reading arbitrary bytes: a fault in it is an error of the file, not the end of the program.
    catch_unwind(AssertUnwindSafe(|| Builder::default().run(text))).unwrap_or_else(|_| {
        Err(vec![problem(1, 1, "this file cannot be read as YAML", Some("simplify its flow collections and quoting"))])
    })
}

fn problem(line: u32, column: u32, message: impl Into<String>, suggestion: Option<&str>) -> Problem {
    let suggestion = suggestion.map(str::to_owned);
    Problem { line, column, path: Vec::new(), message: message.into(), suggestion, width: 1 }
}

#[derive(Default)]
struct Builder {
    open: Vec<Frame>,
    root: Option<Node>,
    anchors: HashMap<usize, (Node, usize)>,
    copied: usize,
    documents: usize,
    problems: Vec<Problem>,
}

struct Frame {
    line: u32,
    column: u32,
    anchor: usize,
    kind: FrameKind,
}

enum FrameKind {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, merges: Vec<Node>, pending: Option<Pending> },
}

struct Pending {
    key: Box<str>,
    line: u32,
    column: u32,
    /// `<<` written plain.
    merge: bool,
}

impl Builder {
    fn run(mut self, text: &str) -> Result<Node, Vec<Problem>> {
        let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            let (event, span) = match event {
                Ok(event) => event,
                Err(error) => {
                    let (line, column) = (error.marker().line() as u32, error.marker().col() as u32 + 1);
                    self.problems.push(syntax(line, column, error.info()));
                    break;
                }
            };
            if !self.take(event, span) {
                break;
            }
        }
        if !self.problems.is_empty() {
            self.problems.sort_by_key(|problem| (problem.line, problem.column));
            return Err(self.problems);
        }
        let root = match self.root {
            Some(node) if !node.is_null() => node,
            Some(_) | None => return Ok(Node::empty_mapping()),
        };
        match root.content {
            Content::Mapping(_) => Ok(root),
            Content::Scalar { .. } | Content::Sequence(_) => Err(vec![problem(
                root.line,
                root.column,
                format!("the file must be a mapping, found {}", root.value().describe()),
                Some("begin with a key, for example 'models:'"),
            )]),
        }
    }

    /// False = stop reading.
    fn take(&mut self, event: Event<'_>, span: Span) -> bool {
        let (line, column) = (span.start.line() as u32, span.start.col() as u32 + 1);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => true,
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.report(
                        line,
                        column,
                        "the file holds more than one YAML document",
                        Some("split it into several files"),
                    );
                    return false;
                }
                true
            }
            Event::Scalar(text, style, anchor, tag) => {
                let (text, style) = self.scalar(text, style, tag.as_deref(), line, column);
                self.place(Node { line, column, content: Content::Scalar { text, style } }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", line, column);
                self.push(Frame { line, column, anchor, kind: FrameKind::List(Vec::new()) })
            }
            Event::MappingStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", line, column);
                let kind = FrameKind::Map { entries: Vec::new(), merges: Vec::new(), pending: None };
                self.push(Frame { line, column, anchor, kind })
            }
            Event::SequenceEnd | Event::MappingEnd => self.pop(),
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor) else {
                    self.report(
                        line,
                        column,
                        "an alias cannot stand inside the value it names",
                        Some("remove the alias"),
                    );
                    return false;
                };
                self.copied += size;
                if self.copied > MAX_COPIED_NODES {
                    let message = format!("aliases expand to more than {MAX_COPIED_NODES} nodes");
                    self.report(line, column, message, Some("write the repeated part out where it is needed"));
                    return false;
                }
                let node = node.clone();
                if self.open.len() + depth(&node) > MAX_DEPTH {
                    return self.too_deep(line, column);
                }
                self.place(node, 0)
            }
        }
    }

    fn push(&mut self, frame: Frame) -> bool {
        if self.open.len() >= MAX_DEPTH {
            return self.too_deep(frame.line, frame.column);
        }
        self.open.push(frame);
        true
    }

    fn too_deep(&mut self, line: u32, column: u32) -> bool {
        self.report(line, column, format!("more than {MAX_DEPTH} levels of nesting"), Some("flatten the structure"));
        false
    }

    fn pop(&mut self) -> bool {
        let Some(frame) = self.open.pop() else { return true };
        let Frame { line, column, anchor, kind } = frame;
        let content = match kind {
            FrameKind::List(items) => Content::Sequence(items),
            FrameKind::Map { mut entries, merges, .. } => {
                self.duplicates(&entries);
                for merged in merges {
                    self.merge(&mut entries, merged);
                }
                Content::Mapping(entries)
            }
        };
        self.place(Node { line, column, content }, anchor)
    }

    /// Puts a finished node where it belongs: as a key, a value, an item, or the root.
    fn place(&mut self, node: Node, anchor: usize) -> bool {
        if anchor > 0 {
            let size = count(&node);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(node);
            return true;
        };
        match &mut frame.kind {
            FrameKind::List(items) => items.push(node),
            FrameKind::Map { entries, merges, pending } => match pending.take() {
                Some(key) if key.merge => merges.push(node),
                Some(Pending { key, line, column, .. }) => entries.push(Entry { key, line, column, value: node }),
                None => {
                    let (line, column) = (node.line, node.column);
                    let (key, wrong) = match node.content {
                        Content::Scalar { text, style: Style::Plain } if &*text == "<<" => {
                            *pending = Some(Pending { key: text, line, column, merge: true });
                            return true;
                        }
                        Content::Scalar { text, style } => {
                            let probe = Node { line, column, content: Content::Scalar { text, style } };
                            let wrong = (probe.as_str().is_none()).then(|| probe.value().describe());
                            match probe.content {
                                Content::Scalar { text, .. } => (text, wrong),
                                Content::Sequence(_) | Content::Mapping(_) => (Box::default(), wrong),
                            }
                        }
                        Content::Sequence(_) => (Box::default(), Some("a list")),
                        Content::Mapping(_) => (Box::default(), Some("a mapping")),
                    };
                    *pending = Some(Pending { key, line, column, merge: false });
                    if let Some(kind) = wrong {
                        let message = format!("a key must be a string, found {kind}");
                        self.report(line, column, message, Some("write the key in quotes"));
                    }
                }
            },
        }
        true
    }

    fn merge(&mut self, entries: &mut Vec<Entry>, merged: Node) {
        let (line, column) = (merged.line, merged.column);
        let sources = match merged.content {
            Content::Mapping(_) => vec![merged],
            Content::Sequence(items) => items,
            Content::Scalar { .. } => vec![merged],
        };
        for source in sources {
            let Content::Mapping(more) = source.content else {
                let hint = Some("merge an alias of a mapping, for example '<<: *defaults'");
                self.report(line, column, "a merge key takes a mapping or a list of mappings", hint);
                return;
            };
            for entry in more {
                if !entries.iter().any(|known| known.key == entry.key) {
                    entries.push(entry);
                }
            }
        }
    }

    fn duplicates(&mut self, entries: &[Entry]) {
        let twice: Vec<usize> = if entries.len() <= 16 {
            (1..entries.len()).filter(|&i| entries[..i].iter().any(|earlier| earlier.key == entries[i].key)).collect()
        } else {
            let mut seen = HashSet::with_capacity(entries.len());
            (0..entries.len()).filter(|&i| !seen.insert(&*entries[i].key)).collect()
        };
        for index in twice {
            let Entry { key, line, column, .. } = &entries[index];
            let first = entries.iter().find(|earlier| earlier.key == *key).map_or(*line, |earlier| earlier.line);
            self.report(
                *line,
                *column,
                format!("the key '{}' is written twice", printable(key)),
                Some(&format!("keep one of them; the first stands in line {first}")),
            );
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        line: u32,
        column: u32,
    ) -> (Box<str>, Style) {
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::SingleQuoted,
            ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
            ScalarStyle::Literal => Style::Literal,
            ScalarStyle::Folded => Style::Folded,
        };
        let node = Node { line, column, content: Content::Scalar { text: text.into(), style } };
        let mut forced = style;
        if let Some(tag) = tag {
            let fits = tag.is_yaml_core_schema()
                && match (tag.suffix.as_str(), node.value()) {
                    ("str", _) => {
                        forced = if style == Style::Plain { Style::Interpolated } else { style };
                        true
                    }
                    ("null", Resolved::Null) | ("bool", Resolved::Bool(_)) | ("int", Resolved::Int(_)) => true,
                    ("float", Resolved::Float(_) | Resolved::Int(_)) => true,
                    _ => false,
                };
            if !fits {
                self.report(line, column, "YAML tags are not part of the language", Some("remove the tag"));
            }
        }
        if forced == style {
            self.number(&node);
        }
        match node.content {
            // A string by its tag; quoted, as far as its reader is concerned.
            Content::Scalar { text, .. } if forced != style => (text, Style::SingleQuoted),
            Content::Scalar { text, .. } => (text, style),
            Content::Sequence(_) | Content::Mapping(_) => (Box::default(), style),
        }
    }

    fn number(&mut self, node: &Node) {
        let quote = Some("write it as a string, in quotes");
        match node.value() {
            Resolved::HugeInt => self.report(node.line, node.column, "the integer is outside ±(2^53 - 1)", quote),
            Resolved::Int(value) if value.unsigned_abs() > MAX_EXACT as u64 => {
                self.report(node.line, node.column, "the integer is outside ±(2^53 - 1)", quote);
            }
            Resolved::Float(value) if !value.is_finite() => {
                self.report(
                    node.line,
                    node.column,
                    "numbers must be finite",
                    Some("remove it, or write it as a string, in quotes"),
                );
            }
            // Below 1e21 the canonical text of a whole float is that of an integer.
            Resolved::Float(value) if value.abs() > MAX_EXACT as f64 && value.abs() < 1e21 => {
                self.report(node.line, node.column, "the number is an integer outside ±(2^53 - 1)", quote);
            }
            Resolved::Null
            | Resolved::Bool(_)
            | Resolved::Int(_)
            | Resolved::Float(_)
            | Resolved::Text(_)
            | Resolved::List(_)
            | Resolved::Map(_) => {}
        }
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, own: &str, line: u32, column: u32) {
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == own)
        {
            self.report(line, column, "YAML tags are not part of the language", Some("remove the tag"));
        }
    }

    fn report(&mut self, line: u32, column: u32, message: impl Into<String>, suggestion: Option<&str>) {
        let mut path = Vec::new();
        for frame in &self.open {
            match &frame.kind {
                FrameKind::List(items) => path.push(items.len().to_string()),
                FrameKind::Map { pending, .. } => path.extend(pending.iter().map(|pending| printable(&pending.key))),
            }
        }
        self.problems.push(Problem { path, ..problem(line, column, message, suggestion) });
    }
}

fn syntax(line: u32, column: u32, info: &str) -> Problem {
    let hint = match info {
        _ if info.contains("tab") => "indent with spaces",
        _ if info.contains("mapping values are not allowed") || info.contains("expected key") => {
            "check the indentation of this line and the one above, and quote text that holds ': '"
        }
        _ if info.contains("quoted scalar") || info.contains("unexpected end of stream") => {
            "close the quotes or the bracket"
        }
        _ if info.contains("anchor") => "define the anchor with '&name' before the alias '*name'",
        _ => "check indentation, quotes and brackets around this place",
    };
    problem(line.max(1), column, format!("invalid YAML: {}", printable(info)), Some(hint))
}

/// Text of the user's for a message: no control characters, at most 80 characters.
pub fn printable(text: &str) -> String {
    let mut shown: String = text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(80).is_some() {
        shown.push('…');
    }
    shown
}

fn count(node: &Node) -> usize {
    match &node.content {
        Content::Scalar { .. } => 1,
        Content::Sequence(items) => 1 + items.iter().map(count).sum::<usize>(),
        Content::Mapping(entries) => 1 + entries.iter().map(|entry| 1 + count(&entry.value)).sum::<usize>(),
    }
}

fn depth(node: &Node) -> usize {
    match &node.content {
        Content::Scalar { .. } => 0,
        Content::Sequence(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Content::Mapping(entries) => 1 + entries.iter().map(|entry| depth(&entry.value)).max().unwrap_or(0),
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
