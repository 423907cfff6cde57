//! The lock actor: one per state address. It alone opens a lease, and it alone writes durable steps.

#[allow(dead_code)] // opened by the lock actor
pub mod lease;
