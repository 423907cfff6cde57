//! The manifest: what a project declares and compiles to, as one document, and its digest.

use std::io;

use rayon::prelude::*;
use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::codes::redact::{redact_keys, redact_value};
use crate::project::Project;
use crate::project::model::{Exposure, Model, Source, Test};

use super::artifact::Artifacts;
use super::canonical::{CanonicalError, Checksum, canonical_value};
use super::dag::Dag;

/// The version of a project that names none.
const NO_VERSION: &str = "0.0.0";

/// Borrowed parts in the order in which they are printed. Declarations keep their order.
pub struct Manifest<'a> {
    pub project: &'a Project,
    pub sources: Vec<&'a Source>,
    pub models: Vec<&'a Model>,
    pub tests: Vec<&'a Test>,
    pub dag: &'a Dag,
    pub artifacts: &'a Artifacts,
}

impl<'a> Manifest<'a> {
    pub fn of(project: &'a Project, dag: &'a Dag, artifacts: &'a Artifacts) -> Self {
        Self {
            project,
            sources: project.sources.iter().collect(),
            models: project.models.iter().collect(),
            tests: project.tests.iter().collect(),
            dag,
            artifacts,
        }
    }

    fn version(&self) -> &'a str {
        self.project.version.as_deref().unwrap_or(NO_VERSION)
    }

    /// The digest over everything but `compiled_at`, the values of sensitive keys hidden. Lists are hashed piece by piece, so
    /// that a large project needs no second copy of its manifest.
    pub fn checksum(&self) -> Result<Checksum, CanonicalError> {
        let mut digest = Sha256::new();
        digest.update(b"{\"artifacts\":{");
        self.digest_artifacts(&mut digest)?;
        digest.update(b"},\"dag\":");
        digest.update(&redacted(self.dag)?);
        digest.update(b",");
        list(&mut digest, "exposures", &self.project.exposures.iter().collect::<Vec<_>>(), declared_exposure)?;
        digest.update(b",");
        list(&mut digest, "models", &self.models, declared_model)?;
        digest.update(b",\"project\":");
        digest.update(&redacted(&self.project.name)?);
        digest.update(b",");
        list(&mut digest, "sources", &self.sources, declared)?;
        digest.update(b",");
        list(&mut digest, "tests", &self.tests, declared)?;
        digest.update(b",\"version\":");
        digest.update(&redacted(&self.version())?);
        digest.update(b"}");
        Ok(Checksum::of_digest(digest.finalize().into()))
    }

    /// The members of the artifacts, sorted by key.
    fn digest_artifacts(&self, digest: &mut Sha256) -> Result<(), CanonicalError> {
        let artifacts = self.artifacts;
        if !artifacts.connector_removals.is_empty() {
            all(digest, "connector_removals", &artifacts.connector_removals)?;
            digest.update(b",");
        }
        all(digest, "connectors", &artifacts.connectors)?;
        digest.update(b",");
        all(digest, "flink_jobs", &artifacts.flink_jobs)?;
        if !artifacts.gateway_rule_removals.is_empty() {
            digest.update(b",");
            all(digest, "gateway_rule_removals", &artifacts.gateway_rule_removals)?;
        }
        digest.update(b",");
        all(digest, "gateway_rules", &artifacts.gateway_rules)?;
        if !artifacts.kafka_streams_jobs.is_empty() {
            digest.update(b",");
            all(digest, "kafka_streams_jobs", &artifacts.kafka_streams_jobs)?;
        }
        digest.update(b",");
        all(digest, "schemas", &artifacts.schemas)?;
        digest.update(b",");
        all(digest, "test_jobs", &artifacts.test_jobs)?;
        digest.update(b",");
        all(digest, "topics", &artifacts.topics)
    }

    /// The document with its time of compilation, RFC 3339 with six fraction digits.
    pub fn document<'b>(&'b self, compiled_at: &'b str) -> Document<'b> {
        Document { manifest: self, compiled_at }
    }
}

/// A manifest as it is printed: sensitive values are hidden.
pub struct Document<'a> {
    manifest: &'a Manifest<'a>,
    compiled_at: &'a str,
}

impl Document<'_> {
    /// Two-space indent and a final newline.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let Manifest { project, sources, models, tests, dag, artifacts } = self.manifest;
        let mut map = serializer.serialize_map(Some(9))?;
        map.serialize_entry("version", self.manifest.version())?;
        map.serialize_entry("project", &project.name)?;
        map.serialize_entry("compiled_at", self.compiled_at)?;
        map.serialize_entry("sources", &Each(sources, declared))?;
        map.serialize_entry("models", &Each(models, declared_model))?;
        map.serialize_entry("tests", &Each(tests, declared))?;
        map.serialize_entry("exposures", &Each(&project.exposures.iter().collect::<Vec<_>>(), declared_exposure))?;
        map.serialize_entry("dag", dag)?;
        map.serialize_entry("artifacts", &Hidden(artifacts))?;
        map.end()
    }
}

/// The artifacts with sensitive values hidden, in the order of their own form.
struct Hidden<'a>(&'a Artifacts);

impl Serialize for Hidden<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        fn each<T>(items: &[T]) -> Vec<&T> {
            items.iter().collect()
        }
        let artifacts = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schemas", &Each(&each(&artifacts.schemas), declared))?;
        map.serialize_entry("topics", &Each(&each(&artifacts.topics), declared))?;
        map.serialize_entry("flink_jobs", &Each(&each(&artifacts.flink_jobs), declared))?;
        map.serialize_entry("test_jobs", &Each(&each(&artifacts.test_jobs), declared))?;
        map.serialize_entry("connectors", &Each(&each(&artifacts.connectors), declared))?;
        map.serialize_entry("gateway_rules", &Each(&each(&artifacts.gateway_rules), declared))?;
        if !artifacts.kafka_streams_jobs.is_empty() {
            map.serialize_entry("kafka_streams_jobs", &Each(&each(&artifacts.kafka_streams_jobs), declared))?;
        }
        if !artifacts.connector_removals.is_empty() {
            map.serialize_entry("connector_removals", &Each(&each(&artifacts.connector_removals), declared))?;
        }
        if !artifacts.gateway_rule_removals.is_empty() {
            map.serialize_entry("gateway_rule_removals", &Each(&each(&artifacts.gateway_rule_removals), declared))?;
        }
        map.end()
    }
}

/// A list whose items are converted one at a time, sensitive values hidden.
struct Each<'a, T>(&'a [&'a T], fn(&T) -> Result<Value, CanonicalError>);

impl<T> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for item in self.0 {
            let mut value = (self.1)(item).map_err(S::Error::custom)?;
            redact_keys(&mut value);
            list.serialize_element(&value)?;
        }
        list.end()
    }
}

fn hidden<T: Serialize>(value: &T) -> Result<Value, CanonicalError> {
    let mut value = declared(value)?;
    redact_keys(&mut value);
    Ok(value)
}

fn redacted<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    canonical_value(&hidden(value)?)
}

/// Items converted at once: enough to keep every core busy, few enough to keep memory flat.
const BATCH: usize = 512;

fn all<T: Serialize + Sync>(digest: &mut Sha256, key: &str, items: &[T]) -> Result<(), CanonicalError> {
    list(digest, key, &items.iter().collect::<Vec<_>>(), declared)
}

/// One member whose value is a list.
fn list<T: Sync>(
    digest: &mut Sha256,
    key: &str,
    items: &[&T],
    convert: fn(&T) -> Result<Value, CanonicalError>,
) -> Result<(), CanonicalError> {
    digest.update(format!("\"{key}\":["));
    for (index, batch) in items.chunks(BATCH).enumerate() {
        let texts: Result<Vec<Vec<u8>>, CanonicalError> = batch
            .par_iter()
            .map(|item| {
                let mut value = convert(item)?;
                redact_keys(&mut value);
                canonical_value(&value)
            })
            .collect();
        for (at, text) in texts?.into_iter().enumerate() {
            if index + at > 0 {
                digest.update(b",");
            }
            digest.update(&text);
        }
    }
    digest.update(b"]");
    Ok(())
}

fn declared<T: Serialize>(item: &T) -> Result<Value, CanonicalError> {
    serde_json::to_value(item).map_err(|_| CanonicalError)
}

/// A model with every field of the language: the retired `connector` is null, absent columns are null, blocks are filled.
fn declared_model(model: &Model) -> Result<Value, CanonicalError> {
    let mut value = declared(model)?;
    if let Value::Object(map) = &mut value {
        null_if_empty(map, "columns");
        map.insert("connector".to_owned(), Value::Null);
        if let Some(Value::Object(flink)) = map.get_mut("flink") {
            for (block, fields) in FLINK_BLOCKS {
                fill(flink.get_mut(block), fields);
            }
            if let Some(Value::Object(strategy)) = flink.get_mut("restart_strategy")
                && strategy.get("type").is_none_or(Value::is_null)
            {
                strategy.insert("type".to_owned(), json!("fixed-delay"));
            }
        }
    }
    Ok(value)
}

fn declared_exposure(exposure: &Exposure) -> Result<Value, CanonicalError> {
    let mut value = declared(exposure)?;
    if let Value::Object(map) = &mut value {
        null_if_empty(map, "owners");
        if let Some(Value::Object(contracts)) = map.get_mut("contracts") {
            let schema = contracts.swap_remove("schema").unwrap_or_default();
            contracts.insert("schema_".to_owned(), schema);
        }
        fill(map.get_mut("contracts"), &["schema_", "compatibility"]);
        fill(map.get_mut("sla"), &SLA);
        fill(map.get_mut("access"), &["roles", "purpose"]);
        if let Some(Value::Object(access)) = map.get_mut("access")
            && access.get("roles").is_some_and(Value::is_null)
        {
            access.insert("roles".to_owned(), json!([]));
        }
    }
    Ok(value)
}

const FLINK_BLOCKS: [(&str, &[&str]); 4] = [
    (
        "checkpoint",
        &["timeout_ms", "min_pause_ms", "max_concurrent", "mode", "externalized", "unaligned", "incremental"],
    ),
    ("rocksdb", &["block_cache_size_mb", "write_buffer_size_mb", "predefined_options"]),
    ("resources", &["taskmanager_memory_mb", "taskmanager_slots", "jobmanager_memory_mb"]),
    (
        "restart_strategy",
        &[
            "type",
            "attempts",
            "delay_ms",
            "max_failures_per_interval",
            "failure_rate_interval_ms",
            "initial_backoff_ms",
            "max_backoff_ms",
            "backoff_multiplier",
        ],
    ),
];

const SLA: [&str; 7] = [
    "availability",
    "max_produce_latency_ms",
    "max_end_to_end_latency_ms",
    "max_lag_messages",
    "max_lag_minutes",
    "freshness_minutes",
    "max_error_rate",
];

fn fill(block: Option<&mut Value>, fields: &[&str]) {
    if let Some(Value::Object(map)) = block {
        for field in fields {
            map.entry(*field).or_insert(Value::Null);
        }
    }
}

fn null_if_empty(map: &mut Map<String, Value>, key: &str) {
    if map.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty) {
        map.insert(key.to_owned(), Value::Null);
    }
}

/// What a plan is bound to besides the manifest: the environment's name and its runtime without secrets.
pub fn environment_fingerprint(project: &Project) -> Result<Checksum, CanonicalError> {
    let mut runtime = project.runtime_document.expose().clone();
    redact_value(&mut runtime);
    Checksum::of(&json!({"environment": project.environment.name, "runtime": runtime}))
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
