//! Everything that may interrupt an operation, on every store, and the way out of it through the commands.

mod commands;
mod files;
mod kills;
mod lost;
mod partial;
mod race;
mod random;
mod resolve;
mod runbook;
mod secrets;
mod world;
