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

/// Line `number`, from 1, without its end.
pub fn line(text: &str, number: u32) -> Option<&str> {
    lines(text).nth((number as usize).checked_sub(1)?)
}

/// Line and column, from 1, of byte `offset` of the scalar `node`; the scalar's own place when it cannot be told.
pub fn locate(source: &str, node: &Node, offset: usize) -> (u32, u32) {
    let own = (node.line, node.column);
    let Content::Scalar { text, style } = &node.content else { return own };
    let offset = (0..=offset.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    match style {
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => flow(source, node, text, *style, offset),
        Style::Literal | Style::Folded => block(source, node, text, *style, offset),
        Style::Interpolated => None,
    }
    .unwrap_or(own)
}

fn characters(text: &str) -> u32 {
    text.chars().count() as u32
}

/// Plain and quoted scalars: both texts are walked side by side.
fn flow(source: &str, node: &Node, text: &str, style: Style, offset: usize) -> Option<(u32, u32)> {
    let mut rows = lines(source).skip(node.line as usize - 1);
    let first = rows.next()?;
    let (mut line, mut column) = (node.line, node.column);
    let start = first.char_indices().nth(node.column as usize - 1).map_or(first.len(), |(at, _)| at);
    let mut raw = &first[start..];
    if style != Style::Plain {
        raw = raw.get(1..)?;
        column += 1;
    }
    let mut at = 0;
    loop {
        // The end of a row: its white space and the line breaks after it are one run of white space in the text.
        if raw.trim_end_matches([' ', '\t']).is_empty() || (style == Style::DoubleQuoted && raw == "\\") {
            if at >= offset {
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
            while text[at..].starts_with([' ', '\n']) && at < offset {
                at += 1;
            }
        }
        if at >= offset {
            return Some((line, column));
        }
        let (taken, produced) = step(raw, style)?;
        at += if produced { text[at..].chars().next()?.len_utf8() } else { 0 };
        column += characters(&raw[..taken]);
        raw = &raw[taken..];
    }
}

/// Bytes of the next written character or escape, and whether it stands for one character of the text.
fn step(raw: &str, style: Style) -> Option<(usize, bool)> {
    let first = raw.chars().next()?;
    if style == Style::SingleQuoted && raw.starts_with("''") {
        return Some((2, true));
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
        return raw.is_char_boundary(end).then_some((end.min(raw.len()), true));
    }
    Some((first.len_utf8(), true))
}

/// Block scalars: every row of content is found again in the text, in order.
fn block(source: &str, node: &Node, text: &str, style: Style, offset: usize) -> Option<(u32, u32)> {
    let header = line(source, node.line)?;
    let indicator: String = header.chars().skip(node.column as usize - 1).take_while(|c| *c != '#').collect();
    let mut content = lines(source).skip(node.line as usize).zip(node.line + 1..).peekable();
    let indent = match indicator.chars().find_map(|c| c.to_digit(10)) {
        // Relative to the parent, which the tree does not know: the text's first row tells how much of it is content.
        Some(_) => {
            let kept = text.trim_start_matches('\n').chars().take_while(|c| *c == ' ').count();
            let first = lines(source).skip(node.line as usize).find(|row| !row.trim().is_empty())?;
            first.chars().take_while(|c| *c == ' ').count().saturating_sub(kept)
        }
        None => {
            let first = lines(source).skip(node.line as usize).find(|row| !row.trim().is_empty())?;
            first.chars().take_while(|c| *c == ' ').count()
        }
    };
    let mut at = 0;
    while let Some((row, number)) = content.next() {
        let spaces = row.chars().take_while(|c| *c == ' ').count();
        let body = &row[spaces.min(indent)..];
        let column = spaces.min(indent) as u32 + 1;
        if body.is_empty() {
            if style == Style::Literal {
                if offset <= at {
                    return Some((number, column));
                }
                at += 1;
            }
            continue;
        }
        if style == Style::Folded {
            while !text.get(at..)?.starts_with(body) && text[at..].starts_with([' ', '\n']) {
                at += 1;
            }
        }
        if !text.get(at..)?.starts_with(body) {
            return None;
        }
        let end = at + body.len();
        if offset < end || (offset == end && (content.peek().is_none() || text.len() == end || style == Style::Literal))
        {
            return Some((number, column + characters(text.get(at..offset.max(at))?)));
        }
        at = end;
        if style == Style::Literal {
            at += 1;
        }
    }
    None
}
