//! The project graph in five forms: a tree for terminals, JSON, Mermaid, DOT and a picture. Pure; it promises the same
//! bytes for the same project, and an end on any graph, cyclic ones included.

mod ascii;
mod graph;
mod layout;
mod markup;
mod svg;

pub use ascii::tree;
pub use graph::{Direction, Graph};
pub use markup::{dot, mermaid};
pub use svg::picture;

#[cfg(test)]
mod tests;
