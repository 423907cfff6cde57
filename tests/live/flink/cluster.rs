//! A Flink cluster as a test sees it, and one that a test may break.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use streamt::compiler::artifact::{FlinkJobArtifact, OwnerType, Ownership};
use streamt::planner::flink::JobId;
use streamt::project::model::{BasicAuth, FlinkCluster, FlinkClusterType, KafkaConnectorFlavour, OwnershipMode, Tls};
use streamt::providers::flink::Submitted;
use streamt::providers::{Ctx, FlinkClient, ProviderFailure, Purpose};
use tokio_util::sync::CancellationToken;

use crate::load::{Load, Turn};
use crate::support::{Open, variable};

/// `flink`, or the service of the lane that runs these tests against another version.
pub fn service() -> String {
    std::env::var("STREAMT_TEST_FLINK_SERVICE").unwrap_or_else(|_| "flink".to_owned())
}

/// Where the two services of a cluster answer.
#[derive(Clone)]
pub struct Place {
    pub rest: String,
    pub gateway: String,
}

impl Place {
    pub fn shared() -> Self {
        Self { rest: variable("STREAMT_TEST_FLINK"), gateway: variable("STREAMT_TEST_FLINK_GATEWAY") }
    }

    /// Status and body of one request to the JobManager.
    pub fn ask(&self, method: &str, path: &str) -> (u16, Value) {
        request(&self.rest, method, path)
    }

    /// Every job of the name, ended ones too.
    pub fn jobs(&self, name: &str) -> Vec<Value> {
        let (status, body) = self.ask("GET", "/jobs/overview");
        assert_eq!(status, 200);
        body["jobs"].as_array().expect("jobs").iter().filter(|job| job["name"] == name).cloned().collect()
    }

    /// Waits until the one job of the name is as wanted.
    pub fn job_when(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(90);
        loop {
            let jobs = self.jobs(name);
            if let [job] = jobs.as_slice()
                && wanted(job)
            {
                return job.clone();
            }
            assert!(Instant::now() < end, "{jobs:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The one job of the name, running with all its tasks.
    pub fn running(&self, name: &str) -> Value {
        self.job_when(name, |job| job["state"] == "RUNNING" && job["tasks"]["running"] == job["tasks"]["total"])
    }

    /// The values of a running job's metrics whose name ends so, by name; empty while there are none.
    pub fn metrics(&self, job: &Value, ending: &str) -> Vec<(String, String)> {
        let id = job["jid"].as_str().expect("an id");
        let (status, body) = self.ask("GET", &format!("/jobs/{id}"));
        assert_eq!(status, 200, "{body}");
        let mut found = Vec::new();
        for vertex in body["vertices"].as_array().expect("vertices") {
            let path = format!("/jobs/{id}/vertices/{}/metrics", vertex["id"].as_str().expect("an id"));
            let listed = self.ask("GET", &path).1;
            let names = listed.as_array().into_iter().flatten().filter_map(|metric| metric["id"].as_str());
            for name in names.filter(|name| name.ends_with(ending)) {
                let asked = name.replace('[', "%5B").replace(']', "%5D").replace(' ', "%20");
                let value = self.ask("GET", &format!("{path}?get={asked}")).1[0]["value"].clone();
                found.push((name.to_owned(), value.as_str().unwrap_or_default().to_owned()));
            }
        }
        found
    }

    pub fn cancel(&self, name: &str) {
        for job in self.jobs(name) {
            let _ = self.ask("PATCH", &format!("/jobs/{}?mode=cancel", job["jid"].as_str().expect("an id")));
        }
    }

    pub fn client(&self) -> FlinkClient {
        FlinkClient::new(&self.cluster(), None, None, Path::new("/")).expect("a client")
    }

    fn cluster(&self) -> FlinkCluster {
        FlinkCluster {
            cluster_type: FlinkClusterType::Rest,
            rest_url: Some(self.rest.clone()),
            sql_gateway_url: Some(self.gateway.clone()),
            version: None,
            environment: None,
            kafka_connector: KafkaConnectorFlavour::Sql,
            api_key: None,
            api_secret: None,
            auth: BasicAuth::default(),
            tls: Tls::default(),
            confluent: Default::default(),
            timeout: 10,
            retries: 1,
            statement_timeout: 30,
        }
    }

    /// Submits a job that runs until it is cancelled.
    pub fn submit(&self, name: &str, id: &JobId) -> Result<Submitted, ProviderFailure> {
        self.submit_sql(name, id, ENDLESS)
    }

    pub fn submit_sql(&self, name: &str, id: &JobId, sql: &str) -> Result<Submitted, ProviderFailure> {
        let (client, job) = (self.client(), artifact(name, sql));
        let ctx = Ctx::new(Purpose::Apply, Duration::from_secs(240), CancellationToken::new());
        crate::estate::blocking(async move { client.submit(&ctx, &Open, &job, id).await })
    }
}

pub const ENDLESS: &str = "CREATE TABLE a (x INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');
CREATE TABLE b (x INT) WITH ('connector' = 'blackhole');
INSERT INTO b SELECT x FROM a;";

pub fn artifact(name: &str, sql: &str) -> FlinkJobArtifact {
    FlinkJobArtifact {
        name: name.to_owned(),
        sql: sql.to_owned(),
        cluster: None,
        parallelism: None,
        checkpoint_interval_ms: None,
        state_backend: None,
        state_ttl_ms: None,
        ownership: Ownership {
            mode: OwnershipMode::Managed,
            project: "shop".to_owned(),
            owner_type: OwnerType::Model,
            name: name.to_owned(),
        },
    }
}

pub fn fresh_id() -> JobId {
    JobId::parse(&uuid::Uuid::new_v4().simple().to_string()).expect("an id")
}

pub fn request(url: &str, method: &str, path: &str) -> (u16, Value) {
    sent(url, method, path, "")
}

/// Runs a statement in the session of a path that ends in `/statements`.
pub fn statement(url: &str, path: &str, sql: &str) {
    let (status, body) = sent(url, "POST", path, &json!({"statement": sql}).to_string());
    assert_eq!(status, 200, "{body}");
    std::thread::sleep(Duration::from_secs(1));
}

fn sent(url: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let address = url.strip_prefix("http://").expect("plain http");
    let mut stream = TcpStream::connect(address).expect("Flink answers");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    (status, serde_json::from_str(body).unwrap_or(json!(null)))
}

/// A cluster of one test, whose processes may be killed.
pub struct Own {
    pub place: Place,
    home: PathBuf,
    _turn: Turn,
}

impl Own {
    pub fn start() -> Self {
        let turn = Turn::take(Load::Cluster);
        let home = std::env::temp_dir().join(format!("streamt-flink-{}", uuid::Uuid::new_v4().simple()));
        let mut own = Self { place: Place { rest: String::new(), gateway: String::new() }, home, _turn: turn };
        let lines = own.services("up");
        let value = |name: &str| {
            let line = lines.lines().find_map(|line| line.strip_prefix(&format!("export {name}=")));
            line.unwrap_or_else(|| panic!("{name} in {lines}")).trim_matches('\'').to_owned()
        };
        let variable = format!("STREAMT_TEST_{}", service().to_ascii_uppercase().replace('-', "_"));
        own.place = Place { rest: value(&variable), gateway: value(&format!("{variable}_GATEWAY")) };
        own
    }

    /// Starts again what does not run, on the ports it had.
    pub fn up(&self) {
        self.services("up");
    }

    fn services(&self, command: &str) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/services/services");
        let output = Command::new(script)
            .args([command, &service()])
            .env("STREAMT_SERVICES_HOME", &self.home)
            .output()
            .expect("the script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Kills one of `jobmanager`, `taskmanager`, `gateway` at once.
    pub fn kill(&self, role: &str) {
        kill(&self.home, role);
    }

    /// The same from another thread.
    pub fn killer(&self, role: &'static str) -> impl Fn() + Send + Sync + use<> {
        let home = self.home.clone();
        move || kill(&home, role)
    }
}

fn kill(home: &Path, role: &str) {
    let pid = std::fs::read_to_string(home.join(service()).join(role).join("pid")).expect("a pid");
    let _ = Command::new("kill").args(["-KILL", pid.trim()]).output();
}

impl Drop for Own {
    fn drop(&mut self) {
        self.services("down");
        let _ = std::fs::remove_dir_all(&self.home);
    }
}
