//! Reviewed plan files, format 5: what a human approves and what `apply --plan` then carries out. They promise that any
//! change of the file is seen (E408), that any change of the project, state or live world since the review is seen (E409),
//! and that no secret is in them. The checksum proves integrity, not origin: who approved is the review system's duty.

mod envelope;
mod file;
mod fresh;

pub use envelope::{Origin, ReviewedPlan, StateReference, environment_fingerprint};
pub use file::{MAX_BYTES, kind, read, write};
pub(super) use file::{create_new, read_bytes, refuse_existing};
pub use fresh::{Context, Stale};

#[cfg(test)]
mod tests;
