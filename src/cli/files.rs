//! Files that commands write: complete or not at all, and never through a link that someone else placed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::codes::{Code, Diagnostic};

/// Whether the bytes must survive a power cut, or can be produced again from the project.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    Durable,
    Reproducible,
}

/// Replaces a file in one step; on failure the old one stands.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let stage = stage_path(path)?;
    let staged = write_stage(&stage, bytes, durability).and_then(|()| std::fs::rename(&stage, path));
    if staged.is_err() {
        let _ = std::fs::remove_file(&stage);
    }
    staged?;
    match (durability, path.parent()) {
        (Durability::Durable, Some(parent)) => File::open(directory(parent))?.sync_all(),
        (Durability::Durable, None) | (Durability::Reproducible, _) => Ok(()),
    }
}

fn directory(parent: &Path) -> &Path {
    if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
}

fn stage_path(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut stage = std::ffi::OsString::from(".");
    stage.push(name);
    stage.push(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
    Ok(path.with_file_name(stage))
}

fn write_stage(stage: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(stage)?;
    file.write_all(bytes)?;
    match durability {
        Durability::Durable => file.sync_all(),
        Durability::Reproducible => Ok(()),
    }
}

/// The error of a file that a command was asked to write.
pub fn not_written(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(Code::E907OutputFailed, format!("{} cannot be written: {}", path.display(), error.kind()))
        .suggest("Check the directory, its permissions and the free space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_whole_and_leaves_no_stage_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.json");
        replace(&path, b"one", Durability::Durable).unwrap();
        replace(&path, b"two", Durability::Reproducible).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        std::fs::write(&victim, "kept").unwrap();
        let path = directory.path().join("out");
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        replace(&path, b"new", Durability::Durable).unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_failed_replacement_keeps_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sub");
        std::fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"new", Durability::Durable).is_err());
        assert!(path.is_dir());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
