//! Servers that look right and are not: a streaming standby, a pooler in between, certificates that do not fit. Each test starts
//! what it needs from the programs of the running service of the same major, and stops it.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use tokio_postgres::NoTls;

use crate::postgres::Estate;
use crate::support::{eventually, majors, variable};

const UNAVAILABLE: &str = "E420_STATE_BACKEND_UNAVAILABLE";
/// A server refuses to run as root, and gives up rights that root has.
const NOBODY: u32 = 65534;

/// The first column of the first row.
fn ask(dsn: &str, query: &str) -> Result<String, String> {
    let run = async {
        let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.map_err(|error| format!("{error:?}"))?;
        let connection = tokio::spawn(connection);
        let rows = client.simple_query(query).await.map_err(|error| format!("{error:?}"));
        drop(client);
        let _ = connection.await;
        rows?
            .iter()
            .find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            })
            .ok_or_else(|| "no row".to_owned())
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory that a server's user owns and reaches.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let root = if is_root() { PathBuf::from("/var/tmp") } else { std::env::temp_dir() };
        let path = root.join(format!("streamt-test-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&path).unwrap();
        let place = Self(path);
        place.give(&place.0);
        place
    }

    fn give(&self, path: &Path) {
        if is_root() {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// A file that the server alone may read.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        self.give(&path);
        path
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process of a test's own, ended with it.
struct Running(Child);

impl Running {
    fn spawn(mut command: Command) -> Self {
        let log = || Stdio::null();
        Self(command.stdout(log()).stderr(log()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(self.0.id()).unwrap()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
        let _ = self.0.wait();
    }
}

struct Server {
    running: Option<Running>,
    files: PathBuf,
    port: u16,
    place: Place,
}

impl Server {
    /// A new primary of this major.
    fn new(major: &str) -> Self {
        let admin = variable(&format!("STREAMT_TEST_POSTGRES_{major}"));
        let data = ask(&admin, "SHOW data_directory").unwrap();
        let pid = std::fs::read_to_string(Path::new(&data).join("postmaster.pid")).unwrap();
        let program = std::fs::read_link(format!("/proc/{}/exe", pid.lines().next().unwrap())).unwrap();
        let files = program.parent().unwrap().parent().unwrap().to_owned();
        let place = Place::new();
        let password = place.write("password", "admin-secret\n");
        let mut initdb = Self::program(&place, &files, "initdb");
        initdb.args(["-U", "postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        initdb.arg(place.0.join("cluster")).arg(format!("--pwfile={}", password.display()));
        let made = initdb.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = Self { running: None, files, port: free_port(), place };
        server.start(&[]);
        server
    }

    fn program(place: &Place, files: &Path, name: &str) -> Command {
        let mut command = place.command(&files.join("bin").join(name));
        command.env("LD_LIBRARY_PATH", files.join("lib"));
        command
    }

    fn start(&mut self, settings: &[String]) {
        let mut command = Self::program(&self.place, &self.files, "postgres");
        command.arg("-D").arg(self.place.0.join("cluster")).args(["-p", &self.port.to_string()]);
        let own = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=16MB", "fsync=off"];
        for setting in own.into_iter().chain(settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        self.running = Some(Running::spawn(command));
        eventually(|| ask(&self.admin(), "SELECT 1"), Result::is_ok).expect("the server starts");
    }

    fn stop(&mut self) {
        self.running = None;
    }

    fn admin(&self) -> String {
        format!("postgresql://postgres:admin-secret@127.0.0.1:{}/postgres", self.port)
    }

    /// A standby that follows this server, made of a copy of its files while it does not run.
    fn standby(&mut self) -> Self {
        self.stop();
        let place = Place::new();
        let copied = Command::new("cp").arg("-a").arg(self.place.0.join("cluster")).arg(&place.0).status().unwrap();
        assert!(copied.success());
        place.write("cluster/standby.signal", "");
        let primary = format!("host=127.0.0.1 port={} user=postgres password=admin-secret", self.port);
        let settings = place.0.join("cluster/postgresql.auto.conf");
        let mut text = String::new();
        std::fs::File::open(&settings).unwrap().read_to_string(&mut text).unwrap();
        place.write("cluster/postgresql.auto.conf", &format!("{text}\nprimary_conninfo = '{primary}'\n"));
        self.start(&[]);
        let mut standby = Self { running: None, files: self.files.clone(), port: free_port(), place };
        standby.start(&[]);
        standby
    }
}

/// Refused by every command, and nothing is written.
fn every_command_refuses(estate: &Estate, variables: &[(&str, &str)], told: &str) {
    let files = estate.workspace.snapshot();
    let lines = [
        "plan --out p.json -o json".to_owned(),
        "apply -o json".to_owned(),
        "state recovery-plan --resolution observed --out r.json -o json".to_owned(),
        "state status -o json".to_owned(),
        "state lock-status -o json".to_owned(),
        estate.init_line(&format!("--writer-role {}", estate.writer)),
        format!(
            "state migrate-postgres-v2 --confirm-store-id 2b1e8a5e-9e1a-4e49-9b39-3b9b0f0b7c11 --confirm-writer-role {} -o json",
            estate.writer
        ),
    ];
    for line in &lines {
        let run = estate.run_with(variables, line).exits(1);
        assert_eq!(run.errors()[0].0, UNAVAILABLE, "{line}: {}", run.stdout);
        assert!(run.stdout.contains(told), "{line}: {told}: {}", run.stdout);
        for secret in [estate.schema.as_str(), estate.writer.as_str(), "w-s3ntinel", "admin-secret"] {
            assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{line}: {}", run.stdout);
        }
    }
    assert_eq!(estate.workspace.snapshot(), files);
}

/// PGS-010 LIM-023
#[test]
fn a_streaming_standby_is_refused_by_every_command() {
    for major in &majors() {
        let mut primary = Server::new(major);
        let standby = primary.standby();
        let estate = Estate::on(primary.admin(), 1);
        estate.init();
        estate.workspace.run("apply").exits(0);
        let serial = format!("SELECT max(state_serial) FROM {}.current_state", estate.schema);
        let follows = eventually(|| ask(&standby.admin(), &serial), |at| at.as_deref() == Ok("1"));
        assert_eq!(follows.as_deref(), Ok("1"), "the standby follows");
        let rows = estate.rows();
        let writer =
            estate.dsn(&estate.writer, "w-s3ntinel").replace(&primary.port.to_string(), &standby.port.to_string());
        let owner = standby.admin();
        every_command_refuses(&estate, &[("OWNER_DSN", &owner), ("WRITER_DSN", &writer)], "standby");
        assert_eq!(estate.rows(), rows);
        estate.workspace.run("plan --detailed-exitcode").exits(0);
    }
}

/// PGS-010 PGS-013 LIM-023: in both of its modes, although every statement would be answered.
#[test]
fn a_pooler_in_between_is_refused_by_every_command() {
    let program = PathBuf::from(variable("STREAMT_TEST_PGBOUNCER"));
    for major in &majors() {
        let estate = Estate::new(major, 1);
        estate.init();
        let rows = estate.rows();
        let server = estate.admin.rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned();
        for mode in ["session", "transaction"] {
            let (place, port) = (Place::new(), free_port());
            let users =
                place.write("users", &format!("\"postgres\" \"admin-secret\"\n\"{}\" \"w-s3ntinel\"\n", estate.writer));
            let settings = place.write(
                "settings",
                &format!(
                    "[databases]\n* = host=127.0.0.1 port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
                     unix_socket_dir =\nauth_type = md5\nauth_file = {}\npool_mode = {mode}\n\
                     ignore_startup_parameters = extra_float_digits, options\n",
                    users.display()
                ),
            );
            let mut command = place.command(&program);
            command.arg(settings);
            let _pooler = Running::spawn(command);
            let through = |dsn: &str| dsn.replace(&format!(":{server}/"), &format!(":{port}/"));
            let (owner, writer) = (through(&estate.admin), through(&estate.dsn(&estate.writer, "w-s3ntinel")));
            eventually(|| ask(&writer, "SELECT 1"), Result::is_ok).expect("the pooler answers");
            let variables = [("OWNER_DSN", owner.as_str()), ("WRITER_DSN", writer.as_str())];
            every_command_refuses(&estate, &variables, "another process answers");
        }
        assert_eq!(estate.rows(), rows);
        estate.workspace.run("apply").exits(0);
    }
}

/// A server's certificate for a name and a time, signed by a CA; PEM of both and the key.
struct Chain {
    ca: CertifiedIssuer<'static, KeyPair>,
}

impl Chain {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { ca: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn pem(&self) -> String {
        self.ca.pem()
    }

    /// The settings of a server that shows a certificate for these names.
    fn settings(&self, place: &Place, names: &[&str], last_year: i32) -> Vec<String> {
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(last_year, 1, 1));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.ca).unwrap();
        let (certificate, key) =
            (place.write("server.crt", &certificate.pem()), place.write("server.key", &key.serialize_pem()));
        vec![
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", certificate.display()),
            format!("ssl_key_file={}", key.display()),
        ]
    }
}

/// SEC-004: with a certificate that fits first, so that the refusals are those of the certificate.
#[test]
fn a_server_whose_certificate_does_not_fit_is_refused() {
    for major in &majors() {
        let (ours, other) = (Chain::new(), Chain::new());
        let mut server = Server::new(major);
        let estate = Estate::on(server.admin(), 1);
        estate.init();
        estate.workspace.write("ca.pem", &ours.pem());
        let verified = |dsn: &str| format!("{dsn}?sslmode=verify-full&sslrootcert=ca.pem");
        let owner = verified(&estate.admin).replace("@127.0.0.1", "@localhost");
        let writer = verified(&estate.dsn(&estate.writer, "w-s3ntinel")).replace("@127.0.0.1", "@localhost");
        let variables = [("OWNER_DSN", owner.as_str()), ("WRITER_DSN", writer.as_str())];
        for (case, chain, names, last_year) in [
            ("good", &ours, &["localhost"][..], 2060),
            ("expired", &ours, &["localhost"][..], 2021),
            ("another host", &ours, &["db.example.test"][..], 2060),
            ("another CA", &other, &["localhost"][..], 2060),
        ] {
            server.stop();
            let settings = chain.settings(&server.place, names, last_year);
            server.start(&settings);
            if case == "good" {
                for line in ["state status", "plan", "apply"] {
                    estate.run_with(&variables, line).exits(0);
                }
            } else {
                let rows = estate.rows();
                every_command_refuses(&estate, &variables, "TLS with its server failed");
                assert_eq!(estate.rows(), rows, "{case}");
            }
        }
    }
}
