//! Reads: subjects, versions, levels, references, and the compatibility check.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::wire::{self, ErrorBody};
use super::{NumberedSchema, RegisteredSchema, RegistryClient, Verdict};
use crate::compiler::artifact::SchemaArtifact;
use crate::planner::observation::SchemaObservation;
use crate::project::model::Compatibility;
use crate::providers::http::{Answer, LIST_LIMIT, Request};
use crate::providers::{Ctx, ProviderFailure, Reply, VendorText};

const SUBJECTS_IN_FLIGHT: usize = 8;
const REFERENCE_DEPTH: usize = 20;

impl RegistryClient {
    /// One bounded request that proves the registry answers.
    pub async fn probe(&self, ctx: &Ctx) -> Result<(), ProviderFailure> {
        self.list_subjects(ctx).await.map(|_| ())
    }

    /// Sorted.
    pub async fn list_subjects(&self, ctx: &Ctx) -> Result<Vec<String>, ProviderFailure> {
        let request = Request { limit: LIST_LIMIT, ..Request::get(&["subjects"]) };
        let answer = self.http.read(ctx, &request).await?;
        let body = self.found(&answer)?.ok_or(ProviderFailure::NotFound)?;
        let names: Option<Vec<String>> =
            body.as_array().and_then(|list| list.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        let mut names = names.ok_or(ProviderFailure::Protocol { what: "subject list" })?;
        names.sort_unstable();
        Ok(names)
    }

    /// The latest version and the level of every named subject, absent ones as absent.
    pub async fn observe_subjects(
        &self,
        ctx: &Ctx,
        subjects: &[String],
    ) -> Result<BTreeMap<String, SchemaObservation>, ProviderFailure> {
        stream::iter(subjects.to_vec())
            .map(|subject| async move {
                let observation = self.observe(ctx, &subject).await?;
                Ok((subject, observation))
            })
            .buffer_unordered(SUBJECTS_IN_FLIGHT)
            .try_collect()
            .await
    }

    pub(super) async fn observe(&self, ctx: &Ctx, subject: &str) -> Result<SchemaObservation, ProviderFailure> {
        let Some(latest) = self.latest(ctx, subject).await? else {
            return Ok(SchemaObservation::absent(subject));
        };
        let effective = self.level(ctx, subject, "?defaultToGlobal=true").await?;
        let own = self.level(ctx, subject, "").await?;
        Ok(SchemaObservation {
            subject: subject.to_owned(),
            exists: true,
            version: Some(latest.version),
            schema_id: Some(latest.id),
            schema: Some(latest.schema),
            schema_type: Some(latest.schema_type),
            compatibility: effective,
            // Some registries answer NONE for a subject without a level of its own; an own level is always the effective one.
            own_compatibility: own.filter(|_| own == effective),
            references: latest.references,
        })
    }

    /// The latest version; none when the subject does not exist.
    pub async fn latest(&self, ctx: &Ctx, subject: &str) -> Result<Option<RegisteredSchema>, ProviderFailure> {
        let path = ["subjects", subject, "versions", "latest"];
        let answer = self.http.read(ctx, &Request::get(&path)).await?;
        self.found(&answer)?.map(|body| wire::version(subject, &body)).transpose()
    }

    /// One version; none when it or its subject does not exist.
    pub async fn version(
        &self,
        ctx: &Ctx,
        subject: &str,
        version: u32,
    ) -> Result<Option<RegisteredSchema>, ProviderFailure> {
        let number = version.to_string();
        let path = ["subjects", subject, "versions", &number];
        let answer = self.http.read(ctx, &Request::get(&path)).await?;
        let Some(body) = self.found(&answer)? else { return Ok(None) };
        let read = wire::version(subject, &body)?;
        match read.version == version {
            true => Ok(Some(read)),
            false => Err(ProviderFailure::Protocol { what: "the answer is about another version" }),
        }
    }

    /// The schema with a number, and what it refers to directly; none when no subject has it.
    pub async fn schema_by_id(&self, ctx: &Ctx, id: u32) -> Result<Option<NumberedSchema>, ProviderFailure> {
        let number = id.to_string();
        let path = ["schemas", "ids", &number];
        let answer = self.http.read(ctx, &Request::get(&path)).await?;
        self.found(&answer)?.map(|body| wire::numbered(&body)).transpose()
    }

    /// The level of `/config/{subject}`; none when the registry has none there.
    pub(super) async fn level(
        &self,
        ctx: &Ctx,
        subject: &str,
        query: &'static str,
    ) -> Result<Option<Compatibility>, ProviderFailure> {
        let path = ["config", subject];
        let answer = self.http.read(ctx, &Request { query, ..Request::get(&path) }).await?;
        self.found(&answer)?.map(|body| wire::level(&body, "compatibilityLevel")).transpose()
    }

    /// A version and everything it references, each once, depth at most 20.
    pub async fn references_of(
        &self,
        ctx: &Ctx,
        subject: &str,
        version: u32,
    ) -> Result<Vec<RegisteredSchema>, ProviderFailure> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        // The way from the root to each pending version tells a cycle from a second use.
        let mut pending = vec![vec![(subject.to_owned(), version)]];
        while let Some(way) = pending.pop() {
            let Some((subject, version)) = way.last().cloned() else { continue };
            if way.len() > REFERENCE_DEPTH {
                return Err(ProviderFailure::Ambiguous { what: "references deeper than 20" });
            }
            if way.iter().filter(|step| **step == (subject.clone(), version)).count() > 1 {
                return Err(ProviderFailure::Ambiguous { what: "reference cycle" });
            }
            if !seen.insert((subject.clone(), version)) {
                continue;
            }
            let schema = self.version(ctx, &subject, version).await?.ok_or(ProviderFailure::NotFound)?;
            for reference in schema.references.iter().rev() {
                let mut further = way.clone();
                further.push((reference.subject.clone(), reference.version));
                pending.push(further);
            }
            found.push(schema);
        }
        Ok(found)
    }

    /// The version that the next register creates: the highest ever used, deleted ones included, plus one.
    pub async fn next_version(&self, ctx: &Ctx, subject: &str) -> Result<u32, ProviderFailure> {
        let path = ["subjects", subject, "versions"];
        let request = Request { query: "?deleted=true", ..Request::get(&path) };
        let Some(body) = self.found(&self.http.read(ctx, &request).await?)? else { return Ok(1) };
        let invalid = || ProviderFailure::Protocol { what: "version list" };
        let numbers = body.as_array().ok_or_else(invalid)?;
        let mut highest = 0;
        for number in numbers {
            let number = number.as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(invalid)?;
            highest = highest.max(number);
        }
        highest.checked_add(1).ok_or_else(invalid)
    }

    /// Whether the artifact may follow the subject's latest version under its current level.
    pub async fn check_compatibility(&self, ctx: &Ctx, artifact: &SchemaArtifact) -> Result<Verdict, ProviderFailure> {
        let path = ["compatibility", "subjects", &artifact.subject, "versions", "latest"];
        let body = Some(wire::content(artifact)?);
        let request = Request { method: Method::POST, query: "?verbose=true", body, ..Request::get(&path) };
        let answer = self.http.read(ctx, &request).await?;
        let Some(body) = self.found(&answer)? else { return Ok(Verdict::Compatible) };
        match body.get("is_compatible").and_then(Value::as_bool) {
            Some(true) => Ok(Verdict::Compatible),
            Some(false) => {
                let messages: Vec<&str> = body
                    .get("messages")
                    .and_then(Value::as_array)
                    .map(|list| list.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default();
                Ok(Verdict::Incompatible { reasons: messages.len(), text: self.text(&messages.join("; ")) })
            }
            None => Err(ProviderFailure::Protocol { what: "compatibility verdict" }),
        }
    }

    /// The version of the subject that holds exactly the artifact's content; a register of it makes no new one.
    pub async fn version_holding(&self, ctx: &Ctx, artifact: &SchemaArtifact) -> Result<Option<u32>, ProviderFailure> {
        Ok(self.look_up(ctx, artifact).await?.map(|(_, version)| version))
    }

    /// Id and version of the artifact's exact content; none when it is not registered under its subject.
    pub(super) async fn look_up(
        &self,
        ctx: &Ctx,
        artifact: &SchemaArtifact,
    ) -> Result<Option<(u32, u32)>, ProviderFailure> {
        let path = ["subjects", artifact.subject.as_str()];
        let body = Some(wire::content(artifact)?);
        let request = Request { method: Method::POST, body, ..Request::get(&path) };
        let answer = self.http.read(ctx, &request).await?;
        self.found(&answer)?.map(|body| wire::place(&artifact.subject, &body)).transpose()
    }

    /// The body of a 200, none for what the registry says does not exist, a failure for everything else.
    fn found(&self, answer: &Answer) -> Result<Option<Value>, ProviderFailure> {
        match answer.status {
            StatusCode::OK => answer.json().map(Some),
            StatusCode::NOT_FOUND => match ErrorBody::read(answer.json()).says_absent() {
                true => Ok(None),
                false => Err(ProviderFailure::Protocol { what: "a 404 that is no registry's" }),
            },
            _ => Err(self.refusal(answer)),
        }
    }

    /// What an answer that is not a success means.
    pub(super) fn refusal(&self, answer: &Answer) -> ProviderFailure {
        let error = ErrorBody::read(answer.json());
        let text = error.message.as_deref().and_then(|message| self.text(message));
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ProviderFailure::Auth { text },
            status if status.is_success() || status.is_informational() => {
                ProviderFailure::Protocol { what: "status of the answer" }
            }
            status => ProviderFailure::Rejected {
                reply: Reply::Http { status: status.as_u16(), error_code: error.error_code },
                text,
            },
        }
    }

    fn text(&self, message: &str) -> Option<VendorText> {
        VendorText::at_border(message, &self.secrets.iter().collect::<Vec<_>>())
    }
}
