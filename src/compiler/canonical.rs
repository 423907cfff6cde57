//! Canonical JSON (RFC 8785) and the one digest of the product.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;
use serde_json::{Number, Value};
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

/// The largest integer that every JSON reader keeps exact.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// RFC 8785 bytes, without a final newline. An integer outside ±(2^53−1), in whatever spelling, has no canonical form.
pub fn to_canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    canonical_value(&serde_json::to_value(value).map_err(|_| CanonicalError)?)
}

/// [`to_canonical`] of a value that is JSON already.
pub fn canonical_value(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let mut bytes = Vec::with_capacity(256);
    write(value, &mut bytes)?;
    Ok(bytes)
}

/// Whether a number's canonical text reads back as the same number everywhere.
pub fn number_in_range(number: &Number) -> bool {
    if let Some(integer) = number.as_i64() {
        return integer.unsigned_abs() <= MAX_INTEGER;
    }
    let float = number.as_f64().filter(|_| !number.is_u64()).unwrap_or(f64::NAN).abs();
    let printed_as_integer = float.fract() == 0.0 && float < 1e21;
    float.is_finite() && !(printed_as_integer && float > MAX_INTEGER as f64)
}

/// Whether every number of a value is in range.
pub fn numbers_in_range(value: &Value) -> bool {
    match value {
        Value::Number(number) => number_in_range(number),
        Value::Array(items) => items.iter().all(numbers_in_range),
        Value::Object(map) => map.values().all(numbers_in_range),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

// Order and structure are written here, because the crate sorts each object by re-parsing its keys; scalars are the crates'.
fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out)?,
        Value::String(text) => write_string(text, out)?,
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out)?;
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by(|(a, _), (b, _)| utf16_order(a, b));
            out.push(b'{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(key, out)?;
                out.push(b':');
                write(item, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn write_number(number: &Number, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    if !number_in_range(number) {
        return Err(CanonicalError);
    }
    match number.is_f64() {
        true => serde_json_canonicalizer::to_writer(number, out),
        false => serde_json::to_writer(out, number),
    }
    .map_err(|_| CanonicalError)
}

fn write_string(text: &str, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    serde_json::to_writer(out, text).map_err(|_| CanonicalError)
}

/// By UTF-16 code units: differs from the order of UTF-8 only beyond the basic plane.
fn utf16_order(a: &str, b: &str) -> Ordering {
    match a.is_ascii() && b.is_ascii() {
        true => a.cmp(b),
        false => a.encode_utf16().cmp(b.encode_utf16()),
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
