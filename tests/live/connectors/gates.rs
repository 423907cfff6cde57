//! What refuses a removal before any worker is asked: for each reason the code, and a proxy that saw no request.

use std::process::Stdio;

use serde_json::{Value, json};

use super::records;
use super::yard::{State, Yard};
use crate::losses::site::{code, on_each_major, text};
use crate::support::variable;

/// Runs, and shows that no worker was asked.
#[track_caller]
fn refused(yard: &Yard, what: &str, line: &str, expected: &str) {
    let mark = yard.order.mark(what);
    let run = yard.run(&format!("{line} -o json")).exits(1);
    assert_eq!(code(&run), expected, "{what}: {}", run.stdout);
    assert!(yard.since(mark).is_empty(), "{what}: {:?}", yard.since(mark));
}

const APPLY: &str = "apply --plan plan.json --confirm-env default --force";

/// CRM-001, CRM-084, CRM-085, CRM-086, CRM-087, CRM-062, CRM-039
#[test]
fn only_the_whole_reviewed_workflow_removes() {
    on_each_major(|admin| {
        let yard = Yard::postgres(admin, &["gone", "kept"]);
        yard.run("apply -o json").exits(0);
        yard.plan_removal(&["kept"], &["gone"]).exits(0);
        for line in [
            "plan --offline",
            "plan --offline --out offline.json",
            "apply",
            "apply --force --confirm-env default",
            "apply --dry-run",
            "apply --target orders",
            "apply --select tag:x",
            "apply --plan plan.json --dry-run",
            "apply --plan plan.json --target orders",
            "apply --plan plan.json --select tag:x",
        ] {
            refused(&yard, line, line, "E418_REVIEWED_PLAN_REQUIRED");
        }
        assert!(!yard.workspace.path("offline.json").exists());
        assert!(yard.worker.config(&yard.name("gone")).is_some());
    });
}

/// CRM-019, CRM-009, CRM-021, CRM-041, CRM-042, LIM-010
#[test]
fn a_tombstone_that_names_nothing_removable_is_refused() {
    let yard = Yard::postgres(&variable("STREAMT_TEST_POSTGRES_18"), &["kept"]);
    let plan = "plan --out plan.json";
    let yaml = yard.yaml(&[], &["gone"]);
    let gone = yard.name("gone");
    let edit = |from: &str, to: &str| {
        assert!(yaml.contains(from), "{from}");
        yard.write(&yaml.replace(from, to));
    };
    for (what, from, to) in [
        ("a null list", "[{logical_owner", "null #"),
        ("a mapping", "connector_removals: [", "connector_removals: {a: ["),
        ("a further key", "cluster: main}", "cluster: main, config: {}}"),
        ("an endpoint", "cluster: main}", "cluster: main, endpoint: x}"),
        ("no cluster", ", cluster: main}", "}"),
        ("a null cluster", "cluster: main}", "cluster: null}"),
        ("a blank cluster", "cluster: main}", "cluster: ' '}"),
    ] {
        edit(from, to);
        if what == "a mapping" {
            yard.write(&yaml.replace(from, to).replace("cluster: main}]", "cluster: main}]}"));
        }
        refused(&yard, what, plan, "E501_PARSE_ERROR");
    }
    for cluster in ["second", "third"] {
        edit("cluster: main}", &format!("cluster: {cluster}}}"));
        refused(&yard, cluster, plan, "E209_INVALID_CLUSTER_REF");
    }
    let from = yaml.find("  connect:\n").unwrap();
    let to = yaml.find("deployment_state").unwrap();
    yard.write(&format!("{}{}", &yaml[..from], &yaml[to..]));
    refused(&yard, "no Connect", plan, "E205_CONNECT_REQUIRED");
    yard.write(&yaml.replace("    default: main\n", ""));
    refused(&yard, "no default", plan, "E205_CONNECT_REQUIRED");
    yard.write(&yard.yaml(&["gone"], &["gone"]));
    refused(&yard, "still declared", plan, "E427_CONNECTOR_REMOVAL_INVALID");
    edit(&format!("logical_owner: {gone}, name: {gone}"), &format!("logical_owner: {gone}, name: '..'"));
    refused(&yard, "unaddressable", plan, "E427_CONNECTOR_REMOVAL_INVALID");
    assert!(!yard.workspace.path("plan.json").exists());
}

/// CRM-029, CRM-030, CRM-031, SAF-007
#[test]
fn local_state_removes_nothing() {
    let yard = Yard::new("STREAMT_TEST_CONNECT", State::Local, &["kept"]);
    let yaml = yard.yaml(&["kept"], &["gone"]);
    yard.write(&yaml);
    refused(&yard, "local", "plan --out plan.json", "E421_REMOTE_STATE_REQUIRED");
    refused(&yard, "local", APPLY, "E421_REMOTE_STATE_REQUIRED");
    // An environment that does not ask for remote state changes nothing.
    let runtime = &yaml[yaml.find("runtime:").unwrap()..yaml.find("lifecycle:").unwrap()];
    let environment = "environment: {name: dev}\nsafety: {require_remote_state: false}\n";
    yard.workspace.write("environments/dev.yml", &format!("{environment}{runtime}"));
    refused(&yard, "not required", "plan -e dev --out plan.json", "E421_REMOTE_STATE_REQUIRED");
    assert!(yard.order.records().iter().all(|record| record.proxy != "http"));
}

/// CRM-032, CRM-033, CRM-037
#[test]
fn a_store_whose_authority_is_not_proved_ends_the_command() {
    on_each_major(|admin| {
        let yard = Yard::postgres(admin, &["gone", "kept"]);
        yard.run("apply -o json").exits(0);
        yard.plan_removal(&["kept"], &["gone"]).exits(0);
        let yaml = std::fs::read_to_string(yard.workspace.path("stream_project.yml")).unwrap();

        // Nobody listens there; and a schema that was never initialized. No state is read as empty, and none falls back.
        let mut lost = yard.workspace.command(&format!("{APPLY} -o json"));
        lost.env("WRITER_DSN", "postgresql://w:w@127.0.0.1:1/postgres");
        let mark = yard.order.mark("unreachable");
        let run = crate::harness::Run::of("apply", lost.output().unwrap()).exits(1);
        assert_eq!(code(&run), "E420_STATE_BACKEND_UNAVAILABLE", "{}", run.stdout);
        yard.write(&yaml.replace("schema: s_", "schema: t_"));
        refused(&yard, "not initialized", "plan --out other.json", "E420_STATE_BACKEND_UNAVAILABLE");
        yard.write(&yaml);
        yard.sql("GRANT DELETE ON {schema}.current_state TO {writer}");
        refused(&yard, "another ACL", APPLY, "E420_STATE_BACKEND_UNAVAILABLE");
        yard.sql("REVOKE DELETE ON {schema}.current_state FROM {writer}");
        assert!(yard.since(mark).is_empty());

        // Another run holds the lock: it waits at its first read of a connector.
        let gate = crate::faults::Gate::default();
        let held = yard.workers.rule(
            crate::faults::first(|request| request.what.starts_with("GET")),
            crate::faults::Fault::Hold(gate.clone()),
        );
        let mut other = yard.workspace.command("plan --out held.json -o json");
        let child = other.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        assert!(held.hit(std::time::Duration::from_secs(20)));
        // Its second read, which nothing holds.
        std::thread::sleep(std::time::Duration::from_millis(500));
        refused(&yard, "locked", APPLY, "E422_STATE_LOCK_TIMEOUT");
        gate.open();
        let run = crate::harness::Run::of("plan", child.wait_with_output().unwrap()).exits(0);
        assert_eq!(run.json()["data"]["deletes"], 1);

        // LIM-007: a store that was not migrated yet.
        yard.sql(&crate::pg_migrate::to_version_1("{schema}", "{writer}"));
        for line in ["plan --out other.json", APPLY] {
            refused(&yard, "version 1", line, "E420_STATE_BACKEND_UNAVAILABLE");
        }
    });
}

/// CRM-063, CRM-070, CRM-088
#[test]
fn a_plan_that_is_not_what_was_reviewed_here_and_now_is_refused() {
    let admin = variable("STREAMT_TEST_POSTGRES_14");
    let yard = Yard::alone(&admin, &["gone", "kept"]);
    yard.run("apply -o json").exits(0);
    yard.plan_removal(&["kept"], &["gone"]).exits(0);
    let yaml = std::fs::read_to_string(yard.workspace.path("stream_project.yml")).unwrap();
    let plan = std::fs::read_to_string(yard.workspace.path("plan.json")).unwrap();
    for format in 1..=4 {
        yard.workspace
            .write("plan.json", &plan.replace("\"format_version\": 5", &format!("\"format_version\": {format}")));
        refused(&yard, "an old format", APPLY, "E408_PLAN_FILE_INVALID");
    }
    let document: Value = serde_json::from_str(&plan).unwrap();
    let evidence = &document["actions"][0]["connector_evidence"];
    for value in [
        evidence["connector_name"].as_str().unwrap(),
        &evidence["current"]["fingerprint"].as_str().unwrap()[7..],
        &evidence["prior_artifact_checksum"].as_str().unwrap()[7..],
    ] {
        let (head, tail) = plan.rsplit_once(value).unwrap();
        let mut other = value.to_owned();
        other.replace_range(value.len() - 1.., if value.ends_with('0') { "1" } else { "0" });
        yard.workspace.write("plan.json", &format!("{head}{other}{tail}"));
        refused(&yard, "edited evidence", APPLY, "E408_PLAN_FILE_INVALID");
    }
    yard.workspace.write("plan.json", &plan);
    // The manifest, the runtime, the state.
    yard.write(&yaml.replace("partitions: 1", "partitions: 2"));
    refused(&yard, "another manifest", APPLY, "E409_PLAN_STALE");
    yard.write(&yaml.replace("http://127.0.0.1:1\"", "http://127.0.0.1:2\""));
    refused(&yard, "another runtime", APPLY, "E409_PLAN_STALE");
    // CRM-083
    yard.write(&yaml);
    refused(
        &yard,
        "another environment",
        "apply --plan plan.json --confirm-env prod --force",
        "E503_ENVIRONMENT_ERROR",
    );
    yard.apply_plan().exits(0);
    refused(&yard, "carried out already", APPLY, "E409_PLAN_STALE");
}

/// CRM-044, CRM-045, CRM-043, CRM-057, LIM-009
#[test]
fn a_record_that_grants_no_authority_is_refused_before_the_worker_is_asked() {
    let admin = variable("STREAMT_TEST_POSTGRES_18");
    let yard = Yard::postgres(&admin, &["gone", "kept"]);
    yard.run("apply -o json").exits(0);
    yard.plan_removal(&["kept"], &["gone"]).exits(0);
    let gone = yard.name("gone");
    let id = format!("streamt://{}/default/connector/{gone}", yard.project);
    let recorded = records::read(&yard);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut state = recorded.clone();
        change(&mut state);
        records::replace(&yard, &state);
    };
    let plan = "plan --out next.json";
    let spoilt: [&dyn Fn(&mut Value); 4] = [
        &|state| state["resources"][&id]["ownership"] = json!("adopted"),
        &|state| state["resources"][&id]["backend"] = json!("kafka-connect"),
        &|state| state["resources"][&id]["physical_name"] = json!("another"),
        &|state| {
            let record = state["resources"][&id].clone();
            let other = format!("streamt://{}/default/connector/another", yard.project);
            state["resources"][&other] = record;
        },
    ];
    for change in spoilt {
        with(change);
        refused(&yard, "record", plan, "E427_CONNECTOR_REMOVAL_INVALID");
    }
    with(&|_| {});
    yard.run("plan --out next.json -o json").exits(0);
    assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear");
}
