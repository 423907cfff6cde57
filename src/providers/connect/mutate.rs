//! Creating and updating. A 409 proves that nothing happened, so the request may be sent again; nothing else does.

use std::time::Duration;

use reqwest::Method;

use super::{ConnectClient, wire};
use crate::compiler::artifact::ConnectorArtifact;
use crate::planner::connector::{ConnectorName, ManagedConnectorObservation};
use crate::providers::http::{Answer, Request, STRICT_LIMIT};
use crate::providers::{Ctx, Identity, MutationGuard, ProviderFailure};

/// Further sendings of a request that a rebalance refused.
const RESENDS: u32 = 3;
const RESEND_PAUSE: Duration = Duration::from_secs(1);

impl ConnectClient {
    /// Creates the connector; one that exists already is somebody else's, whatever its configuration.
    pub async fn create<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        artifact: &ConnectorArtifact,
    ) -> Result<ManagedConnectorObservation, ProviderFailure> {
        let name = addressable(artifact)?;
        let request = Request {
            method: Method::POST,
            path: &["connectors"],
            query: "",
            body: Some(wire::create_body(artifact)),
            limit: STRICT_LIMIT,
        };
        let answer = self.send(ctx, guard, &request, "create", &name).await?;
        match answer.status.as_u16() {
            201 => self.taken(&name, artifact, &answer, "create"),
            _other => Err(refused(&answer, "create", &name)),
        }
    }

    /// Replaces the configuration if the live connector still is `current`.
    pub async fn update<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        current: &ManagedConnectorObservation,
        artifact: &ConnectorArtifact,
    ) -> Result<ManagedConnectorObservation, ProviderFailure> {
        let name = addressable(artifact)?;
        if self.settled(ctx, &name).await? != *current {
            return Err(ProviderFailure::Conflict { what: "the configuration of the connector" });
        }
        let request = Request {
            method: Method::PUT,
            path: &["connectors", name.as_str(), "config"],
            query: "",
            body: Some(wire::config_body(artifact)),
            limit: STRICT_LIMIT,
        };
        let answer = self.send(ctx, guard, &request, "update", &name).await?;
        match answer.status.as_u16() {
            200 => self.taken(&name, artifact, &answer, "update"),
            201 => Err(ProviderFailure::Partial {
                done: vec!["the connector, gone meanwhile, was created again"],
                failed: "update",
                class: Box::new(ProviderFailure::Conflict { what: "the connector" }),
            }),
            _other => Err(refused(&answer, "update", &name)),
        }
    }

    /// The last answer, after at most three more attempts while a rebalance refuses.
    async fn send<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        request: &Request<'_>,
        stage: &'static str,
        name: &ConnectorName,
    ) -> Result<Answer, ProviderFailure> {
        let mut resends = 0;
        loop {
            let answer = self.http.mutate(ctx, guard, request, stage, &identity(name)).await?;
            if answer.status.as_u16() != 409 || resends == RESENDS {
                return Ok(answer);
            }
            // The same number says that a connector of this name exists.
            let creates = request.method == Method::POST;
            if creates && self.observe_managed_connector(ctx, name).await.is_ok_and(|live| live.exists()) {
                return Err(ProviderFailure::Conflict { what: "a connector of this name exists" });
            }
            tokio::time::sleep(RESEND_PAUSE).await;
            resends += 1;
        }
    }

    fn taken(
        &self,
        name: &ConnectorName,
        artifact: &ConnectorArtifact,
        answer: &Answer,
        stage: &'static str,
    ) -> Result<ManagedConnectorObservation, ProviderFailure> {
        let unresolved = || vec![identity(name)];
        let live = wire::connector(&self.binding, name, answer).map_err(|f| f.after_commit(stage, unresolved()))?;
        match wire::expected(&self.binding, name, artifact).as_ref() == Some(&live) {
            true => Ok(live),
            false => Err(ProviderFailure::Uncertain { stage, unresolved: unresolved() }),
        }
    }
}

fn identity(name: &ConnectorName) -> Identity {
    Identity::Connector(name.as_str().to_owned())
}

fn addressable(artifact: &ConnectorArtifact) -> Result<ConnectorName, ProviderFailure> {
    ConnectorName::new(&artifact.name).ok_or(ProviderFailure::Unsupported { what: "a name that no URL can hold" })
}

/// An answer to a change that is not its success: what does not prove that nothing happened is uncertain.
fn refused(answer: &Answer, stage: &'static str, name: &ConnectorName) -> ProviderFailure {
    match answer.status.as_u16() {
        408 | 429 | 500.. | ..400 => ProviderFailure::Uncertain { stage, unresolved: vec![identity(name)] },
        _definite => wire::refusal(answer),
    }
}
