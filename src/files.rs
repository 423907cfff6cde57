//! Files that the program writes for its user: whole or not at all, on disk once they stand, and never through a link that
//! someone else placed. Each is written beside its target under a hidden name, flushed and renamed; on failure the old file
//! stands and nothing is left beside it. What may be replaced at all is the caller's to decide. The state of a project has
//! stricter rules and a room of its own, `state::local`.

pub mod install;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::codes::{Code, Diagnostic};
use crate::failpoint;

/// From this many files on, one flush of the file system is cheaper than one for each file.
const FLUSH_AT_ONCE: usize = 16;

/// Who may read a new file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Everyone whom the umask leaves.
    Shared,
    /// Its owner alone (0600), whatever the umask.
    Private,
}

impl Access {
    fn create(self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        match self {
            Self::Shared => options.open(path),
            Self::Private => {
                let file = options.mode(0o600).open(path)?;
                file.set_permissions(Permissions::from_mode(0o600))?;
                Ok(file)
            }
        }
    }
}

/// Replaces one file in one step.
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let mut stage = Stage::new(access);
    stage.add(path.to_owned(), |out| out.write_all(bytes))?;
    stage.finish()
}

/// E907 for a file or directory that a command was asked to write.
pub fn not_written(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(Code::E907OutputFailed, format!("{} cannot be written: {}", path.display(), error.kind()))
        .suggest("Check the directory, its permissions and the free space")
}

/// Files that are written and not yet in their place; dropped, they are removed.
pub struct Stage {
    access: Access,
    /// (staged, target), in the order in which they shall appear.
    waiting: Vec<(PathBuf, PathBuf)>,
}

impl Stage {
    pub fn new(access: Access) -> Self {
        Self { access, waiting: Vec::new() }
    }

    /// Writes one file beside its target.
    pub fn add(&mut self, target: PathBuf, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let staged = beside(&target)?;
        let file = self.access.create(&staged)?;
        failpoint::point("file.created");
        self.waiting.push((staged, target));
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()
    }

    /// Flushes everything, then renames in order: what was added last appears last.
    pub fn finish(mut self) -> io::Result<()> {
        let folders: BTreeSet<PathBuf> = self.waiting.iter().map(|(_, target)| folder(target)).collect();
        if self.waiting.len() < FLUSH_AT_ONCE {
            self.flush_each()?;
        } else {
            self.flush_file_systems(&folders)?;
        }
        failpoint::point("file.flushed");
        for (staged, target) in &self.waiting {
            fs::rename(staged, target)?;
            failpoint::point("file.renamed");
        }
        self.waiting.clear();
        folders.iter().try_for_each(|folder| File::open(folder)?.sync_all())
    }

    fn flush_each(&self) -> io::Result<()> {
        self.waiting.iter().try_for_each(|(staged, _)| File::open(staged)?.sync_all())
    }

    #[cfg(target_os = "linux")]
    fn flush_file_systems(&self, folders: &BTreeSet<PathBuf>) -> io::Result<()> {
        folders.iter().try_for_each(|folder| Ok(rustix::fs::syncfs(File::open(folder)?)?))
    }

    #[cfg(not(target_os = "linux"))]
    fn flush_file_systems(&self, _folders: &BTreeSet<PathBuf>) -> io::Result<()> {
        self.flush_each()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (staged, _) in &self.waiting {
            let _ = fs::remove_file(staged);
        }
    }
}

fn beside(target: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(target.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!(".{}.tmp", Uuid::new_v4().simple()));
    Ok(target.with_file_name(name))
}

fn folder(target: &Path) -> PathBuf {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_replaced_file_is_whole_and_leaves_no_stage_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.json");
        replace(&path, b"one", Access::Shared).unwrap();
        replace(&path, b"two", Access::Shared).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(directory.path()), 1);
    }

    #[test]
    fn a_link_is_replaced_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        fs::write(&victim, "kept").unwrap();
        let path = directory.path().join("out");
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        replace(&path, b"new", Access::Shared).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"kept");
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_failed_replacement_keeps_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sub");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"new", Access::Shared).is_err());
        assert!(path.is_dir());
        assert_eq!(names(directory.path()), 1);
    }

    #[test]
    fn a_private_file_is_its_owners_alone_even_where_the_old_one_was_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.json");
        fs::write(&path, "old").unwrap();
        replace(&path, b"new", Access::Private).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_stage_that_is_dropped_leaves_every_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut stage = Stage::new(Access::Shared);
        stage.add(path.clone(), |out| out.write_all(b"new")).unwrap();
        drop(stage);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), 1);
    }
}
