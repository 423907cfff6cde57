//! The strict JSON reader of every durable document: no duplicate key at any depth, no integer outside ±(2^53−1), nothing
//! after the document, a bound on bytes and on depth.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Nesting allowed in a durable document.
pub const MAX_DEPTH: usize = 64;
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Why a document was refused, in fixed words: it never quotes the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StrictError {
    #[error("larger than its bound")]
    TooLarge,
    #[error("not strict JSON")]
    Syntax,
    #[error("not of the expected form")]
    Form,
}

/// Reads a whole document of at most `limit` bytes into `T`. The key set is checked by `T` (`deny_unknown_fields`).
pub fn read<T: DeserializeOwned>(bytes: &[u8], limit: usize) -> Result<T, StrictError> {
    serde_json::from_value(value(bytes, limit)?).map_err(|_| StrictError::Form)
}

/// Reads a whole document of at most `limit` bytes as a value.
pub fn value(bytes: &[u8], limit: usize) -> Result<Value, StrictError> {
    if bytes.len() > limit {
        return Err(StrictError::TooLarge);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { depth: 0 }.deserialize(&mut deserializer).map_err(|_| StrictError::Syntax)?;
    deserializer.end().map_err(|_| StrictError::Syntax)?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH { Err(E::custom("too deep")) } else { Ok(Self { depth: self.depth + 1 }) }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("strict JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_INTEGER { Err(E::custom("integer out of range")) } else { Ok(value.into()) }
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_INTEGER { Err(E::custom("integer out of range")) } else { Ok(value.into()) }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // An integer literal too long for 64 bits arrives here as a float and is refused with the rest of its range.
        let in_range = value.fract() != 0.0 || value.abs() <= MAX_INTEGER as f64;
        let number = Number::from_f64(value).filter(|_| in_range).ok_or_else(|| E::custom("number out of range"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inner)?;
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("duplicate key"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_key_at_any_depth_is_refused() {
        assert_eq!(value(br#"{"a":1,"a":1}"#, 100), Err(StrictError::Syntax));
        assert_eq!(value(br#"[{"b":{"a":1,"a":2}}]"#, 100), Err(StrictError::Syntax));
    }

    #[test]
    fn integers_outside_the_safe_range_are_refused_in_every_spelling() {
        for text in ["9007199254740992", "-9007199254740992", "123456789012345678901234567890", "1e300"] {
            assert_eq!(value(text.as_bytes(), 100), Err(StrictError::Syntax), "{text}");
        }
        assert_eq!(value(b"9007199254740991", 100), Ok(Value::from(9_007_199_254_740_991_u64)));
        assert_eq!(value(b"0.5", 100), Ok(Value::from(0.5)));
    }

    #[test]
    fn trailing_data_lone_surrogates_and_bad_bytes_are_refused() {
        for bytes in [&b"{} {}"[..], b"{}x", b"", br#""\ud800""#, b"\"\xff\"", b"NaN", b"\xef\xbb\xbf{}"] {
            assert_eq!(value(bytes, 100), Err(StrictError::Syntax));
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        assert_eq!(value(b"[1,2]", 4), Err(StrictError::TooLarge));
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(value(nested(MAX_DEPTH).as_bytes(), 1000).is_ok());
        assert_eq!(value(nested(MAX_DEPTH + 1).as_bytes(), 1000), Err(StrictError::Syntax));
    }
}
