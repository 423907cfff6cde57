//! Gateway and JobManager die under a submission. Whatever the moment: one job or none, and the answer says which.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use streamt::providers::ProviderFailure;

use super::cluster::{Own, Place, fresh_id, request};
use crate::faults::{Fault, Order, Proxy, Request, first};
use crate::support::unique;

fn is_insert(request: &Request) -> bool {
    request.says("INSERT INTO")
}

fn one_job(place: &Place, name: &str, id: &str) {
    let job = place.running(name);
    assert_eq!(job["jid"], id);
    // What a gateway still holds would come within moments.
    thread::sleep(Duration::from_secs(1));
    assert_eq!(place.jobs(name).len(), 1);
    place.cancel(name);
}

/// Killed at once, and later, after the gateway has taken the INSERT; it comes back while the submission is settled.
#[test]
fn a_gateway_killed_after_it_took_the_insert_leaves_one_job() {
    let own = Arc::new(Own::start());
    let order = Order::default();
    let gateway = Proxy::http(&order, &own.place.gateway);
    let through = Place { rest: own.place.rest.clone(), gateway: gateway.url() };
    for delay in [0, 50, 250] {
        let (name, id) = (unique(&format!("killed-{delay}")), fresh_id());
        let kill = Arc::new(own.killer("gateway"));
        let hit = gateway.rule(
            first(is_insert),
            Fault::call_answer(move |_| {
                let kill = Arc::clone(&kill);
                let later = move || {
                    thread::sleep(Duration::from_millis(delay));
                    kill();
                };
                if delay == 0 { later() } else { drop(thread::spawn(later)) }
            }),
        );
        let submitted = thread::scope(|scope| {
            let submission = scope.spawn(|| through.submit(&name, &id));
            assert!(hit.hit(Duration::from_secs(60)), "{delay}");
            thread::sleep(Duration::from_millis(delay + 300));
            own.up();
            submission.join().expect("no panic")
        });
        assert_eq!(submitted.unwrap_or_else(|failure| panic!("{delay}: {failure:?}")).id, id, "{delay}");
        one_job(&own.place, &name, id.as_str());
        gateway.disarm();
    }

    // It does not come back: the job that was sent is found, or nobody can tell.
    let (name, id) = (unique("away"), fresh_id());
    let kill = own.killer("gateway");
    gateway.rule(first(is_insert), Fault::call(move |_| kill()));
    let outcome = through.submit(&name, &id);
    assert!(matches!(outcome, Err(ProviderFailure::Uncertain { .. })), "{outcome:?}");
    assert_eq!(own.place.jobs(&name).len(), 0);
    gateway.disarm();

    // Before anything was sent it is simply not there.
    let refused = through.submit(&name, &fresh_id()).expect_err("no gateway");
    assert!(!refused.may_have_effect(), "{refused:?}");
    own.up();

    // The session is closed under the operation, at once and a little later.
    for delay in [0, 50] {
        let (name, id) = (unique(&format!("closed-{delay}")), fresh_id());
        let url = own.place.gateway.clone();
        gateway.rule(
            first(is_insert),
            Fault::call_answer(move |insert| {
                let path = insert.what.trim_start_matches("POST ").trim_end_matches("/statements").to_owned();
                thread::sleep(Duration::from_millis(delay));
                request(&url, "DELETE", &path);
            }),
        );
        assert_eq!(through.submit(&name, &id).unwrap_or_else(|failure| panic!("{delay}: {failure:?}")).id, id);
        one_job(&own.place, &name, id.as_str());
        gateway.disarm();
    }
}

/// Without high availability a JobManager forgets jobs and ids together.
#[test]
fn a_jobmanager_killed_under_a_submission_leaves_one_job() {
    let own = Arc::new(Own::start());
    let order = Order::default();
    let gateway = Proxy::http(&order, &own.place.gateway);
    let through = Place { rest: own.place.rest.clone(), gateway: gateway.url() };

    // Away before anything is sent: nothing is.
    let (name, id) = (unique("away"), fresh_id());
    own.kill("jobmanager");
    let mark = order.mark("away");
    let refused = through.submit(&name, &id).expect_err("no JobManager");
    assert_eq!(refused, ProviderFailure::Unreachable);
    assert!(order.records().iter().all(|record| record.number <= mark), "the gateway was not asked");
    own.up();

    // Away when the gateway takes the INSERT, back while it repeats its own request.
    let kill = own.killer("jobmanager");
    let hit = gateway.rule(first(is_insert), Fault::call(move |_| kill()));
    let submitted = thread::scope(|scope| {
        let submission = scope.spawn(|| through.submit(&name, &id));
        assert!(hit.hit(Duration::from_secs(60)));
        thread::sleep(Duration::from_secs(4));
        own.up();
        submission.join().expect("no panic")
    });
    assert_eq!(submitted.expect("settled").id, id);
    one_job(&own.place, &name, id.as_str());
    gateway.disarm();

    // Killed when it has the job: the same operation, settled by hand, makes it again, once.
    let (name, id) = (unique("forgotten"), fresh_id());
    through.submit(&name, &id).expect("submitted");
    own.place.running(&name);
    own.kill("jobmanager");
    own.up();
    assert_eq!(own.place.jobs(&name).len(), 0);
    assert_eq!(through.submit(&name, &id).expect("submitted again").id, id);
    one_job(&own.place, &name, id.as_str());
}
