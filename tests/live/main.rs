//! Tests against real services. Each is found by an environment variable; a missing one fails the test.
#![allow(clippy::disallowed_methods)]

#[path = "../cli/earlier.rs"]
mod earlier;
#[allow(dead_code, unused_macros, unused_imports)]
#[path = "../cli/harness.rs"]
mod harness;

mod adoption;
mod cli;
mod connectors;
mod coordinator;
mod data_tests;
mod database;
mod disk;
mod drain;
mod estate;
mod external;
mod faults;
mod flink;
mod front;
mod import;
mod interrupted;
mod interruption;
mod kafka;
mod kafka_3;
mod kafka_between;
mod kafka_security;
mod kafka_wire;
mod load;
mod local_lock;
mod logging;
mod losses;
mod meanwhile;
mod oauth;
mod payments;
mod pg_migrate;
mod pg_plans;
mod pg_refusals;
mod pg_secrets;
mod pg_servers;
mod postgres;
mod recovery;
mod refusals;
mod registry;
mod registry_front;
mod reviewed;
mod schema_checks;
mod support;
