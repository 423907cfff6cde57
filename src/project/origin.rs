//! Where a declaration stands in the user's files, down to each of its fields.

use std::sync::Arc;

use crate::codes::{Diagnostic, Excerpt, Location};

use super::source::Source;
use super::value::Node;

/// The place of one declaration. Cheap to clone and small. The default origin knows no file (declarations built in tests).
#[derive(Clone, Default, Debug)]
pub struct Origin {
    source: Option<Arc<Source>>,
    /// Dotted path of the list or map that holds the declaration, for example `models`.
    section: &'static str,
    /// Its index there, or its key.
    item: Arc<str>,
    /// Line and column of a mapping, where they are known without its tree.
    place: Option<(u32, u32)>,
}

impl Origin {
    /// `section` is dotted (`lifecycle.connector_removals`); `item` is the index in it, or the key, dots and all.
    pub fn new(source: Arc<Source>, section: &'static str, item: impl Into<Arc<str>>) -> Self {
        Self { source: Some(source), section, item: item.into(), place: None }
    }

    /// The declaration is this mapping: its own place needs no tree any more.
    pub fn standing_at(self, mapping: &Node) -> Self {
        Self { place: Some((mapping.line, mapping.column)), ..self }
    }

    /// The declaration's own place.
    pub fn location(&self) -> Option<Location> {
        self.at("")
    }

    /// The place of a field, for example `sink.config.topics` or `columns.0.type`; the nearest known ancestor when the
    /// field was not written.
    pub fn at(&self, field: &str) -> Option<Location> {
        if let ("", Some((line, column)), Some(source)) = (field, self.place, &self.source) {
            return Some(source.location(line, column));
        }
        self.find(field, |source, node| source.location(node.line, node.column))
    }

    /// The place of byte `offset` inside a text field, in the user's file, with the line it stands on.
    pub fn in_text(&self, field: &str, offset: usize, width: usize) -> Option<(Location, Option<Excerpt>)> {
        self.find(field, |source, node| source.locate(node, offset, width))
    }

    /// The diagnostic with the location, the logical path and the excerpt of a field.
    pub fn mark(&self, field: &str, diagnostic: Diagnostic) -> Diagnostic {
        let mut diagnostic = diagnostic.path(self.path(field));
        let width = |node: &Node| node.as_str().map_or(1, |text| text.chars().count());
        let place = match (field, self.place) {
            ("", Some((line, column))) => Some((line, column, 1)),
            (_, _) => self.find(field, |_, node| (node.line, node.column, width(node))),
        };
        if let (Some((line, column, width)), Some(source)) = (place, &self.source) {
            diagnostic.excerpt = source.excerpt(line, column, width);
            diagnostic.location = Some(source.location(line, column));
        }
        diagnostic
    }

    /// Logical path of a field of this declaration.
    pub fn path(&self, field: &str) -> String {
        let mut segments: Vec<&str> =
            self.section.split('.').chain([&*self.item]).filter(|part| !part.is_empty()).collect();
        let written = (!field.is_empty()).then(|| self.own(|_, node| node.segments(field))).flatten();
        match written {
            Some(written) => segments.extend(written),
            None => segments.extend(field.split('.').filter(|part| !part.is_empty())),
        }
        segments.join(" → ")
    }

    fn own<T>(&self, read: impl FnOnce(&Source, &Node) -> T) -> Option<T> {
        let source = self.source.as_deref()?;
        let tree = source.tree()?;
        let section = tree.nearest(self.section);
        let node = match section.entry(&self.item) {
            Some(entry) => &entry.value,
            None => section.nearest(&self.item),
        };
        Some(read(source, node))
    }

    fn find<T>(&self, field: &str, read: impl FnOnce(&Source, &Node) -> T) -> Option<T> {
        self.own(|source, own| {
            let (node, found) = own.descend(field);
            if found {
                return read(source, node);
            }
            // Fields that were written under an older name.
            let older = match field.split_once('.') {
                Some(("sink", "connector")) => "connector.type".to_owned(),
                Some(("sink", rest)) => format!("connector.{rest}"),
                Some(("columns", rest)) => format!("schema.fields.{rest}"),
                Some(_) | None => format!("advanced.{field}"),
            };
            let (moved, found) = own.descend(&older);
            read(source, if found { moved } else { node })
        })
    }
}
