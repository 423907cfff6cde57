//! Connectors on real workers: their life, their explicit removal, and what becomes of either when something fails. The
//! program reaches the worker through a proxy that records every request.

mod deletion;
mod gates;
mod life;
mod older;
mod recovery;
mod told;
pub mod yard;
