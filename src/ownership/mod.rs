//! What is owned, as values: identities, records and the ownership document, with the scalars of durable documents. Planning
//! decides on them and `state` keeps them, so they stand below both. It promises that a document which breaks a rule cannot be
//! read or written; where and how it is kept is not its business.

pub mod model;
pub mod runner;
pub mod scalar;

/// Why a text or a value is no ownership document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid(pub String);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}
