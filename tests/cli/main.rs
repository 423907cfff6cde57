//! Black-box tests that need no service.

mod licences;
