//! A schema and a writer role of a run's own in a PostgreSQL database whose owner's DSN is given.

use tokio_postgres::{NoTls, Row};
use uuid::Uuid;

use crate::Failure;

const PASSWORD: &str = "streamt-perf";

pub struct Store {
    owner: String,
    schema: String,
    writer: String,
}

impl Store {
    pub fn create(owner: &str) -> Result<Self, Failure> {
        let id = Uuid::new_v4().simple().to_string();
        let store = Self { owner: owner.to_owned(), schema: format!("perf_{id}"), writer: format!("perf_w_{id}") };
        store.ask(&format!("CREATE ROLE {} LOGIN NOINHERIT PASSWORD '{PASSWORD}'", store.writer), "SELECT 1")?;
        Ok(store)
    }

    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// `deployment_state` of a project file.
    pub fn declaration(&self) -> String {
        format!(
            "deployment_state:\n  backend: postgres\n  namespace: perf\n  postgres: {{dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: {}}}\n",
            self.schema
        )
    }

    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = self.owner.split_once('@').map_or("", |(_, endpoint)| endpoint);
        let writer = format!("postgresql://{}:{PASSWORD}@{endpoint}", self.writer);
        vec![("OWNER_DSN".to_owned(), self.owner.clone()), ("WRITER_DSN".to_owned(), writer)]
    }

    /// Bytes of the operation history with its indexes.
    pub fn history(&self) -> Result<f64, Failure> {
        let sql = format!("SELECT pg_total_relation_size('{}.operation_history')", self.schema);
        let row = self.ask("", &sql)?;
        Ok(row.try_get::<_, i64>(0)? as f64)
    }

    pub fn drop(self) -> Result<(), Failure> {
        let (schema, writer) = (&self.schema, &self.writer);
        self.ask(
            &format!("DROP SCHEMA IF EXISTS {schema} CASCADE; DROP OWNED BY {writer}; DROP ROLE {writer}"),
            "SELECT 1",
        )?;
        Ok(())
    }

    fn ask(&self, statements: &str, question: &str) -> Result<Row, Failure> {
        let work = async {
            let (client, connection) = tokio_postgres::connect(&self.owner, NoTls).await?;
            let driven = tokio::spawn(connection);
            client.batch_execute(statements).await?;
            let row = client.query_one(question, &[]).await?;
            drop(client);
            let _ = driven.await;
            Ok(row)
        };
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
    }
}
