//! Plan files on disk.

use std::path::Path;

use crate::codes::{Code, Diagnostic};

use super::ReviewedPlan;

/// A larger file is not read: 64 MiB.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Replaces the file in one step, mode 0600, durable on return. E408 for a directory, a symbolic link, or a failure to write.
pub fn write(path: &Path, plan: &ReviewedPlan) -> Result<(), Diagnostic> {
    let _ = (path, plan);
    Err(Diagnostic::new(Code::E901Internal, "plan files are not built"))
}

/// Reads a regular file of at most [`MAX_BYTES`]; E408 for anything else and for any defect inside.
pub fn read(path: &Path) -> Result<ReviewedPlan, Diagnostic> {
    let _ = path;
    Err(Diagnostic::new(Code::E901Internal, "plan files are not built"))
}
