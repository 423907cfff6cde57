//! What PostgreSQL state must never show: scans of everything that a user or a later reader can see, with a planted word that
//! the same scan has to find.

use crate::postgres::Estate;
use crate::support::majors;

/// Every place, with its text, where one of these words stands.
fn found<'a>(places: &'a [(String, String)], words: &[&str]) -> Vec<&'a str> {
    let holds = |text: &str| words.iter().any(|word| text.contains(word));
    places.iter().filter(|(_, text)| holds(text)).map(|(place, _)| place.as_str()).collect()
}

/// SEC-001 SEC-003 SEC-005 SEC-010 SEC-013 SEC-014
#[test]
fn no_credential_role_schema_or_endpoint_reaches_an_output_a_file_or_a_row() {
    for major in &majors() {
        let estate = Estate::new(major, 2);
        let workspace = &estate.workspace;
        let mut places = Vec::new();
        let mut see = |variables: &[(&str, &str)], line: &str| {
            for format in ["text", "json"] {
                let run = estate.run_with(variables, &format!("{line} -vvv -o {format}"));
                places.push((format!("stdout of {line}"), run.stdout));
                places.push((format!("stderr of {line}"), run.stderr));
            }
        };
        let init = estate.init_line(&format!("--writer-role {}", estate.writer)).replace(" -o json", "");
        let migrate = format!(
            "state migrate-postgres-v2 --confirm-store-id 2b1e8a5e-9e1a-4e49-9b39-3b9b0f0b7c11 --confirm-writer-role {}",
            estate.writer
        );
        see(&[], "state status");
        see(&[], &init);
        for line in
            ["plan --out p.json", "review p.json", "apply --plan p.json", "state status", "state lock-status", "plan"]
        {
            see(&[], line);
        }
        see(&[], &migrate);
        // What goes wrong is where secrets slip out.
        let wrong = estate.dsn(&estate.writer, "wrong-s3ntinel");
        let absent = estate.dsn("nobody-s3ntinel", "w-s3ntinel");
        let unreachable = format!("postgresql://{}:w-s3ntinel@127.0.0.1:1/postgres", estate.writer);
        for dsn in [&wrong, &absent, &unreachable, &format!("{wrong}?options=s3ntinel"), &estate.admin] {
            for line in ["plan", "apply"] {
                see(&[("WRITER_DSN", dsn)], line);
            }
            for line in ["state status", "state lock-status", &init] {
                see(&[("OWNER_DSN", dsn)], line);
            }
        }
        estate.sql(&format!("ALTER TABLE {}.current_state ADD extra text", estate.schema));
        for line in ["plan", "state status", &init] {
            see(&[], line);
        }
        estate.sql(&format!("ALTER TABLE {}.current_state DROP extra", estate.schema));
        see(&[], &format!("show model {}", estate.project));
        see(&[("STREAMT_FAILPOINT", "step.committed:1")], "apply");
        see(&[], "state recovery-plan --resolution abandoned_before_mutation --out r.json");
        see(&[], "review r.json");
        see(&[], "plan");

        // The project file names the schema, because its user wrote that there.
        for (path, bytes) in workspace.snapshot() {
            if !path.ends_with("stream_project.yml") {
                places.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        // The metadata row alone knows the writer role.
        places.extend(
            estate
                .rows()
                .into_iter()
                .filter(|row| !row.starts_with("store_metadata "))
                .map(|row| ("row".to_owned(), row)),
        );
        let port = estate.admin.rsplit_once(':').unwrap().1.split('/').next().unwrap();
        let endpoint = format!("127.0.0.1:{port}");
        let secrets = ["s3ntinel", "admin-secret", &estate.schema, &estate.writer, &endpoint, "pg_advisory", "SELECT "];
        assert_eq!(found(&places, &secrets), [""; 0]);

        let planted = found(&places, &[&estate.project]);
        for place in ["stdout of state status", "stderr of show model", "row"] {
            assert!(planted.iter().any(|seen| seen.starts_with(place)), "the scan does not see {place}: {planted:?}");
        }
        assert!(planted.iter().any(|place| place.ends_with("p.json")), "the scan does not see files: {planted:?}");
    }
}
