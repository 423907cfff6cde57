//! Eight addresses of one PostgreSQL store, applied side by side by processes of their own: whether they get into each other's way.
//! What a broker does not answer in time is recovered by the runbook and counted; it says nothing about the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Failure;
use crate::postgres::Store;

const ADDRESSES: usize = 8;
/// Applies and recoveries of one address until its change stands.
const PATIENCE: usize = 20;

/// One environment of its own project, its state beside the others'.
struct Address {
    directory: PathBuf,
    project: String,
    /// Where its state is, in the project file and in the environment.
    declaration: String,
    variables: Vec<(String, String)>,
    kafka: String,
    serial: AtomicU64,
}

impl Address {
    /// Applies one change until it stands; every other answer on the way, and whether the serial followed.
    fn apply(&self, streamt: &Path, round: usize) -> Result<Vec<String>, Failure> {
        self.declare(round)?;
        let mut answers = Vec::new();
        for attempt in 0..PATIENCE {
            let told = self.run(streamt, &["apply"])?;
            let data = &told["data"];
            match (told["errors"][0]["code"].as_str(), data["state_serial"].as_u64()) {
                (None, Some(serial)) => {
                    let before = self.serial.swap(serial, Ordering::SeqCst);
                    // A recovery on the way has its serial, too.
                    let follows = serial == before + 1 || (attempt > 0 && serial >= before);
                    answers.push(if follows { "committed".to_owned() } else { format!("{serial} after {before}") });
                    return Ok(answers);
                }
                (Some(code), _) => answers.push(code.to_owned()),
                (None, None) => answers.push("no serial".to_owned()),
            }
            std::thread::sleep(Duration::from_millis(500));
            self.recover(streamt, &format!("{round}-{attempt}.json"))?;
        }
        Err(format!("round {round} never stood: {answers:?}").into())
    }

    /// The runbook, as far as there is something to recover.
    fn recover(&self, streamt: &Path, file: &str) -> Result<(), Failure> {
        let told = self.run(streamt, &["state", "recovery-plan", "--resolution", "observed", "--out", file])?;
        let text = |key: &str| told["data"][key].as_str().unwrap_or_default().to_owned();
        let (operation, checksum) = (text("blocked_operation_id"), text("evidence_checksum"));
        if !checksum.is_empty() {
            let confirmed = ["--confirm-operation-id", &operation, "--confirm-evidence-checksum", &checksum];
            let recover = ["state", "recover", "--plan", file, "--confirm-resolution", "observed"];
            self.run(streamt, &[recover.as_slice(), confirmed.as_slice()].concat())?;
        }
        Ok(())
    }

    fn declare(&self, round: usize) -> std::io::Result<()> {
        let Self { project, declaration, kafka, .. } = self;
        let retention = 86_400_000 + 60_000 * round;
        let yaml = format!(
            "apiVersion: streamt.dev/v1alpha1
project: {{name: {project}}}
runtime: {{kafka: {{bootstrap_servers: \"{kafka}\"}}}}
{declaration}models:
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
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// `owner` = the connection of a role that may create roles and schemas.
pub fn run(streamt: &str, kafka: &str, owner: &str, rounds: usize) -> Result<(), Failure> {
    let streamt = std::fs::canonicalize(streamt)?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let store = Store::create(owner)?;
    let scratch = std::env::temp_dir().join(format!("perf-{id}"));
    let made = (0..ADDRESSES)
        .map(|index| {
            let address = Address {
                directory: scratch.join(index.to_string()),
                project: format!("perf-{id}-{index}"),
                declaration: store.declaration(),
                variables: store.variables(),
                kafka: kafka.to_owned(),
                serial: AtomicU64::new(0),
            };
            std::fs::create_dir_all(&address.directory)?;
            address.declare(0)?;
            let uri = format!("streamt-state://perf/{}/default", address.project);
            let confirmed =
                ["--confirm-project", &address.project, "--confirm-env", "default", "--confirm-address", &uri];
            address
                .run(&streamt, &[&["state", "init", "--writer-role", store.writer()], confirmed.as_slice()].concat())?;
            Ok(address)
        })
        .collect::<Result<Vec<_>, Failure>>();
    let measured = made.and_then(|addresses| contend(&streamt, &addresses, rounds));
    let _ = std::fs::remove_dir_all(&scratch);
    store.drop()?;
    crate::kafka::delete(kafka, &format!("perf-{id}-"))?;
    measured
}

fn contend(streamt: &Path, addresses: &[Address], rounds: usize) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut answers = BTreeMap::<String, usize>::new();
    for round in 1..=rounds {
        let applied = std::thread::scope(|scope| {
            let apply = |address: &Address| address.apply(streamt, round).map_err(|error| error.to_string());
            let applies: Vec<_> = addresses.iter().map(|address| scope.spawn(move || apply(address))).collect();
            applies.into_iter().map(|apply| apply.join().unwrap_or_else(|_| Err("a panic".into()))).collect::<Vec<_>>()
        });
        for answer in applied.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
            *answers.entry(answer).or_default() += 1;
        }
        if round % 10 == 0 || round == rounds {
            println!("{ADDRESSES} addresses, {round} rounds in {:.1?}: {answers:?}", begun.elapsed());
        }
    }
    Ok(())
}
