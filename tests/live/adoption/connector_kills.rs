//! `kill -9` at every moment of the adoption of a connector, and the lock lost at each read of it and at each COMMIT: nothing or all
//! is claimed, the connector is as it was, and the runbook ends what is left.

use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

use serde_json::{Value, json};

use super::connectors::line;
use crate::connectors::yard::{SENTINEL, State, Yard};
use crate::faults::{Fault, Request, nth};
use crate::harness::Run;
use crate::interruption::resolve::{new_file, plan_line, recover_line};
use crate::losses::site::{code, text};
use crate::support::variable;

/// One claim after the other, each of a connector that nobody owns.
struct Claims {
    yard: Yard,
    made: Vec<String>,
    kept: Value,
    record: Value,
    begun: u64,
    mark: usize,
}

impl Claims {
    fn new(state: State) -> Self {
        let yard = Yard::new("STREAMT_TEST_CONNECT", state, &["kept"]);
        yard.run("apply -o json").exits(0);
        let kept = yard.worker.config(&yard.name("kept")).expect("a connector");
        let record = yard.resources();
        Self { yard, made: Vec::new(), kept, record, begun: 0, mark: 0 }
    }

    fn name(&self) -> String {
        self.made.last().expect("a connector").clone()
    }

    fn config(&self, name: &str) -> Value {
        json!({
            "name": name, "connector.class": "FileStreamSink", "topics": self.yard.topic(), "file": "/dev/null",
            "tasks.max": "1", "note": SENTINEL, "read": self.yard.secret(),
        })
    }

    fn serial(&self) -> u64 {
        self.yard.status()["state_serial"].as_u64().expect("a serial")
    }

    /// A connector to claim, declared as it is: the last one, unless it was claimed. It is stopped: no task disturbs the worker.
    fn prepare(&mut self) {
        let serial = self.serial();
        if self.made.is_empty() || serial > self.begun {
            let sink = format!("claim{}", self.made.len());
            let name = self.yard.name(&sink);
            let body = json!({"name": name, "config": self.config(&name), "initial_state": "STOPPED"});
            let (status, answer) = self.yard.worker.settled("POST", "/connectors", Some(&body));
            assert_eq!(status, 201, "{answer}");
            let head = format!("  - name: {name}\n    description: d\n");
            let adopted = format!("{head}    ownership: {{mode: adopted}}\n");
            self.yard.write(&self.yard.yaml(&["kept", &sink], &[]).replace(&head, &adopted));
            self.made.push(name);
        }
        self.begun = serial;
        self.mark = self.yard.order.mark("prepared");
    }

    fn line(&self) -> String {
        line(&self.yard, &self.name())
    }

    fn trace(&mut self) -> Vec<String> {
        self.prepare();
        let path = self.yard.workspace.path("trace");
        let mut command = self.yard.workspace.command(&self.line());
        Run::of("adopt", command.env("STREAMT_FAILPOINT_TRACE", &path).output().expect("runs")).exits(0);
        let mut moments: Vec<String> = Vec::new();
        for name in std::fs::read_to_string(&path).expect("built with `--features failpoints`").lines() {
            let start = format!("{name}:");
            let time = moments.iter().filter(|moment| moment.starts_with(&start)).count() + 1;
            moments.push(format!("{start}{time}"));
        }
        moments
    }

    fn kill_at(&self, moment: &str) {
        let output = self.yard.workspace.command(&self.line()).env("STREAMT_FAILPOINT", moment).output();
        assert_eq!(output.expect("runs").status.signal(), Some(9), "{moment}");
    }

    /// What the interruption left, ended by the runbook. True = the connector is claimed.
    #[track_caller]
    fn end(&self, context: &str, round: usize) -> bool {
        let status = self.yard.status()["operation_status"].clone();
        if status["status"] != "clear" {
            assert_eq!((&status["kind"], self.serial()), (&json!("adopt"), self.begun), "{context}: {status}");
            assert_eq!(code(&self.yard.run("plan -o json").exits(1)), "E419_STATE_RECOVERY_REQUIRED", "{context}");
            let back = format!("{} -o json", plan_line("rolled_back", &new_file()));
            assert_eq!(code(&self.yard.run(&back).exits(1)), "E409_PLAN_STALE", "{context}: it is there");
            let resolution = ["observed", "abandoned_before_mutation"][round % 2];
            let file = new_file();
            let planned = self.yard.run(&format!("{} -o json", plan_line(resolution, &file))).exits(0).json();
            let line = format!("{} -o json", recover_line(&file, &planned["data"]));
            let done = self.yard.run(&line).exits(0).json()["data"].clone();
            assert_eq!(done["state_changed"], round.is_multiple_of(2), "{context}: {done}");
            assert_eq!(self.yard.status()["operation_status"]["status"], "clear", "{context}");
        }
        let serial = self.serial();
        assert!(serial == self.begun || serial == self.begun + 1, "{context}: {serial} after {}", self.begun);
        let get = format!("GET /connectors/{}", self.name());
        let asked = self.yard.since(self.mark);
        let kept = format!("GET /connectors/{}", self.yard.name("kept"));
        assert!(asked.iter().all(|what| *what == get || *what == kept), "{context}: {asked:?}");
        serial > self.begun
    }

    /// Everything that was claimed is recorded, and nothing at the worker moved.
    fn close(mut self) {
        self.prepare();
        let last = self.made.pop().expect("the one that nobody claimed");
        self.yard.worker.delete(&last);
        for name in &self.made {
            assert_eq!(self.yard.worker.config(name), Some(self.config(name)), "{name}");
        }
        assert_eq!(self.yard.worker.config(&self.yard.name("kept")), Some(self.kept.clone()));
        let records = self.yard.resources();
        let all = records.as_object().expect("records");
        for (id, record) in self.record.as_object().expect("records") {
            assert_eq!(all.get(id), Some(record), "{id}");
        }
        let claimed = all.values().filter(|record| record["ownership"] == "adopted").count();
        assert_eq!(claimed, self.made.len());
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        for name in &self.made {
            self.yard.worker.delete(name);
        }
    }
}

fn kills(state: State) {
    let begun = Instant::now();
    let mut claims = Claims::new(state);
    let moments = claims.trace();
    assert!(!moments.iter().any(|moment| moment.starts_with("request.")), "nothing asks to change: {moments:?}");
    let (mut blocked, mut committed) = (0, false);
    for (at, moment) in moments.iter().enumerate() {
        let context = format!("killed at {moment}");
        claims.prepare();
        claims.kill_at(moment);
        let pending = claims.yard.status()["operation_status"]["status"] != "clear";
        let claimed = claims.end(&context, at);
        if pending {
            assert!(!committed, "{context}: pending after a moment that had committed");
            blocked += 1;
        } else {
            assert!(claimed || !committed, "{context}: not claimed after a moment that had committed");
            committed = claimed;
            if claimed {
                // Whoever takes the lock next finishes a local commit, and passes its moments.
                claims.yard.run("plan -o json").exits(0);
            }
        }
    }
    assert!(committed && blocked > 0, "{blocked} of {moments:?}");
    println!("{} moments of an adoption, {blocked} blocked, {:?}", moments.len(), begun.elapsed());
    claims.close();
}

/// ADO-026, ADO-028, SAF-029, SAF-030, REC-003, REC-014, REC-062
#[test]
fn an_adoption_of_a_connector_that_is_killed_anywhere_has_one_provable_end() {
    std::thread::scope(|scope| {
        scope.spawn(|| kills(State::Local));
        for major in ["14", "18"] {
            scope.spawn(move || kills(State::Postgres(variable(&format!("STREAMT_TEST_POSTGRES_{major}")))));
        }
    });
}

fn losses(admin: &str) {
    let mut claims = Claims::new(State::Postgres(admin.to_owned()));
    claims.prepare();
    let (mark, commits) = (claims.yard.order.mark("counting"), claims.yard.commits());
    claims.yard.run(&claims.line()).exits(0);
    let (asked, commits) = (claims.yard.since(mark).len(), claims.yard.commits() - commits);
    assert!(asked >= 2 && commits >= 2, "{asked} requests, {commits} commits");
    let cases = [(1, "before"), (1, "after"), (2, "before"), (2, "after")].into_iter();
    for (round, (n, place)) in cases.chain((1..=commits).map(|n| (n, "commit"))).enumerate() {
        let context = format!("lock lost at {n} {place}");
        claims.prepare();
        let kill = claims.yard.killer();
        let any = |_: &Request| true;
        let hit = match place {
            "before" => claims.yard.workers.rule(nth(n, any), Fault::call(move |_| kill())),
            "after" => claims.yard.workers.rule(nth(n, any), Fault::call_answer(move |_| kill())),
            _ => claims.yard.database().rule(nth(n, |r: &Request| r.what == "COMMIT"), Fault::call(move |_| kill())),
        };
        let run = claims.yard.run(&claims.line());
        claims.yard.workers.disarm();
        claims.yard.database().disarm();
        assert_eq!((hit.count(), run.exit), (1, 1), "{context}: {}", run.stdout);
        let told = code(&run);
        let committed = told == "E426_STATE_RELEASE_FAILED_AFTER_COMMIT";
        let known = ["E423_STATE_LOCK_LOST", "E425_STATE_UNKNOWN_OUTCOME"].contains(&told.as_str());
        assert!(committed || known, "{context}: {}", run.stdout);
        let pending = text(&claims.yard.status()["operation_status"]["status"]) != "clear";
        assert!(!(committed && pending), "{context}");
        let claimed = claims.end(&context, round);
        assert!(claimed || !committed, "{context}: told as committed");
        if place != "commit" {
            assert!(!pending && !claimed, "{context}: before the intent nothing is at stake");
        }
    }
    claims.close();
}

/// ADO-028, SAF-028, SAF-029
#[test]
fn a_lock_that_is_lost_during_the_adoption_of_a_connector_claims_nothing_unproved() {
    crate::losses::site::on_each_major(losses);
}
