//! Plan files on disk.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use uuid::Uuid;

use crate::codes::{Code, Diagnostic, Location};
use crate::failpoint;
use crate::files::{self, Access};

use super::ReviewedPlan;
use super::envelope::KIND;

/// A larger file is neither written nor read: 64 MiB.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Replaces the file in one step, mode 0600, durable on return; creates its directory when only that is missing. E408 for a
/// directory, a symbolic link, anything else that is no regular file, and a failure to write: then the old file stands.
pub fn write(path: &Path, plan: &ReviewedPlan) -> Result<(), Diagnostic> {
    let bytes = plan.to_bytes()?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failure(path, "the plan is larger than 64 MiB"));
    }
    if path.file_name().is_none() {
        return Err(failure(path, "the path names no file"));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Err(failure(path, "the path is a directory")),
        Ok(found) if found.is_symlink() => return Err(failure(path, "the path is a symbolic link")),
        Ok(found) if !found.is_file() => return Err(failure(path, "the path is no regular file")),
        Ok(found) if found.len() > 0 && !holds_plan(path)? => {
            return Err(failure(path, "the path holds something else than a plan, which is not overwritten")
                .suggest("choose another path, or remove the file first"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(unwritten(path, &error)),
    }
    make_directory(path).map_err(|error| unwritten(path, &error))?;
    files::replace(path, &bytes, Access::Private).map_err(|error| unwritten(path, &error))
}

/// Whether a plan stands there, be it of another version or damaged: a slip of the hand must not cost a project file or a state.
fn holds_plan(path: &Path) -> Result<bool, Diagnostic> {
    let bytes = read_bytes(path)?;
    let kind = format!("\"{KIND}\"");
    Ok(bytes.first() == Some(&b'{') && bytes.windows(kind.len()).any(|window| window == kind.as_bytes()))
}

/// Reads a regular file of at most [`MAX_BYTES`]; E408 for anything else and for any defect inside.
pub fn read(path: &Path) -> Result<ReviewedPlan, Diagnostic> {
    let bytes = read_bytes(path)?;
    ReviewedPlan::parse(&bytes).map_err(|error| error.at(Location::named(path.to_string_lossy())))
}

/// The `kind` that a plan file of any sort names; none when it has no such member.
pub fn kind(path: &Path) -> Result<Option<String>, Diagnostic> {
    #[derive(serde::Deserialize)]
    struct Sort {
        kind: String,
    }
    Ok(serde_json::from_slice::<Sort>(&read_bytes(path)?).ok().map(|sort| sort.kind))
}

/// Creates a file that was not there, whole, mode 0600, durable on return; creates its directory when only that is missing.
/// E408 when anything stands at the path and for a failure to write.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failure(path, "the plan is larger than 64 MiB"));
    }
    let Some(name) = path.file_name() else { return Err(failure(path, "the path names no file")) };
    refuse_existing(path)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", Uuid::new_v4().simple()));
    link_new(&path.with_file_name(hidden), path, bytes).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => unwritten(path, &error),
    })
}

/// E408 when anything stands at the path, a link included.
pub fn refuse_existing(path: &Path) -> Result<(), Diagnostic> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(exists(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unwritten(path, &error)),
    }
}

/// A hard link neither replaces nor follows what stands at its name.
fn link_new(temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = make_directory(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    failpoint::point("new_file.created");
    let written = file
        .set_permissions(Permissions::from_mode(0o600))
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| {
            failpoint::point("new_file.flushed");
            fs::hard_link(temporary, path)
        });
    failpoint::point("new_file.linked");
    let removed = fs::remove_file(temporary);
    written.and(removed)?;
    failpoint::point("new_file.done");
    File::open(directory)?.sync_all()
}

/// The directory of a file, created when it is missing and its own directory is not.
fn make_directory(path: &Path) -> io::Result<&Path> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(directory),
    }
}

fn exists(path: &Path) -> Diagnostic {
    failure(path, "something stands at the path already").suggest("name a file that does not exist yet")
}

/// Reads a regular file of at most [`MAX_BYTES`], and none through a symbolic link: what was reviewed stands at its own path.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    // Without waiting, so that a pipe that nobody writes to does not hang the command.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(rustix::io::Errno::LOOP) => return Err(failure(path, "the path is a symbolic link")),
        Err(error) => Err(io::Error::from(error)),
    };
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
