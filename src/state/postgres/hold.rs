//! One lock hold: the session that owns the advisory lock, and the witness that looks at the same rows from another one.
#![expect(clippy::disallowed_methods, reason = "a session has deadlines and a heartbeat of its own")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Target;
use super::catalog::{self, Asker, Defect, Proved};
use super::classify::Trouble;
use super::history;
use super::rows::{self, ReadError, Site};
use super::session::{BEGIN_READ, PROOF_TIMEOUT, Purpose, Session};
use crate::failpoint;
use crate::state::control::{ResolutionRecord, RunnerCompletion};
use crate::state::error::{StateError, StateErrorKind};
use crate::state::model::{BackendKind, OwnershipState, StateAddress, StoreIdentity};
use crate::state::step::Mark;
use crate::state::store::Snapshot;

/// Between two tries for the lock.
const TRY_EVERY: Duration = Duration::from_millis(50);
/// A connection gets at least this long, however short the wait for the lock may be.
const LEAST_CONNECT: Duration = Duration::from_secs(2);
/// Reading everything of an address.
const READ_TIMEOUT: Duration = Duration::from_secs(35);

/// What the rows said when this hold last proved them.
pub struct Known {
    pub mark: Mark,
    pub revision: i64,
    pub state: Arc<OwnershipState>,
}

pub struct Hold {
    pub target: Target,
    pub site: Site,
    pub store: StoreIdentity,
    pub session: Session,
    pub witness: Option<Session>,
    /// None before the first observation and after a failure.
    pub known: Option<Known>,
    /// The operation that is pending, as far as this hold knows.
    pub pending: Option<Uuid>,
    /// The last operation that was committed under this hold.
    pub committed: Option<Uuid>,
    /// The lock is lost, or a step's outcome is in doubt: nothing more is sent on the session.
    pub broken: bool,
}

/// Proves the store, the writer and the address in one transaction of a session that does nothing else. E420, E411.
pub async fn prove_store(session: &Session, schema: &str, site: &Site) -> Result<Proved, StateError> {
    let proof = async {
        let client = &session.client;
        client.batch_execute(BEGIN_READ).await?;
        let proved = catalog::prove(client, schema).await?;
        catalog::prove_writer(client, &proved).await?;
        let registered = rows::registered(client, site).await;
        client.batch_execute("ROLLBACK").await?;
        Ok::<_, Defect>((proved, registered))
    };
    let proof = timeout(READ_TIMEOUT, proof).await.unwrap_or(Err(Defect::Trouble(Trouble::Gone)));
    match proof.map_err(|defect| defect.error(Asker::Ordinary))? {
        (proved, Ok(true)) => Ok(proved),
        (_, Ok(false)) => Err(unregistered()),
        (_, Err(ReadError::State(error))) => Err(error),
        (_, Err(ReadError::Trouble(trouble))) => Err(trouble.unavailable()),
    }
}

pub fn unregistered() -> StateError {
    StateError::unavailable("the address of this environment is not registered in its store")
        .suggest("run `streamt state init` for this project and environment with the owner's connection")
}

impl Hold {
    /// E420, E411, E422; E903 when `give_up` is cancelled.
    pub async fn acquire(
        target: Target,
        address: &StateAddress,
        wait: Duration,
        give_up: &CancellationToken,
    ) -> Result<Self, StateError> {
        tokio::select! {
            biased;
            () = give_up.cancelled() => Err(StateError::new(StateErrorKind::Interrupted)),
            outcome = Self::wait(target, address, wait) => outcome,
        }
    }

    async fn wait(target: Target, address: &StateAddress, wait: Duration) -> Result<Self, StateError> {
        let deadline = Instant::now() + wait;
        let site = Site::new(&target.schema, address);
        let bound = wait.max(LEAST_CONNECT);
        let session = Session::open(&target.endpoint, Purpose::Lock, target.lock_timeout, bound).await?;
        let proved = prove_store(&session, &target.schema, &site).await?;
        let key = site.key;
        loop {
            match timeout(PROOF_TIMEOUT, session.try_lock(key)).await {
                Ok(Ok(Some(true))) => break,
                Ok(Ok(Some(false))) => {}
                Ok(Ok(None)) => {
                    return Err(StateError::unavailable("its server changed while the lock was waited for"));
                }
                Ok(Err(trouble)) => return Err(trouble.unavailable()),
                Err(_) => return Err(Trouble::Gone.unavailable()),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StateError::new(StateErrorKind::LockTimeout));
            }
            sleep(TRY_EVERY.mul_f64(0.8 + 0.4 * jitter()).min(left)).await;
        }
        failpoint::point("lock.taken");
        let store = StoreIdentity { backend: BackendKind::Postgres, store_id: proved.store_id };
        let mut hold = Self {
            target,
            site,
            store,
            session,
            witness: None,
            known: None,
            pending: None,
            committed: None,
            broken: false,
        };
        hold.check_lock().await?;
        Ok(hold)
    }

    pub fn lost(&self) -> StateError {
        StateError::lock_lost().operation(self.pending)
    }

    /// Closes the connection: whoever watches it is told before this returns.
    pub fn give_up(&mut self) -> StateError {
        self.broken = true;
        self.session.close();
        self.lost()
    }

    pub async fn check_lock(&mut self) -> Result<(), StateError> {
        if self.broken || self.session.loss().is_lost() {
            return Err(self.lost());
        }
        match timeout(PROOF_TIMEOUT, self.session.prove(self.site.key)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(self.give_up()),
        }
    }

    pub async fn observe(&mut self) -> Result<Snapshot, StateError> {
        self.check_lock().await?;
        self.known = None;
        let (snapshot, revision) =
            self.read(async |hold, client| rows::snapshot(client, &hold.site, &hold.store).await).await?;
        self.pending = snapshot.control.control.operation_id();
        self.known = Some(Known { mark: Mark::of(&snapshot), revision, state: Arc::clone(&snapshot.state.state) });
        Ok(snapshot)
    }

    pub async fn resolution(&mut self, recovery_operation_id: Uuid) -> Result<Option<ResolutionRecord>, StateError> {
        self.check_lock().await?;
        self.read(async |hold, client| history::resolution(client, &hold.site, recovery_operation_id).await).await
    }

    pub async fn completion(&mut self, operation_id: Uuid) -> Result<Option<RunnerCompletion>, StateError> {
        self.check_lock().await?;
        self.read(async |hold, client| history::completion(client, &hold.site, &hold.store, operation_id).await).await
    }

    /// One transaction of the lock session that reads.
    async fn read<T>(
        &mut self,
        read: impl AsyncFnOnce(&Self, &Client) -> Result<T, ReadError>,
    ) -> Result<T, StateError> {
        let client = &self.session.client;
        let outcome = timeout(READ_TIMEOUT, async {
            client.batch_execute(BEGIN_READ).await?;
            let outcome = read(self, client).await;
            client.batch_execute("ROLLBACK").await?;
            outcome
        });
        match outcome.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(ReadError::State(error))) => Err(error.operation(self.pending)),
            Ok(Err(ReadError::Trouble(Trouble::Gone))) | Err(_) => Err(self.give_up()),
            Ok(Err(ReadError::Trouble(trouble))) => Err(trouble.unavailable().operation(self.pending)),
        }
    }

    /// The second session, of another server process than the lock's, with the same proofs.
    pub async fn witness(&mut self, bound: Duration) -> Result<&Session, StateError> {
        let usable = self.witness.as_ref().is_some_and(|witness| !witness.loss().is_lost());
        if !usable {
            self.witness = None;
            let session = Session::open(&self.target.endpoint, Purpose::Other, self.target.lock_timeout, bound).await?;
            if session.backend == self.session.backend {
                return Err(StateError::unavailable("its server gave one connection twice")
                    .suggest("connect to the server directly, not through a pooler"));
            }
            let proved = prove_store(&session, &self.target.schema, &self.site).await?;
            if proved.store_id != self.store.store_id {
                return Err(StateError::unavailable("a second connection reached another store")
                    .suggest("connect to one server directly, not through a pooler or a load balancer"));
            }
            self.witness = Some(session);
        }
        self.witness.as_ref().ok_or_else(|| Trouble::Gone.unavailable())
    }

    /// Gives the lock back, verified. E426 after a commit under this hold, else E423.
    pub async fn release(self) -> Result<(), StateError> {
        let unlocked = !self.broken
            && !self.session.loss().is_lost()
            && matches!(timeout(PROOF_TIMEOUT, self.session.unlock(self.site.key)).await, Ok(Ok(true)));
        failpoint::point("lock.released");
        match (unlocked, self.committed) {
            (true, _) => Ok(()),
            (false, Some(_)) => Err(StateError::new(StateErrorKind::ReleaseAfterCommit).operation(self.committed)),
            (false, None) => Err(self.lost()),
        }
    }
}

/// 0..1, so that contenders do not ask in step.
fn jitter() -> f64 {
    f64::from(u16::from_be_bytes([Uuid::new_v4().as_bytes()[0], Uuid::new_v4().as_bytes()[1]])) / f64::from(u16::MAX)
}
