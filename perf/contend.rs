//! Eight addresses of one PostgreSQL store, applied side by side by processes of their own: whether they get into each other's way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_postgres::NoTls;

use crate::Failure;

const ADDRESSES: usize = 8;
const WRITER_PASSWORD: &str = "contend";

/// One environment of its own project, its state beside the others'.
struct Address {
    directory: PathBuf,
    project: String,
    owner: String,
    writer: String,
    schema: String,
    kafka: String,
}

impl Address {
    fn declare(&self, round: usize) -> std::io::Result<()> {
        let Self { project, schema, kafka, .. } = self;
        let retention = 86_400_000 + 60_000 * round;
        let yaml = format!(
            "apiVersion: streamt.dev/v1alpha1
project: {{name: {project}}}
runtime: {{kafka: {{bootstrap_servers: \"{kafka}\"}}}}
deployment_state:
  backend: postgres
  namespace: perf
  postgres: {{dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: {schema}}}
models:
  - {{name: m, description: d, topic: {{name: {project}.m, partitions: 1, replication_factor: 1, config: {{retention.ms: {retention}}}}}}}
"
        );
        std::fs::write(self.directory.join("stream_project.yml"), yaml)
    }

    fn run(&self, streamt: &Path, arguments: &[&str]) -> Result<Value, Failure> {
        let output = Command::new(streamt)
            .args(arguments)
            .args(["-o", "json"])
            .current_dir(&self.directory)
            .env("OWNER_DSN", &self.owner)
            .env("WRITER_DSN", &self.writer)
            .stdin(Stdio::null())
            .output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// `owner` = the connection of a role that may create roles and schemas.
pub fn run(streamt: &str, kafka: &str, owner: &str, rounds: usize) -> Result<(), Failure> {
    let streamt = std::fs::canonicalize(streamt)?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let (schema, role) = (format!("perf_{id}"), format!("perf_w_{id}"));
    let (_, endpoint) = owner.split_once('@').ok_or("the connection names no login")?;
    sql(owner, &format!("CREATE ROLE {role} LOGIN NOINHERIT PASSWORD '{WRITER_PASSWORD}'"))?;
    let scratch = std::env::temp_dir().join(format!("perf-{id}"));
    let made = (0..ADDRESSES)
        .map(|index| {
            let address = Address {
                directory: scratch.join(index.to_string()),
                project: format!("perf-{id}-{index}"),
                owner: owner.to_owned(),
                writer: format!("postgresql://{role}:{WRITER_PASSWORD}@{endpoint}"),
                schema: schema.clone(),
                kafka: kafka.to_owned(),
            };
            std::fs::create_dir_all(&address.directory)?;
            address.declare(0)?;
            let uri = format!("streamt-state://perf/{}/default", address.project);
            let confirmed =
                ["--confirm-project", &address.project, "--confirm-env", "default", "--confirm-address", &uri];
            address.run(&streamt, &[&["state", "init", "--writer-role", &role], confirmed.as_slice()].concat())?;
            Ok(address)
        })
        .collect::<Result<Vec<_>, Failure>>();
    let measured = made.and_then(|addresses| contend(&streamt, &addresses, rounds));
    let _ = std::fs::remove_dir_all(&scratch);
    sql(owner, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE; DROP OWNED BY {role}; DROP ROLE {role}"))?;
    crate::kafka::delete(kafka, &format!("perf-{id}-"))?;
    measured
}

fn contend(streamt: &Path, addresses: &[Address], rounds: usize) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut codes = std::collections::BTreeMap::<String, usize>::new();
    let mut slowest = Duration::ZERO;
    for round in 1..=rounds {
        let started = Instant::now();
        let outcomes = std::thread::scope(|scope| {
            let apply = |address: &Address| -> Result<String, String> {
                address.declare(round).map_err(|error| error.to_string())?;
                let told = address.run(streamt, &["apply"]).map_err(|error| error.to_string())?;
                let serial = &told["data"]["state_serial"];
                Ok(match told["errors"][0]["code"].as_str() {
                    Some(code) => code.to_owned(),
                    None if serial.as_u64() == Some(round as u64) => "committed".to_owned(),
                    None => format!("serial {serial} instead of {round}"),
                })
            };
            let applies: Vec<_> = addresses.iter().map(|address| scope.spawn(move || apply(address))).collect();
            applies.into_iter().map(|apply| apply.join().unwrap_or_else(|_| Err("a panic".into()))).collect::<Vec<_>>()
        });
        for outcome in outcomes {
            *codes.entry(outcome?).or_default() += 1;
        }
        slowest = slowest.max(started.elapsed());
    }
    println!("{ADDRESSES} addresses, {rounds} rounds in {:.1?}, the slowest {slowest:.1?}", begun.elapsed());
    for (code, count) in codes {
        println!("  {code}: {count}");
    }
    Ok(())
}

fn sql(owner: &str, statements: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(owner, NoTls).await?;
        let connection = tokio::spawn(connection);
        client.batch_execute(statements).await?;
        drop(client);
        let _ = connection.await;
        Ok(())
    })
}
