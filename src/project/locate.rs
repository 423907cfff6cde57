//! From an offset in a scalar's text back to the line and column where the user wrote that character, through quotes, escapes,
//! folded lines and block indentation.

use super::value::{Content, Node, Style};

/// Lines as YAML counts them: ended by `\n`, `\r\n` or `\r`.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let current = rest?;
        match current.find(['\n', '\r']) {
            Some(end) => {
                let width = if current[end..].starts_with("\r\n") { 2 } else { 1 };
                rest = Some(&current[end + width..]);
                Some(&current[..end])
            }
            None => {
                rest = None;
                Some(current)
            }
        }
    })
}

/// A text whose lines are found without reading those before them: a file with thousands of findings is asked for as many lines.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    text: &'a str,
    starts: &'a [usize],
}

impl<'a> Rows<'a> {
    /// `starts` as `starts(text)` gives them.
    pub fn new(text: &'a str, starts: &'a [usize]) -> Self {
        Self { text, starts }
    }

    /// Where each line of a text begins.
    pub fn starts(text: &str) -> Vec<usize> {
        let at = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
        lines(text).map(at).collect()
    }

    /// Line `number`, from 1, without its end.
    pub fn line(self, number: u32) -> Option<&'a str> {
        self.starts.get((number as usize).checked_sub(1)?)?;
        self.from(number).next()
    }

    /// Line `number`, from 1, and those after it.
    pub fn from(self, number: u32) -> impl Iterator<Item = &'a str> {
        let start = self.starts.get((number as usize).saturating_sub(1));
        start.into_iter().flat_map(move |start| lines(&self.text[*start..]))
    }
}

/// Line and column, from 1, of byte `offset` of the scalar `node`; the scalar's own place when it cannot be told.
pub fn locate(source: Rows<'_>, node: &Node, offset: usize) -> (u32, u32) {
    let own = (node.line, node.column);
    let Content::Scalar { text, style } = &node.content else { return own };
    let offset = (0..=offset.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    match style {
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => flow(source, node, text, *style, offset),
        Style::Literal | Style::Folded => block(source, node, text, *style, offset),
        Style::Interpolated | Style::Unset => None,
    }
    .unwrap_or(own)
}

fn characters(text: &str) -> u32 {
    text.chars().count() as u32
}

/// Plain and quoted scalars: both texts are walked side by side.
fn flow(source: Rows<'_>, node: &Node, text: &str, style: Style, offset: usize) -> Option<(u32, u32)> {
    let mut rows = source.from(node.line);
    let first = rows.next()?;
    let (mut line, mut column) = (node.line, node.column);
    let mut raw = skip_characters(first, node.column - 1);
    // An anchor or a tag stands before the text.
    while raw.starts_with(['&', '!']) {
        let rest = raw.find([' ', '\t']).map_or("", |end| raw[end..].trim_start_matches([' ', '\t']));
        column += characters(&raw[..raw.len() - rest.len()]);
        raw = rest;
    }
    let style = if raw.starts_with(['\'', '"']) { style } else { Style::Plain };
    if style != Style::Plain {
        raw = &raw[1..];
        column += 1;
    }
    let mut at = 0;
    loop {
        // The end of a row: its white space and the line breaks after it are one run of white space in the text, and nothing
        // at all after a backslash.
        let continued = style == Style::DoubleQuoted && raw == "\\";
        if raw.trim_end_matches([' ', '\t']).is_empty() || continued {
            if at >= offset && !continued {
                return Some((line, column));
            }
            loop {
                let row = rows.next()?;
                line += 1;
                let trimmed = row.trim_start_matches([' ', '\t']);
                if !trimmed.is_empty() {
                    column = characters(&row[..row.len() - trimmed.len()]) + 1;
                    raw = trimmed;
                    break;
                }
            }
            while !continued && text[at..].starts_with([' ', '\n']) && at < offset {
                at += 1;
            }
        }
        if at >= offset {
            return Some((line, column));
        }
        let taken = step(raw, style)?;
        at += text[at..].chars().next()?.len_utf8();
        column += characters(&raw[..taken]);
        raw = &raw[taken..];
    }
}

/// Bytes of the next written character or escape, which stands for one character of the text.
fn step(raw: &str, style: Style) -> Option<usize> {
    let first = raw.chars().next()?;
    if style == Style::SingleQuoted && raw.starts_with("''") {
        return Some(2);
    }
    if style == Style::DoubleQuoted && first == '\\' {
        let kind = raw[1..].chars().next()?;
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let end = 1 + kind.len_utf8() + digits;
        return raw.is_char_boundary(end).then_some(end);
    }
    Some(first.len_utf8())
}

/// Block scalars: every row of content is found again in the text, in order. A node stands at its first row of content, or,
/// with an anchor or a tag, at that.
fn block(source: Rows<'_>, node: &Node, text: &str, style: Style, offset: usize) -> Option<(u32, u32)> {
    let at_node = skip_characters(source.line(node.line)?, node.column - 1);
    let content = text.trim_start_matches('\n');
    let blank = (text.len() - content.len()) as u32;
    let (first, indent) = if !at_node.is_empty() && content.starts_with(at_node) {
        (node.line.saturating_sub(blank).max(1), node.column as usize - 1)
    } else {
        let row = source.from(node.line + 1).find(|row| !row.trim().is_empty())?;
        (node.line + 1, row.len() - row.trim_start_matches(' ').len())
    };
    let mut at = 0;
    let mut rows = source.from(first).zip(first..).peekable();
    while let Some((row, number)) = rows.next() {
        let spaces = (row.len() - row.trim_start_matches(' ').len()).min(indent);
        let body = &row[spaces..];
        let column = spaces as u32 + 1;
        if body.is_empty() {
            if style == Style::Literal {
                if offset <= at {
                    return Some((number, column));
                }
                at += 1;
            }
            continue;
        }
        while style == Style::Folded && !text.get(at..)?.starts_with(body) && text[at..].starts_with([' ', '\n']) {
            at += 1;
        }
        if !text.get(at..)?.starts_with(body) {
            return None;
        }
        let end = at + body.len();
        if offset < end || (offset == end && (style == Style::Literal || text.len() == end || rows.peek().is_none())) {
            return Some((number, column + characters(text.get(at..offset.max(at))?)));
        }
        at = end + usize::from(style == Style::Literal);
    }
    None
}

fn skip_characters(text: &str, count: u32) -> &str {
    text.char_indices().nth(count as usize).map_or("", |(at, _)| &text[at..])
}
