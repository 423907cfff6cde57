//! The YAML that nearly every project file consists of, read in one pass: block mappings and lists under spaces, plain and quoted
//! scalars of one line, flow collections of one line, literal blocks. It gives the tree of the full parser to the last place and
//! style, or none: whatever it does not know (anchors, tags, escapes, tabs, folded text, values left out) and whatever is wrong
//! is read again in full, so that every message comes from one reader.

use std::collections::HashSet;

use super::value::{Content, Entry, MAX_EXACT, Node, Resolved, Style};

/// Far below the bound of the full parser, which tells of it.
const MAX_DEPTH: usize = 32;
/// Far below the bound of the full parser.
const MAX_KEY: usize = 500;

/// The tree of a text in the plain subset of YAML; none for any other.
pub fn read(text: &str) -> Option<Node> {
    let bytes = text.as_bytes();
    let ascii = text.is_ascii();
    let ordinary = match ascii {
        // In blocks, so that many bytes are looked at at once.
        true => {
            bytes.chunks(64).all(|block| block.iter().fold(true, |all, byte| all & matches!(byte, b'\n' | b' '..=b'~')))
        }
        false => text.chars().all(is_ordinary),
    };
    if !ordinary {
        return None;
    }
    let mut reader = Reader { text, bytes, ascii, at: 0, line: 1, start: 0, ended: false, depth: 0 };
    reader.significant(0)?;
    if reader.ended || reader.indent() != 0 {
        return None;
    }
    let root = reader.mapping()?;
    reader.ended.then_some(root)
}

/// No control character, no line break but `\n`, nothing that YAML gives a meaning of its own.
fn is_ordinary(c: char) -> bool {
    match c {
        '\n' => true,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    }
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Bytes are characters.
    ascii: bool,
    at: usize,
    line: u32,
    /// Where the current line begins.
    start: usize,
    ended: bool,
    depth: usize,
}

/// What a plain scalar ends at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The end of the line, or a comment.
    Line,
    /// A colon that makes it a key.
    Colon,
    /// The end of an item of a flow collection.
    Flow,
}

impl Reader<'_> {
    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn follows(&self, at: usize) -> bool {
        matches!(self.bytes.get(at), None | Some(b' ' | b'\n'))
    }

    /// Byte column of the next token: what stands before it on its line is spaces, dashes or written out.
    fn indent(&self) -> usize {
        self.at - self.start
    }

    /// Line and column, from 1, in characters.
    fn place(&self) -> (u32, u32) {
        let characters = match self.ascii {
            true => self.at - self.start,
            false => self.bytes[self.start..self.at].iter().filter(|byte| **byte & 0xc0 != 0x80).count(),
        };
        (self.line, characters as u32 + 1)
    }

    fn node(&self, (line, column): (u32, u32), content: Content) -> Option<Node> {
        Some(Node { line, column, content })
    }

    fn spaces(&mut self) -> usize {
        let from = self.at;
        while self.byte() == Some(b' ') {
            self.at += 1;
        }
        self.at - from
    }

    /// Goes to the next line that holds more than a comment; `at` is where a line begins.
    fn significant(&mut self, at: usize) -> Option<()> {
        self.at = at;
        loop {
            self.start = self.at;
            self.spaces();
            match self.byte() {
                None => {
                    self.ended = true;
                    return Some(());
                }
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.at = self.line_end() + usize::from(self.line_end() < self.bytes.len()),
                Some(_) => {
                    let marker =
                        self.indent() == 0 && matches!(self.bytes.get(self.at..self.at + 3), Some(b"---" | b"..."));
                    return (!marker).then_some(());
                }
            }
            self.line += 1;
        }
    }

    fn line_end(&self) -> usize {
        self.bytes[self.at..].iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |length| self.at + length)
    }

    /// Whether nothing but a comment follows on this line.
    fn is_line_done(&self) -> bool {
        let rest = &self.bytes[self.at..];
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        match rest.get(spaces) {
            None | Some(b'\n') => true,
            Some(b'#') => spaces > 0,
            Some(_) => false,
        }
    }

    /// To the next line that holds something, when nothing but a comment follows on this one.
    fn finish_line(&mut self) -> Option<()> {
        if !self.is_line_done() {
            return None;
        }
        let end = self.line_end();
        if end == self.bytes.len() {
            (self.at, self.start, self.ended) = (end, end, true);
            return Some(());
        }
        self.line += 1;
        self.significant(end + 1)
    }

    fn is_dash(&self) -> bool {
        self.byte() == Some(b'-') && self.follows(self.at + 1)
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Some(value)
    }

    /// A block collection that begins a line of its own.
    fn block(&mut self) -> Option<Node> {
        if self.is_dash() { self.sequence() } else { self.mapping() }
    }

    fn mapping(&mut self) -> Option<Node> {
        let (place, column) = (self.place(), self.indent());
        let entries = self.deeper(|reader| {
            let mut entries = Vec::new();
            loop {
                let (line, column_of_key) = reader.place();
                let key = reader.key()?;
                let value = reader.behind(column, true)?;
                entries.push(Entry { key, line, column: column_of_key, value });
                match reader.indent() {
                    _ if reader.ended => break,
                    indent if indent < column => break,
                    indent if indent > column => return None,
                    _ => {}
                }
            }
            Some(entries)
        })?;
        self.node(place, Content::Mapping(distinct(entries)?))
    }

    fn sequence(&mut self) -> Option<Node> {
        let (place, column) = (self.place(), self.indent());
        let items = self.deeper(|reader| {
            let mut items = Vec::new();
            loop {
                reader.at += 1;
                items.push(reader.behind(column, false)?);
                match reader.indent() {
                    _ if reader.ended => break,
                    indent if indent < column => break,
                    indent if indent > column => return None,
                    _ if !reader.is_dash() => break,
                    _ => {}
                }
            }
            Some(items)
        })?;
        self.node(place, Content::Sequence(items))
    }

    /// A list that stands no deeper than its key: the full parser places it at what follows its first dash.
    fn list_under_key(&mut self) -> Option<Node> {
        let dash = self.at;
        self.at += 1;
        self.spaces();
        if matches!(self.byte(), None | Some(b'\n' | b'#')) {
            return None;
        }
        let (line, column) = self.place();
        self.at = dash;
        let list = self.sequence()?;
        Some(Node { line, column, ..list })
    }

    /// The value behind a key or a dash whose collection stands at `column`, up to the next line that holds something.
    fn behind(&mut self, column: usize, of_key: bool) -> Option<Node> {
        if self.is_line_done() {
            self.finish_line()?;
            return match self.indent() {
                _ if self.ended => None,
                indent if indent > column => self.block(),
                indent if indent == column && of_key && self.is_dash() => self.list_under_key(),
                _ => None,
            };
        }
        if self.spaces() == 0 {
            return None;
        }
        match self.byte()? {
            b'|' => self.literal(column),
            b'-' if !of_key && self.is_dash() => self.sequence(),
            _ if !of_key && self.is_key() => self.mapping(),
            _ => {
                let value = self.value(false)?;
                self.finish_line()?;
                Some(value)
            }
        }
    }

    fn is_key(&mut self) -> bool {
        let from = self.at;
        let found = self.key().is_some();
        self.at = from;
        found
    }

    /// A key of a block mapping and its colon.
    fn key(&mut self) -> Option<Box<str>> {
        let key = self.key_text(false)?;
        (self.byte()? == b':' && self.follows(self.at + 1)).then(|| self.at += 1)?;
        Some(key)
    }

    fn key_text(&mut self, flow: bool) -> Option<Box<str>> {
        let from = self.at;
        let key: Box<str> = match self.byte()? {
            b'"' | b'\'' => match self.quoted()? {
                Content::Scalar { text, .. } => text,
                Content::Sequence(_) | Content::Mapping(_) => return None,
            },
            _ => {
                let (text, stop) = self.plain(flow)?;
                let node =
                    Node { line: 0, column: 0, content: Content::Scalar { text: text.into(), style: Style::Plain } };
                let is_text = matches!(node.value(), Resolved::Text(text) if text != "<<");
                match node.content {
                    Content::Scalar { text, .. } if is_text && stop == Stop::Colon => text,
                    Content::Scalar { .. } | Content::Sequence(_) | Content::Mapping(_) => return None,
                }
            }
        };
        (self.at - from <= MAX_KEY).then_some(key)
    }

    /// A scalar or a flow collection, all on this line.
    fn value(&mut self, flow: bool) -> Option<Node> {
        let place = self.place();
        let content = match self.byte()? {
            b'"' | b'\'' => self.quoted()?,
            b'[' => self.deeper(Self::flow_sequence)?,
            b'{' => self.deeper(Self::flow_mapping)?,
            _ => {
                let (text, stop) = self.plain(flow)?;
                if stop == Stop::Colon {
                    return None;
                }
                Content::Scalar { text: text.into(), style: Style::Plain }
            }
        };
        let node = Node { line: place.0, column: place.1, content };
        keeps_its_number(&node).then_some(node)
    }

    /// From here to what ends it; the spaces before that are not part of it.
    fn plain(&mut self, flow: bool) -> Option<(&str, Stop)> {
        let from = self.at;
        match self.byte()? {
            b'-' if !self.follows(from + 1) => {}
            b'-' | b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
            | b'"' | b'%' | b'@' | b'`' | b' ' | b'\n' => return None,
            _ => {}
        }
        let mut at = from;
        let stop = loop {
            match self.bytes.get(at) {
                None | Some(b'\n') if flow => return None,
                None | Some(b'\n') => break Stop::Line,
                Some(b':') if self.follows(at + 1) => break Stop::Colon,
                Some(b':' | b'-') if flow && is_flow(self.bytes.get(at + 1)) => return None,
                Some(b'#') if self.bytes[at - 1] == b' ' => match flow {
                    true => return None,
                    false => break Stop::Line,
                },
                Some(b',' | b'[' | b']' | b'{' | b'}') if flow => break Stop::Flow,
                Some(_) => at += 1,
            }
        };
        let text = self.text.get(from..at)?;
        let text = text.trim_end_matches(' ');
        // A space before the colon of a key is allowed, and nobody writes it.
        if stop == Stop::Colon && from + text.len() != at {
            return None;
        }
        self.at = from + text.len();
        Some((text, stop))
    }

    /// A quoted scalar of one line without escapes but the doubled single quote.
    fn quoted(&mut self) -> Option<Content> {
        let quote = self.byte()?;
        let from = self.at + 1;
        let mut at = from;
        let mut doubled = false;
        loop {
            match *self.bytes.get(at)? {
                b'\n' => return None,
                b'\\' if quote == b'"' => return None,
                byte if byte == quote => match quote == b'\'' && self.bytes.get(at + 1) == Some(&b'\'') {
                    true => (doubled, at) = (true, at + 2),
                    false => break,
                },
                _ => at += 1,
            }
        }
        let text = self.text.get(from..at)?;
        let text = if doubled { text.replace("''", "'").into() } else { Box::from(text) };
        self.at = at + 1;
        let style = if quote == b'"' { Style::DoubleQuoted } else { Style::SingleQuoted };
        Some(Content::Scalar { text, style })
    }

    fn flow_sequence(&mut self) -> Option<Content> {
        let mut items = Vec::new();
        self.flow_items(b']', |reader| {
            items.push(reader.value(true)?);
            Some(())
        })?;
        Some(Content::Sequence(items))
    }

    fn flow_mapping(&mut self) -> Option<Content> {
        let mut entries = Vec::new();
        self.flow_items(b'}', |reader| {
            let (line, column) = reader.place();
            let key = reader.key_text(true)?;
            (reader.byte()? == b':').then(|| reader.at += 1)?;
            if reader.spaces() == 0 {
                return None;
            }
            entries.push(Entry { key, line, column, value: reader.value(true)? });
            Some(())
        })?;
        Some(Content::Mapping(distinct(entries)?))
    }

    /// The items between the bracket here and `close`, without a comma behind the last.
    fn flow_items(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.spaces();
        if self.byte()? == close {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self)?;
            self.spaces();
            let byte = self.byte()?;
            self.at += 1;
            match byte {
                b',' => self.spaces(),
                _ if byte == close => return Some(()),
                _ => return None,
            };
        }
    }

    /// A literal block whose first row has text, under `|` or `|-`.
    fn literal(&mut self, column: usize) -> Option<Node> {
        let end = self.line_end();
        let header = self.text.get(self.at..end)?.trim_end_matches(' ');
        let keeps_break = match header {
            "|" => true,
            "|-" => false,
            _ => return None,
        };
        let mut text = String::new();
        let (mut at, mut blank, mut rows) = (end + 1, 0, 0);
        let mut indent = 0;
        while at < self.bytes.len() {
            let row_end = self.bytes[at..].iter().position(|byte| *byte == b'\n').map(|length| at + length)?;
            let row = self.text.get(at..row_end)?;
            let spaces = row.len() - row.trim_start_matches(' ').len();
            if rows == 0 {
                indent = spaces;
                if row.len() == spaces || indent <= column {
                    return None;
                }
            }
            if row.len() == spaces {
                if spaces > indent {
                    return None;
                }
                blank += 1;
            } else if spaces < indent {
                if spaces > column {
                    return None;
                }
                break;
            } else {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.extend(std::iter::repeat_n('\n', blank));
                blank = 0;
                text.push_str(row.get(indent..)?);
            }
            rows += 1;
            at = row_end + 1;
        }
        if rows == 0 {
            return None;
        }
        if keeps_break {
            text.push('\n');
        }
        let place = (self.line + 1, indent as u32 + 1);
        self.line += 1 + rows;
        self.significant(at)?;
        self.node(place, Content::Scalar { text: text.into(), style: Style::Literal })
    }
}

fn is_flow(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b',' | b'[' | b']' | b'{' | b'}'))
}

/// None when a key is written twice.
fn distinct(entries: Vec<Entry>) -> Option<Vec<Entry>> {
    let twice = if entries.len() <= 16 {
        (1..entries.len()).any(|index| entries[..index].iter().any(|earlier| earlier.key == entries[index].key))
    } else {
        let mut seen = HashSet::with_capacity(entries.len());
        !entries.iter().all(|entry| seen.insert(&*entry.key))
    };
    (!twice).then_some(entries)
}

/// False for a number that the full parser refuses.
fn keeps_its_number(node: &Node) -> bool {
    match node.value() {
        Resolved::Int(value) => value.unsigned_abs() <= MAX_EXACT as u64,
        Resolved::HugeInt => false,
        Resolved::Float(value) => value.abs() <= MAX_EXACT as f64,
        Resolved::Null | Resolved::Bool(_) | Resolved::Text(_) | Resolved::List(_) | Resolved::Map(_) => true,
    }
}

#[cfg(test)]
#[path = "quick_tests.rs"]
mod tests;
