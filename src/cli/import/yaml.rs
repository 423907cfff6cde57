//! Declarations as YAML text. Whatever comes from outside is written plain only where nobody could read it as something else.

use serde_json::Value;

/// Words that YAML reads as something else than a string, in one of its versions.
const WORDS: [&str; 13] =
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "none", "undefined"];

/// A scalar: plain, or in double quotes as JSON has it, without a character beyond ASCII that a reader might break a line at.
pub fn scalar(text: &str) -> String {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let simple = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let word = WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    if begins && simple && !word { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    ascii(&Value::from(text).to_string())
}

/// JSON text with everything beyond ASCII escaped.
pub fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            ' '..='~' | '\n' => out.push(character),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out
}

/// Text that grows by lines of `key: value` and list items.
#[derive(Default)]
pub struct Yaml(String);

impl Yaml {
    pub fn line(&mut self, indent: usize, text: &str) -> &mut Self {
        self.0.push_str(format!("{:indent$}{text}", "").trim_end());
        self.0.push('\n');
        self
    }

    pub fn pair(&mut self, indent: usize, key: &str, value: &str) -> &mut Self {
        self.line(indent, &format!("{}: {}", scalar(key), scalar(value)))
    }

    pub fn number(&mut self, indent: usize, key: &str, value: u64) -> &mut Self {
        self.line(indent, &format!("{key}: {value}"))
    }

    /// A JSON document as a block of its own, indented.
    pub fn json(&mut self, indent: usize, key: &str, value: &Value) -> &mut Self {
        self.line(indent, &format!("{key}: |"));
        let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
        for line in ascii(&text).lines() {
            self.line(indent + 2, line);
        }
        self
    }

    pub fn end(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_is_plain_only_where_it_can_mean_nothing_else() {
        for plain in ["orders.v1", "_x", "STRING", "a-b"] {
            assert_eq!(scalar(plain), plain);
        }
        for quoted in
            ["no", "NO", "Null", "1", "1e3", "-a", ".5", "a b", "a: b", "DECIMAL(10, 2)", "", "#x", "~", "x\"y", "Y"]
        {
            assert!(scalar(quoted).starts_with('"'), "{quoted}");
        }
        assert_eq!(scalar("\u{2028}é\u{1F600}\n"), r#""\u2028\u00e9\ud83d\ude00\n""#);
    }
}
