//! Services that refuse, as a user meets them: the code, the service's own words, no secret, and nothing written.

use std::net::TcpListener;

use krafka::admin::{AclBinding, AclOperation, AclPatternType, AclPermissionType, AclResourceType, CreateAclsOptions};

use crate::cli::{ORDERS, service, workspace};
use crate::faults::{Fault, Order, Proxy, Request, every};
use crate::harness::Workspace;
use crate::support::{eventually, topic, unique};

fn project(name: &str, kafka: &str) -> Workspace {
    Workspace::project(&format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: {name}}}
runtime:
  kafka: {{{kafka}}}
models:
  - {{name: orders, description: d, topic: {{name: {name}.orders, partitions: 1, replication_factor: 1}}}}
"
    ))
    .variable("PASSWORD", "sentinel-password")
}

fn login(mechanism: &str, user: &str, password: &str) -> String {
    let address = service("STREAMT_TEST_KAFKA_SASL");
    format!(
        "bootstrap_servers: \"{address}\", security_protocol: SASL_PLAINTEXT, sasl_mechanism: {mechanism}, sasl_username: {user}, sasl_password: \"{password}\""
    )
}

fn tls(address: &str, more: &str) -> String {
    format!("bootstrap_servers: \"{address}\", security_protocol: SSL{more}")
}

#[track_caller]
fn nothing_happened(case: &str, workspace: &Workspace) {
    assert!(!workspace.path("plan.json").exists(), "{case}");
    let state = workspace.run("state status -o json").exits(0).json();
    assert_eq!(state["data"]["state_status"], "absent", "{case}");
    assert_eq!(state["data"]["operation_status"]["status"], "clear", "{case}");
}

#[track_caller]
fn refused(case: &str, workspace: &Workspace, code: &str, told: &str) {
    for command in ["plan --out plan.json", "apply", "apply --dry-run", "status", "diff", "show model orders --diff"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, code, "{case}, {command}: {}", run.stdout);
        assert!(run.stdout.contains(told), "{case}, {command}: {}", run.stdout);
        assert!(!run.stdout.contains("sentinel") && !run.stderr.contains("sentinel"), "{case}, {command}");
    }
    nothing_happened(case, workspace);
}

/// SEC-003 SEC-006
#[test]
fn a_wrong_password_is_told_in_the_brokers_words() {
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let workspace = project(&unique("password"), &login(mechanism, "admin", "${PASSWORD}"));
        refused(mechanism, &workspace, "E404_AUTH_FAILED", "Authentication failed");
    }
}

#[test]
fn a_user_without_rights_is_refused_and_never_told_that_nothing_exists() {
    let workspace = project(&unique("bob"), &login("SCRAM-SHA-512", "bob", "bob-secret"));
    refused("bob", &workspace, "E404_AUTH_FAILED", "not authorized");
}

/// SEC-004: neither the certificates' paths nor the address are told.
#[test]
fn a_tls_connection_that_cannot_be_trusted_is_refused() {
    let ca = format!(", ssl_ca_location: {}", service("STREAMT_TEST_KAFKA_CA"));
    let other = format!(", ssl_ca_location: {}", service("STREAMT_TEST_KAFKA_CERT"));
    let address = service("STREAMT_TEST_KAFKA_TLS");
    let renamed = forwarded("127.0.0.2:0", &address);
    for (case, kafka) in [
        ("unknown authority", tls(&address, "")),
        ("other authority", tls(&address, &other)),
        ("other host name", tls(&renamed, &ca)),
        ("no client certificate", tls(&service("STREAMT_TEST_KAFKA_MTLS"), &ca)),
    ] {
        refused(case, &project(&unique("tls"), &kafka), "E405_SSL_ERROR", "failed in TLS");
    }
    let trusted = project(&unique("tls"), &tls(&address, &ca));
    let run = trusted.run("plan -o json");
    assert!(run.errors().iter().all(|(code, _)| code != "E405_SSL_ERROR"), "the way past TLS is open: {}", run.stdout);
}

/// Another address in front of a service.
fn forwarded(own: &str, to: &str) -> String {
    let listener = TcpListener::bind(own).expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let to = to.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = std::net::TcpStream::connect(&to) else { return };
            for (mut from, mut into) in
                [(client.try_clone(), server.try_clone()), (server.try_clone(), client.try_clone())]
                    .map(|(from, into)| (from.expect("a handle"), into.expect("a handle")))
            {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut into);
                    let _ = into.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    address
}

#[test]
fn an_unreachable_broker_or_registry_is_named() {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").to_string();
    refused(
        "broker",
        &project(&unique("down"), &format!("bootstrap_servers: \"{nobody}\"")),
        "E406_CONNECTION_REFUSED",
        "Kafka: reading topics",
    );
    let (workspace, _) = workspace("noregistry", ORDERS);
    crate::cli::edit(&workspace, &service("STREAMT_TEST_REGISTRY"), &format!("http://{nobody}/apis/ccompat/v7"));
    for command in ["plan --out plan.json", "apply", "apply --dry-run", "status"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E406_CONNECTION_REFUSED", "{command}: {}", run.stdout);
        assert!(run.stdout.contains("Schema Registry: "), "{command}: {}", run.stdout);
    }
    nothing_happened("registry", &workspace);
}

/// Gives alice rights on one topic. The client's number for prefixes is Kafka's for whole names; either covers the topic.
fn allow(topic: &str, operations: &[AclOperation]) {
    let binding = |operation: &AclOperation| {
        AclBinding::new(AclResourceType::Topic, topic, "User:alice", "*", *operation, AclPermissionType::Allow)
            .with_pattern_type(AclPatternType::Prefixed)
    };
    let bindings: Vec<AclBinding> = operations.iter().map(binding).collect();
    crate::estate::blocking(async move {
        let kafka = krafka::Kafka::builder(service("STREAMT_TEST_KAFKA")).connect().await.expect("Kafka answers");
        let made = kafka.admin().create_acls(bindings, CreateAclsOptions::default()).await.expect("an answer");
        assert!(made.iter().all(|(_, outcome)| outcome.is_ok()), "{made:?}");
    });
}

/// What the broker would refuse is asked before the durable intent: the refusal leaves no operation.
#[test]
fn a_user_who_may_not_create_is_refused_before_anything_is_recorded() {
    let name = unique("reader");
    allow(&format!("{name}.orders"), &[AclOperation::Describe, AclOperation::DescribeConfigs]);
    let workspace = project(&name, &login("SCRAM-SHA-256", "alice", "alice-secret"));
    // Rights take a moment to reach the broker.
    let plan = eventually(|| workspace.run("plan -o json"), |run| run.exit == 0);
    assert_eq!(plan.exits(0).json()["data"]["creates"], 1);
    for command in ["apply", "apply --dry-run"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E404_AUTH_FAILED", "{command}: {}", run.stdout);
        assert!(run.stdout.contains(&format!("topic:{name}.orders")), "{command}: {}", run.stdout);
        nothing_happened(command, &workspace);
    }
}

/// A controller refuses a whole request for one member with more than ten thousand partitions; so do 300 topics together that
/// have more than that.
#[test]
fn one_impossible_topic_is_blamed_alone_and_many_large_ones_are_asked_for_apart() {
    let models = |more: &str| {
        let many: String = (0..6)
            .map(|i| format!("  - {{name: m{i}, description: d, topic: {{name: PREFIX.m{i}, partitions: 2000, replication_factor: 1}}}}\n"))
            .collect();
        format!("{many}{more}")
    };
    let impossible =
        "  - {name: huge, description: d, topic: {name: PREFIX.huge, partitions: 10001, replication_factor: 1}}\n";
    let (workspace, prefix) = workspace("impossible", &models(impossible));
    let run = workspace.run("apply -o json").exits(1);
    let messages: Vec<String> =
        run.json()["errors"].as_array().unwrap().iter().map(|error| error["message"].to_string()).collect();
    assert!(messages.len() == 1 && messages[0].contains(&format!("topic:{prefix}.huge")), "{messages:?}");
    nothing_happened("impossible", &workspace);
    let (workspace, _) = crate::cli::workspace("large", &models(""));
    workspace.run("apply --dry-run -o json").exits(0);
}

/// W147: without the right to read configs only existence and partitions are compared, and that is said.
#[test]
fn configs_that_may_not_be_read_are_a_warning_of_status_and_an_error_of_plan() {
    let name = unique("describe");
    let physical = format!("{name}.orders");
    allow(&physical, &[AclOperation::Describe]);
    crate::estate::with_kafka(async |kafka, ctx| {
        let created = kafka.create_topics(ctx, &crate::support::Open, &[topic(&physical, 1, &[])]).await;
        created[0].1.as_ref().expect("created");
    });
    let workspace = project(&name, &login("PLAIN", "alice", "alice-secret"));
    let status = eventually(|| workspace.run("status -o json"), |run| run.exit == 0).exits(0);
    assert_eq!(status.warning_codes(), ["W147_OBSERVATION_INCOMPLETE"]);
    assert_eq!(status.json()["data"]["topics"][0]["exists"], true);
    assert_eq!(workspace.run("plan -o json").exits(1).errors()[0].0, "E404_AUTH_FAILED");
    crate::estate::blocking(crate::support::clean_up([physical]));
}

/// A read that fails in no known way: `diff` has a code of its own for it, and nothing is taken for absent. The broker's answer is
/// changed on its way.
#[test]
fn a_broker_that_meets_an_error_of_its_own_is_told_by_every_reader() {
    const DESCRIBE_CONFIGS: i16 = 32;
    let (workspace, _) = workspace("brokererror", ORDERS);
    workspace.run("apply").exits(0);
    let proxy = Proxy::kafka(&Order::default(), &service("STREAMT_TEST_KAFKA"));
    let asked = |request: &Request| request.bytes.get(4..6) == Some(&DESCRIBE_CONFIGS.to_be_bytes()[..]);
    // Length, correlation id, tags, throttle time, count of results: then the first result's error code, here UNKNOWN_SERVER_ERROR.
    let failed = Fault::edit(|mut answer| {
        answer[14..16].copy_from_slice(&(-1_i16).to_be_bytes());
        answer
    });
    let hit = proxy.rule(every(asked), failed);
    crate::cli::edit(&workspace, &service("STREAMT_TEST_KAFKA"), proxy.address());
    for (command, code) in [
        ("diff", "E523_DIFF_OBSERVATION_FAILED"),
        ("plan --out plan.json", "E407_DEPLOY_ERROR"),
        ("apply", "E407_DEPLOY_ERROR"),
    ] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, code, "{command}: {}", run.stdout);
    }
    assert!(hit.count() >= 3 && !workspace.path("plan.json").exists());
    let state = workspace.run("state status -o json").exits(0).json();
    assert_eq!(state["data"]["operation_status"]["status"], "clear");
}
