//! One directory of files, reached only through its descriptor: no symbolic link is followed, every write is durable before
//! it counts, and every failure says whether something was written.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use uuid::Uuid;

use crate::failpoint;
use crate::state::error::StateError;

/// Where the files stand below the project, as users read it.
pub const LABEL: &str = ".streamt/state";
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o700);

/// How a write failed.
#[derive(Debug)]
pub enum WriteError {
    /// Nothing of it stands.
    NotWritten(StateError),
    /// It may stand.
    Unknown,
}

/// What tells one stored version of a file from another without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Print {
    device: u64,
    inode: u64,
    pub length: u64,
    mode: u32,
    changed: (i64, i64),
}

impl Print {
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            length: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode & 0o7777,
            changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
        }
    }

    /// Permission bits.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    pub fn same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

pub struct StateDir {
    fd: OwnedFd,
}

impl StateDir {
    /// None when it does not exist and is not to be created.
    pub fn open(root: &Path, create: bool) -> Result<Option<Self>, StateError> {
        let root = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty())
            .map_err(|errno| unavailable("open", "the project directory", errno))?;
        let Some(outer) = Self::descend(&root, ".streamt", ".streamt", create)? else { return Ok(None) };
        Ok(Self::descend(&outer, "state", LABEL, create)?.map(|fd| Self { fd }))
    }

    fn descend(parent: &OwnedFd, name: &str, label: &str, create: bool) -> Result<Option<OwnedFd>, StateError> {
        if create {
            match rustix::fs::mkdirat(parent, name, DIRECTORY_MODE) {
                Ok(()) => sync(parent.as_fd()).map_err(|errno| unavailable("write", label, errno))?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(unavailable("create", label, errno)),
            }
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        match rustix::fs::openat(parent, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) if !create => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => Err(no_directory(parent, name, label)),
            Err(errno) => Err(unavailable("open", label, errno)),
        }
    }

    /// Opens a regular file; none when it does not exist.
    pub fn open_file(&self, name: &str, flags: OFlags) -> Result<Option<(File, Print)>, StateError> {
        // A FIFO opened for reading would wait for its writer.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = match rustix::fs::openat(&self.fd, name, flags, FILE_MODE) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(not_regular(name)),
            Err(errno) => return Err(unavailable("open", &label(name), errno)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|errno| unavailable("read", &label(name), errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(not_regular(name));
        }
        Ok(Some((File::from(fd), Print::of(&stat))))
    }

    /// The whole file, of at most `limit` bytes.
    pub fn read(&self, name: &str, limit: usize) -> Result<Option<(Vec<u8>, Print)>, StateError> {
        let Some((mut file, print)) = self.open_file(name, OFlags::RDONLY)? else { return Ok(None) };
        let mut bytes = Vec::with_capacity(usize::try_from(print.length).unwrap_or(0).min(limit) + 1);
        let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        (&mut file)
            .take(bound)
            .read_to_end(&mut bytes)
            .map_err(|error| unavailable("read", &label(name), errno(&error)))?;
        if bytes.len() > limit {
            return Err(StateError::invalid(format!("{} is larger than its bound", label(name))));
        }
        Ok(Some((bytes, print)))
    }

    /// What stands at a name now, without following a link; none when nothing does.
    pub fn print(&self, name: &str) -> Result<Option<Print>, StateError> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Print::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(unavailable("read", &label(name), errno)),
        }
    }

    /// Replaces a file whole: temporary file, data to disk, rename, directory to disk.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let temporary = format!(".{}.{}.tmp", name.trim_start_matches('.'), Uuid::new_v4().simple());
        let not_written = |errno| {
            let _ = rustix::fs::unlinkat(&self.fd, &*temporary, AtFlags::empty());
            WriteError::NotWritten(unavailable("write", &label(name), errno))
        };
        self.create(&temporary, bytes, ["replace.created", "replace.half", "replace.synced"]).map_err(not_written)?;
        rustix::fs::renameat(&self.fd, &*temporary, &self.fd, name).map_err(|_| WriteError::Unknown)?;
        failpoint::point("replace.renamed");
        keep(self.fd.as_fd(), "replace.done").map_err(|_| WriteError::Unknown)
    }

    /// Writes a file that counts only once something else points at it.
    pub fn prepare(&self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        let failed = |errno| {
            let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
            unavailable("write", &label(name), errno)
        };
        self.create(name, bytes, ["pending.created", "pending.half", "pending.synced"])
            .and_then(|()| sync(self.fd.as_fd()))
            .map_err(failed)
    }

    fn create(&self, name: &str, bytes: &[u8], [created, half, synced]: [&str; 3]) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, FILE_MODE)?;
        // The umask may have taken bits that the owner needs.
        rustix::fs::fchmod(&fd, FILE_MODE)?;
        failpoint::point(created);
        let mut file = File::from(fd);
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        file.write_all(first).map_err(|error| errno(&error))?;
        failpoint::point(half);
        file.write_all(rest).map_err(|error| errno(&error))?;
        keep(file.as_fd(), synced)
    }

    /// Appends one line to a file that is still as `print` says: one write, one sync. A failed write is taken back.
    pub fn append(&self, name: &str, print: &Print, line: &[u8]) -> Result<(), WriteError> {
        let flags = OFlags::WRONLY | OFlags::APPEND;
        let (file, now) = self
            .open_file(name, flags)
            .map_err(WriteError::NotWritten)?
            .ok_or_else(|| WriteError::NotWritten(StateError::conflict()))?;
        if now != *print {
            return Err(WriteError::NotWritten(StateError::conflict()));
        }
        if let Err(errno) = write_line(&file, line) {
            let back = rustix::fs::ftruncate(&file, print.length).and_then(|()| sync(file.as_fd()));
            return Err(match back {
                Ok(()) => WriteError::NotWritten(unavailable("write", &label(name), errno)),
                Err(_) => WriteError::Unknown,
            });
        }
        failpoint::point("append.written");
        keep(file.as_fd(), "append.done").map_err(|_| WriteError::Unknown)
    }

    /// Cuts a file to its first `length` bytes and makes the whole of it durable.
    pub fn cut(&self, name: &str, length: u64) -> Result<(), StateError> {
        let failed = |errno| unavailable("write", &label(name), errno);
        let Some((file, print)) = self.open_file(name, OFlags::WRONLY)? else { return Err(StateError::conflict()) };
        if print.length > length {
            rustix::fs::ftruncate(&file, length).map_err(failed)?;
        }
        sync(file.as_fd()).map_err(failed)
    }

    pub fn rename(&self, from: &str, to: &str) -> Result<(), StateError> {
        rustix::fs::renameat(&self.fd, from, &self.fd, to)
            .and_then(|()| sync(self.fd.as_fd()))
            .map_err(|errno| unavailable("write", &label(to), errno))
    }

    pub fn remove(&self, name: &str) -> Result<(), StateError> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => sync(self.fd.as_fd()).map_err(|errno| unavailable("write", &label(name), errno)),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(unavailable("write", &label(name), errno)),
        }
    }

    /// Names in the directory that `wanted` accepts.
    pub fn names(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, StateError> {
        let failed = |errno| unavailable("read", LABEL, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Some(name) = entry.file_name().to_str().ok().filter(|name| wanted(name)) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Opens the lock file, creating it when absent.
    pub fn open_lock(&self, name: &str) -> Result<(File, Print), StateError> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE)?
            .ok_or_else(|| unavailable("open", &label(name), Errno::NOENT))
    }
}

fn write_line(file: &File, line: &[u8]) -> Result<(), Errno> {
    #[cfg(any(test, feature = "failpoints"))]
    if failpoint::is_awaited("append.half") {
        let half = &line[..line.len() / 2];
        rustix::io::write(file, half)?;
        failpoint::point("append.half");
        rustix::fs::ftruncate(file, rustix::fs::fstat(file)?.st_size as u64 - half.len() as u64)?;
    }
    let mut rest = line;
    while !rest.is_empty() {
        match rustix::io::write(file, rest) {
            Ok(0) => return Err(Errno::NOSPC),
            // A short write is followed by the error that cut it short.
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Syncs, and passes the moment that only a sync leads to: a write without one is missed by the tests that kill at each moment.
fn keep(fd: std::os::fd::BorrowedFd<'_>, moment: &str) -> Result<(), Errno> {
    sync(fd)?;
    failpoint::point(moment);
    Ok(())
}

fn sync(fd: std::os::fd::BorrowedFd<'_>) -> Result<(), Errno> {
    loop {
        match rustix::fs::fsync(fd) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

pub fn label(name: &str) -> String {
    format!("{LABEL}/{name}")
}

fn not_regular(name: &str) -> StateError {
    StateError::invalid(format!("{} is not a regular file (a symbolic link is not followed)", label(name)))
}

/// E420 in our own words; nothing was written.
/// A link could lead to another project's state, which is not acceptable; anything else is merely in the way.
fn no_directory(parent: &OwnedFd, name: &str, label: &str) -> StateError {
    let kind =
        rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::Symlink) | Err(_) => {
            StateError::invalid(format!("{label} is not a directory of its own (a symbolic link is not followed)"))
        }
        Ok(_) => {
            StateError::unavailable(format!("{label} is in the way: the state is kept in a directory of that name"))
                .suggest("move it away; nothing was changed, so run the command again")
        }
    }
}

pub fn unavailable(verb: &str, what: &str, errno: Errno) -> StateError {
    let (why, remedy) = match errno {
        Errno::NOSPC | Errno::DQUOT => {
            ("no space is left on its file system", "free space there; nothing was changed, so run the command again")
        }
        Errno::FBIG => {
            ("the file size limit of this process is reached", "raise the limit (ulimit -f); nothing was changed")
        }
        Errno::ACCESS | Errno::PERM => {
            ("permission is denied", "give this user read and write access to .streamt/state; nothing was changed")
        }
        Errno::ROFS => {
            ("its file system is read-only", "run where the project directory is writable; nothing was changed")
        }
        Errno::NOENT | Errno::NOTDIR => ("it does not exist", "check the project directory; nothing was changed"),
        Errno::MFILE | Errno::NFILE => ("too many files are open", "raise the limit (ulimit -n); nothing was changed"),
        Errno::NOLCK | Errno::NOTSUP => {
            ("its file system has no file locks", "keep the project on a local file system; nothing was changed")
        }
        _ => ("the operating system refused it", "check the file system of the project; nothing was changed"),
    };
    StateError::unavailable(format!("cannot {verb} {what}: {why}")).suggest(remedy)
}
