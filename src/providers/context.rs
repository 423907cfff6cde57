//! What bounds every call to a provider.
#![expect(clippy::disallowed_methods, reason = "a deadline is a point in time")]

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::failure::ProviderFailure;

/// Why a provider is asked; decides how strict a read is and how its failure is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    Plan,
    Apply,
    Adopt,
    Recover,
    Status,
    Observe,
    Import,
    Test,
    Probe,
}

/// The deadline and the cancellation of one call, made by its owner.
#[derive(Clone, Debug)]
pub struct Ctx {
    pub deadline: Instant,
    pub cancel: CancellationToken,
    pub purpose: Purpose,
}

impl Ctx {
    pub fn new(purpose: Purpose, budget: Duration, cancel: CancellationToken) -> Self {
        Self { deadline: Instant::now() + budget, cancel, purpose }
    }

    /// Time left; zero once the deadline has passed.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// The smaller of `bound` and the time left.
    pub fn at_most(&self, bound: Duration) -> Duration {
        bound.min(self.remaining())
    }

    /// The same call, with at most `bound` left.
    #[must_use]
    pub fn within(&self, bound: Duration) -> Self {
        Self { deadline: Instant::now() + self.at_most(bound), ..self.clone() }
    }

    /// Runs a read to its end, to the deadline or to cancellation, whichever comes first. Dropping a read has no effect.
    pub async fn read<T>(&self, work: impl Future<Output = Result<T, ProviderFailure>>) -> Result<T, ProviderFailure> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ProviderFailure::Aborted { uncertain: false }),
            () = tokio::time::sleep_until(self.deadline) => Err(ProviderFailure::Timeout),
            result = work => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read that nobody answers.
    async fn silent() -> Result<(), ProviderFailure> {
        std::future::pending().await
    }

    fn ctx(budget: Duration) -> Ctx {
        Ctx::new(Purpose::Plan, budget, CancellationToken::new())
    }

    #[tokio::test]
    async fn a_read_ends_at_its_deadline_and_no_bound_of_its_own_moves_that() {
        let begun = Instant::now();
        let ctx = ctx(Duration::from_millis(50));
        assert_eq!(ctx.within(Duration::from_secs(60)).read(silent()).await, Err(ProviderFailure::Timeout));
        assert!(begun.elapsed() >= Duration::from_millis(50) && ctx.remaining().is_zero());
        assert_eq!(ctx.at_most(Duration::from_secs(60)), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_read_ends_with_its_cancellation() {
        let ctx = ctx(Duration::from_secs(20));
        let cancels = async {
            tokio::task::yield_now().await;
            ctx.cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(ctx.read(silent()), cancels);
        assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
    }
}
