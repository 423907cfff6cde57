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
pub enum Image {
    /// Exactly what the transaction leaves behind.
    After,
    /// Exactly what it started from.
    Before,
    Other,
}

/// Somebody who can look for the outcome of a COMMIT without a good answer.
pub trait Lookout {
    /// None = nothing could be seen; the next look takes a new session.
    async fn look(&mut self) -> Option<Image>;

    /// Whether the server process that was asked to commit is known to have ended.
    async fn old_backend_is_gone(&mut self) -> bool;

    /// What stands for good; None = not known at the deadline. Only a server process that is gone can no longer commit: an
    /// unlocked lock alone proves nothing, and neither does what could not be seen.
    async fn prove(&mut self, deadline: Instant, every: Duration) -> Option<Image> {
        let mut gone = false;
        loop {
            match self.look().await {
                Some(Image::After) => return Some(Image::After),
                Some(image) if gone => return Some(image),
                Some(Image::Before | Image::Other) => {
                    gone = self.old_backend_is_gone().await;
                    if gone {
                        continue;
                    }
                }
                None => {}
            }
            if Instant::now() >= deadline {
                return None;
            }
            sleep(every).await;
        }
    }
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
        let deadline = Instant::now() + self.target.lock_timeout + SERVER_RELEASE_MAX;
        let stands = StepLookout { hold: self, step, written, deadline }.prove(deadline, LOOK_EVERY).await;
        let error = match (stands, answer) {
            (Some(Image::After), _) if step.commits => StateError::new(StateErrorKind::ReleaseAfterCommit),
            (Some(Image::After), _) => StateError::lock_lost().stands(),
            (Some(Image::Before), Trouble::Serialization) => StateError::conflict(),
            (Some(Image::Before), _) => StateError::lock_lost(),
            (Some(Image::Other) | None, _) => StateError::unknown_commit(),
        };
        error.operation(Some(step.operation_id))
    }

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
}

struct StepLookout<'a> {
    hold: &'a mut Hold,
    step: &'a Step,
    written: &'a Written,
    deadline: Instant,
}

impl Lookout for StepLookout<'_> {
    async fn look(&mut self) -> Option<Image> {
        self.hold.look(self.step, self.written, self.deadline).await
    }

    async fn old_backend_is_gone(&mut self) -> bool {
        let old = self.hold.session.backend.clone();
        let asked = timeout_at(self.deadline, async {
            let witness = self.hold.witness(self.deadline - Instant::now()).await.ok()?;
            witness.runs(&old).await.ok()
        });
        asked.await.ok().flatten() == Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sees what it is told to, look by look; then nothing more.
    struct Told(Vec<Option<Image>>, Vec<bool>);

    impl Lookout for Told {
        async fn look(&mut self) -> Option<Image> {
            if self.0.is_empty() { None } else { self.0.remove(0) }
        }

        async fn old_backend_is_gone(&mut self) -> bool {
            !self.1.is_empty() && self.1.remove(0)
        }
    }

    async fn proved(looks: &[Option<Image>], gone: &[bool]) -> Option<Image> {
        let deadline = Instant::now() + Duration::from_millis(300);
        Told(looks.to_vec(), gone.to_vec()).prove(deadline, Duration::from_millis(1)).await
    }

    /// I6, I11, I13.
    #[tokio::test]
    async fn an_outcome_is_proved_by_what_is_seen_after_the_server_process_ended() {
        use Image::{After, Before, Other};
        assert_eq!(proved(&[Some(Before), Some(Before)], &[true]).await, Some(Before));
        assert_eq!(proved(&[Some(Before), Some(After)], &[true]).await, Some(After));
        assert_eq!(proved(&[Some(Before), Some(After)], &[false]).await, Some(After));
        assert_eq!(proved(&[Some(Other), Some(Other)], &[true]).await, Some(Other));
        assert_eq!(proved(&[Some(Before); 1000], &[]).await, None, "its process may still commit");
    }

    /// A session that ends while it looks makes an outcome late, not unknown.
    #[tokio::test]
    async fn a_look_that_saw_nothing_is_taken_again() {
        use Image::{After, Before};
        assert_eq!(proved(&[Some(Before), None, None, Some(Before)], &[true]).await, Some(Before));
        assert_eq!(proved(&[Some(Before), None, Some(After)], &[true]).await, Some(After));
        assert_eq!(proved(&[None, Some(Before), None, Some(Before)], &[true]).await, Some(Before));
        assert_eq!(proved(&[Some(Before)], &[true]).await, None);
    }
}
