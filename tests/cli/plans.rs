//! Plan files that are not what `plan --out` wrote: refused by everything that reads one, before anything else happens.

use std::os::unix::fs::symlink;

use serde_json::Value;
use streamt::compiler::canonical::Checksum;

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime: {kafka: {bootstrap_servers: \"127.0.0.1:1\"}}
models:
  - {name: orders, description: Orders, topic: {name: shop.orders.v1, partitions: 1, replication_factor: 1}}
";

fn saved() -> Workspace {
    let workspace = Workspace::project(PROJECT);
    workspace.run("plan --offline --out plan.json").exits(0);
    workspace.run("review plan.json").exits(0);
    workspace
}

fn text(workspace: &Workspace) -> String {
    std::fs::read_to_string(workspace.path("plan.json")).unwrap()
}

/// The plan after an edit, with the checksum that belongs to it.
fn forged(workspace: &Workspace, edit: impl FnOnce(&mut Value)) -> String {
    let mut plan: Value = serde_json::from_str(&text(workspace)).unwrap();
    edit(&mut plan);
    plan.as_object_mut().unwrap().shift_remove("checksum");
    plan["checksum"] = serde_json::json!(Checksum::of(&plan).unwrap());
    serde_json::to_string_pretty(&plan).unwrap()
}

/// By `review` and by `apply`, which leaves no state directory behind.
#[track_caller]
fn refused(workspace: &Workspace, file: &str, told: &str) {
    let files = workspace.snapshot();
    for line in [format!("review {file} -o json"), format!("apply --plan {file} -o json")] {
        let run = workspace.run(&line).exits(1);
        assert_eq!(run.errors()[0].0, "E408_PLAN_FILE_INVALID", "{line}: {}", run.stdout);
        assert!(run.stdout.contains(told), "{line}: {told}: {}", run.stdout);
    }
    assert_eq!(workspace.snapshot(), files, "{file}");
}

/// SAF-006
#[test]
fn an_edited_plan_is_refused() {
    let workspace = saved();
    let whole = text(&workspace);
    workspace.write("edited.json", &whole.replace("\"shop.orders.v1\"", "\"shop.orders.v2\""));
    refused(&workspace, "edited.json", "checksum");
    let checksum = whole.split("\"checksum\": \"").nth(1).unwrap().split('"').next().unwrap();
    let zero = format!("sha256:{}", "0".repeat(64));
    workspace.write("rehashed.json", &whole.replace(checksum, &zero));
    refused(&workspace, "rehashed.json", "checksum");
    workspace.write("more.json", &whole.replacen('{', "{\"approved_by\": \"me\",", 1));
    refused(&workspace, "more.json", "");
    workspace.write("twice.json", &whole.replacen('{', "{\"project\": \"shop\",", 1));
    refused(&workspace, "twice.json", "");
}

#[test]
fn a_truncated_plan_is_refused_wherever_it_was_cut() {
    let workspace = saved();
    let whole = text(&workspace);
    for length in [0, 1, 2, whole.len() / 3, whole.len() / 2, whole.len() - 3] {
        workspace.write("cut.json", &whole[..length]);
        refused(&workspace, "cut.json", "");
    }
    workspace.write("more.json", &format!("{whole}{{}}"));
    refused(&workspace, "more.json", "");
}

/// SAF-051
#[test]
fn a_plan_of_another_format_is_refused_and_named() {
    let workspace = saved();
    for format in [1, 2, 3, 4, 6, 7, 99] {
        workspace.write("old.json", &forged(&workspace, |plan| plan["format_version"] = format.into()));
        refused(&workspace, "old.json", "");
    }
    for format in [1, 2, 3, 4] {
        workspace.write("old.json", &forged(&workspace, |plan| plan["format_version"] = format.into()));
        refused(&workspace, "old.json", "no longer accepted");
    }
    workspace.write("kind.json", &forged(&workspace, |plan| plan["kind"] = "terraform.plan".into()));
    refused(&workspace, "kind.json", "");
}

#[test]
fn what_is_no_bounded_regular_file_is_refused() {
    let workspace = saved();
    symlink(workspace.path("plan.json"), workspace.path("link.json")).unwrap();
    refused(&workspace, "link.json", "symbolic link");
    let big = std::fs::File::create(workspace.path("big.json")).unwrap();
    big.set_len(64 * 1024 * 1024 + 1).unwrap();
    let run = workspace.run("review big.json -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E408_PLAN_FILE_INVALID");
    assert!(run.stdout.contains("larger than 64 MiB"), "{}", run.stdout);
    drop(big);
    std::fs::remove_file(workspace.path("big.json")).unwrap();
    std::fs::create_dir(workspace.path("directory")).unwrap();
    refused(&workspace, "directory", "no regular file");
    refused(&workspace, "absent.json", "");
    refused(&workspace, "stream_project.yml", "");
}

/// SAF-066: a preview is a valid file that authorises nothing.
#[test]
fn an_offline_plan_can_be_reviewed_and_not_applied() {
    let workspace = saved();
    let review = workspace.run("review plan.json -o json").exits(0).json();
    let data = &review["data"];
    assert_eq!(
        (&data["valid"], &data["offline"], &data["authorizes_apply"]),
        (&true.into(), &true.into(), &false.into())
    );
    let run = workspace.run("apply --plan plan.json -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E408_PLAN_FILE_INVALID");
    assert!(run.stdout.contains("made offline"), "{}", run.stdout);
    let run = workspace.run("apply --plan plan.json --target orders -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E408_PLAN_FILE_INVALID");
    assert!(!workspace.path(".streamt").exists());
}
