//! Adoption of what exists, on a real broker and a real registry, with every store: what it shows, what it writes, what it never
//! does, and what an interruption of it leaves.

mod connector_kills;
pub mod connectors;
pub mod ground;
mod kills;
mod losses;
mod one;
mod refusals;
mod selection;
