//! Files of a compilation on disk. A run that is cut off leaves every file whole, old or new, and the manifest last. Values of
//! sensitive keys are hidden; nothing that deploys reads these files.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::codes::redact::redact_keys;
use crate::codes::{Code, Diagnostic, Diagnostics, Location};

use super::Compiled;
use super::canonical::Checksum;

pub const MANIFEST: &str = "manifest.json";
pub const CHECKSUMS: &str = "checksums.sha256";

/// Folders that hold nothing but a compilation's files.
const FOLDERS: [&str; 6] = ["connect", "flink", "gateway", "kafka_streams", "schemas", "topics"];

/// From this many files on, one flush of the file system is cheaper than one for each file.
const FLUSH_AT_ONCE: usize = 16;

/// One file: path relative to the output directory with `/`, content.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OutputFile {
    pub path: String,
    pub content: Vec<u8>,
}

/// What a run left behind.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Files of this compilation, the manifest included.
    pub files: usize,
    /// W145.
    pub warnings: Diagnostics,
}

/// The files of all artifacts, sorted by path; the manifest is written apart. E119 for a name that is no file name.
pub fn render(compiled: &Compiled) -> Result<Vec<OutputFile>, Diagnostics> {
    let mut renderer = Renderer { files: Vec::new(), findings: Diagnostics::new() };
    let artifacts = &compiled.artifacts;
    for schema in &artifacts.schemas {
        renderer.json("schemas", &schema.subject, schema);
    }
    for topic in &artifacts.topics {
        renderer.json("topics", &topic.name, topic);
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

struct Renderer {
    files: Vec<OutputFile>,
    findings: Diagnostics,
}

impl Renderer {
    fn json<T: Serialize>(&mut self, folder: &str, name: &str, artifact: &T) {
        let text = serde_json::to_value(artifact).and_then(|mut value| {
            redact_keys(&mut value);
            serde_json::to_vec_pretty(&value)
        });
        match text {
            Ok(mut content) => {
                content.push(b'\n');
                self.push(folder, name, "json", content);
            }
            Err(_) => self.refuse(name, "cannot be written as JSON"),
        }
    }

    fn push(&mut self, folder: &str, name: &str, extension: &str, content: Vec<u8>) {
        if name.contains(['/', '\\']) || name.contains("..") || name.chars().any(char::is_control) {
            return self.refuse(name, "cannot be a file name");
        }
        self.files.push(OutputFile { path: format!("{folder}/{name}.{extension}"), content });
    }

    fn refuse(&mut self, name: &str, why: &str) {
        self.findings.push(Diagnostic::new(Code::E119CompileFailed, format!("'{name}' {why}")));
    }
}

/// Writes artifacts and manifest below `directory`, each file replaced as a whole; files that are right already stay
/// untouched. E119, E907. Files of an earlier compilation stay too and are named by W145.
pub fn write(directory: &Path, compiled: &Compiled, compiled_at: &str) -> Result<Written, Diagnostics> {
    let files = render(compiled)?;
    write_files(directory, &files, compiled, compiled_at).map_err(|error| failed(directory, &error))?;
    Ok(Written { files: files.len() + 1, warnings: stale(directory, &files) })
}

/// Compares with what is on disk and writes nothing. E905 names at most five files that differ or are missing; the
/// manifest's time of compilation is no difference.
pub fn check(directory: &Path, compiled: &Compiled) -> Result<(), Diagnostics> {
    let files = render(compiled)?;
    let mut differing: Vec<&str> = Vec::new();
    if !manifest_is_current(directory, compiled) {
        differing.push(MANIFEST);
    }
    let other = |file: &&OutputFile| fs::read(directory.join(&file.path)).ok().as_ref() != Some(&file.content);
    differing.extend(files.iter().filter(other).map(|file| file.path.as_str()));
    if differing.is_empty() {
        return Ok(());
    }
    let message = format!("{} generated file(s) differ: {}", differing.len(), few(&differing));
    Err(Diagnostic::new(Code::E905OutputDiffers, message)
        .at(Location::named(directory.display().to_string()))
        .suggest("Run `streamt compile` and commit the result.")
        .into())
}

/// [`write`], and `checksums.sha256` over every regular file below the directory. A directory that holds something else than
/// an earlier build is refused.
pub fn build(directory: &Path, compiled: &Compiled, compiled_at: &str) -> Result<Written, Diagnostics> {
    let occupied = fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    if occupied && !directory.join(CHECKSUMS).is_file() {
        let message = format!("{} is not empty and holds no earlier build", directory.display());
        return Err(Diagnostic::new(Code::E907OutputFailed, message)
            .suggest("Choose an empty directory with --output-dir.")
            .into());
    }
    let written = write(directory, compiled, compiled_at)?;
    write_checksums(directory).map_err(|error| failed(directory, &error))?;
    Ok(written)
}

fn failed(directory: &Path, error: &io::Error) -> Diagnostics {
    let message = format!("cannot write to {}: {}", directory.display(), error.kind());
    Diagnostic::new(Code::E907OutputFailed, message).into()
}

fn few(names: &[&str]) -> String {
    let mut text = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
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
    let mut stage = Stage::default();
    for file in files {
        let target = directory.join(&file.path);
        if !holds(&target, &file.content) {
            stage.add(target, |out| out.write_all(&file.content))?;
        }
    }
    stage.add(directory.join(MANIFEST), |out| compiled.manifest_parts().document(compiled_at).write(out))?;
    stage.finish(directory)
}

fn holds(path: &Path, content: &[u8]) -> bool {
    let same_size =
        fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
    same_size && fs::read(path).is_ok_and(|found| found == content)
}

/// Files written beside their targets and not yet in their place; dropped, they are removed.
#[derive(Default)]
struct Stage {
    waiting: Vec<(PathBuf, PathBuf)>,
}

impl Stage {
    fn add(&mut self, target: PathBuf, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let staged = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let _ = fs::remove_file(&staged);
        let file = OpenOptions::new().write(true).create_new(true).open(&staged)?;
        self.waiting.push((staged, target));
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()
    }

    /// Flushes everything, then renames in order: what was added last appears last.
    fn finish(mut self, directory: &Path) -> io::Result<()> {
        if self.waiting.len() < FLUSH_AT_ONCE {
            for (staged, _) in &self.waiting {
                File::open(staged)?.sync_all()?;
            }
        } else {
            flush_file_system(directory, &self.waiting)?;
        }
        let folders: BTreeSet<PathBuf> =
            self.waiting.iter().filter_map(|(_, target)| target.parent().map(Path::to_path_buf)).collect();
        for (staged, target) in &self.waiting {
            fs::rename(staged, target)?;
        }
        self.waiting.clear();
        folders.iter().try_for_each(|folder| File::open(folder)?.sync_all())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (staged, _) in &self.waiting {
            let _ = fs::remove_file(staged);
        }
    }
}

#[cfg(target_os = "linux")]
fn flush_file_system(directory: &Path, _staged: &[(PathBuf, PathBuf)]) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

#[cfg(not(target_os = "linux"))]
fn flush_file_system(_directory: &Path, staged: &[(PathBuf, PathBuf)]) -> io::Result<()> {
    staged.iter().try_for_each(|(file, _)| File::open(file)?.sync_all())
}

/// W145 for files of an earlier compilation in the folders of this one.
fn stale(directory: &Path, files: &[OutputFile]) -> Diagnostics {
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
    if left.is_empty() {
        return Diagnostics::new();
    }
    let names: Vec<&str> = left.iter().map(String::as_str).collect();
    let message = format!("{} file(s) of an earlier run no longer belong to the project: {}", names.len(), few(&names));
    Diagnostic::new(Code::W145StaleOutput, message)
        .at(Location::named(directory.display().to_string()))
        .suggest("Remove them when nothing else reads them.")
        .into()
}

fn write_checksums(directory: &Path) -> io::Result<()> {
    let mut paths = Vec::new();
    regular_files(directory, directory, &mut paths)?;
    paths.sort();
    let mut text = String::new();
    for path in paths.iter().filter(|path| *path != CHECKSUMS) {
        text.push_str(&format!("{}  {path}\n", digest_of(&directory.join(path))?.hex()));
    }
    let mut stage = Stage::default();
    stage.add(directory.join(CHECKSUMS), |out| out.write_all(text.as_bytes()))?;
    stage.finish(directory)
}

fn regular_files(root: &Path, directory: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            regular_files(root, &entry.path(), found)?;
        } else if kind.is_file() {
            let path = entry.path();
            let parts = path.strip_prefix(root).unwrap_or(&path).components();
            found.push(parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/"));
        }
    }
    Ok(())
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
