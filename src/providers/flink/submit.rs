//! Submitting a job so that it exists once. The INSERT carries a job id that follows from the durable intent; a JobManager
//! takes an id once, so a request whose answer was lost can be settled by sending it again. What the JobManager answers for
//! that id is the only evidence; no text of an error decides anything.

use std::time::Duration;

use reqwest::StatusCode;
use zeroize::Zeroizing;

use super::gateway::{Ran, Session};
use super::jobs::pause;
use super::statements::Statements;
use super::{FlinkClient, wire};
use crate::compiler::artifact::FlinkJobArtifact;
use crate::planner::flink::{JobId, JobState};
use crate::providers::{Ctx, Identity, MutationGuard, ProviderFailure, Reply, VendorText};

/// How long a job that the gateway gave up on may take to show itself.
const LATE: Duration = Duration::from_millis(500);
/// Between two questions to a service that is away while a submission has to be settled.
const AWAY_PAUSE: Duration = Duration::from_secs(1);
/// How long a settling submission waits for a gateway that is away.
const GATEWAY_AWAY: Duration = Duration::from_secs(45);

/// A job that the JobManager has taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Submitted {
    pub id: JobId,
    pub state: JobState,
    /// The root cause, when the job has failed already.
    pub failure: Option<VendorText>,
}

/// What one attempt to submit proved.
enum Attempt {
    /// Ask the JobManager: the gateway says that the job was submitted.
    Accepted,
    /// The gateway ended the statement without success.
    Refused(Option<VendorText>),
    /// Nothing of the INSERT left this process, or it was refused outright.
    NotSent(ProviderFailure),
    /// The INSERT left and nobody says what became of it.
    Unanswered,
}

impl FlinkClient {
    /// Lets Flink read the job's statements and plan its INSERT, in a session that is thrown away. Nothing is submitted.
    pub async fn explain(&self, ctx: &Ctx, artifact: &FlinkJobArtifact) -> Result<(), ProviderFailure> {
        let statements = Statements::of(artifact, &self.fillings)?;
        let session = self.open_session(ctx).await?;
        let ran = match self.prepared(ctx, &session, &statements).await {
            Ran::Finished => session.run(ctx, &Zeroizing::new(format!("EXPLAIN {}", *statements.insert))).await,
            ended @ (Ran::Refused(_) | Ran::Lost(_)) => ended,
        };
        session.close(ctx).await;
        match ran {
            Ran::Finished => Ok(()),
            Ran::Refused(text) => Err(ProviderFailure::SqlRefused { text }),
            Ran::Lost(failure) => Err(failure),
        }
    }

    /// Submits the job under `id` unless a job of its name lives.
    pub async fn submit<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        artifact: &FlinkJobArtifact,
        id: &JobId,
    ) -> Result<Submitted, ProviderFailure> {
        let statements = Statements::of(artifact, &self.fillings)?;
        self.gateway()?;
        let name = artifact.name.as_str();
        if let Some(found) = self.job(ctx, id).await? {
            return self.submitted(ctx, name, id, found).await;
        }
        let names = [name.to_owned()].into();
        let live = self.observe(ctx, &names).await?.remove(name).and_then(|observed| observed.job);
        if live.is_some_and(|job| !job.state.has_ended()) {
            return Err(ProviderFailure::Conflict { what: "a job of this name is live" });
        }
        match self.attempt(ctx, guard, &statements, name, id).await? {
            Attempt::NotSent(failure) => Err(failure),
            Attempt::Refused(text) => match self.late_evidence(ctx, id).await {
                Some(Some(found)) => self.submitted(ctx, name, id, found).await,
                Some(None) => Err(ProviderFailure::SqlRefused { text }),
                None => Err(uncertain(name)),
            },
            Attempt::Accepted | Attempt::Unanswered => match self.evidence(ctx, id).await {
                Some(Some(found)) => self.submitted(ctx, name, id, found).await,
                Some(None) => self.settle(ctx, guard, &statements, name, id).await,
                None => Err(uncertain(name)),
            },
        }
    }

    /// Sends the INSERT once more under the same id. Accepted or refused as known: afterwards the job is there, or nobody can
    /// tell.
    async fn settle<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        statements: &Statements,
        name: &str,
        id: &JobId,
    ) -> Result<Submitted, ProviderFailure> {
        let patience = ctx.within(GATEWAY_AWAY);
        loop {
            let attempt = self.attempt(ctx, guard, statements, name, id).await?;
            if let Some(Some(found)) = self.evidence(ctx, id).await {
                return self.submitted(ctx, name, id, found).await;
            }
            let away = matches!(
                attempt,
                Attempt::NotSent(
                    ProviderFailure::Unreachable | ProviderFailure::Timeout | ProviderFailure::Busy { .. }
                )
            );
            if !away || patience.remaining().is_zero() || pause(ctx, AWAY_PAUSE).await.is_err() {
                return Err(uncertain(name));
            }
        }
    }

    /// One session: its statements, then the INSERT. A session lost before the INSERT is opened again, once. The session is
    /// closed at the end, which ends an INSERT that the gateway still holds.
    async fn attempt<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        statements: &Statements,
        name: &str,
        id: &JobId,
    ) -> Result<Attempt, ProviderFailure> {
        let mut again = true;
        loop {
            let session = match self.open_session(ctx).await {
                Ok(session) => session,
                Err(failure) => return Ok(Attempt::NotSent(failure)),
            };
            match self.prepared(ctx, &session, statements).await {
                Ran::Finished => {
                    let outcome = self.inserted(ctx, guard, &session, statements, name, id).await;
                    session.close(ctx).await;
                    return outcome;
                }
                Ran::Refused(text) => {
                    session.close(ctx).await;
                    return Ok(Attempt::NotSent(ProviderFailure::SqlRefused { text }));
                }
                Ran::Lost(failure) => {
                    session.close(ctx).await;
                    if !again || matches!(failure, ProviderFailure::Aborted { .. }) {
                        return Ok(Attempt::NotSent(failure));
                    }
                    again = false;
                }
            }
        }
    }

    async fn prepared(&self, ctx: &Ctx, session: &Session<'_>, statements: &Statements) -> Ran {
        for statement in &statements.prepare {
            match session.run(ctx, statement).await {
                Ran::Finished => {}
                other @ (Ran::Refused(_) | Ran::Lost(_)) => return other,
            }
        }
        Ran::Finished
    }

    async fn inserted<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        session: &Session<'_>,
        statements: &Statements,
        name: &str,
        id: &JobId,
    ) -> Result<Attempt, ProviderFailure> {
        let answer = match session.insert(ctx, guard, &statements.insert, name, id).await {
            Ok(answer) => answer,
            Err(ProviderFailure::Uncertain { .. }) => return Ok(Attempt::Unanswered),
            Err(ProviderFailure::Aborted { uncertain }) => return Err(ProviderFailure::Aborted { uncertain }),
            Err(failure) => return Ok(Attempt::NotSent(failure)),
        };
        if answer.status.is_client_error() && !matches!(answer.status.as_u16(), 408 | 429) {
            let refused = match wire::refusal(&answer) {
                ProviderFailure::Rejected { .. } => ProviderFailure::Rejected {
                    reply: Reply::Http { status: answer.status.as_u16(), error_code: None },
                    text: self.vendor_text(wire::cause(&answer)),
                },
                other => other,
            };
            return Ok(Attempt::NotSent(refused));
        }
        let operation = wire::handle(&answer, "operationHandle").filter(|_| answer.status == StatusCode::OK);
        let Some(operation) = operation else { return Ok(Attempt::Unanswered) };
        Ok(match session.wait(ctx, &operation).await {
            Ran::Finished => Attempt::Accepted,
            Ran::Refused(text) => Attempt::Refused(text),
            Ran::Lost(_) => Attempt::Unanswered,
        })
    }

    /// Whether the JobManager has the job, asked until it answers or the time is up; none when it never did.
    async fn evidence(&self, ctx: &Ctx, id: &JobId) -> Option<Option<(String, JobState)>> {
        loop {
            match self.job(ctx, id).await {
                Ok(found) => return Some(found),
                Err(_) if ctx.remaining().is_zero() => return None,
                Err(_) => pause(ctx, AWAY_PAUSE).await.ok()?,
            }
        }
    }

    /// The same, with a second look at a job that is not there.
    async fn late_evidence(&self, ctx: &Ctx, id: &JobId) -> Option<Option<(String, JobState)>> {
        match self.evidence(ctx, id).await? {
            Some(found) => Some(Some(found)),
            None => {
                pause(ctx, LATE).await.ok()?;
                self.evidence(ctx, id).await
            }
        }
    }

    async fn submitted(
        &self,
        ctx: &Ctx,
        name: &str,
        id: &JobId,
        found: (String, JobState),
    ) -> Result<Submitted, ProviderFailure> {
        let (found, state) = found;
        if found != name {
            return Err(uncertain(name));
        }
        let failure = match state {
            JobState::Failed => {
                let known = self.failures(ctx, &[(id.clone(), state)].into()).await;
                known.ok().and_then(|mut known| known.remove(id))
            }
            _other => None,
        };
        Ok(Submitted { id: id.clone(), state, failure })
    }
}

fn uncertain(name: &str) -> ProviderFailure {
    ProviderFailure::Uncertain { stage: "submit", unresolved: vec![Identity::Job(name.to_owned())] }
}
