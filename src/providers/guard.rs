//! The right to mutate, and the adapter that stops a mutation the moment the right is lost.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::failure::ProviderFailure;
use crate::failpoint;

/// The right to mutate is gone: the lock is lost or the lease has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost;

/// The right to send one durable action's requests. Held by whoever proved the lock; asked directly before every write.
pub trait MutationGuard: Send + Sync {
    /// Whether the right still stands.
    fn check(&self) -> Result<(), Lost>;

    /// Completes when the right is lost; pending while it stands.
    fn lost(&self) -> impl Future<Output = Lost> + Send;
}

/// Polls a mutation only while its guard stands: the guard is asked before every poll and the mutation is dropped on loss.
/// A mutation that was never polled has had no effect; one that was may have been applied.
pub async fn guarded<G: MutationGuard, F: Future>(guard: &G, mutation: F) -> Result<F::Output, ProviderFailure> {
    let mut lost = pin!(guard.lost());
    let adapter = Guarded { guard, mutation: pin!(mutation), started: false, lost: lost.as_mut() };
    adapter.await
}

struct Guarded<'a, G, F, L> {
    guard: &'a G,
    mutation: Pin<&'a mut F>,
    lost: Pin<&'a mut L>,
    started: bool,
}

impl<G: MutationGuard, F: Future, L: Future<Output = Lost>> Future for Guarded<'_, G, F, L> {
    type Output = Result<F::Output, ProviderFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.guard.check().is_err() || this.lost.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ProviderFailure::Aborted { uncertain: this.started }));
        }
        let first = !std::mem::replace(&mut this.started, true);
        if first {
            failpoint::point("request.admitted");
        }
        let answer = this.mutation.as_mut().poll(cx).map(Ok);
        if answer.is_ready() {
            failpoint::point("request.answered");
        } else if first {
            failpoint::point("request.begun");
        }
        answer
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;
    use tokio_util::sync::CancellationToken;

    /// A guard that a test closes by hand.
    #[derive(Clone, Default)]
    pub struct HandGuard(pub CancellationToken);

    impl MutationGuard for HandGuard {
        fn check(&self) -> Result<(), Lost> {
            if self.0.is_cancelled() { Err(Lost) } else { Ok(()) }
        }

        async fn lost(&self) -> Lost {
            self.0.cancelled().await;
            Lost
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::testing::HandGuard;
    use super::*;

    #[tokio::test]
    async fn a_lost_guard_lets_no_mutation_begin() {
        let guard = HandGuard::default();
        guard.0.cancel();
        let polls = AtomicUsize::new(0);
        let outcome = guarded(&guard, async { polls.fetch_add(1, Ordering::SeqCst) }).await;
        assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
        assert_eq!(polls.load(Ordering::SeqCst), 0);
    }

    /// An expired right that nobody has told of yet.
    struct Expired(AtomicUsize);

    impl MutationGuard for Expired {
        fn check(&self) -> Result<(), Lost> {
            if self.0.load(Ordering::SeqCst) == 0 { Err(Lost) } else { Ok(()) }
        }

        async fn lost(&self) -> Lost {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn a_guard_is_asked_before_every_poll_and_not_only_listened_to() {
        let polls = AtomicUsize::new(0);
        let outcome = guarded(&Expired(AtomicUsize::new(0)), async { polls.fetch_add(1, Ordering::SeqCst) }).await;
        assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
        assert_eq!(polls.load(Ordering::SeqCst), 0);

        let guard = Expired(AtomicUsize::new(1));
        let expires = async {
            guard.0.store(0, Ordering::SeqCst);
            tokio::task::yield_now().await;
            polls.fetch_add(1, Ordering::SeqCst)
        };
        assert_eq!(guarded(&guard, expires).await, Err(ProviderFailure::Aborted { uncertain: true }));
        assert_eq!(polls.load(Ordering::SeqCst), 0, "what follows is never reached");
    }

    #[tokio::test]
    async fn a_guard_lost_while_the_reply_is_awaited_leaves_the_outcome_uncertain() {
        let guard = HandGuard::default();
        let closer = guard.clone();
        let outcome = tokio::join!(guarded(&guard, std::future::pending::<()>()), async move {
            tokio::task::yield_now().await;
            closer.0.cancel();
        })
        .0;
        assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: true }));
    }

    #[tokio::test]
    async fn a_standing_guard_lets_the_mutation_finish() {
        assert_eq!(guarded(&HandGuard::default(), async { 7 }).await, Ok(7));
    }
}
