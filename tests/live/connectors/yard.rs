//! A project of one test with sinks of its own on a shared worker.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};

use crate::database::Database;
use crate::faults::{Order, Proxy};
use crate::harness::{Run, Workspace};
use crate::load::{Load, Turn};
use crate::support::{clean_up, eventually, variable};

pub const PASSWORD: &str = "admin-secret";
const NAMESPACE: &str = "connectors";
/// A configuration value that nothing but the worker may ever show.
pub const SENTINEL: &str = "s3ntinel-value";

/// The worker itself, past the proxy.
#[derive(Clone)]
pub struct Worker {
    url: String,
    /// A folder on its machine with `secrets.properties`.
    pub files: String,
}

impl Worker {
    pub fn at(name: &str) -> Self {
        Self { url: variable(name), files: variable(&format!("{name}_FILES")) }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Status and body of one request.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let address = self.url.strip_prefix("http://").expect("plain http");
        let mut stream = TcpStream::connect(address).expect("the worker answers");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let login = base64::engine::general_purpose::STANDARD.encode(format!("admin:{PASSWORD}"));
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {login}\r\nConnection: close\r\n\
             Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Asked again while the workers are rebalancing.
    pub fn settled(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let answer = self.ask(method, path, body);
            if !matches!(answer.0, 409 | 500) || Instant::now() > end {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn config(&self, name: &str) -> Option<Value> {
        let (status, body) = self.settled("GET", &format!("/connectors/{name}"), None);
        (status == 200).then(|| body["config"].clone())
    }

    pub fn put(&self, name: &str, config: &Value) {
        let (status, _) = self.settled("PUT", &format!("/connectors/{name}/config"), Some(config));
        assert!(status == 200 || status == 201, "{status}");
    }

    /// Waits until the rebalance that a new connector causes is over: its task has a worker.
    pub fn placed(&self, name: &str) {
        let status = || self.ask("GET", &format!("/connectors/{name}/status"), None).1;
        let placed = eventually(status, |status| status["tasks"][0]["state"] == "RUNNING");
        assert_eq!(placed["tasks"][0]["state"], "RUNNING", "{placed}");
    }

    pub fn delete(&self, name: &str) {
        self.settled("DELETE", &format!("/connectors/{name}"), None);
    }
}

/// Where ownership is kept.
#[derive(Clone)]
pub enum State {
    Local,
    /// The administrator's URL.
    Postgres(String),
}

pub struct Yard {
    pub order: Order,
    pub workers: Proxy,
    pub worker: Worker,
    pub workspace: Workspace,
    pub project: String,
    /// Whether the model has a schema.
    pub subject: bool,
    database: Option<Database>,
    database_order: Order,
    sinks: Vec<&'static str>,
    _turn: Turn,
}

impl Yard {
    pub fn new(worker: &str, state: State, sinks: &[&'static str]) -> Self {
        Self::under(worker, state, sinks, Load::Light)
    }

    pub fn under(worker: &str, state: State, sinks: &[&'static str], load: Load) -> Self {
        let turn = Turn::take(load);
        let worker = Worker::at(worker);
        let order = Order::default();
        let workers = Proxy::http(&order, worker.url());
        let project = format!("cn-{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let mut workspace = Workspace::new().variable("CONNECT_PASSWORD", PASSWORD);
        let database_order = Order::default();
        let database = match &state {
            State::Local => None,
            State::Postgres(admin) => Some(Database::new(&database_order, admin)),
        };
        if let Some(database) = &database {
            workspace = database.known_to(workspace);
        }
        let sinks = sinks.to_vec();
        let yard = Self {
            order,
            workers,
            worker,
            workspace,
            project,
            subject: false,
            database,
            database_order,
            sinks,
            _turn: turn,
        };
        yard.declare(&yard.sinks, &[]);
        if let Some(database) = &yard.database {
            database.initialise(&yard.workspace, NAMESPACE, &yard.project);
        }
        yard
    }

    pub fn postgres(admin: &str, sinks: &[&'static str]) -> Self {
        Self::new("STREAMT_TEST_CONNECT", State::Postgres(admin.to_owned()), sinks)
    }

    /// The only one of its process at that time: one that stands must be dropped before the next.
    pub fn alone(admin: &str, sinks: &[&'static str]) -> Self {
        Self::under("STREAMT_TEST_CONNECT", State::Postgres(admin.to_owned()), sinks, Load::Alone)
    }

    /// The connector of a sink.
    pub fn name(&self, sink: &str) -> String {
        format!("{}-{sink}", self.project)
    }

    pub fn topic(&self) -> String {
        format!("{}.orders", self.project)
    }

    /// A reference that the worker resolves itself.
    pub fn secret(&self) -> String {
        format!("${{file:{}/secrets.properties:password}}", self.worker.files)
    }

    /// The project with these sinks and these removals.
    pub fn declare(&self, sinks: &[&str], removals: &[&str]) {
        self.write(&self.yaml(sinks, removals));
    }

    pub fn write(&self, yaml: &str) {
        self.workspace.write("stream_project.yml", yaml);
    }

    pub fn yaml(&self, sinks: &[&str], removals: &[&str]) -> String {
        let sinks: String = sinks
            .iter()
            .map(|sink| {
                format!(
                    "  - name: {0}\n    description: d\n    from: [{{ref: orders}}]\n    sink:\n      connector: FileStreamSink\n      \
                     config: {{file: /dev/null, tasks.max: 1, note: {SENTINEL}, read: \"{1}\"}}\n",
                    self.name(sink),
                    self.secret()
                )
            })
            .collect();
        let removals: Vec<String> = removals
            .iter()
            .map(|sink| format!("{{logical_owner: {0}, name: {0}, cluster: main}}", self.name(sink)))
            .collect();
        let lifecycle = match removals.is_empty() {
            true => String::new(),
            false => format!("lifecycle: {{connector_removals: [{}]}}\n", removals.join(", ")),
        };
        let state = self.database.as_ref().map(|database| database.declaration(NAMESPACE)).unwrap_or_default();
        let (registry, schema) = match self.subject {
            false => (String::new(), String::new()),
            true => (
                format!("  schema_registry: {{url: \"{}\"}}\n", variable("STREAMT_TEST_REGISTRY")),
                format!(", schema: {{subject: {}-value, format: avro, definition: '\"string\"'}}", self.topic()),
            ),
        };
        format!(
            "apiVersion: streamt.dev/v1alpha1
project: {{name: {}}}
runtime:
{registry}  kafka: {{bootstrap_servers: \"{}\"}}
  connect:
    default: main
    clusters:
      main: {{rest_url: \"{}\", username: admin, password: \"${{CONNECT_PASSWORD}}\"}}
      second: {{rest_url: \"http://127.0.0.1:1\"}}
{state}{lifecycle}models:
  - {{name: orders, description: d, topic: {{name: {}, partitions: 1, replication_factor: 1}}{schema}}}
{sinks}",
            self.project,
            variable("STREAMT_TEST_KAFKA"),
            self.workers.url(),
            self.topic(),
        )
    }

    pub fn run(&self, line: &str) -> Run {
        self.workspace.run(line)
    }

    /// Removes a sink's declaration, declares its removal, and saves the plan.
    pub fn plan_removal(&self, kept: &[&str], removed: &[&str]) -> Run {
        self.declare(kept, removed);
        self.run("plan --out plan.json -o json")
    }

    pub fn apply_plan(&self) -> Run {
        self.run("apply --plan plan.json --confirm-env default --force -o json")
    }

    /// Requests at the worker since the last mark, `METHOD /path`.
    pub fn since(&self, mark: usize) -> Vec<String> {
        let records = self.order.records();
        records.into_iter().filter(|r| r.number > mark && r.proxy == "http").map(|r| r.what).collect()
    }

    pub fn sql(&self, statement: &str) -> Vec<Vec<String>> {
        self.store().sql(statement)
    }

    pub fn status(&self) -> Value {
        self.run("state status -o json").exits(0).json()["data"].clone()
    }

    /// The recorded resources, by id.
    pub fn resources(&self) -> Value {
        let text = match &self.database {
            None => std::fs::read_to_string(self.workspace.path(".streamt/state/default.json")).ok(),
            Some(database) => {
                database.sql("SELECT state_json FROM {schema}.current_state").pop().and_then(|mut row| row.pop())
            }
        };
        let payload: Value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(json!({}));
        payload.get("resources").cloned().unwrap_or(json!({}))
    }

    /// The ids of the recorded resources.
    pub fn records(&self) -> Vec<String> {
        self.resources().as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
    }

    fn store(&self) -> &Database {
        self.database.as_ref().expect("state in PostgreSQL")
    }

    /// In front of the database of its state.
    pub fn database(&self) -> &Proxy {
        &self.store().proxy
    }

    /// The role that writes its state.
    pub fn writer(&self) -> &str {
        self.store().writer()
    }

    /// COMMITs so far.
    pub fn commits(&self) -> usize {
        self.database_order.records().iter().filter(|record| record.what == "COMMIT").count()
    }

    /// Ends the session that holds the lock.
    pub fn killer(&self) -> impl Fn() + Send + Sync + 'static {
        self.store().killer()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        for sink in &self.sinks {
            self.worker.delete(&self.name(sink));
        }
        crate::estate::blocking(clean_up([self.topic()]));
    }
}
