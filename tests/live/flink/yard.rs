//! A project of one test with a SQL model: its own topics, on a cluster behind proxies.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::cluster::{Place, service};
use crate::database::Database;
use crate::faults::{Order, Proxy};
use crate::harness::{Run, Workspace};
use crate::support::{clean_up, variable};

pub const PASSWORD: &str = "admin-secret";
const NAMESPACE: &str = "flink";

pub struct Yard {
    pub order: Order,
    pub jobs: Proxy,
    pub gateway: Proxy,
    pub place: Place,
    pub workspace: Workspace,
    pub project: String,
    /// Of its state, unless that is local.
    pub database: Option<Database>,
}

impl Yard {
    pub fn new() -> Self {
        Self::at(Place::shared())
    }

    pub fn at(place: Place) -> Self {
        Self::of(place, None)
    }

    /// With its state in PostgreSQL.
    pub fn stored(place: Place, admin: &str) -> Self {
        Self::of(place, Some(admin))
    }

    fn of(place: Place, admin: Option<&str>) -> Self {
        let order = Order::default();
        let database = admin.map(|admin| Database::new(&order, admin));
        let (jobs, gateway) = (Proxy::http(&order, &place.rest), Proxy::http(&order, &place.gateway));
        let id = uuid::Uuid::new_v4().simple().to_string();
        let mut workspace = Workspace::new().variable("KAFKA_PASSWORD", PASSWORD);
        if let Some(database) = &database {
            workspace = database.known_to(workspace);
        }
        let yard = Self { order, jobs, gateway, place, workspace, project: format!("fl-{}", &id[..12]), database };
        crate::estate::blocking(create(yard.raw()));
        yard.write(&yard.yaml());
        if let Some(database) = &yard.database {
            database.initialise(&yard.workspace, NAMESPACE, &yard.project);
        }
        yard
    }

    pub fn database(&self) -> &Database {
        self.database.as_ref().expect("state in PostgreSQL")
    }

    pub fn raw(&self) -> String {
        format!("{}.raw", self.project)
    }

    pub fn clean(&self) -> String {
        format!("{}.clean", self.project)
    }

    /// The job of the model, as it is called in Flink.
    pub fn job(&self) -> String {
        self.model()
    }

    pub fn model(&self) -> String {
        self.project.replace('-', "_")
    }

    pub fn write(&self, yaml: &str) {
        self.workspace.write("stream_project.yml", yaml);
    }

    pub fn yaml(&self) -> String {
        self.with_kafka(&format!("{{bootstrap_servers: \"{}\"}}", variable("STREAMT_TEST_KAFKA")))
    }

    /// The broker's listener that asks for a password.
    pub fn secured(&self) -> String {
        self.with_kafka(&format!(
            "{{bootstrap_servers: \"{}\", security_protocol: SASL_PLAINTEXT, sasl_mechanism: SCRAM-SHA-512, \
             sasl_username: admin, sasl_password: \"${{KAFKA_PASSWORD}}\"}}",
            variable("STREAMT_TEST_KAFKA_SASL")
        ))
    }

    fn with_kafka(&self, kafka: &str) -> String {
        let flavour = if service() == "flink-1" { "plain" } else { "sql" };
        format!(
            "apiVersion: streamt.dev/v1alpha1
project: {{name: {project}}}
runtime:
  kafka: {kafka}
  flink:
    default: main
    clusters:
      main: {{rest_url: \"{rest}\", sql_gateway_url: \"{gateway}\", kafka_connector: {flavour}, statement_timeout: 30, timeout: 10, retries: 1}}
{state}sources:
  - {{name: raw, description: d, topic: {raw}, columns: [{{name: id, type: STRING}}, {{name: amount, type: INT}}]}}
models:
  - name: {model}
    description: d
    materialized: flink
    flink: {{checkpoint_interval_ms: 1000}}
    topic: {{name: {clean}, partitions: 1, replication_factor: 1}}
    sql: |
      SELECT id, amount
      FROM {{{{ source(\"raw\") }}}}
      WHERE amount > 0
",
            project = self.project,
            state = self.database.as_ref().map(|database| database.declaration(NAMESPACE)).unwrap_or_default(),
            rest = self.jobs.url(),
            gateway = self.gateway.url(),
            raw = self.raw(),
            model = self.model(),
            clean = self.clean(),
        )
    }

    pub fn run(&self, line: &str) -> Run {
        self.workspace.run(line)
    }

    pub fn status(&self) -> Value {
        self.run("state status -o json").exits(0).json()["data"].clone()
    }

    /// Why the job is not as declared, as `diff` and `status` say alike; null when it is. `diff` exits with this.
    pub fn causes(&self, exit: i32) -> Value {
        let of = |line: &str, list: &str, exit: i32| {
            let run = self.run(&format!("{line} -o json")).exits(exit).json();
            let rows = run["data"][list].as_array().expect("rows").clone();
            let row = rows.into_iter().find(|row| row["type"] != "model" && row["name"] == self.job().as_str());
            row.unwrap_or_else(|| panic!("{run}"))["cause"].clone()
        };
        let told = of("diff --detailed-exitcode", "resources", exit);
        assert_eq!(of("status", "flink_jobs", 0), told);
        told
    }

    /// Runs a command that cannot reach the store of the state.
    pub fn without_state(&self, line: &str) -> Run {
        let mut command = self.workspace.command(line);
        command.env("WRITER_DSN", "postgresql://w:w@127.0.0.1:1/postgres");
        Run::of(line, command.output().expect("runs"))
    }

    /// The status of a job that has failed, with its cause, which a JobManager may know a moment later only.
    pub fn told_why(&self) -> Run {
        let status = self.run("status -o json").exits(0);
        assert!(status.warning_codes().contains(&"W149_FLINK_JOB_FAILED".to_owned()), "{}", status.stdout);
        assert!(!status.stdout.contains("no cause yet"), "{}", status.stdout);
        status
    }

    /// What was asked of either service since the mark, `METHOD /path`.
    pub fn since(&self, mark: usize) -> Vec<String> {
        let records = self.order.records();
        records.into_iter().filter(|record| record.number > mark && record.proxy == "http").map(|r| r.what).collect()
    }

    pub fn put(&self, value: &str) {
        crate::estate::blocking(produce(self.raw(), value.to_owned()));
    }

    /// Waits until the model's topic holds this many records; gives them.
    pub fn records(&self, wanted: usize) -> Vec<String> {
        crate::estate::blocking(consume(self.clean(), wanted))
    }
}

async fn kafka() -> krafka::Kafka {
    krafka::Kafka::builder(variable("STREAMT_TEST_KAFKA")).connect().await.expect("Kafka answers")
}

pub async fn create(topic: String) {
    let kafka = crate::support::kafka().await;
    let artifact = crate::support::topic(&topic, 1, &[]);
    for (_, outcome) in kafka.create_topics(&crate::support::ctx(), &crate::support::Open, &[artifact]).await {
        outcome.expect("created");
    }
}

pub async fn produce(topic: String, value: String) {
    let producer = kafka().await.producer().build().await.expect("a producer");
    let _ = producer.send(krafka::Record::new(&topic, value).partition(0)).await.expect("sent");
}

pub async fn consume(topic: String, wanted: usize) -> Vec<String> {
    let kafka = kafka().await;
    let consumer = kafka.consumer_without_group().build().await.expect("a consumer");
    consumer.assign(&topic, vec![0]).await.expect("assigned");
    consumer.seek_to_beginning(&topic, 0).await.expect("the beginning");
    let end = Instant::now() + Duration::from_secs(60);
    let mut values = Vec::new();
    while values.len() < wanted {
        assert!(Instant::now() < end, "{values:?}");
        if let Ok(Ok(Some(record))) = tokio::time::timeout(Duration::from_secs(5), consumer.recv()).await {
            values.push(String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned());
        }
    }
    values
}

impl Drop for Yard {
    fn drop(&mut self) {
        let cancel = std::panic::AssertUnwindSafe(|| self.place.cancel(&self.job()));
        let _ = std::panic::catch_unwind(cancel);
        crate::estate::blocking(clean_up([self.raw(), self.clean()]));
    }
}
