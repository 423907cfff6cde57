//! A PostgreSQL server of a test's own, which may die.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::site::LONG;

pub struct Server {
    home: tempfile::TempDir,
    name: String,
    pub dsn: String,
    arguments: Vec<String>,
    libraries: String,
    owner: (u32, u32),
    again: Option<Child>,
}

impl Server {
    pub fn start(major: &str) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let name = format!("postgres-{major}");
        services(&home, &["up", &name]);
        let file =
            |what: &str| std::fs::read_to_string(home.path().join(&name).join(what)).expect(what).trim().to_owned();
        let process = PathBuf::from("/proc").join(file("pid"));
        let words = |what: &str| -> Vec<String> {
            let bytes = std::fs::read(process.join(what)).expect(what);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let libraries =
            words("environ").iter().find_map(|word| word.strip_prefix("LD_LIBRARY_PATH=").map(str::to_owned));
        let owner = std::fs::metadata(&process).expect("a process");
        Self {
            dsn: format!("postgresql://postgres:admin-secret@127.0.0.1:{}/postgres", file("port")),
            arguments: words("cmdline"),
            libraries: libraries.unwrap_or_default(),
            owner: (owner.uid(), owner.gid()),
            again: None,
            home,
            name,
        }
    }

    fn pid_file(&self) -> PathBuf {
        self.home.path().join(&self.name).join("pid")
    }

    /// Ends it: INT is a fast shutdown, QUIT an immediate one, KILL a crash.
    pub fn kill(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.pid_file()).expect("a pid");
        let sent = Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status();
        assert!(sent.expect("sent").success());
    }

    /// Starts it again on its port and its data, and waits until it answers.
    pub fn restart(&mut self) {
        if let Some(mut old) = self.again.take() {
            let _ = old.wait();
        }
        let deadline = std::time::Instant::now() + LONG;
        loop {
            // A server that is still going down, or whose processes outlive it for a moment, refuses.
            let mut command = Command::new(&self.arguments[0]);
            command.args(&self.arguments[1..]).env("LD_LIBRARY_PATH", &self.libraries).env("TZ", "UTC");
            command.uid(self.owner.0).gid(self.owner.1).current_dir("/");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut server = command.spawn().expect("started");
            while server.try_wait().expect("a child").is_none() {
                if answers(&self.dsn) {
                    std::fs::write(self.pid_file(), format!("{}\n", server.id())).expect("written");
                    self.again = Some(server);
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            assert!(std::time::Instant::now() < deadline, "the server does not start again");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn answers(dsn: &str) -> bool {
    crate::estate::blocking(async {
        let Ok((client, connection)) = tokio_postgres::connect(dsn, tokio_postgres::NoTls).await else { return false };
        let connection = tokio::spawn(connection);
        let answers = client.simple_query("SELECT 1").await.is_ok();
        drop(client);
        let _ = connection.await;
        answers
    })
}

fn services(home: &tempfile::TempDir, arguments: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/services/services");
    let output = Command::new(script).args(arguments).env("STREAMT_SERVICES_HOME", home.path()).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Drop for Server {
    fn drop(&mut self) {
        let reap = self.again.take().map(|mut again| std::thread::spawn(move || drop(again.wait())));
        services(&self.home, &["down", &self.name]);
        if let Some(reap) = reap {
            let _ = reap.join();
        }
    }
}
