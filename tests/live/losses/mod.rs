//! What becomes of an operation with its state in PostgreSQL when a connection, the lock or the server is lost, or a signal
//! comes: real servers, the built binary, and a proxy on every link.

mod conflicts;
mod lock;
mod outcomes;
mod release;
mod signals;
mod site;
