//! The opt-in schema check: each question is asked on its own, and a registry that does not answer is an answer too.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, Message};

use super::registry::Registry;
use super::schema_registry::SchemaRegistryActor;
use crate::codes::{Code, Diagnostic};
use crate::messages::operation::Control;
use crate::messages::schema_registry;
use crate::project::Project;
use crate::project::model::SchemaVersion;
use crate::providers::{Ctx, ProviderFailure, Purpose};
use crate::validate::{SchemaAnswer, SchemaQuestion};

/// Bound of all questions of one command.
const BUDGET: Duration = Duration::from_secs(60);

/// Asks the project's registry. Answers in the order of the questions.
#[derive(Message)]
#[rtype(result = "Vec<(SchemaQuestion, SchemaAnswer)>")]
pub(super) struct AskSchemas {
    pub project: Arc<Project>,
    pub questions: Vec<SchemaQuestion>,
    pub control: Control,
}

/// Runs in the arbiter of the provider actors.
pub(super) async fn ask(providers: Rc<Registry>, message: AskSchemas) -> Vec<(SchemaQuestion, SchemaAnswer)> {
    let AskSchemas { project, questions, control } = message;
    let ctx = Ctx::new(Purpose::Probe, BUDGET, control.cancel.requested().clone());
    let runtime = project.runtime.schema_registry.as_ref();
    let registry = runtime.map(|runtime| providers.schema_registry(runtime, &project.root));
    let answers = questions.into_iter().map(|question| {
        let (ctx, registry) = (ctx.clone(), registry.clone());
        async move {
            let answer = match registry {
                None => SchemaAnswer::Unavailable(Box::new(missing())),
                Some(registry) => answer(&registry, &ctx, &question).await.unwrap_or_else(|failure| match failure {
                    ProviderFailure::SchemaTypeUnsupported { spelled, .. } => {
                        SchemaAnswer::TypeUnsupported(spelled.to_string())
                    }
                    failure => {
                        SchemaAnswer::Unavailable(Box::new(failure.diagnostic("Schema Registry: reading a subject")))
                    }
                }),
            };
            (question, answer)
        }
    });
    futures_util::future::join_all(answers).await
}

fn missing() -> Diagnostic {
    Diagnostic::new(Code::E208MissingConfig, "`runtime.schema_registry` is not set")
        .suggest("add a `runtime.schema_registry` block to the project or to the selected environment")
}

fn lost<T>(reply: Result<Result<T, ProviderFailure>, actix::MailboxError>) -> Result<T, ProviderFailure> {
    reply.unwrap_or(Err(ProviderFailure::Aborted { uncertain: false }))
}

async fn answer(
    registry: &Addr<SchemaRegistryActor>,
    ctx: &Ctx,
    question: &SchemaQuestion,
) -> Result<SchemaAnswer, ProviderFailure> {
    let subject = question.subject.clone();
    let observe = schema_registry::ObserveSubjects { ctx: ctx.clone(), subjects: vec![subject.clone()] };
    let observed = lost(registry.send(observe).await)?.remove(&subject);
    let Some(observed) = observed.filter(|observed| observed.exists) else { return Ok(SchemaAnswer::Missing) };
    let version = match question.version {
        SchemaVersion::Number(number) => number,
        SchemaVersion::Latest => match observed.version {
            Some(version) => version,
            None => return Ok(SchemaAnswer::Missing),
        },
    };
    let fetch = schema_registry::VersionOf { ctx: ctx.clone(), subject: subject.clone(), version };
    let Some(found) = lost(registry.send(fetch).await)? else { return Ok(SchemaAnswer::Missing) };
    if !found.references.is_empty() {
        let references = schema_registry::ReferencesOf { ctx: ctx.clone(), subject: subject.clone(), version };
        match lost(registry.send(references).await) {
            Ok(_) => {}
            Err(ProviderFailure::NotFound) => {
                let names: Vec<String> =
                    found.references.iter().map(|r| format!("{} version {}", r.subject, r.version)).collect();
                return Ok(SchemaAnswer::ReferenceUnresolved(names.join(", ")));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(SchemaAnswer::Found {
        version: found.version,
        id: found.id,
        schema_type: found.schema_type,
        references: found.references.len(),
        compatibility: observed.compatibility,
    })
}
