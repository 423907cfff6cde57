//! A file that must be new: staged beside its place, durable, and linked to its name without replacing anything, all through
//! the descriptor of its directory. Nothing is followed, and what fails takes back only what this run made.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use uuid::Uuid;

use crate::codes::{Code, Diagnostic, Location};
use crate::failpoint;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Creates `directory/name` below the root with these bytes. E702 when anything stands there, E704 for a directory that is a
/// link or none, E706 for everything else.
pub fn install(root: &Path, directory: &str, name: &str, bytes: &[u8]) -> Result<(), Diagnostic> {
    install_after(root, directory, name, bytes, || ())
}

/// `meanwhile` runs when the stage is durable, before it gets its name.
fn install_after(
    root: &Path,
    directory: &str,
    name: &str,
    bytes: &[u8],
    meanwhile: impl FnOnce(),
) -> Result<(), Diagnostic> {
    let place = format!("{directory}/{name}");
    let failed = |what: &str, error: Errno| failure(&place, &format!("{what} ({})", io::Error::from(error).kind()));
    let root = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| failed("the project directory cannot be opened", error))?;
    let opened = open(&root, directory, &place)?;
    let (fd, before) = (&opened.fd, &opened.stat);
    let stage = format!(".streamt-import-{}.tmp", &Uuid::new_v4().simple().to_string()[..24]);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(fd, &*stage, flags, Mode::from_raw_mode(0o666));
    let mut file = File::from(file.map_err(|error| failed("the directory cannot be written to", error))?);
    let staged = Staged { fd, name: stage };
    failpoint::point("import.created");
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| failure(&place, &format!("writing failed ({})", error.kind())))?;
    failpoint::point("import.flushed");
    meanwhile();
    // The directory that was checked is still the one at that name.
    let now = rustix::fs::statat(&root, directory, AtFlags::SYMLINK_NOFOLLOW);
    if !now.is_ok_and(|now| same(&now, before)) {
        return Err(failure(&place, "its directory was replaced meanwhile"));
    }
    match rustix::fs::linkat(fd, &*staged.name, fd, name, AtFlags::empty()) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(exists(&place)),
        Err(error) => return Err(failed("it could not be put into its place", error)),
    }
    failpoint::point("import.linked");
    drop(staged);
    failpoint::point("import.done");
    rustix::fs::fsync(fd).map_err(|error| {
        // It may not outlast a crash: only what is provably this run's own is taken back.
        let own = rustix::fs::fstat(&file).ok();
        let there = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        if own.zip(there).is_some_and(|(own, there)| same(&own, &there)) {
            let _ = rustix::fs::unlinkat(fd, name, AtFlags::empty());
        }
        failed("its directory could not be written to disk", error)
    })
}

struct Opened {
    fd: OwnedFd,
    stat: Stat,
}

/// The directory, made when there is none.
fn open(root: &OwnedFd, directory: &str, place: &str) -> Result<Opened, Diagnostic> {
    let failed =
        |error: Errno| failure(place, &format!("its directory cannot be opened ({})", io::Error::from(error).kind()));
    match rustix::fs::mkdirat(root, directory, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed(error)),
    }
    let fd = rustix::fs::openat(root, directory, DIRECTORY, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => outside(place, &format!("'{directory}' is a link or no directory")),
        error => failed(error),
    })?;
    let stat = rustix::fs::fstat(&fd).map_err(failed)?;
    Ok(Opened { fd, stat })
}

fn same(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

/// Removed again unless it stands in its place under another name.
struct Staged<'a> {
    fd: &'a OwnedFd,
    name: String,
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(self.fd, &*self.name, AtFlags::empty());
    }
}

/// Whether anything stands there, a link included.
pub fn stands(root: &Path, directory: &str, name: &str) -> bool {
    std::fs::symlink_metadata(root.join(directory).join(name)).is_ok()
}

/// E704 for a directory that is a link or no directory; none yet is fine.
pub fn check_directory(root: &Path, directory: &str, name: &str) -> Result<(), Diagnostic> {
    match std::fs::symlink_metadata(root.join(directory)) {
        Ok(found) if !found.is_dir() => {
            Err(outside(&format!("{directory}/{name}"), &format!("'{directory}' is a link or no directory")))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// E702.
pub fn exists(place: &str) -> Diagnostic {
    Diagnostic::new(Code::E702ImportTargetExists, format!("'{place}' exists, and an import never replaces a file"))
        .at(Location::named(place.to_owned()))
        .suggest("name another file with --output-file, or merge by hand what --print shows")
}

/// E704.
pub fn outside(place: &str, why: &str) -> Diagnostic {
    Diagnostic::new(Code::E704ImportPathInvalid, format!("'{place}' is no place for imported declarations: {why}"))
        .suggest("name a new file directly inside the directory, such as sources/imported.kafka.yml")
}

fn failure(place: &str, why: &str) -> Diagnostic {
    Diagnostic::new(Code::E706ImportWriteFailed, format!("'{place}' could not be written: {why}"))
        .suggest("check the directory, its permissions and the free space; nothing was left there")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADO-037, ADO-038
    #[test]
    fn a_file_is_made_whole_and_never_over_another() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        install(root, "sources", "a.yml", b"one").unwrap();
        assert_eq!(std::fs::read(root.join("sources/a.yml")).unwrap(), b"one");
        assert_eq!(install(root, "sources", "a.yml", b"two").unwrap_err().code, Code::E702ImportTargetExists);
        std::os::unix::fs::symlink(root.join("nowhere"), root.join("sources/link.yml")).unwrap();
        assert_eq!(install(root, "sources", "link.yml", b"x").unwrap_err().code, Code::E702ImportTargetExists);
        assert!(!root.join("nowhere").exists(), "a link is not followed");
        assert_eq!(std::fs::read(root.join("sources/a.yml")).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(root.join("sources")).unwrap().count(), 2, "no stage is left");
    }

    /// ADO-037: a directory that is replaced, or a file that appears, while the stage is written.
    #[test]
    fn what_is_swapped_meanwhile_is_not_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir(root.join("sources")).unwrap();
        let swap = || {
            std::fs::rename(root.join("sources"), root.join("moved")).unwrap();
            std::fs::create_dir(root.join("sources")).unwrap();
        };
        let error = install_after(root, "sources", "a.yml", b"x", swap).unwrap_err();
        assert_eq!(error.code, Code::E706ImportWriteFailed);
        for name in ["sources", "moved"] {
            assert_eq!(std::fs::read_dir(root.join(name)).unwrap().count(), 0, "{name}");
        }
        let appears = || std::fs::write(root.join("sources/a.yml"), "theirs").unwrap();
        let error = install_after(root, "sources", "a.yml", b"x", appears).unwrap_err();
        assert_eq!(error.code, Code::E702ImportTargetExists);
        assert_eq!(std::fs::read(root.join("sources/a.yml")).unwrap(), b"theirs");
        assert_eq!(std::fs::read_dir(root.join("sources")).unwrap().count(), 1);
    }

    /// ADO-035
    #[test]
    fn a_directory_that_is_a_link_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (root, elsewhere) = (directory.path().join("p"), directory.path().join("elsewhere"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.join("sources")).unwrap();
        assert_eq!(install(&root, "sources", "a.yml", b"x").unwrap_err().code, Code::E704ImportPathInvalid);
        assert_eq!(check_directory(&root, "sources", "a.yml").unwrap_err().code, Code::E704ImportPathInvalid);
        std::fs::remove_file(root.join("sources")).unwrap();
        std::fs::write(root.join("sources"), "a file").unwrap();
        assert_eq!(install(&root, "sources", "a.yml", b"x").unwrap_err().code, Code::E704ImportPathInvalid);
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
