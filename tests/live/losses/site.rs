//! A project of one test with its state in PostgreSQL, every link through a proxy.

use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::database::Database;
use crate::faults::{Fault, Gate, Order, Proxy, Record, Rule, first};
use crate::harness::{Run, Workspace};
use crate::support::{clean_up, eventually, variable};

pub const LONG: Duration = Duration::from_secs(60);
const NAMESPACE: &str = "losses";

pub struct Site {
    pub order: Order,
    pub db: Arc<Proxy>,
    pub kafka: Arc<Proxy>,
    pub registry: Arc<Proxy>,
    pub workspace: Workspace,
    pub project: String,
    pub database: Database,
    topics: usize,
}

/// The same test on the server of each major, side by side.
pub fn on_each_major(test: impl Fn(&str) + Sync) {
    crate::support::on_each_major(|major| test(&variable(&format!("STREAMT_TEST_POSTGRES_{major}"))));
}

pub fn sql(admin: &str, statement: &str) -> Vec<Vec<String>> {
    let run = async {
        let (client, connection) = tokio_postgres::connect(admin, NoTls).await.expect("PostgreSQL answers");
        let connection = tokio::spawn(connection);
        let rows = client.simple_query(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        drop(client);
        let _ = connection.await;
        let rows = rows.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).unwrap_or_default().to_owned()).collect())
            }
            _ => None,
        });
        rows.collect()
    };
    crate::estate::blocking(run)
}

impl Site {
    /// `topics` topics, each an action; created as one group.
    pub fn new(admin: &str, topics: usize) -> Self {
        Self::of(admin, topics, false)
    }

    /// A topic and a schema for each model: as many actions that stand alone, and then the topics as one group.
    pub fn with_schemas(admin: &str, models: usize) -> Self {
        Self::of(admin, models, true)
    }

    fn of(admin: &str, topics: usize, schemas: bool) -> Self {
        let order = Order::default();
        let database = Database::new(&order, admin);
        let kafka = Arc::new(Proxy::kafka(&order, &variable("STREAMT_TEST_KAFKA")));
        let registry = Arc::new(Proxy::http(&order, &variable("STREAMT_TEST_REGISTRY")));
        let project = format!("loss-{}", uuid::Uuid::new_v4().simple());
        let model = |i: usize| {
            let schema = match schemas {
                true => format!(", schema: {{subject: {project}.t{i}-value, format: avro, definition: '\"string\"'}}"),
                false => String::new(),
            };
            let topic = format!("topic: {{name: {project}.t{i}, partitions: 1, replication_factor: 1}}");
            format!("  - {{name: m{i}, description: d, {topic}{schema}}}\n")
        };
        let models: String = (0..topics).map(model).collect();
        let yaml = format!(
            "apiVersion: streamt.dev/v1alpha1
project: {{name: {project}}}
runtime: {{kafka: {{bootstrap_servers: \"{}\"}}, schema_registry: {{url: \"{}\"}}}}
{}models:
{models}",
            kafka.address(),
            registry.url(),
            database.declaration(NAMESPACE)
        );
        let workspace = database.known_to(Workspace::project(&yaml));
        database.initialise(&workspace, NAMESPACE, &project);
        Self { db: Arc::clone(&database.proxy), order, kafka, registry, workspace, project, database, topics }
    }

    pub fn sql(&self, statement: &str) -> Vec<Vec<String>> {
        self.database.sql(statement)
    }

    /// Ends the session that holds the lock.
    pub fn killer(&self) -> impl Fn() + Send + Sync + 'static {
        self.database.killer()
    }

    /// Sessions that hold an advisory lock as the writer.
    pub fn holders(&self) -> usize {
        self.database.holders()
    }

    /// Returns when the server has given the lock away by itself.
    pub fn wait_until_freed(&self) {
        let holders = eventually(|| self.holders(), |holders| *holders == 0);
        assert_eq!(holders, 0, "the server never frees the lock of a client that is gone");
    }

    pub fn start(&self, line: &str) -> Child {
        self.workspace.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
    }

    /// An apply of which one request, or its answer, waits at the gate.
    pub fn held_at(&self, proxy: &Proxy, rule: Rule, fault: fn(Gate) -> Fault) -> (Child, Gate) {
        let gate = Gate::default();
        let flight = proxy.rule(rule, fault(gate.clone()));
        let child = self.start("apply -o json");
        assert!(flight.hit(LONG), "it never gets there");
        (child, gate)
    }

    /// An apply whose first change of the broker waits at the gate.
    pub fn in_flight(&self) -> (Child, Gate) {
        self.held_at(&self.kafka, first(|request| request.mutates), Fault::Hold)
    }

    pub fn apply(&self) -> Run {
        self.workspace.run("apply -o json")
    }

    pub fn status(&self) -> Value {
        self.workspace.run("state status -o json").exits(0).json()["data"].clone()
    }

    /// Operation status and serial.
    pub fn stands(&self) -> (String, u64) {
        let status = self.status();
        (text(&status["operation_status"]["status"]), status["state_serial"].as_u64().expect("a serial"))
    }

    /// What changed something at a provider, in order.
    pub fn changes(&self) -> Vec<Record> {
        self.order.mutations().into_iter().filter(|record| record.proxy != "postgres").collect()
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Code of the first error.
pub fn code(run: &Run) -> String {
    run.errors().first().map(|(code, _)| code.clone()).unwrap_or_default()
}

impl Drop for Site {
    fn drop(&mut self) {
        let names: Vec<String> = (0..self.topics).map(|index| format!("{}.t{index}", self.project)).collect();
        let _ = std::panic::catch_unwind(|| crate::estate::blocking(clean_up(names)));
    }
}
