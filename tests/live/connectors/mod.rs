//! Connectors on real workers: their life, their explicit removal, and what becomes of either when something fails. The
//! program reaches the worker through a proxy that records every request.

mod course;
mod crashes;
mod deletion;
mod earlier;
mod encoded;
mod faults;
mod found;
mod gates;
mod life;
mod mistakes;
mod older;
mod passwords;
mod records;
mod recovery;
mod scan;
mod store;
mod told;
pub mod yard;
