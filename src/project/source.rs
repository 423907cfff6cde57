//! One file of the project as the user wrote it: its text, for excerpts and positions inside scalars, and its tree, built again
//! when a finding needs it and dropped when others were needed since: texts stay, trees do not add up.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::codes::{Excerpt, Location};

use super::locate::{self, Rows};
use super::parse;
use super::value::{Content, Node};

/// Lines longer than this are not shown.
const MAX_EXCERPT: usize = 400;

/// The trees of a project's files that were asked for last: findings of one file mostly come together.
#[derive(Default)]
pub struct Recent(Mutex<VecDeque<(usize, Arc<Node>)>>);

impl Recent {
    /// Bytes of text whose trees are kept; of a larger file the last one alone.
    const TEXT: usize = 1 << 16;

    fn keep(&self, text: usize, tree: &Arc<Node>) {
        let mut kept = lock(&self.0);
        kept.push_back((text, Arc::clone(tree)));
        let mut total: usize = kept.iter().map(|(text, _)| text).sum();
        while total > Self::TEXT && kept.len() > 1 {
            total -= kept.pop_front().map_or(0, |(text, _)| text);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Source {
    path: Arc<str>,
    text: String,
    /// No line of this file is ever shown.
    confidential: bool,
    tree: Mutex<Weak<Node>>,
    recent: Arc<Recent>,
    /// Where each line begins.
    starts: OnceLock<Vec<usize>>,
    /// The lines, sorted, from which on what is written holds a secret, or no more. A line belongs to the keys and values that
    /// begin on it, else to the last before it; where the YAML is broken, to itself.
    guards: OnceLock<Vec<(u32, bool)>>,
}

impl Source {
    pub fn new(path: impl Into<Arc<str>>, text: String, confidential: bool) -> Self {
        Self {
            path: path.into(),
            text,
            confidential,
            tree: Mutex::default(),
            recent: Arc::default(),
            starts: OnceLock::new(),
            guards: OnceLock::new(),
        }
    }

    /// Its tree counts among those of a project.
    pub fn among(self, recent: &Arc<Recent>) -> Self {
        Self { recent: Arc::clone(recent), ..self }
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
    pub fn tree(&self) -> Option<Arc<Node>> {
        let mut known = lock(&self.tree);
        if let Some(tree) = known.upgrade() {
            return Some(tree);
        }
        let tree = Arc::new(parse::parse(&self.text).ok()?);
        *known = Arc::downgrade(&tree);
        self.recent.keep(self.text.len(), &tree);
        Some(tree)
    }

    fn rows(&self) -> Rows<'_> {
        Rows::new(&self.text, self.starts.get_or_init(|| Rows::starts(&self.text)))
    }

    /// The place of byte `offset` of a scalar's text, and its line.
    pub fn locate(&self, node: &Node, offset: usize, width: usize) -> (Location, Option<Excerpt>) {
        let (line, column) = locate::locate(self.rows(), node, offset);
        (self.location(line, column), self.excerpt(line, column, width))
    }

    /// The line itself, unless it may hold a secret or a value of `lifecycle`.
    pub fn excerpt(&self, line: u32, column: u32, width: usize) -> Option<Excerpt> {
        if self.confidential || line == 0 || self.guarded(line) {
            return None;
        }
        let text = self.rows().line(line)?;
        if text.len() > MAX_EXCERPT || (text.contains("://") && text.contains('@')) {
            return None;
        }
        let rest = text.chars().count().saturating_sub(column.saturating_sub(1) as usize).max(1);
        Some(Excerpt { line: text.to_owned(), width: width.clamp(1, rest) as u32 })
    }

    fn guarded(&self, line: u32) -> bool {
        let guards = self.guards.get_or_init(|| match self.tree() {
            Some(tree) => {
                let mut guards = Vec::new();
                collect_guards(&tree, false, true, &mut guards);
                guards.sort_unstable();
                turns(&guards)
            }
            None => turns(&self.guards_by_text()),
        });
        let after = guards.partition_point(|(at, _)| *at <= line);
        after.checked_sub(1).is_some_and(|last| guards[last].1)
    }

    /// Without a tree: everything since the last key of the first column is judged together.
    fn guards_by_text(&self) -> Vec<(u32, bool)> {
        let mut guarded = false;
        let judged = locate::lines(&self.text).map(|text| {
            if !text.starts_with([' ', '\t', '#', '-']) && !text.is_empty() {
                guarded = text.starts_with("lifecycle");
            }
            guarded |= is_sensitive(text);
            guarded
        });
        (1..).zip(judged).collect()
    }
}

/// From sorted (line, holds a secret) to the lines where that changes.
fn turns(guards: &[(u32, bool)]) -> Vec<(u32, bool)> {
    let mut turns = Vec::new();
    let mut before = false;
    for line in guards.chunk_by(|(a, _), (b, _)| a == b) {
        let secret = line.iter().any(|(_, secret)| *secret);
        if secret != before {
            turns.extend(line.first().map(|(at, _)| (*at, secret)));
            before = secret;
        }
    }
    turns
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
    const WORDS: [&str; 11] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "credential",
        "api_key",
        "private_key",
        "jaas",
        "user_info",
        "authorization",
    ];
    let name = name.to_ascii_lowercase().replace(['.', '-'], "_");
    WORDS.iter().any(|word| name.contains(word)) || name.contains("apikey")
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
