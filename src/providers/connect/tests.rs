//! Against an in-process stand-in that plays scripted answers and records every request, for faults that no real worker can
//! be asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::codes::Code;
use crate::compiler::artifact::ConnectorArtifact;
use crate::planner::connector::testing::{connector, name};
use crate::planner::connector::{ConnectorName, ManagedConnectorObservation};
use crate::project::model::{BasicAuth, ConnectCluster, Tls};
use crate::project::secret::Secret;
use crate::providers::guard::testing::HandGuard;
use crate::providers::testing::{Play, StandIn};
use crate::providers::{Ctx, Identity, Purpose};

const PASSWORD: &str = "sentinel-pw";

impl StandIn {
    fn workers(&self) -> ConnectClient {
        let auth = BasicAuth { username: Some("u".into()), password: Some(Secret::new(PASSWORD)) };
        let cluster = ConnectCluster { rest_url: self.url.clone(), auth, tls: Tls::default() };
        let runtime =
            ConnectRuntime { default: Some("primary".into()), clusters: BTreeMap::from([("primary".into(), cluster)]) };
        ConnectClient::new(&runtime, Path::new("/")).expect("a client")
    }
}

fn ctx() -> Ctx {
    Ctx::new(Purpose::Apply, Duration::from_secs(30), CancellationToken::new())
}

fn sink() -> ConnectorArtifact {
    connector("sink", &[("file", "/tmp/x"), ("connection.password", "${file:/etc/s.properties:p}")])
}

fn config(artifact: &ConnectorArtifact) -> Map<String, Value> {
    artifact.config.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
}

fn shown(status: u16, artifact: &ConnectorArtifact) -> Play {
    let tasks = json!([{"connector": artifact.name, "task": 0}]);
    Play::Json(status, json!({"name": artifact.name, "config": artifact.config, "tasks": tasks, "type": "sink"}))
}

fn absent() -> Play {
    absent_as("sink")
}

fn absent_as(name: &str) -> Play {
    Play::Json(404, json!({"error_code": 404, "message": format!("Connector {name} not found")}))
}

fn error(status: u16) -> Play {
    Play::Json(status, json!({"error_code": status, "message": "sentinel-body"}))
}

fn raw(head: &str, body: &str) -> Play {
    Play::Raw(format!("HTTP/1.1 {head}\r\n\r\n{body}"))
}

fn gone() -> Play {
    raw("204 No Content", "")
}

fn live(workers: &ConnectClient, artifact: &ConnectorArtifact) -> ManagedConnectorObservation {
    let name = ConnectorName::new(&artifact.name).expect("a name");
    ManagedConnectorObservation::present(workers.binding().clone(), name, config(artifact)).expect("an observation")
}

async fn observe(play: Play) -> Result<ManagedConnectorObservation, ProviderFailure> {
    let stand_in = StandIn::start(vec![play]).await;
    let outcome = stand_in.workers().observe_managed_connector(&ctx(), &name("sink")).await;
    assert_eq!(stand_in.requests(), ["GET /connectors/sink"], "one request, whatever the answer");
    outcome
}

/// CRM-047, CRM-048
#[tokio::test]
async fn an_observation_is_one_get_of_one_connector() {
    let stand_in = StandIn::start(vec![shown(200, &sink()), absent()]).await;
    let workers = stand_in.workers();
    let seen = workers.observe_managed_connector(&ctx(), &name("sink")).await.expect("an answer");
    assert_eq!(seen, live(&workers, &sink()));
    let seen = workers.observe_managed_connector(&ctx(), &name("sink")).await.expect("an answer");
    assert!(!seen.exists());
    assert_eq!(stand_in.requests(), ["GET /connectors/sink", "GET /connectors/sink"]);
}

/// CRM-003
#[tokio::test]
async fn a_name_is_one_encoded_segment() {
    let names = [("a b/c%", "a%20b%2Fc%25"), ("é?#", "%C3%A9%3F%23"), ("x~y", "x~y")];
    let stand_in = StandIn::start(names.iter().map(|(text, _)| absent_as(text)).collect()).await;
    let workers = stand_in.workers();
    for (text, path) in names {
        let seen = workers.observe_managed_connector(&ctx(), &name(text)).await.expect("absent");
        assert_eq!(seen.name().as_str(), text);
        assert_eq!(stand_in.requests().last().map(String::as_str), Some(format!("GET /connectors/{path}").as_str()));
    }
}

/// CRM-047, CRM-049
#[tokio::test]
async fn whatever_is_not_exactly_the_connector_is_no_observation() {
    let body = |body: Value| Play::Json(200, body);
    let oversized = "x".repeat(1024 * 1024);
    for play in [
        body(json!([])),
        body(json!({"name": "other", "config": {"name": "other"}})),
        body(json!({"name": "other", "config": {"name": "sink"}})),
        body(json!({"name": "sink"})),
        body(json!({"name": "sink", "config": []})),
        body(json!({"name": "sink", "config": {"name": "other"}})),
        body(json!({"name": "sink", "config": {"name": "sink", "x": null}})),
        body(json!({"name": "sink", "config": {"name": "sink", "x": {"y": 1}}})),
        body(json!({"name": "sink", "config": {"name": "sink", "x": oversized}})),
        raw("200 OK", r#"{"name":"sink","config":{"name":"sink","a":"1","a":"2"}}"#),
        raw("200 OK", "{\"name\":\"sink\",\"config\":{\"name\":\"sink\"}} trailing"),
        raw("200 OK", r#"{"name":"sink","config":{"name":"sink","n":9007199254740993}}"#),
        raw("200 OK\r\nContent-Length: 400", r#"{"name":"sink""#),
        raw("200 OK\r\nContent-Length: none", "{}"),
        raw("404 Not Found", "<html>no such page</html>"),
        raw("302 Found\r\nLocation: /connectors/other\r\nContent-Length: 0", ""),
        Play::Json(202, json!({"name": "sink", "config": {"name": "sink"}})),
        error(400),
        error(401),
        error(403),
        error(409),
        error(500),
        Play::Drop,
    ] {
        let failure = observe(play).await.expect_err("no observation");
        let shown = format!("{failure:?} {}", failure.diagnostic("x").message);
        assert!(!shown.contains("sentinel") && !shown.contains("127.0.0.1"), "{shown}");
    }
    assert_eq!(observe(error(403)).await.map_err(|f| f.code()), Err(Code::E404AuthFailed));
    assert_eq!(observe(error(409)).await.map_err(|f| f.code()), Err(Code::E407DeployError));
}

/// CRM-048: a wrong address must not pass for a worker without connectors.
#[tokio::test]
async fn a_404_is_absence_only_in_the_words_of_a_worker_about_this_connector() {
    let said = |message: &str| Play::Json(404, json!({"error_code": 404, "message": message}));
    for message in ["Connector sink not found", "No status found for connector sink"] {
        assert!(observe(said(message)).await.is_ok_and(|seen| !seen.exists()), "{message}");
    }
    for play in [
        said("HTTP 404 Not Found"),
        said("Connector sink2 not found"),
        said("Not found"),
        Play::Json(404, json!({"error_code": 404})),
        Play::Json(404, json!({"message": "Connector sink not found"})),
        Play::Json(404, json!({"error_code": 40401, "message": "Subject sink not found."})),
        raw("404 Not Found\r\nContent-Length: 0", ""),
    ] {
        let failure = observe(play).await.expect_err("no absence").diagnostic("x");
        assert_eq!(failure.code, Code::E407DeployError);
        assert!(failure.suggestion.is_some_and(|advice| advice.contains("address in the runtime block")));
    }
    let stand_in = StandIn::start(vec![said("HTTP 404 Not Found")]).await;
    assert!(stand_in.workers().observe_managed_connector(&ctx(), &name("404")).await.is_err());
}

#[tokio::test]
async fn a_rebalance_is_waited_for_before_anything_is_started() {
    let stand_in = StandIn::start(vec![error(409), error(500), shown(200, &sink())]).await;
    let seen = stand_in.workers().observe(&ctx(), &[name("sink")]).await.expect("an answer at last");
    assert!(seen["sink"].exists());
    assert_eq!(stand_in.requests().len(), 3);
    let stand_in = StandIn::start(vec![error(401), shown(200, &sink())]).await;
    assert!(stand_in.workers().observe(&ctx(), &[name("sink")]).await.is_err());
    assert_eq!(stand_in.requests().len(), 1, "only a rebalance is waited for");
}

#[tokio::test]
async fn a_connector_is_created_with_secrets_left_literal() {
    let stand_in = StandIn::start(vec![shown(201, &sink())]).await;
    let workers = stand_in.workers();
    let made = workers.create(&ctx(), &HandGuard::default(), &sink()).await.expect("created");
    assert_eq!(made, live(&workers, &sink()));
    assert_eq!(stand_in.requests(), ["POST /connectors"]);
    let body = stand_in.bodies()[0].clone();
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body, json!({"name": "sink", "config": sink().config}));
    assert_eq!(body["config"]["connection.password"], "${file:/etc/s.properties:p}");
}

#[tokio::test]
async fn only_an_answer_that_proves_nothing_happened_lets_a_create_be_sent_again() {
    let create = async |script: Vec<Play>| {
        let stand_in = StandIn::start(script).await;
        let outcome = stand_in.workers().create(&ctx(), &HandGuard::default(), &sink()).await;
        (outcome.map(|_| ()), stand_in.requests())
    };
    let (outcome, requests) = create(vec![error(409), absent(), shown(201, &sink())]).await;
    assert_eq!((outcome, requests.len()), (Ok(()), 3));
    let (outcome, requests) = create(vec![error(409), shown(200, &sink())]).await;
    assert!(matches!(outcome, Err(ProviderFailure::Conflict { .. })), "{outcome:?}");
    assert_eq!(requests, ["POST /connectors", "GET /connectors/sink"]);
    let (outcome, _) = create(vec![error(400)]).await;
    assert!(matches!(outcome, Err(ProviderFailure::Rejected { .. })), "{outcome:?}");
    let mut other = sink();
    other.config.insert("added".into(), "by the worker".into());
    for play in [
        error(500),
        error(503),
        error(429),
        error(408),
        Play::Drop,
        shown(200, &sink()),
        shown(201, &other),
        raw("201 Created", "{"),
        raw("307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0", ""),
    ] {
        let (outcome, requests) = create(vec![play]).await;
        assert!(matches!(outcome, Err(ProviderFailure::Uncertain { .. })), "{outcome:?}");
        assert_eq!(requests.len(), 1, "sent once");
    }
}

#[tokio::test]
async fn an_update_is_sent_only_against_what_was_planned() {
    let mut wanted = sink();
    wanted.config.insert("file".into(), "/tmp/y".into());
    let update = async |script: Vec<Play>| {
        let stand_in = StandIn::start(script).await;
        let workers = stand_in.workers();
        let outcome = workers.update(&ctx(), &HandGuard::default(), &live(&workers, &sink()), &wanted).await;
        (outcome.map(|_| ()), stand_in.requests())
    };
    let put = "PUT /connectors/sink/config";
    let (outcome, requests) = update(vec![shown(200, &sink()), shown(200, &wanted)]).await;
    assert_eq!((outcome, requests), (Ok(()), vec!["GET /connectors/sink".to_owned(), put.to_owned()]));
    let (outcome, requests) = update(vec![shown(200, &sink()), error(409), shown(200, &wanted)]).await;
    assert_eq!((outcome, requests.len()), (Ok(()), 3));
    for seen in [shown(200, &wanted), absent()] {
        let (outcome, requests) = update(vec![seen, shown(200, &wanted)]).await;
        assert!(matches!(outcome, Err(ProviderFailure::Conflict { .. })), "{outcome:?}");
        assert_eq!(requests.len(), 1, "nothing was sent");
    }
    let (outcome, _) = update(vec![shown(200, &sink()), shown(201, &wanted)]).await;
    assert!(matches!(outcome, Err(ProviderFailure::Partial { .. })), "{outcome:?}");
    let (outcome, _) = update(vec![shown(200, &sink()), error(500)]).await;
    assert!(matches!(outcome, Err(ProviderFailure::Uncertain { .. })), "{outcome:?}");
}

async fn delete(script: Vec<Play>) -> (Result<Deleted, ProviderFailure>, Vec<String>) {
    let stand_in = StandIn::start(script).await;
    let workers = stand_in.workers();
    let outcome = workers.delete_managed_connector(&ctx(), &HandGuard::default(), &live(&workers, &sink())).await;
    (outcome, stand_in.requests())
}

const GET: &str = "GET /connectors/sink";
const DELETE: &str = "DELETE /connectors/sink";

/// CRM-095, CRM-096, CRM-097, CRM-098
#[tokio::test]
async fn a_deletion_is_one_observation_one_delete_and_polls_until_absence() {
    let (outcome, requests) = delete(vec![shown(200, &sink()), gone(), absent()]).await;
    assert_eq!(outcome.map(Deleted::as_str), Ok("deleted"));
    assert_eq!(requests, [GET, DELETE, GET]);
    // Still visible, then a rebalance, then gone.
    let (outcome, requests) =
        delete(vec![shown(200, &sink()), gone(), shown(200, &sink()), error(409), error(500), absent()]).await;
    assert_eq!(outcome.map(Deleted::as_str), Ok("deleted"));
    assert_eq!(requests, [GET, DELETE, GET, GET, GET, GET]);
    let (outcome, _) =
        delete(vec![shown(200, &sink()), raw("204 No Content\r\nContent-Length: 0", ""), absent()]).await;
    assert_eq!(outcome.map(Deleted::as_str), Ok("deleted"));
}

/// CRM-095, CRM-100
#[tokio::test]
async fn nothing_is_deleted_that_is_not_exactly_what_was_reviewed() {
    let mut other = sink();
    other.config.insert("tasks.max".into(), "3".into());
    for seen in [shown(200, &other), absent(), error(409), error(500), error(401), Play::Drop, raw("200 OK", "{")] {
        let (outcome, requests) = delete(vec![seen, gone(), absent()]).await;
        assert_eq!(outcome, Err(ProviderFailure::RemovalDrift));
        assert_eq!(requests, [GET], "no DELETE was sent, and nothing was asked again");
    }
}

/// CRM-096, CRM-099, CRM-102, CRM-116
#[tokio::test]
async fn every_answer_to_the_delete_but_an_empty_204_is_uncertain_and_never_sent_again() {
    for answer in [
        error(404),
        error(409),
        error(500),
        error(401),
        Play::Json(200, json!({})),
        raw("202 Accepted\r\nContent-Length: 0", ""),
        raw("200 OK\r\nContent-Length: 0", ""),
        // Without a body that would be refused by itself.
        raw("404 Not Found\r\nContent-Length: 0", ""),
        raw("409 Conflict\r\nContent-Length: 0", ""),
        raw("500 Internal Server Error\r\nContent-Length: 0", ""),
        raw("204 No Content\r\nContent-Length: 1", "x"),
        raw("204 No Content\r\nContent-Length: 1", ""),
        raw("204 No Content\r\nTransfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n"),
        raw("302 Found\r\nLocation: /connectors/sink\r\nContent-Length: 0", ""),
        raw("307 Temporary Redirect\r\nLocation: /connectors/other\r\nContent-Length: 0", ""),
        Play::Drop,
        Play::Raw("HTTP/1.1 20".to_owned()),
    ] {
        let (outcome, requests) = delete(vec![shown(200, &sink()), answer, absent()]).await;
        assert_eq!(outcome, Err(ProviderFailure::RemovalDrift));
        assert_eq!(requests, [GET, DELETE], "one DELETE, and no poll after a refusal");
    }
    let drift = ProviderFailure::RemovalDrift;
    assert_eq!((drift.code(), drift.may_have_effect()), (Code::E428ConnectorRemovalDrift, true));
}

/// CRM-098, CRM-099
#[tokio::test]
async fn a_poll_that_shows_something_else_ends_the_deletion_as_uncertain() {
    let mut other = sink();
    other.config.insert("tasks.max".into(), "3".into());
    for poll in [shown(200, &other), error(401), error(404 - 1), raw("200 OK", "{"), Play::Drop] {
        let (outcome, requests) = delete(vec![shown(200, &sink()), gone(), poll, absent()]).await;
        assert_eq!(outcome, Err(ProviderFailure::RemovalDrift));
        assert_eq!(requests, [GET, DELETE, GET]);
    }
    let mut script = vec![shown(200, &sink()), gone()];
    script.extend((0..40).map(|_| shown(200, &sink())));
    let (outcome, requests) = delete(script).await;
    assert_eq!(outcome, Err(ProviderFailure::RemovalDrift), "it never goes away");
    // Fewer polls than are allowed in number, because of the pauses between them: the time is up first.
    assert!((3..=30).contains(&requests.len()), "{}", requests.len());
    assert_eq!(requests.iter().filter(|request| *request == DELETE).count(), 1);
}

/// CRM-092, CRM-093
#[tokio::test]
async fn only_a_present_observation_of_this_cluster_with_its_reserved_keys_is_deleted() {
    let stand_in = StandIn::start(vec![absent()]).await;
    let workers = stand_in.workers();
    let foreign = crate::planner::connector::testing::live(&sink());
    let nothing = ManagedConnectorObservation::absent(workers.binding().clone(), name("sink"));
    let mut blank = config(&sink());
    blank.insert("topics".into(), json!(""));
    let blank = ManagedConnectorObservation::present(workers.binding().clone(), name("sink"), blank).expect("one");
    for current in [foreign, nothing, blank] {
        let outcome = workers.delete_managed_connector(&ctx(), &HandGuard::default(), &current).await;
        assert_eq!(outcome, Err(ProviderFailure::RemovalDrift));
    }
    assert!(stand_in.requests().is_empty());
}

#[tokio::test]
async fn a_right_that_is_lost_stops_a_deletion_before_or_after_its_request() {
    let lost = HandGuard::default();
    lost.0.cancel();
    let stand_in = StandIn::start(vec![shown(200, &sink()), gone(), absent()]).await;
    let workers = stand_in.workers();
    let outcome = workers.delete_managed_connector(&ctx(), &lost, &live(&workers, &sink())).await;
    assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
    assert_eq!(stand_in.requests(), [GET]);

    let guard = HandGuard::default();
    let stand_in = StandIn::start(vec![shown(200, &sink()), Play::LoseGuard(guard.clone())]).await;
    let workers = stand_in.workers();
    let outcome = workers.delete_managed_connector(&ctx(), &guard, &live(&workers, &sink())).await;
    assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: true }));
    assert_eq!(stand_in.requests(), [GET, DELETE]);
}

/// SEC-003
#[tokio::test]
async fn a_judgement_keeps_names_and_counts_and_no_resolved_value() {
    let validated = json!({"name": "C", "error_count": 3, "groups": [], "configs": [
        {"definition": {"name": "file"}, "value": {"name": "file", "value": "sentinel-1", "errors": ["sentinel-2"]}},
        {"definition": {"name": "x y"}, "value": {"name": "x y=sentinel-3", "value": null, "errors": ["a", "b"]}},
        {"definition": {"name": "topics"}, "value": {"name": "topics", "value": "t", "errors": []}},
    ]});
    let judge = async |script: Vec<Play>| {
        let stand_in = StandIn::start(script).await;
        let verdicts = stand_in.workers().validate(&ctx(), &[sink()]).await.expect("a verdict");
        (verdicts, stand_in.requests())
    };
    let plugins = |class: &str, kind: &str| Play::Json(200, json!([{"class": class, "type": kind, "version": "1"}]));
    let own = || plugins("io.example.SinkConnector", "sink");
    let (verdict, requests) = judge(vec![own(), Play::Json(200, validated)]).await;
    assert_eq!(verdict, [ConfigVerdict::Refused { keys: vec!["file".to_owned()], errors: 3 }]);
    assert_eq!(requests, ["GET /connector-plugins", "PUT /connector-plugins/io.example.SinkConnector/config/validate"]);
    let sound = || Play::Json(200, json!({"error_count": 0, "configs": []}));
    for listed in [own(), plugins("io.example.SinkConnector", "?"), error(500)] {
        assert_eq!(judge(vec![listed, sound()]).await.0, [ConfigVerdict::Sound]);
    }
    let other = || plugins("io.example.OtherConnector", "sink");
    assert_eq!(judge(vec![other(), sound()]).await.0, [ConfigVerdict::Sound], "another worker may have it");
    assert_eq!(judge(vec![other(), error(500)]).await.0, [ConfigVerdict::NoPlugin]);
    let (verdict, requests) = judge(vec![plugins("io.example.SinkConnector", "source")]).await;
    assert_eq!((verdict, requests.len()), (vec![ConfigVerdict::NotASink], 1));
    for script in [
        vec![own(), error(500)],
        vec![error(500), error(500)],
        vec![error(500), error(404)],
        vec![Play::Json(200, json!({})), error(500)],
        vec![own(), error(503)],
        vec![own(), Play::Drop],
        vec![Play::Drop, Play::Drop],
        vec![own(), Play::Json(200, json!({"configs": []}))],
    ] {
        assert_eq!(judge(script).await.0, [ConfigVerdict::Unknown]);
    }
    let stand_in = StandIn::start(vec![]).await;
    assert_eq!(stand_in.workers().validate(&ctx(), &[]).await, Ok(Vec::new()));
    assert!(stand_in.requests().is_empty());
}

#[tokio::test]
async fn a_status_holds_states_and_no_trace() {
    let body = json!({"name": "sink", "type": "sink",
        "connector": {"state": "RUNNING", "worker_id": "sentinel:1"},
        "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w", "trace": "sentinel"}, {"id": 1, "state": "PAUSED"}]});
    let stand_in = StandIn::start(vec![Play::Json(200, body), absent()]).await;
    let workers = stand_in.workers();
    let status = workers.status(&ctx(), &name("sink")).await.expect("an answer").expect("a connector");
    assert_eq!(status, ConnectorStatus { state: RunState::Running, tasks: vec![RunState::Failed, RunState::Paused] });
    assert_eq!(workers.status(&ctx(), &name("sink")).await, Ok(None));
    assert_eq!(stand_in.requests()[0], "GET /connectors/sink/status");
}

/// SEC-003, SEC-004
#[tokio::test]
async fn the_login_is_sent_and_shown_nowhere() {
    let stand_in = StandIn::start(vec![error(401)]).await;
    let workers = stand_in.workers();
    let failure = workers.probe(&ctx()).await.expect_err("401");
    let head = stand_in.heads.lock().expect("unpoisoned")[0].to_ascii_lowercase();
    assert!(head.contains("authorization: basic dtpzzw50aw5lbc1wdw=="), "{head}");
    let shown = format!("{workers:?} {failure:?} {}", failure.diagnostic("x").message);
    assert!(!shown.contains("sentinel") && !shown.contains("127.0.0.1"), "{shown}");
    assert_eq!(Identity::Connector("a".into()).to_string(), "connector:a");
}

/// CRM-009
#[test]
fn a_client_serves_the_default_cluster_or_none() {
    let cluster =
        |url: &str| ConnectCluster { rest_url: url.to_owned(), auth: BasicAuth::default(), tls: Tls::default() };
    let build = |default: Option<&str>, url: &str| {
        let clusters = BTreeMap::from([("a".to_owned(), cluster(url))]);
        let runtime = ConnectRuntime { default: default.map(str::to_owned), clusters };
        ConnectClient::new(&runtime, Path::new("/")).map(|_| ())
    };
    assert_eq!(build(Some("a"), "http://h:8083"), Ok(()));
    for (default, url) in [(None, "http://h"), (Some("b"), "http://h"), (Some("a"), "http://u:p@h"), (Some("a"), "h")] {
        let failure = build(default, url).expect_err("no client");
        assert_eq!(failure.code(), Code::E208MissingConfig);
        assert!(!failure.to_string().contains("u:p"), "{failure}");
    }
}
