//! A runtime: one OS thread with an actix system of its own, one for the lock actors, and everything that lives on them. A
//! process may hold several and drop them in any order; nothing is global.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Arbiter, ArbiterHandle, Context, Handler, Message, ResponseFuture, System};

use super::coordinator::{Coordinator, RunAdopt, RunApply, RunPlan, RunRecover, RunRecoveryPlan, Surroundings};
use super::discover;
use super::discover_connectors;
use super::registry::Registry;
use super::sampling::{self, RunSamples};
use super::schema_check::{self, AskSchemas};
use super::{status, store};
use crate::codes::{Code, Diagnostic};
use crate::messages::adoption::{AdoptEnd, AdoptOutcome, AdoptRequest};
use crate::messages::discover::{ConnectorsRequest, DiscoverRequest, Discovered, FoundConnectors};
use crate::messages::operation::{ApplyEnd, ApplyOutcome, ApplyRequest, Control, Failure, PlanOutcome, PlanRequest};
use crate::messages::recovery::{RecoverRequest, Recovered, RecoveryFailure, RecoveryPlanRequest, RecoveryPlanned};
use crate::messages::samples::{SampleAnswer, SampleRequest};
use crate::messages::status::{ObserveRequest, Observed};
use crate::project::Project;
use crate::state::store::Snapshot;
use crate::validate::{SchemaAnswer, SchemaQuestion};

/// Starts one coordinator and one lock actor for each operation; provider actors are shared.
struct Supervisor {
    providers: Rc<Registry>,
    lock_arbiter: ArbiterHandle,
    epoch: u64,
}

impl Supervisor {
    fn coordinator(&mut self) -> Addr<Coordinator> {
        self.epoch += 1;
        let surroundings = Surroundings {
            providers: Rc::clone(&self.providers),
            lock_arbiter: self.lock_arbiter.clone(),
            epoch: self.epoch,
        };
        Coordinator::new(surroundings).start()
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;
}

impl Handler<RunPlan> for Supervisor {
    type Result = ResponseFuture<Result<PlanOutcome, Failure>>;

    fn handle(&mut self, message: RunPlan, _: &mut Self::Context) -> Self::Result {
        let coordinator = self.coordinator();
        Box::pin(async move { coordinator.send(message).await.unwrap_or_else(|_| Err(ended().into())) })
    }
}

impl Handler<RunApply> for Supervisor {
    type Result = ResponseFuture<ApplyOutcome>;

    fn handle(&mut self, message: RunApply, _: &mut Self::Context) -> Self::Result {
        let coordinator = self.coordinator();
        Box::pin(async move { coordinator.send(message).await.unwrap_or_else(|_| ended_apply()) })
    }
}

impl Handler<RunAdopt> for Supervisor {
    type Result = ResponseFuture<AdoptOutcome>;

    fn handle(&mut self, message: RunAdopt, _: &mut Self::Context) -> Self::Result {
        let coordinator = self.coordinator();
        Box::pin(async move { coordinator.send(message).await.unwrap_or_else(|_| ended_adoption()) })
    }
}

impl Handler<RunRecoveryPlan> for Supervisor {
    type Result = ResponseFuture<Result<RecoveryPlanned, RecoveryFailure>>;

    fn handle(&mut self, message: RunRecoveryPlan, _: &mut Self::Context) -> Self::Result {
        let coordinator = self.coordinator();
        Box::pin(async move { coordinator.send(message).await.unwrap_or_else(|_| Err(ended().into())) })
    }
}

impl Handler<RunRecover> for Supervisor {
    type Result = ResponseFuture<Result<Recovered, RecoveryFailure>>;

    fn handle(&mut self, message: RunRecover, _: &mut Self::Context) -> Self::Result {
        let coordinator = self.coordinator();
        Box::pin(async move { coordinator.send(message).await.unwrap_or_else(|_| Err(ended_recovery())) })
    }
}

impl Handler<AskSchemas> for Supervisor {
    type Result = ResponseFuture<<AskSchemas as Message>::Result>;

    fn handle(&mut self, message: AskSchemas, _: &mut Self::Context) -> Self::Result {
        Box::pin(schema_check::ask(Rc::clone(&self.providers), message))
    }
}

impl Handler<RunSamples> for Supervisor {
    type Result = ResponseFuture<<RunSamples as Message>::Result>;

    fn handle(&mut self, message: RunSamples, _: &mut Self::Context) -> Self::Result {
        Box::pin(sampling::read(Rc::clone(&self.providers), message))
    }
}

/// Reads what exists, for declarations of it.
#[derive(Message)]
#[rtype(result = "Result<Discovered, Diagnostic>")]
struct RunDiscover {
    request: DiscoverRequest,
    control: Control,
}

impl Handler<RunDiscover> for Supervisor {
    type Result = ResponseFuture<Result<Discovered, Diagnostic>>;

    fn handle(&mut self, RunDiscover { request, control }: RunDiscover, _: &mut Self::Context) -> Self::Result {
        let providers = Rc::clone(&self.providers);
        Box::pin(async move {
            let cancel = control.cancel.requested().clone();
            discover::discover(request, &providers, &control.observer, cancel).await
        })
    }
}

/// Reads which connectors exist, for declarations of them.
#[derive(Message)]
#[rtype(result = "Result<FoundConnectors, Diagnostic>")]
struct RunDiscoverConnectors {
    request: ConnectorsRequest,
    control: Control,
}

impl Handler<RunDiscoverConnectors> for Supervisor {
    type Result = ResponseFuture<Result<FoundConnectors, Diagnostic>>;

    fn handle(&mut self, message: RunDiscoverConnectors, _: &mut Self::Context) -> Self::Result {
        let RunDiscoverConnectors { request, control } = message;
        let providers = Rc::clone(&self.providers);
        Box::pin(async move {
            let cancel = control.cancel.requested().clone();
            discover_connectors::discover(request, &providers, &control.observer, cancel).await
        })
    }
}

/// Observes without planning.
#[derive(Message)]
#[rtype(result = "Observed")]
struct RunObserve {
    request: ObserveRequest,
    control: Control,
}

impl Handler<RunObserve> for Supervisor {
    type Result = ResponseFuture<Observed>;

    fn handle(&mut self, RunObserve { request, control }: RunObserve, _: &mut Self::Context) -> Self::Result {
        let providers = Rc::clone(&self.providers);
        Box::pin(async move { status::observe(request, &providers, control.cancel.requested().clone()).await })
    }
}

/// The actor system of a program that plans and applies. Dropping it ends what runs: leases close, requests are dropped, locks
/// are given back; a durable intent then waits for recovery.
pub struct Runtime {
    system: System,
    supervisor: Addr<Supervisor>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    /// E901 when the machine gives no thread.
    pub fn start() -> Result<Self, Diagnostic> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("streamt-runtime".to_owned()).spawn(move || run(&sender));
        let thread = thread.map_err(|_| no_thread())?;
        match receiver.recv() {
            Ok((system, supervisor)) => Ok(Self { system, supervisor, thread: Some(thread) }),
            Err(_) => Err(no_thread()),
        }
    }

    /// Plans one environment. Callable from any executor.
    pub async fn plan(&self, request: PlanRequest, control: Control) -> Result<PlanOutcome, Failure> {
        self.supervisor.send(RunPlan { request, control }).await.unwrap_or_else(|_| Err(ended().into()))
    }

    /// Applies one environment. Callable from any executor.
    pub async fn apply(&self, request: ApplyRequest, control: Control) -> ApplyOutcome {
        self.supervisor.send(RunApply { request, control }).await.unwrap_or_else(|_| ended_apply())
    }

    /// Claims existing resources of one environment. Callable from any executor.
    pub async fn adopt(&self, request: AdoptRequest, control: Control) -> AdoptOutcome {
        self.supervisor.send(RunAdopt { request, control }).await.unwrap_or_else(|_| ended_adoption())
    }

    /// [`Self::adopt`] for a caller without an executor.
    pub fn adopt_blocking(&self, request: AdoptRequest, control: Control) -> AdoptOutcome {
        self.block_on(RunAdopt { request, control }).unwrap_or_else(ended_adoption)
    }

    /// Plans many environments side by side; one that fails or hangs changes nothing in another. Outcomes in request order.
    pub async fn plan_all(&self, requests: Vec<(PlanRequest, Control)>) -> Vec<Result<PlanOutcome, Failure>> {
        let plans = requests.into_iter().map(|(request, control)| self.plan(request, control));
        futures_util::future::join_all(plans).await
    }

    /// Applies many environments side by side. Outcomes in request order.
    pub async fn apply_all(&self, requests: Vec<(ApplyRequest, Control)>) -> Vec<ApplyOutcome> {
        let applies = requests.into_iter().map(|(request, control)| self.apply(request, control));
        futures_util::future::join_all(applies).await
    }

    /// [`Self::plan`] for a caller without an executor.
    pub fn plan_blocking(&self, request: PlanRequest, control: Control) -> Result<PlanOutcome, Failure> {
        self.block_on(RunPlan { request, control }).unwrap_or_else(|| Err(ended().into()))
    }

    /// [`Self::apply`] for a caller without an executor.
    pub fn apply_blocking(&self, request: ApplyRequest, control: Control) -> ApplyOutcome {
        self.block_on(RunApply { request, control }).unwrap_or_else(ended_apply)
    }

    /// Observes what a blocked operation left and saves the evidence for its recovery. Callable from any executor.
    pub async fn plan_recovery(
        &self,
        request: RecoveryPlanRequest,
        control: Control,
    ) -> Result<RecoveryPlanned, RecoveryFailure> {
        self.supervisor.send(RunRecoveryPlan { request, control }).await.unwrap_or_else(|_| Err(ended().into()))
    }

    /// [`Self::plan_recovery`] for a caller without an executor.
    pub fn plan_recovery_blocking(
        &self,
        request: RecoveryPlanRequest,
        control: Control,
    ) -> Result<RecoveryPlanned, RecoveryFailure> {
        self.block_on(RunRecoveryPlan { request, control }).unwrap_or_else(|| Err(ended().into()))
    }

    /// Ends a blocked operation as reviewed. Callable from any executor.
    pub async fn recover(&self, request: RecoverRequest, control: Control) -> Result<Recovered, RecoveryFailure> {
        self.supervisor.send(RunRecover { request, control }).await.unwrap_or_else(|_| Err(ended_recovery()))
    }

    /// [`Self::recover`] for a caller without an executor.
    pub fn recover_blocking(&self, request: RecoverRequest, control: Control) -> Result<Recovered, RecoveryFailure> {
        self.block_on(RunRecover { request, control }).unwrap_or_else(|| Err(ended_recovery()))
    }

    /// Observes live resources without lock, state or plan. Callable from any executor.
    pub async fn observe(&self, request: ObserveRequest, control: Control) -> Observed {
        self.supervisor.send(RunObserve { request, control }).await.unwrap_or_else(|_| ended_observation())
    }

    /// [`Self::observe`] for a caller without an executor.
    pub fn observe_blocking(&self, request: ObserveRequest, control: Control) -> Observed {
        self.block_on(RunObserve { request, control }).unwrap_or_else(ended_observation)
    }

    /// Reads records of topics, and the schemas they were written with. Answers in the order of the requests. Blocks.
    pub fn read_samples_blocking(
        &self,
        project: Arc<Project>,
        requests: Vec<SampleRequest>,
        control: Control,
    ) -> Vec<SampleAnswer> {
        self.block_on(RunSamples { project, requests, control }).unwrap_or_default()
    }

    /// Reads which topics exist, and the schemas of their values, without lock, state or plan. Blocks.
    pub fn discover_blocking(&self, request: DiscoverRequest, control: Control) -> Result<Discovered, Diagnostic> {
        self.block_on(RunDiscover { request, control }).unwrap_or_else(|| Err(ended()))
    }

    /// Reads which connectors exist, without lock, state or plan. Blocks.
    pub fn discover_connectors_blocking(
        &self,
        request: ConnectorsRequest,
        control: Control,
    ) -> Result<FoundConnectors, Diagnostic> {
        self.block_on(RunDiscoverConnectors { request, control }).unwrap_or_else(|| Err(ended()))
    }

    /// Asks the project's schema registry about subjects that it only reads. Blocks.
    pub fn ask_schemas_blocking(
        &self,
        project: Arc<Project>,
        questions: Vec<SchemaQuestion>,
        control: Control,
    ) -> Vec<(SchemaQuestion, SchemaAnswer)> {
        self.block_on(AskSchemas { project, questions, control }).unwrap_or_default()
    }

    fn block_on<M>(&self, message: M) -> Option<M::Result>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        Supervisor: Handler<M>,
        Context<Supervisor>: ToEnvelope<Supervisor, M>,
    {
        let (sender, receiver) = mpsc::channel();
        let supervisor = self.supervisor.clone();
        self.system.arbiter().spawn(async move {
            if let Ok(outcome) = supervisor.send(message).await {
                let _ = sender.send(outcome);
            }
        });
        receiver.recv().ok()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.system.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of an environment as it stands, without the lock: for `state status` and `status`. E420, E411. Blocks.
pub fn read_state(project: &Project) -> Result<Snapshot, Diagnostic> {
    store::read(project).map_err(|error| error.diagnostic())
}

/// The body of the runtime's thread. The lock actors run on a thread of their own, so that work here cannot delay the
/// detection of a lost lock.
fn run(started: &mpsc::Sender<(System, Addr<Supervisor>)>) {
    let runner = System::new();
    let ready = runner.block_on(async {
        let locks = Arbiter::try_new().ok()?;
        let lock_arbiter = locks.handle();
        let supervisor = Supervisor { providers: Rc::new(Registry::new()), lock_arbiter, epoch: 0 }.start();
        started.send((System::current(), supervisor)).ok()?;
        Some(locks)
    });
    if let Some(locks) = ready {
        let _ = runner.run();
        locks.stop();
        let _ = locks.join();
    }
}

fn no_thread() -> Diagnostic {
    Diagnostic::new(Code::E901Internal, "no thread could be started for the runtime")
}

fn ended() -> Diagnostic {
    Diagnostic::new(Code::E903Interrupted, "the runtime ended before the operation did")
        .suggest("read `streamt state status` before anything else")
}

/// Nobody is left who could tell how far it came.
fn ended_apply() -> ApplyOutcome {
    ApplyOutcome { committed: None, ..ApplyOutcome::stopped(ApplyEnd::Failed(ended().into())) }
}

fn ended_adoption() -> AdoptOutcome {
    AdoptOutcome { committed: None, ..AdoptOutcome::stopped(AdoptEnd::Failed(ended().into())) }
}

fn ended_recovery() -> RecoveryFailure {
    RecoveryFailure { committed: None, ..ended().into() }
}

fn ended_observation() -> Observed {
    Observed {
        topics: Err(ended()),
        source_topics: Err(ended()),
        subjects: Err(ended()),
        connectors: Err(ended()),
        jobs: Err(ended()),
        consumers: None,
        counts: None,
    }
}
