//! Tests against real services. Each is found by an environment variable; a missing one fails the test.

mod coordinator;
mod estate;
