//! A store of the measurement's own, and small projects with their state in it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use streamt::compiler::{Compiled, compile};
use streamt::messages::operation::{ApplyRequest, ApplySource, SelectionText};
use streamt::project::model::DeploymentState;
use streamt::project::{DiskFs, EnvironmentInput, load};
use streamt::state::postgres::admin::{NewStore, init};
use streamt::state::postgres::{Credential, Target, address};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use crate::Failure;

const NAMESPACE: &str = "perf";

pub struct Site {
    /// Drives the measurement's own connections on a thread of its own, as the program does with its own.
    pub engine: Arc<Runtime>,
    pub owner: Client,
    pub writer: String,
    admin: String,
    schema: String,
    directory: std::path::PathBuf,
}

/// What one project declares.
pub struct Shape<'a> {
    pub name: &'a str,
    pub models: usize,
    pub kafka: &'a str,
    /// With one, every model has a schema too.
    pub registry: Option<&'a str>,
}

impl Site {
    pub fn new(admin: &str) -> Result<Self, Failure> {
        let engine = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?);
        let owner = engine.block_on(connect(&engine, admin))?;
        let id = uuid::Uuid::new_v4().simple().to_string();
        let (schema, writer) = (format!("perf_{id}"), format!("perf_w_{id}"));
        engine.block_on(owner.batch_execute(&format!("CREATE ROLE {writer} LOGIN NOINHERIT PASSWORD 'perf'")))?;
        let directory = std::env::temp_dir().join(&schema);
        std::fs::create_dir_all(&directory)?;
        Ok(Self { engine, owner, writer, admin: admin.to_owned(), schema, directory })
    }

    /// A connection as the writer, and what its future does when it ends.
    pub fn bare(&self, ended: impl FnOnce() + Send + 'static) -> Result<(Client, i32), Failure> {
        let dsn = self.writer_dsn(None);
        self.engine.block_on(async {
            let (client, connection) = tokio_postgres::connect(&dsn, NoTls).await?;
            self.engine.spawn(async move {
                let _ = connection.await;
                ended();
            });
            let pid = client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0);
            Ok((client, pid))
        })
    }

    /// Through a proxy when there is one.
    pub fn writer_dsn(&self, proxy: Option<&str>) -> String {
        let rest = self.admin.rsplit_once('@').map_or(self.admin.as_str(), |(_, rest)| rest);
        let (host, path) = rest.split_once('/').unwrap_or((rest, "postgres"));
        format!("postgresql://{}:perf@{}/{path}", self.writer, proxy.unwrap_or(host))
    }

    /// Compiled, and its address registered.
    pub fn project(&self, shape: &Shape, writer_dsn: &str) -> Result<Arc<Compiled>, Failure> {
        let Shape { name, models, kafka, registry } = shape;
        let mut text = format!(
            "apiVersion: streamt.dev/v1alpha1\nproject: {{name: {name}}}\nruntime:\n  kafka: {{bootstrap_servers: \"{kafka}\"}}\n"
        );
        if let Some(registry) = registry {
            text.push_str(&format!("  schema_registry: {{url: \"{registry}\"}}\n"));
        }
        text.push_str(&format!(
            "deployment_state:\n  backend: postgres\n  namespace: {NAMESPACE}\n  lock_timeout_seconds: 5\n  postgres: {{dsn_env: OWNER_DSN, writer_dsn_env: \
             WRITER_DSN, schema: {}}}\nmodels:\n",
            self.schema
        ));
        for model in 0..*models {
            text.push_str(&format!(
                "  - name: m{model}\n    description: measured\n    topic: {{name: {name}.t{model}, partitions: 1, replication_factor: 1}}\n"
            ));
            if registry.is_some() {
                text.push_str(&format!(
                    "    schema: {{subject: {name}.t{model}-value, format: avro, definition: '\"string\"'}}\n"
                ));
            }
        }
        std::fs::write(self.directory.join("stream_project.yml"), text)?;
        let variables = [("OWNER_DSN", self.admin.as_str()), ("WRITER_DSN", writer_dsn)];
        let variables: BTreeMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let input = EnvironmentInput { variables, ..EnvironmentInput::default() };
        let project = load(&DiskFs::open(&self.directory)?, &input).map_err(|errors| format!("{errors:?}"))?.project;
        let DeploymentState::Postgres(state) = &project.deployment_state else { return Err("no remote state".into()) };
        let target = Target::new(state, &project.state_variables, Path::new("/"), Credential::Owner)?;
        let at = address(state, &project.name, &project.environment.name);
        let new = NewStore::Two { writer: self.writer.clone() };
        init(target, &at, Some(&new), jiff::Timestamp::now())?;
        Ok(compile(Arc::new(project)).map(Arc::new).map_err(|errors| format!("{errors:?}"))?)
    }

    /// The server processes that hold a lock as the writer, with the lock's key.
    pub fn holders(&self) -> Result<Vec<(i32, i64)>, Failure> {
        let query = "SELECT l.pid, (l.classid::int8 << 32) | l.objid::int8 FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND a.usename = $1::text::name";
        let rows = self.engine.block_on(self.owner.query(query, &[&self.writer]))?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// The lock of a project.
    pub fn key(&self, project: &str) -> Result<i64, Failure> {
        let query = format!("SELECT advisory_lock_key FROM {}.state_addresses WHERE project = $1", self.schema);
        Ok(self.engine.block_on(self.owner.query_one(&query, &[&project]))?.get(0))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
        let drop =
            format!("DROP SCHEMA IF EXISTS {0} CASCADE; DROP OWNED BY {1}; DROP ROLE {1}", self.schema, self.writer);
        let _ = self.engine.block_on(self.owner.batch_execute(&drop));
    }
}

async fn connect(engine: &Runtime, dsn: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await?;
    engine.spawn(connection);
    Ok(client)
}

pub fn request(compiled: Arc<Compiled>) -> ApplyRequest {
    let source = ApplySource::Direct { selection: SelectionText::default() };
    ApplyRequest { compiled, source, force: false, dry_run: false, actor: "perf".to_owned() }
}

/// Removes topics and subjects; what was never created is not missed.
pub fn sweep(kafka: &str, registry: Option<&str>, projects: &[String], models: usize) -> Result<(), Failure> {
    let names: Vec<String> =
        projects.iter().flat_map(|project| (0..models).map(move |model| format!("{project}.t{model}"))).collect();
    let run = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    run.block_on(async {
        let admin = krafka::Kafka::builder(kafka).client_id("streamt-perf").connect().await?.admin();
        for chunk in names.chunks(200) {
            let _ = admin.delete_topics(chunk, Default::default()).await?;
        }
        Ok::<_, Failure>(())
    })?;
    let Some(registry) = registry else { return Ok(()) };
    let rest = registry.strip_prefix("http://").ok_or("plain http")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    for name in names {
        for query in ["", "?permanent=true"] {
            let mut stream = TcpStream::connect(host)?;
            write!(
                stream,
                "DELETE /{path}/subjects/{name}-value{query} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            )?;
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    Ok(())
}
