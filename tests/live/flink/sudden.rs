//! An apply that submits a job and loses its lock, its process or every answer on the way: what is told, what stands, and the
//! one way out of each.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::cluster::{Own, Place, fresh_id};
use super::yard::Yard;
use crate::faults::{Fault, Gate, Request, answer, every, first, nth};
use crate::harness::Run;
use crate::losses::site::{code, text};
use crate::support::variable;

const APPLY: &str = "apply -o json";
const LONG: Duration = Duration::from_secs(60);
const TRACE: &str = r#"{"errors":["java.lang.IllegalStateException: s3ntinel\n\tat a.b.C(D.java:1)"]}"#;
/// How long a job that was sent can still arrive.
const ARRIVAL: Duration = Duration::from_secs(121);
/// Projects that are interrupted side by side.
const WORKERS: usize = 4;

fn is_insert(request: &Request) -> bool {
    request.says("\"INSERT INTO")
}

fn is_post(request: &Request) -> bool {
    request.what.starts_with("POST ")
}

fn commits(request: &Request) -> bool {
    request.what == "COMMIT"
}

#[derive(Clone, Debug)]
enum Death {
    /// `kill -9` at a moment of the process.
    Killed(String),
    /// The lock is lost while the n-th request to the gateway has not arrived yet.
    LockBefore(usize),
    /// Or when the INSERT has been answered, and the answer is still on its way.
    LockAfterInsert,
    /// Or at the n-th COMMIT.
    LockAtCommit(usize),
    /// While the answer to the INSERT is awaited.
    Signals(&'static [&'static str]),
    /// The INSERT is answered by nothing but errors, with local state; somebody submits the job by hand afterwards.
    Unproved { by_hand: bool },
}

/// What an apply passes from the durable start of its submission on.
struct Course {
    moments: Vec<String>,
    posts: std::ops::RangeInclusive<usize>,
    commits: std::ops::RangeInclusive<usize>,
}

impl Course {
    /// Steps: the intent, start and completion of the topic, of the job, and the end.
    const STARTED: usize = 4;
    const COMMITS: usize = 6;

    fn of(yard: &Yard) -> Self {
        let path = yard.workspace.path("trace");
        let mark = yard.order.mark("traced");
        let mut command = yard.workspace.command(APPLY);
        Run::of(APPLY, command.env("STREAMT_FAILPOINT_TRACE", &path).output().expect("runs")).exits(0);
        let records: Vec<_> = yard.order.records().into_iter().filter(|record| record.number > mark).collect();
        let steps: Vec<usize> = records.iter().filter(|r| r.what == "COMMIT").map(|r| r.number).collect();
        assert_eq!(steps.len(), Self::COMMITS, "{records:#?}");
        let posts: Vec<usize> =
            records.iter().filter(|record| record.what.starts_with("POST ")).map(|record| record.number).collect();
        let before = posts.iter().filter(|number| **number < steps[Self::STARTED - 1]).count();
        let names = std::fs::read_to_string(path).expect("built with `--features failpoints`");
        let (mut moments, mut seen) = (Vec::new(), Vec::new());
        for name in names.lines() {
            seen.push(name);
            let time = seen.iter().filter(|other| **other == name).count();
            if seen.iter().filter(|other| **other == "step.committed").count() >= Self::STARTED {
                moments.push(format!("{name}:{time}"));
            }
        }
        Self { moments, posts: before + 1..=posts.len(), commits: Self::STARTED..=Self::COMMITS }
    }

    fn deaths(&self) -> Vec<Death> {
        let mut deaths: Vec<Death> = self.moments.iter().cloned().map(Death::Killed).collect();
        deaths.extend(self.posts.clone().map(Death::LockBefore));
        deaths.push(Death::LockAfterInsert);
        deaths.extend(self.commits.clone().map(Death::LockAtCommit));
        deaths.extend([true, false].map(|by_hand| Death::Unproved { by_hand }));
        deaths.extend([&["-TERM"][..], &["-TERM", "-TERM"], &["-INT", "-TERM"], &["-KILL"]].map(Death::Signals));
        deaths
    }
}

/// A project whose apply has died, and the operation that it left.
struct Left {
    yard: Yard,
    death: Death,
    operation: Option<String>,
}

fn start(yard: &Yard) -> Child {
    yard.workspace.command(APPLY).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
}

fn ended(child: Child) -> std::process::Output {
    child.wait_with_output().expect("an end")
}

impl Left {
    fn of(place: &Place, admin: &str, death: Death) -> Self {
        let yard = match death {
            Death::Unproved { .. } => Yard::at(place.clone()),
            _ => Yard::stored(place.clone(), admin),
        };
        let lost = |run: &Run| {
            let known =
                ["E423_STATE_LOCK_LOST", "E425_STATE_UNKNOWN_OUTCOME", "E426_STATE_RELEASE_FAILED_AFTER_COMMIT"];
            assert!(known.contains(&code(run).as_str()), "{death:?}: {}", run.stdout);
        };
        let kill = || yard.database().killer();
        match &death {
            Death::Killed(moment) => {
                let output = yard.workspace.command(APPLY).env("STREAMT_FAILPOINT", moment).output().expect("runs");
                // An answer that is there at once is not waited for.
                let met = output.status.signal() == Some(9);
                assert!(met || (output.status.success() && moment.starts_with("request.begun")), "{death:?}");
            }
            Death::LockBefore(n) => {
                let kill = kill();
                let hit = yard.gateway.rule(nth(*n, is_post), Fault::call(move |_| kill()));
                lost(&yard.run(APPLY).exits(1));
                assert_eq!(hit.count(), 1, "{death:?}");
            }
            Death::LockAfterInsert => {
                let gate = Gate::default();
                let hit = yard.gateway.rule(first(is_insert), Fault::HoldAnswer(gate.clone()));
                let child = start(&yard);
                assert!(hit.hit(LONG), "{death:?}");
                kill()();
                let mark = yard.order.mark("lost");
                let run = Run::of(APPLY, ended(child)).exits(1);
                assert_eq!(code(&run), "E423_STATE_LOCK_LOST", "{}", run.stdout);
                assert!(yard.since(mark).iter().all(|what| what.starts_with("GET ")), "{:?}", yard.since(mark));
                gate.open();
            }
            Death::LockAtCommit(n) => {
                let kill = kill();
                let hit = yard.database().proxy.rule(nth(*n, commits), Fault::call(move |_| kill()));
                lost(&yard.run(APPLY).exits(1));
                assert_eq!(hit.count(), 1, "{death:?}");
            }
            Death::Unproved { .. } => {
                let broken = answer("500 Internal Server Error", &[("content-type", "application/json")], TRACE);
                yard.gateway.rule(every(is_insert), Fault::Answer(broken));
                let run = yard.run(APPLY).exits(1);
                assert_eq!(code(&run), "E407_DEPLOY_ERROR", "{}", run.stdout);
                assert!(run.stdout.contains("the outcome is unknown"), "{}", run.stdout);
                assert!(!run.stdout.contains("s3ntinel") && !run.stderr.contains("s3ntinel"), "{}", run.stdout);
                assert_eq!(text(&yard.status()["operation_status"]["status"]), "recovery_required");
            }
            Death::Signals(signals) => {
                let gate = Gate::default();
                let hit = yard.gateway.rule(first(is_insert), Fault::HoldAnswer(gate.clone()));
                let mut child = start(&yard);
                assert!(hit.hit(LONG), "{death:?}");
                for (at, signal) in signals.iter().enumerate() {
                    if at > 0 {
                        std::thread::sleep(Duration::from_millis(300));
                        assert!(child.try_wait().expect("a child").is_none(), "the first signal waits for the answer");
                    }
                    let sent = Command::new("kill").args([signal, child.id().to_string().as_str()]).status();
                    assert!(sent.expect("sent").success());
                }
                if signals.len() == 1 {
                    std::thread::sleep(Duration::from_millis(300));
                    gate.open();
                }
                let output = ended(child);
                gate.open();
                match *signals {
                    ["-KILL"] => assert_eq!(output.status.signal(), Some(9)),
                    // It was the last action: nothing is left to be stopped.
                    [_] => drop(Run::of(APPLY, output).exits(0)),
                    _ => {
                        let run = Run::of(APPLY, output);
                        assert!([130, 143].contains(&run.exit), "{death:?}: {}", run.exit);
                        assert_eq!(code(&run), "E903_INTERRUPTED", "{}", run.stdout);
                    }
                }
            }
        }
        yard.gateway.disarm();
        if let Some(database) = yard.database.as_ref() {
            database.proxy.disarm();
        }
        let mut left = Self { yard, death, operation: None };
        left.operation = left.blocked();
        left
    }

    fn job(&self) -> String {
        self.yard.job()
    }

    /// The operation that blocks.
    fn blocked(&self) -> Option<String> {
        let (yard, death) = (&self.yard, &self.death);
        if let Some(database) = yard.database.as_ref() {
            let held = crate::support::eventually(|| database.holders(), |holders| *holders == 0);
            assert_eq!(held, 0, "{death:?}: nobody holds the lock");
        }
        let status = yard.status()["operation_status"].clone();
        if text(&status["status"]) == "clear" {
            // Committed: the job is there, and there is nothing to do.
            yard.place.running(&self.job());
            yard.run("plan --detailed-exitcode -o json").exits(0);
            return None;
        }
        assert!(
            ["in_progress", "recovery_required"].contains(&text(&status["status"]).as_str()),
            "{death:?}: {status}"
        );
        assert_eq!(code(&yard.run(APPLY).exits(1)), "E419_STATE_RECOVERY_REQUIRED", "{death:?}");
        Some(text(&status["operation_id"]))
    }

    fn plan_recovery(&self, resolution: &str) -> Run {
        let _ = std::fs::remove_file(self.yard.workspace.path("recovery.json"));
        self.yard.run(&format!("state recovery-plan --resolution {resolution} --out recovery.json -o json"))
    }

    /// Whether the job arrived: then nothing is proved by it, and it is ended by hand.
    fn is_there(&self) -> bool {
        let (yard, death) = (&self.yard, &self.death);
        let jobs = yard.place.jobs(&self.job());
        assert!(jobs.len() <= 1, "{death:?}: {jobs:?}");
        if jobs.is_empty() {
            return false;
        }
        yard.place.cancel(&self.job());
        yard.place.job_when(&self.job(), |job| job["state"] == "CANCELED");
        true
    }

    fn is_refused(&self) {
        for resolution in ["observed", "rolled_back"] {
            let run = self.plan_recovery(resolution).exits(1);
            assert_eq!(code(&run), "E409_PLAN_STALE", "{:?}: {}", self.death, run.stdout);
            let targets = run.json()["data"]["targets"].clone();
            let job =
                targets.as_array().expect("targets").iter().find(|t| text(&t["resource_id"]).contains("/flink_job/"));
            assert_eq!(job.expect("the job")["reason"], json!("content_not_provable"), "{targets}");
        }
    }

    /// Absence ends the operation; then the job is submitted as usual, once.
    fn ends(&self, operation: &str) {
        let (yard, context) = (&self.yard, format!("{:?}", self.death));
        let mark = yard.order.mark("recovery");
        let planned = self.plan_recovery("observed");
        assert_eq!(planned.exit, 0, "{context}: {}", planned.stdout);
        let file = std::fs::read_to_string(yard.workspace.path("recovery.json")).expect("a plan");
        let plan: serde_json::Value = serde_json::from_str(&file).expect("JSON");
        let line = format!(
            "state recover --plan recovery.json --confirm-operation-id {operation} --confirm-resolution observed \
             --confirm-evidence-checksum {} -o json",
            text(&plan["evidence_checksum"])
        );
        yard.run(&line).exits(0);
        assert!(yard.since(mark).iter().all(|what| what.starts_with("GET ")), "{context}: {:?}", yard.since(mark));
        assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear", "{context}");
        yard.run(APPLY).exits(0);
        yard.place.running(&self.job());
        assert_eq!(yard.place.jobs(&self.job()).len(), 1, "{context}");
        yard.run("plan --detailed-exitcode -o json").exits(0);
        yard.place.cancel(&self.job());
    }
}

/// Does the same for each, some side by side.
fn each<T: Send, U: Send>(of: Vec<T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    let (left, done) = (Mutex::new(of.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("whole").next();
                    let Some(next) = next else { return };
                    let outcome = work(next);
                    done.lock().expect("whole").push(outcome);
                }
            });
        }
    });
    done.into_inner().expect("whole")
}

/// SAF-028, SAF-029, SAF-030, SAF-031, REC-054, REC-055, LIM-026: one job or none, whatever dies at whatever moment; a job that is there
/// proves nothing, and absence, once nothing can arrive any more, ends every operation.
#[test]
fn an_apply_that_dies_while_it_submits_leaves_one_job_or_none_and_one_way_out() {
    let own = Own::start();
    let majors = ["14", "18"].map(|major| variable(&format!("STREAMT_TEST_POSTGRES_{major}")));
    let course = {
        let yard = Yard::stored(own.place.clone(), &majors[1]);
        Course::of(&yard)
    };
    assert!(course.moments.iter().any(|moment| moment.starts_with("request.answered")), "{:?}", course.moments);
    let deaths: Vec<(usize, Death)> = course.deaths().into_iter().enumerate().collect();
    let count = deaths.len();
    let left = each(deaths, |(at, death)| {
        let left = Left::of(&own.place, &majors[at % majors.len()], death);
        // What runs already makes room for the others.
        left.is_there();
        left
    });
    let blocked: Vec<Left> = left.into_iter().filter(|left| left.operation.is_some()).collect();
    let last = Instant::now();
    let early = blocked[blocked.len() - 1].plan_recovery("observed").exits(1);
    assert!(early.stdout.contains("can still arrive"), "{}", early.stdout);
    std::thread::sleep(ARRIVAL.saturating_sub(last.elapsed()));

    for left in &blocked {
        if matches!(left.death, Death::Unproved { by_hand: true }) {
            left.yard.place.submit(&left.job(), &fresh_id()).expect("by hand");
        }
    }
    let (there, absent): (Vec<Left>, Vec<Left>) = blocked.into_iter().partition(Left::is_there);
    println!("{count} deaths: {} jobs arrived, {} did not", there.len(), absent.len());
    assert!(!there.is_empty() && !absent.is_empty());
    each(absent, |left| left.ends(left.operation.as_deref().expect("an operation")));
    let there = each(there, |left| {
        left.is_refused();
        left
    });
    // Its JobManager forgets what has ended: at once, here.
    own.kill("jobmanager");
    own.up();
    each(there, |left| left.ends(left.operation.as_deref().expect("an operation")));
}
