//! The state of one test in PostgreSQL: a schema and a role of its own, written through a proxy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::faults::{Order, Proxy};
use crate::harness::Workspace;
use crate::losses::site::sql;

const PASSWORD: &str = "w-s3ntinel";
const HOLDS: &str = "FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                     WHERE l.locktype = 'advisory' AND l.granted AND a.usename";

pub struct Database {
    pub proxy: Arc<Proxy>,
    admin: String,
    schema: String,
    writer: String,
}

impl Database {
    /// `admin`: the administrator's URL.
    pub fn new(order: &Order, admin: &str) -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let (schema, writer) = (format!("s_{id}"), format!("w_{id}"));
        sql(admin, &format!("CREATE ROLE {writer} LOGIN NOINHERIT PASSWORD '{PASSWORD}'"));
        Self { proxy: Arc::new(Proxy::postgres(order, admin)), admin: admin.to_owned(), schema, writer }
    }

    /// The variables that [`Self::declaration`] names.
    pub fn known_to(&self, workspace: Workspace) -> Workspace {
        let (_, rest) = self.admin.split_once('@').expect("a user");
        let writer = self.proxy.dsn(&format!("postgresql://{}:{PASSWORD}@{rest}", self.writer));
        workspace.variable("OWNER_DSN", &self.admin).variable("WRITER_DSN", &writer)
    }

    pub fn declaration(&self, namespace: &str) -> String {
        format!(
            "deployment_state:\n  backend: postgres\n  namespace: {namespace}\n  lock_timeout_seconds: 1\n  \
             postgres: {{dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: {}}}\n",
            self.schema
        )
    }

    /// Makes the store that the project of this workspace declares.
    pub fn initialise(&self, workspace: &Workspace, namespace: &str, project: &str) {
        let line = format!(
            "state init --writer-role {} --confirm-project {project} --confirm-env default \
             --confirm-address streamt-state://{namespace}/{project}/default -o json",
            self.writer
        );
        workspace.run(&line).exits(0);
    }

    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The role that writes the state.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    pub fn sql(&self, statement: &str) -> Vec<Vec<String>> {
        sql(&self.admin, &statement.replace("{schema}", &self.schema).replace("{writer}", &self.writer))
    }

    /// Ends the session that holds the lock.
    pub fn killer(&self) -> impl Fn() + Send + Sync + 'static {
        let admin = self.admin.clone();
        let statement = format!("SELECT pg_terminate_backend(l.pid) {HOLDS} = '{}'", self.writer);
        move || {
            sql(&admin, &statement);
        }
    }

    /// Sessions that hold an advisory lock as the writer.
    pub fn holders(&self) -> usize {
        self.sql(&format!("SELECT l.pid {HOLDS} = '{{writer}}'")).len()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A test that failed may have left a session behind.
        let drop = "DROP SCHEMA IF EXISTS {schema} CASCADE; DROP OWNED BY {writer}; DROP ROLE {writer}";
        let _ = catch_unwind(AssertUnwindSafe(|| self.sql(drop)));
    }
}
