//! SIGINT and SIGTERM, once and twice, while an apply with its state in PostgreSQL changes something.

use std::process::{Child, Command};

use super::site::{Site, code, on_each_major, text};
use crate::faults::{Fault, first};
use crate::harness::Run;

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("sent").success());
}

fn ended(child: Child, code: i32) -> Run {
    Run::of("apply", child.wait_with_output().expect("an end")).exits(code)
}

const SIGNALS: [(&str, i32); 2] = [("-INT", 130), ("-TERM", 143)];

/// SAF-030: the first signal waits for what is in flight, marks the operation and gives the lock back.
#[test]
fn the_first_signal_lets_the_action_in_flight_end_and_marks_the_operation() {
    on_each_major(|admin| {
        for (signal, exit) in SIGNALS {
            let site = Site::with_schemas(admin, 2);
            let (mut child, gate) = site.held_at(&site.registry, first(|request| request.mutates), Fault::HoldAnswer);
            send(&child, signal);
            // It is waited for, as long as the answer takes.
            std::thread::sleep(std::time::Duration::from_millis(500));
            assert!(child.try_wait().expect("a child").is_none() && site.holders() == 1, "it waits and holds the lock");
            gate.open();
            let run = ended(child, exit);
            assert_eq!(code(&run), "E903_INTERRUPTED", "{}", run.stdout);
            let data = run.json()["data"].clone();
            assert_eq!(
                (&data["committed"], data["not_started"].as_array().map(Vec::len)),
                (&false.into(), Some(3)),
                "{data}"
            );
            let status = site.status()["operation_status"].clone();
            assert_eq!(
                (text(&status["status"]), text(&status["failure_code"])),
                ("recovery_required".into(), "operation_interrupted".into())
            );
            assert_eq!((site.changes().len(), site.holders()), (1, 0), "no second action, and the lock is given back");
            assert_eq!(code(&site.apply().exits(1)), "E419_STATE_RECOVERY_REQUIRED");
        }
    });
}

/// SAF-030: the second ends the process at once; the durable `started` blocks the address.
#[test]
fn the_second_signal_ends_the_process_at_once_and_the_started_action_blocks() {
    on_each_major(|admin| {
        for ((first_signal, _), (second_signal, exit)) in
            [(SIGNALS[0], SIGNALS[0]), (SIGNALS[1], SIGNALS[1]), (SIGNALS[0], SIGNALS[1])]
        {
            let site = Site::new(admin, 1);
            let (mut child, gate) = site.in_flight();
            send(&child, first_signal);
            std::thread::sleep(std::time::Duration::from_millis(300));
            assert!(child.try_wait().expect("a child").is_none());
            send(&child, second_signal);
            // The gate is still closed: nobody waited for the answer.
            let run = Run::of("apply", child.wait_with_output().expect("an end"));
            gate.open();
            assert!([130, 143].contains(&run.exit), "{}", run.exit);
            assert!(first_signal != second_signal || run.exit == exit, "{}", run.exit);
            assert_eq!(code(&run), "E903_INTERRUPTED", "{}", run.stdout);
            assert_eq!(run.json()["data"]["committed"], serde_json::Value::Null, "nobody knows: {}", run.stdout);
            assert_eq!(text(&site.status()["operation_status"]["status"]), "in_progress");
            assert_eq!(code(&site.apply().exits(1)), "E419_STATE_RECOVERY_REQUIRED");
            assert_eq!(site.changes().len(), 1);
        }
    });
}

/// Before the intent nothing was written and nothing has to be recovered.
#[test]
fn a_signal_before_the_intent_leaves_nothing_to_recover() {
    on_each_major(|admin| {
        for (signal, exit) in SIGNALS {
            let site = Site::new(admin, 1);
            let (child, gate) =
                site.held_at(&site.kafka, first(|request| request.what == "Metadata"), Fault::HoldAnswer);
            send(&child, signal);
            let run = ended(child, exit);
            gate.open();
            assert_eq!(code(&run), "E903_INTERRUPTED", "{}", run.stdout);
            assert_eq!((site.stands(), site.changes().len(), site.holders()), (("clear".to_owned(), 0), 0, 0));
        }
    });
}
