//! Where a declaration stands in the user's files, down to each of its fields.

use std::sync::Arc;

use crate::codes::{Excerpt, Location};

use super::value::Node;

/// The place of one declaration. Cheap to clone. The default origin knows no file (declarations built in tests).
#[derive(Clone, Default, Debug)]
pub struct Origin {
    node: Option<Arc<Node>>,
    /// Logical path of the declaration, segments joined by ` → `, for example `models → 0`.
    path: Arc<str>,
}

impl Origin {
    pub fn new(node: Arc<Node>, path: impl Into<Arc<str>>) -> Self {
        Self { node: Some(node), path: path.into() }
    }

    /// The declaration's own place.
    pub fn location(&self) -> Option<Location> {
        self.at("")
    }

    /// The place of a field, for example `sink.config.topics` or `columns.0.type`; the nearest known ancestor when the
    /// field was not written.
    pub fn at(&self, field: &str) -> Option<Location> {
        self.node.as_ref().map(|node| node.nearest(field).location())
    }

    /// The place of byte `offset` inside a text field, in the user's file, with the line it stands on.
    pub fn in_text(&self, field: &str, offset: usize, width: usize) -> Option<(Location, Option<Excerpt>)> {
        self.node.as_ref().map(|node| node.nearest(field).locate(offset, width))
    }

    /// Logical path of a field of this declaration.
    pub fn path(&self, field: &str) -> String {
        let mut path = self.path.to_string();
        for segment in field.split('.').filter(|segment| !segment.is_empty()) {
            path.push_str(" → ");
            path.push_str(segment);
        }
        path
    }
}
