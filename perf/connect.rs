//! The observation of many connectors against bare GETs of the same resources by as many requests at once, on a real worker. Both
//! run in this process, in turns, each round with a client of its own. Creates the connectors stopped, so that no task runs, and
//! deletes them.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use streamt::planner::connector::ConnectorName;
use streamt::project::model::ConnectRuntime;
use streamt::project::{DiskFs, EnvironmentInput, load};
use streamt::providers::{ConnectClient, Ctx, Purpose};
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::figures::{Bench, head, line, show};
use crate::timing::{self, Pairs};

const COUNT: usize = 200;
/// What an observation has in flight.
const AT_ONCE: usize = 8;
/// A worker that rebalances is asked again for so long.
const PATIENCE: Duration = Duration::from_secs(60);
const BUDGET: Duration = Duration::from_secs(120);

/// A worker, and who asks it.
#[derive(Clone, Copy)]
pub struct Worker<'a> {
    pub url: &'a str,
    pub user: &'a str,
    pub password: &'a str,
}

impl Bench {
    /// `servers`: the Kafka of the project whose plan is timed.
    pub fn connectors(&mut self, servers: &str, worker: Worker<'_>) -> Result<(), Failure> {
        // A bare client takes the process's own provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let prefix = format!("streamt-perf-{}-", std::process::id());
        let names: Vec<String> = (0..COUNT).map(|index| format!("{prefix}{index:04}")).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime
            .block_on(create(worker, &names))
            .and_then(|()| self.measure_connectors(&runtime, servers, worker, &names));
        let deleted = runtime.block_on(delete(worker, &names));
        outcome.and(deleted)
    }

    fn measure_connectors(
        &mut self,
        runtime: &tokio::runtime::Runtime,
        servers: &str,
        worker: Worker<'_>,
        names: &[String],
    ) -> Result<(), Failure> {
        let directory = self.scratch.join("connectors");
        write(&directory, servers, worker, names)?;
        let settings = settings(&directory, worker)?;
        let parsed: Option<Vec<ConnectorName>> = names.iter().map(|name| ConnectorName::new(name)).collect();
        let parsed = parsed.ok_or("a name that no connector can have")?;
        let mut walls = [Vec::new(), Vec::new()];
        for round in 0..=self.runs {
            for turn in 0..2 {
                let side = (turn + round) % 2;
                let start = Instant::now();
                let seen = match side {
                    0 => runtime.block_on(observe(&settings, &directory, &parsed))?,
                    _ => runtime.block_on(bare(worker, names))?,
                };
                let wall = start.elapsed();
                if seen != names.len() {
                    return Err(format!("{seen} of {} connectors were there", names.len()).into());
                }
                if round > 0 {
                    walls[side].push(wall);
                }
            }
        }
        let pairs = Pairs::of(walls);
        head(&format!("milliseconds, {COUNT} connectors at {}, {AT_ONCE} requests at once", worker.url));
        show("observation, every answer judged", "bare GETs, every body read", &pairs);
        let note = format!("pair by pair {:.2} to {:.2}", pairs.ratios.min(), pairs.ratios.max());
        let figure = format!("observation of {COUNT} connectors over bare GETs");
        self.table.at_most(figure, 1.5, "x", pairs.ratio_of_minima(), &note);
        let mut plan = self.on(&directory, &["plan"]);
        plan.variables = vec![("CONNECT_PASSWORD".to_owned(), worker.password.to_owned())];
        let took = timing::single(self.runs.div_ceil(2), &plan, || Ok(()))?;
        line(&format!("plan of {COUNT} connectors, the whole process"), &took);
        Ok(())
    }
}

/// A project that declares them all, as they are.
fn write(directory: &Path, servers: &str, worker: Worker<'_>, names: &[String]) -> Result<(), Failure> {
    let sinks: String = names
        .iter()
        .map(|name| {
            format!(
                "  - {{name: {name}, description: d, from: [{{source: orders}}], \
                 sink: {{connector: FileStreamSink, config: {{file: /dev/null, tasks.max: 1, note: {name}}}}}}}\n"
            )
        })
        .collect();
    let text = format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: perf}}
runtime:
  kafka: {{bootstrap_servers: \"{servers}\"}}
  connect: {{default: main, clusters: {{main: {{rest_url: \"{}\", username: \"{}\", password: \"${{CONNECT_PASSWORD}}\"}}}}}}
sources:
  - {{name: orders, topic: streamt-perf-orders}}
models:
{sinks}",
        worker.url, worker.user
    );
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("stream_project.yml"), text)?;
    Ok(())
}

fn settings(directory: &Path, worker: Worker<'_>) -> Result<ConnectRuntime, Failure> {
    let variables = [("CONNECT_PASSWORD".to_owned(), worker.password.to_owned())].into();
    let input = EnvironmentInput { variables, ..EnvironmentInput::default() };
    let project = load(&DiskFs::open(directory)?, &input).map_err(|errors| format!("{errors:?}"))?.project;
    project.runtime.connect.ok_or_else(|| "a project without a worker".into())
}

async fn observe(settings: &ConnectRuntime, root: &Path, names: &[ConnectorName]) -> Result<usize, Failure> {
    let client = ConnectClient::new(settings, root).map_err(|failure| failure.to_string())?;
    let ctx = Ctx::new(Purpose::Plan, BUDGET, CancellationToken::new());
    let seen = client.observe(&ctx, names).await.map_err(|failure| failure.to_string())?;
    Ok(seen.values().filter(|connector| connector.exists()).count())
}

async fn bare(worker: Worker<'_>, names: &[String]) -> Result<usize, Failure> {
    let client = Client::builder().build()?;
    let bodies: Vec<usize> = stream::iter(names)
        .map(|name| {
            let request = client
                .get(format!("{}/connectors/{name}", worker.url))
                .basic_auth(worker.user, Some(worker.password))
                .header("Accept", "application/json");
            async move {
                let answer = request.send().await?.error_for_status()?;
                Ok::<_, reqwest::Error>(answer.bytes().await?.len())
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(bodies.into_iter().filter(|length| *length > 0).count())
}

async fn create(worker: Worker<'_>, names: &[String]) -> Result<(), Failure> {
    for name in names {
        let config = json!({
            "connector.class": "FileStreamSink", "topics": "streamt-perf-orders", "file": "/dev/null", "tasks.max": "1",
            "note": name, "name": name,
        });
        let body = json!({"name": name, "config": config, "initial_state": "STOPPED"});
        settled(worker, Method::POST, "/connectors", Some(&body), &[StatusCode::CREATED]).await?;
    }
    Ok(())
}

async fn delete(worker: Worker<'_>, names: &[String]) -> Result<(), Failure> {
    for name in names {
        let path = format!("/connectors/{name}");
        settled(worker, Method::DELETE, &path, None, &[StatusCode::NO_CONTENT, StatusCode::NOT_FOUND]).await?;
    }
    Ok(())
}

/// One request, again while the workers rebalance.
async fn settled(
    worker: Worker<'_>,
    method: Method,
    path: &str,
    body: Option<&Value>,
    accepted: &[StatusCode],
) -> Result<(), Failure> {
    let client = Client::builder().build()?;
    let end = Instant::now() + PATIENCE;
    loop {
        let mut request = client
            .request(method.clone(), format!("{}{path}", worker.url))
            .basic_auth(worker.user, Some(worker.password))
            .header("Content-Type", "application/json");
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let status = request.send().await?.status();
        if accepted.contains(&status) {
            return Ok(());
        }
        let rebalances = matches!(status, StatusCode::CONFLICT | StatusCode::INTERNAL_SERVER_ERROR);
        if !rebalances || Instant::now() > end {
            return Err(format!("{method} {path}: {status}").into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
