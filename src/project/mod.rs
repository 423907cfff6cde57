//! The project language: files, environments, interpolation, typed declarations and their validation. Pure: the file
//! system, the process environment and the registry reader enter as arguments; no clock, no network. It promises that every
//! error of a file is reported at once with file, line and column, and that a loaded `Project` needs no further shape checks.

pub mod load;
pub mod model;
pub mod origin;
pub mod secret;
pub mod value;

pub use load::{EnvironmentInput, Loaded, ProjectFs, load};
pub use model::Project;
