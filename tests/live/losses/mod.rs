//! What becomes of an operation with its state in PostgreSQL when a connection, the lock or the server is lost, or a signal
//! comes: real servers, the built binary, and a proxy on every link.

mod conflicts;
mod contender;
mod journal;
mod lock;
mod moments;
mod outcomes;
mod release;
mod restart;
mod secrets;
mod server;
mod signals;
pub mod site;
