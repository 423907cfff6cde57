//! Faults on the wire, for any service: real clients and real servers with a proxy in between.
//!
//! ```ignore
//! let order = Order::default();                                // one sequence over all proxies
//! let db = Proxy::postgres(&order, "127.0.0.1:5432");          // or ::http(&order, url), ::kafka(&order, "host:port")
//! let lost = db.rule(nth(2, |r| r.what == "COMMIT"), Fault::LoseAnswer);
//! …                                                           // the program connects to db.address() instead
//! assert!(lost.hit(Duration::from_secs(10)));                  // the rule met its request
//! db.silence(); db.cut(); db.refuse(); db.restore();           // the whole link
//! order.mutations();                                           // every request that changes something, in order
//! ```
//!
//! A rule applies to whole requests: a simple query or everything up to a Sync, an HTTP request with its body, a Kafka frame.
//! `Request::what` is the SQL text, `METHOD /path`, or the name of the Kafka call; `Request::bytes` is all of it. `silence` is
//! what a pulled cable is: nothing is acknowledged any more, not even by the kernel, and nothing is closed.
//! [`Moments`] draws random moments from a printed seed; `STREAMT_SEED` repeats a run.
#![allow(dead_code, unused_imports)] // the harness offers more than its tests of today use

mod frames;
#[cfg(test)]
mod itself;
mod moments;
mod order;
mod proxy;
mod rules;
mod wire;

pub use frames::Request;
pub use moments::Moments;
pub use order::{Order, Record};
pub use proxy::Proxy;
pub use rules::{Fault, Gate, Hit, Rule, answer, every, first, nth};
