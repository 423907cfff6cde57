//! What a server says about its own refusal, made safe to show.

use std::fmt;

use crate::codes::{escape, redact};
use crate::project::secret::Secret;

/// Characters shown at most; what follows is cut.
const LIMIT: usize = 300;
/// Bytes looked at: enough for the limit after every replacement, so that a huge message costs nothing.
const EXAMINED: usize = 16 * 1024;

/// A server's message without the project's secrets, schema bodies, credentials, line breaks and controls, at most 300
/// characters. It is shown inside an error and never stored, logged or used to decide; `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct VendorText(String);

impl VendorText {
    /// None when nothing is left to show. `secrets` are the secret values of the server's runtime block.
    pub fn at_border(raw: &str, secrets: &[&Secret]) -> Option<Self> {
        let mut text = prefix(raw, EXAMINED).to_owned();
        let mut values: Vec<&str> = secrets.iter().map(|secret| secret.expose()).filter(|v| !v.is_empty()).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in values {
            text = text.replace(value, redact::REDACTED);
        }
        if let Some(start) = ["schema=", "oldSchema", "newSchema"].iter().filter_map(|mark| text.find(mark)).min() {
            text.truncate(start);
        }
        let text = redact::redact_text(&text).replace(['\r', '\n', '\t'], " ");
        let text = escape::line(text.trim()).into_owned();
        if text.is_empty() {
            return None;
        }
        Some(Self(match text.char_indices().nth(LIMIT) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }))
    }
}

impl VendorText {
    /// Of a failure, the class alone: its message may quote a record.
    pub fn without_values(&self) -> Self {
        let class = self.0.split(": ").next().unwrap_or_default();
        let named =
            class.contains('.') && class.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$'));
        let class = if named { class } else { "an exception" };
        Self(format!("{class}; its message may hold values of classified columns and stays in Flink"))
    }
}

fn prefix(text: &str, bytes: usize) -> &str {
    match text.len() <= bytes {
        true => text,
        false => &text[..text.floor_char_boundary(bytes)],
    }
}

impl fmt::Display for VendorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for VendorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VendorText(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(raw: &str) -> String {
        VendorText::at_border(raw, &[]).map(|text| text.to_string()).unwrap_or_default()
    }

    /// SEC-006, SEC-008
    #[test]
    fn a_message_is_cut_at_three_hundred_characters() {
        assert_eq!(shown(&"é".repeat(300)), "é".repeat(300));
        assert_eq!(shown(&"é".repeat(301)), format!("{}…", "é".repeat(300)));
        assert_eq!(shown(&"x".repeat(10 * 1024)).chars().count(), 301);
        assert_eq!(shown(&"é".repeat(1024 * 1024)).chars().count(), 301);
    }

    /// SEC-003
    #[test]
    fn secret_values_of_the_runtime_block_are_removed_before_anything_else() {
        let (short, long) = (Secret::new("pw"), Secret::new("pw-and-more"));
        let text = VendorText::at_border("refused pw-and-more and pw", &[&short, &long]).expect("text");
        assert_eq!(text.to_string(), "refused <redacted> and <redacted>");
        assert_eq!(VendorText::at_border("said", &[&Secret::new("")]).expect("text").to_string(), "said");
    }

    /// SEC-003: a credential that the free-text rules know is removed even when it is not the project's own.
    #[test]
    fn credentials_of_others_are_removed_too() {
        assert_eq!(shown("login token=abc, then"), "login <redacted>, then");
    }

    /// SEC-001
    #[test]
    fn a_schema_body_is_cut_off_at_its_first_mark() {
        assert_eq!(shown("Invalid schema {subject=a,schema={\"type\":1}}"), "Invalid schema {subject=a,");
        assert_eq!(shown("reader lacks field oldSchema: {..} newSchema"), "reader lacks field");
        assert_eq!(VendorText::at_border("schema={}", &[]), None);
    }

    /// SEC-006
    #[test]
    fn line_breaks_become_blanks_and_controls_are_escaped() {
        assert_eq!(shown("one\r\ntwo\x1b[0m"), "one  two\\u{1b}[0m");
        assert_eq!(VendorText::at_border(" \n ", &[]), None);
    }

    /// SEC-001: Flink's formats quote the record that they cannot read.
    #[test]
    fn of_a_failure_over_classified_columns_the_class_is_left() {
        let told = "; its message may hold values of classified columns and stays in Flink";
        for (raw, class) in [
            ("java.io.IOException: Failed to deserialize JSON '{\"mail\": \"sentinel\"}'.", "java.io.IOException"),
            ("java.lang.NumberFormatException: For input string: \"sentinel\"", "java.lang.NumberFormatException"),
            ("org.example.Outer$Inner", "org.example.Outer$Inner"),
            ("sentinel", "an exception"),
            ("sentinel@example.test: no", "an exception"),
        ] {
            let text = VendorText::at_border(raw, &[]).expect("text").without_values();
            assert_eq!(text.to_string(), format!("{class}{told}"));
        }
    }

    /// SEC-006
    #[test]
    fn debug_output_holds_no_vendor_text() {
        let text = VendorText::at_border("sentinel", &[]).expect("text");
        assert!(!format!("{text:?}").contains("sentinel"));
        let failure = crate::providers::ProviderFailure::Auth { text: Some(text) };
        assert!(!format!("{failure:?}").contains("sentinel"));
        assert!(!failure.to_string().contains("sentinel"));
    }
}
