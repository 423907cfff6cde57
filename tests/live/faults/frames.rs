//! Whole requests and answers out of a stream of bytes.

/// One request, whole.
#[derive(Clone, Debug)]
pub struct Request {
    /// The SQL text, `METHOD /path`, or the name of the Kafka call.
    pub what: String,
    pub bytes: Vec<u8>,
    /// It changes something at the server.
    pub mutates: bool,
    pub connection: u64,
}

impl Request {
    /// Whether its bytes hold this text.
    pub fn says(&self, text: &str) -> bool {
        self.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    Postgres,
    Http,
    Kafka,
}

/// A piece of what a client sent.
pub enum Sent {
    /// Passed on as it is: greetings, logins, goodbyes.
    Other(Vec<u8>),
    /// A client asks for encryption, which a proxy could not read.
    WantsTls,
    Request(Request),
}

/// Cuts what a client sends.
pub struct Requests {
    protocol: Protocol,
    connection: u64,
    pub buffer: Vec<u8>,
    greeted: bool,
    /// Messages of the request that is not complete yet.
    begun: Vec<u8>,
    text: Vec<String>,
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

fn take(buffer: &mut Vec<u8>, length: usize) -> Option<Vec<u8>> {
    (buffer.len() >= length).then(|| buffer.drain(..length).collect())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

impl Requests {
    pub fn new(protocol: Protocol, connection: u64) -> Self {
        Self { protocol, connection, buffer: Vec::new(), greeted: false, begun: Vec::new(), text: Vec::new() }
    }

    pub fn next(&mut self) -> Option<Sent> {
        match self.protocol {
            Protocol::Postgres => self.postgres(),
            Protocol::Http => {
                let (length, head) = http_message(&self.buffer, false)?;
                let line = head.lines().next().unwrap_or_default();
                let what = line.rsplit_once(' ').map_or(line, |(call, _)| call).to_owned();
                let bytes = take(&mut self.buffer, length)?;
                Some(self.request(what.clone(), bytes, http_mutates(&what)))
            }
            Protocol::Kafka => {
                let length = number(self.buffer.get(..4)?) + 4;
                let bytes = take(&mut self.buffer, length)?;
                let (what, mutates) = kafka_call(&bytes);
                Some(self.request(what.to_owned(), bytes, mutates))
            }
        }
    }

    fn request(&self, what: String, bytes: Vec<u8>, mutates: bool) -> Sent {
        Sent::Request(Request { what, bytes, mutates, connection: self.connection })
    }

    fn postgres(&mut self) -> Option<Sent> {
        const SSL: usize = 80_877_103;
        const GSS: usize = 80_877_104;
        if !self.greeted {
            let length = number(self.buffer.get(..4)?);
            let code = number(self.buffer.get(4..8)?);
            let bytes = take(&mut self.buffer, length)?;
            if matches!(code, SSL | GSS) {
                return Some(Sent::WantsTls);
            }
            self.greeted = true;
            return Some(Sent::Other(bytes));
        }
        loop {
            let kind = *self.buffer.first()?;
            let length = number(self.buffer.get(1..5)?) + 1;
            let message = take(&mut self.buffer, length)?;
            match kind {
                b'p' | b'X' => return Some(Sent::Other(message)),
                b'Q' => self.text.push(text(&message[5..])),
                b'P' => {
                    let statement = message[5..].splitn(2, |byte| *byte == 0).nth(1).unwrap_or_default();
                    self.text.push(text(statement));
                }
                _ => {}
            }
            self.begun.extend(message);
            if matches!(kind, b'Q' | b'S') {
                let what = std::mem::take(&mut self.text).join("; ");
                let mutates = ["INSERT INTO", "UPDATE ", "DELETE ", "COMMIT"].iter().any(|verb| what.contains(verb));
                let bytes = std::mem::take(&mut self.begun);
                return Some(self.request(what, bytes, mutates));
            }
        }
    }
}

/// Cuts what a server sends.
pub struct Answers {
    protocol: Protocol,
    pub buffer: Vec<u8>,
}

/// A piece of an answer.
pub struct Piece {
    pub bytes: Vec<u8>,
    /// With it the answer to the oldest open request is whole.
    pub ends: bool,
}

impl Answers {
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, buffer: Vec::new() }
    }

    /// `to` is the oldest request without an answer.
    pub fn next(&mut self, to: Option<&Request>) -> Option<Piece> {
        match self.protocol {
            Protocol::Postgres => {
                // The refusal of encryption and the like is one byte, but the proxy has answered that itself.
                let kind = *self.buffer.first()?;
                let length = number(self.buffer.get(1..5)?) + 1;
                Some(Piece { bytes: take(&mut self.buffer, length)?, ends: kind == b'Z' })
            }
            Protocol::Http => {
                let bodiless = to.is_some_and(|request| request.what.starts_with("HEAD "));
                let (length, head) = http_message(&self.buffer, bodiless)?;
                let interim = head.split(' ').nth(1).is_some_and(|status| status.starts_with('1'));
                Some(Piece { bytes: take(&mut self.buffer, length)?, ends: !interim })
            }
            Protocol::Kafka => {
                let length = number(self.buffer.get(..4)?) + 4;
                Some(Piece { bytes: take(&mut self.buffer, length)?, ends: true })
            }
        }
    }
}

/// Length of the first whole message and its head. An answer without a length goes on to the end of the connection.
fn http_message(buffer: &[u8], bodiless: bool) -> Option<(usize, String)> {
    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let header = |name: &str| {
        head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_ascii_lowercase())
        })
    };
    let request = !head.starts_with("HTTP/");
    let status = head.split(' ').nth(1).unwrap_or_default();
    if bodiless || (!request && (status.starts_with('1') || matches!(status, "204" | "304"))) {
        return Some((end, head));
    }
    if header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        return chunked(buffer, end).map(|length| (length, head));
    }
    let body: Option<usize> = header("content-length").and_then(|value| value.parse().ok());
    match body {
        Some(body) => (buffer.len() >= end + body).then_some((end + body, head)),
        None if request => Some((end, head)),
        None => None,
    }
}

fn chunked(buffer: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let line = buffer[at..].windows(2).position(|window| window == b"\r\n")?;
        let size = String::from_utf8_lossy(&buffer[at..at + line]).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).ok()?;
        at += line + 2 + size + 2;
        if size == 0 {
            return (buffer.len() >= at).then_some(at);
        }
        if buffer.len() < at {
            return None;
        }
    }
}

/// Questions that are posted do not count.
fn http_mutates(what: &str) -> bool {
    let (method, path) = what.split_once(' ').unwrap_or((what, ""));
    let path = path.split('?').next().unwrap_or_default();
    let question = path.contains("/compatibility/")
        || path.contains("/connector-plugins/")
        || (method == "POST" && path.contains("/subjects/") && !path.ends_with("/versions"));
    !matches!(method, "GET" | "HEAD" | "OPTIONS") && !question
}

/// The name of the call, and whether it changes something: most can be asked for validation only.
fn kafka_call(frame: &[u8]) -> (&'static str, bool) {
    let (key, version) = (number(&frame[4..6]), number(&frame[6..8]));
    // The flag is the last byte of the older encodings; the newer ones end in an empty list of tags.
    let validates = |flexible_from: usize| {
        let back = if version >= flexible_from { 2 } else { 1 };
        frame[frame.len() - back] == 1
    };
    match key {
        0 => ("Produce", true),
        3 => ("Metadata", false),
        8 => ("OffsetCommit", true),
        18 => ("ApiVersions", false),
        19 => ("CreateTopics", !validates(5)),
        20 => ("DeleteTopics", true),
        21 => ("DeleteRecords", true),
        30 => ("CreateAcls", true),
        31 => ("DeleteAcls", true),
        32 => ("DescribeConfigs", false),
        33 => ("AlterConfigs", !validates(2)),
        37 => ("CreatePartitions", !validates(2)),
        42 => ("DeleteGroups", true),
        43 => ("ElectLeaders", true),
        44 => ("IncrementalAlterConfigs", !validates(1)),
        45 => ("AlterPartitionReassignments", true),
        47 => ("OffsetDelete", true),
        75 => ("DescribeTopicPartitions", false),
        _ => ("other", false),
    }
}
