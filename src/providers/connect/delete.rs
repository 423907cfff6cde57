//! The managed deletion. Connect has no conditional delete: between the observation before the DELETE and the DELETE itself
//! another writer can still change the connector, and no lock of ours keeps it out.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{ConnectClient, wire};
use crate::compiler::artifact::RESERVED_CONFIG;
use crate::planner::connector::ManagedConnectorObservation;
use crate::providers::http::Request;
use crate::providers::{Ctx, Identity, MutationGuard, ProviderFailure};

const POLLS: usize = 30;
const POLLING: Duration = Duration::from_secs(10);
const PAUSES: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400)];

/// The connector was deleted, and its exact absence was observed afterwards. Nothing else makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deleted(());

impl Deleted {
    pub const fn as_str(self) -> &'static str {
        "deleted"
    }
}

impl ConnectClient {
    /// Deletes what `current` shows, if it still is there exactly so: one observation, one DELETE, then observations until
    /// exact absence. Whatever else happens is [`ProviderFailure::RemovalDrift`], or an abort when the right was lost.
    ///
    /// ```compile_fail
    /// # async fn f(client: streamt::providers::ConnectClient, ctx: streamt::providers::Ctx, guard: impl streamt::providers::MutationGuard) {
    /// client.delete_managed_connector(&ctx, &guard, "archive-orders-sink").await;
    /// # }
    /// ```
    pub async fn delete_managed_connector<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        current: &ManagedConnectorObservation,
    ) -> Result<Deleted, ProviderFailure> {
        match self.delete(ctx, guard, current).await {
            Ok(()) => Ok(Deleted(())),
            Err(ProviderFailure::Aborted { uncertain }) => Err(ProviderFailure::Aborted { uncertain }),
            Err(_) => Err(ProviderFailure::RemovalDrift),
        }
    }

    async fn delete<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        current: &ManagedConnectorObservation,
    ) -> Result<(), ProviderFailure> {
        const DRIFT: ProviderFailure = ProviderFailure::RemovalDrift;
        let name = current.name();
        let config = current.config().filter(|_| current.binding() == &self.binding).ok_or(DRIFT)?;
        let text = |key: &&str| config.get(*key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if !RESERVED_CONFIG.iter().all(text) {
            return Err(DRIFT);
        }
        if self.observe_managed_connector(ctx, name).await? != *current {
            return Err(DRIFT);
        }
        let request =
            Request { method: Method::DELETE, path: &["connectors", name.as_str()], query: "", body: None, limit: 0 };
        let identity = Identity::Connector(name.as_str().to_owned());
        let answer = self.http.mutate(ctx, guard, &request, "delete", &identity).await?;
        if answer.status != StatusCode::NO_CONTENT || answer.announces_body() || !answer.is_empty() {
            return Err(DRIFT);
        }
        let polling = Ctx::new(ctx.purpose, ctx.at_most(POLLING), ctx.cancel.clone());
        for poll in 0..POLLS {
            match self.observe_managed_connector(&polling, name).await {
                Ok(live) if !live.exists() => return Ok(()),
                Ok(live) if live == *current => {}
                Err(failure) if wire::is_rebalance(&failure) => {}
                Ok(_) => return Err(DRIFT),
                Err(failure) => return Err(failure),
            }
            let pause = PAUSES[poll.min(PAUSES.len() - 1)];
            tokio::time::sleep(polling.at_most(pause)).await;
            if polling.remaining().is_zero() {
                break;
            }
        }
        Err(DRIFT)
    }
}
