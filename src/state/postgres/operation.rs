//! A lock hold behind the blocking contract of every store.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Target;
use super::engine::Engine;
use super::hold::Hold;
use super::resolve::SERVER_RELEASE_MAX;
use super::tx::TRANSACTION_TIMEOUT;
use crate::state::control::{ResolutionRecord, RunnerCompletion};
use crate::state::error::StateError;
use crate::state::model::StateAddress;
use crate::state::step::Step;
use crate::state::store::{Snapshot, StateOperation};

pub struct PostgresOperation {
    hold: Hold,
    /// After the hold: its sessions end with it.
    engine: Engine,
}

impl PostgresOperation {
    pub(super) fn acquire(
        target: Target,
        address: &StateAddress,
        timeout: Duration,
        give_up: &CancellationToken,
    ) -> Result<Self, StateError> {
        let engine = Engine::start()?;
        let hold = engine.run(Hold::acquire(target, address, timeout, give_up))?;
        Ok(Self { hold, engine })
    }
}

#[cfg(all(test, feature = "service-tests"))]
impl PostgresOperation {
    /// As a function called inside the session could do.
    pub fn unlock_behind_its_back(&mut self) {
        let client = &self.hold.session.client;
        self.engine.run(client.batch_execute("SELECT pg_advisory_unlock_all()")).expect("the session lives");
    }
}

impl StateOperation for PostgresOperation {
    fn observe(&mut self) -> Result<Snapshot, StateError> {
        self.engine.run(self.hold.observe())
    }

    fn check_lock(&mut self) -> Result<(), StateError> {
        self.engine.run(self.hold.check_lock())
    }

    fn execute(&mut self, step: Step) -> Result<Snapshot, StateError> {
        self.engine.run(self.hold.execute(step))
    }

    fn resolution(&mut self, recovery_operation_id: Uuid) -> Result<Option<ResolutionRecord>, StateError> {
        self.engine.run(self.hold.resolution(recovery_operation_id))
    }

    fn completion(&mut self, operation_id: Uuid) -> Result<Option<RunnerCompletion>, StateError> {
        self.engine.run(self.hold.completion(operation_id))
    }

    fn release(self) -> Result<(), StateError> {
        self.engine.run(self.hold.release())
    }

    fn watch(&mut self, lost: Box<dyn FnOnce() + Send>) {
        self.hold.session.loss().watch(lost);
    }

    fn patience(&self) -> Duration {
        TRANSACTION_TIMEOUT + self.hold.target.lock_timeout + SERVER_RELEASE_MAX + Duration::from_secs(3)
    }
}
