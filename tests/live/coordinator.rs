//! Plan and apply through the library, against a real broker and a real registry.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use streamt::actors::Runtime;
use streamt::codes::Code;
use streamt::messages::operation::{ApplyEnd, ApplySource, Cancel, Control, OperationEvent, PlanRequest, Signal};
use streamt::planner::model::Verb;
use streamt::project::model::OwnershipMode;
use streamt::state::control::{FailureCode, ProgressStatus, Status};
use streamt::state::plan_file;

use crate::estate::{Estate, Proxy, failed, refused, with_kafka};

const PLAIN: &str = "  partitions: 1\n  replication_factor: 1";

fn schema(fields: &str) -> String {
    format!(
        "{PLAIN}\nschema:\n  format: avro\n  compatibility: BACKWARD\n  definition: '{{\"type\":\"record\",\"name\":\"R\",\"fields\":[{fields}]}}'"
    )
}

const ID: &str = r#"{"name":"id","type":"string"}"#;
const ID_AND_NOTE: &str = r#"{"name":"id","type":"string"},{"name":"note","type":["null","string"],"default":null}"#;

fn runtime() -> Runtime {
    Runtime::start().expect("a runtime")
}

/// SAF-029
#[test]
fn a_project_is_created_changed_and_then_left_alone() {
    let (estate, runtime) = (Estate::new("life"), runtime());
    estate.declare(&[("a", PLAIN), ("b", PLAIN), ("c", &schema(ID))]);
    let plan = estate.plan(&runtime).expect("a plan");
    assert_eq!((plan.plan.creates(), plan.plan.updates(), plan.state.serial), (4, 0, 0));
    assert!(plan.warnings.iter().any(|warning| warning.code == Code::W106LocalStateOnly));

    let created = estate.apply(&runtime);
    assert_eq!(created.end, ApplyEnd::Committed, "{created:#?}");
    assert_eq!((created.lists.created.len(), created.committed), (4, Some(true)));
    assert_eq!(created.state.expect("a state").serial, 1);
    assert_eq!(estate.live(&["a", "b", "c"]).len(), 3);
    assert_eq!(estate.state().state.state.resources.len(), 4);

    let again = estate.plan(&runtime).expect("a plan");
    assert!(!again.plan.has_changes(), "{:#?}", again.plan.changes);
    let nothing = estate.apply(&runtime);
    assert_eq!((&nothing.end, nothing.lists.unchanged.len()), (&ApplyEnd::Committed, 4));
    assert_eq!(nothing.state.expect("a state").serial, 1, "an apply without changes writes no new serial");

    let grown = "  partitions: 3\n  replication_factor: 1\n  config:\n    retention.ms: \"3600000\"";
    estate.declare(&[("a", grown), ("b", PLAIN), ("c", &schema(ID_AND_NOTE))]);
    let changed = estate.apply(&runtime);
    assert_eq!((&changed.end, changed.lists.updated.len()), (&ApplyEnd::Committed, 2), "{changed:#?}");
    let live = estate.live(&["a"]);
    assert_eq!(live["a"].partitions, Some(3));
    assert_eq!(live["a"].config.get("retention.ms").map(String::as_str), Some("3600000"));
    assert!(!estate.plan(&runtime).expect("a plan").plan.has_changes());
}

/// SAF-029: a zero-action apply is still a durable operation.
#[test]
fn an_apply_without_actions_begins_commits_and_releases() {
    let (estate, runtime) = (Estate::new("zero"), runtime());
    estate.declare(&[("a", PLAIN)]);
    assert_eq!(estate.apply(&runtime).end, ApplyEnd::Committed);
    let (outcome, events) = estate.apply_watched(&runtime, Control::default(), |_| {});
    assert_eq!(outcome.end, ApplyEnd::Committed);
    assert!(outcome.operation_id.is_some());
    let told: Vec<bool> =
        events.iter().map(|event| matches!(event, OperationEvent::Began { actions: 0, .. })).collect();
    assert_eq!(told.iter().filter(|began| **began).count(), 1);
    assert!(matches!(events.last(), Some(OperationEvent::Released)));
    assert!(!events.iter().any(|event| matches!(event, OperationEvent::ActionStarted { .. })));
}

/// I14, SAF-030: one refused topic of a group; the others stand, nothing is taken back, the address waits for recovery.
#[test]
fn one_refused_topic_of_a_group_leaves_the_others_standing() {
    let (estate, runtime) = (Estate::new("partial"), runtime());
    let names = ["a", "b", "c", "d", "e"];
    let mut models: Vec<(&str, &str)> = names.iter().map(|name| (*name, PLAIN)).collect();
    let with_schema = schema(ID);
    models.push(("f", &with_schema));
    estate.declare(&models);
    let taken = estate.topic("c");
    let (outcome, events) = estate.apply_watched(&runtime, Control::default(), move |event| {
        if let OperationEvent::Began { .. } = event {
            create_directly(&taken);
        }
    });
    assert_eq!(failed(&outcome), Code::E407DeployError, "{outcome:#?}");
    assert_eq!(outcome.committed, Some(false));
    assert!(outcome.recovery_required);
    assert_eq!(outcome.lists.errors.len(), 1);
    assert_eq!(outcome.lists.errors[0].label.name, estate.topic("c"));
    assert!(outcome.lists.errors[0].diagnostic.message.contains("TOPIC_ALREADY_EXISTS"), "{outcome:#?}");
    assert_eq!(outcome.lists.created.len(), 6, "the schema before the group and five members of it");
    assert_eq!(estate.live(&names).len(), 5);
    assert!(matches!(events.last(), Some(OperationEvent::Released)));

    let control = estate.state().control.control;
    assert_eq!(control.status().status, Status::RecoveryRequired);
    assert_eq!(control.status().failure_code, Some(FailureCode::RuntimeActionFailed));
    let ends: Vec<bool> = control.progress().iter().filter_map(|entry| entry.succeeded).collect();
    assert_eq!(ends.iter().filter(|ok| !**ok).count(), 1);
    assert_eq!(ends.len(), 7);
    assert!(estate.state().state.state.resources.is_empty(), "nothing is owned before a commit");

    assert_eq!(refused(&estate.plan(&runtime).expect_err("pending")), Code::E419StateRecoveryRequired);
    let next = estate.apply(&runtime);
    assert_eq!((failed(&next), next.recovery_required), (Code::E419StateRecoveryRequired, false));
}

fn create_directly(topic: &str) {
    use streamt::compiler::artifact::{OwnerType, Ownership, TopicArtifact};
    let artifact = TopicArtifact {
        name: topic.to_owned(),
        partitions: 1,
        replication_factor: 1,
        config: Default::default(),
        ownership: Ownership {
            mode: OwnershipMode::Managed,
            project: "other".to_owned(),
            owner_type: OwnerType::Model,
            name: "other".to_owned(),
        },
    };
    struct Free;
    impl streamt::providers::MutationGuard for Free {
        fn check(&self) -> Result<(), streamt::providers::Lost> {
            Ok(())
        }

        async fn lost(&self) -> streamt::providers::Lost {
            std::future::pending().await
        }
    }
    with_kafka(async |kafka, ctx| {
        for (_, outcome) in kafka.create_topics(ctx, &Free, &[artifact]).await {
            outcome.expect("created");
        }
    });
}

/// What the broker would refuse never becomes an operation.
#[test]
fn a_config_that_the_broker_does_not_know_is_refused_before_the_intent() {
    let (estate, runtime) = (Estate::new("typo"), runtime());
    estate.declare(&[
        ("a", "  partitions: 1\n  replication_factor: 1\n  config:\n    retention.mss: \"1\""),
        ("b", PLAIN),
    ]);
    let (outcome, events) = estate.apply_watched(&runtime, Control::default(), |_| {});
    assert_eq!(failed(&outcome), Code::E407DeployError, "{outcome:#?}");
    assert_eq!((outcome.operation_id, outcome.committed), (None, Some(false)));
    assert!(format!("{:?}", outcome.end).contains("retention.mss"), "the broker's own words: {outcome:#?}");
    assert!(!events.iter().any(|event| matches!(event, OperationEvent::Began { .. })));
    assert!(estate.live(&["a", "b"]).is_empty());
    assert!(estate.state().control.control.is_clear());
}

/// SAF-048
#[test]
fn a_blocked_plan_changes_nothing_even_under_force() {
    let (estate, runtime) = (Estate::new("blocked"), runtime());
    estate.declare(&[("a", "  partitions: 3\n  replication_factor: 1"), ("b", PLAIN)]);
    assert_eq!(estate.apply(&runtime).end, ApplyEnd::Committed);
    estate.declare(&[("a", PLAIN), ("b", "  partitions: 2\n  replication_factor: 1")]);
    let mut request = estate.direct();
    request.force = true;
    let outcome = runtime.apply_blocking(request, Control::default());
    assert_eq!(failed(&outcome), Code::E417SafetyBlocked);
    assert!(matches!(outcome.end, ApplyEnd::Blocked(_)));
    assert!(outcome.plan.is_some_and(|plan| !plan.blockers.is_empty()));
    let live = estate.live(&["a", "b"]);
    assert_eq!((live["a"].partitions, live["b"].partitions), (Some(3), Some(1)));
    assert!(estate.state().control.control.is_clear());
}

#[test]
fn a_topic_that_nobody_owns_is_not_taken_over() {
    let (estate, runtime) = (Estate::new("unowned"), runtime());
    create_directly(&estate.topic("a"));
    estate.declare(&[("a", "  partitions: 2\n  replication_factor: 1")]);
    let outcome = estate.apply(&runtime);
    assert_eq!(failed(&outcome), Code::E410OwnershipRequired, "{outcome:#?}");
    assert_eq!(estate.live(&["a"])["a"].partitions, Some(1));
}

#[test]
fn a_dry_run_goes_up_to_the_intent_and_writes_nothing() {
    let (estate, runtime) = (Estate::new("dry"), runtime());
    estate.declare(&[("a", PLAIN)]);
    let mut request = estate.direct();
    request.dry_run = true;
    let outcome = runtime.apply_blocking(request, Control::default());
    assert_eq!(outcome.end, ApplyEnd::DryRun);
    assert_eq!(outcome.plan.map(|plan| plan.creates()), Some(1));
    assert!(estate.live(&["a"]).is_empty());
    assert!(!estate.root().join(".streamt/state/default.json").exists());
}

/// SAF-027, SAF-028: the second apply waits, says so, and gives up; it never acts on the first one's serial.
#[test]
fn a_lock_held_by_another_apply_is_waited_for_and_then_refused() {
    let (estate, first, second) = (Estate::new("held"), runtime(), runtime());
    estate.declare(&[("a", PLAIN)]);
    let (entered, wait) = mpsc::channel();
    let (go, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            estate.apply_watched(&first, Control::default(), move |event| {
                if let OperationEvent::Planned { .. } = event {
                    let _ = entered.send(());
                    let _ = hold.lock().expect("whole").recv_timeout(Duration::from_secs(20));
                }
            })
        });
        wait.recv_timeout(Duration::from_secs(20)).expect("the first holds the lock");
        let (outcome, events) = estate.apply_watched(&second, Control::default(), |_| {});
        assert_eq!(failed(&outcome), Code::E422StateLockTimeout, "{outcome:#?}");
        assert!(events.iter().any(|event| matches!(event, OperationEvent::WaitingForLock { .. })));
        go.send(()).expect("heard");
        let (outcome, _) = holder.join().expect("no panic");
        assert_eq!(outcome.end, ApplyEnd::Committed, "{outcome:#?}");
    });
    assert_eq!(estate.state().state.state.serial, 1);
}

/// A first signal: what is in flight ends and is recorded, nothing further starts.
#[test]
fn a_signal_in_the_middle_lets_the_action_in_flight_end_and_starts_no_other() {
    let (estate, runtime) = (Estate::new("signal"), runtime());
    estate.declare(&[("a", &schema(ID)), ("b", &schema(ID))]);
    let control = Control::default();
    let cancel = control.cancel.clone();
    let (outcome, events) = estate.apply_watched(&runtime, control, move |event| {
        if let OperationEvent::ActionStarted { index: 1, .. } = event {
            cancel.request(Signal::Terminate);
        }
    });
    assert!(matches!(outcome.end, ApplyEnd::Interrupted(Signal::Terminate, _)), "{outcome:#?}");
    assert!(outcome.recovery_required);
    let started = events.iter().filter(|event| matches!(event, OperationEvent::ActionStarted { .. })).count();
    assert_eq!(started, 2);
    assert_eq!(outcome.lists.not_started.len(), 2, "the two topics behind the schemas");
    let control = estate.state().control.control;
    assert_eq!(control.status().failure_code, Some(FailureCode::OperationInterrupted));
    assert!(estate.live(&["a", "b"]).is_empty());
}

#[test]
fn a_signal_before_the_intent_leaves_nothing_behind() {
    let (estate, runtime) = (Estate::new("early"), runtime());
    estate.declare(&[("a", PLAIN)]);
    let control = Control::default();
    let cancel = control.cancel.clone();
    let (outcome, _) = estate.apply_watched(&runtime, control, move |event| {
        if let OperationEvent::Observing { .. } = event {
            cancel.request(Signal::Interrupt);
        }
    });
    assert!(matches!(outcome.end, ApplyEnd::Interrupted(Signal::Interrupt, _)), "{outcome:#?}");
    assert_eq!((failed(&outcome), outcome.operation_id), (Code::E903Interrupted, None));
    assert!(estate.live(&["a"]).is_empty());
    assert_eq!(estate.apply(&runtime).end, ApplyEnd::Committed, "and the lock is free");
}

/// The reviewed actions and nothing else; a second apply of the same file is stale.
#[test]
fn a_reviewed_plan_is_carried_out_once() {
    let (estate, runtime) = (Estate::new("reviewed"), runtime());
    estate.declare(&[("a", PLAIN), ("b", &schema(ID))]);
    let path = estate.root().join("plan.json");
    let saved = estate.save(&runtime, &path).expect("a plan").saved.expect("saved");
    let file = Arc::new(plan_file::read(&path).expect("readable"));
    assert_eq!(file.checksum, saved.checksum);
    let reviewed = || {
        let again = estate.compiled().expect("compiles");
        ApplySource::Reviewed { file: Arc::clone(&file), reload: Box::new(move || Ok(again)) }
    };
    let outcome = runtime.apply_blocking(estate.request(reviewed()), Control::default());
    assert_eq!(
        (&outcome.end, outcome.plan_checksum.as_ref()),
        (&ApplyEnd::Committed, Some(&file.checksum)),
        "{outcome:#?}"
    );
    let outcome = runtime.apply_blocking(estate.request(reviewed()), Control::default());
    assert_eq!(failed(&outcome), Code::E409PlanStale, "{outcome:#?}");
    assert!(matches!(outcome.end, ApplyEnd::Stale(_)));
}

/// The files changed between the command's own reading and the lock.
#[test]
fn a_project_that_changes_while_the_lock_is_waited_for_is_stale() {
    let (estate, runtime) = (Estate::new("reload"), runtime());
    estate.declare(&[("a", PLAIN)]);
    let path = estate.root().join("plan.json");
    estate.save(&runtime, &path).expect("a plan");
    let file = Arc::new(plan_file::read(&path).expect("readable"));
    let request = estate.request(ApplySource::Reviewed {
        file,
        reload: {
            let changed = Estate::new("reload-other");
            changed.declare(&[("a", PLAIN), ("z", PLAIN)]);
            let compiled = changed.compiled().expect("compiles");
            Box::new(move || Ok(compiled))
        },
    });
    let outcome = runtime.apply_blocking(request, Control::default());
    assert_eq!(failed(&outcome), Code::E409PlanStale);
    assert!(estate.live(&["a"]).is_empty());
}

/// I2: whoever looks at the store before the first byte of a mutation finds its `started` entry.
#[test]
fn every_mutation_finds_its_durable_started_entry_before_its_first_byte() {
    let runtime = runtime();
    let estate = Arc::new(std::sync::OnceLock::<Estate>::new());
    let (seen, looking) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&estate));
    let keep = Arc::clone(&seen);
    let proxy = Proxy::start(move |_| {
        let control = looking.get().expect("declared").state().control.control;
        let last = control.progress().last().map(|entry| (entry.status, entry.action_index, entry.action));
        keep.lock().expect("whole").push(last);
    });
    let estate = estate.get_or_init(|| Estate::new("durable").through(proxy.url.clone()));
    estate.declare(&[("a", &schema(ID)), ("b", &schema(ID)), ("c", PLAIN)]);
    assert_eq!(estate.apply(&runtime).end, ApplyEnd::Committed);
    let seen = seen.lock().expect("whole").clone();
    assert!(seen.len() >= 2, "{:?}", proxy.changes());
    for (entry, line) in seen.iter().zip(proxy.changes()) {
        let (status, index, verb) = entry.as_ref().expect("an entry");
        assert_eq!((*status, *verb), (ProgressStatus::Started, Verb::Register), "{line}");
        let subject = estate.subject(if *index == 0 { "a" } else { "b" });
        assert!(line.contains(&subject), "{line} under action {index}");
    }
}

/// I1, I5: the lock is lost while a request waits for its answer.
#[test]
fn a_lost_lock_drops_the_request_in_flight_and_sends_no_other() {
    let runtime = runtime();
    let (reached, wait) = mpsc::channel();
    let proxy = Proxy::start(move |_| {
        let _ = reached.send(());
        std::thread::sleep(Duration::from_secs(20));
    });
    let estate = Estate::new("lost").through(proxy.url.clone());
    estate.declare(&[("a", &schema(ID)), ("b", &schema(ID))]);
    let lock = estate.root().join(".streamt/state/.default.json.lock");
    let outcome = std::thread::scope(|scope| {
        let apply = scope.spawn(|| estate.apply(&runtime));
        wait.recv_timeout(Duration::from_secs(20)).expect("the first request");
        std::fs::remove_file(&lock).expect("removed");
        std::fs::write(&lock, b"").expect("written");
        let began = Instant::now();
        let outcome = apply.join().expect("no panic");
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        outcome
    });
    assert_eq!(failed(&outcome), Code::E423StateLockLost, "{outcome:#?}");
    assert_eq!((outcome.committed, outcome.recovery_required), (None, true));
    assert!(outcome.operation_id.is_some());
    assert_eq!(proxy.changes().len(), 1);
    let control = estate.state().control.control;
    assert_eq!(control.status().status, Status::InProgress);
    assert_eq!(control.progress().last().map(|entry| entry.status), Some(ProgressStatus::Started));
    assert_eq!(refused(&estate.plan(&runtime).expect_err("pending")), Code::E419StateRecoveryRequired);
}

/// SAF-030: a runtime that goes away in the middle.
#[test]
fn dropping_the_runtime_in_the_middle_frees_the_lock_and_leaves_the_started_entry() {
    let (reached, wait) = mpsc::channel();
    let proxy = Proxy::start(move |_| {
        let _ = reached.send(());
        std::thread::sleep(Duration::from_secs(20));
    });
    let estate = Estate::new("dropped").through(proxy.url.clone());
    estate.declare(&[("a", &schema(ID))]);
    let request = estate.direct();
    let (first, second) = (Arc::new(runtime()), runtime());
    let applying = Arc::downgrade(&first);
    let apply = std::thread::spawn(move || {
        blocking_on(async move {
            let pending = match applying.upgrade() {
                Some(runtime) => runtime,
                None => return None,
            };
            let outcome =
                tokio::time::timeout(Duration::from_secs(1), pending.apply(request, Control::default())).await;
            drop(pending);
            outcome.ok()
        })
    });
    wait.recv_timeout(Duration::from_secs(20)).expect("the first request");
    assert!(apply.join().expect("no panic").is_none(), "still in flight when its caller went away");
    let began = Instant::now();
    drop(first);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let control = estate.state().control.control;
    assert_eq!(control.status().status, Status::InProgress);
    assert_eq!(refused(&estate.plan(&second).expect_err("pending")), Code::E419StateRecoveryRequired);
}

fn blocking_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// A second signal: nobody waits for anything.
#[test]
fn a_second_signal_drops_what_is_in_flight_and_records_nothing_more() {
    let runtime = runtime();
    let cancel = Cancel::new();
    let signalled = cancel.clone();
    let proxy = Proxy::start(move |_| {
        signalled.request(Signal::Interrupt);
        signalled.abandon();
        std::thread::sleep(Duration::from_secs(20));
    });
    let estate = Estate::new("abandon").through(proxy.url.clone());
    estate.declare(&[("a", &schema(ID)), ("b", PLAIN)]);
    let began = Instant::now();
    let (outcome, _) = estate.apply_watched(&runtime, Control { cancel, ..Control::default() }, |_| {});
    assert!(began.elapsed() < Duration::from_secs(15));
    assert!(matches!(outcome.end, ApplyEnd::Interrupted(Signal::Interrupt, _)), "{outcome:#?}");
    assert_eq!((outcome.committed, outcome.recovery_required), (None, true));
    assert_eq!(estate.state().control.control.status().status, Status::InProgress);
    assert!(estate.live(&["b"]).is_empty());
}

/// Environments side by side: one whose provider hangs keeps no other from its plan.
#[test]
fn a_hanging_provider_of_one_environment_delays_no_other() {
    let runtime = runtime();
    let hung = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = hung.local_addr().expect("an address");
    let slow = Estate::new("slow").through(format!("http://{address}"));
    slow.declare(&[("a", &schema(ID))]);
    let quick: Vec<Estate> = (0..4).map(|index| Estate::new(&format!("quick{index}"))).collect();
    let request = |estate: &Estate| PlanRequest { compiled: estate.compiled().expect("compiles"), save: None };
    for estate in &quick {
        estate.declare(&[("a", &schema(ID)), ("b", PLAIN)]);
    }
    let stop = Cancel::new();
    let done = Arc::new(AtomicBool::new(false));
    blocking_on(async {
        let waiting = runtime.plan(request(&slow), Control { cancel: stop.clone(), ..Control::default() });
        let others = async {
            let plans =
                runtime.plan_all(quick.iter().map(|estate| (request(estate), Control::default())).collect()).await;
            done.store(true, Ordering::SeqCst);
            stop.request(Signal::Interrupt);
            plans
        };
        let (slow, plans) = tokio::join!(waiting, others);
        assert!(done.load(Ordering::SeqCst));
        let failure = slow.expect_err("interrupted, not answered");
        assert_eq!((refused(&failure), failure.signal), (Code::E903Interrupted, Some(Signal::Interrupt)));
        for plan in plans {
            assert_eq!(plan.expect("a plan").plan.creates(), 3);
        }
    });
}

/// Two runtimes in one process, each dropped while the other lives on.
#[test]
fn two_runtimes_live_side_by_side() {
    let (one, two) = (runtime(), runtime());
    let (first, second) = (Estate::new("one"), Estate::new("two"));
    first.declare(&[("a", PLAIN)]);
    second.declare(&[("a", PLAIN)]);
    assert_eq!(first.apply(&one).end, ApplyEnd::Committed);
    drop(one);
    assert_eq!(second.apply(&two).end, ApplyEnd::Committed);
    assert!(!first.plan(&two).expect("a plan").plan.has_changes());
}

/// LIM: a group is one request and two durable steps.
#[test]
fn three_hundred_topics_are_created_in_one_group() {
    let (estate, runtime) = (Estate::new("many"), runtime());
    let names: Vec<String> = (0..300).map(|index| format!("t{index:03}")).collect();
    let models: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), PLAIN)).collect();
    estate.declare(&models);
    let (outcome, events) = estate.apply_watched(&runtime, Control::default(), |_| {});
    assert_eq!((&outcome.end, outcome.lists.created.len()), (&ApplyEnd::Committed, 300));
    let order: Vec<bool> = events
        .iter()
        .filter_map(|event| match event {
            OperationEvent::ActionStarted { .. } => Some(true),
            OperationEvent::ActionFinished { .. } => Some(false),
            _ => None,
        })
        .collect();
    let turns = order.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(turns, 1, "started, finished");
    assert!(!estate.plan(&runtime).expect("a plan").plan.has_changes());
}
