//! Documents that a command writes to a file which its caller names. A document replaces the one of an earlier run; what the
//! project is made of is never replaced by one.

use std::path::Path;

use crate::codes::{Code, Diagnostic};
use crate::files::{self, Access};

/// E907 for a path that a document must not take. Asked before anything is contacted.
pub fn check(path: &Path) -> Result<(), Diagnostic> {
    let refused = |what: &str| {
        let message = format!("{} is {what}, which is not overwritten", path.display());
        Err(Diagnostic::new(Code::E907OutputFailed, message).suggest("Name another file"))
    };
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => refused("a directory"),
        Ok(found) if !(found.is_file() || found.is_symlink()) => refused("no regular file"),
        Ok(_) if is_of_the_project(path) => refused("a file of a project"),
        Ok(_) | Err(_) => Ok(()),
    }
}

pub fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    check(path)?;
    files::replace(path, text.as_bytes(), Access::Shared).map_err(|error| files::not_written(path, &error))
}

/// What the loader reads, and what is kept of deployments.
fn is_of_the_project(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kept = || path.components().any(|part| part.as_os_str() == ".streamt");
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("yml" | "yaml" | "sql" | "j2") => true,
        Some("json" | "jsonl" | "lock") if kept() => true,
        Some(_) | None => name.starts_with(".env"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_replaces_a_document_and_nothing_of_a_project() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join(".streamt/state")).unwrap();
        for name in [
            "stream_project.yml",
            "models/../a.yaml",
            "q.sql",
            "m.sql.j2",
            ".env",
            ".env.prod",
            ".streamt/reviewed-plan.json",
            ".streamt/state/prod.control.jsonl",
        ] {
            let path = directory.path().join(name);
            if name.contains("..") {
                std::fs::create_dir(directory.path().join("models")).unwrap();
            }
            write(&path, "first").unwrap();
            let refused = write(&path, "second").unwrap_err();
            assert_eq!(refused.code, Code::E907OutputFailed, "{name}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "first", "{name}");
        }
        for name in ["plan.md", "graph.svg", "graph", ".streamt/plan.md", "lineage.json"] {
            let path = directory.path().join(name);
            write(&path, "first").unwrap();
            write(&path, "second").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "second", "{name}");
        }
        assert!(write(&directory.path().join("models"), "x").is_err());
    }
}
