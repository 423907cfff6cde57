//! One file of the project as the user wrote it: its text, for excerpts and positions inside scalars, and its tree, built again
//! only when a finding needs it (a project without findings keeps texts alone).

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::codes::{Excerpt, Location};

use super::locate;
use super::parse;
use super::value::{Content, Node};

/// Lines longer than this are not shown.
const MAX_EXCERPT: usize = 400;

pub struct Source {
    path: Arc<str>,
    text: String,
    /// No line of this file is ever shown.
    confidential: bool,
    tree: OnceLock<Option<Node>>,
    /// Sorted (line, holds a secret) of every key and value.
    guards: OnceLock<Vec<(u32, bool)>>,
}

impl Source {
    pub fn new(path: impl Into<Arc<str>>, text: String, confidential: bool) -> Self {
        Self { path: path.into(), text, confidential, tree: OnceLock::new(), guards: OnceLock::new() }
    }

    pub fn path(&self) -> &Arc<str> {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn location(&self, line: u32, column: u32) -> Location {
        Location::new(self.path.clone(), line, column)
    }

    /// The file's tree; none when its YAML is broken.
    pub fn tree(&self) -> Option<&Node> {
        self.tree.get_or_init(|| parse::parse(&self.text).ok()).as_ref()
    }

    /// The place of byte `offset` of a scalar's text, and its line.
    pub fn locate(&self, node: &Node, offset: usize, width: usize) -> (Location, Option<Excerpt>) {
        let (line, column) = locate::locate(&self.text, node, offset);
        (self.location(line, column), self.excerpt(line, column, width))
    }

    /// The line itself, unless it may hold a secret or a value of `lifecycle`.
    pub fn excerpt(&self, line: u32, column: u32, width: usize) -> Option<Excerpt> {
        if self.confidential || line == 0 || self.guarded(line) {
            return None;
        }
        let text = locate::line(&self.text, line)?;
        if text.len() > MAX_EXCERPT || (text.contains("://") && text.contains('@')) {
            return None;
        }
        let rest = text.chars().count().saturating_sub(column.saturating_sub(1) as usize).max(1);
        Some(Excerpt { line: text.to_owned(), width: width.clamp(1, rest) as u32 })
    }

    fn guarded(&self, line: u32) -> bool {
        match self.tree() {
            Some(tree) => {
                let guards = self.guards.get_or_init(|| {
                    let mut guards = Vec::new();
                    collect_guards(tree, false, true, &mut guards);
                    guards.sort_unstable();
                    guards
                });
                let after = guards.partition_point(|(at, _)| *at <= line);
                let Some((own, _)) = after.checked_sub(1).map(|last| guards[last]) else { return false };
                guards[..after].iter().rev().take_while(|(at, _)| *at == own).any(|(_, secret)| *secret)
            }
            None => self.guarded_by_text(line),
        }
    }

    /// Without a tree: everything since the last key of the first column is judged together.
    fn guarded_by_text(&self, line: u32) -> bool {
        let mut guarded = false;
        for (number, text) in locate::lines(&self.text).enumerate() {
            if number as u32 >= line {
                break;
            }
            if !text.starts_with([' ', '\t', '#', '-']) && !text.is_empty() {
                guarded = text.starts_with("lifecycle");
            }
            guarded |= is_sensitive(text);
        }
        guarded
    }
}

fn collect_guards(node: &Node, secret: bool, root: bool, guards: &mut Vec<(u32, bool)>) {
    guards.push((node.line, secret));
    match &node.content {
        Content::Scalar { .. } => {}
        Content::Sequence(items) => items.iter().for_each(|item| collect_guards(item, secret, false, guards)),
        Content::Mapping(entries) => {
            for entry in entries {
                let secret = secret || is_sensitive(&entry.key) || (root && &*entry.key == "lifecycle");
                guards.push((entry.line, secret));
                collect_guards(&entry.value, secret, false, guards);
            }
        }
    }
}

/// Names that say that their value is a secret.
pub fn is_sensitive(name: &str) -> bool {
    const WORDS: [&str; 9] =
        ["password", "passwd", "passphrase", "secret", "token", "credential", "api_key", "private_key", "jaas"];
    let name = name.to_ascii_lowercase().replace(['.', '-'], "_");
    WORDS.iter().any(|word| name.contains(word)) || name.contains("apikey")
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
