//! Files of a compilation on disk, to be read by people and pipelines: nothing that deploys reads them. A run that is cut off
//! leaves every file whole, old or new, and the manifest last. Values of sensitive keys are hidden, except in schemas, where a
//! key names a field.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::codes::redact::redact_keys;
use crate::codes::{Code, Diagnostic, Diagnostics, Location};
use crate::files::{Access, Stage, not_written, replace};

use super::Compiled;
use super::canonical::Checksum;

pub const MANIFEST: &str = "manifest.json";
pub const CHECKSUMS: &str = "checksums.sha256";

/// Folders that hold nothing but a compilation's files.
const FOLDERS: [&str; 6] = ["connect", "flink", "gateway", "kafka_streams", "schemas", "topics"];

/// One file: path relative to the output directory with `/`, content.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OutputFile {
    pub path: String,
    pub content: Vec<u8>,
}

/// What a run left behind.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Files of this compilation, the manifest included; of a build, all that its checksums cover.
    pub files: usize,
    /// W145.
    pub warnings: Diagnostics,
}

/// The files of all artifacts, sorted by path; the manifest is written apart. E119 for a name that is no file name.
pub fn render(compiled: &Compiled) -> Result<Vec<OutputFile>, Diagnostics> {
    let mut renderer = Renderer { files: Vec::new(), findings: Diagnostics::new() };
    let artifacts = &compiled.artifacts;
    let schemas: Vec<_> = artifacts.schemas.par_iter().map(|schema| pretty(serde_json::to_value(schema))).collect();
    for (schema, text) in artifacts.schemas.iter().zip(schemas) {
        renderer.text("schemas", &schema.subject, text);
    }
    let topics: Vec<_> = artifacts.topics.par_iter().map(hidden).collect();
    for (topic, text) in artifacts.topics.iter().zip(topics) {
        renderer.text("topics", &topic.name, text);
    }
    for job in artifacts.flink_jobs.iter().chain(&artifacts.test_jobs) {
        renderer.json("flink", &job.name, job);
        renderer.push("flink", &job.name, "sql", format!("{}\n", job.sql).into_bytes());
    }
    for connector in &artifacts.connectors {
        renderer.json("connect", &connector.name, connector);
    }
    for rule in &artifacts.gateway_rules {
        renderer.json("gateway", &rule.name, rule);
    }
    for job in &artifacts.kafka_streams_jobs {
        renderer.json("kafka_streams", &job.name, job);
    }
    if renderer.findings.has_errors() {
        return Err(renderer.findings);
    }
    renderer.files.sort();
    Ok(renderer.files)
}

/// As JSON for people, with a final newline.
fn pretty(value: serde_json::Result<Value>) -> serde_json::Result<Vec<u8>> {
    let mut content = serde_json::to_vec_pretty(&value?)?;
    content.push(b'\n');
    Ok(content)
}

/// [`pretty`], the values of sensitive keys hidden.
fn hidden<T: Serialize>(artifact: &T) -> serde_json::Result<Vec<u8>> {
    pretty(serde_json::to_value(artifact).map(|mut value| {
        redact_keys(&mut value);
        value
    }))
}

struct Renderer {
    files: Vec<OutputFile>,
    findings: Diagnostics,
}

impl Renderer {
    fn json<T: Serialize>(&mut self, folder: &str, name: &str, artifact: &T) {
        self.text(folder, name, hidden(artifact));
    }

    fn text(&mut self, folder: &str, name: &str, text: serde_json::Result<Vec<u8>>) {
        match text {
            Ok(content) => self.push(folder, name, "json", content),
            Err(_) => self.refuse(name, "cannot be written as JSON"),
        }
    }

    fn push(&mut self, folder: &str, name: &str, extension: &str, content: Vec<u8>) {
        if name.is_empty() || name.contains(['/', '\\']) || name.contains("..") || name.chars().any(char::is_control) {
            return self.refuse(name, "cannot be a file name");
        }
        self.files.push(OutputFile { path: format!("{folder}/{name}.{extension}"), content });
    }

    fn refuse(&mut self, name: &str, why: &str) {
        let error = Diagnostic::new(Code::E119CompileFailed, format!("'{name}' {why}"));
        self.findings.push(error.suggest("Choose a name without `/`, `\\` and `..`"));
    }
}

/// Writes artifacts and manifest below `directory`, each file replaced as a whole; files that are right already stay
/// untouched. E119, E907. Files of an earlier compilation stay too and are named by W145.
pub fn write(directory: &Path, compiled: &Compiled, compiled_at: &str) -> Result<Written, Diagnostics> {
    let files = render(compiled)?;
    write_files(directory, &files, compiled, compiled_at).map_err(|error| not_written(directory, &error))?;
    Ok(Written { files: files.len() + 1, warnings: stale(directory, &files) })
}

/// What on disk is missing, has other bytes or belongs to an earlier compilation, sorted; the manifest's time of compilation is
/// no difference. Writes nothing. E119.
pub fn differing(directory: &Path, compiled: &Compiled) -> Result<Vec<String>, Diagnostics> {
    let files = render(compiled)?;
    let mut names = left_over(directory, &files);
    if !manifest_is_current(directory, compiled) {
        names.insert(MANIFEST.to_owned());
    }
    let same = |file: &OutputFile| fs::read(directory.join(&file.path)).is_ok_and(|found| found == file.content);
    names.extend(files.into_iter().filter(|file| !same(file)).map(|file| file.path));
    Ok(names.into_iter().collect())
}

/// E905, naming at most five files that differ.
pub fn outdated(directory: &Path, names: &[String]) -> Diagnostic {
    let message = format!("{} generated file(s) differ: {}", names.len(), few(names));
    Diagnostic::new(Code::E905OutputDiffers, message)
        .at(Location::named(directory.display().to_string()))
        .suggest("Run `streamt compile`, remove what it calls left over, and commit the result")
}

/// [`write`], and `checksums.sha256` over every file below the directory whose name is not hidden; they are counted. A
/// directory that holds files and no earlier build is refused. E119, E907.
pub fn build(directory: &Path, compiled: &Compiled, compiled_at: &str) -> Result<Written, Diagnostics> {
    let failed = |error: io::Error| Diagnostics::from(not_written(directory, &error));
    let there = regular_files(directory).map_err(failed)?;
    if !there.is_empty() && !there.contains(CHECKSUMS) {
        let message = format!("{} holds files and no {CHECKSUMS}: it is not a build directory", directory.display());
        return Err(Diagnostic::new(Code::E907OutputFailed, message).suggest("Choose another --output-dir").into());
    }
    let written = write(directory, compiled, compiled_at)?;
    Ok(Written { files: write_checksums(directory).map_err(failed)?, ..written })
}

fn few(names: &[String]) -> String {
    let mut text = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 5 {
        text.push_str(&format!(" and {} more", names.len() - 5));
    }
    text
}

fn manifest_is_current(directory: &Path, compiled: &Compiled) -> bool {
    let Ok(found) = fs::read(directory.join(MANIFEST)) else { return false };
    let time = serde_json::from_slice::<Value>(&found).ok();
    let time = time.as_ref().and_then(|manifest| manifest.get("compiled_at")).and_then(Value::as_str);
    let mut wanted = Vec::with_capacity(found.len());
    let written = time.map(|time| compiled.manifest_parts().document(time).write(&mut wanted));
    matches!(written, Some(Ok(()))) && wanted == found
}

fn write_files(directory: &Path, files: &[OutputFile], compiled: &Compiled, compiled_at: &str) -> io::Result<()> {
    let folders: BTreeSet<&str> = files.iter().filter_map(|file| Some(file.path.split_once('/')?.0)).collect();
    fs::create_dir_all(directory)?;
    for folder in &folders {
        fs::create_dir_all(directory.join(folder))?;
    }
    let mut stage = Stage::new(Access::Shared);
    for file in files {
        let target = directory.join(&file.path);
        if !holds(&target, &file.content) {
            stage.add(target, |out| out.write_all(&file.content))?;
        }
    }
    stage.add(directory.join(MANIFEST), |out| compiled.manifest_parts().document(compiled_at).write(out))?;
    stage.finish()
}

fn holds(path: &Path, content: &[u8]) -> bool {
    let same_size =
        fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
    same_size && fs::read(path).is_ok_and(|found| found == content)
}

/// Files of an earlier compilation in the folders of this one.
fn left_over(directory: &Path, files: &[OutputFile]) -> BTreeSet<String> {
    let current: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut left = BTreeSet::new();
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(directory.join(folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}/{name}");
            let ours = !name.starts_with('.') && (name.ends_with(".json") || name.ends_with(".sql"));
            if ours && !current.contains(path.as_str()) {
                left.insert(path);
            }
        }
    }
    left
}

/// W145, naming at most five files that are left over.
fn stale(directory: &Path, files: &[OutputFile]) -> Diagnostics {
    let names: Vec<String> = left_over(directory, files).into_iter().collect();
    if names.is_empty() {
        return Diagnostics::new();
    }
    let message = format!("{} file(s) of an earlier run no longer belong to the project: {}", names.len(), few(&names));
    Diagnostic::new(Code::W145StaleOutput, message)
        .at(Location::named(directory.display().to_string()))
        .suggest("Remove them when nothing else reads them")
        .into()
}

fn write_checksums(directory: &Path) -> io::Result<usize> {
    let mut text = String::new();
    let mut count = 0;
    for path in regular_files(directory)?.iter().filter(|path| *path != CHECKSUMS) {
        text.push_str(&format!("{}  {path}\n", digest_of(&directory.join(path))?.hex()));
        count += 1;
    }
    replace(&directory.join(CHECKSUMS), text.as_bytes(), Access::Shared)?;
    Ok(count)
}

/// Paths below a directory, with `/`; hidden names are nobody's output. A directory that is not there has none.
fn regular_files(directory: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(directory.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_empty() => return Ok(found),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if name.starts_with('.') {
                continue;
            } else if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

fn digest_of(path: &Path) -> io::Result<Checksum> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(Checksum::of_digest(digest.finalize().into()));
        }
        digest.update(&buffer[..count]);
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
