//! The command line: one file per command, rendering apart from doing.

pub mod templates;
