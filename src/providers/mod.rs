//! Network clients: plain async functions over the wire, without actors and without state of their own. Each promises that a
//! read is bounded by its [`Ctx`], that a mutation is sent at most once per call unless the server proved that it was not
//! applied, that it never starts after its [`MutationGuard`] is lost, and that every failure is one [`ProviderFailure`]
//! without address, header, body or secret. What to do about a failure, and when to ask at all, stays the caller's business.

pub mod connect;
pub mod context;
pub mod failure;
pub mod flink;
pub mod guard;
pub mod http;
pub mod kafka;
pub mod schema_registry;
pub mod tls;
pub mod vendor_text;

pub use connect::ConnectClient;
pub use context::{Ctx, Purpose};
pub use failure::{Identity, ProviderFailure, Reply};
pub use flink::FlinkClient;
pub use guard::{Lost, MutationGuard};
pub use kafka::KafkaClient;
pub use schema_registry::RegistryClient;
pub use vendor_text::VendorText;

#[cfg(test)]
mod testing;
