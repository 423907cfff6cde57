//! Against an in-process stand-in that plays scripted answers and records every request, for faults that no real Flink can be
//! asked for.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::codes::Code;
use crate::compiler::artifact::{FlinkJobArtifact, OwnerType, Ownership};
use crate::compiler::testing::flink_cluster;
use crate::planner::flink::{JobId, JobState};
use crate::project::model::OwnershipMode;
use crate::project::secret::Secret;
use crate::providers::guard::testing::HandGuard;
use crate::providers::testing::{Play, StandIn};
use crate::providers::{Ctx, Identity, Purpose};

pub fn cluster(rest: Option<&str>, gateway: Option<&str>) -> FlinkCluster {
    FlinkCluster {
        rest_url: rest.map(str::to_owned),
        sql_gateway_url: gateway.map(str::to_owned),
        api_key: Some(Secret::new("sentinel-key")),
        timeout: 2,
        statement_timeout: 5,
        ..flink_cluster()
    }
}

pub fn artifact(sql: &str) -> FlinkJobArtifact {
    FlinkJobArtifact {
        name: "clean_processor".to_owned(),
        sql: sql.to_owned(),
        cluster: None,
        parallelism: None,
        checkpoint_interval_ms: None,
        state_backend: None,
        state_ttl_ms: None,
        ownership: Ownership {
            mode: OwnershipMode::Managed,
            project: "shop".to_owned(),
            owner_type: OwnerType::Model,
            name: "clean".to_owned(),
        },
    }
}

const ID: &str = "0123456789abcdef0123456789abcdef";
const HANDLE: &str = "0b7cd1f8-4c59-4a63-9d0c-2f8f50c5a9ef";
const SQL: &str = "CREATE TABLE s (a INT) WITH ('connector' = 'blackhole');\nINSERT INTO s SELECT 1;";

fn ctx() -> Ctx {
    Ctx::new(Purpose::Apply, Duration::from_secs(20), CancellationToken::new())
}

fn id() -> JobId {
    JobId::parse(ID).expect("an id")
}

fn ok(body: Value) -> Play {
    Play::Json(200, body)
}

fn no_job() -> Play {
    Play::Json(404, json!({"errors": ["org.apache.flink.runtime.rest.NotFoundException: Job not found"]}))
}

fn job_named(name: &str) -> Play {
    ok(json!({"jid": ID, "name": name, "state": "RUNNING"}))
}

fn job() -> Play {
    job_named("clean_processor")
}

fn listed(jobs: &[(&str, &str, i64)]) -> Play {
    let jobs: Vec<Value> = jobs
        .iter()
        .enumerate()
        .map(|(index, (name, state, start))| {
            json!({"jid": format!("{index:032x}"), "name": name, "state": state, "start-time": start, "end-time": -1,
                   "tasks": {"running": 1, "finished": 0, "total": 2}})
        })
        .collect();
    ok(json!({"jobs": jobs}))
}

fn status(status: &str) -> Play {
    ok(json!({"status": status}))
}

fn operation() -> Play {
    ok(json!({"operationHandle": HANDLE}))
}

/// A session opened and the one table created.
fn prepared() -> Vec<Play> {
    let session = ok(json!({"sessionHandle": HANDLE}));
    vec![ok(json!({"versions": ["V1", "V2", "V3", "V4"]})), session, operation(), status("FINISHED")]
}

fn closed() -> Play {
    status("CLOSED")
}

fn trace(cause: &str) -> Play {
    let trace = format!(
        "<Exception on server side:\norg.apache.flink.table.gateway.api.utils.SqlGatewayException: Failed\n\tat a.b(C.java:1)\n\
         Caused by: java.lang.RuntimeException: outer\n\t... 4 more\nCaused by: {cause}\n\t... 5 more\n>"
    );
    Play::Json(500, json!({"errors": ["Internal server error.", trace]}))
}

async fn submit(scripts: Vec<Vec<Play>>) -> (Result<Submitted, ProviderFailure>, Vec<String>) {
    submit_under(&HandGuard::default(), scripts).await
}

async fn submit_under(guard: &HandGuard, scripts: Vec<Vec<Play>>) -> (Result<Submitted, ProviderFailure>, Vec<String>) {
    let stand_in = StandIn::start([vec![vec![no_job(), listed(&[])]], scripts].concat().concat()).await;
    let client = client(&stand_in.url);
    let outcome = client.submit(&ctx(), guard, &artifact(SQL), &id()).await;
    let inserts = stand_in.bodies().iter().filter(|body| String::from_utf8_lossy(body).contains("INSERT INTO")).count();
    let mut requests = stand_in.requests();
    requests.push(format!("{inserts} inserts"));
    (outcome, requests)
}

fn client(url: &str) -> FlinkClient {
    FlinkClient::new(&cluster(Some(url), Some(url)), None, None, Path::new("/")).expect("a client")
}

fn submitted() -> Submitted {
    Submitted { id: id(), state: JobState::Running, failure: None }
}

fn uncertain() -> ProviderFailure {
    ProviderFailure::Uncertain { stage: "submit", unresolved: vec![Identity::Job("clean_processor".to_owned())] }
}

#[tokio::test]
async fn a_job_is_submitted_once_and_proved_by_its_id() {
    let script = vec![prepared(), vec![operation(), status("RUNNING"), status("FINISHED"), closed(), job()]];
    let (outcome, requests) = submit(script).await;
    assert_eq!(outcome, Ok(submitted()));
    let base = format!("/v3/sessions/{HANDLE}");
    let expected = [
        format!("GET /jobs/{ID}"),
        "GET /jobs/overview".to_owned(),
        "GET /api_versions".to_owned(),
        "POST /v3/sessions".to_owned(),
        format!("POST {base}/statements"),
        format!("GET {base}/operations/{HANDLE}/status"),
        format!("POST {base}/statements"),
        format!("GET {base}/operations/{HANDLE}/status"),
        format!("GET {base}/operations/{HANDLE}/status"),
        format!("DELETE {base}"),
        format!("GET /jobs/{ID}"),
        "1 inserts".to_owned(),
    ];
    assert_eq!(requests, expected);
}

#[tokio::test]
async fn name_and_id_travel_beside_the_insert_and_never_as_a_setting_of_the_session() {
    let script = [vec![no_job(), listed(&[])], prepared(), vec![operation(), status("FINISHED"), closed(), job()]];
    let stand_in = StandIn::start(script.concat()).await;
    client(&stand_in.url).submit(&ctx(), &HandGuard::default(), &artifact(SQL), &id()).await.expect("submitted");
    let bodies: Vec<Value> = stand_in.bodies().iter().filter_map(|body| serde_json::from_slice(body).ok()).collect();
    let expected = json!({
        "statement": "INSERT INTO s SELECT 1",
        "executionConfig": {"pipeline.name": "clean_processor", "$internal.pipeline.job-id": ID},
    });
    assert_eq!(bodies.last(), Some(&expected));
    assert_eq!(
        bodies[bodies.len() - 2],
        json!({"statement": "CREATE TABLE s (a INT) WITH ('connector' = 'blackhole')"})
    );
}

/// SAF-044: what lives under that name already is not this operation's.
#[tokio::test]
async fn a_live_job_of_the_name_is_a_conflict_and_nothing_is_sent() {
    let stand_in = StandIn::start(vec![no_job(), listed(&[("clean_processor", "RESTARTING", 1)])]).await;
    let outcome = client(&stand_in.url).submit(&ctx(), &HandGuard::default(), &artifact(SQL), &id()).await;
    assert_eq!(outcome, Err(ProviderFailure::Conflict { what: "a job of this name is live" }));
    assert_eq!(stand_in.requests().len(), 2);
}

#[tokio::test]
async fn a_job_that_has_the_id_already_is_reported_and_nothing_is_sent() {
    let stand_in = StandIn::start(vec![job()]).await;
    let outcome = client(&stand_in.url).submit(&ctx(), &HandGuard::default(), &artifact(SQL), &id()).await;
    assert_eq!(outcome, Ok(submitted()));
    assert_eq!(stand_in.requests(), [format!("GET /jobs/{ID}")]);
}

/// A session that a restarted gateway forgot costs one new session, as long as no INSERT was sent.
#[tokio::test]
async fn a_session_lost_before_the_insert_is_opened_again_once() {
    let lost = || [prepared()[..3].to_vec(), vec![trace("Session does not exist."), closed()]].concat();
    let script = vec![lost(), prepared(), vec![operation(), status("FINISHED"), closed(), job()]];
    let (outcome, requests) = submit(script).await;
    assert_eq!(outcome, Ok(submitted()));
    assert_eq!(requests.last().map(String::as_str), Some("1 inserts"));
    let (outcome, requests) = submit(vec![lost(), lost()]).await;
    assert!(matches!(outcome, Err(ProviderFailure::Rejected { .. })), "{outcome:?}");
    assert_eq!(requests.last().map(String::as_str), Some("0 inserts"));
}

#[tokio::test]
async fn a_lost_answer_with_the_job_there_is_not_sent_again() {
    let (outcome, requests) = submit(vec![prepared(), vec![Play::Drop, closed(), job()]]).await;
    assert_eq!(outcome, Ok(submitted()));
    assert_eq!(requests.last().map(String::as_str), Some("1 inserts"));
}

#[tokio::test]
async fn a_lost_answer_without_the_job_is_settled_by_the_same_id() {
    let again = vec![operation(), status("FINISHED"), closed(), job()];
    let (outcome, requests) = submit(vec![prepared(), vec![Play::Drop, closed(), no_job()], prepared(), again]).await;
    assert_eq!(outcome, Ok(submitted()));
    assert_eq!(requests.last().map(String::as_str), Some("2 inserts"));
}

/// The first request arrived late: the second is refused as a duplicate, and the JobManager's answer decides.
#[tokio::test]
async fn a_settling_request_that_is_refused_as_a_duplicate_leaves_the_first_job() {
    let again = vec![operation(), status("ERROR"), trace("DuplicateJobSubmissionException"), closed(), job()];
    let (outcome, _) = submit(vec![prepared(), vec![Play::Drop, closed(), no_job()], prepared(), again]).await;
    assert_eq!(outcome, Ok(submitted()));
}

#[tokio::test]
async fn an_insert_without_answer_and_without_job_twice_is_uncertain_and_sent_no_third_time() {
    let unanswered = || [prepared(), vec![Play::Drop, closed(), no_job()]].concat();
    // A third attempt would be taken.
    let third = [prepared(), vec![operation(), status("FINISHED"), closed(), job()]].concat();
    let (outcome, requests) = submit(vec![unanswered(), unanswered(), third]).await;
    assert_eq!(outcome, Err(uncertain()));
    assert_eq!(requests.last().map(String::as_str), Some("2 inserts"));
}

/// A gateway that was restarted while it had the INSERT knows neither session nor operation.
#[tokio::test]
async fn an_operation_that_the_gateway_forgot_is_settled() {
    let first = vec![operation(), trace("Session does not exist."), trace("Session does not exist."), no_job()];
    let again = vec![operation(), status("FINISHED"), closed(), job()];
    let (outcome, requests) = submit(vec![prepared(), first, prepared(), again]).await;
    assert_eq!(outcome, Ok(submitted()));
    assert_eq!(requests.last().map(String::as_str), Some("2 inserts"));
}

/// SEC-003
#[tokio::test]
async fn sql_that_flink_refuses_is_told_by_its_innermost_cause_and_nothing_else_of_the_trace() {
    let cause = "org.apache.flink.table.api.ValidationException: Object 'x' not found, key sentinel-key";
    let refused = vec![operation(), status("ERROR"), trace(cause), closed(), no_job(), no_job()];
    let (outcome, requests) = submit(vec![prepared(), refused]).await;
    let failure = outcome.expect_err("refused");
    assert!(!failure.may_have_effect());
    let told = failure.diagnostic("flink_job:clean_processor: submit");
    assert_eq!(told.code, Code::E403FlinkSqlError);
    assert_eq!(
        told.message,
        "flink_job:clean_processor: submit was refused by Flink: org.apache.flink.table.api.ValidationException: \
         Object 'x' not found, key <redacted>"
    );
    assert_eq!(requests.last().map(String::as_str), Some("1 inserts"));
}

#[tokio::test]
async fn a_table_that_flink_refuses_sends_no_insert() {
    let mut script = prepared();
    script.truncate(3);
    let refused = vec![status("ERROR"), trace("ValidationException: no such connector"), closed()];
    let (outcome, requests) = submit(vec![script, refused]).await;
    assert!(matches!(outcome, Err(ProviderFailure::SqlRefused { text: Some(_) })), "{outcome:?}");
    assert_eq!(requests.last().map(String::as_str), Some("0 inserts"));
}

#[tokio::test]
async fn an_id_that_runs_under_another_name_is_uncertain() {
    let script = vec![prepared(), vec![operation(), status("FINISHED"), closed(), job_named("other")]];
    assert_eq!(submit(script).await.0, Err(uncertain()));
}

/// A 404 of something in front of the JobManager proves nothing.
#[tokio::test]
async fn a_404_that_is_not_flinks_own_is_no_proof_of_absence() {
    let stand_in = StandIn::start(vec![Play::Json(404, json!({"detail": "no route"})), listed(&[])]).await;
    let outcome = client(&stand_in.url).submit(&ctx(), &HandGuard::default(), &artifact(SQL), &id()).await;
    assert!(matches!(outcome, Err(ProviderFailure::Rejected { .. })), "{outcome:?}");
    assert_eq!(stand_in.requests().len(), 1, "nothing follows from it");
}

#[tokio::test]
async fn a_right_lost_before_the_insert_sends_none_and_one_lost_with_it_is_uncertain() {
    let guard = HandGuard::default();
    guard.0.cancel();
    let (outcome, requests) = submit_under(&guard, vec![prepared(), vec![closed()]]).await;
    assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
    assert_eq!(requests.last().map(String::as_str), Some("0 inserts"));
    let guard = HandGuard::default();
    let script = vec![prepared(), vec![Play::LoseGuard(guard.clone()), closed()]];
    let (outcome, requests) = submit_under(&guard, script).await;
    assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: true }));
    assert_eq!(requests.last().map(String::as_str), Some("1 inserts"));
}

#[tokio::test]
async fn a_cluster_without_gateway_or_jobmanager_is_told_so_before_anything_is_asked() {
    let client =
        FlinkClient::new(&cluster(Some("http://127.0.0.1:1"), None), None, None, Path::new("/")).expect("client");
    let outcome = client.submit(&ctx(), &HandGuard::default(), &artifact(SQL), &id()).await;
    assert_eq!(outcome.expect_err("no gateway").code(), Code::E206SqlGatewayNotConfigured);
    let client =
        FlinkClient::new(&cluster(None, Some("http://127.0.0.1:1")), None, None, Path::new("/")).expect("client");
    assert_eq!(client.probe(&ctx()).await.expect_err("no rest_url").code(), Code::E208MissingConfig);
}

async fn observed(jobs: &[(&str, &str, i64)]) -> Result<Option<(String, JobState)>, ProviderFailure> {
    let stand_in = StandIn::start(vec![listed(jobs)]).await;
    let names = ["a".to_owned()].into();
    let seen = client(&stand_in.url).observe(&ctx(), &names).await?;
    Ok(seen["a"].job.as_ref().map(|job| (job.id.to_string(), job.state)))
}

#[tokio::test]
async fn a_job_is_found_by_its_exact_name_and_two_live_ones_are_ambiguous() {
    let at = |index: u8| format!("{index:032x}");
    assert_eq!(observed(&[("aa", "RUNNING", 1), ("A", "RUNNING", 1), ("x_a", "RUNNING", 2)]).await, Ok(None));
    let ended_and_live = [("a", "FAILED", 9), ("a", "RUNNING", 1), ("a", "CANCELED", 3)];
    assert_eq!(observed(&ended_and_live).await, Ok(Some((at(1), JobState::Running))));
    let ended = [("a", "FAILED", 1), ("a", "CANCELED", 3), ("a", "FINISHED", 2)];
    assert_eq!(observed(&ended).await, Ok(Some((at(1), JobState::Canceled))));
    let two = [("a", "RUNNING", 1), ("a", "RESTARTING", 2)];
    assert!(matches!(observed(&two).await, Err(ProviderFailure::Ambiguous { .. })));
    assert!(matches!(observed(&[("a", "NEW_STATE", 1)]).await, Err(ProviderFailure::Protocol { .. })));
}

fn exceptions(cause: Option<&str>) -> Play {
    let trace =
        |cause| format!("java.lang.RuntimeException: outer\n\tat a.b(C.java:1)\nCaused by: {cause}\n\t... 3 more");
    let entries: Vec<Value> = cause.into_iter().map(|cause| json!({"stacktrace": trace(cause)})).collect();
    ok(json!({"exceptionHistory": {"entries": entries, "truncated": false}}))
}

/// A JobManager says that a job has failed a moment before it says why.
#[tokio::test]
async fn a_failed_job_without_a_cause_is_looked_at_again_until_there_is_one() {
    for state in JobState::ALL.into_iter().filter(|state| state.has_failed()) {
        let script = vec![exceptions(None), exceptions(None), exceptions(Some("NoTopic: sentinel-key"))];
        let stand_in = StandIn::start(script).await;
        let known = client(&stand_in.url).failures(&ctx(), &[(id(), state)].into()).await.expect("asked");
        assert_eq!(known[&id()].to_string(), "NoTopic: <redacted>");
        assert_eq!(stand_in.requests(), vec![format!("GET /jobs/{ID}/exceptions?maxExceptions=1"); 3]);
    }
}

#[tokio::test]
async fn a_job_that_no_failure_stopped_is_asked_about_once_and_nothing_is_missed() {
    for state in JobState::ALL.into_iter().filter(|state| !state.has_failed()) {
        let stand_in = StandIn::start(vec![exceptions(None)]).await;
        let known = client(&stand_in.url).failures(&ctx(), &[(id(), state)].into()).await.expect("asked");
        assert!(known.is_empty() && why(state, None).is_none(), "{state}");
        assert_eq!(stand_in.requests().len(), 1, "{state}");
    }
}

/// The looking has an end, for all jobs together, and neither that nor a look without an answer loses what is known.
#[tokio::test]
async fn a_cause_that_does_not_come_is_said_to_be_missing() {
    let first = JobId::parse(&"0".repeat(32)).expect("an id");
    let jobs = [(first.clone(), JobState::Failed), (id(), JobState::Failed)].into();
    let begun = || vec![exceptions(Some("NoTopic")), exceptions(None)];
    for (script, end) in [
        ([begun(), vec![exceptions(None); 50]].concat(), Duration::from_millis(900)),
        ([begun(), vec![Play::Drop]].concat(), Duration::from_secs(20)),
    ] {
        let stand_in = StandIn::start(script).await;
        let ctx = Ctx::new(Purpose::Status, end, CancellationToken::new());
        let known = client(&stand_in.url).failures(&ctx, &jobs).await.expect("asked");
        assert_eq!(known.keys().collect::<Vec<_>>(), [&first]);
        assert!((3..20).contains(&stand_in.requests().len()), "{:?}", stand_in.requests());
    }
    assert_eq!(why(JobState::Failed, None).as_deref(), Some("Flink tells no cause yet"));
}

/// The gateway gave up on an INSERT that the JobManager has or will have: its job is what counts.
#[tokio::test]
async fn a_refused_insert_whose_job_shows_itself_late_is_submitted() {
    let refused = || vec![operation(), status("ERROR"), trace("TimeoutException"), closed()];
    for evidence in [vec![job()], vec![no_job(), job()]] {
        let (outcome, requests) = submit(vec![prepared(), refused(), evidence]).await;
        assert_eq!(outcome, Ok(submitted()));
        assert_eq!(requests.last().map(String::as_str), Some("1 inserts"));
    }
}

/// 408 and 429 say nothing about what became of the request.
#[tokio::test]
async fn an_insert_that_is_answered_with_patience_is_looked_for() {
    for code in [408, 429, 500, 503] {
        let answer = Play::Json(code, json!({"errors": ["later"]}));
        let (outcome, requests) = submit(vec![prepared(), vec![answer, closed(), job()]]).await;
        assert_eq!(outcome, Ok(submitted()), "{code}");
        assert_eq!(requests.last().map(String::as_str), Some("1 inserts"), "{code}");
    }
    let refused = Play::Json(400, json!({"errors": ["Caused by: bad request, key sentinel-key"]}));
    let (outcome, _) = submit(vec![prepared(), vec![refused, closed()]]).await;
    let Err(ProviderFailure::Rejected { text: Some(text), .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(text.to_string(), "bad request, key <redacted>");
}

/// Only FINISHED is a success, and an unknown word is no end.
#[tokio::test]
async fn a_table_whose_statement_did_not_finish_sends_no_insert() {
    for ended in ["CANCELED", "CLOSED", "TIMEOUT", "ERROR"] {
        let script = [prepared()[..3].to_vec(), vec![status(ended), trace("it ended"), closed()]].concat();
        let (outcome, requests) = submit(vec![script]).await;
        assert!(matches!(outcome, Err(ProviderFailure::SqlRefused { .. })), "{ended}: {outcome:?}");
        assert_eq!(requests.last().map(String::as_str), Some("0 inserts"), "{ended}");
    }
    let unknown = || [prepared()[..3].to_vec(), vec![status("DREAMING"), closed()]].concat();
    let (outcome, requests) = submit(vec![unknown(), unknown()]).await;
    assert_eq!(outcome, Err(ProviderFailure::Protocol { what: "operation status" }));
    assert_eq!(requests.last().map(String::as_str), Some("0 inserts"));
}

/// What a service calls a handle goes into a path, and what it says of another job proves nothing.
#[tokio::test]
async fn a_handle_that_is_none_is_not_followed_and_another_job_is_no_evidence() {
    let session = ok(json!({"sessionHandle": "../../jobs"}));
    let (outcome, requests) = submit(vec![vec![prepared()[0].clone(), session]]).await;
    assert_eq!(outcome, Err(ProviderFailure::Protocol { what: "session" }));
    assert_eq!(requests[requests.len() - 2], "POST /v3/sessions", "{requests:?}");
    let other = ok(json!({"jid": "f".repeat(32), "name": "clean_processor", "state": "RUNNING"}));
    let stand_in = StandIn::start(vec![other]).await;
    let outcome = client(&stand_in.url).submit(&ctx(), &HandGuard::default(), &artifact(SQL), &id()).await;
    assert_eq!(outcome, Err(ProviderFailure::Protocol { what: "job" }));
}

/// A read is asked again as often as the cluster's `retries` say, and only for what passes.
#[tokio::test]
async fn a_read_is_asked_again_while_the_service_is_away_and_for_nothing_else() {
    let away = || Play::Json(503, json!({"errors": ["no leader"]}));
    let observe = async |script: Vec<Play>, retries: u32| {
        let stand_in = StandIn::start(script).await;
        let cluster = FlinkCluster { retries, ..cluster(Some(&stand_in.url), None) };
        let client = FlinkClient::new(&cluster, None, None, Path::new("/")).expect("a client");
        let outcome = client.observe(&ctx(), &["a".to_owned()].into()).await;
        (outcome.map(|seen| seen.len()), stand_in.requests().len())
    };
    assert_eq!(observe(vec![away(), Play::Drop, listed(&[])], 2).await, (Ok(1), 3));
    let (outcome, asked) = observe(vec![away(), away(), listed(&[])], 1).await;
    assert!(matches!(outcome, Err(ProviderFailure::Busy { .. })), "{outcome:?}");
    assert_eq!(asked, 2);
    let (outcome, asked) = observe(vec![Play::Json(500, json!({})), listed(&[])], 2).await;
    assert!(outcome.is_err());
    assert_eq!(asked, 1);
}
