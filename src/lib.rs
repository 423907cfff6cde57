//! GitOps for streaming: a project directory of YAML and SQL becomes running infrastructure, and stays owned.
//!
//! The pure half (`project`, `sql`, `compiler`, `assertions`, `planner`, the value types of `state`) has no async, no clock and no access
//! to the process environment; the impure half (`state` stores, `providers`, `actors`) is where every deadline and
//! cancellation is written. `cli` is the first user of this library; a deployer that embeds it starts at [`actors::Runtime`].
#![forbid(unsafe_code)]
// Tests arrange a world of their own.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod actors;
pub mod assertions;
pub mod cli;
pub mod codes;
pub mod compiler;
mod failpoint;
pub mod files;
#[cfg(test)]
mod golden;
pub mod messages;
pub mod ownership;
pub mod planner;
pub mod project;
pub mod providers;
#[cfg(test)]
mod rooms;
pub mod sql;
pub mod state;
pub mod validate;
