//! What became of a step: a second session looks for what it wrote, or proves that it can never be written any more. Nothing is
//! replayed, and what cannot be proved is said to be unknown.
#![expect(clippy::disallowed_methods, reason = "a session has deadlines and a heartbeat of its own")]

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::classify::Trouble;
use super::dsn::CONNECT_TIMEOUT;
use super::history;
use super::hold::Hold;
use super::rows::{self, ReadError, Site};
use super::session::{BEGIN_READ, Session};
use super::tx::Written;
use crate::state::error::{StateError, StateErrorKind};
use crate::state::step::Step;

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a server may take, beside the lock timeout, until it gives up a client that is gone.
pub const SERVER_RELEASE_MAX: Duration = Duration::from_secs(12);

/// What another session sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Image {
    /// Exactly what the step leaves behind.
    After,
    /// Exactly what the step started from.
    Before,
    Other,
}

async fn look(session: &Session, site: &Site, step: &Step, written: &Written) -> Result<Image, ReadError> {
    let client = &session.client;
    let look = async {
        client.batch_execute(BEGIN_READ).await?;
        let (control, state) = rows::current(client, site, false).await?;
        let image = if control == written.before && state == written.state_before {
            Image::Before
        } else if control != written.after
            || !history::events_stand(client, site, step.operation_id, &written.events).await?
        {
            Image::Other
        } else {
            let stands = match &written.state {
                Some(next) => rows::state_stands(client, site, next).await?,
                None => state == written.state_before,
            };
            if stands { Image::After } else { Image::Other }
        };
        client.batch_execute("ROLLBACK").await?;
        Ok(image)
    };
    look.await
}

impl Hold {
    /// After a COMMIT that was answered. E425 when it cannot be seen.
    pub async fn verify(&mut self, step: &Step, written: &Written) -> Result<(), StateError> {
        let deadline = Instant::now() + self.target.lock_timeout.max(CONNECT_TIMEOUT);
        loop {
            match self.look(step, written, deadline).await {
                Some(Image::After) => return Ok(()),
                None if Instant::now() < deadline => sleep(LOOK_EVERY).await,
                Some(Image::Before | Image::Other) | None => {
                    let _ = self.give_up();
                    return Err(StateError::unknown_commit().operation(Some(step.operation_id)));
                }
            }
        }
    }

    /// After a COMMIT without a good answer. The lock is given up before anything else happens.
    pub async fn resolve(&mut self, step: &Step, written: &Written, answer: Trouble) -> StateError {
        let _ = self.give_up();
        let id = Some(step.operation_id);
        let deadline = Instant::now() + self.target.lock_timeout + SERVER_RELEASE_MAX;
        let lost = StateError::lock_lost().operation(id);
        loop {
            let image = self.look(step, written, deadline).await;
            if image == Some(Image::After) {
                return if step.commits {
                    StateError::new(StateErrorKind::ReleaseAfterCommit).operation(id)
                } else {
                    lost.stands()
                };
            }
            // Only a server process that is gone can no longer commit; an unlocked lock alone proves nothing.
            if image.is_some() && self.old_backend_is_gone(deadline).await {
                return match (self.look(step, written, deadline).await, answer) {
                    (Some(Image::Before), Trouble::Serialization) => StateError::conflict().operation(id),
                    (Some(Image::Before), _) => lost,
                    (Some(Image::After), _) if step.commits => {
                        StateError::new(StateErrorKind::ReleaseAfterCommit).operation(id)
                    }
                    (Some(Image::After), _) => lost.stands(),
                    (Some(Image::Other) | None, _) => StateError::unknown_commit().operation(id),
                };
            }
            if Instant::now() >= deadline {
                return StateError::unknown_commit().operation(id);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// None = nothing could be seen; the next look takes a new session.
    async fn look(&mut self, step: &Step, written: &Written, deadline: Instant) -> Option<Image> {
        let site = self.site.clone();
        let looked = timeout_at(deadline, async {
            let witness = self.witness(deadline - Instant::now()).await.ok()?;
            look(witness, &site, step, written).await.ok()
        });
        let image = looked.await.ok().flatten();
        if image.is_none() {
            self.witness = None;
        }
        image
    }

    async fn old_backend_is_gone(&mut self, deadline: Instant) -> bool {
        let old = self.session.backend.clone();
        let asked = timeout_at(deadline, async {
            let witness = self.witness(deadline - Instant::now()).await.ok()?;
            witness.runs(&old).await.ok()
        });
        asked.await.ok().flatten() == Some(false)
    }
}
