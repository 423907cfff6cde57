//! The bytes of a file: bounded, UTF-8, parsed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::codes::{Code, Diagnostic, Location};
use crate::project::check::MAX_ERRORS;
use crate::project::env;
use crate::project::fs::ProjectFs;
use crate::project::parse;
use crate::project::source::{Recent, Source};
use crate::project::value::Node;

const MAX_FILE: usize = 4 << 20;
pub(super) const MAX_PROJECT: usize = 64 << 20;

pub(super) struct Reader<'a> {
    pub fs: &'a dyn ProjectFs,
    pub total: AtomicUsize,
    pub recent: Arc<Recent>,
}

impl Reader<'_> {
    /// None = no such file.
    pub fn text(&self, path: &Path) -> Result<Option<String>, Diagnostic> {
        let shown = slashed(path);
        let refuse = |message: &str, hint: &str| {
            Err(Diagnostic::new(Code::E501ParseError, message).at(Location::named(shown.clone())).suggest(hint))
        };
        let bytes = match self.fs.read(path, MAX_FILE) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) => return Err(env::unreadable(&shown, &error)),
        };
        if bytes.len() > MAX_FILE {
            return refuse("the file is larger than 4 MiB", "split it into several files");
        }
        if self.total.fetch_add(bytes.len(), Ordering::Relaxed) > MAX_PROJECT {
            return Ok(Some(String::new()));
        }
        let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => rest.to_vec(),
            None => bytes,
        };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let line =
                    error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
                Err(Diagnostic::new(Code::E501ParseError, "the file is not UTF-8")
                    .at(Location::new(shown, line as u32 + 1, 1))
                    .suggest("save it as UTF-8"))
            }
        }
    }

    pub fn tree(&self, path: &Path) -> Result<Option<(Arc<Source>, Node)>, Vec<Diagnostic>> {
        let Some(text) = self.text(path).map_err(|error| vec![error])? else { return Ok(None) };
        let parsed = parse::parse(&text);
        let source = Arc::new(Source::new(slashed(path), text, false).among(&self.recent));
        match parsed {
            Ok(tree) => Ok(Some((source, tree))),
            Err(problems) => Err(problems
                .into_iter()
                .take(MAX_ERRORS)
                .map(|problem| {
                    let mut diagnostic = Diagnostic::new(Code::E501ParseError, problem.message)
                        .at(source.location(problem.line, problem.column))
                        .suggest_opt(problem.suggestion);
                    if !problem.path.is_empty() {
                        diagnostic = diagnostic.path(problem.path.join(" → "));
                    }
                    diagnostic.excerpt = source.excerpt(problem.line, problem.column, problem.width as usize);
                    diagnostic
                })
                .collect()),
        }
    }
}

pub(super) fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}
