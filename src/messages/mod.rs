//! What actors say to each other: one file per conversation, no behaviour. A message is a struct with named fields and one
//! reply type; what may change something at a provider carries an `ActionLease`.

pub mod adoption;
pub mod connect;
pub mod discover;
pub mod flink;
pub mod kafka;
pub mod lock;
pub mod operation;
pub mod recovery;
pub mod samples;
pub mod schema_registry;
pub mod status;
