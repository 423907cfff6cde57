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
}

impl Origin {
    /// `section` is dotted (`lifecycle.connector_removals`); `item` is the index in it, or the key, dots and all.
    pub fn new(source: Arc<Source>, section: &'static str, item: impl Into<Arc<str>>) -> Self {
        Self { source: Some(source), section, item: item.into() }
    }

    /// The declaration's own place.
    pub fn location(&self) -> Option<Location> {
        self.at("")
    }

    /// The place of a field, for example `sink.config.topics` or `columns.0.type`; the nearest known ancestor when the
    /// field was not written.
    pub fn at(&self, field: &str) -> Option<Location> {
        let (source, node) = self.find(field)?;
        Some(source.location(node.line, node.column))
    }

    /// The place of byte `offset` inside a text field, in the user's file, with the line it stands on.
    pub fn in_text(&self, field: &str, offset: usize, width: usize) -> Option<(Location, Option<Excerpt>)> {
        let (source, node) = self.find(field)?;
        Some(source.locate(node, offset, width))
    }

    /// The diagnostic with the location, the logical path and the excerpt of a field.
    pub fn mark(&self, field: &str, diagnostic: Diagnostic) -> Diagnostic {
        let mut diagnostic = diagnostic.path(self.path(field));
        if let Some((source, node)) = self.find(field) {
            diagnostic.excerpt =
                source.excerpt(node.line, node.column, node.as_str().map_or(1, |text| text.chars().count()));
            diagnostic.location = Some(source.location(node.line, node.column));
        }
        diagnostic
    }

    /// Logical path of a field of this declaration.
    pub fn path(&self, field: &str) -> String {
        let mut segments: Vec<&str> =
            self.section.split('.').chain([&*self.item]).filter(|part| !part.is_empty()).collect();
        match self.own() {
            Some((_, node)) => segments.extend(node.segments(field)),
            None => segments.extend(field.split('.').filter(|part| !part.is_empty())),
        }
        segments.join(" → ")
    }

    fn own(&self) -> Option<(&Source, &Node)> {
        let source = self.source.as_deref()?;
        let section = source.tree()?.nearest(self.section);
        Some((
            source,
            match section.entry(&self.item) {
                Some(entry) => &entry.value,
                None => section.nearest(&self.item),
            },
        ))
    }

    fn find(&self, field: &str) -> Option<(&Source, &Node)> {
        let (source, own) = self.own()?;
        let (node, found) = own.descend(field);
        if found {
            return Some((source, node));
        }
        // Fields that were written under an older name.
        let older = match field.split_once('.') {
            Some(("sink", "connector")) => "connector.type".to_owned(),
            Some(("sink", rest)) => format!("connector.{rest}"),
            Some(("columns", rest)) => format!("schema.fields.{rest}"),
            Some(_) | None => format!("advanced.{field}"),
        };
        let (moved, found) = own.descend(&older);
        Some((source, if found { moved } else { node }))
    }
}
