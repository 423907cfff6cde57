//! Free text on its way out: secrets are masked and the length is bounded, whoever wrote it. Types without `Display` keep
//! secrets out in the first place; this is the second line of defence.

use crate::codes::redact;

/// Bytes of free text that are shown.
const LIMIT: usize = 1024;

pub fn free_text(text: &str) -> String {
    cut(&redact::redact_text(text))
}

fn cut(text: &str) -> String {
    if text.len() <= LIMIT {
        return text.to_owned();
    }
    let end = text.char_indices().map(|(index, _)| index).take_while(|&index| index <= LIMIT).last().unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-008
    #[test]
    fn free_text_is_cut_at_a_character_border() {
        let text = free_text(&"ä".repeat(2000));
        assert!(text.len() <= LIMIT + '…'.len_utf8());
        assert!(text.ends_with("ä…"));
    }
}
