//! A project of one test: its directory, its names at the services, and the calls of the embedding API.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use streamt::actors::{Runtime, read_state};
use streamt::codes::{Code, Diagnostics};
use streamt::compiler::{Compiled, compile};
use streamt::messages::operation::{
    ApplyEnd, ApplyOutcome, ApplyRequest, ApplySource, Control, Failure, Observer, OperationEvent, PlanOutcome,
    PlanRequest, SelectionText,
};
use streamt::planner::observation::TopicObservation;
use streamt::project::model::DeploymentState;
use streamt::project::{DiskFs, EnvironmentInput, load};
use streamt::providers::kafka::ConfigRead;
use streamt::providers::{Ctx, KafkaClient, Purpose};
use streamt::state::store::Snapshot;
use tokio_util::sync::CancellationToken;

/// The address of a service, or a failure that says how to get one.
pub fn service(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run `make test`, or start the services with `make services` and export its lines")
    })
}

pub struct Estate {
    directory: tempfile::TempDir,
    prefix: String,
    registry: String,
    lock_timeout: u32,
}

impl Estate {
    pub fn new(stem: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let prefix = format!("live-{stem}-{now:x}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory, prefix, registry: service("STREAMT_TEST_REGISTRY"), lock_timeout: 1 }
    }

    /// Another address for the registry, for a proxy in between.
    pub fn through(mut self, registry: String) -> Self {
        self.registry = registry;
        self
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// The physical name of a topic.
    pub fn topic(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    pub fn subject(&self, name: &str) -> String {
        format!("{}-value", self.topic(name))
    }

    /// Writes the project: one model per entry, its topic block and what follows in YAML.
    pub fn declare(&self, models: &[(&str, &str)]) -> &Self {
        let mut text = format!(
            "apiVersion: streamt.dev/v1alpha1\nproject:\n  name: live\nruntime:\n  kafka:\n    bootstrap_servers: {}\n  schema_registry:\n    url: {}\nmodels:\n",
            service("STREAMT_TEST_KAFKA"),
            self.registry
        );
        for (name, block) in models {
            let topic = self.topic(name);
            text.push_str(&format!("  - name: {name}\n    description: test\n    topic:\n      name: {topic}\n"));
            for line in block.lines() {
                text.push_str(&format!("    {line}\n"));
            }
        }
        std::fs::write(self.root().join("stream_project.yml"), text).expect("written");
        self
    }

    pub fn compiled(&self) -> Result<Arc<Compiled>, Diagnostics> {
        let fs = DiskFs::open(self.root()).expect("the directory");
        let mut project = load(&fs, &EnvironmentInput::default())?.project;
        project.deployment_state = DeploymentState::Local { lock_timeout: self.lock_timeout };
        compile(Arc::new(project)).map(Arc::new)
    }

    fn ready(&self) -> Arc<Compiled> {
        self.compiled().unwrap_or_else(|errors| panic!("{:#?}", errors.into_vec()))
    }

    pub fn plan(&self, runtime: &Runtime) -> Result<PlanOutcome, Failure> {
        runtime.plan_blocking(PlanRequest { compiled: self.ready(), save: None }, Control::default())
    }

    pub fn save(&self, runtime: &Runtime, path: &Path) -> Result<PlanOutcome, Failure> {
        runtime.plan_blocking(PlanRequest { compiled: self.ready(), save: Some(path.to_owned()) }, Control::default())
    }

    pub fn request(&self, source: ApplySource) -> ApplyRequest {
        ApplyRequest { compiled: self.ready(), source, force: false, dry_run: false, actor: "local-cli".to_owned() }
    }

    pub fn direct(&self) -> ApplyRequest {
        self.request(ApplySource::Direct { selection: SelectionText::default() })
    }

    pub fn apply(&self, runtime: &Runtime) -> ApplyOutcome {
        runtime.apply_blocking(self.direct(), Control::default())
    }

    /// An apply whose events are kept; `act` hears each of them while the operation waits.
    pub fn apply_watched(
        &self,
        runtime: &Runtime,
        control: Control,
        act: impl Fn(&OperationEvent) + Send + Sync + 'static,
    ) -> (ApplyOutcome, Vec<OperationEvent>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&heard);
        let observer: Observer = Arc::new(move |event| {
            keep.lock().expect("whole").push(event.clone());
            act(event);
        });
        let outcome = runtime.apply_blocking(self.direct(), Control { observer, ..control });
        let events = std::mem::take(&mut *heard.lock().expect("whole"));
        (outcome, events)
    }

    pub fn state(&self) -> Snapshot {
        read_state(&self.ready().project).expect("readable state")
    }

    /// Live topics by their short names; absent ones are left out.
    pub fn live(&self, names: &[&str]) -> BTreeMap<String, TopicObservation> {
        let physical: Vec<String> = names.iter().map(|name| self.topic(name)).collect();
        let seen = with_kafka(async |kafka, ctx| {
            kafka.observe_topics(ctx, &physical, ConfigRead::Strict).await.expect("topics")
        });
        let short = |name: &str| name.strip_prefix(&format!("{}.", self.prefix)).unwrap_or(name).to_owned();
        seen.into_iter().filter(|(_, topic)| topic.exists).map(|(name, topic)| (short(&name), topic)).collect()
    }
}

impl Drop for Estate {
    fn drop(&mut self) {
        let prefix = format!("{}.", self.prefix);
        blocking(async move {
            let Ok(kafka) = krafka::Kafka::builder(service("STREAMT_TEST_KAFKA")).connect().await else { return };
            let admin = kafka.admin();
            let Ok(names) = admin.list_topics(Default::default()).await else { return };
            let mine: Vec<String> =
                names.into_iter().map(|topic| topic.to_string()).filter(|name| name.starts_with(&prefix)).collect();
            let _ = admin.delete_topics(mine, Default::default()).await;
        });
    }
}

/// Runs a future on a thread of its own, whatever the caller runs on.
pub fn blocking<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let run =
            || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work);
        scope.spawn(run).join().expect("no panic")
    })
}

/// A client of the tests' own beside the one under test.
pub fn with_kafka<T: Send>(work: impl AsyncFnOnce(&KafkaClient, &Ctx) -> T + Send) -> T {
    let servers = service("STREAMT_TEST_KAFKA");
    std::thread::scope(|scope| {
        let run = || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
                let ctx = Ctx::new(Purpose::Test, Duration::from_secs(30), CancellationToken::new());
                let runtime = streamt::project::model::KafkaRuntime::plain(servers);
                let kafka = KafkaClient::connect(&runtime, Path::new("/"), &ctx).await.expect("Kafka answers");
                work(&kafka, &ctx).await
            })
        };
        scope.spawn(run).join().expect("no panic")
    })
}

/// The code of the first error of an apply that failed.
pub fn failed(outcome: &ApplyOutcome) -> Code {
    match &outcome.end {
        ApplyEnd::Failed(errors) => errors.iter().next().expect("an error").code,
        ApplyEnd::Blocked(error) | ApplyEnd::Interrupted(_, error) => error.code,
        ApplyEnd::Stale(stale) => stale.diagnostic().code,
        ApplyEnd::Committed | ApplyEnd::DryRun => panic!("not failed: {outcome:#?}"),
    }
}

pub fn refused(failure: &Failure) -> Code {
    failure.diagnostics.iter().next().expect("an error").code
}

/// An HTTP proxy in front of the registry. It shows every request that changes something to `before`, which runs before the
/// first byte of it is passed on and may hold it.
pub struct Proxy {
    pub url: String,
    changes: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub fn start(before: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let upstream = service("STREAMT_TEST_REGISTRY");
        let rest = upstream.strip_prefix("http://").expect("plain http").to_owned();
        let (host, path) =
            rest.split_once('/').map_or((rest.clone(), String::new()), |(h, p)| (h.to_owned(), format!("/{p}")));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}{path}", listener.local_addr().expect("an address"));
        let changes = Arc::new(Mutex::new(Vec::new()));
        let (kept, before) = (Arc::clone(&changes), Arc::new(before));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (host, kept, before) = (host.clone(), Arc::clone(&kept), Arc::clone(&before));
                std::thread::spawn(move || serve(client, &host, &kept, before.as_ref()));
            }
        });
        Self { url, changes }
    }

    /// Request lines of what changed something, in order.
    pub fn changes(&self) -> Vec<String> {
        self.changes.lock().expect("whole").clone()
    }
}

fn changes_something(line: &str) -> bool {
    let read = line.contains("/compatibility/");
    (line.starts_with("POST ") && line.contains("/versions") && !read)
        || line.starts_with("PUT ")
        || line.starts_with("DELETE ")
}

fn serve(mut client: TcpStream, host: &str, kept: &Mutex<Vec<String>>, before: &(dyn Fn(&str) + Send + Sync)) {
    let Ok(mut server) = TcpStream::connect(host) else { return };
    let (Ok(mut back), Ok(mut answers)) = (client.try_clone(), server.try_clone()) else { return };
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut chunk = vec![0; 65536];
    while let Ok(length) = client.read(&mut chunk) {
        if length == 0 {
            break;
        }
        let head = String::from_utf8_lossy(&chunk[..length.min(512)]).into_owned();
        let line = head.lines().next().unwrap_or_default();
        if changes_something(line) {
            kept.lock().expect("whole").push(line.to_owned());
            before(line);
        }
        if server.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    // A server may drop a request whose sender is gone; here it is still carried out.
    std::thread::sleep(Duration::from_secs(2));
    let _ = server.shutdown(Shutdown::Write);
}
