//! One change of one connector, again and again: prepared, interrupted, ended by a recovery, and carried out after all.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::yard::{State, Yard};
use crate::harness::Run;
use crate::load::Load;
use crate::losses::site::{code, text};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Create,
    Update,
    Remove,
}

pub struct Course {
    pub yard: Yard,
    change: Change,
    round: usize,
    /// What must not move.
    kept: Value,
    record: Value,
    /// Where this round begins in the order of requests.
    mark: usize,
}

impl Course {
    pub fn new(change: Change, state: State) -> Self {
        let mut yard = Yard::under("STREAMT_TEST_CONNECT", state, &["kept", "moved"], Load::Heavy);
        yard.subject = true;
        yard.declare(&["kept"], &[]);
        yard.run("apply -o json").exits(0);
        let kept = yard.worker.config(&yard.name("kept")).expect("a connector");
        let mut course = Self { change, round: 0, kept, record: Value::Null, mark: 0, yard };
        course.record = course.others();
        course
    }

    /// The records of everything but the connector that moves, and those that moved in earlier rounds.
    fn others(&self) -> Value {
        let mut resources = self.yard.resources();
        let own = format!("/connector/{}", self.yard.name("moved"));
        resources.as_object_mut().expect("records").retain(|id, _| !id.contains(&own));
        resources
    }

    /// Each round creates another.
    fn sink(&self) -> String {
        match self.change {
            Change::Create => format!("moved{}", self.round),
            Change::Update | Change::Remove => "moved".to_owned(),
        }
    }

    fn moved(&self) -> String {
        self.yard.name(&self.sink())
    }

    fn live(&self) -> Option<Value> {
        self.yard.worker.config(&self.moved())
    }

    fn recorded(&self) -> bool {
        let own = format!("/connector/{}", self.moved());
        self.yard.resources().as_object().is_some_and(|all| all.keys().any(|id| id.ends_with(&own)))
    }

    fn declare_moved(&self, round: usize) {
        let yaml = self.yard.yaml(&["kept", &self.sink()], &[]);
        let (head, tail) = yaml.rsplit_once("tasks.max: 1").expect("the last sink");
        self.yard.write(&format!("{head}tasks.max: 1, round: {round}{tail}"));
    }

    /// Makes the world in which the change is the next thing to do, and declares it.
    pub fn prepare(&mut self) {
        self.round += 1;
        match self.change {
            Change::Create => self.declare_moved(self.round),
            Change::Update => {
                if self.live().is_none() {
                    self.declare_moved(0);
                    self.yard.run("apply -o json").exits(0);
                }
                self.declare_moved(self.round);
            }
            Change::Remove => {
                self.declare_moved(self.round);
                self.yard.run("apply -o json").exits(0);
                let _ = std::fs::remove_file(self.yard.workspace.path("plan.json"));
                self.yard.plan_removal(&["kept"], &["moved"]).exits(0);
            }
        }
        self.mark = self.yard.order.mark("prepared");
    }

    fn line(&self) -> &'static str {
        match self.change {
            Change::Create | Change::Update => "apply -o json",
            Change::Remove => "apply --plan plan.json --confirm-env default --force -o json",
        }
    }

    pub fn run(&self) -> Run {
        self.yard.run(self.line())
    }

    /// Every moment that the change passes, `name:time`.
    pub fn trace(mut self) -> Vec<String> {
        let path = self.yard.workspace.path("trace");
        loop {
            self.prepare();
            let _ = std::fs::remove_file(&path);
            let mut command = self.yard.workspace.command(self.line());
            let run = Run::of("trace", command.env("STREAMT_FAILPOINT_TRACE", &path).output().expect("runs"));
            if run.exit == 0 {
                break;
            }
            assert!(self.was_refused(&run), "{}", run.stdout);
            self.complete("refused");
        }
        let names = std::fs::read_to_string(&path).expect("built with `--features failpoints`");
        self.complete("traced");
        let mut moments: Vec<String> = Vec::new();
        for name in names.lines() {
            let start = format!("{name}:");
            let time = moments.iter().filter(|moment| moment.starts_with(&start)).count() + 1;
            moments.push(format!("{start}{time}"));
        }
        moments
    }

    pub fn killed_at(&self, moment: &str) -> bool {
        let mut command = self.yard.workspace.command(self.line());
        let output = command.env("STREAMT_FAILPOINT", moment).output().expect("runs");
        match output.status.signal() {
            Some(signal) => assert_eq!(signal, 9, "{moment}"),
            None if output.status.success() => {}
            None => assert!(self.was_refused(&Run::of("apply", output.clone())), "{moment}"),
        }
        output.status.signal().is_some()
    }

    /// A worker that rebalances, for the sake of the other tests, refuses a DELETE: the one failure that is nobody's fault.
    pub fn was_refused(&self, run: &Run) -> bool {
        self.change == Change::Remove && code(run) == "E428_CONNECTOR_REMOVAL_DRIFT"
    }

    /// Until the worker has carried out what it was sent: what it shows has not moved for a while.
    pub fn settle(&self) {
        let end = Instant::now() + Duration::from_secs(30);
        let mut before = self.live();
        let mut quiet = 0;
        while quiet < 3 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(150));
            let now = self.live();
            quiet = if now == before { quiet + 1 } else { 0 };
            before = now;
        }
    }

    fn changes(&self) -> Vec<String> {
        let mut seen = self.yard.since(self.mark);
        seen.retain(|what| !what.starts_with("GET") && !what.ends_with("/config/validate"));
        seen
    }

    /// Ends what was interrupted, by the resolution that the round chooses where the runbook leaves a choice.
    #[track_caller]
    pub fn end(&self, context: &str, round: usize) {
        let deletes = self.changes().iter().filter(|what| what.starts_with("DELETE")).count();
        assert!(deletes <= 1, "{context}: sent once: {:?}", self.changes());
        self.unmoved(context);
        let status = self.yard.status();
        let stands = text(&status["operation_status"]["status"]);
        if stands == "clear" {
            return;
        }
        assert!(matches!(stands.as_str(), "in_progress" | "recovery_required"), "{context}: {status}");
        let blocked = self.yard.run("plan --out no.json -o json").exits(1);
        assert_eq!(code(&blocked), "E419_STATE_RECOVERY_REQUIRED", "{context}");
        let id = text(&status["operation_status"]["operation_id"]);
        let mark = self.yard.order.mark("recovery");
        let chosen = ["observed", "rolled_back", "abandoned_before_mutation"][round % 3];
        let resolution = match self.plan_recovery(chosen) {
            Ok(()) => chosen,
            Err(told) => {
                assert_ne!(chosen, "observed", "{context}: {told}");
                self.plan_recovery("observed").unwrap_or_else(|told| panic!("{context}: {told}"));
                "observed"
            }
        };
        if resolution == "abandoned_before_mutation" {
            assert!(self.changes().is_empty(), "{context}: {:?}", self.changes());
        }
        super::recovery::recover(&self.yard, &id, resolution);
        let sent = self.yard.since(mark);
        assert!(sent.iter().all(|what| what.starts_with("GET ")), "{context}: {sent:?}");
        assert_eq!(text(&self.yard.status()["operation_status"]["status"]), "clear", "{context}");
        assert_eq!(self.recorded(), self.live().is_some(), "{context}: recorded is what is there");
        self.unmoved(context);
    }

    fn plan_recovery(&self, resolution: &str) -> Result<(), String> {
        let _ = std::fs::remove_file(self.yard.workspace.path("recovery.json"));
        let line = format!("state recovery-plan --resolution {resolution} --out recovery.json -o json");
        let run = self.yard.run(&line);
        if run.exit == 0 { Ok(()) } else { Err(run.stdout) }
    }

    /// Neither another connector nor another record, byte for byte.
    fn unmoved(&self, context: &str) {
        assert_eq!(self.yard.worker.config(&self.yard.name("kept")).as_ref(), Some(&self.kept), "{context}");
        assert_eq!(self.others(), self.record, "{context}");
    }

    /// The change is carried out after all, if it is not yet; then nothing is left to do, at the topic and the subject neither.
    #[track_caller]
    pub fn complete(&mut self, context: &str) {
        self.end(context, 0);
        match self.change {
            Change::Create | Change::Update => {
                self.yard.run("apply -o json").exits(0);
                let live = self.live().unwrap_or_else(|| panic!("{context}: a connector"));
                assert_eq!(live["round"], json!(self.round.to_string()), "{context}");
            }
            Change::Remove => {
                for attempt in 1.. {
                    let _ = std::fs::remove_file(self.yard.workspace.path("plan.json"));
                    self.yard.plan_removal(&["kept"], &["moved"]).exits(0);
                    let run = self.yard.apply_plan();
                    if run.exit == 0 {
                        break;
                    }
                    assert!(attempt < 5 && self.was_refused(&run), "{context}: {}", run.stdout);
                    self.mark = self.yard.order.mark("again");
                    self.settle();
                    self.end(context, 0);
                }
                assert_eq!((self.live(), self.recorded()), (None, false), "{context}");
                self.yard.declare(&["kept"], &[]);
            }
        }
        self.yard.run("plan --detailed-exitcode -o json").exits(0);
        self.unmoved(context);
        if self.change == Change::Create {
            self.yard.worker.delete(&self.moved());
        }
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        self.yard.worker.delete(&self.moved());
    }
}
