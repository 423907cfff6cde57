//! Changes: registering a version and setting a level.

use reqwest::{Method, StatusCode};

use super::{Registered, RegistryClient, Verdict, wire};
use crate::compiler::artifact::SchemaArtifact;
use crate::compiler::canonical::Checksum;
use crate::planner::observation::SchemaObservation;
use crate::project::model::Compatibility;
use crate::providers::http::{Answer, Request};
use crate::providers::{Ctx, Identity, MutationGuard, ProviderFailure, Reply};

impl RegistryClient {
    /// Registers the artifact's content if the live subject still is `current`, then sets its level if it declares another.
    /// `planned_version`: the number the register must get. `check_first`: the plan could not prove compatibility.
    pub async fn register<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        current: &SchemaObservation,
        artifact: &SchemaArtifact,
        planned_version: Option<u32>,
        check_first: bool,
    ) -> Result<Registered, ProviderFailure> {
        if self.observe(ctx, &artifact.subject).await? != *current {
            return Err(ProviderFailure::Conflict { what: "the latest version or the level of the subject" });
        }
        let live = unchanged_content(current, artifact);
        let sent = live.is_none();
        let (id, version) = match live {
            Some(live) => live,
            None => {
                if check_first
                    && let Verdict::Incompatible { text, .. } = self.check_compatibility(ctx, artifact).await?
                {
                    let reply = Reply::Http { status: StatusCode::CONFLICT.as_u16(), error_code: None };
                    return Err(ProviderFailure::Rejected { reply, text });
                }
                self.send(ctx, guard, artifact).await?
            }
        };
        if planned_version.is_some_and(|planned| planned != version) {
            let class = ProviderFailure::Conflict { what: "another version number than planned" };
            return Err(match sent {
                true => after_register("version", class),
                false => class,
            });
        }
        let declared = artifact.compatibility.filter(|level| current.compatibility != Some(*level));
        if let Some(level) = declared {
            match self.set_compatibility(ctx, guard, &artifact.subject, level).await {
                Ok(()) => {}
                Err(failure) if !sent => return Err(failure),
                Err(ProviderFailure::Aborted { .. }) if guard.check().is_err() => {
                    return Err(ProviderFailure::Aborted { uncertain: true });
                }
                Err(failure) => return Err(after_register("level", failure)),
            }
        }
        Ok(Registered { id, version, level: declared })
    }

    /// One POST; id and version: the number comes from a look-up, which also decides when the reply was lost.
    async fn send<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        artifact: &SchemaArtifact,
    ) -> Result<(u32, u32), ProviderFailure> {
        let path = ["subjects", artifact.subject.as_str(), "versions"];
        let body = Some(wire::content(artifact)?);
        let request = Request { method: Method::POST, body, ..Request::get(&path) };
        let identity = Identity::Subject(artifact.subject.clone());
        let outcome = self.http.mutate(ctx, guard, &request, "register", &identity).await;
        let confirmed = match self.confirmed(outcome, "register", &identity) {
            Ok(answer) => answer.json().ok().and_then(|body| wire::positive(&body, "id")),
            Err(ProviderFailure::Uncertain { .. }) => None,
            Err(failure) => return Err(failure),
        };
        let found = self.look_up(ctx, artifact).await;
        match (confirmed, found) {
            (_, Ok(Some(place))) => Ok(place),
            (None, Ok(None) | Err(_)) => {
                Err(ProviderFailure::Uncertain { stage: "register", unresolved: vec![identity] })
            }
            (Some(_), Ok(None)) => Err(after_register("look-up", ProviderFailure::NotFound)),
            (Some(_), Err(failure)) => Err(after_register("look-up", failure)),
        }
    }

    /// Sets a subject's own level; a lost reply is decided by one read.
    pub async fn set_compatibility<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        subject: &str,
        level: Compatibility,
    ) -> Result<(), ProviderFailure> {
        let path = ["config", subject];
        let request = Request { method: Method::PUT, body: Some(wire::level_body(level)), ..Request::get(&path) };
        let identity = Identity::Subject(subject.to_owned());
        let outcome = self.http.mutate(ctx, guard, &request, "level", &identity).await;
        match self.confirmed(outcome, "level", &identity) {
            Ok(answer) => match answer.json().and_then(|body| wire::level(&body, "compatibility")) {
                Ok(set) if set == level => return Ok(()),
                Ok(_) | Err(_) => {}
            },
            Err(ProviderFailure::Uncertain { .. }) => {}
            Err(failure) => return Err(failure),
        }
        match self.level(ctx, subject, "").await {
            Ok(Some(live)) if live == level => Ok(()),
            Ok(_) | Err(_) => Err(ProviderFailure::Uncertain { stage: "level", unresolved: vec![identity] }),
        }
    }

    /// A 200, or what another answer proves: a refusal has no effect, everything else is uncertain.
    fn confirmed(
        &self,
        outcome: Result<Answer, ProviderFailure>,
        stage: &'static str,
        identity: &Identity,
    ) -> Result<Answer, ProviderFailure> {
        let answer = outcome?;
        let unproven = matches!(answer.status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
        match answer.status {
            StatusCode::OK => Ok(answer),
            status if status.is_client_error() && !unproven => Err(self.refusal(&answer)),
            _ => Err(ProviderFailure::Uncertain { stage, unresolved: vec![identity.clone()] }),
        }
    }
}

fn after_register(failed: &'static str, class: ProviderFailure) -> ProviderFailure {
    ProviderFailure::Partial { done: vec!["register"], failed, class: Box::new(class) }
}

/// Id and version of the live content when it is the declared one: then there is nothing to register.
fn unchanged_content(current: &SchemaObservation, artifact: &SchemaArtifact) -> Option<(u32, u32)> {
    let live = current.schema.as_ref()?;
    let same = current.schema_type == Some(artifact.schema_type)
        && current.references == wire::sorted(artifact.references.clone())
        && Checksum::of(live).ok()? == Checksum::of(&artifact.schema).ok()?;
    same.then_some((current.schema_id?, current.version?))
}
