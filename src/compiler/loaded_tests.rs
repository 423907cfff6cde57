//! From files to manifest, with the loader that users have.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::project::fs::MemoryFs;
use crate::project::{EnvironmentInput, ProjectFs, load};

const NOON: &str = "2026-09-06T12:00:00.000000Z";

const ROOT: &str = r#"
apiVersion: streamt.dev/v1alpha1
project: {name: shop, version: "1.2.0"}
runtime:
  kafka: {bootstrap_servers: "localhost:9092"}
  flink: {default: local, clusters: {local: {rest_url: "http://localhost:8081", sql_gateway_url: "http://localhost:8083"}}}
  connect: {default: main, clusters: {main: {rest_url: "http://localhost:8084"}}}
"#;

const SOURCES: &str = r#"
sources:
  - name: orders_raw
    topic: orders.raw.v1
    columns:
      - {name: order_id, type: STRING, required: true}
      - {name: amount, type: "DECIMAL(10, 2)"}
      - {name: ts, type: TIMESTAMP(3)}
    event_time: {column: ts, watermark: {max_out_of_orderness_ms: 2000}}
"#;

const VALID: &str = r#"
models:
  - name: orders_valid
    materialized: flink
    tags: [core]
    topic: {name: orders.valid.v1, partitions: 3, config: {retention.ms: 86400000}}
    flink: {parallelism: 2}
    sql: |
      SELECT order_id, amount, ts
      FROM {{ source("orders_raw") }}
      WHERE amount > 0
"#;

const ARCHIVE: &str = r#"
models:
  - name: orders_archive
    from: orders_valid
    sink: {connector: s3-sink, config: {s3.bucket.name: shop-archive}}
"#;

const EXPOSURES: &str = "
exposures:
  - {name: billing, type: application, role: consumer, consumes: [{ref: orders_valid}]}
";

fn files() -> MemoryFs {
    MemoryFs::new()
        .with("stream_project.yml", ROOT)
        .with("sources/orders.yml", SOURCES)
        .with("models/a_valid.yml", VALID)
        .with("models/b_archive.yml", ARCHIVE)
        .with("exposures/billing.yml", EXPOSURES)
}

/// A directory that lists its files in another order.
struct Shuffled(MemoryFs, Vec<usize>);

impl ProjectFs for Shuffled {
    fn root(&self) -> &Path {
        self.0.root()
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
        self.0.read(path, limit)
    }

    fn files(&self, directory: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let mut keyed: Vec<(usize, PathBuf)> = match self.0.files(directory)? {
            None => return Ok(None),
            Some(files) => self.1.iter().copied().cycle().zip(files).collect(),
        };
        keyed.sort();
        Ok(Some(keyed.into_iter().map(|(_, file)| file).collect()))
    }

    fn exists(&self, path: &Path) -> bool {
        self.0.exists(path)
    }
}

fn compiled(fs: &dyn ProjectFs) -> Compiled {
    let loaded = load(fs, &EnvironmentInput::default()).unwrap_or_else(|findings| panic!("{findings:?}"));
    compile(Arc::new(loaded.project)).unwrap_or_else(|findings| panic!("{findings:?}"))
}

/// Every declared field of a real project, and its Flink job, as their specification writes the manifest.
#[test]
fn a_loaded_project_has_the_manifest_of_its_specification() {
    let wanted: Value = serde_json::from_str(include_str!("golden/shop_manifest.json")).unwrap();
    let compiled = compiled(&files());
    let checksum = "sha256:04dbfe28fe0614f2836e18250b225816319d929b5b5fdba1c3c31607bf8a6d5f";
    assert_eq!(compiled.manifest_checksum.as_str(), checksum);
    let job = "sha256:806cc7c04e946dd65e33bf12181a1eff2202e0de121749250a18994f5a983e22";
    assert!(compiled.resources().iter().any(|resource| resource.artifact_checksum.as_str() == job));
    let mut found = compiled.manifest(NOON);
    found.as_object_mut().unwrap().shift_remove("compiled_at");
    let text = |value: &Value| String::from_utf8(canonical::canonical_value(value).unwrap()).unwrap();
    assert_eq!(text(&found), text(&wanted));
}

/// SAF-018
#[test]
fn resources_name_the_file_the_line_and_the_path_of_their_declaration() {
    let resources = compiled(&files()).resources();
    let places: Vec<(String, String)> = resources
        .iter()
        .map(|resource| (resource.location().unwrap().to_string(), resource.origin.path(resource.field)))
        .collect();
    assert_eq!(
        places,
        [
            ("models/a_valid.yml:6:12".to_owned(), "models → 0 → topic".to_owned()),
            ("models/a_valid.yml:9:7".to_owned(), "models → 0 → sql".to_owned()),
            ("models/b_archive.yml:5:11".to_owned(), "models → 0 → sink".to_owned()),
        ]
    );
}

#[test]
fn an_error_in_sql_points_into_the_users_file() {
    let broken = VALID.replace("source(\"orders_raw\")", "source(orders_raw)");
    let fs = files().with("models/a_valid.yml", broken);
    let findings = match load(&fs, &EnvironmentInput::default()) {
        Ok(loaded) => compile(Arc::new(loaded.project)).unwrap_err(),
        Err(findings) => findings,
    };
    let finding = findings.errors().next().unwrap();
    assert_eq!(finding.code, Code::E105JinjaSyntaxError);
    assert_eq!(finding.location.as_ref().unwrap().to_string(), "models/a_valid.yml:10:12");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// CRM-027
    #[test]
    fn manifests_are_byte_identical_in_any_file_order(order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let (a, b) = (compiled(&files()), compiled(&Shuffled(files(), order)));
        let text = |compiled: &Compiled| {
            let mut out = Vec::new();
            compiled.manifest_parts().document(NOON).write(&mut out).unwrap();
            out
        };
        prop_assert_eq!(text(&a), text(&b));
        prop_assert_eq!(&a.manifest_checksum, &b.manifest_checksum);
        let files = |compiled: &Compiled| files::render(compiled).unwrap();
        prop_assert_eq!(files(&a), files(&b));
    }
}
