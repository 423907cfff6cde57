//! What a command wants to say, before it is text: a small layout tree. Rendering decides about colour and escapes every
//! piece; a command only says what is a heading, a change, a key and its value.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use crate::codes::escape;

/// How a piece of text is meant. Colour is never the only carrier of a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Plain,
    Heading,
    Create,
    Update,
    Delete,
    Unchanged,
    Error,
    Warning,
    Hint,
}

impl Tone {
    fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Heading | Self::Hint => colour(AnsiColor::Cyan),
            Self::Create => colour(AnsiColor::Green),
            Self::Update | Self::Warning => colour(AnsiColor::Yellow),
            Self::Delete | Self::Error => colour(AnsiColor::Red),
            Self::Unchanged => Style::new().dimmed(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Span {
    tone: Tone,
    text: String,
}

/// One line of spans; see [`Doc::line`].
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Line(Vec<Span>);

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn plain(self, text: impl Into<String>) -> Self {
        self.tone(Tone::Plain, text)
    }

    pub fn tone(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push(Span { tone, text: text.into() });
        self
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Line::new().plain(text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Line::new().plain(text)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Block {
    Line(Line),
    Pairs {
        indent: usize,
        rows: Vec<(String, String)>,
    },
    Table {
        header: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// Several lines of the user's, for example SQL; control characters other than line feed and tab are escaped.
    Text {
        indent: usize,
        text: String,
    },
    /// The exact bytes of a document that the command was asked for.
    Document(String),
}

/// The text form of a result.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Doc(Vec<Block>);

impl Doc {
    pub fn new() -> Self {
        Self::default()
    }

    /// A raw document: printed byte for byte, never coloured.
    pub fn document(text: impl Into<String>) -> Self {
        Self(vec![Block::Document(text.into())])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn line(&mut self, line: impl Into<Line>) -> &mut Self {
        self.0.push(Block::Line(line.into()));
        self
    }

    pub fn blank(&mut self) -> &mut Self {
        self.line(Line::new())
    }

    pub fn heading(&mut self, text: impl Into<String>) -> &mut Self {
        self.line(Line::new().tone(Tone::Heading, text))
    }

    /// `key: value` rows with the values aligned.
    pub fn pairs<K: Into<String>, V: Into<String>>(
        &mut self,
        indent: usize,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        let rows = rows.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.0.push(Block::Pairs { indent, rows });
        self
    }

    /// Columns padded to their widest cell, numbers to the right; nothing is printed for a table without rows.
    pub fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        self.0.push(Block::Table { header: header.iter().map(|&cell| cell.to_owned()).collect(), rows });
        self
    }

    pub fn text(&mut self, indent: usize, text: impl Into<String>) -> &mut Self {
        self.0.push(Block::Text { indent, text: text.into() });
        self
    }

    pub fn append(&mut self, other: Doc) -> &mut Self {
        self.0.extend(other.0);
        self
    }

    /// The text, with ANSI styles when `colour`.
    pub fn render(&self, colour: bool) -> String {
        let mut out = String::new();
        for block in &self.0 {
            match block {
                Block::Line(line) => render_line(&mut out, line, colour),
                Block::Pairs { indent, rows } => render_pairs(&mut out, *indent, rows),
                Block::Table { header, rows } => render_table(&mut out, header, rows, colour),
                Block::Text { indent, text } => {
                    for line in escape::lines(text).lines() {
                        let _ = writeln!(out, "{}", format!("{:indent$}{line}", "").trim_end());
                    }
                }
                Block::Document(text) => out.push_str(text),
            }
        }
        out
    }
}

fn render_line(out: &mut String, line: &Line, colour: bool) {
    for span in &line.0 {
        let text = escape::line(&span.text);
        if colour && span.tone != Tone::Plain {
            let style = span.tone.style();
            let _ = write!(out, "{style}{text}{style:#}");
        } else {
            out.push_str(&text);
        }
    }
    out.push('\n');
}

fn render_pairs(out: &mut String, indent: usize, rows: &[(String, String)]) {
    let width = rows.iter().map(|(key, _)| key.chars().count() + 1).max().unwrap_or(0);
    for (key, value) in rows {
        let key = format!("{}:", escape::line(key));
        let _ = writeln!(out, "{:indent$}{key:<width$} {}", "", escape::line(value));
    }
}

fn render_table(out: &mut String, header: &[String], rows: &[Vec<String>], colour: bool) {
    if rows.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| escape::line(cell).into_owned()).collect()).collect();
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let is_number = |cell: &String| cell == "-" || (!cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit()));
    let numeric: Vec<bool> = (0..widths.len())
        .map(|column| {
            let mut cells = rows.iter().filter_map(|row| row.get(column));
            cells.clone().any(|cell| cell != "-") && cells.all(is_number)
        })
        .collect();
    let join = |row: &[String]| {
        let cells = row.iter().zip(&widths).zip(&numeric).map(|((cell, width), numeric)| match numeric {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    if !header.is_empty() {
        render_line(out, &Line::new().tone(Tone::Heading, join(header)), colour);
    }
    for row in &rows {
        out.push_str(&join(row));
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_align_and_untrusted_text_cannot_colour_the_terminal() {
        let mut doc = Doc::new();
        doc.heading("Topics")
            .pairs(2, [("partitions", "3 -> 6"), ("x", "\u{1b}[31mred")])
            .table(&["NAME", "STATUS"], vec![vec!["orders".into(), "OK".into()], vec!["a".into(), "MISSING".into()]])
            .text(4, "SELECT 1\n\n  FROM t\r");
        insta::assert_snapshot!(doc.render(false), @r"
        Topics
          partitions: 3 -> 6
          x:          \u{1b}[31mred
        NAME    STATUS
        orders  OK
        a       MISSING
            SELECT 1

              FROM t\u{d}
        ");
    }

    #[test]
    fn colour_only_wraps_what_is_there_without_it() {
        let mut doc = Doc::new();
        doc.line(Line::new().tone(Tone::Create, "+").plain(" topic"));
        assert_eq!(doc.render(true), "\u{1b}[32m+\u{1b}[0m topic\n");
        assert_eq!(doc.render(false), "+ topic\n");
    }
}
