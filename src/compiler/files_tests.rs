use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::compiler::testing::*;
use crate::project::Project;
use crate::project::model::SchemaFormat;

const NOON: &str = "2026-09-06T12:00:00.000000Z";

fn shop() -> Project {
    let mut project = project("shop");
    project.runtime.connect = Some(connect_runtime());
    project.sources.push(source("orders_raw", "orders.raw.v1"));
    let mut orders = model("orders");
    orders.topic = Some(topic("orders.v1"));
    orders.schema = Some(schema());
    orders.columns = vec![column("id", "STRING")];
    project.models.push(orders);
    let mut archive = sink("archive", &[model_ref("orders")], "s3-sink");
    archive.sink.as_mut().unwrap().config.insert("connection.password".into(), json!("hunter2"));
    project.models.push(archive);
    project
}

fn listing(directory: &Path) -> Vec<String> {
    regular_files(directory).unwrap().into_iter().collect()
}

fn check(directory: &Path, compiled: &Compiled) -> Result<(), Diagnostic> {
    let names = differing(directory, compiled).unwrap();
    if names.is_empty() { Ok(()) } else { Err(outdated(directory, &names)) }
}

#[test]
fn a_compilation_is_written_checked_and_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("generated");
    let compiled = compiled(shop());
    let missing = check(&out, &compiled).unwrap_err();
    assert_eq!(missing.code, Code::E905OutputDiffers);
    let written = write(&out, &compiled, NOON).unwrap();
    let files = ["connect/archive.json", "manifest.json", "schemas/orders.v1-value.json", "topics/orders.v1.json"];
    assert_eq!(listing(&out), files);
    assert_eq!((written.files, written.warnings.len()), (4, 0));
    assert_eq!(
        fs::read_to_string(out.join("topics/orders.v1.json")).unwrap(),
        "{\n  \"name\": \"orders.v1\",\n  \"partitions\": 1,\n  \"replication_factor\": 1,\n  \"config\": {},\n  \"ownership\": {\n    \
         \"mode\": \"managed\",\n    \"project\": \"shop\",\n    \"type\": \"model\",\n    \"name\": \"orders\"\n  }\n}\n"
    );
    let before = fs::metadata(out.join("topics/orders.v1.json")).unwrap().modified().unwrap();
    check(&out, &compiled).unwrap();
    write(&out, &compiled, "2027-01-01T00:00:00.000000Z").unwrap();
    check(&out, &compiled).unwrap();
    assert_eq!(fs::metadata(out.join("topics/orders.v1.json")).unwrap().modified().unwrap(), before);
    fs::write(out.join("topics/orders.v1.json"), "{}").unwrap();
    let message = check(&out, &compiled).unwrap_err().message;
    assert_eq!(message, "1 generated file(s) differ: topics/orders.v1.json");
}

#[test]
fn secrets_of_connectors_stay_out_of_every_file() {
    let directory = tempfile::tempdir().unwrap();
    let compiled = compiled(shop());
    assert_eq!(compiled.artifacts.connectors[0].config["connection.password"], "hunter2");
    write(directory.path(), &compiled, NOON).unwrap();
    for path in listing(directory.path()) {
        let text = fs::read_to_string(directory.path().join(&path)).unwrap();
        assert!(!text.contains("hunter2"), "{path}");
        assert!(!path.starts_with("connect") || text.contains("\"connection.password\": \"<redacted>\""));
    }
}

/// A field of a schema is named, not filled, so its name gives nothing away.
#[test]
fn a_schema_keeps_its_fields_whatever_they_are_called() {
    let mut project = shop();
    let fields = r#"{"type":"record","name":"login","fields":[{"name":"password","type":"string"}],"token":"doc"}"#;
    project.models[0].schema.as_mut().unwrap().definition = Some(fields.to_owned());
    let files = render(&compiled(project)).unwrap();
    let schema = files.iter().find(|file| file.path.starts_with("schemas/")).unwrap();
    assert!(String::from_utf8_lossy(&schema.content).contains(r#""token": "doc""#));
}

#[test]
fn files_of_an_earlier_run_stay_and_are_named() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &compiled(shop()), NOON).unwrap();
    let mut smaller = shop();
    smaller.models.truncate(1);
    smaller.models[0].schema = None;
    fs::write(directory.path().join("topics/notes.txt"), "mine").unwrap();
    let written = write(directory.path(), &compiled(smaller), NOON).unwrap();
    let warning = written.warnings.iter().next().unwrap();
    assert_eq!(warning.code, Code::W145StaleOutput);
    assert_eq!(
        warning.message,
        "2 file(s) of an earlier run no longer belong to the project: connect/archive.json, schemas/orders.v1-value.json"
    );
    assert!(directory.path().join("connect/archive.json").exists());
}

#[test]
fn a_name_that_would_leave_the_directory_is_e119() {
    for subject in ["../../etc/x", "a/b", "a\\b"] {
        let mut project = shop();
        project.models[0].schema.as_mut().unwrap().subject = Some(subject.into());
        let error = render(&compiled(project)).unwrap_err();
        assert_eq!(error.iter().next().unwrap().code, Code::E119CompileFailed, "{subject}");
    }
}

#[test]
fn a_failed_write_is_e907_and_leaves_nothing_staged() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("topics/orders.v1.json/occupied")).unwrap();
    let error = write(directory.path(), &compiled(shop()), NOON).unwrap_err();
    assert_eq!(error.iter().next().unwrap().code, Code::E907OutputFailed);
    let beside = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden = |name: &std::ffi::OsString| name.to_string_lossy().starts_with('.');
    for folder in [directory.path().to_path_buf(), directory.path().join("topics")] {
        assert!(!beside(&folder).any(|name| hidden(&name)), "{folder:?}");
    }
    assert!(!directory.path().join(MANIFEST).exists(), "the manifest comes last");
}

#[test]
fn a_build_carries_checksums_and_refuses_a_foreign_directory() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("build");
    let compiled = compiled(shop());
    build(&out, &compiled, NOON).unwrap();
    let sums = fs::read_to_string(out.join(CHECKSUMS)).unwrap();
    let lines: Vec<(&str, &str)> = sums.lines().map(|line| line.split_once("  ").unwrap()).collect();
    let paths: Vec<&str> = lines.iter().map(|(_, path)| *path).collect();
    assert_eq!(
        paths,
        ["connect/archive.json", "manifest.json", "schemas/orders.v1-value.json", "topics/orders.v1.json"]
    );
    for (hex, path) in lines {
        assert_eq!(Checksum::of_bytes(&fs::read(out.join(path)).unwrap()).hex(), hex);
    }
    build(&out, &compiled, NOON).unwrap();
    assert_eq!(fs::read_to_string(out.join(CHECKSUMS)).unwrap(), sums);
    fs::write(directory.path().join("mine"), "x").unwrap();
    let refused = build(directory.path(), &compiled, NOON).unwrap_err();
    assert_eq!(refused.iter().next().unwrap().code, Code::E907OutputFailed);
    assert_eq!(listing(directory.path()).iter().filter(|path| !path.starts_with("build/")).count(), 1);
}

#[test]
fn many_files_are_flushed_together() {
    let directory = tempfile::tempdir().unwrap();
    let mut project = project("shop");
    project.models = (0..40).map(|index| model(&format!("m{index}"))).collect();
    project.models[0].schema = Some(schema());
    project.models[0].schema.as_mut().unwrap().format = Some(SchemaFormat::Json);
    let compiled = crate::compiler::compile(Arc::new(project)).unwrap();
    assert_eq!(write(directory.path(), &compiled, NOON).unwrap().files, 41);
    check(directory.path(), &compiled).unwrap();
}
