//! A store of its own for each test, on every tested major of the server.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::project::secret::Secret;
use crate::state::conformance::Fresh;
use crate::state::error::StateError;
use crate::state::model::StateAddress;
use crate::state::postgres::admin::{self, Initialized, NewStore};
use crate::state::postgres::dsn;
use crate::state::postgres::engine::Engine;
use crate::state::postgres::session::{Purpose, Session};
use crate::state::postgres::{PostgresOperation, PostgresStore, Target};
use crate::state::store::StateBackend;

pub const PASSWORD: &str = "w-s3ntinel";

pub struct Server {
    pub major: String,
    pub admin: String,
    pub schema: String,
    pub writer: String,
    engine: Engine,
    next: AtomicU32,
}

pub fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run `make test`, or `make services` and export what it prints"))
}

/// Runs a test on each major, with a store that is ready.
pub fn each(test: impl Fn(Server)) {
    each_bare(|server| {
        server.init("first").unwrap();
        test(server);
    });
}

/// As [`each`], without a store.
pub fn each_bare(test: impl Fn(Server)) {
    let majors = std::env::var("STREAMT_TEST_POSTGRES_MAJORS").unwrap_or_else(|_| "14 18".to_owned());
    for major in majors.split_whitespace() {
        let admin = variable(&format!("STREAMT_TEST_POSTGRES_{major}"));
        let id = Uuid::new_v4().simple().to_string();
        let server = Server {
            major: major.to_owned(),
            admin,
            schema: format!("t_{id}"),
            writer: format!("w_{id}"),
            engine: Engine::start().unwrap(),
            next: AtomicU32::new(0),
        };
        server.sql(&format!("CREATE ROLE {} LOGIN NOINHERIT PASSWORD '{PASSWORD}'", server.writer));
        test(server);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let statement =
            format!("DROP SCHEMA IF EXISTS {0} CASCADE; DROP OWNED BY {1}; DROP ROLE {1}", self.schema, self.writer);
        let _ = self.try_sql(&statement);
    }
}

pub fn target(dsn: &str, schema: &str) -> Result<Target, StateError> {
    Ok(Target {
        endpoint: dsn::read(&Secret::new(dsn), Path::new("/"))?,
        schema: schema.to_owned(),
        lock_timeout: Duration::from_secs(10),
    })
}

impl Server {
    pub fn owner(&self) -> Target {
        target(&self.admin, &self.schema).unwrap()
    }

    pub fn writer_dsn(&self) -> String {
        let (_, rest) = self.admin.split_once('@').unwrap();
        format!("postgresql://{}:{PASSWORD}@{rest}", self.writer)
    }

    pub fn store(&self) -> PostgresStore {
        PostgresStore::new(target(&self.writer_dsn(), &self.schema).unwrap())
    }

    pub fn site(namespace: &str) -> StateAddress {
        crate::state::testing::address(namespace)
    }

    pub fn init(&self, namespace: &str) -> Result<Initialized, StateError> {
        let new = NewStore::Two { writer: self.writer.clone() };
        admin::init(self.owner(), &Self::site(namespace), Some(&new), jiff::Timestamp::now())
    }

    /// A registered address.
    pub fn address(&self, namespace: &str) -> StateAddress {
        self.init(namespace).unwrap();
        Self::site(namespace)
    }

    pub fn acquire(&self, address: &StateAddress) -> PostgresOperation {
        self.store().acquire(address, Duration::from_secs(10), &CancellationToken::new()).unwrap()
    }

    pub fn sql(&self, statement: &str) {
        self.try_sql(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    pub fn try_sql(&self, statement: &str) -> Result<(), String> {
        self.as_role(&self.admin, statement)
    }

    pub fn as_role(&self, dsn: &str, statement: &str) -> Result<(), String> {
        self.with(dsn, async |session| {
            session.client.batch_execute(statement).await.map_err(|error| format!("{error:?}"))
        })
    }

    /// The first column of the first row.
    pub fn number_as(&self, dsn: &str, query: &str) -> i64 {
        self.with(dsn, async |session| session.client.query_typed_one(query, &[]).await.unwrap().get::<_, i64>(0))
    }

    fn with<T>(&self, dsn: &str, work: impl AsyncFnOnce(&Session) -> T) -> T {
        let target = target(dsn, &self.schema).unwrap();
        self.engine.run(async {
            let second = Duration::from_secs(10);
            let session = Session::open(&target.endpoint, Purpose::Other, second, second).await.unwrap();
            work(&session).await
        })
    }
}

impl Fresh for Server {
    type Backend = PostgresStore;

    fn fresh(&self) -> (PostgresStore, StateAddress) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (self.store(), self.address(&format!("fresh-{number}")))
    }
}
