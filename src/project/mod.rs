//! The project language: files, environments, interpolation, typed declarations and their validation. Pure: the file
//! system, the process environment and the registry reader enter as arguments; no clock, no network. It promises that every
//! error of a file is reported at once with file, line and column, and that a loaded `Project` needs no further shape checks.

pub mod fs;
pub mod load;
mod locate;
pub mod model;
pub mod origin;
pub mod parse;
pub mod secret;
pub mod source;
pub mod value;

pub use fs::{DiskFs, MemoryFs, ProjectFs};
pub use load::{EnvironmentInput, Loaded, load};
pub use model::Project;
