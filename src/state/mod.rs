//! What streamt owns and what it is in the middle of: identities, ownership, operation control, plan files, and the stores
//! that keep them. It promises strict reading (anything malformed is E411 or E408, never taken as empty) and durable steps
//! that stand whole or not at all.

pub mod adoption;
#[cfg(test)]
pub mod conformance;
pub mod control;
pub mod error;
pub mod local;
pub mod plan_file;
pub mod postgres;
pub mod projection;
pub mod recovery;
pub mod recovery_plan;
mod sealed;
pub mod step;
pub mod store;
#[cfg(test)]
pub mod testing;

pub use crate::ownership::{model, scalar};
