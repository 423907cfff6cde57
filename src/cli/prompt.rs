//! The one question that a command asks: for the exact words by which a person confirms what is about to be done.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use tokio::sync::oneshot;

use super::console;
use super::context::Context;

/// Longest answer that is read, bytes.
const LIMIT: u64 = 4096;

/// What the user typed, without the line end; none when nobody can be asked or the input ended.
pub fn ask(context: &Context, question: &str) -> Option<String> {
    if !context.interactive() {
        return None;
    }
    read(question)
}

/// The same for a caller that must not wait: the answer arrives when there is one. A question that nobody waits for any more
/// keeps nobody from ending.
pub fn ask_aside(context: &Context, question: String) -> oneshot::Receiver<Option<String>> {
    let (sender, receiver) = oneshot::channel();
    if context.interactive() {
        let asked = std::thread::Builder::new().name("streamt-question".to_owned()).spawn(move || {
            let _ = sender.send(read(&question));
        });
        drop(asked);
    }
    receiver
}

fn read(question: &str) -> Option<String> {
    let terminal = File::open("/dev/tty").ok()?;
    console::write_stderr(question);
    let mut answer = String::new();
    let read = BufReader::new(terminal.take(LIMIT)).read_line(&mut answer).ok()?;
    if read == 0 {
        console::write_stderr("\n");
    }
    (read > 0).then(|| answer.trim_end_matches(['\r', '\n']).to_owned())
}
