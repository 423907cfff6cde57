//! The binary, run as a user runs it: arguments, exit code, stdout, stderr. Nothing here needs a network.
#![allow(clippy::disallowed_methods)]

#[allow(dead_code)]
mod harness;

mod adopt;
mod codes;
mod codes_rows;
mod contract;
mod earlier;
mod envs;
mod explain;
mod import;
mod init;
mod licences;
mod logging;
mod plans;
mod project;
mod recovery;
mod refusals;
mod removals;
mod replacement;
mod safety;
mod sql;
mod state;
mod terminal;
mod tests;
mod worker;
