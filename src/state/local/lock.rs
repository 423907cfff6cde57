//! The lock of one environment: `flock` on a file that is never removed. It excludes cooperating processes of one host.
#![expect(clippy::disallowed_methods, reason = "waits for a bounded time for the lock")]

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fstat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::state::error::{StateError, StateErrorKind};

use super::files::{Print, StateDir, label, unavailable};

const POLL: Duration = Duration::from_millis(50);

pub struct Lock {
    file: File,
    print: Print,
    name: String,
}

impl Lock {
    /// Tries every 50 ms until the deadline: E422; until the caller gives up: E903.
    pub fn take(
        root: &Path,
        dir: &StateDir,
        name: String,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<Self, StateError> {
        let deadline = Instant::now() + timeout;
        loop {
            if give_up.is_cancelled() {
                return Err(StateError::new(StateErrorKind::Interrupted));
            }
            if let Some(lock) = Self::try_on(root, dir.open_lock(&name)?, &name)? {
                return Ok(lock);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StateError::new(StateErrorKind::LockTimeout));
            }
            std::thread::sleep(POLL.min(left));
        }
    }

    /// None while another process holds it, and when the file was replaced after it was opened: the next try opens the new one.
    fn try_on(root: &Path, (file, print): (File, Print), name: &str) -> Result<Option<Self>, StateError> {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let lock = Self { file, print, name: name.to_owned() };
                Ok(lock.stands(root).then_some(lock))
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(errno) => Err(unavailable("lock", &label(name), errno)),
        }
    }

    /// Whether another process would meet this very lock: the path leads to the locked file, from the project directory on.
    pub fn stands(&self, root: &Path) -> bool {
        let here = StateDir::open(root, false).ok().flatten().and_then(|dir| dir.print(&self.name).ok().flatten());
        here.is_some_and(|here| here.same_file(&self.print)) && fstat(&self.file).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// True when the lock was given back.
    pub fn release(self) -> bool {
        rustix::fs::flock(&self.file, FlockOperation::Unlock).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAF-027: whoever locks the old file would exclude nobody.
    #[test]
    fn a_file_that_was_replaced_before_it_was_locked_is_not_the_lock() {
        const NAME: &str = ".prod.json.lock";
        let project = tempfile::tempdir().unwrap();
        let dir = StateDir::open(project.path(), true).unwrap().unwrap();
        let opened = dir.open_lock(NAME).unwrap();
        dir.remove(NAME).unwrap();
        assert!(Lock::try_on(project.path(), opened, NAME).unwrap().is_none());
        let opened = dir.open_lock(NAME).unwrap();
        dir.remove(NAME).unwrap();
        let new = dir.open_lock(NAME).unwrap();
        assert!(Lock::try_on(project.path(), opened, NAME).unwrap().is_none());
        assert!(Lock::try_on(project.path(), new, NAME).unwrap().is_some_and(|lock| lock.stands(project.path())));
    }
}
