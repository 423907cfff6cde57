//! Plan files on disk.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use uuid::Uuid;

use crate::codes::{Code, Diagnostic, Location};

use super::ReviewedPlan;

/// A larger file is neither written nor read: 64 MiB.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Replaces the file in one step, mode 0600, durable on return; creates its directory when only that is missing. E408 for a
/// directory, a symbolic link, anything else that is no regular file, and a failure to write: then the old file stands.
pub fn write(path: &Path, plan: &ReviewedPlan) -> Result<(), Diagnostic> {
    let bytes = plan.to_bytes()?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failure(path, "the plan is larger than 64 MiB"));
    }
    let Some(name) = path.file_name() else { return Err(failure(path, "the path names no file")) };
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Err(failure(path, "the path is a directory")),
        Ok(found) if found.is_symlink() => return Err(failure(path, "the path is a symbolic link")),
        Ok(found) if !found.is_file() => return Err(failure(path, "the path is no regular file")),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(unwritten(path, &error)),
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    };
    replace(&directory, name.to_owned(), &bytes).map_err(|error| unwritten(path, &error))
}

fn replace(directory: &Path, name: OsString, bytes: &[u8]) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let target = directory.join(&name);
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", Uuid::new_v4().simple()));
    let temporary = directory.join(hidden);
    let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    File::open(directory)?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Reads a regular file of at most [`MAX_BYTES`]; E408 for anything else and for any defect inside.
pub fn read(path: &Path) -> Result<ReviewedPlan, Diagnostic> {
    let bytes = read_bytes(path)?;
    ReviewedPlan::parse(&bytes).map_err(|error| error.at(Location::named(path.to_string_lossy())))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    // Without waiting, so that a pipe that nobody writes to does not hang the command.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map(File::from).map_err(io::Error::from);
    let file = file.map_err(|error| unread(path, &error))?;
    let found = file.metadata().map_err(|error| unread(path, &error))?;
    if !found.is_file() {
        return Err(failure(path, "the path is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unread(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failure(path, "the file is larger than 64 MiB"));
    }
    Ok(bytes)
}

fn failure(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::new(Code::E408PlanFileInvalid, format!("the plan file cannot be used: {why}"))
        .at(Location::named(path.to_string_lossy()))
}

fn unwritten(path: &Path, error: &io::Error) -> Diagnostic {
    failure(path, &format!("writing failed ({})", error.kind()))
        .suggest("choose a path in a directory that exists and can be written to")
}

fn unread(path: &Path, error: &io::Error) -> Diagnostic {
    failure(path, &format!("reading failed ({})", error.kind()))
}
