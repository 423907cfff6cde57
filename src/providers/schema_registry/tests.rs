//! Against an in-process stand-in that plays scripted answers and records every request, for faults that no real registry
//! can be asked for.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::codes::Code;
use crate::compiler::artifact::{OwnerType, Ownership, SchemaArtifact};
use crate::planner::observation::SchemaObservation;
use crate::project::model::{BasicAuth, OwnershipMode, Tls};
use crate::providers::guard::testing::HandGuard;
use crate::providers::testing::{Play, StandIn};
use crate::providers::{Ctx, Purpose};

impl StandIn {
    fn client(&self) -> RegistryClient {
        let auth = BasicAuth { username: Some("u".into()), password: Some(Secret::new("sentinel-pw")) };
        let runtime = SchemaRegistryRuntime { url: self.url.clone(), auth, token: None, tls: Tls::default() };
        RegistryClient::new(&runtime, Path::new("/")).expect("a client")
    }
}

fn ok(body: Value) -> Play {
    Play::Json(200, body)
}

fn absent() -> Play {
    Play::Json(404, json!({"error_code": 40401, "message": "Subject not found."}))
}

fn ctx() -> Ctx {
    Ctx::new(Purpose::Apply, Duration::from_secs(10), CancellationToken::new())
}

fn artifact(subject: &str, level: Option<Compatibility>) -> SchemaArtifact {
    SchemaArtifact {
        subject: subject.to_owned(),
        schema: json!({"type": "string"}),
        schema_type: SchemaType::Avro,
        compatibility: level,
        references: Vec::new(),
        ownership: Ownership {
            mode: OwnershipMode::Managed,
            project: "shop".to_owned(),
            owner_type: OwnerType::Source,
            name: "orders".to_owned(),
        },
    }
}

fn version_body(subject: &str, version: u32) -> Value {
    json!({"subject": subject, "id": 7, "version": version, "schema": "{\"type\":\"string\"}"})
}

async fn register(
    script: Vec<Play>,
    level: Option<Compatibility>,
    guard: &HandGuard,
) -> (Result<Registered, ProviderFailure>, Vec<String>) {
    let stand_in = StandIn::start([vec![absent()], script].concat()).await;
    let current = SchemaObservation::absent("s");
    let outcome = stand_in.client().register(&ctx(), guard, &current, &artifact("s", level), Some(1), false).await;
    (outcome, stand_in.requests()[1..].to_vec())
}

const POST: &str = "POST /subjects/s/versions";
const LOOK_UP: &str = "POST /subjects/s";

fn uncertain(stage: &'static str) -> ProviderFailure {
    ProviderFailure::Uncertain { stage, unresolved: vec![crate::providers::Identity::Subject("s".to_owned())] }
}

#[tokio::test]
async fn a_registered_version_is_read_back_by_a_look_up() {
    let script = vec![ok(json!({"id": 7})), ok(version_body("s", 1))];
    let (outcome, requests) = register(script, None, &HandGuard::default()).await;
    assert_eq!(outcome, Ok(Registered { id: 7, version: 1, level: None }));
    assert_eq!(requests, [POST, LOOK_UP]);
}

#[tokio::test]
async fn a_lost_reply_is_decided_by_one_look_up_and_the_register_is_never_sent_again() {
    let (outcome, requests) = register(vec![Play::Drop, ok(version_body("s", 1))], None, &HandGuard::default()).await;
    assert_eq!(outcome, Ok(Registered { id: 7, version: 1, level: None }));
    assert_eq!(requests, [POST, LOOK_UP]);

    let (outcome, requests) = register(vec![Play::Drop, absent()], None, &HandGuard::default()).await;
    assert_eq!(outcome, Err(uncertain("register")));
    assert_eq!(requests, [POST, LOOK_UP]);
}

#[tokio::test]
async fn an_answer_that_proves_nothing_leaves_the_register_uncertain() {
    for play in [
        Play::Json(500, json!({"error_code": 50002, "message": "timeout"})),
        Play::Json(503, json!({})),
        Play::Json(429, json!({})),
        Play::Json(408, json!({})),
        Play::Json(201, json!({"id": 7})),
        Play::Raw("HTTP/1.1 307 X\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n".to_owned()),
        Play::Raw("HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{\"id\":7,,".to_owned()),
        Play::Raw("HTTP/1.1 200 X\r\nContent-Length: 20\r\n\r\n{\"id\"".to_owned()),
    ] {
        let (outcome, requests) = register(vec![play, absent()], None, &HandGuard::default()).await;
        assert_eq!(outcome, Err(uncertain("register")));
        assert_eq!(requests, [POST, LOOK_UP]);
    }
}

#[tokio::test]
async fn a_refusal_has_no_effect_and_says_why() {
    let body = json!({"error_code": 409, "message": "incompatible: sentinel-pw schema={\"type\":\"string\"}"});
    let (outcome, requests) = register(vec![Play::Json(409, body)], None, &HandGuard::default()).await;
    let failure = outcome.expect_err("refused");
    assert!(!failure.may_have_effect());
    let shown = failure.diagnostic("schema:s: register");
    assert_eq!(shown.code, Code::E402SchemaIncompatible);
    assert_eq!(shown.message, "schema:s: register refused (HTTP 409): incompatible: <redacted>");
    assert_eq!(requests, [POST]);

    let body = json!({"error_code": 42201, "message": "Invalid schema"});
    let (outcome, _) = register(vec![Play::Json(422, body)], None, &HandGuard::default()).await;
    let shown = outcome.expect_err("refused").diagnostic("schema:s: register");
    assert_eq!(shown.code, Code::E407DeployError);
    assert_eq!(shown.message, "schema:s: register refused (HTTP 422, error 42201): Invalid schema");

    let (outcome, requests) = register(vec![Play::Json(403, json!({}))], None, &HandGuard::default()).await;
    let failure = outcome.expect_err("refused");
    assert_eq!((failure.code(), failure.may_have_effect()), (Code::E404AuthFailed, false));
    assert_eq!(requests, [POST]);
}

#[tokio::test]
async fn another_version_than_planned_is_a_failed_action_with_an_effect() {
    let script = vec![ok(json!({"id": 7})), ok(version_body("s", 2))];
    let (outcome, _) = register(script, None, &HandGuard::default()).await;
    assert!(matches!(outcome, Err(ProviderFailure::Partial { failed: "version", .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_level_that_fails_after_its_register_is_a_partial_effect() {
    let registered = vec![ok(json!({"id": 7})), ok(version_body("s", 1))];
    let level = Some(Compatibility::Full);

    let set = vec![ok(json!({"compatibility": "FULL"}))];
    let (outcome, requests) = register([registered.clone(), set].concat(), level, &HandGuard::default()).await;
    assert_eq!(outcome.map(|registered| registered.level), Ok(level));
    assert_eq!(requests, [POST, LOOK_UP, "PUT /config/s"]);

    let refused = vec![Play::Json(422, json!({"error_code": 42203, "message": "Invalid level"}))];
    let (outcome, _) = register([registered.clone(), refused].concat(), level, &HandGuard::default()).await;
    assert!(matches!(outcome, Err(ProviderFailure::Partial { failed: "level", .. })), "{outcome:?}");

    let lost = vec![Play::Drop, ok(json!({"compatibilityLevel": "FULL"}))];
    let (outcome, requests) = register([registered.clone(), lost].concat(), level, &HandGuard::default()).await;
    assert_eq!(outcome.map(|registered| registered.level), Ok(level));
    assert_eq!(requests, [POST, LOOK_UP, "PUT /config/s", "GET /config/s"]);

    let lost = vec![Play::Drop, ok(json!({"compatibilityLevel": "NONE"}))];
    let (outcome, _) = register([registered, lost].concat(), level, &HandGuard::default()).await;
    let failure = outcome.expect_err("uncertain");
    assert!(failure.may_have_effect());
}

#[tokio::test]
async fn a_lost_guard_stops_the_register_at_once() {
    let guard = HandGuard::default();
    let (outcome, requests) = register(vec![Play::LoseGuard(guard.clone())], None, &guard).await;
    assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: true }));
    assert_eq!(requests, [POST]);

    let (outcome, requests) = register(vec![], None, &guard).await;
    assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
    assert!(requests.is_empty());
}

#[tokio::test]
async fn a_stop_before_the_register_sends_nothing() {
    let stand_in = StandIn::start(vec![absent()]).await;
    let ctx = ctx();
    ctx.cancel.cancel();
    let current = SchemaObservation::absent("s");
    let outcome =
        stand_in.client().register(&ctx, &HandGuard::default(), &current, &artifact("s", None), None, false).await;
    assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
    assert!(!stand_in.requests().contains(&POST.to_owned()));
}

#[tokio::test]
async fn a_subject_that_changed_since_the_plan_is_not_registered() {
    let level = || ok(json!({"compatibilityLevel": "BACKWARD"}));
    let stand_in = StandIn::start(vec![ok(version_body("s", 4)), level(), level()]).await;
    let current = SchemaObservation::absent("s");
    let outcome =
        stand_in.client().register(&ctx(), &HandGuard::default(), &current, &artifact("s", None), None, false).await;
    assert!(matches!(outcome, Err(ProviderFailure::Conflict { .. })), "{outcome:?}");
    assert!(stand_in.requests().iter().all(|request| request.starts_with("GET ")));
}

#[tokio::test]
async fn a_register_checks_first_when_the_plan_could_not() {
    let verdict = ok(json!({"is_compatible": false, "messages": ["reader lacks a default"]}));
    let stand_in = StandIn::start(vec![absent(), verdict]).await;
    let current = SchemaObservation::absent("s");
    let outcome =
        stand_in.client().register(&ctx(), &HandGuard::default(), &current, &artifact("s", None), Some(1), true).await;
    let shown = outcome.expect_err("incompatible").diagnostic("schema:s: register");
    assert_eq!(shown.code, Code::E402SchemaIncompatible);
    assert!(shown.message.ends_with(": reader lacks a default"), "{}", shown.message);
    assert_eq!(stand_in.requests()[1], "POST /compatibility/subjects/s/versions/latest?verbose=true");
    assert_eq!(stand_in.requests().len(), 2);
}

async fn observed(script: Vec<Play>) -> (Result<SchemaObservation, ProviderFailure>, Vec<String>) {
    let stand_in = StandIn::start(script).await;
    let outcome = stand_in.client().observe_subjects(&ctx(), &["s".to_owned()]).await;
    (outcome.map(|mut all| all.remove("s").expect("the subject")), stand_in.requests())
}

#[tokio::test]
async fn a_read_is_asked_three_times_and_not_more() {
    let fault = || Play::Json(500, json!({"error_code": 50001, "message": "store"}));
    let (outcome, requests) = observed(vec![fault(), Play::Drop, absent()]).await;
    assert_eq!(outcome, Ok(SchemaObservation::absent("s")));
    assert_eq!(requests.len(), 3);
    let (outcome, requests) = observed(vec![fault(), fault(), fault(), absent()]).await;
    assert_eq!(outcome.expect_err("a 500").code(), Code::E407DeployError);
    assert_eq!(requests.len(), 3);
}

/// SEC-008
#[tokio::test]
async fn an_answer_outside_its_protocol_is_no_observation() {
    let raw = |head: &str, body: &str| Play::Raw(format!("HTTP/1.1 200 X\r\n{head}\r\n\r\n{body}"));
    let sized = |body: &str| raw(&format!("Content-Length: {}", body.len()), body);
    let large = "x".repeat(5 * 1024 * 1024);
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    for (name, play, expected) in [
        ("oversize by header", sized(&large), ProviderFailure::TooLarge),
        ("oversize by header alone", raw("Content-Length: 5000000", "{}"), ProviderFailure::TooLarge),
        ("oversize by stream", raw("Transfer-Encoding: chunked", &chunked), ProviderFailure::TooLarge),
        (
            "duplicate key",
            sized(r#"{"subject":"s","a":{"b":1,"b":2}}"#),
            ProviderFailure::Protocol { what: "JSON body" },
        ),
        ("NaN", sized(r#"{"subject":NaN}"#), ProviderFailure::Protocol { what: "JSON body" }),
        ("byte order mark", sized("\u{feff}{}"), ProviderFailure::Protocol { what: "JSON body" }),
        ("trailing garbage", sized("{} x"), ProviderFailure::Protocol { what: "JSON body" }),
        ("lone surrogate", sized(r#"{"subject":"\ud800"}"#), ProviderFailure::Protocol { what: "JSON body" }),
        (
            "redirect",
            Play::Raw("HTTP/1.1 302 X\r\nLocation: /subjects\r\nContent-Length: 0\r\n\r\n".to_owned()),
            ProviderFailure::Protocol { what: "redirect" },
        ),
        (
            "404 of a proxy",
            Play::Json(404, json!({"error": "Not Found"})),
            ProviderFailure::Protocol { what: "a 404 that is no registry's" },
        ),
    ] {
        let (outcome, requests) = observed(vec![play]).await;
        assert_eq!(outcome, Err(expected), "{name}");
        assert_eq!(requests.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn an_own_level_is_only_one_that_is_in_effect() {
    let level = |name: &str| ok(json!({ "compatibilityLevel": name }));
    let version = || ok(version_body("s", 1));
    for (effective, own, expected) in [
        (level("FULL"), level("FULL"), Some(Compatibility::Full)),
        (level("BACKWARD"), Play::Json(404, json!({"error_code": 40408, "message": "no"})), None),
        (level("BACKWARD"), level("NONE"), None),
        (level("NONE"), level("NONE"), Some(Compatibility::None)),
    ] {
        let (outcome, requests) = observed(vec![version(), effective, own]).await;
        assert_eq!(outcome.expect("observed").own_compatibility, expected);
        assert_eq!(requests[1..], ["GET /config/s?defaultToGlobal=true", "GET /config/s"]);
    }
}

#[tokio::test]
async fn a_subject_is_one_encoded_segment_in_every_call() {
    let stand_in = StandIn::start(vec![absent(), absent(), absent(), absent()]).await;
    let (client, ctx) = (stand_in.client(), ctx());
    client.observe_subjects(&ctx, &["a b/c%?#é".to_owned()]).await.expect("absent");
    client.next_version(&ctx, "a/b").await.expect("absent");
    client.version(&ctx, "a/b", 3).await.expect("absent");
    client.check_compatibility(&ctx, &artifact("a/b", None)).await.expect("absent");
    assert_eq!(
        stand_in.requests(),
        [
            "GET /subjects/a%20b%2Fc%25%3F%23%C3%A9/versions/latest",
            "GET /subjects/a%2Fb/versions?deleted=true",
            "GET /subjects/a%2Fb/versions/3",
            "POST /compatibility/subjects/a%2Fb/versions/latest?verbose=true",
        ]
    );
    for subject in [".", "..", ""] {
        let outcome = client.next_version(&ctx, subject).await;
        assert!(matches!(outcome, Err(ProviderFailure::Unsupported { .. })), "{subject:?}");
    }
    assert_eq!(stand_in.requests().len(), 4);
}

#[tokio::test]
async fn the_next_version_counts_deleted_ones() {
    let stand_in = StandIn::start(vec![ok(json!([1, 5, 3])), absent(), ok(json!([]))]).await;
    let (client, ctx) = (stand_in.client(), ctx());
    assert_eq!(client.next_version(&ctx, "s").await, Ok(6));
    assert_eq!(client.next_version(&ctx, "s").await, Ok(1));
    assert_eq!(client.next_version(&ctx, "s").await, Ok(1));
}

#[tokio::test]
async fn references_are_followed_once_each_and_a_cycle_is_told() {
    let schema = |subject: &str, references: Value| {
        ok(json!({"subject": subject, "id": 1, "version": 1, "schema": "{}", "references": references}))
    };
    let to = |subject: &str| json!({"name": subject, "subject": subject, "version": 1});
    let stand_in = StandIn::start(vec![
        schema("a", json!([to("b"), to("c")])),
        schema("b", json!([to("c")])),
        schema("c", json!([])),
    ])
    .await;
    let found = stand_in.client().references_of(&ctx(), "a", 1).await.expect("a closed set");
    assert_eq!(found.iter().map(|schema| schema.subject.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);

    let stand_in = StandIn::start(vec![schema("a", json!([to("b")])), schema("b", json!([to("a")]))]).await;
    let outcome = stand_in.client().references_of(&ctx(), "a", 1).await;
    assert_eq!(outcome, Err(ProviderFailure::Ambiguous { what: "reference cycle" }));

    let stand_in = StandIn::start(vec![schema("a", json!([to("b")])), absent()]).await;
    assert_eq!(stand_in.client().references_of(&ctx(), "a", 1).await, Err(ProviderFailure::NotFound));
}

/// SEC-003, SEC-004
#[tokio::test]
async fn the_login_is_sent_and_shown_nowhere() {
    let stand_in =
        StandIn::start(vec![Play::Json(401, json!({"error_code": 40101, "message": "no sentinel-pw"}))]).await;
    let client = stand_in.client();
    let failure = client.observe_subjects(&ctx(), &["s".to_owned()]).await.expect_err("401");
    assert_eq!(failure.code(), Code::E404AuthFailed);
    let head = stand_in.heads.lock().expect("unpoisoned")[0].to_ascii_lowercase();
    assert!(head.contains("authorization: basic dtpzzw50aw5lbc1wdw=="), "{head}");
    assert!(head.contains("accept-encoding: identity"));
    let shown = format!("{client:?} {failure:?} {}", failure.diagnostic("x").message);
    assert!(!shown.contains("sentinel") && !shown.contains("127.0.0.1"), "{shown}");
}

#[test]
fn a_client_that_could_only_fail_is_not_built() {
    let build = |url: &str, username: Option<&str>, password: Option<&str>| {
        let auth = BasicAuth { username: username.map(str::to_owned), password: password.map(Secret::new) };
        let runtime = SchemaRegistryRuntime { url: url.to_owned(), auth, token: None, tls: Tls::default() };
        RegistryClient::new(&runtime, Path::new("/")).map(|_| ())
    };
    assert_eq!(build("http://h", None, None), Ok(()));
    assert_eq!(build("http://h", Some("u"), Some("p")), Ok(()));
    assert_eq!(build("http://h", Some("u"), None), Err(ProviderFailure::Config { field: FIELDS.password }));
    assert_eq!(build("http://h", None, Some("p")), Err(ProviderFailure::Config { field: FIELDS.username }));
    let failure = build("http://u:p@h", None, None).expect_err("user info");
    assert_eq!(failure.code(), Code::E208MissingConfig);
    assert_eq!(failure.to_string(), "cannot use runtime.schema_registry.url: it contains a user or a password");
}

#[tokio::test]
async fn a_registry_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let runtime = SchemaRegistryRuntime { url, auth: BasicAuth::default(), token: None, tls: Tls::default() };
    let client = RegistryClient::new(&runtime, Path::new("/")).expect("a client");
    let failure = client.probe(&ctx()).await.expect_err("nobody listens");
    assert_eq!(failure, ProviderFailure::Unreachable);
    let level = client.set_compatibility(&ctx(), &HandGuard::default(), "s", Compatibility::Full).await;
    assert_eq!(level, Err(ProviderFailure::Unreachable), "nothing was sent");
}

#[tokio::test]
async fn an_answer_about_something_else_is_no_answer() {
    let stand_in = StandIn::start(vec![ok(version_body("s", 4)), ok(version_body("other", 1))]).await;
    let (client, ctx) = (stand_in.client(), ctx());
    let outcome = client.version(&ctx, "s", 3).await;
    assert_eq!(outcome, Err(ProviderFailure::Protocol { what: "the answer is about another version" }));
    let outcome = client.version_holding(&ctx, &artifact("s", None)).await;
    assert!(matches!(outcome, Err(ProviderFailure::Unreadable { .. })), "{outcome:?}");
}

/// The declared text alone does not make a schema the live one.
#[tokio::test]
async fn the_same_text_with_other_references_or_of_another_type_is_registered() {
    let to = |version: u32| SchemaReference { name: "n".to_owned(), subject: "other".to_owned(), version };
    let refers = |version: u32| json!([{"name": "n", "subject": "other", "version": version}]);
    let text = r#"{"type":"string"}"#;
    let body = |schema_type: &str, references: Value| json!({"subject": "s", "id": 7, "version": 1, "schema": text, "schemaType": schema_type, "references": references});
    let declared = |schema_type, references| SchemaArtifact { schema_type, references, ..artifact("s", None) };
    for (live, declared, sent) in [
        (body("AVRO", refers(1)), declared(SchemaType::Avro, vec![to(1)]), false),
        (body("AVRO", refers(1)), declared(SchemaType::Avro, vec![to(2)]), true),
        (body("AVRO", refers(1)), declared(SchemaType::Avro, vec![]), true),
        (body("AVRO", json!([])), declared(SchemaType::Json, vec![]), true),
        (body("JSON", json!([])), declared(SchemaType::Json, vec![]), false),
    ] {
        let none = || Play::Json(404, json!({"error_code": 40408, "message": "no"}));
        let looks = || vec![ok(live.clone()), ok(json!({"compatibilityLevel": "NONE"})), none()];
        let register = vec![ok(json!({"id": 8})), ok(version_body("s", 2))];
        let stand_in = StandIn::start([looks(), looks(), register].concat()).await;
        let (client, ctx) = (stand_in.client(), ctx());
        let current = client.observe(&ctx, "s").await.expect("observed");
        let outcome = client.register(&ctx, &HandGuard::default(), &current, &declared, None, false).await;
        assert_eq!(outcome.map(|registered| registered.version), Ok(if sent { 2 } else { 1 }), "{declared:?}");
        assert_eq!(stand_in.requests().contains(&POST.to_owned()), sent, "{declared:?}");
    }
}

/// The order in which somebody wrote its keys is no difference.
#[test]
fn a_schema_is_sent_in_its_canonical_form() {
    let mut declared = artifact("s", None);
    declared.schema = json!({"type": "record", "name": "R", "fields": []});
    declared.references = vec![
        SchemaReference { name: "b".to_owned(), subject: "b".to_owned(), version: 1 },
        SchemaReference { name: "a".to_owned(), subject: "a".to_owned(), version: 2 },
    ];
    let body: Value = serde_json::from_slice(&wire::content(&declared).expect("a body")).expect("JSON");
    assert_eq!(
        body,
        json!({
            "schema": r#"{"fields":[],"name":"R","type":"record"}"#, "schemaType": "AVRO",
            "references": [
                {"name": "a", "subject": "a", "version": 2}, {"name": "b", "subject": "b", "version": 1}
            ],
        })
    );
}

#[tokio::test]
async fn every_mutation_has_a_connection_of_its_own_and_reads_share_one() {
    let set = || ok(json!({"compatibility": "FULL"}));
    let stand_in = StandIn::start(vec![absent(), absent(), set(), set()]).await;
    let (client, ctx) = (stand_in.client(), ctx());
    for _ in 0..2 {
        client.next_version(&ctx, "s").await.expect("a number");
    }
    assert_eq!(stand_in.connections(), 1);
    for _ in 0..2 {
        client.set_compatibility(&ctx, &HandGuard::default(), "s", Compatibility::Full).await.expect("set");
    }
    assert_eq!(stand_in.connections(), 3);
}

/// SEC-003: whatever a registry repeats of them is removed.
#[test]
fn every_secret_of_the_block_is_known_where_a_registry_speaks() {
    let auth = BasicAuth { username: Some("u".into()), password: Some(Secret::new("sentinel-pw")) };
    let tls = Tls { key_password: Some(Secret::new("sentinel-key")), ..Tls::default() };
    let runtime =
        SchemaRegistryRuntime { url: "http://h".to_owned(), auth, token: Some(Secret::new("sentinel-token")), tls };
    let client = RegistryClient::new(&runtime, Path::new("/")).expect("a client");
    let known: Vec<&str> = client.secrets.iter().map(Secret::expose).collect();
    assert_eq!(known, ["sentinel-pw", "sentinel-token", "sentinel-key"]);
}
