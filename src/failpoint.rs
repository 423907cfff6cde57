//! Named moments at which a test kills the process. Outside tests and the `failpoints` feature they are nothing.
#![cfg_attr(
    any(test, feature = "failpoints"),
    expect(clippy::disallowed_methods, reason = "only a build for tests asks the environment which moment is meant")
)]

/// Kills the process, as `kill -9` does, when `STREAMT_FAILPOINT` names this moment: `name`, or `name:N` for its Nth time. With
/// `STREAMT_FAILPOINT_TRACE`, each moment is first appended to that file, so that a test can meet every one of a command.
#[cfg(any(test, feature = "failpoints"))]
pub fn point(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    static SEEN: AtomicU32 = AtomicU32::new(0);
    trace(name);
    let Some(wanted) = wanted() else { return };
    let (wanted, time) = match wanted.split_once(':') {
        Some((wanted, time)) => (wanted, time.parse().unwrap_or(1)),
        None => (&*wanted, 1),
    };
    if wanted == name && SEEN.fetch_add(1, Ordering::SeqCst) + 1 == time {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// Whether a moment is waited for that exists only when its work is done in smaller pieces than otherwise.
#[cfg(any(test, feature = "failpoints"))]
pub fn is_awaited(name: &str) -> bool {
    let named = wanted().is_some_and(|wanted| wanted.split(':').next() == Some(name));
    named || std::env::var_os(TRACE).is_some()
}

#[cfg(any(test, feature = "failpoints"))]
const TRACE: &str = "STREAMT_FAILPOINT_TRACE";

#[cfg(any(test, feature = "failpoints"))]
fn wanted() -> Option<String> {
    std::env::var_os("STREAMT_FAILPOINT").map(|wanted| wanted.to_string_lossy().into_owned())
}

#[cfg(any(test, feature = "failpoints"))]
fn trace(name: &str) {
    use std::io::Write;

    let Some(path) = std::env::var_os(TRACE) else { return };
    if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path) {
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}

#[cfg(not(any(test, feature = "failpoints")))]
#[inline(always)]
pub fn point(_name: &str) {}
