//! What every provider actor does with a message: wait for a permit without losing the bound of its mailbox, run the work
//! beside the actor, end it when its owner says so, and turn a panic into an uncertain outcome.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::{Actor, AsyncContext, Context, ResponseFuture, WrapFuture};
use futures_util::FutureExt;
use tokio::sync::Semaphore;

use super::lease::ActionLease;
use crate::providers::{Ctx, Lost, MutationGuard, ProviderFailure};

/// Work that may be in flight at one provider.
#[derive(Clone, Debug)]
pub(super) struct Permits(Arc<Semaphore>);

impl Permits {
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Stops the actor from taking messages until a permit is free, so that the mailbox fills and its senders wait.
    pub fn hold_mailbox<A: Actor<Context = Context<A>>>(&self, actor: &A, ctx: &mut Context<A>) {
        if self.0.available_permits() == 0 {
            let permits = Arc::clone(&self.0);
            ctx.wait(
                async move {
                    let _ = permits.acquire().await;
                }
                .into_actor(actor),
            );
        }
    }
}

/// Runs a read to its end, its deadline or its cancellation, whichever is first.
pub(super) async fn read<T>(
    permits: Permits,
    ctx: &Ctx,
    work: impl Future<Output = Result<T, ProviderFailure>>,
) -> Result<T, ProviderFailure> {
    let job = async {
        let _permit = permits.0.acquire().await.map_err(|_| ProviderFailure::Aborted { uncertain: false })?;
        work.await
    };
    let job = AssertUnwindSafe(job).catch_unwind();
    ctx.read(async { job.await.unwrap_or(Err(ProviderFailure::Aborted { uncertain: false })) }).await
}

/// A lease that remembers whether any request was admitted under it.
pub(super) struct Watched {
    lease: ActionLease,
    admitted: AtomicBool,
}

impl MutationGuard for ActionLease {
    fn check(&self) -> Result<(), Lost> {
        ActionLease::check(self).map(|_| ()).map_err(|_| Lost)
    }

    async fn lost(&self) -> Lost {
        ActionLease::lost(self).cancelled().await;
        Lost
    }
}

impl MutationGuard for Watched {
    fn check(&self) -> Result<(), Lost> {
        MutationGuard::check(&self.lease)?;
        self.admitted.store(true, Ordering::SeqCst);
        Ok(())
    }

    async fn lost(&self) -> Lost {
        MutationGuard::lost(&self.lease).await
    }
}

/// Runs a mutation under its lease. Losing the lease drops the work; so does a panic; either is uncertain once a request was
/// admitted. `aborted` says how the reply tells that.
pub(super) async fn mutate<T>(
    permits: Permits,
    lease: ActionLease,
    work: impl AsyncFnOnce(&Watched) -> T,
    aborted: impl FnOnce(ProviderFailure) -> T,
) -> T {
    let watched = Watched { lease, admitted: AtomicBool::new(false) };
    let job = async {
        let _permit = permits.0.acquire().await.ok()?;
        Some(work(&watched).await)
    };
    let job = AssertUnwindSafe(job).catch_unwind();
    let outcome = tokio::select! {
        biased;
        () = watched.lease.lost().cancelled() => None,
        outcome = job => outcome.ok().flatten(),
    };
    outcome.unwrap_or_else(|| aborted(ProviderFailure::Aborted { uncertain: watched.admitted.load(Ordering::SeqCst) }))
}

/// The one client of an actor, and what may be in flight under it. A client that cannot be built answers every message with the
/// reason.
pub(super) struct Desk<C> {
    client: Rc<Result<C, ProviderFailure>>,
    reads: Permits,
    mutations: Permits,
}

impl<C: 'static> Desk<C> {
    pub fn new(client: Result<C, ProviderFailure>, reads: usize) -> Self {
        Self { client: Rc::new(client), reads: Permits::new(reads), mutations: Permits::new(1) }
    }

    pub fn read<A: Actor<Context = Context<A>>, T: 'static>(
        &self,
        actor: &A,
        context: &mut Context<A>,
        ctx: Ctx,
        work: impl AsyncFnOnce(&C, &Ctx) -> Result<T, ProviderFailure> + 'static,
    ) -> ResponseFuture<Result<T, ProviderFailure>> {
        self.reads.hold_mailbox(actor, context);
        let (permits, client) = (self.reads.clone(), Rc::clone(&self.client));
        Box::pin(async move {
            read(permits, &ctx, async {
                match client.as_ref() {
                    Ok(client) => work(client, &ctx).await,
                    Err(failure) => Err(failure.clone()),
                }
            })
            .await
        })
    }

    pub fn mutate<A: Actor<Context = Context<A>>, T: 'static>(
        &self,
        actor: &A,
        context: &mut Context<A>,
        lease: ActionLease,
        work: impl AsyncFnOnce(&C, &Watched) -> Result<T, ProviderFailure> + 'static,
    ) -> ResponseFuture<Result<T, ProviderFailure>> {
        self.mutations.hold_mailbox(actor, context);
        let (permits, client) = (self.mutations.clone(), Rc::clone(&self.client));
        let work = async move |guard: &Watched| match client.as_ref() {
            Ok(client) => work(client, guard).await,
            Err(failure) => Err(failure.clone()),
        };
        Box::pin(mutate(permits, lease, work, Err))
    }
}

#[cfg(test)]
mod tests {
    use super::super::lease::Lost as Reason;
    use super::super::lease::testing::{action, lease};
    use super::*;

    fn failure(outcome: ProviderFailure) -> ProviderFailure {
        outcome
    }

    /// I1
    #[tokio::test]
    async fn losing_the_lease_drops_the_work_in_flight() {
        let (core, holder) = lease();
        let closer = Arc::clone(&core);
        let work = async |guard: &Watched| {
            guard.check().expect("open");
            closer.close(Reason::ProofFailed);
            std::future::pending().await
        };
        let outcome = mutate(Permits::new(1), action(&core, &holder, 0, 0), work, failure).await;
        assert_eq!(outcome, ProviderFailure::Aborted { uncertain: true });
    }

    #[tokio::test]
    async fn a_lease_lost_before_the_first_request_leaves_nothing_uncertain() {
        let (core, holder) = lease();
        let permission = action(&core, &holder, 0, 0);
        core.close(Reason::ProofFailed);
        let outcome = mutate(Permits::new(1), permission, async |_: &Watched| panic!("must not run"), failure).await;
        assert_eq!(outcome, ProviderFailure::Aborted { uncertain: false });
    }

    #[tokio::test]
    async fn a_panic_is_uncertain_only_after_a_request_was_admitted() {
        let (core, holder) = lease();
        let before = mutate(
            Permits::new(1),
            action(&core, &holder, 0, 0),
            async |_: &Watched| -> ProviderFailure { panic!("before") },
            failure,
        );
        assert_eq!(before.await, ProviderFailure::Aborted { uncertain: false });
        let after = mutate(
            Permits::new(1),
            action(&core, &holder, 1, 1),
            async |guard: &Watched| -> ProviderFailure {
                guard.check().expect("open");
                panic!("after")
            },
            failure,
        );
        assert_eq!(after.await, ProviderFailure::Aborted { uncertain: true });
    }

    /// An actor whose one permit is never given back.
    struct Stuck(Permits);

    impl Actor for Stuck {
        type Context = Context<Self>;

        fn started(&mut self, context: &mut Self::Context) {
            context.set_mailbox_capacity(4);
        }
    }

    #[derive(actix::Message)]
    #[rtype(result = "()")]
    struct Ask;

    impl actix::Handler<Ask> for Stuck {
        type Result = ResponseFuture<()>;

        fn handle(&mut self, _: Ask, context: &mut Self::Context) -> Self::Result {
            self.0.hold_mailbox(self, context);
            let permits = self.0.clone();
            Box::pin(async move {
                let _permit = permits.0.acquire().await;
                std::future::pending().await
            })
        }
    }

    #[actix::test]
    async fn the_mailbox_of_a_busy_provider_fills_and_its_senders_wait() {
        let actor = Stuck(Permits::new(1)).start();
        let mut taken = 0;
        for _ in 0..50 {
            if actor.try_send(Ask).is_ok() {
                taken += 1;
            }
            tokio::task::yield_now().await;
        }
        assert!((1..20).contains(&taken), "{taken} of 50 were taken");
        assert!(matches!(actor.try_send(Ask), Err(actix::dev::SendError::Full(_))));
    }

    #[tokio::test]
    async fn a_cancelled_read_answers_at_once_and_gives_its_permit_back() {
        let permits = Permits::new(1);
        let cancel = tokio_util::sync::CancellationToken::new();
        let ctx = Ctx::new(crate::providers::Purpose::Plan, std::time::Duration::from_secs(5), cancel.clone());
        cancel.cancel();
        let outcome = read(permits.clone(), &ctx, std::future::pending::<Result<(), _>>()).await;
        assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
        assert_eq!(permits.0.available_permits(), 1);
    }
}
