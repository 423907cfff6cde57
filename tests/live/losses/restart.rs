//! The server itself ends, and comes back.

use std::sync::{Arc, Mutex};

use super::server::Server;
use super::site::{Site, code, text};
use crate::faults::{Fault, nth};
use crate::harness::Run;

fn on_own_servers(test: impl Fn(Server) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        let start = |major: String| scope.spawn(move || test(Server::start(&major)));
        let runs: Vec<_> = crate::support::majors().into_iter().map(start).collect();
        for run in runs {
            run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// PGS-013 SAF-030: a fast shutdown, an immediate one, and a crash, while a request is in flight.
#[test]
fn a_server_that_goes_down_ends_the_apply_and_what_it_had_acknowledged_is_there_when_it_is_back() {
    on_own_servers(|mut server| {
        for signal in ["INT", "QUIT", "KILL"] {
            let site = Site::new(&server.dsn, 1);
            let (child, gate) = site.in_flight();
            server.kill(signal);
            // The gate is closed and the server is down: nobody waited for either.
            let run = Run::of("apply", child.wait_with_output().expect("an end")).exits(1);
            gate.open();
            assert_eq!(code(&run), "E423_STATE_LOCK_LOST", "{signal}: {}", run.stdout);
            let down = site.apply().exits(1);
            assert_eq!(code(&down), "E420_STATE_BACKEND_UNAVAILABLE", "{signal}: {}", down.stdout);
            server.restart();
            let status = site.status();
            let operation = text(&run.json()["errors"][0]["operation_id"]);
            assert_eq!(text(&status["operation_status"]["status"]), "in_progress", "{signal}");
            assert_eq!(text(&status["operation_status"]["operation_id"]), operation, "{signal}");
            let events = site.sql("SELECT event_kind FROM {schema}.operation_history ORDER BY event_index");
            assert_eq!(events.len(), 2, "{signal}: the intent and one started action: {events:?}");
            assert_eq!(code(&site.apply().exits(1)), "E419_STATE_RECOVERY_REQUIRED", "{signal}");
            assert_eq!(site.changes().len(), 1, "{signal}");
        }
    });
}

/// I7 I8 PGS-014: the server crashes around the COMMIT of the last step and is back before the wait for a proof ends.
#[test]
fn a_server_that_crashes_around_a_commit_is_asked_again_when_it_is_back() {
    on_own_servers(|server| {
        let server = Arc::new(Mutex::new(server));
        for happened in [false, true] {
            let dsn = server.lock().expect("whole").dsn.clone();
            let site = Site::new(&dsn, 1);
            let crash = {
                let server = Arc::clone(&server);
                move || {
                    let mut server = server.lock().expect("whole");
                    server.kill("QUIT");
                    server.restart();
                }
            };
            let fault = match happened {
                true => Fault::call_answer(move |_| crash()),
                false => Fault::call(move |_| crash()),
            };
            // The answer that is held back is lost with its server.
            let met = site.db.rule(nth(4, |request| request.what == "COMMIT"), fault);
            let run = site.apply();
            assert_eq!(met.count(), 1, "{}", run.stdout);
            let (status, serial) = site.stands();
            match happened {
                // The positive answer arrived after all, or not: both are proved, and the release is not.
                true => {
                    assert_eq!(code(&run), "E426_STATE_RELEASE_FAILED_AFTER_COMMIT", "{}", run.stdout);
                    assert_eq!((status.as_str(), serial), ("clear", 1));
                }
                false => {
                    assert_eq!(code(&run), "E423_STATE_LOCK_LOST", "{}", run.stdout);
                    assert_eq!((status.as_str(), serial), ("in_progress", 0));
                }
            }
        }
    });
}
