//! Tests against real services. Each is found by an environment variable; a missing one fails the test.

#[allow(dead_code, unused_macros, unused_imports)]
#[path = "../cli/harness.rs"]
mod harness;

mod cli;
mod coordinator;
mod estate;
mod kafka;
mod kafka_security;
mod kafka_wire;
mod registry;
mod support;
