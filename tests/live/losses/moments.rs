//! A random fault at a random moment of an apply.

use std::time::Duration;

use super::journal::Journal;
use super::site::{LONG, Site, code, on_each_major, text};
use crate::faults::Moments;
use crate::harness::Run;

#[derive(Clone, Copy, Debug)]
enum Loss {
    /// The server ends the session that holds the lock.
    Killed,
    /// Every connection ends; new ones are possible.
    Cut,
    /// Every connection ends, and there are no new ones.
    Gone,
    /// Nothing arrives and nothing is closed.
    Silent,
}

const LOSSES: [Loss; 4] = [Loss::Killed, Loss::Cut, Loss::Gone, Loss::Silent];
/// Where the time until a loss begins.
#[derive(Clone, Copy, Debug)]
enum From {
    Start,
    Intent,
}

impl From {
    const ALL: [Self; 2] = [Self::Start, Self::Intent];

    const fn what(self) -> &'static str {
        match self {
            Self::Start => "begun",
            Self::Intent => "COMMIT",
        }
    }
}

const LINE: &str = "apply -o json -vvv --log-format json";

/// I1 I5 I6 I7 I8 I11 SAF-028 SAF-029 SAF-030 PGS-013: whatever is lost at whatever moment, what is told agrees with what
/// stands, nothing is sent after the lease is closed, and the next command goes on or says what is pending.
#[test]
fn a_loss_at_a_random_moment_leaves_an_answer_that_agrees_with_the_rows() {
    on_each_major(|admin| {
        let mut moments = Moments::new("losses");
        let whole = {
            let site = Site::new(admin, 3);
            site.order.mark("begun");
            site.workspace.run(LINE).exits(0);
            site.order.mark("ended");
            From::ALL.map(|from| {
                let at = |what: &str| site.order.wait(Duration::ZERO, |record| record.what == what).expect("seen").at;
                at("ended") - at(from.what())
            })
        };
        // Every other moment lies behind the durable intent, where more is at stake.
        let draw = |index: usize| {
            let from = index % From::ALL.len();
            (*moments.pick(&LOSSES), From::ALL[from], moments.within(whole[from]))
        };
        let plan: Vec<(Loss, From, Duration)> = (0..16).map(draw).collect();
        for pair in plan.chunks(4) {
            std::thread::scope(|scope| {
                for (loss, from, after) in pair {
                    scope.spawn(|| round(admin, *loss, *from, *after));
                }
            });
        }
    });
}

fn round(admin: &str, loss: Loss, from: From, after: Duration) {
    let site = Site::new(admin, 3);
    site.order.mark("begun");
    let child = site.start(LINE);
    site.order.wait(LONG, |record| record.what == from.what()).expect("it begins");
    std::thread::sleep(after);
    site.order.mark("lost");
    match loss {
        Loss::Killed => site.killer()(),
        Loss::Cut => site.db.cut(),
        Loss::Gone => {
            site.db.refuse();
            site.db.cut();
        }
        Loss::Silent => site.db.silence(),
    }
    let run = Run::of(LINE, child.wait_with_output().expect("an end"));
    site.db.restore();
    site.db.cut();
    site.wait_until_freed();
    let name = format!("{loss:?} {after:?} after {from:?}: {}", run.stdout);
    Journal::read(&run.stderr).explains(&site.changes());

    let answer = run.json();
    let status = site.status();
    let (stands, serial) = (text(&status["operation_status"]["status"]), status["state_serial"].as_u64());
    let told = if run.exit == 0 { "committed".to_owned() } else { code(&run) };
    println!("{loss:?} {after:?} after {from:?}: {told}, {stands}");
    let pending = stands == "in_progress" && serial == Some(0);
    let nothing = stands == "clear" && serial == Some(0);
    let done = stands == "clear" && serial == Some(1);
    match told.as_str() {
        "committed" => assert!(done, "{name}"),
        "E426_STATE_RELEASE_FAILED_AFTER_COMMIT" => assert!(done && answer["data"]["committed"] == true, "{name}"),
        "E423_STATE_LOCK_LOST" => assert!(pending || nothing, "{name}"),
        "E420_STATE_BACKEND_UNAVAILABLE" => assert!(pending || nothing, "{name}"),
        "E425_STATE_UNKNOWN_OUTCOME" => assert!(matches!(loss, Loss::Gone | Loss::Silent), "{name}"),
        _ => panic!("{name}"),
    }
    let operation = &answer["errors"][0]["operation_id"];
    if pending {
        assert_eq!(*operation, status["operation_status"]["operation_id"], "{name}");
        assert_eq!(code(&site.workspace.run("plan -o json").exits(1)), "E419_STATE_RECOVERY_REQUIRED", "{name}");
    } else {
        site.workspace.run("plan --detailed-exitcode").exits(if done { 0 } else { 2 });
        assert!(done || site.changes().is_empty(), "{name}");
    }
}
