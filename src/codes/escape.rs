//! The one way for text of a project, a provider or a file into a terminal or a message: what could move the cursor, colour
//! the screen or reorder the line is written out as `\u{..}`.

use std::borrow::Cow;
use std::fmt::Write;

fn is_unsafe(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn escape_unless(text: &str, keep: fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| is_unsafe(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) && !keep(character) {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// A value that stands on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    escape_unless(text, |_| false)
}

/// Text of several lines: line feeds and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    escape_unless(text, |c| matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-006
    #[test]
    fn control_and_bidi_characters_are_written_out() {
        assert_eq!(
            line("a\u{1b}[31mb\r\nc\u{9b}d\u{202e}e\u{2066}f"),
            "a\\u{1b}[31mb\\u{d}\\u{a}c\\u{9b}d\\u{202e}e\\u{2066}f"
        );
        assert_eq!(lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
        assert!(matches!(line("größe → 東京"), Cow::Borrowed(_)));
    }
}
