//! Nothing of the database reaches an output or a file: a scan for what is known here.

use super::site::{Site, code, on_each_major};
use crate::harness::Run;

/// What no output and no file may hold, with its name for the failure.
fn sentinels(site: &Site) -> Vec<(&'static str, String)> {
    let key = site.sql("SELECT advisory_lock_key FROM {schema}.state_addresses").remove(0).remove(0);
    let server = site.sql("SELECT inet_server_port()").remove(0).remove(0);
    vec![
        ("writer's password", "w-s3ntinel".to_owned()),
        ("owner's password", "admin-secret".to_owned()),
        ("schema", site.database.schema().to_owned()),
        ("role", site.database.writer().to_owned()),
        ("lock key", key),
        ("address", site.db.address().to_owned()),
        ("server's port", format!(":{server}")),
        ("DSN", "postgresql://".to_owned()),
    ]
}

struct Scan {
    sentinels: Vec<(&'static str, String)>,
    read: usize,
}

impl Scan {
    #[track_caller]
    fn text(&mut self, line: &str, text: &str) {
        self.read += text.len();
        for (name, value) in &self.sentinels {
            assert!(!text.contains(value.as_str()), "{line}: {name}: {text}");
        }
    }

    #[track_caller]
    fn run(&mut self, site: &Site, line: &str, exit: i32, dsn: Option<&str>) -> Run {
        let mut last = None;
        for format in ["text", "json"] {
            let line = format!("{line} -vvv -o {format}");
            let mut command = site.workspace.command(&line);
            if let Some(dsn) = dsn {
                command.env("WRITER_DSN", dsn).env("OWNER_DSN", dsn);
            }
            let run = Run::of(&line, command.output().expect("runs"));
            self.text(&line, &run.stdout);
            self.text(&line, &run.stderr);
            last = Some(run.exits(exit));
        }
        last.expect("two formats")
    }
}

/// SEC-005 SEC-001 PGS-018
#[test]
fn no_output_and_no_file_names_anything_of_the_database() {
    on_each_major(|admin| {
        let site = Site::new(admin, 2);
        let mut scan = Scan { sentinels: sentinels(&site), read: 0 };
        for line in ["validate", "compile", "plan --out plan.json", "review plan.json", "apply --plan plan.json"] {
            // The second apply of a reviewed plan is refused, and is scanned as well.
            let exit = i32::from(line.starts_with("apply"));
            if exit == 1 {
                let run = site.workspace.run("apply --plan plan.json -vvv").exits(0);
                scan.text("first apply", &format!("{}{}", run.stdout, run.stderr));
            }
            scan.run(&site, line, exit, None);
        }
        for line in
            ["plan", "apply", "state status", "state lock-status", "status", "diff", "envs list", "show model m0"]
        {
            scan.run(&site, line, 0, None);
        }

        let refused = |scan: &mut Scan, case: &str, wanted: &str, dsn: Option<&str>| {
            for line in ["plan", "apply", "state status", "state lock-status"] {
                let run = scan.run(&site, line, 1, dsn);
                assert_eq!(code(&run), wanted, "{case}, {line}: {}", run.stdout);
            }
        };
        let refused_writer = |scan: &mut Scan, case: &str| {
            for line in ["plan", "apply"] {
                let run = scan.run(&site, line, 1, None);
                assert_eq!(code(&run), "E420_STATE_BACKEND_UNAVAILABLE", "{case}, {line}: {}", run.stdout);
            }
        };
        let real = site.db.dsn(&format!("postgresql://{}:w-s3ntinel@h/postgres", site.database.writer()));
        let unavailable = "E420_STATE_BACKEND_UNAVAILABLE";
        refused(&mut scan, "wrong password", unavailable, Some(&real.replace("w-s3ntinel", "w-s3ntinel-wrong")));
        refused(&mut scan, "no DSN", unavailable, Some("w-s3ntinel is no DSN"));
        let nowhere = format!("postgresql://{}:w-s3ntinel@127.0.0.1:1/postgres", site.database.writer());
        refused(&mut scan, "nobody there", unavailable, Some(&nowhere));
        site.sql("CREATE TABLE {schema}.extra (a int)");
        refused_writer(&mut scan, "a catalog of another form");
        site.sql("DROP TABLE {schema}.extra; ALTER ROLE {writer} CREATEDB");
        refused_writer(&mut scan, "a role with other rights");
        site.sql("ALTER ROLE {writer} NOCREATEDB");
        site.db.refuse();
        refused_writer(&mut scan, "a server that closes");
        site.db.restore();
        scan.run(&site, "plan", 0, None);

        for (path, bytes) in site.workspace.snapshot() {
            // The project's own file names the schema: its user wrote it there.
            if !path.ends_with("stream_project.yml") {
                scan.text(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
            }
        }
        assert!(scan.read > 20_000, "the scan saw little: {}", scan.read);
    });
}
