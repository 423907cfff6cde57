//! Import of what exists, from a real broker and a real registry: what is declared, what is refused whole, and that nothing but
//! one new file is ever written.

mod adoptable;
mod connectors;
mod file;
mod sources;
mod subjects;
