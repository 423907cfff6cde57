//! From version 1 of a store to version 2: under the schema lock and the lock of every address, in one transaction, after every
//! stored row was proved, and with a proof before and after COMMIT that no row of an operation changed.
#![expect(clippy::disallowed_methods, reason = "a migration waits for locks")]

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};
use uuid::Uuid;

use super::Target;
use super::admin::{Stop, check_role, lock_schema, unlock_schema, upgrade};
use super::audit;
use super::catalog::{self, Proved};
use super::classify::Trouble;
use super::contract::{Ddl, Version, quoted};
use super::dsn::CONNECT_TIMEOUT;
use super::engine::Engine;
use super::resolve::{Image, Lookout};
use super::rows::Site;
use super::session::{BEGIN_READ, PROOF_TIMEOUT, Purpose, Session};
use crate::failpoint;
use crate::state::error::{StateError, StateErrorKind};
use crate::state::model::{BackendKind, StoreIdentity};
use crate::state::scalar::Timestamp;

/// Reading and digesting every row of a store, three times.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(900);
const TRY_EVERY: Duration = Duration::from_millis(50);

const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE; SET LOCAL search_path = pg_catalog; \
                           SET LOCAL synchronous_commit = on; SET LOCAL statement_timeout = 0";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrationOutcome {
    Migrated,
    AlreadyMigrated,
}

impl MigrationOutcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Migrated => "migrated",
            Self::AlreadyMigrated => "already_migrated",
        }
    }
}

/// Why a store was not migrated, or not provably.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MigrationFailure {
    pub error: StateError,
    /// The addresses whose operation must end first, as URIs.
    pub blocked: Vec<String>,
}

impl From<StateError> for MigrationFailure {
    fn from(error: StateError) -> Self {
        Self { error, blocked: Vec::new() }
    }
}

/// What the transaction came to before it is asked to commit.
enum Changed {
    Ready(Digest),
    Blocked(MigrationFailure),
}

/// Brings the store of this id to version 2 with this writer; idempotent. E411, E419, E420, E422, E425, E426. Blocks.
pub fn migrate(
    target: &Target,
    store_id: Uuid,
    writer: &str,
    now: jiff::Timestamp,
) -> Result<MigrationOutcome, MigrationFailure> {
    check_role(writer)?;
    Engine::start()?.run(async {
        let bound = target.lock_timeout;
        let deadline = Instant::now() + bound;
        let session = Session::open(&target.endpoint, Purpose::Lock, bound, bound.max(CONNECT_TIMEOUT)).await?;
        Migration { session, target, store_id, writer, now, deadline }.run().await
    })
}

/// The same statements for a reviewer, with `:"schema"` and `:"writer"` in place of names and `$n` in place of values.
pub fn script() -> Vec<String> {
    Ddl { schema: ":\"schema\"".to_owned() }.upgrade(":\"writer\"")
}

struct Migration<'a> {
    session: Session,
    target: &'a Target,
    store_id: Uuid,
    writer: &'a str,
    now: jiff::Timestamp,
    /// For all locks together.
    deadline: Instant,
}

type Digest = Vec<(i64, String)>;

impl Migration<'_> {
    async fn run(self) -> Result<MigrationOutcome, MigrationFailure> {
        if self.advisory_locks().await.map_err(StateError::from)? != 0 {
            return Err(StateError::unavailable("its new connection holds locks of somebody else")
                .suggest("connect to the server directly, not through a pooler")
                .into());
        }
        lock_schema(&self.session, &self.target.schema).await?;
        let sites = match self.source().await.map_err(StateError::from)? {
            Some(sites) => sites,
            None => {
                let released = unlock_schema(&self.session, &self.target.schema).await;
                return if released { Ok(MigrationOutcome::AlreadyMigrated) } else { Err(unreleased().into()) };
            }
        };
        self.lock_addresses(&sites).await?;
        let changed = timeout(MIGRATION_TIMEOUT, self.change(&sites)).await;
        let refused = match changed {
            Ok(Ok(Changed::Ready(digest))) => return self.commit(&sites, digest).await,
            Ok(Ok(Changed::Blocked(failure))) => failure,
            Ok(Err(stop)) => StateError::from(stop).into(),
            Err(_) => StateError::unavailable("its server does not answer").into(),
        };
        let _ = timeout(PROOF_TIMEOUT, self.session.client.batch_execute("ROLLBACK")).await;
        Err(refused)
    }

    async fn commit(&self, sites: &[Site], digest: Digest) -> Result<MigrationOutcome, MigrationFailure> {
        failpoint::point("migrate.written");
        let answer = self.session.client.batch_execute("COMMIT").await.is_ok();
        failpoint::point("migrate.committed");
        if !answer {
            return Err(self.resolve(&digest).await.into());
        }
        match self.image(&digest).await {
            Ok(Version::Two) => {}
            Ok(Version::One) | Err(_) => return Err(self.resolve(&digest).await.into()),
        }
        if self.release(sites).await { Ok(MigrationOutcome::Migrated) } else { Err(unreleased().into()) }
    }

    async fn advisory_locks(&self) -> Result<i64, Stop> {
        let row = self
            .session
            .client
            .query_typed_one(
                "SELECT count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()",
                &[],
            )
            .await?;
        Ok(row.try_get(0)?)
    }

    /// The addresses of a version-1 store; none when the store is already what it shall become.
    async fn source(&self) -> Result<Option<Vec<Site>>, Stop> {
        let client = &self.session.client;
        client.batch_execute(BEGIN_READ).await?;
        let proved = catalog::prove(client, &self.target.schema).await?;
        let sites = audit::addresses(client, &self.target.schema).await?;
        client.batch_execute("ROLLBACK").await?;
        if proved.store_id != self.store_id {
            return Err(StateError::invalid("the store is not the one of --confirm-store-id")
                .suggest("`streamt state status` shows the id of the store")
                .into());
        }
        match &proved.writer {
            None => Ok(Some(sites)),
            Some(writer) if writer == self.writer => Ok(None),
            Some(_) => {
                Err(StateError::invalid("the store has schema version 2 already, with another writer role").into())
            }
        }
    }

    /// In ascending order of the keys, so that two who take all of them never wait for each other.
    async fn lock_addresses(&self, sites: &[Site]) -> Result<(), StateError> {
        for site in sites {
            loop {
                match timeout(PROOF_TIMEOUT, self.session.try_lock(site.key)).await {
                    Ok(Ok(Some(true))) => break,
                    Ok(Ok(Some(false))) => {}
                    Ok(Ok(None)) => {
                        return Err(StateError::unavailable("its server changed while the locks were waited for"));
                    }
                    Ok(Err(trouble)) => return Err(trouble.unavailable()),
                    Err(_) => return Err(Trouble::Gone.unavailable()),
                }
                if Instant::now() + TRY_EVERY > self.deadline {
                    return Err(StateError::new(StateErrorKind::LockTimeout));
                }
                sleep(TRY_EVERY).await;
            }
        }
        Ok(())
    }

    /// Everything of the transaction but its COMMIT.
    async fn change(&self, sites: &[Site]) -> Result<Changed, Stop> {
        let client = &self.session.client;
        client.batch_execute(BEGIN_WRITE).await?;
        let proved = self.unchanged(sites).await?;
        if let Some(failure) = self.check_rows(sites, &proved).await? {
            return Ok(Changed::Blocked(failure));
        }
        catalog::writer_role(client, &self.target.schema, self.writer).await?;
        let before = audit::digest(client, &self.target.schema).await?;
        let ddl = Ddl { schema: quoted(&self.target.schema) };
        upgrade(client, &ddl, self.writer, self.store_id, &Timestamp::micros(self.now)).await?;
        let after = catalog::prove(client, &self.target.schema).await?;
        let expected = Proved { version: Version::Two, store_id: self.store_id, writer: Some(self.writer.to_owned()) };
        if after != expected || audit::digest(client, &self.target.schema).await? != before {
            return Err(StateError::invalid("the migrated store is not the one that was there before").into());
        }
        Ok(Changed::Ready(before))
    }

    /// Still the same store of version 1 with the same addresses, all of them locked, and nothing else.
    async fn unchanged(&self, sites: &[Site]) -> Result<Proved, Stop> {
        let client = &self.session.client;
        let proved = catalog::prove(client, &self.target.schema).await?;
        let now = audit::addresses(client, &self.target.schema).await?;
        let same = proved.version == Version::One
            && proved.store_id == self.store_id
            && now.iter().map(|site| &site.address).eq(sites.iter().map(|site| &site.address));
        if !same {
            return Err(StateError::unavailable("the store changed while its locks were waited for").into());
        }
        for site in sites {
            self.session.prove(site.key).await.map_err(Stop::Trouble)?;
        }
        if usize::try_from(self.advisory_locks().await?) != Ok(sites.len() + 1) {
            return Err(StateError::unavailable("its connection does not hold exactly the locks that it took").into());
        }
        Ok(proved)
    }

    /// Every row of every address, and none of them with an operation that waits for its end: E419.
    async fn check_rows(&self, sites: &[Site], proved: &Proved) -> Result<Option<MigrationFailure>, Stop> {
        let store = StoreIdentity { backend: BackendKind::Postgres, store_id: proved.store_id };
        let mut blocked = Vec::new();
        let mut first = None;
        for site in sites {
            let snapshot = audit::address(&self.session.client, site, &store).await?;
            let control = &snapshot.control.control;
            if !control.is_clear() {
                first.get_or_insert_with(|| control.status());
                blocked.push(site.address.to_string());
            }
        }
        Ok(first.map(|status| {
            let error = StateError::recovery_required(status).suggest(
                "end the operation of every address that is named, with the streamt that began it, and migrate then",
            );
            MigrationFailure { error, blocked }
        }))
    }

    /// What another session sees. E411 for anything but the store before or after.
    async fn image(&self, digest: &Digest) -> Result<Version, StateError> {
        let bound = self.target.lock_timeout;
        let session = Session::open(&self.target.endpoint, Purpose::Other, bound, CONNECT_TIMEOUT).await?;
        let looked = async {
            let client = &session.client;
            client.batch_execute(BEGIN_READ).await?;
            client.batch_execute("SET LOCAL statement_timeout = 0").await?;
            let proved = catalog::prove(client, &self.target.schema).await?;
            let same = audit::digest(client, &self.target.schema).await? == *digest;
            client.batch_execute("ROLLBACK").await?;
            let writer = proved.writer.as_deref();
            match proved.version {
                Version::One if same && proved.store_id == self.store_id => Ok(Version::One),
                Version::Two if same && proved.store_id == self.store_id && writer == Some(self.writer) => {
                    Ok(Version::Two)
                }
                Version::One | Version::Two => Err(Stop::from(StateError::conflict())),
            }
        };
        match timeout(MIGRATION_TIMEOUT, looked).await {
            Ok(image) => image.map_err(StateError::from),
            Err(_) => Err(Trouble::Gone.unavailable()),
        }
    }

    /// After a COMMIT without a good answer: both locks may be free, so only what another session sees counts.
    async fn resolve(&self, digest: &Digest) -> StateError {
        self.session.close();
        let deadline = Instant::now() + self.target.lock_timeout + CONNECT_TIMEOUT;
        match (MigrationLookout { migration: self, digest, deadline }).prove(deadline, TRY_EVERY).await {
            Some(Image::After) => unreleased(),
            Some(Image::Before) => StateError::unavailable("its server ended the migration before it stood"),
            Some(Image::Other) | None => StateError::unknown_commit().suggest(super::admin::RUN_AGAIN),
        }
    }

    /// In reverse order; true when each was held until now.
    async fn release(&self, sites: &[Site]) -> bool {
        let mut released = true;
        for site in sites.iter().rev() {
            released &= matches!(timeout(PROOF_TIMEOUT, self.session.unlock(site.key)).await, Ok(Ok(true)));
        }
        unlock_schema(&self.session, &self.target.schema).await && released
    }
}

/// Both outcomes leave a store of version 2.
fn unreleased() -> StateError {
    StateError::new(StateErrorKind::ReleaseAfterCommit)
        .suggest("the store is migrated; run the command again once its process has ended: it says `already migrated`")
}

struct MigrationLookout<'a> {
    migration: &'a Migration<'a>,
    digest: &'a Digest,
    deadline: Instant,
}

impl Lookout for MigrationLookout<'_> {
    async fn look(&mut self) -> Option<Image> {
        match timeout_at(self.deadline, self.migration.image(self.digest)).await {
            Ok(Ok(Version::Two)) => Some(Image::After),
            Ok(Ok(Version::One)) => Some(Image::Before),
            Ok(Err(_)) | Err(_) => None,
        }
    }

    async fn old_backend_is_gone(&mut self) -> bool {
        let target = self.migration.target;
        let asked = timeout_at(self.deadline, async {
            let session = Session::open(&target.endpoint, Purpose::Other, target.lock_timeout, CONNECT_TIMEOUT).await;
            session.ok()?.runs(&self.migration.session.backend).await.ok()
        });
        asked.await.ok().flatten() == Some(false)
    }
}
