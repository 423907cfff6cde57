//! Sessions and statements of the SQL Gateway.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::FlinkClient;
use super::jobs::pause;
use super::wire::{self, OperationState};
use crate::planner::flink::JobId;
use crate::providers::http::{Answer, ProviderHttp, Request, STRICT_LIMIT};
use crate::providers::{Ctx, Identity, MutationGuard, ProviderFailure, VendorText};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const CLOSE: Duration = Duration::from_secs(5);

/// The interface that is spoken: the newest that both sides know.
const VERSIONS: [&str; 3] = ["v3", "v2", "v1"];

/// An open session.
pub(super) struct Session<'a> {
    client: &'a FlinkClient,
    http: &'a ProviderHttp,
    version: &'static str,
    handle: String,
}

/// How a statement ended.
pub(super) enum Ran {
    Finished,
    /// The gateway ended it without success; what it says of the cause.
    Refused(Option<VendorText>),
    /// The gateway no longer says: it is away, or knows neither session nor operation, or the time is up.
    Lost(ProviderFailure),
}

impl FlinkClient {
    pub(super) async fn open_session(&self, ctx: &Ctx) -> Result<Session<'_>, ProviderFailure> {
        let http = self.gateway()?;
        let known = self.ask(ctx, http, &Request::get(&["api_versions"])).await?;
        if known.status != StatusCode::OK {
            return Err(wire::refusal(&known));
        }
        let known = wire::versions(&known);
        let version = VERSIONS.into_iter().find(|version| known.iter().any(|known| known == version));
        let version = version.ok_or(ProviderFailure::Unsupported { what: "no known version of the SQL Gateway" })?;
        let answer = self.tell(ctx, http, &[version, "sessions"], &json!({})).await?;
        match (answer.status, wire::handle(&answer, "sessionHandle")) {
            (StatusCode::OK, Some(handle)) => Ok(Session { client: self, http, version, handle }),
            (StatusCode::OK, None) => Err(ProviderFailure::Protocol { what: "session" }),
            _other => Err(wire::refusal(&answer)),
        }
    }

    /// A POST that changes nothing beyond a session: asked once.
    async fn tell(
        &self,
        ctx: &Ctx,
        http: &ProviderHttp,
        path: &[&str],
        body: &Value,
    ) -> Result<Answer, ProviderFailure> {
        let body = Some(body.to_string().into_bytes());
        let request = Request { method: Method::POST, path, query: "", body, limit: STRICT_LIMIT };
        http.read_once(&ctx.within(self.timeout), &request).await
    }
}

impl Session<'_> {
    /// Runs a statement that changes this session alone.
    pub(super) async fn run(&self, ctx: &Ctx, statement: &str) -> Ran {
        let path = [self.version, "sessions", &self.handle, "statements"];
        let answer = self.client.tell(ctx, self.http, &path, &json!({"statement": statement})).await;
        match answer {
            Ok(answer) if answer.status == StatusCode::OK => match wire::handle(&answer, "operationHandle") {
                Some(operation) => self.wait(ctx, &operation).await,
                None => Ran::Lost(ProviderFailure::Protocol { what: "operation" }),
            },
            Ok(answer) if answer.status.is_client_error() => {
                Ran::Refused(self.client.vendor_text(wire::cause(&answer)))
            }
            Ok(answer) => Ran::Lost(wire::refusal(&answer)),
            Err(failure) => Ran::Lost(failure),
        }
    }

    /// Sends the INSERT under a fixed job id: what makes the job. The answer, whatever its status, or why there is none.
    pub(super) async fn insert<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        statement: &str,
        name: &str,
        id: &JobId,
    ) -> Result<Answer, ProviderFailure> {
        let mut settings = Map::new();
        settings.insert("pipeline.name".to_owned(), json!(name));
        settings.insert("$internal.pipeline.job-id".to_owned(), json!(id.as_str()));
        let body = json!({"statement": statement, "executionConfig": settings}).to_string().into_bytes();
        let path = [self.version, "sessions", &self.handle, "statements"];
        let request = Request { method: Method::POST, path: &path, query: "", body: Some(body), limit: STRICT_LIMIT };
        let subject = Identity::Job(name.to_owned());
        self.http.mutate(&ctx.within(self.client.timeout), guard, &request, "submit", &subject).await
    }

    /// Waits for the end of an operation.
    pub(super) async fn wait(&self, ctx: &Ctx, operation: &str) -> Ran {
        let ctx = &ctx.within(self.client.statement_timeout);
        let path = [self.version, "sessions", &self.handle, "operations", operation, "status"];
        let mut wait = FIRST_PAUSE;
        loop {
            let answer = match self.client.ask(ctx, self.http, &Request::get(&path)).await {
                Ok(answer) if answer.status == StatusCode::OK => answer,
                Ok(answer) => return Ran::Lost(wire::refusal(&answer)),
                Err(failure) => return Ran::Lost(failure),
            };
            match wire::operation(&answer) {
                None => return Ran::Lost(ProviderFailure::Protocol { what: "operation status" }),
                Some(OperationState::Finished) => return Ran::Finished,
                Some(OperationState::Ended) => return Ran::Refused(self.cause(ctx, operation).await),
                Some(OperationState::Pending) if ctx.remaining().is_zero() => {
                    return Ran::Lost(ProviderFailure::Timeout);
                }
                Some(OperationState::Pending) => {
                    if let Err(failure) = pause(ctx, wait).await {
                        return Ran::Lost(failure);
                    }
                    wait = LONGEST_PAUSE.min(wait * 2);
                }
            }
        }
    }

    /// Why an operation failed, when the gateway still says so.
    async fn cause(&self, ctx: &Ctx, operation: &str) -> Option<VendorText> {
        let path = [self.version, "sessions", &self.handle, "operations", operation, "result", "0"];
        let answer = self.client.ask(ctx, self.http, &Request::get(&path)).await.ok()?;
        if answer.status.is_success() { None } else { self.client.vendor_text(wire::cause(&answer)) }
    }

    /// Ends whatever it still holds. A gateway that does not answer forgets it by itself.
    pub(super) async fn close(self, ctx: &Ctx) {
        let path = [self.version, "sessions", &self.handle];
        let request = Request { method: Method::DELETE, path: &path, query: "", body: None, limit: STRICT_LIMIT };
        let _ = self.http.read_once(&ctx.within(CLOSE), &request).await;
    }
}
