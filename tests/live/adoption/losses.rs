//! The lock is lost during an adoption, or the answer to its commit is: nobody claims what is not proved.

use std::sync::Arc;

use serde_json::Value;

use super::ground::create_topic;
use crate::faults::{Fault, Request, nth};
use crate::harness::Run;
use crate::losses::site::{Site, code, on_each_major, text};

/// A site whose topic exists and is declared adopted.
fn site(admin: &str) -> Site {
    let site = Site::new(admin, 1);
    create_topic(&format!("{}.t0", site.project), 1, &[]);
    let path = site.workspace.path("stream_project.yml");
    let yaml = std::fs::read_to_string(path).expect("a project");
    site.workspace
        .write("stream_project.yml", &yaml.replace("description: d,", "description: d, ownership: {mode: adopted},"));
    site
}

fn line(site: &Site) -> String {
    format!(
        "adopt --kind topic --name m0 --confirm-resource streamt://{}/default/topic/m0 --confirm-env default -o json",
        site.project
    )
}

fn adopt(site: &Site) -> Run {
    site.workspace.run(&line(site))
}

fn commit(request: &Request) -> bool {
    request.what == "COMMIT"
}

/// I1: before the intent nothing is at stake; the review, or the second look, is where it happens.
#[test]
fn a_lock_lost_while_the_resource_is_read_leaves_nothing_behind() {
    on_each_major(|admin| {
        for look in [1, 2] {
            let site = site(admin);
            let kill = site.killer();
            let met =
                site.kafka.rule(nth(look, |request| request.what == "DescribeConfigs"), Fault::call(move |_| kill()));
            let run = adopt(&site).exits(1);
            assert_eq!((met.count(), code(&run).as_str()), (1, "E423_STATE_LOCK_LOST"), "{}", run.stdout);
            assert_eq!(run.json()["errors"][0]["operation_id"], Value::Null, "{}", run.stdout);
            assert_eq!((site.stands(), site.changes().len()), (("clear".to_owned(), 0), 0));
            site.kafka.disarm();
            adopt(&site).exits(0);
        }
    });
}

/// SAF-029, SAF-030, PGS-013, PGS-014: the COMMIT of the intent, or of the claims, without an answer, done or not.
#[test]
fn a_commit_of_an_adoption_without_an_answer_is_resolved_by_another_session() {
    on_each_major(|admin| {
        for (step, happened) in [(1, true), (1, false), (2, true), (2, false)] {
            let site = site(admin);
            let name = format!("step {step}, {}", if happened { "happened" } else { "did not happen" });
            let fault = if happened { Fault::LoseAnswer } else { Fault::CutBefore };
            let met = site.db.rule(nth(step, commit), fault);
            let run = adopt(&site).exits(1);
            assert_eq!(met.count(), 1, "{name}");
            let done = (step, happened) == (2, true);
            let wanted = if done { "E426_STATE_RELEASE_FAILED_AFTER_COMMIT" } else { "E423_STATE_LOCK_LOST" };
            assert_eq!(code(&run), wanted, "{name}: {}", run.stdout);
            let data = run.json()["data"].clone();
            assert_eq!(data["committed"], if done { Value::Bool(true) } else { Value::Null }, "{name}: {data:#}");
            assert_eq!(data["adopted"], done, "{name}: {data:#}");
            let (status, serial) = site.stands();
            let pending = (step, happened) == (1, true) || (step, happened) == (2, false);
            assert_eq!(
                (status.as_str(), serial),
                (if pending { "in_progress" } else { "clear" }, u64::from(done)),
                "{name}"
            );
            site.db.disarm();
            site.wait_until_freed();
            if pending {
                assert_eq!(code(&adopt(&site).exits(1)), "E419_STATE_RECOVERY_REQUIRED", "{name}");
                abandon(&site);
            }
            let again = adopt(&site).exits(0).json()["data"].clone();
            assert_eq!(again["already_owned"], done, "{name}");
            assert_eq!(site.stands(), ("clear".to_owned(), 1), "{name}");
            assert!(site.changes().is_empty(), "{name}");
        }
    });
}

/// I1: a link that goes silent inside the step of the claims; who comes next finds the intent.
#[test]
fn a_link_that_goes_silent_inside_the_claim_ends_the_adoption() {
    on_each_major(|admin| {
        let site = site(admin);
        let locks =
            |request: &Request| request.what.contains("FOR UPDATE") && request.what.contains("control_checksum");
        let db = Arc::downgrade(&site.db);
        let met = site.db.rule(nth(2, locks), Fault::call(move |_| db.upgrade().expect("a proxy").silence()));
        let run = adopt(&site).exits(1);
        site.db.restore();
        site.db.cut();
        assert_eq!((met.count(), code(&run).as_str()), (1, "E423_STATE_LOCK_LOST"), "{}", run.stdout);
        assert_eq!(site.stands(), ("in_progress".to_owned(), 0));
        site.wait_until_freed();
        site.db.disarm();
        abandon(&site);
        adopt(&site).exits(0);
        assert!(site.changes().is_empty());
    });
}

fn abandon(site: &Site) {
    let planned = site
        .workspace
        .run("state recovery-plan --resolution abandoned_before_mutation --out r.json -o json")
        .exits(0)
        .json()["data"]
        .clone();
    let line = crate::interruption::resolve::recover_line("r.json", &planned);
    site.workspace.run(&format!("{line} -o json")).exits(0);
    assert_eq!(text(&site.status()["operation_status"]["status"]), "clear");
}
