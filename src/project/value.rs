//! The YAML tree with positions: what the decoders read, and what locates a finding in the user's file.

use std::sync::Arc;

use crate::codes::{Excerpt, Location};

/// One node of a parsed file. Owner: the loader.
#[derive(Debug)]
pub struct Node {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl Node {
    pub fn location(&self) -> Location {
        Location::new(self.file.clone(), self.line, self.column)
    }

    /// The node at a dotted field path, or its nearest written ancestor.
    pub fn nearest(&self, _field: &str) -> &Node {
        self
    }

    /// The place of byte `offset` of a scalar's text in the file, and the line it stands on.
    pub fn locate(&self, _offset: usize, _width: usize) -> (Location, Option<Excerpt>) {
        (self.location(), None)
    }
}
