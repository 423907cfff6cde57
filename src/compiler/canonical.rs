//! Canonical JSON (RFC 8785) and the one digest of the product.

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// `sha256:` and 64 lower-case hex digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Checksum(String);

impl Checksum {
    /// None unless the text has the exact form.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let exact = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        exact.then(|| Self(text.to_owned()))
    }

    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::of_digest(Sha256::digest(bytes).into())
    }

    /// Of a SHA-256 that was fed in pieces.
    pub fn of_digest(digest: [u8; 32]) -> Self {
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        for byte in digest {
            use fmt::Write;
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// The digest of a value's canonical JSON.
    pub fn of<T: Serialize>(value: &T) -> Result<Self, CanonicalError> {
        Ok(Self::of_bytes(&to_canonical(value)?))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn hex(&self) -> &str {
        &self.0["sha256:".len()..]
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Checksum {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Checksum {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a checksum"))
    }
}

/// A value that has no canonical form: a number out of range or not finite. It never holds the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the value has no canonical JSON form")]
pub struct CanonicalError;

/// RFC 8785 bytes, without a final newline.
pub fn to_canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    serde_json_canonicalizer::to_vec(value).map_err(|_| CanonicalError)
}
