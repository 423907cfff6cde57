//! The commands.

pub mod completion;
pub mod explain;
pub mod init;
pub mod man;
pub mod version;
