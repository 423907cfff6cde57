//! The client against a real cluster: what a job id guarantees, and what is told of SQL that Flink refuses.

use std::time::Duration;

use streamt::planner::flink::JobState;
use streamt::providers::{Ctx, ProviderFailure, Purpose};
use tokio_util::sync::CancellationToken;

use super::cluster::{ENDLESS, Place, artifact, fresh_id};
use crate::faults::{Fault, Order, Proxy, answer, every, first};
use crate::support::{Open, unique};

fn proxied() -> (Place, Place, Proxy, Order) {
    let place = Place::shared();
    let order = Order::default();
    let gateway = Proxy::http(&order, &place.gateway);
    let through = Place { rest: place.rest.clone(), gateway: gateway.url() };
    (place, through, gateway, order)
}

fn is_insert(request: &crate::faults::Request) -> bool {
    request.says("INSERT INTO")
}

/// One id makes one job: twice at the same moment, again afterwards, and after the first was cancelled.
#[test]
fn an_id_is_taken_once_however_often_it_is_sent() {
    let place = Place::shared();
    let (name, id) = (unique("once"), fresh_id());
    let (client, job) = (place.client(), artifact(&name, ENDLESS));
    let both = crate::estate::blocking(async {
        let ctx = Ctx::new(Purpose::Apply, Duration::from_secs(120), CancellationToken::new());
        tokio::join!(client.submit(&ctx, &Open, &job, &id), client.submit(&ctx, &Open, &job, &id))
    });
    let both = [both.0, both.1];
    assert!(both.iter().any(Result::is_ok), "{both:?}");
    for submitted in both.into_iter().flatten() {
        assert_eq!(submitted.id, id);
    }
    let running = place.running(&name);
    assert_eq!(running["jid"], id.as_str());
    // Known by its id, it is not sent again.
    assert_eq!(place.submit(&name, &id).expect("known").id, id);
    // Under another id the name is taken.
    assert!(matches!(place.submit(&name, &fresh_id()), Err(ProviderFailure::Conflict { .. })));
    place.cancel(&name);
    place.job_when(&name, |job| job["state"] == "CANCELED");
    assert_eq!(place.submit(&name, &id).expect("known").id, id);
    assert_eq!(place.jobs(&name).len(), 1);
}

/// The answer to the INSERT is lost, before or after the gateway saw it, in every way that a network has.
#[test]
fn a_lost_answer_never_makes_a_second_job() {
    let (place, through, gateway, order) = proxied();
    let trace = r#"{"errors":["Internal server error.","<Exception on server side:\njava.lang.RuntimeException: s3ntinel\n\tat a.b.C(D.java:1)\n>"]}"#;
    let refusal = answer("500 Internal Server Error", &[("content-type", "application/json")], trace);
    for (what, fault) in [
        ("cut", Fault::CutBefore),
        ("lost", Fault::LoseAnswer),
        ("half", Fault::HalfAnswer),
        ("silent", Fault::SilenceAnswer),
        ("trace", Fault::Answer(refusal)),
    ] {
        let (name, id) = (unique(what), fresh_id());
        let hit = gateway.rule(first(is_insert), fault);
        let mark = order.mark(what);
        let submitted = through.submit(&name, &id).unwrap_or_else(|failure| panic!("{what}: {failure:?}"));
        assert_eq!((hit.count(), &submitted.id), (1, &id), "{what}");
        assert_eq!(place.running(&name)["jid"], id.as_str(), "{what}");
        let statements = order.records().into_iter().filter(|r| r.number > mark && r.what.ends_with("/statements"));
        assert!(statements.count() <= 6, "{what}: at most two rounds");
        gateway.disarm();
        place.cancel(&name);
    }
}

/// A gateway that answers nothing but errors: known no effect before the INSERT, unknown after it, and never its words.
#[test]
fn a_gateway_that_only_fails_is_told_by_code_and_nothing_of_its_trace_is_shown() {
    let (place, through, gateway, _) = proxied();
    let trace = r#"{"errors":["java.lang.IllegalStateException: s3ntinel\n\tat a.b.C(D.java:1)"]}"#;
    let refusal = answer("500 Internal Server Error", &[("content-type", "application/json")], trace);
    gateway.rule(every(is_insert), Fault::Answer(refusal.clone()));
    let name = unique("failing");
    let failure = through.submit(&name, &fresh_id()).expect_err("nobody knows");
    assert!(matches!(failure, ProviderFailure::Uncertain { .. }), "{failure:?}");
    let told = failure.diagnostic("flink_job:x: submit").message;
    assert!(!told.contains("s3ntinel") && !told.contains("D.java"), "{told}");
    gateway.disarm();
    gateway.rule(every(|request| request.what.starts_with("POST")), Fault::Answer(refusal));
    let failure = through.submit(&name, &fresh_id()).expect_err("no session");
    assert!(!failure.may_have_effect(), "{failure:?}");
    gateway.disarm();
    gateway.refuse();
    assert_eq!(through.submit(&name, &fresh_id()), Err(ProviderFailure::Unreachable));
    assert_eq!(place.jobs(&name).len(), 0);
    let away = Place { rest: "http://127.0.0.1:1".to_owned(), gateway: place.gateway.clone() };
    assert_eq!(away.submit(&name, &fresh_id()), Err(ProviderFailure::Unreachable));
}

/// Tables and the INSERT itself.
#[test]
fn sql_that_flink_refuses_makes_no_job_and_is_told_in_one_line() {
    let place = Place::shared();
    for (sql, told) in [
        ("CREATE TABLE a (x INT) WITH ('connector' = 'nowhere'); INSERT INTO a SELECT 1;", "nowhere"),
        ("CREATE TABLE b (x INT) WITH ('connector' = 'blackhole'); INSERT INTO b SELECT y FROM b;", "'y'"),
        ("CREATE TABLE b (x INT) WITH ('connector' = 'blackhole'); INSERT INTO b SELEC 1;", "illegal context"),
    ] {
        let name = unique("refused");
        let failure = place.submit_sql(&name, &fresh_id(), sql).expect_err("refused");
        let ProviderFailure::SqlRefused { text: Some(text) } = &failure else { panic!("{failure:?}") };
        let text = text.to_string();
        assert!(text.contains(told), "{text}");
        assert!(!text.contains("\tat ") && !text.contains('\n'), "{text}");
        assert_eq!(place.jobs(&name).len(), 0);
    }
}

/// RUNNING says nothing about tasks: a job that asks for more slots than there are has none that runs.
#[test]
fn a_job_without_slots_is_running_without_a_task() {
    let place = Place::shared();
    let (name, id) = (unique("wide"), fresh_id());
    let sql = format!("SET 'parallelism.default' = '400'; {ENDLESS}");
    place.submit_sql(&name, &id, &sql).expect("submitted");
    place.job_when(&name, |job| job["state"] == "RUNNING");
    let (client, names) = (place.client(), [name.clone()].into());
    let ctx = Ctx::new(Purpose::Status, Duration::from_secs(30), CancellationToken::new());
    let seen = crate::estate::blocking(async move { client.observe(&ctx, &names).await }).expect("observed");
    let job = seen[&name].job.as_ref().expect("a job");
    assert_eq!((job.state, job.tasks.all_run()), (JobState::Running, false), "{job:?}");
    place.cancel(&name);
}

/// A job that fails at once was submitted all the same; why is told in one line.
#[test]
fn the_root_cause_of_a_failed_job_is_one_line() {
    let place = Place::shared();
    let (name, id) = (unique("failing"), fresh_id());
    let sql = "SET 'restart-strategy.type' = 'none';
CREATE TABLE a (x INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');
CREATE TABLE b (x INT) WITH ('connector' = 'blackhole');
INSERT INTO b SELECT CAST('no number' || CAST(x AS STRING) AS INT) FROM a;";
    place.submit_sql(&name, &id, sql).expect("submitted");
    place.job_when(&name, |job| job["state"] == "FAILED");
    // The JobManager answers from a cache for a moment, which is waited out.
    let (client, jobs) = (place.client(), [(id.clone(), JobState::Failed)].into());
    let ctx = Ctx::new(Purpose::Status, Duration::from_secs(30), CancellationToken::new());
    let known = crate::estate::blocking(async move { client.failures(&ctx, &jobs).await }).expect("asked");
    let text = known[&id].to_string();
    assert!(text.contains("no number") && !text.contains("\tat "), "{text}");
}
