//! The commands.

pub mod completion;
pub mod man;
pub mod version;
