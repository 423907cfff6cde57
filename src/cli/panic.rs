//! A bug is an error like any other: code, exit 1, an envelope. The payload of a panic may hold anything, so it is never
//! shown; `-vv` names the place in the source.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use crate::codes::{Code, Diagnostic};

use super::console;
use super::outcome::{CmdResult, Failure};

/// Runs a command; a panic in it becomes E901.
pub fn guard(verbose: u8, command: impl FnOnce() -> CmdResult) -> CmdResult {
    set_hook(Box::new(move |panic| {
        if let Some(place) = panic.location().filter(|_| verbose >= 2) {
            console::write_stderr(&format!("panic at {}:{}\n", place.file(), place.line()));
        }
    }));
    catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|_| {
        Err(Failure::new(
            Diagnostic::new(Code::E901Internal, "An invariant of streamt is broken; this is a bug").suggest(
                "Run the command again with -vv and report its output; run state status first if it was an apply",
            ),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-006
    #[test]
    fn a_panic_becomes_e901_without_its_payload() {
        let failure = guard(0, || panic!("password=hunter2")).unwrap_err();
        let error = failure.errors.iter().next().unwrap();
        assert_eq!(error.code, Code::E901Internal);
        assert!(!format!("{error:?}").contains("hunter2"));
        let _ = std::panic::take_hook();
    }
}
