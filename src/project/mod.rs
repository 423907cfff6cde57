//! The project language: files, environments, interpolation, typed declarations and their validation. Pure: the file
//! system, the process environment and the registry reader enter as arguments; no clock, no network. It promises that every
//! error of a file is reported at once with file, line and column, and that a loaded `Project` needs no further shape checks.

mod check;
mod decode;
mod dotenv;
pub mod endpoint;
mod env;
mod fields;
pub mod fs;
mod interpolate;
pub mod load;
mod locate;
pub mod model;
pub mod origin;
pub mod parse;
mod quick;
pub mod schema;
pub mod secret;
mod shape;
pub mod source;
pub mod value;

pub use fs::{DiskFs, MemoryFs, ProjectFs};
pub use load::{EnvironmentInput, Loaded, Unset, environments, load, load_all, policies};
pub use model::Project;
