//! The files that a compilation leaves on disk, for reading. Nothing that deploys reads them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::codes::redact;
use crate::codes::{Code, Diagnostic};
use crate::compiler::Compiled;

use super::files::{self, Durability};

/// Relative path → bytes, `/` separated.
pub type ArtifactFiles = BTreeMap<String, Vec<u8>>;

pub fn pretty<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Every artifact and the manifest. E119 for a name that would leave its directory.
pub fn of(compiled: &Compiled, compiled_at: &str) -> Result<ArtifactFiles, Diagnostic> {
    let artifacts = &compiled.artifacts;
    let mut files = ArtifactFiles::new();
    let mut add = |directory: &str, name: &str, extension: &str, bytes: Vec<u8>| -> Result<(), Diagnostic> {
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name.contains("..") {
            let message = format!("{directory}: '{name}' cannot be the name of a file");
            return Err(
                Diagnostic::new(Code::E119CompileFailed, message).suggest("Choose a name without `/`, `\\` and `..`")
            );
        }
        files.insert(format!("{directory}/{name}.{extension}"), bytes);
        Ok(())
    };
    for schema in &artifacts.schemas {
        add("schemas", &schema.subject, "json", pretty(schema))?;
    }
    for topic in &artifacts.topics {
        add("topics", &topic.name, "json", pretty(topic))?;
    }
    for job in artifacts.flink_jobs.iter().chain(&artifacts.test_jobs) {
        add("flink", &job.name, "sql", job.sql.clone().into_bytes())?;
        add("flink", &job.name, "json", pretty(job))?;
    }
    for connector in &artifacts.connectors {
        let mut shown = super::outcome::json(connector);
        if let Some(config) = shown.get_mut("config") {
            redact::redact_keys(config);
        }
        add("connect", &connector.name, "json", pretty(&shown))?;
    }
    for rule in &artifacts.gateway_rules {
        add("gateway", &rule.name, "json", pretty(rule))?;
    }
    for job in &artifacts.kafka_streams_jobs {
        add("kafka_streams", &job.name, "json", pretty(job))?;
    }
    files.insert("manifest.json".to_owned(), pretty(&compiled.manifest(compiled_at)));
    Ok(files)
}

/// Writes every file, each in one step.
pub fn write(directory: &Path, files: &ArtifactFiles) -> Result<(), Diagnostic> {
    let mut ready = None;
    for (name, bytes) in files {
        let path = directory.join(name);
        let parent = path.parent().unwrap_or(directory);
        if ready.as_deref() != Some(parent) {
            std::fs::create_dir_all(parent).map_err(|error| files::not_written(parent, &error))?;
            ready = Some(parent.to_path_buf());
        }
        files::replace(&path, bytes, Durability::Reproducible).map_err(|error| files::not_written(&path, &error))?;
    }
    Ok(())
}

/// Regular files below a directory, relative, sorted; hidden names are not ours.
pub fn existing(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(relative) = open.pop() {
        let entries = match std::fs::read_dir(directory.join(&relative)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && relative.is_empty() => return Ok(found),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
            let kind = entry.file_type()?;
            if name.starts_with('.') {
                continue;
            } else if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// W145 for files of an earlier run, at most five named.
pub fn stale(directory: &Path, files: &ArtifactFiles, ours: impl Fn(&str) -> bool) -> Option<Diagnostic> {
    let left: Vec<String> =
        (existing(directory).ok()?.into_iter()).filter(|name| !files.contains_key(name) && ours(name)).collect();
    let named: Vec<&str> = left.iter().take(5).map(String::as_str).collect();
    let more = if left.len() > named.len() { format!(" and {} more", left.len() - named.len()) } else { String::new() };
    (!left.is_empty()).then(|| {
        let message = format!("Files of an earlier run are still there: {}{more}", named.join(", "));
        Diagnostic::new(Code::W145StaleOutput, message).suggest("Remove them when nobody reads them any more")
    })
}

/// Whether a relative path is one that a compilation could have written.
pub fn is_artifact_path(path: &str) -> bool {
    let directory = path.split_once('/').map_or("", |(directory, _)| directory);
    matches!(directory, "schemas" | "topics" | "flink" | "connect" | "gateway" | "kafka_streams")
}

/// The time that an earlier manifest names, so that a comparison is about content.
pub fn compiled_at(directory: &Path) -> Option<String> {
    let bytes = std::fs::read(directory.join("manifest.json")).ok()?;
    let manifest: Value = serde_json::from_slice(&bytes).ok()?;
    manifest.get("compiled_at")?.as_str().map(str::to_owned)
}

/// Now, in the form of the manifest.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
