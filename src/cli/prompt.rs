//! The one question that a command asks: the name of the environment that is about to change.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use super::console;
use super::context::Context;

/// Longest answer that is read, bytes.
const LIMIT: u64 = 4096;

/// What the user typed, without the line end; none when nobody can be asked or the input ended.
pub fn ask(context: &Context, question: &str) -> Option<String> {
    if !context.interactive() {
        return None;
    }
    let terminal = File::open("/dev/tty").ok()?;
    console::write_stderr(question);
    let mut answer = String::new();
    let read = BufReader::new(terminal.take(LIMIT)).read_line(&mut answer).ok()?;
    if read == 0 {
        console::write_stderr("\n");
    }
    (read > 0).then(|| answer.trim_end_matches(['\r', '\n']).to_owned())
}
