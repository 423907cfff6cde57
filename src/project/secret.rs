//! A configuration value that must never be shown.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// Zeroed on drop; `Debug` and serialisation print stars.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(SecretString::from(value.into()))
    }

    /// The value itself; call it only where a request is built.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("**********")
    }
}
