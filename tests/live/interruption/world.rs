//! A project of one test whose state is local or in PostgreSQL, and the ways to run and to kill the program on it.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tokio_postgres::NoTls;

use crate::estate::{blocking, service};
use crate::harness::{Run, Workspace};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    Local,
    Postgres(&'static str),
}

pub const REMOTE: [Store; 2] = [Store::Postgres("14"), Store::Postgres("18")];
pub const STORES: [Store; 3] = [Store::Local, REMOTE[0], REMOTE[1]];
pub const WRITER_PASSWORD: &str = "w-s3ntinel";

pub struct World {
    pub workspace: Workspace,
    /// The name of the project, and what every name at the services begins with.
    pub prefix: String,
    pub store: Store,
    pub database: Option<Arc<Database>>,
    /// How long the lock of a remote state is waited for, in seconds; from the next declaration on.
    pub patience: u32,
    /// Where the services are reached; for a proxy in between. From the next declaration on, like `patience`.
    pub kafka: String,
    pub registry: String,
}

/// A schema and two topics that are created: three actions, one request each for the schema and for both topics.
pub const MODELS: &str = "  - {name: a, description: d, topic: {name: PREFIX.a, partitions: 1, replication_factor: 1}}
  - {name: b, description: d, topic: {name: PREFIX.b, partitions: 1, replication_factor: 1}, schema: {subject: PREFIX.b-value, format: avro, definition: '\"string\"'}}
";

/// A schema and a writer role of a test's own.
pub struct Database {
    pub admin: String,
    pub schema: String,
    pub writer: String,
}

impl Database {
    fn new(major: &str) -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let admin = service(&format!("STREAMT_TEST_POSTGRES_{major}"));
        let database = Self { admin, schema: format!("s_{id}"), writer: format!("w_{id}") };
        database.sql(&format!("CREATE ROLE {} LOGIN NOINHERIT PASSWORD '{WRITER_PASSWORD}'", database.writer));
        database
    }

    pub fn writer_dsn(&self) -> String {
        let (_, endpoint) = self.admin.split_once('@').expect("a login and an endpoint");
        format!("postgresql://{}:{WRITER_PASSWORD}@{endpoint}", self.writer)
    }

    /// SCHEMA stands for the schema, here and below.
    pub fn sql(&self, statement: &str) {
        let statement = statement.replace("SCHEMA.", &format!("{}.", self.schema));
        self.session(async |client| client.batch_execute(&statement).await.expect("accepted"));
    }

    /// Does something while another session holds the lock of every address.
    pub fn while_locked(&self, act: impl FnOnce() + Send) {
        let lock = format!("SELECT pg_advisory_lock(advisory_lock_key) FROM {}.state_addresses", self.schema);
        self.session(async |client| {
            client.batch_execute(&lock).await.expect("locked");
            std::thread::scope(|scope| scope.spawn(act).join().expect("no panic"));
        });
    }

    /// The first column of every row, as text.
    pub fn texts(&self, query: &str) -> Vec<String> {
        let query = query.replace("SCHEMA.", &format!("{}.", self.schema));
        self.session(async |client| {
            let rows = client.query(&query, &[]).await.expect("accepted");
            rows.iter().map(|row| row.get(0)).collect()
        })
    }

    fn session<T: Send>(&self, work: impl AsyncFnOnce(&tokio_postgres::Client) -> T + Send) -> T {
        std::thread::scope(|scope| {
            let run = || {
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
                    let (client, connection) = tokio_postgres::connect(&self.admin, NoTls).await.expect("connected");
                    let connection = tokio::spawn(connection);
                    let worked = work(&client).await;
                    drop(client);
                    let _ = connection.await;
                    worked
                })
            };
            scope.spawn(run).join().expect("no panic")
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Self { schema, writer, .. } = &*self;
        self.sql(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE; DROP OWNED BY {writer}; DROP ROLE {writer}"));
    }
}

/// One failpoint at one of its times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    pub name: String,
    pub time: usize,
}

impl Moment {
    pub fn new(name: &str, time: usize) -> Self {
        Self { name: name.to_owned(), time }
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.time)
    }
}

impl World {
    /// A project that declares nothing yet; in PostgreSQL its store is made.
    pub fn new(stem: &str, store: Store) -> Self {
        let world = Self::uninitialized(stem, store);
        if world.database.is_some() {
            world.run(&world.init_line()).exits(0);
        }
        world
    }

    /// An apply of [`MODELS`] that was killed at a moment, and of which the services have carried out what they were sent.
    pub fn blocked(stem: &str, store: Store, name: &str, time: usize) -> Self {
        let world = Self::new(stem, store);
        world.declare(MODELS);
        assert!(world.killed_at("apply", &Moment::new(name, time)), "killed");
        world.settle();
        world
    }

    pub fn uninitialized(stem: &str, store: Store) -> Self {
        let database = match store {
            Store::Local => None,
            Store::Postgres(major) => Some(Arc::new(Database::new(major))),
        };
        Self::with(stem, store, database)
    }

    /// Another project whose state is in the same store.
    pub fn beside(&self) -> Self {
        let world = self.beside_uninitialized();
        world.run(&world.init_line()).exits(0);
        world
    }

    /// As [`World::beside`], its address not yet registered.
    pub fn beside_uninitialized(&self) -> Self {
        Self::with("beside", self.store, self.database.clone())
    }

    fn with(stem: &str, store: Store, database: Option<Arc<Database>>) -> Self {
        let prefix = format!("kill-{stem}-{}", uuid::Uuid::new_v4().simple());
        let mut workspace = Workspace::new();
        if let Some(database) = &database {
            workspace = workspace.variable("OWNER_DSN", &database.admin).variable("WRITER_DSN", &database.writer_dsn());
        }
        let (kafka, registry) = (service("STREAMT_TEST_KAFKA"), service("STREAMT_TEST_REGISTRY"));
        let world = Self { workspace, prefix, store, database, patience: 120, kafka, registry };
        world.declare("  []");
        world
    }

    pub fn init_line(&self) -> String {
        let (project, database) = (&self.prefix, self.database.as_ref().expect("a database"));
        format!(
            "state init --writer-role {} --confirm-project {project} --confirm-env default \
             --confirm-address streamt-state://tests/{project}/default",
            database.writer
        )
    }

    /// The project with these models, in which PREFIX is the start of every name.
    pub fn declare(&self, models: &str) {
        let state = match &self.database {
            None => String::new(),
            Some(database) => format!(
                "deployment_state:
  backend: postgres
  namespace: tests
  lock_timeout_seconds: {}
  postgres: {{dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: {}}}
",
                self.patience, database.schema
            ),
        };
        let yaml = format!(
            "apiVersion: streamt.dev/v1alpha1
project: {{name: {}}}
runtime:
  kafka: {{bootstrap_servers: \"{}\"}}
  schema_registry: {{url: \"{}\"}}
{state}models:
{}",
            self.prefix,
            self.kafka,
            self.registry,
            models.replace("PREFIX", &self.prefix)
        );
        self.workspace.write("stream_project.yml", &yaml);
    }

    pub fn command(&self, line: &str) -> Command {
        self.workspace.command(&format!("{line} -o json"))
    }

    /// Runs a command whose result is wanted as JSON.
    pub fn run(&self, line: &str) -> Run {
        Run::of(line, self.command(line).output().expect("runs"))
    }

    /// `data` of a command that succeeds.
    #[track_caller]
    pub fn data(&self, line: &str) -> Value {
        self.run(line).exits(0).json()["data"].clone()
    }

    /// The code of the first error of a command that fails.
    #[track_caller]
    pub fn refused(&self, line: &str) -> String {
        self.run(line).exits(1).errors()[0].0.clone()
    }

    /// Every failpoint that a command passes, in order.
    pub fn trace(&self, line: &str) -> (Run, Vec<Moment>) {
        let path = self.workspace.path("trace");
        let _ = std::fs::remove_file(&path);
        let run = Run::of(line, self.command(line).env("STREAMT_FAILPOINT_TRACE", &path).output().expect("runs"));
        let mut moments: Vec<Moment> = Vec::new();
        for name in std::fs::read_to_string(&path)
            .unwrap_or_else(|_| panic!("no failpoint: build with `--features failpoints`; {line}: {}", run.stdout))
            .lines()
        {
            let time = moments.iter().filter(|moment| moment.name == name).count() + 1;
            moments.push(Moment { name: name.to_owned(), time });
        }
        (run, moments)
    }

    /// Whether the command got to the moment, and was killed there as `kill -9` does.
    pub fn killed_at(&self, line: &str, moment: &Moment) -> bool {
        let output = self.command(line).env("STREAMT_FAILPOINT", moment.to_string()).output().expect("runs");
        match output.status.signal() {
            Some(signal) => assert_eq!(signal, 9, "{line} at {moment}"),
            None => assert!(output.status.success(), "{line} at {moment}: {}", String::from_utf8_lossy(&output.stdout)),
        }
        output.status.signal().is_some()
    }

    /// A command that runs on its own, its output unread.
    pub fn spawn(&self, line: &str) -> std::process::Child {
        self.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
    }

    /// What `state status` shows of the operation; it can always be read.
    #[track_caller]
    pub fn operation(&self) -> Value {
        self.data("state status")["operation_status"].clone()
    }

    /// Physical names of what is recorded as owned, of one backend.
    pub fn owned(&self, backend: &str) -> Vec<String> {
        let text = match &self.database {
            None => std::fs::read_to_string(self.workspace.path(".streamt/state/default.json")).expect("a state"),
            Some(database) => database.texts("SELECT state_json FROM SCHEMA.current_state").remove(0),
        };
        let state: Value = serde_json::from_str(&text).expect("JSON");
        let records = state["resources"].as_object().expect("resources").values();
        let mut names: Vec<String> = records
            .filter(|record| record["backend"] == backend)
            .map(|record| record["physical_name"].as_str().expect("a name").to_owned())
            .collect();
        names.sort_unstable();
        names
    }

    /// Topics of this project that exist, sorted.
    pub fn topics(&self) -> Vec<String> {
        let start = format!("{}.", self.prefix);
        let mut names = blocking(async {
            let kafka = krafka::Kafka::builder(service("STREAMT_TEST_KAFKA")).connect().await.expect("Kafka answers");
            kafka.admin().list_topics(Default::default()).await.expect("a list")
        })
        .into_iter()
        .map(|topic| topic.to_string())
        .filter(|name| name.starts_with(&start))
        .collect::<Vec<_>>();
        names.sort_unstable();
        names
    }

    /// Returns once the broker shows what it was asked for before: it shows changes in their order, and a topic that is asked for
    /// now comes after them.
    pub fn settle(&self) {
        let marker = format!("{}-marker-{}", self.prefix, uuid::Uuid::new_v4().simple());
        let artifact = crate::support::topic(&marker, 1, &[]);
        crate::estate::with_kafka(async |kafka, ctx| {
            for (_, outcome) in kafka.create_topics(ctx, &crate::support::Open, &[artifact]).await {
                outcome.expect("created");
            }
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let prefix = self.prefix.clone();
        blocking(async move {
            let Ok(kafka) = krafka::Kafka::builder(service("STREAMT_TEST_KAFKA")).connect().await else { return };
            let Ok(names) = kafka.admin().list_topics(Default::default()).await else { return };
            let mine: Vec<String> =
                names.into_iter().map(|topic| topic.to_string()).filter(|name| name.starts_with(&prefix)).collect();
            let _ = kafka.admin().delete_topics(mine, Default::default()).await;
        });
    }
}
