//! Named moments at which a test kills the process. Outside tests and the `failpoints` feature they are nothing.
#![cfg_attr(
    any(test, feature = "failpoints"),
    expect(clippy::disallowed_methods, reason = "only a build for tests asks the environment which moment is meant")
)]

/// Kills the process, as `kill -9` does, when `STREAMT_FAILPOINT` names this moment: `name`, or `name:N` for its Nth time.
#[cfg(any(test, feature = "failpoints"))]
pub fn point(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    static SEEN: AtomicU32 = AtomicU32::new(0);
    let Some(wanted) = wanted() else { return };
    let wanted = wanted.to_string_lossy();
    let (wanted, time) = match wanted.split_once(':') {
        Some((wanted, time)) => (wanted, time.parse().unwrap_or(1)),
        None => (&*wanted, 1),
    };
    if wanted == name && SEEN.fetch_add(1, Ordering::SeqCst) + 1 == time {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// Whether the wanted moment is one of those whose names begin so.
#[cfg(any(test, feature = "failpoints"))]
pub fn is_near(prefix: &str) -> bool {
    wanted().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
}

#[cfg(any(test, feature = "failpoints"))]
fn wanted() -> Option<std::ffi::OsString> {
    std::env::var_os("STREAMT_FAILPOINT")
}

#[cfg(not(any(test, feature = "failpoints")))]
#[inline(always)]
pub fn point(_name: &str) {}
