//! Reads: strict observations, and the lenient ones of `status` and of validation.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Method, StatusCode};

use super::{ConfigVerdict, ConnectClient, ConnectorStatus, Direction, wire};
use crate::compiler::artifact::ConnectorArtifact;
use crate::planner::connector::{ConnectorName, ManagedConnectorObservation};
use crate::providers::http::{LIST_LIMIT, Request};
use crate::providers::{Ctx, ProviderFailure};

/// Observations of one question that are in flight together.
const AT_ONCE: usize = 8;
/// How long a rebalance is waited for before anything is changed.
const SETTLE: Duration = Duration::from_secs(10);
const SETTLE_PAUSE: Duration = Duration::from_millis(200);

impl ConnectClient {
    /// Whether a worker answers and takes the credentials.
    pub async fn probe(&self, ctx: &Ctx) -> Result<(), ProviderFailure> {
        let answer = self.http.read(ctx, &Request::get(&[])).await?;
        match answer.status {
            StatusCode::OK => answer.json().map(|_| ()),
            _other => Err(wire::refusal(&answer)),
        }
    }

    /// Exactly one bounded GET of exactly one connector.
    pub async fn observe_managed_connector(
        &self,
        ctx: &Ctx,
        name: &ConnectorName,
    ) -> Result<ManagedConnectorObservation, ProviderFailure> {
        let answer = self.http.read_once(ctx, &Request::get(&["connectors", name.as_str()])).await?;
        if wire::says_absent(&answer, name) {
            return Ok(ManagedConnectorObservation::absent(self.binding.clone(), name.clone()));
        }
        match answer.status {
            StatusCode::OK => wire::connector(&self.binding, name, &answer),
            _other => Err(wire::refusal(&answer)),
        }
    }

    /// An observation, asked again for at most 10 seconds while the worker says that it is rebalancing: never after something
    /// was started.
    pub async fn settled(
        &self,
        ctx: &Ctx,
        name: &ConnectorName,
    ) -> Result<ManagedConnectorObservation, ProviderFailure> {
        until_settled(ctx, async || self.observe_managed_connector(ctx, name).await).await
    }

    /// One observation a name.
    pub async fn observe(
        &self,
        ctx: &Ctx,
        names: &[ConnectorName],
    ) -> Result<BTreeMap<String, ManagedConnectorObservation>, ProviderFailure> {
        stream::iter(names)
            .map(|name| async move { Ok((name.as_str().to_owned(), self.settled(ctx, name).await?)) })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// None for a connector that does not exist.
    pub async fn status(&self, ctx: &Ctx, name: &ConnectorName) -> Result<Option<ConnectorStatus>, ProviderFailure> {
        let answer = self.http.read(ctx, &Request::get(&["connectors", name.as_str(), "status"])).await?;
        match answer.status {
            StatusCode::OK => wire::status(name, &answer).map(Some),
            _other if wire::says_absent(&answer, name) => Ok(None),
            _other => Err(wire::refusal(&answer)),
        }
    }

    /// Asks the worker to judge configurations, one verdict each. Nothing is changed, and only a judgement counts: a worker that
    /// cannot be asked leaves the verdict open. The one failure is that the question was stopped.
    pub async fn validate(
        &self,
        ctx: &Ctx,
        artifacts: &[ConnectorArtifact],
    ) -> Result<Vec<ConfigVerdict>, ProviderFailure> {
        if artifacts.is_empty() {
            return Ok(Vec::new());
        }
        let plugins = Request { limit: LIST_LIMIT, ..Request::get(&["connector-plugins"]) };
        let plugins = match self.http.read_once(ctx, &plugins).await {
            Ok(answer) if answer.status == StatusCode::OK => wire::plugins(&answer),
            Err(ProviderFailure::Aborted { uncertain }) => return Err(ProviderFailure::Aborted { uncertain }),
            Ok(_) | Err(_) => None,
        };
        let plugins = plugins.as_deref();
        stream::iter(artifacts).map(|artifact| self.judge(ctx, plugins, artifact)).buffered(AT_ONCE).try_collect().await
    }

    async fn judge(
        &self,
        ctx: &Ctx,
        plugins: Option<&[wire::Plugin]>,
        artifact: &ConnectorArtifact,
    ) -> Result<ConfigVerdict, ProviderFailure> {
        let class = artifact.connector_class.as_str();
        let known = plugins.map(|plugins| plugins.iter().find(|plugin| plugin.answers_to(class)));
        if known.flatten().is_some_and(|plugin| plugin.direction == Direction::Source) {
            return Ok(ConfigVerdict::NotASink);
        }
        let request = Request {
            method: Method::PUT,
            path: &["connector-plugins", class, "config", "validate"],
            query: "",
            body: Some(wire::config_body(artifact)),
            limit: LIST_LIMIT,
        };
        match self.http.read_once(ctx, &request).await {
            Ok(answer) => Ok(match (answer.status.as_u16(), known) {
                (200, _) => wire::verdict(&answer),
                // A class that no worker has is told by the same number as a failed worker.
                (400 | 404 | 500, Some(None)) => ConfigVerdict::NoPlugin,
                _other => ConfigVerdict::Unknown,
            }),
            Err(ProviderFailure::Aborted { uncertain }) => Err(ProviderFailure::Aborted { uncertain }),
            Err(_) => Ok(ConfigVerdict::Unknown),
        }
    }
}

/// The same read again, for at most 10 seconds, while the worker says that it is rebalancing.
pub(super) async fn until_settled<T>(
    ctx: &Ctx,
    ask: impl AsyncFn() -> Result<T, ProviderFailure>,
) -> Result<T, ProviderFailure> {
    let wait = Ctx::new(ctx.purpose, ctx.at_most(SETTLE), ctx.cancel.clone());
    loop {
        match ask().await {
            Err(failure) if wire::is_rebalance(&failure) && !wait.remaining().is_zero() => {
                ctx.read(async {
                    tokio::time::sleep(SETTLE_PAUSE).await;
                    Ok(())
                })
                .await?;
            }
            outcome => return outcome,
        }
    }
}
