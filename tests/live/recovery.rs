//! The way out of every interruption, through the binary and the library, against a real broker and a real registry.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use streamt::actors::Runtime;
use streamt::codes::Code;
use streamt::messages::operation::{ApplyEnd, Control, OperationEvent, Signal};
use streamt::messages::recovery::{RecoverRequest, Recovered, RecoveryFailure, RecoveryPlanRequest};
use streamt::state::control::{AcceptedAs, Resolution, Status};
use streamt::state::recovery_plan::{self, RecoveryPlan};

use crate::drain::Drain;
use crate::estate::{Estate, failed, with_kafka};
use crate::faults::Moments;
use crate::support::{clean_up, eventually};

const PLAIN: &str = "  partitions: 1\n  replication_factor: 1";

fn runtime() -> Runtime {
    Runtime::start().expect("a runtime")
}

impl Estate {
    fn plan_recovery(
        &self,
        runtime: &Runtime,
        resolution: Resolution,
        name: &str,
    ) -> Result<Arc<RecoveryPlan>, RecoveryFailure> {
        let compiled = self.compiled().expect("compiles");
        let request = RecoveryPlanRequest {
            project: Arc::clone(&compiled.project),
            resolution,
            out: self.root().join(name),
            compile: Box::new(move || Ok(compiled)),
        };
        runtime.plan_recovery_blocking(request, Control::default()).map(|planned| planned.plan)
    }

    fn recover(&self, runtime: &Runtime, name: &str) -> Result<Recovered, RecoveryFailure> {
        let compiled = self.compiled().expect("compiles");
        let plan = Arc::new(recovery_plan::read(&self.root().join(name)).expect("a recovery plan"));
        let request =
            RecoverRequest { project: Arc::clone(&compiled.project), plan, compile: Box::new(move || Ok(compiled)) };
        runtime.recover_blocking(request, Control::default())
    }
}

fn code(failure: &RecoveryFailure) -> Code {
    failure.failure.diagnostics.iter().next().expect("an error").code
}

fn create(topic: &str, partitions: u32) {
    let artifact = crate::support::topic(topic, partitions, &[]);
    with_kafka(async |kafka, ctx| {
        for (_, outcome) in kafka.create_topics(ctx, &crate::support::Open, &[artifact]).await {
            outcome.expect("created");
        }
    });
}

/// An apply of which one topic of a group is refused, because somebody created it meanwhile.
fn one_refused(estate: &Estate, runtime: &Runtime, names: &[&str], refused: &str, partitions: u32) {
    let models: Vec<(&str, &str)> = names.iter().map(|name| (*name, PLAIN)).collect();
    estate.declare(&models);
    let taken = estate.topic(refused);
    let (outcome, _) = estate.apply_watched(runtime, Control::default(), move |event| {
        if let OperationEvent::Began { .. } = event {
            create(&taken, partitions);
        }
    });
    assert_eq!(failed(&outcome), Code::E407DeployError, "{outcome:#?}");
    assert!(outcome.recovery_required);
}

/// REC-009, REC-014, REC-044, REC-070: the mix of a group is recorded once its third state is gone; a second run changes nothing.
#[test]
fn a_refused_member_in_a_third_state_is_named_and_then_the_mix_is_recorded() {
    let (estate, runtime) = (Estate::new("mix"), runtime());
    one_refused(&estate, &runtime, &["a", "b", "c"], "b", 5);
    let blocked = estate.state();

    let refused = estate.plan_recovery(&runtime, Resolution::Observed, "third.json").expect_err("a third state");
    assert_eq!(code(&refused), Code::E409PlanStale, "{refused:#?}");
    let third: Vec<Value> = refused.targets.iter().map(|target| target.data()).collect();
    assert_eq!(third[1]["reason"], "third_state");
    assert_eq!(third[1]["differences"]["partitions"], serde_json::json!({"from": 5, "to": 1}));
    assert_eq!((&third[0]["accepted_as"], &third[2]["accepted_as"]), (&"candidate".into(), &"candidate".into()));
    assert!(!estate.root().join("third.json").exists());
    assert_eq!(estate.state(), blocked, "the marker stands");

    // Its owner takes the stranger away: the prior form of a create.
    crate::estate::blocking(clean_up([estate.topic("b")]));
    gone(&estate, "b");
    let before = estate.live(&["a", "b", "c"]);
    let plan = estate.plan_recovery(&runtime, Resolution::Observed, "r.json").expect("evidence");
    let forms: Vec<AcceptedAs> = plan.targets.iter().map(|target| target.accepted_as).collect();
    assert_eq!(forms, [AcceptedAs::Candidate, AcceptedAs::Prior, AcceptedAs::Candidate]);
    assert_eq!(estate.state(), blocked, "a plan changes nothing");
    let back = estate.plan_recovery(&runtime, Resolution::RolledBack, "back.json").expect_err("two were created");
    assert_eq!(code(&back), Code::E409PlanStale);
    let abandoned = estate.plan_recovery(&runtime, Resolution::AbandonedBeforeMutation, "no.json");
    assert_eq!(code(&abandoned.expect_err("three were started")), Code::E419StateRecoveryRequired);

    let done = estate.recover(&runtime, "r.json").unwrap_or_else(|error| panic!("{error:#?}"));
    assert!(done.state_changed && !done.already);
    assert_eq!(done.state.serial, 1);
    let state = estate.state();
    assert!(state.control.control.is_clear());
    assert_eq!(state.state.state.resources.len(), 2);
    assert_eq!(estate.live(&["a", "b", "c"]), before, "a recovery changes no provider");

    let again = estate.recover(&runtime, "r.json").expect("the same again");
    assert!(again.already && again.state_changed);
    assert_eq!(estate.state(), state);

    assert_eq!(estate.plan(&runtime).expect("a plan").plan.creates(), 1);
    assert_eq!(estate.apply(&runtime).end, ApplyEnd::Committed);
    let late = estate.recover(&runtime, "r.json").expect_err("ownership went on");
    assert_eq!(code(&late), Code::E409PlanStale);
}

/// Deleting a topic is asynchronous.
fn gone(estate: &Estate, name: &str) {
    assert!(eventually(|| estate.live(&[name]).is_empty(), |gone| *gone), "{name} is still there");
}

/// REC-015, REC-033: whatever moved between the review and the recovery refuses it, and the marker stands.
#[test]
fn a_plan_whose_world_moved_is_stale() {
    let (estate, runtime) = (Estate::new("moved"), runtime());
    one_refused(&estate, &runtime, &["a", "b"], "b", 1);
    estate.plan_recovery(&runtime, Resolution::Observed, "r.json").expect("both stand as declared");
    let blocked = estate.state();
    let stale = |told: &str| {
        let stale = estate.recover(&runtime, "r.json").expect_err(told);
        assert_eq!((code(&stale), stale.committed), (Code::E409PlanStale, Some(false)));
        let message = &stale.failure.diagnostics.iter().next().expect("an error").message;
        assert!(message.contains(told), "{message}");
        assert_eq!(estate.state(), blocked);
    };
    // The targets stand as reviewed, and what they were judged by does not.
    estate.declare(&[("a", PLAIN), ("b", PLAIN), ("z", PLAIN)]);
    stale("the project changed after the recovery plan was made");
    estate.declare(&[("a", PLAIN), ("b", PLAIN)]);
    let file = estate.root().join("stream_project.yml");
    let declared = std::fs::read_to_string(&file).expect("a project");
    let registry = crate::estate::service("STREAMT_TEST_REGISTRY");
    std::fs::write(&file, declared.replace(&registry, "http://127.0.0.1:1")).expect("written");
    stale("the runtime configuration of the environment changed after the recovery plan was made");
    std::fs::write(&file, declared).expect("written");
    crate::estate::blocking(clean_up([estate.topic("a")]));
    gone(&estate, "a");
    stale("1 targets changed after the recovery plan was made");
    estate.plan_recovery(&runtime, Resolution::Observed, "r2.json").expect("a new plan");
    assert_eq!(estate.recover(&runtime, "r2.json").expect("recovered").state.serial, 1);
    assert!(estate.state().control.control.is_clear());
}

/// REC-056, REC-011: nothing of what was started happened.
#[test]
fn an_interrupted_apply_that_left_nothing_is_rolled_back() {
    let (estate, runtime) = (Estate::new("back"), runtime());
    let schema = format!(
        "{PLAIN}\nschema:\n  format: avro\n  definition: '{{\"type\":\"record\",\"name\":\"R\",\"fields\":[{{\"name\":\"id\",\"type\":\"string\"}}]}}'"
    );
    estate.declare(&[("a", &schema)]);
    let control = Control::default();
    let cancel = control.cancel.clone();
    let (outcome, _) = estate.apply_watched(&runtime, control, move |event| {
        if let OperationEvent::Began { .. } = event {
            cancel.request(Signal::Terminate);
        }
    });
    // Taken back, or stopped behind its first boundary: the signal came in between.
    assert!(matches!(outcome.end, ApplyEnd::Interrupted(..)), "{outcome:#?}");
    if outcome.recovery_required {
        let plan = estate.plan_recovery(&runtime, Resolution::RolledBack, "r.json").expect("evidence");
        assert!(plan.targets.iter().all(|target| target.accepted_as == AcceptedAs::Prior));
        assert!(!estate.recover(&runtime, "r.json").expect("recovered").state_changed);
    }
    assert!(estate.state().control.control.is_clear());
    assert_eq!(estate.apply(&runtime).end, ApplyEnd::Committed);
}

fn streamt(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamt"));
    command.current_dir(directory).env("STREAMT_OUTPUT", "json").args(args).stdin(Stdio::null());
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn run(directory: &Path, args: &[&str]) -> Value {
    let output = streamt(directory, args).output().expect("runs");
    let told = json(&output);
    assert!(output.status.success(), "{args:?}: {told:#}");
    told["data"].clone()
}

fn recover_args<'a>(file: &'a str, planned: &'a Value) -> [&'a str; 10] {
    let text = |key: &str| planned[key].as_str().expect("a text");
    [
        "state",
        "recover",
        "--plan",
        file,
        "--confirm-operation-id",
        text("blocked_operation_id"),
        "--confirm-resolution",
        text("resolution"),
        "--confirm-evidence-checksum",
        text("evidence_checksum"),
    ]
}

/// SAF-030, REC-001, REC-002, REC-012, REC-021, REC-031, REC-038: `kill -9` at random moments of an apply of 300 topics; the
/// runbook ends each of them, and then ownership is exactly what exists.
#[test]
fn an_apply_killed_at_a_random_moment_is_recovered_by_the_runbook() {
    let mut moments = Moments::new("an apply of 300 topics");
    let names: Vec<String> = (0..300).map(|index| format!("t{index:03}")).collect();
    let models: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), PLAIN)).collect();
    let mut blocked = 0;
    let drain = Drain::start(crate::estate::service("STREAMT_TEST_KAFKA"));
    for round in 0..4 {
        let estate = Estate::new("killed");
        estate.declare(&models);
        let root = estate.root();
        let project = std::fs::read_to_string(root.join("stream_project.yml")).expect("a project");
        let project = project.replace(&crate::estate::service("STREAMT_TEST_KAFKA"), &drain.address);
        std::fs::write(root.join("stream_project.yml"), project).expect("written");
        let mut apply = streamt(root, &["apply"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runs");
        let control = root.join(".streamt/state/default.control.jsonl");
        // From the durable intent on: earlier nothing is at stake.
        while !control.exists() && apply.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let wait = moments.within(Duration::from_millis(400));
        std::thread::sleep(wait);
        let _ = apply.kill();
        let _ = apply.wait();
        let status = run(root, &["state", "status"]);
        println!("round {round}: killed {wait:?} after the intent: {}", status["operation_status"]);
        if status["operation_status"]["status"] == "clear" {
            continue;
        }
        blocked += 1;
        let refused = streamt(root, &["plan"]).output().expect("runs");
        assert_eq!(json(&refused)["errors"][0]["code"], "E419_STATE_RECOVERY_REQUIRED");
        drain.answered();
        seen_by_the_broker(&estate);
        let settled = live(&estate, &names);
        let planned = run(root, &["state", "recovery-plan", "--resolution", "observed", "--out", "r.json"]);
        let review = run(root, &["review", "r.json"]);
        assert_eq!(review["checksum"], planned["evidence_checksum"]);
        let done = run(root, &recover_args("r.json", &planned));
        assert_eq!(done["control_status"], "clear");
        assert_eq!(run(root, &recover_args("r.json", &planned)), done, "the same again is told the same");
        assert_eq!(live(&estate, &names), settled, "no provider was changed");
        let state = estate.state();
        let owned: Vec<&str> = state.state.state.resources.values().map(|r| r.physical_name.as_str()).collect();
        let existing: Vec<&str> = settled.keys().map(String::as_str).collect();
        assert_eq!(sorted(owned), existing);
        let plan = run(root, &["plan"]);
        assert_eq!(plan["summary"]["creates"].as_u64(), Some(300 - settled.len() as u64), "{plan:#}");
        assert_eq!(plan["summary"]["ownership_requirements"], 0);
    }
    println!("{blocked} of 4 rounds were blocked");
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

/// What exists, by physical name.
fn live(estate: &Estate, names: &[String]) -> BTreeMap<String, u32> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    estate.live(&names).into_values().map(|topic| (topic.name, topic.partitions.unwrap_or(0))).collect()
}

/// A broker answers a create before its own view of the cluster has it. That view follows one log: what was made before a topic
/// that is visible is visible.
fn seen_by_the_broker(estate: &Estate) {
    create(&estate.topic("barrier"), 1);
    assert!(eventually(|| !estate.live(&["barrier"]).is_empty(), |seen| *seen), "the broker never shows it");
}

/// REC-008, REC-012, REC-023, REC-032, REC-069: an intent without a started action, the confirmations, and an edited file.
#[test]
fn an_abandoned_operation_needs_no_provider_and_exact_confirmations() {
    let (estate, runtime) = (Estate::new("abandon"), runtime());
    estate.declare(&[("a", PLAIN)]);
    one_refused(&estate, &runtime, &["a"], "a", 1);
    // The state directory as it stood when only the intent was durable.
    let control = estate.root().join(".streamt/state/default.control.jsonl");
    let text = std::fs::read_to_string(&control).expect("a control");
    let intent_only: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(&control, intent_only).expect("written");
    assert_eq!(estate.state().control.control.status().status, Status::InProgress);
    let unreachable = std::fs::read_to_string(estate.root().join("stream_project.yml")).expect("a project");
    let unreachable = unreachable.replace(&crate::estate::service("STREAMT_TEST_KAFKA"), "127.0.0.1:1");
    std::fs::write(estate.root().join("stream_project.yml"), unreachable).expect("written");

    let root = estate.root();
    let hyphens = streamt(root, &["state", "recovery-plan", "--resolution", "rolled-back", "--out", "x.json"]).output();
    assert_eq!(hyphens.expect("runs").status.code(), Some(2));
    let args = ["state", "recovery-plan", "--resolution", "abandoned_before_mutation", "--out", "r.json"];
    let planned = run(root, &args);
    assert_eq!(planned["targets"], serde_json::json!([]));
    let errors = |args: &[&str]| {
        let output = streamt(root, args).output().expect("runs");
        assert_eq!(output.status.code(), Some(1));
        json(&output)["errors"][0]["code"].as_str().expect("a code").to_owned()
    };
    const INVALID: &str = "E408_PLAN_FILE_INVALID";
    assert_eq!(errors(&args), INVALID, "the file exists");
    let good = recover_args("r.json", &planned);
    for (at, wrong) in [
        (5, "00000000-0000-4000-8000-000000000000"),
        (5, "no id"),
        (7, "observed"),
        (7, "abandoned"),
        (9, "sha256:0"),
        (9, "sha256:0000000000000000000000000000000000000000000000000000000000000000"),
    ] {
        let mut args = good;
        args[at] = wrong;
        assert_eq!(errors(&args), INVALID, "{wrong}");
    }
    assert_eq!(errors(&good[..8]), INVALID, "a confirmation is missing");
    let whole = std::fs::read_to_string(root.join("r.json")).expect("a file");
    std::fs::write(root.join("edited.json"), whole.replace("local-cli", "local-clj")).expect("written");
    let mut edited = good;
    edited[3] = "edited.json";
    assert_eq!(errors(&edited), INVALID);
    assert_eq!(estate.state().control.control.status().status, Status::InProgress, "the marker stands");

    let done = run(root, &good);
    assert_eq!((&done["state_changed"], &done["state_serial"]), (&false.into(), &0.into()));
    assert_eq!(run(root, &good), done);
    let none = ["state", "recovery-plan", "--resolution", "abandoned_before_mutation", "--out", "late.json"];
    assert_eq!(errors(&none), "E419_STATE_RECOVERY_REQUIRED");
    assert!(!root.join("late.json").exists());
}
