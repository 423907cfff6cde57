//! The coordinator: one operation from the lock to the release. `machine` says what follows what, `gates` what must hold before
//! the durable intent, `observe` what is asked of the providers, `work` what is sent to them. `driver` and `effects` walk the
//! machine; `recover` ends an operation that was blocked, and `adopt` claims what exists. It promises that nothing is sent without a durable step before it, and that after a failure nothing more is sent at all.

mod adopt;
mod apply;
mod connectors;
mod driver;
mod effects;
mod gates;
mod jobs;
mod log;
mod machine;
mod observe;
mod recover;
mod targets;
mod work;

use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Addr, ArbiterHandle, AsyncContext, Context, Handler, Message, ResponseFuture};
use tokio_util::sync::CancellationToken;

use self::driver::Driver;
pub(in crate::actors) use self::observe::answered;
use super::lock::LockActor;
use super::registry::Registry;
use super::store;
use crate::codes::Diagnostics;
use crate::messages::adoption::{AdoptEnd, AdoptOutcome, AdoptRequest};
use crate::messages::lock::LockLost;
use crate::messages::operation::{
    ApplyEnd, ApplyOutcome, ApplyRequest, Control, Failure, Lists, PlanOutcome, PlanRequest,
};
use crate::messages::recovery::{RecoverRequest, Recovered, RecoveryFailure, RecoveryPlanRequest, RecoveryPlanned};
use crate::project::Project;
use crate::state::error::StateError;

const MAILBOX: usize = 16;

/// Runs a plan to its end.
#[derive(Message)]
#[rtype(result = "Result<PlanOutcome, Failure>")]
pub(crate) struct RunPlan {
    pub request: PlanRequest,
    pub control: Control,
}

/// Runs an apply to its end.
#[derive(Message)]
#[rtype(result = "ApplyOutcome")]
pub(crate) struct RunApply {
    pub request: ApplyRequest,
    pub control: Control,
}

/// Runs an adoption to its end.
#[derive(Message)]
#[rtype(result = "AdoptOutcome")]
pub(crate) struct RunAdopt {
    pub request: AdoptRequest,
    pub control: Control,
}

/// Makes the evidence for the recovery of a blocked operation.
#[derive(Message)]
#[rtype(result = "Result<RecoveryPlanned, RecoveryFailure>")]
pub(crate) struct RunRecoveryPlan {
    pub request: RecoveryPlanRequest,
    pub control: Control,
}

/// Ends a blocked operation as reviewed.
#[derive(Message)]
#[rtype(result = "Result<Recovered, RecoveryFailure>")]
pub(crate) struct RunRecover {
    pub request: RecoverRequest,
    pub control: Control,
}

/// What a coordinator is given by its runtime.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub providers: Rc<Registry>,
    /// The thread of the lock actors.
    pub lock_arbiter: ArbiterHandle,
    /// Unique in the runtime.
    pub epoch: u64,
}

/// One operation. Its driver runs beside its context, so that the loss of the lock is heard while a step is awaited.
pub(crate) struct Coordinator {
    surroundings: Surroundings,
    /// Cancelled when reads have no purpose any more.
    reads: CancellationToken,
}

impl Coordinator {
    pub fn new(surroundings: Surroundings) -> Self {
        Self { surroundings, reads: CancellationToken::new() }
    }

    fn driver(&self, project: &Project, control: Control, me: Addr<Self>) -> Result<Driver, StateError> {
        let opened = store::open(project)?;
        let (backend, address, epoch) = (Arc::clone(&opened.backend), opened.address.clone(), self.surroundings.epoch);
        let lock = LockActor::start_in_arbiter(&self.surroundings.lock_arbiter, move |_| {
            LockActor::new(backend, address, epoch)
        });
        Ok(Driver {
            control,
            reads: self.reads.clone(),
            providers: Rc::clone(&self.surroundings.providers),
            lock,
            me,
            store: opened,
            lease: None,
            seq: 0,
            warnings: Diagnostics::new(),
        })
    }
}

impl Actor for Coordinator {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.reads.cancel();
    }
}

impl Handler<LockLost> for Coordinator {
    type Result = ();

    fn handle(&mut self, _: LockLost, _: &mut Self::Context) {
        self.reads.cancel();
    }
}

impl Handler<RunPlan> for Coordinator {
    type Result = ResponseFuture<Result<PlanOutcome, Failure>>;

    fn handle(&mut self, RunPlan { request, control }: RunPlan, context: &mut Self::Context) -> Self::Result {
        let driver = self.driver(&request.compiled.project, control, context.address());
        Box::pin(async move { driver.map_err(|error| Failure::from(error.diagnostic()))?.plan(request).await })
    }
}

impl Handler<RunApply> for Coordinator {
    type Result = ResponseFuture<ApplyOutcome>;

    fn handle(&mut self, RunApply { request, control }: RunApply, context: &mut Self::Context) -> Self::Result {
        let driver = self.driver(&request.compiled.project, control, context.address());
        Box::pin(async move {
            match driver {
                Ok(driver) => driver.apply(request).await,
                Err(error) => ApplyOutcome::stopped(ApplyEnd::Failed(error.diagnostic().into())),
            }
        })
    }
}

impl Handler<RunAdopt> for Coordinator {
    type Result = ResponseFuture<AdoptOutcome>;

    fn handle(&mut self, RunAdopt { request, control }: RunAdopt, context: &mut Self::Context) -> Self::Result {
        let driver = self.driver(&request.compiled.project, control, context.address());
        Box::pin(async move {
            match driver {
                Ok(driver) => driver.adopt(request).await,
                Err(error) => AdoptOutcome::stopped(AdoptEnd::Failed(error.diagnostic().into())),
            }
        })
    }
}

impl Handler<RunRecoveryPlan> for Coordinator {
    type Result = ResponseFuture<Result<RecoveryPlanned, RecoveryFailure>>;

    fn handle(&mut self, message: RunRecoveryPlan, context: &mut Self::Context) -> Self::Result {
        let RunRecoveryPlan { request, control } = message;
        let driver = self.driver(&request.project, control, context.address());
        Box::pin(async move {
            driver.map_err(|error| RecoveryFailure::from(error.diagnostic()))?.plan_recovery(request).await
        })
    }
}

impl Handler<RunRecover> for Coordinator {
    type Result = ResponseFuture<Result<Recovered, RecoveryFailure>>;

    fn handle(&mut self, RunRecover { request, control }: RunRecover, context: &mut Self::Context) -> Self::Result {
        let driver = self.driver(&request.project, control, context.address());
        Box::pin(
            async move { driver.map_err(|error| RecoveryFailure::from(error.diagnostic()))?.recover(request).await },
        )
    }
}

impl ApplyOutcome {
    /// Ended before anything was read or written.
    pub(crate) fn stopped(end: ApplyEnd) -> Self {
        Self {
            end,
            plan: None,
            lists: Lists::default(),
            state: None,
            operation_id: None,
            committed: Some(false),
            recovery_required: false,
            plan_checksum: None,
            warnings: Diagnostics::new(),
        }
    }
}
