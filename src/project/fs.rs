//! Reading a project directory: the real one, and one that lives in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Read access to a project directory. Paths are relative to the root.
pub trait ProjectFs: Sync {
    /// The canonical root directory.
    fn root(&self) -> &Path;
    /// None = no such file. At most `limit` + 1 bytes are read.
    fn read(&self, path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>>;
    /// Regular files below a directory, recursively, hidden names skipped, links to directories not followed; none = no such
    /// directory. In no particular order.
    fn files(&self, directory: &Path) -> io::Result<Option<Vec<PathBuf>>>;
    /// Whether something exists there; an absolute path is taken as it is.
    fn exists(&self, path: &Path) -> bool;
}

/// At most `limit` + 1 bytes of a regular file. A pipe would hang the command and a device may never end: both are refused.
pub fn read_regular(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let known = found.len().min(limit as u64) as usize;
    let mut bytes = Vec::with_capacity(known + 1);
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct DiskFs {
    root: PathBuf,
}

impl DiskFs {
    /// Canonicalises the directory once; every later path is relative to the result.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let root = std::fs::canonicalize(directory)?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { root })
    }
}

impl ProjectFs for DiskFs {
    fn root(&self) -> &Path {
        &self.root
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
        match read_regular(&self.root.join(path), limit) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn files(&self, directory: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        if !self.root.join(directory).is_dir() {
            return Ok(None);
        }
        let mut found = Vec::new();
        let mut open = vec![directory.to_path_buf()];
        while let Some(current) = open.pop() {
            for entry in std::fs::read_dir(self.root.join(&current))? {
                let entry = entry?;
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let path = current.join(entry.file_name());
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    open.push(path);
                } else if kind.is_file() || (kind.is_symlink() && self.root.join(&path).is_file()) {
                    found.push(path);
                }
            }
        }
        Ok(Some(found))
    }

    fn exists(&self, path: &Path) -> bool {
        self.root.join(path).exists()
    }
}

/// A project written down in a program: `MemoryFs::new().with("stream_project.yml", "…")`.
#[derive(Clone, Debug)]
pub struct MemoryFs {
    root: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
    directories: Vec<PathBuf>,
}

impl Default for MemoryFs {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryFs {
    pub fn new() -> Self {
        Self { root: PathBuf::from("/project"), files: BTreeMap::new(), directories: Vec::new() }
    }

    /// Adds or replaces a file.
    pub fn with(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(PathBuf::from(path), content.into());
        self
    }

    /// Adds an empty directory.
    pub fn with_directory(mut self, path: &str) -> Self {
        self.directories.push(PathBuf::from(path));
        self
    }
}

impl ProjectFs for MemoryFs {
    fn root(&self) -> &Path {
        &self.root
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(self.files.get(path).map(|bytes| bytes[..bytes.len().min(limit.saturating_add(1))].to_vec()))
    }

    fn files(&self, directory: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let below: Vec<&PathBuf> = self.files.keys().filter(|path| path.starts_with(directory)).collect();
        if below.is_empty() && !self.directories.iter().any(|known| known.starts_with(directory)) {
            return Ok(None);
        }
        let hidden = |path: &Path| {
            path.components()
                .any(|part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b".")))
        };
        Ok(Some(below.into_iter().filter(|path| !hidden(path)).cloned().collect()))
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.keys().chain(&self.directories).any(|known| known.starts_with(path))
    }
}
