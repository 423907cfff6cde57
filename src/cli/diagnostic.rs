//! The text form of an error or warning: code and title first, then where, the line of the file, why, and what to do.

use std::fmt::Write;

use crate::codes::{Diagnostic, Excerpt, Location};

use super::doc::{Doc, Line, Tone};
use super::envelope::location;
use super::sanitize;

/// Renders one finding as the blocks that stderr shows.
pub fn render(diagnostic: &Diagnostic, with_hint: bool) -> Doc {
    let mut doc = Doc::new();
    let (tone, word) = if diagnostic.is_error() { (Tone::Error, "ERROR") } else { (Tone::Warning, "WARNING") };
    let mut message = sanitize::free_text(&diagnostic.message);
    if let Some(id) = diagnostic.operation_id {
        let _ = write!(message, "{} Operation ID: {id}.", if message.ends_with('.') { "" } else { "." });
    }
    doc.line(Line::new().tone(tone, format!("{word}:")).plain(format!(" [{}] {message}", diagnostic.code)));
    if let Some(place) = location(diagnostic) {
        let inside = diagnostic
            .path
            .as_ref()
            .filter(|path| **path != place)
            .map_or_else(String::new, |path| format!(" ({path})"));
        doc.line(Line::new().tone(Tone::Heading, "  --> ").plain(format!("{place}{inside}")));
    }
    if let (Some(excerpt), Some(location)) = (&diagnostic.excerpt, &diagnostic.location) {
        source_line(&mut doc, excerpt, location);
    }
    if let Some(explanation) = &diagnostic.explanation {
        doc.text(2, sanitize::free_text(explanation));
    }
    if let Some(suggestion) = diagnostic.suggestion.as_ref().filter(|_| with_hint) {
        let suggestion = sanitize::free_text(suggestion);
        let mut lines = suggestion.lines();
        if let Some(first) = lines.next() {
            doc.line(Line::new().tone(Tone::Hint, "HINT:").plain(format!(" {first}")));
        }
        let rest: Vec<&str> = lines.collect();
        if !rest.is_empty() {
            doc.text(4, rest.join("\n"));
        }
    }
    doc
}

/// The line of the file with the finding underlined. A line that holds something secret is not shown at all.
fn source_line(doc: &mut Doc, excerpt: &Excerpt, location: &Location) {
    let line = excerpt.line.trim_end().replace('\t', " ");
    if location.line == 0 || sanitize::free_text(&line) != line {
        return;
    }
    let number = location.line.to_string();
    let gutter = " ".repeat(number.len());
    let indent = " ".repeat(location.column.saturating_sub(1) as usize);
    let left = line.chars().count().saturating_sub(indent.len()).max(1);
    let marks = "^".repeat((excerpt.width.max(1) as usize).min(left));
    doc.line(Line::new().tone(Tone::Heading, format!(" {gutter} |")));
    doc.line(Line::new().tone(Tone::Heading, format!(" {number} | ")).plain(line));
    doc.line(Line::new().tone(Tone::Heading, format!(" {gutter} | ")).tone(Tone::Error, format!("{indent}{marks}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::Code;

    #[test]
    fn an_error_names_code_place_line_cause_and_remedy() {
        let error = Diagnostic::new(Code::E101SourceNotFound, "Source 'ordres' not found")
            .at(Location::new("models/orders_clean.yml", 9, 20))
            .path("models → 0 → sql")
            .excerpt(Excerpt { line: "    sql: SELECT id FROM {{ source('ordres') }}".into(), width: 4 })
            .explain("The model reads a source that no file declares.")
            .suggest("Did you mean 'orders'?\n{{ source('orders') }}");
        insta::assert_snapshot!(render(&error, true).render(false), @r"
        ERROR: [E101_SOURCE_NOT_FOUND] Source 'ordres' not found
          --> models/orders_clean.yml:9:20 (models → 0 → sql)
           |
         9 |     sql: SELECT id FROM {{ source('ordres') }}
           |                    ^^^^
          The model reads a source that no file declares.
        HINT: Did you mean 'orders'?
            {{ source('orders') }}
        ");
    }
}
