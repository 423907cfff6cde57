//! A plan for people: the resources with their changes, what blocks, who is affected, and one line of counts. The same view
//! serves `plan`, `apply --dry-run` and `review`; Markdown is its form for pull requests.

mod markdown;
mod text;
mod values;

pub use markdown::{Facts, summary as markdown};
pub use text::{View, render};
pub use values::change_text;

#[cfg(test)]
mod tests;
