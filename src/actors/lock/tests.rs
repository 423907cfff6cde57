//! The lock actor over real files, and over a store that fails on demand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::hold::Operation;
use super::*;
use crate::state::local::LocalStore;
use crate::state::step;
use crate::state::testing::{at, empty_state_checksum, golden_intent, topic_creates};
use actix::Addr;

struct Site {
    directory: tempfile::TempDir,
    address: StateAddress,
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory, address: LocalStore::address("payments", "prod").expect("an address") }
    }

    fn store(&self) -> LocalStore {
        LocalStore::new(self.directory.path()).expect("a store")
    }

    fn actor(&self) -> Addr<LockActor> {
        LockActor::new(Arc::new(self.store()), self.address.clone(), 1).start()
    }

    fn lock_file(&self) -> std::path::PathBuf {
        self.directory.path().join(".streamt/state/.prod.json.lock")
    }
}

fn acquire() -> Acquire {
    Acquire { timeout: Duration::from_millis(200), give_up: CancellationToken::new() }
}

async fn held(actor: &Addr<LockActor>) -> Held {
    actor.send(acquire()).await.expect("alive").expect("the lock")
}

fn intent(actions: usize) -> crate::state::control::Intent {
    let mut intent = golden_intent(topic_creates(actions));
    intent.prior_state_serial = 0;
    intent.prior_state_checksum = empty_state_checksum();
    intent.reviewed_plan_checksum = None;
    intent
}

fn entries(intent: &crate::state::control::Intent, range: std::ops::Range<u32>, done: bool) -> StepKind {
    let entry = |index| match done {
        false => ProgressEntry::started(intent, index, at(1)),
        true => ProgressEntry::completed(intent, index, true, at(2)),
    };
    StepKind::Progress(range.map(|index| entry(index).expect("an action")).collect())
}

async fn step(actor: &Addr<LockActor>, expected: Snapshot, kind: StepKind) -> Result<Acked, StateError> {
    actor.send(Step { seq: 7, expected, kind }).await.expect("alive")
}

/// SAF-029: a permission is bought by a durable `started` step and by nothing else.
#[actix::test]
async fn only_started_entries_buy_an_action_lease() {
    let site = Site::new();
    let actor = site.actor();
    let Held { lease, snapshot, .. } = held(&actor).await;
    let intent = intent(2);
    let begun = step(&actor, snapshot, StepKind::Begin(intent.clone())).await.expect("begun");
    assert!(begun.ack.is_none());
    let started = step(&actor, begun.snapshot, entries(&intent, 0..2, false)).await.expect("started");
    let stored = site.store();
    let seen = StateBackendRead::read(&stored, &site.address);
    assert_eq!(seen.control.control.progress().len(), 2, "readable by others before the permission exists");
    let permission = lease.for_action(started.ack.expect("an acknowledgement")).expect("a permission");
    assert_eq!((permission.key().first, permission.key().last), (0, 1));
    assert!(permission.check().is_ok());
    let completed = step(&actor, started.snapshot, entries(&intent, 0..2, true)).await.expect("completed");
    assert!(completed.ack.is_none());
    let commit = StepKind::Commit { state: None, completed_at: at(3) };
    step(&actor, completed.snapshot, commit).await.expect("committed");
    actor.send(Release).await.expect("alive").expect("released");
    assert!(permission.check().is_err(), "a permission dies with the hold");
}

struct StateBackendRead;

impl StateBackendRead {
    fn read(store: &LocalStore, address: &StateAddress) -> Snapshot {
        crate::state::store::StateBackend::read_snapshot(store, address).expect("readable")
    }
}

/// SAF-027
#[actix::test]
async fn a_lock_held_by_another_is_waited_for_and_then_refused() {
    let site = Site::new();
    let (first, second) = (site.actor(), site.actor());
    let _held = held(&first).await;
    let began = Instant::now();
    let error = second.send(acquire()).await.expect("alive").expect_err("held");
    assert_eq!(error.kind, StateErrorKind::LockTimeout);
    assert!(began.elapsed() >= Duration::from_millis(200));
    first.send(Release).await.expect("alive").expect("released");
    assert!(site.actor().send(acquire()).await.expect("alive").is_ok());
}

#[actix::test]
async fn waiting_for_the_lock_ends_when_the_caller_gives_up() {
    let site = Site::new();
    let first = site.actor();
    let _held = held(&first).await;
    let give_up = CancellationToken::new();
    let waiting = site.actor().send(Acquire { timeout: Duration::from_secs(30), give_up: give_up.clone() });
    actix::spawn(async move { give_up.cancel() });
    let began = Instant::now();
    let error = waiting.await.expect("alive").expect_err("given up");
    assert_eq!(error.kind, StateErrorKind::Interrupted);
    assert!(began.elapsed() < Duration::from_secs(5));
}

struct Hears(std::sync::mpsc::Sender<LockLost>);

impl Actor for Hears {
    type Context = Context<Self>;
}

impl Handler<LockLost> for Hears {
    type Result = ();

    fn handle(&mut self, lost: LockLost, _: &mut Self::Context) {
        let _ = self.0.send(lost);
    }
}

/// I1, I4: local check by device and inode.
#[actix::test]
async fn a_replaced_lock_file_closes_the_lease_and_ends_all_writing() {
    let site = Site::new();
    let actor = site.actor();
    let Held { lease, snapshot, .. } = held(&actor).await;
    let (sender, receiver) = std::sync::mpsc::channel();
    actor.send(Subscribe(Hears(sender).start().recipient())).await.expect("alive");
    std::fs::remove_file(site.lock_file()).expect("removed");
    std::fs::write(site.lock_file(), b"").expect("written");
    let lost = tokio::time::timeout(Duration::from_secs(3), lease.core().lost().cancelled()).await;
    assert!(lost.is_ok(), "the heartbeat sees it");
    let error = step(&actor, snapshot, StepKind::Begin(intent(1))).await.expect_err("lost");
    assert_eq!(error.kind, StateErrorKind::LockLost);
    assert!(StateBackendRead::read(&site.store(), &site.address).control.control.is_clear());
    let told = receiver.recv_timeout(Duration::from_secs(1)).expect("told");
    assert_eq!(told.reason, Lost::ProofFailed);
    let error = actor.send(Release).await.expect("alive").expect_err("lost");
    assert_eq!(error.kind, StateErrorKind::LockLost);
}

/// The next holder takes the file lock as soon as the actor is gone.
#[actix::test]
async fn the_end_of_the_actor_closes_the_lease_and_frees_the_lock() {
    let site = Site::new();
    let actor = site.actor();
    let Held { lease, .. } = held(&actor).await;
    drop(actor);
    tokio::time::timeout(Duration::from_secs(2), lease.core().lost().cancelled()).await.expect("closed");
    assert_eq!(lease.core().reason(), Some(Lost::ActorGone));
    let next = Acquire { timeout: Duration::from_secs(5), give_up: CancellationToken::new() };
    assert!(site.actor().send(next).await.expect("alive").is_ok());
}

#[actix::test]
async fn a_hold_is_taken_once() {
    let site = Site::new();
    let actor = site.actor();
    let _held = held(&actor).await;
    let error = actor.send(acquire()).await.expect("alive").expect_err("taken already");
    assert_eq!(error.kind, StateErrorKind::LockLost);
}

/// A store whose steps do what the test says.
#[derive(Clone)]
struct Faulty {
    inner: LocalStore,
    step: Fault,
    unproved: Arc<AtomicBool>,
    watcher: Watcher,
}

type Watcher = Arc<std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>>;

#[derive(Clone, Copy)]
enum Fault {
    Panic,
    Answer(fn() -> StateError),
    LostAfterwards,
}

struct FaultyHold {
    inner: Box<dyn Operation>,
    step: Fault,
    unproved: Arc<AtomicBool>,
    watcher: Watcher,
}

impl Backend for Faulty {
    fn acquire(
        &self,
        address: &StateAddress,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<Box<dyn Operation>, StateError> {
        let inner = Backend::acquire(&self.inner, address, timeout, give_up)?;
        Ok(Box::new(FaultyHold {
            inner,
            step: self.step,
            unproved: Arc::clone(&self.unproved),
            watcher: Arc::clone(&self.watcher),
        }))
    }
}

impl Operation for FaultyHold {
    fn observe(&mut self) -> Result<Snapshot, StateError> {
        self.inner.observe()
    }

    fn check_lock(&mut self) -> Result<(), StateError> {
        if self.unproved.load(Ordering::SeqCst) {
            return Err(StateError::lock_lost());
        }
        self.inner.check_lock()
    }

    fn ensure_ready(&mut self, snapshot: &Snapshot) -> Result<(), StateError> {
        self.inner.ensure_ready(snapshot)
    }

    fn execute(&mut self, step: step::Step) -> Result<Snapshot, StateError> {
        match self.step {
            Fault::Panic => panic!("the store panics"),
            Fault::Answer(error) => Err(error()),
            Fault::LostAfterwards => {
                let snapshot = self.inner.execute(step)?;
                self.unproved.store(true, Ordering::SeqCst);
                Ok(snapshot)
            }
        }
    }

    fn resolution(&mut self, recovery_operation_id: uuid::Uuid) -> Result<Option<ResolutionRecord>, StateError> {
        self.inner.resolution(recovery_operation_id)
    }

    fn watch(&mut self, lost: Box<dyn FnOnce() + Send>) {
        *self.watcher.lock().expect("not poisoned") = Some(lost);
    }

    fn patience(&self) -> Duration {
        self.inner.patience()
    }

    fn release(self: Box<Self>) -> Result<(), StateError> {
        self.inner.release()
    }
}

async fn begin_under(fault: Fault) -> (StateErrorKind, bool) {
    let site = Site::new();
    let store = Faulty { inner: site.store(), step: fault, unproved: Arc::default(), watcher: Watcher::default() };
    let actor = LockActor::new(Arc::new(store), site.address.clone(), 1).start();
    let Held { lease, snapshot, .. } = held(&actor).await;
    let error = step(&actor, snapshot, StepKind::Begin(intent(1))).await.expect_err("a fault");
    (error.kind, lease.core().is_open())
}

#[actix::test]
async fn a_step_that_panics_leaves_an_unknown_outcome_and_a_closed_lease() {
    assert_eq!(begin_under(Fault::Panic).await, (StateErrorKind::UnknownCommit, false));
}

#[actix::test]
async fn a_step_that_was_refused_leaves_the_hold_standing() {
    assert_eq!(begin_under(Fault::Answer(StateError::conflict)).await, (StateErrorKind::Conflict, true));
}

/// I8
#[actix::test]
async fn a_step_without_an_answer_closes_the_lease() {
    assert_eq!(begin_under(Fault::Answer(StateError::unknown_commit)).await, (StateErrorKind::UnknownCommit, false));
}

/// The step stands; the lock behind it is not proved any more, so no permission follows.
#[actix::test]
async fn a_lock_lost_during_a_step_gives_no_acknowledgement() {
    assert_eq!(begin_under(Fault::LostAfterwards).await, (StateErrorKind::LockLost, false));
}

/// I1: a store that sees its session end closes the lease on its own thread, before the actor or anybody else hears of it.
#[actix::test]
async fn a_session_that_ends_closes_the_lease_before_anybody_is_told() {
    let site = Site::new();
    let watcher = Watcher::default();
    let store = Faulty {
        inner: site.store(),
        step: Fault::Answer(StateError::conflict),
        unproved: Arc::default(),
        watcher: Arc::clone(&watcher),
    };
    let actor = LockActor::new(Arc::new(store), site.address.clone(), 1).start();
    let Held { lease, snapshot, .. } = held(&actor).await;
    let (sender, receiver) = std::sync::mpsc::channel();
    actor.send(Subscribe(Hears(sender).start().recipient())).await.expect("alive");
    let ended = watcher.lock().expect("not poisoned").take().expect("watched");
    std::thread::spawn(ended).join().expect("no panic");
    assert!(!lease.core().is_open() && receiver.try_recv().is_err(), "closed, and nobody was told yet");
    assert_eq!(lease.core().reason(), Some(Lost::SessionEnded));
    let error = step(&actor, snapshot, StepKind::Begin(intent(1))).await.expect_err("lost");
    assert_eq!(error.kind, StateErrorKind::LockLost);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let told = receiver.recv_timeout(Duration::from_secs(1)).expect("told");
    assert_eq!(told.reason, Lost::SessionEnded);
}

/// I1: a heartbeat that finds the lock gone closes the lease itself; it needs no actor that still hears it.
#[actix::test]
async fn a_heartbeat_that_finds_the_lock_gone_closes_the_lease_before_anybody_is_told() {
    let site = Site::new();
    let operation = Backend::acquire(&site.store(), &site.address, Duration::from_secs(1), &CancellationToken::new());
    let hold = Shared::new(operation.expect("the lock"));
    let actor = site.actor().downgrade();
    let core = LeaseCore::open(1, ProofAt::now());
    std::fs::rename(site.lock_file(), site.directory.path().join("elsewhere")).expect("moved");
    tokio::time::timeout(Duration::from_secs(10), beat(Arc::clone(&core), hold, actor)).await.expect("it ends");
    assert_eq!((core.is_open(), core.reason()), (false, Some(Lost::ProofFailed)));
}
