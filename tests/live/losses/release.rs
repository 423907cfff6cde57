//! The end of a hold: proved, or said not to be.

use super::site::{Site, code, on_each_major};
use crate::faults::{Fault, Request, first};

fn unlock(request: &Request) -> bool {
    request.what.contains("pg_advisory_unlock")
}

/// The answer `true` of the server, as `false`.
fn denied(mut answer: Vec<u8>) -> Vec<u8> {
    const TRUE: &[u8] = &[b'D', 0, 0, 0, 11, 0, 1, 0, 0, 0, 1, 1];
    let at = answer.windows(TRUE.len()).position(|part| part == TRUE).expect("a row with one true");
    answer[at + TRUE.len() - 1] = 0;
    answer
}

/// I7 I10: after a commit E426 with `committed`, otherwise E423, whatever kept the release from being proved.
#[test]
fn a_release_that_is_not_proved_is_told_by_its_own_code() {
    on_each_major(|admin| {
        for fault in ["cut", "lost", "denied", "killed"] {
            let site = Site::new(admin, 1);
            let arm = || {
                let kill = site.killer();
                site.db.disarm();
                site.db.rule(
                    first(unlock),
                    match fault {
                        "cut" => Fault::CutBefore,
                        "lost" => Fault::LoseAnswer,
                        "denied" => Fault::edit(denied),
                        _ => Fault::call(move |_| kill()),
                    },
                )
            };
            let met = arm();
            let plan = site.workspace.run("plan -o json --out plan.json").exits(1);
            assert_eq!((met.count(), code(&plan).as_str()), (1, "E423_STATE_LOCK_LOST"), "{fault}: {}", plan.stdout);
            assert_eq!(site.stands(), ("clear".to_owned(), 0));

            let met = arm();
            let run = site.apply().exits(1);
            assert_eq!(
                (met.count(), code(&run).as_str()),
                (1, "E426_STATE_RELEASE_FAILED_AFTER_COMMIT"),
                "{fault}: {}",
                run.stdout
            );
            let answer = run.json();
            assert_eq!(
                (&answer["data"]["committed"], &answer["data"]["state_serial"]),
                (&true.into(), &1.into()),
                "{fault}: {answer}"
            );
            let human = {
                arm();
                site.workspace.run("apply").exits(1)
            };
            assert!(
                !human.stdout.contains("Apply complete") && human.stderr.contains("E426"),
                "{fault}: {}{}",
                human.stdout,
                human.stderr
            );
            site.db.disarm();
            assert_eq!(site.stands(), ("clear".to_owned(), 1));
            site.workspace.run("plan --detailed-exitcode").exits(0);
        }
    });
}
