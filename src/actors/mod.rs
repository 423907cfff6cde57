//! Who does what while an operation runs: the lock actor holds the lock and writes the durable steps, one actor per provider
//! endpoint talks to it, the coordinator walks one operation through its gates, and a `Runtime` owns them all. It promises that
//! no mutation starts without a durable step before it and a held lock around it, and that nothing created is taken back.

pub mod connect;
mod coordinator;
mod discover;
mod discover_connectors;
mod flink;
mod kafka;
mod lock;
mod provider;
mod registry;
mod runtime;
mod sampling;
mod schema_check;
pub mod schema_registry;
mod status;
mod store;

pub use lock::lease;
pub use runtime::{Runtime, read_state};
