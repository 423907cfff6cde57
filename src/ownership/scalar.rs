//! Scalars of durable documents: each has one exact text, and anything else is refused.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An instant in UTC with zero to six fraction digits, for example `2026-09-06T10:00:00.000000Z`. It keeps its text.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// With six fraction digits: the form of every event.
    pub fn micros(at: jiff::Timestamp) -> Self {
        Self(at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
    }

    /// Without a fraction: the form of a plan's `created_at`.
    pub fn seconds(at: jiff::Timestamp) -> Self {
        Self(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    }

    /// None unless the text has the exact form and names a real instant.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_suffix('Z')?;
        let (seconds, fraction) = match rest.split_once('.') {
            Some((seconds, fraction)) => (seconds, Some(fraction)),
            None => (rest, None),
        };
        let shaped = seconds.len() == 19
            && seconds.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                10 => byte == b'T',
                13 | 16 => byte == b':',
                _ => byte.is_ascii_digit(),
            });
        let fraction_shaped = fraction
            .is_none_or(|digits| (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()));
        // No leap second and no year zero: both would come back as another text.
        let real = shaped && !seconds.ends_with("60") && !seconds.starts_with("0000");
        (real && fraction_shaped && text.parse::<jiff::Timestamp>().is_ok()).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn instant(&self) -> Option<jiff::Timestamp> {
        self.0.parse().ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a timestamp"))
    }
}

/// None unless the text is a lower-case hyphenated uuid.
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|uuid| uuid.hyphenated().to_string() == text)
}

/// `#[serde(with = "uuid_text")]`: reads only the canonical text.
pub mod uuid_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use uuid::Uuid;

    pub fn serialize<S: Serializer>(uuid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&uuid.hyphenated())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse_uuid(&text).ok_or_else(|| serde::de::Error::custom("not a uuid"))
    }
}

/// Non-empty, at most `max` characters, no code point below U+0020.
pub fn is_safe_text(text: &str, max: usize) -> bool {
    !text.is_empty() && text.chars().count() <= max && !text.chars().any(|c| c < '\u{20}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_one_exact_form() {
        for good in
            ["2026-09-06T10:00:00Z", "2026-09-06T10:00:00.1Z", "2026-09-06T10:00:00.000001Z", "2024-02-29T00:00:00Z"]
        {
            assert_eq!(Timestamp::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "Z",
            "2026-09-06T10:00:00",
            "2026-09-06t10:00:00Z",
            "2026-09-06T10:00:00z",
            "2026-09-06 10:00:00Z",
            "2026-09-06T10:00:00.Z",
            "2026-09-06T10:00:00.1234567Z",
            "2026-09-06T10:00:00+00:00",
            "2026-02-30T10:00:00Z",
            "2026-09-06T24:00:00Z",
            "2026-09-06T10:00:60Z",
            "2026-13-06T10:00:00Z",
            "0000-01-01T00:00:00Z",
            "2026-09-06T10:00:00,1Z",
            "+026-09-06T10:00:00Z",
            "２026-09-06T10:00Z",
            "2026-09-06T10:00Z",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn writers_emit_six_fraction_digits_and_read_themselves() {
        let at: jiff::Timestamp = "2026-09-06T10:00:00.1234567Z".parse().unwrap();
        assert_eq!(Timestamp::micros(at).as_str(), "2026-09-06T10:00:00.123456Z");
        assert_eq!(Timestamp::seconds(at).as_str(), "2026-09-06T10:00:00Z");
        assert_eq!(Timestamp::parse(Timestamp::micros(at).as_str()), Some(Timestamp::micros(at)));
    }

    #[test]
    fn a_uuid_is_read_only_in_its_canonical_text() {
        let text = "6f1c1d0e-3b1a-4c52-9d59-0d9f7a1c2b30";
        assert!(parse_uuid(text).is_some());
        for bad in
            [&text.to_uppercase(), &text.replace('-', ""), &format!("{{{text}}}"), &format!("urn:uuid:{text}"), "", "x"]
        {
            assert_eq!(parse_uuid(bad), None, "{bad}");
        }
    }
}
