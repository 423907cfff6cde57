//! Everything that may interrupt an operation, on every store, and the way out of it through the commands.

mod commands;
mod files;
mod kills;
mod lost;
mod partial;
mod race;
mod random;
pub mod resolve;
mod runbook;
mod secrets;
pub mod world;
