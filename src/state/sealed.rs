//! Files that a person reviews between two commands: one JSON object that names its kind and format and carries the checksum of
//! all the rest. Strict: every refusal is the end of a sentence that begins with the file.

use serde_json::Value;

use super::plan_file::MAX_BYTES;
use crate::compiler::canonical::Checksum;
use crate::compiler::strict_json;

/// What one kind of file is known by.
pub struct Seal {
    pub kind: &'static str,
    /// The kind in words, after "it is no".
    pub what: &'static str,
    /// The formats that are read.
    pub formats: &'static [u64],
    /// The key that holds the checksum.
    pub key: &'static str,
    /// The checksum in words, after "its".
    pub name: &'static str,
    /// What is said of a file of another format.
    pub other_format: fn(u64) -> String,
}

/// What is said of another format that has no story of its own.
pub fn unread(format: u64) -> String {
    format!("its format {format} is not one that this version reads")
}

impl Seal {
    /// The bytes of the file: two-space indent, sorted keys, final newline. None when the document has no JSON form.
    pub fn bytes(&self, mut document: Value, checksum: &Checksum) -> Option<Vec<u8>> {
        if let Value::Object(map) = &mut document {
            map.insert(self.key.to_owned(), Value::from(checksum.as_str()));
        }
        document.sort_all_objects();
        let mut bytes = serde_json::to_vec_pretty(&document).ok()?;
        bytes.push(b'\n');
        Some(bytes)
    }

    /// The document without its checksum, and the checksum, which holds.
    pub fn open(&self, bytes: &[u8]) -> Result<(Value, Checksum), String> {
        let limit = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
        let value = strict_json::value(bytes, limit).map_err(|error| format!("it is {error}"))?;
        let Value::Object(mut document) = value else { return Err("it is no JSON object".to_owned()) };
        if document.get("kind").and_then(Value::as_str) != Some(self.kind) {
            return Err(format!("it is no {}", self.what));
        }
        match document.get("format_version").and_then(Value::as_u64) {
            Some(format) if self.formats.contains(&format) => {}
            Some(other) => return Err((self.other_format)(other)),
            None => return Err("its format is missing".to_owned()),
        }
        let checksum = document.shift_remove(self.key);
        let checksum = checksum.as_ref().and_then(Value::as_str).and_then(Checksum::parse);
        let checksum = checksum.ok_or_else(|| format!("its {} is missing or malformed", self.name))?;
        let document = Value::Object(document);
        if Checksum::of(&document).ok().as_ref() != Some(&checksum) {
            return Err(format!("its {} does not match: it was changed after it was made", self.name));
        }
        Ok((document, checksum))
    }
}
