//! An explicit connector removal that is refused: for each code of the removal's own table of errors and warnings a test that
//! looks at the requests which a worker got. Where it takes no service it is here, with a worker that notes every connection;
//! what needs a state or a connector that exists is in `tests/live/connectors`.

use serde_json::{Value, json};
use streamt::compiler::canonical::Checksum;

use crate::earlier::{self, OPERATION};
use crate::harness::Workspace;
use crate::worker::Worker;

/// Every row of the table, and the test that proves it.
const ROWS: [(&str, &str, &str); 22] = [
    ("E501_PARSE_ERROR", "cli/removals.rs", "a_shape_that_is_not_exact_asks_nobody"),
    ("E205_CONNECT_REQUIRED", "live/connectors/gates.rs", "a_tombstone_that_names_nothing_removable_is_refused"),
    ("E209_INVALID_CLUSTER_REF", "live/connectors/gates.rs", "a_tombstone_that_names_nothing_removable_is_refused"),
    ("E408_PLAN_FILE_INVALID", "cli/removals.rs", "a_plan_file_of_another_format_or_form_asks_nobody"),
    ("E409_PLAN_STALE", "live/connectors/gates.rs", "a_plan_that_is_not_what_was_reviewed_here_and_now_is_refused"),
    ("E417_SAFETY_BLOCKED", "live/connectors/deletion.rs", "a_removal_that_is_not_proved_blocks_and_deletes_nothing"),
    ("E418_REVIEWED_PLAN_REQUIRED", "cli/removals.rs", "only_a_full_reviewed_plan_authorises_and_nobody_is_asked"),
    (
        "E419_STATE_RECOVERY_REQUIRED",
        "live/connectors/deletion.rs",
        "whatever_the_worker_answers_but_a_proved_deletion_ends_in_recovery",
    ),
    ("E420_STATE_BACKEND_UNAVAILABLE", "cli/removals.rs", "a_store_that_does_not_answer_asks_no_worker"),
    ("E421_REMOTE_STATE_REQUIRED", "cli/removals.rs", "local_state_is_refused_and_not_warned_of"),
    ("E422_STATE_LOCK_TIMEOUT", "live/connectors/gates.rs", "a_store_whose_authority_is_not_proved_ends_the_command"),
    ("E423_STATE_LOCK_LOST", "live/connectors/crashes.rs", "a_lock_that_is_lost_on_the_way_leaves_one_provable_end"),
    (
        "E424_STATE_CONFLICT",
        "live/connectors/store.rs",
        "a_removal_that_meets_another_writer_of_its_state_begins_nothing",
    ),
    (
        "E425_STATE_UNKNOWN_OUTCOME",
        "live/connectors/store.rs",
        "a_removal_whose_commit_nobody_can_see_is_unknown_and_is_not_repeated",
    ),
    (
        "E426_STATE_RELEASE_FAILED_AFTER_COMMIT",
        "live/connectors/store.rs",
        "a_removal_whose_lock_was_not_provably_released_says_that_it_is_committed",
    ),
    ("E503_ENVIRONMENT_ERROR", "cli/removals.rs", "a_missing_confirmation_asks_nobody"),
    (
        "E407_DEPLOY_ERROR",
        "live/connectors/deletion.rs",
        "a_rebalance_is_waited_for_before_the_start_and_after_the_delete_only",
    ),
    ("E427_CONNECTOR_REMOVAL_INVALID", "cli/removals.rs", "a_removal_of_what_is_declared_asks_nobody"),
    (
        "E428_CONNECTOR_REMOVAL_DRIFT",
        "live/connectors/deletion.rs",
        "whatever_the_worker_answers_but_a_proved_deletion_ends_in_recovery",
    ),
    (
        "W119_CONNECTOR_REMOVAL_DESTRUCTIVE",
        "live/connectors/deletion.rs",
        "a_reviewed_removal_deletes_exactly_one_connector",
    ),
    ("W106_LOCAL_STATE_ONLY", "cli/removals.rs", "local_state_is_refused_and_not_warned_of"),
    (
        "connector_removal_state_provider_drift",
        "live/connectors/deletion.rs",
        "a_removal_that_is_not_proved_blocks_and_deletes_nothing",
    ),
];

/// The table above tells the truth.
#[test]
fn every_row_has_a_test_that_names_its_code() {
    for (code, file, name) in ROWS {
        let path = format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("#[test]\nfn {name}() {{")), "{code}: {name}");
        assert!(text.contains(code), "{code}: {file}");
    }
}

const REMOVAL: &str = "{logical_owner: old, name: old, cluster: main}";

fn yaml(worker: &Worker, state: &str, removals: &str, models: &str) -> String {
    format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: shop}}
runtime:
  kafka: {{bootstrap_servers: \"127.0.0.1:1\"}}
  connect:
    default: main
    clusters: {{main: {{rest_url: \"http://{}\"}}, second: {{rest_url: \"http://127.0.0.1:1\"}}}}
{state}lifecycle: {{connector_removals: {removals}}}
models:
  - {{name: orders, description: d, topic: {{name: shop.orders, partitions: 1, replication_factor: 1}}}}
{models}",
        worker.address
    )
}

/// State in a PostgreSQL that nobody listens at.
const REMOTE: &str = "deployment_state:
  backend: postgres
  namespace: n
  lock_timeout_seconds: 1
  postgres: {dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: s}
";

fn workspace(text: &str) -> Workspace {
    Workspace::project(text)
        .variable("OWNER_DSN", "postgresql://o:o@127.0.0.1:1/d")
        .variable("WRITER_DSN", "postgresql://w:w@127.0.0.1:1/d")
}

#[track_caller]
fn refused(workspace: &Workspace, worker: &Worker, line: &str, code: &str) {
    let before = workspace.snapshot();
    let run = workspace.run(&format!("{line} -o json")).exits(1);
    assert_eq!(run.errors()[0].0, code, "{line}: {}", run.stdout);
    assert_eq!(worker.seen(), Vec::<String>::new(), "{line}");
    assert_eq!(workspace.snapshot(), before, "{line}: nothing was written");
}

/// The control: a project without a removal reaches this worker.
#[test]
fn the_worker_notes_whoever_asks() {
    let worker = Worker::new();
    let sink = "  - {name: archive, description: d, from: [{ref: orders}], sink: {connector: X, config: {a: b}}}\n";
    let workspace = workspace(&yaml(&worker, "", "[]", sink));
    workspace.run("status -o json");
    assert!(worker.seen().iter().any(|what| what.starts_with("GET /connectors/archive")), "{:?}", worker.seen());
}

/// CRM-012, CRM-013, CRM-014, CRM-015, CRM-016, CRM-017, CRM-018, CRM-019, CRM-022, LIM-003
#[test]
fn a_shape_that_is_not_exact_asks_nobody() {
    let worker = Worker::new();
    let long = |length: usize| "x".repeat(length);
    let mut shapes: Vec<String> = [
        "null",
        "{a: b}",
        "old",
        "[null]",
        "[old]",
        "[{}]",
        "[{name: old, cluster: main}]",
        "[{logical_owner: old, cluster: main}]",
        "[{logical_owner: old, name: old}]",
        "[{logical_owner: null, name: old, cluster: main}]",
        "[{logical_owner: old, name: null, cluster: main}]",
        "[{logical_owner: old, name: old, cluster: null}]",
        "[{logical_owner: '', name: old, cluster: main}]",
        "[{logical_owner: old, name: ' ', cluster: main}]",
        "[{logical_owner: old, name: old, cluster: \"\\t\"}]",
        "[{logical_owner: a/b, name: old, cluster: main}]",
        "[{logical_owner: \"a\\u0007\", name: old, cluster: main}]",
        "[{logical_owner: old, name: \"a\\u009f\", cluster: main}]",
        "[{logical_owner: old, name: old, cluster: \"ma\\u0000in\"}]",
        "[{logical_owner: [old], name: old, cluster: main}]",
    ]
    .map(str::to_owned)
    .into();
    shapes.push(format!("[{{logical_owner: {}, name: old, cluster: main}}]", long(129)));
    shapes.push(format!("[{{logical_owner: old, name: {}, cluster: main}}]", long(257)));
    shapes.push(format!("[{{logical_owner: old, name: old, cluster: {}}}]", long(129)));
    for key in [
        "config: {}",
        "connector_class: X",
        "topics: [a]",
        "ownership: managed",
        "backend: kafka-connect",
        "endpoint: \"http://h\"",
        "fingerprint: x",
        "state_address: x",
        "password: s3ntinel",
    ] {
        shapes.push(format!("[{{logical_owner: old, name: old, cluster: main, {key}}}]"));
    }
    for shape in shapes {
        let workspace = workspace(&yaml(&worker, REMOTE, &shape, ""));
        for line in ["plan --out plan.json", "apply --plan plan.json --force", "validate"] {
            let run = workspace.run(&format!("{line} -o json")).exits(1);
            assert!(!run.stdout.contains("s3ntinel"), "{}", run.stdout);
            assert_eq!(run.errors()[0].0, "E501_PARSE_ERROR", "{shape}: {line}: {}", run.stdout);
        }
    }
    // One more than there may be, and twice the same.
    let removals = |count: usize| {
        let all: Vec<String> =
            (0..count).map(|n| format!("{{logical_owner: o{n}, name: n{n}, cluster: main}}")).collect();
        format!("[{}]", all.join(", "))
    };
    refused(&workspace(&yaml(&worker, REMOTE, &removals(257), "")), &worker, "plan --out p.json", "E501_PARSE_ERROR");
    assert_eq!(worker.seen(), Vec::<String>::new());
}

/// CRM-020, CRM-021, CRM-042, CRM-057
#[test]
fn a_removal_of_what_is_declared_asks_nobody() {
    let worker = Worker::new();
    let sink = |name: &str| {
        format!(
            "  - {{name: {name}, description: d, from: [{{ref: orders}}], sink: {{connector: X, config: {{a: b}}}}}}\n"
        )
    };
    for (what, removals, models) in [
        ("the owner", "[{logical_owner: kept, name: other, cluster: main}]", sink("kept")),
        ("the connector", "[{logical_owner: other, name: kept, cluster: main}]", sink("kept")),
        (
            "an owner twice",
            "[{logical_owner: a, name: b, cluster: main}, {logical_owner: a, name: c, cluster: main}]",
            String::new(),
        ),
        (
            "a name twice",
            "[{logical_owner: a, name: b, cluster: main}, {logical_owner: c, name: b, cluster: main}]",
            String::new(),
        ),
    ] {
        let workspace = workspace(&yaml(&worker, REMOTE, removals, &models));
        for line in ["plan --out plan.json", "validate", "compile"] {
            let run = workspace.run(&format!("{line} -o json")).exits(1);
            let code = &run.errors()[0].0;
            let repeated = what.ends_with("twice");
            assert_eq!(
                code,
                if repeated { "E501_PARSE_ERROR" } else { "E427_CONNECTOR_REMOVAL_INVALID" },
                "{what}: {line}: {}",
                run.stdout
            );
        }
    }
    assert_eq!(worker.seen(), Vec::<String>::new());
}

/// CRM-030, CRM-062, CRM-084, CRM-085, CRM-086, CRM-087, LIM-008
#[test]
fn only_a_full_reviewed_plan_authorises_and_nobody_is_asked() {
    let worker = Worker::new();
    for state in ["", REMOTE] {
        let workspace = workspace(&yaml(&worker, state, &format!("[{REMOVAL}]"), ""));
        for line in [
            "plan --offline",
            "plan --offline --out plan.json",
            "apply",
            "apply --force",
            "apply --force --confirm-env default",
            "apply --dry-run",
            "apply --target orders",
            "apply --select tag:x",
            "apply --plan plan.json --dry-run",
            "apply --plan plan.json --target orders",
            "apply --plan plan.json --select tag:x --force",
        ] {
            refused(&workspace, &worker, line, "E418_REVIEWED_PLAN_REQUIRED");
        }
    }
}

/// CRM-030, CRM-031, LIM-007: refused as an error, with the warning of local state nowhere.
#[test]
fn local_state_is_refused_and_not_warned_of() {
    let worker = Worker::new();
    let text = yaml(&worker, "", &format!("[{REMOVAL}]"), "");
    let single = workspace(&text);
    for line in ["plan --out plan.json", "apply --plan plan.json --force --confirm-env default"] {
        refused(&single, &worker, line, "E421_REMOTE_STATE_REQUIRED");
        let run = single.run(&format!("{line} -o json"));
        assert!(!run.warning_codes().contains(&"W106_LOCAL_STATE_ONLY".to_owned()), "{}", run.stdout);
    }
    let runtime = &text[text.find("runtime:").unwrap()..text.find("lifecycle:").unwrap()];
    let environment = "environment: {name: dev}\nsafety: {require_remote_state: false, allow_destructive: true}\n";
    let several =
        workspace(&text.replace(runtime, "")).file("environments/dev.yml", &format!("{environment}{runtime}"));
    refused(&several, &worker, "plan -e dev --out plan.json", "E421_REMOTE_STATE_REQUIRED");
}

/// CRM-032, CRM-033: neither local state nor an empty one takes its place.
#[test]
fn a_store_that_does_not_answer_asks_no_worker() {
    let worker = Worker::new();
    let text = yaml(&worker, REMOTE, &format!("[{REMOVAL}]"), "");
    let local = json!({"state_version": 1, "project": "shop", "environment": "default", "serial": 0, "resources": {}});
    let workspace = workspace(&text).file(".streamt/state/default.json", &local.to_string());
    refused(&workspace, &worker, "plan --out plan.json", "E420_STATE_BACKEND_UNAVAILABLE");
    workspace.write("plan.json", &reviewed(5, false));
    let line = "apply --plan plan.json --confirm-env default --force";
    refused(&workspace, &worker, line, "E420_STATE_BACKEND_UNAVAILABLE");
    let line = "state recovery-plan --resolution observed --out r.json";
    refused(&workspace, &worker, line, "E420_STATE_BACKEND_UNAVAILABLE");
}

/// A plan file with a valid checksum that deletes `old`.
fn reviewed(format: u64, offline: bool) -> String {
    let project = Workspace::project(
        "apiVersion: streamt.dev/v1alpha1\nproject: {name: shop}\nruntime: {kafka: {bootstrap_servers: \"127.0.0.1:1\"}}\n",
    );
    project.run("plan --offline --out plan.json").exits(0);
    let text = std::fs::read_to_string(project.path("plan.json")).unwrap();
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    plan["format_version"] = format.into();
    plan["offline"] = offline.into();
    if !offline {
        plan["state"] = json!({
            "backend": "postgres", "store_id": "2b1e8a5e-9e1a-4e49-9b39-3b9b0f0b7c11",
            "address": "streamt-state://n/shop/default", "serial": 1, "checksum": format!("sha256:{}", "1".repeat(64)),
        });
    }
    plan.as_object_mut().unwrap().shift_remove("checksum");
    plan["checksum"] = json!(Checksum::of(&plan).unwrap());
    serde_json::to_string_pretty(&plan).unwrap()
}

/// CRM-063, CRM-087
#[test]
fn a_plan_file_of_another_format_or_form_asks_nobody() {
    let worker = Worker::new();
    let workspace = workspace(&yaml(&worker, REMOTE, &format!("[{REMOVAL}]"), ""));
    for format in 1..=4 {
        workspace.write("plan.json", &reviewed(format, false));
        let line = "apply --plan plan.json --confirm-env default --force";
        refused(&workspace, &worker, line, "E408_PLAN_FILE_INVALID");
        let told = workspace.run(&format!("{line} -o json")).stdout;
        assert!(told.contains("no longer accepted"), "{told}");
    }
    for (name, text) in [
        ("offline", reviewed(5, true)),
        ("edited", reviewed(5, false).replace("\"serial\": 1", "\"serial\": 2")),
        ("cut", reviewed(5, false)[..100].to_owned()),
        ("empty", String::new()),
        ("absent", reviewed(99, false)),
    ] {
        workspace.write(&format!("{name}.json"), &text);
        let line = format!("apply --plan {name}.json --confirm-env default --force");
        refused(&workspace, &worker, &line, "E408_PLAN_FILE_INVALID");
    }
}

/// CRM-083
#[test]
fn a_missing_confirmation_asks_nobody() {
    let worker = Worker::new();
    let text = yaml(&worker, REMOTE, &format!("[{REMOVAL}]"), "");
    let runtime = &text[text.find("runtime:").unwrap()..text.find("deployment_state:").unwrap()];
    let environment = "environment: {name: prod}\nsafety: {confirm_apply: true, allow_destructive: true}\n";
    let workspace = workspace(&text.replace(runtime, ""))
        .file("environments/prod.yml", &format!("{environment}{runtime}"))
        .file("plan.json", &reviewed(5, false));
    for confirm in ["", "--force", "--confirm-env dev", "--confirm-env default --force"] {
        let line = format!("apply -e prod --plan plan.json {confirm}");
        refused(&workspace, &worker, &line, "E503_ENVIRONMENT_ERROR");
    }
}

/// A pending operation that deletes the connector `old`, in a control version, as a file of the local store.
fn pending(version: u8, started: bool) -> String {
    let evidence = || {
        let backend = format!("kafka-connect:v1:main:{}", Checksum::of_bytes(b"http://connect.example.test:8083"));
        let absent = json!({"binding": backend, "config": [], "exists": false, "name": "old"});
        json!({
            "version": 1, "backend_identity": backend, "connector_name": "old",
            "prior_artifact_checksum": Checksum::of_bytes(b"artifact"),
            "current": {"exists": true, "fingerprint": Checksum::of_bytes(b"present")},
            "desired": {"exists": false, "fingerprint": Checksum::of(&absent).unwrap()},
        })
    };
    let address = "streamt-state://local/shop/default";
    let resource = "streamt://shop/default/connector/old";
    let action = earlier::action(version, "delete", resource, (version >= 3).then(evidence));
    let line = |value: &Value| earlier::canonical(value) + "\n";
    let mut text = line(&json!({"address": address, "control_version": version, "operation_id": earlier::OPERATION}));
    for event in earlier::events(address, version, &action, &recorded(), started) {
        text += &line(&json!([event]));
    }
    text
}

/// Ownership that holds `old`.
fn recorded() -> Value {
    json!({
        "state_version": 1, "project": "shop", "environment": "default", "serial": 1,
        "resources": {"streamt://shop/default/connector/old": {
            "physical_name": "old", "ownership": "managed", "backend": "kafka-connect",
            "artifact_checksum": Checksum::of_bytes(b"artifact"),
        }},
    })
}

fn blocked(worker: &Worker, control: &str) -> Workspace {
    workspace(&yaml(worker, "", "[]", ""))
        .file(".streamt/state/default.json", &recorded().to_string())
        .file(".streamt/state/default.control.jsonl", control)
}

fn recovery(resolution: &str) -> String {
    format!("state recovery-plan --resolution {resolution} --out r.json -o json")
}

fn stored(workspace: &Workspace) -> Vec<String> {
    ["default.json", "default.control.jsonl"]
        .map(|name| std::fs::read_to_string(workspace.path(&format!(".streamt/state/{name}"))).unwrap())
        .to_vec()
}

/// CRM-076, REC-049, REC-065: it is shown and blocks, no live resolution asks the worker, and what was never started is given up.
#[test]
fn a_deletion_of_control_version_1_or_2_is_never_inferred_from_what_is_live() {
    let worker = Worker::new();
    for version in [1, 2] {
        for started in [false, true] {
            let context = format!("version {version}, started {started}");
            let workspace = blocked(&worker, &pending(version, started));
            let before = stored(&workspace);
            let shown = workspace.run("state status -o json").exits(0).json()["data"]["operation_status"].clone();
            assert_eq!(
                (&shown["status"], &shown["operation_id"]),
                (&json!("in_progress"), &json!(OPERATION)),
                "{context}"
            );
            for line in ["plan", "apply --force", "plan --out p.json"] {
                let run = workspace.run(&format!("{line} -o json")).exits(1);
                assert_eq!(run.errors()[0].0, "E419_STATE_RECOVERY_REQUIRED", "{context}: {}", run.stdout);
            }
            for resolution in ["observed", "rolled_back"] {
                let run = workspace.run(&recovery(resolution)).exits(1);
                assert_eq!(run.errors()[0].0, "E409_PLAN_STALE", "{context}: {}", run.stdout);
                assert_eq!(run.json()["data"]["targets"][0]["reason"], "content_not_provable", "{context}");
            }
            assert_eq!(stored(&workspace), before, "{context}: nothing was upgraded");
            let run = workspace.run(&recovery("abandoned_before_mutation"));
            if started {
                assert_eq!(run.exits(1).errors()[0].0, "E419_STATE_RECOVERY_REQUIRED", "{context}");
                continue;
            }
            let sum = run.exits(0).json()["data"]["evidence_checksum"].as_str().unwrap().to_owned();
            let line = format!(
                "state recover --plan r.json --confirm-operation-id {OPERATION} --confirm-resolution \
                 abandoned_before_mutation --confirm-evidence-checksum {sum} -o json"
            );
            workspace.run(&line).exits(0);
            let status = workspace.run("state status -o json").exits(0).json()["data"].clone();
            assert_eq!(
                (&status["operation_status"]["status"], &status["state_serial"]),
                (&json!("clear"), &json!(1)),
                "{context}"
            );
            assert!(stored(&workspace)[1].contains("\"control_version\":3,\"operation_id\":null"), "{context}");
        }
    }
    assert_eq!(worker.seen(), Vec::<String>::new());
}

/// REC-039: whatever claims that local state deletes a connector, local state ends it in no way.
#[test]
fn a_deletion_that_stands_in_local_state_is_recovered_by_nothing() {
    let worker = Worker::new();
    for started in [false, true] {
        let workspace = blocked(&worker, &pending(3, started));
        let before = stored(&workspace);
        for resolution in ["observed", "rolled_back", "abandoned_before_mutation"] {
            let run = workspace.run(&recovery(resolution)).exits(1);
            assert_eq!(run.errors()[0].0, "E411_STATE_INVALID", "{}", run.stdout);
            assert!(!workspace.path("r.json").exists());
        }
        assert_eq!(stored(&workspace), before);
    }
    assert_eq!(worker.seen(), Vec::<String>::new());
}
