//! The rules that no flag lifts, asked before anything is contacted.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::Workspace;

const MODELS: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
models:
  - {name: orders, description: Orders, topic: {name: shop.orders.v1, partitions: 1, replication_factor: 1}}
";

/// A port that counts who connects to it.
fn watched() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, seen)
}

fn environment(workspace: Workspace, name: &str, address: &str, more: &str) -> Workspace {
    workspace.file(
        &format!("environments/{name}.yml"),
        &format!("environment: {{name: {name}{more}\nruntime: {{kafka: {{bootstrap_servers: \"{address}\"}}}}\n"),
    )
}

/// SAF-052 SAF-053 SAF-055: with a positive control that the port would have noticed a client.
#[test]
fn a_reviewed_plan_is_demanded_before_any_client_exists_and_no_flag_helps() {
    let (address, seen) = watched();
    let workspace = environment(Workspace::project(MODELS), "prod", &address, ", protected: true}");
    let workspace = environment(workspace, "ask", &address, "}\nsafety: {require_reviewed_plan: true}");
    let workspace = environment(workspace, "dev", &address, "}");
    for (name, policy) in [("prod", "environment.protected"), ("ask", "safety.require_reviewed_plan")] {
        for flags in ["", "--confirm", "--force", "--dry-run", "--confirm --force --dry-run", "--target orders"] {
            let run = workspace.run(&format!("apply -e {name} {flags} -o json")).exits(1);
            assert_eq!(run.errors()[0].0, "E418_REVIEWED_PLAN_REQUIRED", "{name} {flags}");
            assert_eq!(run.json()["data"]["policy"], policy, "{name} {flags}");
        }
    }
    assert_eq!(seen.load(Ordering::SeqCst), 0, "a client was made");
    assert!(!workspace.path(".streamt").exists());
    let mut child = workspace.command("apply -e dev").spawn().unwrap();
    let start = std::time::Instant::now();
    while seen.load(Ordering::SeqCst) == 0 {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "nobody connected");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// SAF-054: without a policy `prod` is an environment like any other.
#[test]
fn a_name_implies_no_policy() {
    let workspace = environment(Workspace::project(MODELS), "prod", "127.0.0.1:1", "}");
    let workspace = environment(workspace, "shared-production", "127.0.0.1:1", "}");
    for name in ["prod", "shared-production"] {
        let run = workspace.run(&format!("apply -e {name} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E406_CONNECTION_REFUSED", "{name}");
        assert!(!run.warning_codes().contains(&"W142_PROTECTED_ENVIRONMENT".to_owned()), "{name}");
    }
}

/// SAF-024: nothing but the policy decides, and no flag replaces the remote backend.
#[test]
fn an_environment_that_demands_remote_state_refuses_local_state() {
    let (address, seen) = watched();
    let workspace =
        environment(Workspace::project(MODELS), "prod", &address, "}\nsafety: {require_remote_state: true}");
    for flags in ["", "--confirm", "--force", "--dry-run"] {
        let run = workspace.run(&format!("apply -e prod {flags} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E421_REMOTE_STATE_REQUIRED", "{flags}");
    }
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}

/// SAF-023 LIM-032: also when the command fails afterwards.
#[test]
fn local_state_is_called_unsuitable_for_shared_ci() {
    let workspace = environment(Workspace::project(MODELS), "dev", "127.0.0.1:1", ", protected: true}");
    let run = workspace.run("plan -e dev -o json").exits(1);
    assert_eq!(run.warning_codes(), ["W142_PROTECTED_ENVIRONMENT", "W106_LOCAL_STATE_ONLY"]);
    let text = run.json()["warnings"][1]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("unsuitable for shared CI") && text.ends_with(".streamt/state/dev.json"), "{text}");
    let offline = workspace.run("plan -e dev --offline -o json").exits(0);
    assert!(!offline.warning_codes().contains(&"W106_LOCAL_STATE_ONLY".to_owned()), "no state was used");
}

/// SAF-031 LIM-032
#[test]
fn the_guide_says_what_the_local_backend_does_not_do() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/state.md")).unwrap();
    for part in ["no exclusion between hosts", "no fencing of shared CI runners", "no high availability"] {
        assert!(guide.contains(part), "{part}");
    }
}

/// A page of the documentation, its lines as one.
fn page(path: &str) -> String {
    let text = std::fs::read_to_string(format!("{}/docs/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// REL-006, REL-015, LIM-002: guide, language reference and code page draw the same boundary.
#[test]
fn the_pages_say_that_absence_removes_nothing_and_that_connectors_alone_are_deleted() {
    for (path, part) in [
        ("guides/connectors.md", "Taking a model out of the project removes nothing."),
        (
            "guides/connectors.md",
            "Only the connector is deleted: topics, records, offsets, schemas and the systems that it feeds stay.",
        ),
        ("reference/language/README.md", "Explicit removals; nothing else ever deletes."),
        ("guides/flink.md", "taking a model out of the project cancels nothing"),
        ("guides/state.md", "streamt never takes the nearest form"),
    ] {
        assert!(page(path).contains(part), "{path}: {part}");
    }
}

/// CRM-103, LIM-011
#[test]
fn the_guide_says_what_no_lock_can_exclude() {
    let guide = page("guides/connectors.md");
    for part in [
        "Kafka Connect has no conditional delete",
        "the lock keeps out other runs of streamt only",
        "are no single transaction",
    ] {
        assert!(guide.contains(part), "{part}");
    }
}

fn removal(removals: &str) -> Workspace {
    let runtime = "runtime:
  kafka: {bootstrap_servers: 127.0.0.1:1}
  connect: {default: main, clusters: {main: {rest_url: \"http://127.0.0.1:1\"}}}
";
    Workspace::project(&format!("{MODELS}{runtime}lifecycle: {{connector_removals: [{removals}]}}\n"))
}

/// LIM-016: before any service is asked, and without a flag that helps.
#[test]
fn a_gateway_rule_removal_needs_a_reviewed_plan() {
    let removal = "{logical_owner: old, prior_artifact: {name: old, virtualTopic: v, physicalTopic: p, interceptors: [{type: mask, config: {field: f, method: m}}]}}";
    let runtime = "runtime: {kafka: {bootstrap_servers: 127.0.0.1:1}}\n";
    let lifecycle = format!("lifecycle: {{gateway_rule_removals: [{removal}]}}\n");
    let workspace = Workspace::project(&format!("{MODELS}{runtime}{lifecycle}"));
    for command in ["apply", "apply --dry-run", "apply --force", "apply --target orders"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E418_REVIEWED_PLAN_REQUIRED", "{command}: {}", run.stdout);
        let data = &run.json()["data"];
        assert_eq!((&data["policy"], &data["gateway_rule_removals"]), (&"gateway_rule_removal".into(), &1.into()));
    }
}

/// LIM-007 LIM-008
#[test]
fn a_connector_removal_needs_a_reviewed_plan_and_remote_state() {
    let workspace = removal("{logical_owner: old, name: old, cluster: main}");
    for command in ["plan --offline", "apply", "apply --dry-run", "apply --force", "apply --target orders"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E418_REVIEWED_PLAN_REQUIRED", "{command}");
        let data = &run.json()["data"];
        assert_eq!(
            (&data["policy"], &data["connector_removals"]),
            (&"connector_removal".into(), &1.into()),
            "{command}"
        );
    }
    for command in ["plan", "plan --out plan.json"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E421_REMOTE_STATE_REQUIRED", "{command}");
    }
    assert!(!workspace.path("plan.json").exists());
}

/// SEC-009
#[test]
fn at_most_256_removals_are_declared() {
    let removals = |count: usize| {
        let all: Vec<String> =
            (0..count).map(|n| format!("{{logical_owner: o{n}, name: n{n}, cluster: main}}")).collect();
        removal(&all.join(", "))
    };
    removals(256).run("validate").exits(0);
    assert_eq!(removals(257).run("validate -o json").exits(1).errors()[0].0, "E501_PARSE_ERROR");
}

/// LIM-001 LIM-025: no way around the project file, and recovery edits, repeats, takes back and restores nothing.
#[test]
fn there_is_no_command_that_deletes() {
    let workspace = removal("");
    for line in [
        "connector delete old",
        "topic delete orders",
        "schema delete orders",
        "destroy",
        "state edit",
        "state rm orders",
        "state set orders",
        "state retry",
        "state rollback",
        "state restore",
        "state recover --force",
        "state recover --set orders",
    ] {
        assert_eq!(workspace.run(&format!("{line} -o json")).exits(2).errors()[0].0, "E902_USAGE", "{line}");
    }
}

/// SEC-001 SEC-003 SEC-012: a credential at a place where it does not belong is refused and not repeated.
#[test]
fn a_refused_credential_is_not_repeated() {
    let text = format!(
        "{MODELS}runtime:
  kafka: {{bootstrap_servers: 127.0.0.1:1, sasl_password: sentinel-1, sasl_pasword: sentinel-2, security_protocol: sentinel_visible}}
  schema_registry: {{url: \"http://u:sentinel-3@127.0.0.1:1\", pasword: sentinel-4}}
deployment_state: {{backend: postgres, namespace: n, dsn: \"postgres://u:sentinel-5@h/d\", postgres: {{dsn: \"postgres://u:sentinel-6@h/d\"}}}}
"
    );
    let workspace = Workspace::project(&text);
    for command in ["validate", "validate -vvv", "compile", "plan", "apply", "state status", "show model orders"] {
        for format in ["text", "json"] {
            let run = workspace.run(&format!("{command} -o {format}")).exits(1);
            let all = run.stdout + &run.stderr;
            assert!(!all.contains("sentinel-"), "{command} -o {format}: {all}");
            assert!(all.contains("sentinel_visible"), "a value that is no credential is shown: {all}");
        }
    }
}

/// SEC-002: a connector's configuration stays in the compiled artifact.
#[test]
fn a_connectors_configuration_is_shown_by_no_command() {
    let runtime = "runtime:
  kafka: {bootstrap_servers: 127.0.0.1:1}
  connect: {default: main, clusters: {main: {rest_url: \"http://127.0.0.1:1\"}}}
";
    let sink = "  - {name: archive, description: d, from: [{ref: orders}], sink: {connector: s3-sink, config: {s3.bucket.name: sentinel-bucket}}}\n";
    let workspace = Workspace::project(&format!("{MODELS}{sink}{runtime}"));
    workspace.run("compile").exits(0);
    let compiled = std::fs::read_to_string(workspace.path("generated/connect/archive.json")).unwrap();
    assert!(compiled.contains("sentinel-bucket"), "the scan must find what is there: {compiled}");
    for command in
        ["validate", "plan", "plan --offline", "apply", "status", "diff", "list models", "lineage", "envs list"]
    {
        for format in ["text", "json"] {
            let run = workspace.run(&format!("{command} -vvv -o {format}"));
            assert!(!run.stdout.contains("sentinel-bucket") && !run.stderr.contains("sentinel-bucket"), "{command}");
        }
    }
}
