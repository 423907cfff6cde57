//! A project whose state is in PostgreSQL, as its user types it, on every tested major of the server.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

use crate::harness::Workspace;
use crate::support::{eventually, majors};

pub fn service(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run `make test`, or `make services` and export what it prints"))
}

/// A schema, a role and a project of a test's own.
pub struct Estate {
    pub workspace: Workspace,
    pub admin: String,
    pub project: String,
    pub schema: String,
    pub writer: String,
}

impl Estate {
    pub fn new(major: &str, topics: usize) -> Self {
        Self::on(service(&format!("STREAMT_TEST_POSTGRES_{major}")), topics)
    }

    /// On the server that `admin` logs in to as its superuser.
    pub fn on(admin: String, topics: usize) -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let (schema, writer, project) = (format!("s_{id}"), format!("w_{id}"), format!("pg-{id}"));
        let (_, endpoint) = admin.split_once('@').unwrap();
        let models: String = (0..topics)
            .map(|i| {
                format!("  - {{name: m{i}, description: d, topic: {{name: {project}.t{i}, partitions: 1, replication_factor: 1}}}}\n")
            })
            .collect();
        let yaml = format!(
            "apiVersion: streamt.dev/v1alpha1
project: {{name: {project}}}
runtime: {{kafka: {{bootstrap_servers: \"{}\"}}}}
deployment_state:
  backend: postgres
  namespace: tests
  lock_timeout_seconds: 10
  postgres: {{dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: {schema}}}
models:
{models}",
            service("STREAMT_TEST_KAFKA")
        );
        let workspace = Workspace::project(&yaml)
            .variable("OWNER_DSN", &admin)
            .variable("WRITER_DSN", &format!("postgresql://{writer}:w-s3ntinel@{endpoint}"));
        let estate = Self { workspace, admin, project, schema, writer };
        estate.sql(&format!("CREATE ROLE {} LOGIN NOINHERIT PASSWORD 'w-s3ntinel'", estate.writer));
        estate
    }

    pub fn sql(&self, statement: &str) {
        self.try_sql(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    pub fn try_sql(&self, statement: &str) -> Result<(), String> {
        let run = async {
            let (client, connection) = tokio_postgres::connect(&self.admin, NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let outcome = client.batch_execute(statement).await.map_err(|error| format!("{error:?}"));
            drop(client);
            let _ = connection.await;
            outcome
        };
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run)
    }

    /// Every row of every table of the store, as text.
    pub fn rows(&self) -> Vec<String> {
        let tables = [
            "store_metadata",
            "schema_migrations",
            "state_addresses",
            "operation_history",
            "operation_control",
            "state_history",
            "current_state",
        ];
        let query = |table| format!("SELECT '{table} ' || t::text FROM {}.{table} t ORDER BY 1", self.schema);
        tables.into_iter().flat_map(|table| self.ask(&query(table))).collect()
    }

    /// The first column of what a query gives.
    pub fn ask(&self, query: &str) -> Vec<String> {
        let run = async {
            let (client, connection) = tokio_postgres::connect(&self.admin, NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let rows = client.simple_query(query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
            drop(client);
            let _ = connection.await;
            rows
        };
        let rows = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run);
        rows.iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            })
            .collect()
    }

    /// Runs a line with other values of some variables.
    pub fn run_with(&self, variables: &[(&str, &str)], line: &str) -> crate::harness::Run {
        let mut command = self.workspace.command(line);
        command.envs(variables.iter().copied());
        crate::harness::Run::of(line, command.output().unwrap())
    }

    /// The connection string of a role of the same server.
    pub fn dsn(&self, role: &str, password: &str) -> String {
        let (_, endpoint) = self.admin.split_once('@').unwrap();
        format!("postgresql://{role}:{password}@{endpoint}")
    }

    /// Waits until what was applied is seen: a broker shows a new topic a moment after it confirmed it.
    pub fn settled(&self, environment: &str) {
        let line = format!("plan {environment} --detailed-exitcode");
        eventually(|| self.workspace.run(&line), |run| run.exit == 0).exits(0);
    }

    /// `state init` with its confirmations.
    pub fn init_line(&self, more: &str) -> String {
        format!(
            "state init {more} --confirm-project {0} --confirm-env default \
             --confirm-address streamt-state://tests/{0}/default -o json",
            self.project
        )
    }

    pub fn init(&self) -> serde_json::Value {
        let line = self.init_line(&format!("--writer-role {}", self.writer));
        self.workspace.run(&line).exits(0).json()
    }
}

impl Drop for Estate {
    fn drop(&mut self) {
        self.sql(&format!(
            "DROP SCHEMA IF EXISTS {0} CASCADE; DROP OWNED BY {1}; DROP ROLE {1}",
            self.schema, self.writer
        ));
    }
}

/// PGS-001 PGS-002 PGS-003 PGS-017 PGS-018
#[test]
fn a_project_lives_with_its_state_in_postgres() {
    for major in &majors() {
        let estate = Estate::new(major, 3);
        let workspace = &estate.workspace;
        let before = workspace.run("state status -o json").exits(0).json();
        assert_eq!(before["data"]["store_status"], "uninitialized");
        assert_eq!(workspace.run("plan -o json").exits(1).errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE");
        assert_eq!(estate.init()["data"]["outcome"], "initialized");
        assert_eq!(estate.init()["data"]["outcome"], "already_initialized");

        assert_eq!(workspace.run("plan --detailed-exitcode").exits(2).exit, 2);
        let first = workspace.run("apply -o json").exits(0);
        assert!(!first.warning_codes().contains(&"W106_LOCAL_STATE_ONLY".to_owned()), "{}", first.stdout);
        let first = first.json();
        assert_eq!((&first["data"]["committed"], &first["data"]["state_serial"]), (&true.into(), &1.into()), "{first}");
        assert!(!workspace.path(".streamt/state").exists(), "no local state beside the remote one");
        workspace.run("plan --detailed-exitcode").exits(0);
        let again = workspace.run("apply -o json").exits(0).json();
        assert_eq!(again["data"]["state_serial"], 1);

        let status = workspace.run("state status -o json").exits(0).json();
        let data = &status["data"];
        assert_eq!((&data["state_serial"], &data["state_status"]), (&1.into(), &"present".into()), "{data}");
        assert_eq!(data["ordinary_state_authority"], "supported_for_v2_writer");
        assert_eq!(data["operation_status"]["status"], "clear");
        let lock = workspace.run("state lock-status -o json").exits(0).json();
        assert_eq!((&lock["data"]["lock_status"], &lock["data"]["reservation"]), (&"available".into(), &"none".into()));
        for line in ["plan -vvv", "state status -vvv", "state lock-status -vvv", "apply -vvv"] {
            let run = workspace.run(line).exits(0);
            for secret in ["w-s3ntinel", estate.schema.as_str(), estate.writer.as_str(), "admin-secret"] {
                assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{line}: {}", run.stderr);
            }
        }
    }
}

/// PGS-013 SAF-012: a session that is terminated inside an apply ends it with E423; the next command finds what is pending.
#[test]
fn an_apply_whose_session_is_terminated_stops_and_blocks_the_next_one() {
    for major in &majors() {
        let estate = Estate::new(major, 1200);
        estate.init();
        let workspace = &estate.workspace;
        let child = workspace.command("apply -o json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let status = || workspace.run("state status -o json").json()["data"]["operation_status"]["status"].clone();
        assert_eq!(eventually(status, |status| status == "in_progress"), "in_progress");
        let lock = workspace.run("state lock-status -o json").exits(0).json();
        assert_eq!(lock["data"]["lock_status"], "busy");
        estate.sql(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{}'",
            estate.writer
        ));
        let run = crate::harness::Run::of("apply", child.wait_with_output().unwrap()).exits(1);
        assert_eq!(run.errors()[0].0, "E423_STATE_LOCK_LOST", "{}", run.stdout);
        let status = workspace.run("state status -o json").exits(0).json();
        let operation = status["data"]["operation_status"]["operation_id"].as_str().unwrap().to_owned();
        assert!(run.stdout.contains(&operation), "{}", run.stdout);
        for command in ["plan", "apply"] {
            let next = workspace.run(&format!("{command} -o json")).exits(1);
            assert_eq!(next.errors()[0].0, "E419_STATE_RECOVERY_REQUIRED", "{}", next.stdout);
        }
    }
}

#[test]
fn a_lock_held_by_another_session_is_waited_for_and_then_e422() {
    for major in &majors() {
        let estate = Estate::new(major, 1);
        estate.init();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&estate.admin, NoTls).await.unwrap();
            tokio::spawn(connection);
            let statement =
                format!("SELECT pg_advisory_lock(advisory_lock_key) FROM {}.state_addresses", estate.schema);
            client.batch_execute(&statement).await.unwrap();
            client
        });
        let begun = Instant::now();
        let run = estate.workspace.run("apply -o json").exits(1);
        assert_eq!(run.errors()[0].0, "E422_STATE_LOCK_TIMEOUT", "{}", run.stdout);
        assert!(begun.elapsed() > Duration::from_millis(1500));
        assert!(!client.is_closed(), "nobody kills the holder");
        drop((client, runtime));
        estate.workspace.run("apply").exits(0);
    }
}
