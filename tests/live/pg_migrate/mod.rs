//! A version-1 store becomes a version-2 store, whole or not at all.

mod lost;
mod recover;

use std::process::Stdio;

use tokio_postgres::NoTls;

use crate::harness::Run;
use crate::postgres::Estate;
use crate::support::majors;

/// A store as an older streamt left it.
fn store_of_version_1(major: &str) -> (Estate, String) {
    let estate = Estate::new(major, 2);
    let made = estate.workspace.run(&estate.init_line("--schema-version 1")).exits(0).json();
    assert_eq!(made["data"]["ordinary_state_authority"], "disabled");
    let id = made["data"]["store_id"].as_str().unwrap().to_owned();
    (estate, id)
}

/// Takes version 2 back, as no command of the product can: a store of version 1 whose operations have happened.
fn back_to_version_1(estate: &Estate) {
    estate.sql(&to_version_1(&estate.schema, &estate.writer));
}

pub fn to_version_1(schema: &str, writer: &str) -> String {
    format!(
        "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {writer}; REVOKE ALL ON SCHEMA {schema} FROM {writer};
         ALTER TABLE {schema}.store_metadata DROP CONSTRAINT store_metadata_schema_version_check,
           DROP CONSTRAINT store_metadata_writer_role_name_check, DROP COLUMN writer_role_name;
         UPDATE {schema}.store_metadata SET schema_version = 1;
         ALTER TABLE {schema}.store_metadata ADD CONSTRAINT store_metadata_schema_version_check CHECK (schema_version = 1);
         DELETE FROM {schema}.schema_migrations WHERE schema_version = 2"
    )
}

fn line(id: &str, writer: &str) -> String {
    format!("state migrate-postgres-v2 --confirm-store-id {id} --confirm-writer-role {writer} -o json")
}

fn migrate(estate: &Estate, id: &str) -> Run {
    estate.workspace.run(&line(id, &estate.writer))
}

/// Rows that a migration must not touch.
fn carried(estate: &Estate) -> Vec<String> {
    let own = |row: &String| row.starts_with("store_metadata ") || row.starts_with("schema_migrations ");
    estate.rows().into_iter().filter(|row| !own(row)).collect()
}

fn refused(estate: &Estate, run: &Run, code: &str, told: &str) {
    let errors = run.errors();
    assert_eq!(errors[0].0, code, "{}", run.stdout);
    assert!(run.stdout.contains(told), "{told}: {}", run.stdout);
    for secret in [estate.schema.as_str(), estate.writer.as_str(), "admin-secret", "w-s3ntinel", "127.0.0.1"] {
        assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{secret}: {}", run.stdout);
    }
}

/// PGS-001 PGS-012: nothing serves before, everything after, and no older layout is accepted any more.
#[test]
fn a_store_of_version_1_is_migrated_and_serves_from_then_on() {
    for major in &majors() {
        let (estate, id) = store_of_version_1(major);
        let workspace = &estate.workspace;
        let status = workspace.run("state status -o json").exits(0).json();
        assert_eq!(
            (&status["data"]["schema_version"], &status["data"]["mutation_status"]),
            (&1.into(), &"disabled".into())
        );
        for command in ["plan", "apply"] {
            let run = workspace.run(&format!("{command} -o json")).exits(1);
            assert_eq!(run.errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE", "{}", run.stdout);
            assert!(run.stdout.contains("schema version 1 grants no writer anything"), "{}", run.stdout);
        }
        let shown = workspace.run("state status").exits(0).stdout;
        assert!(shown.contains(&id) && shown.contains("streamt state migrate-postgres-v2"), "{shown}");
        let before = carried(&estate);
        let run = migrate(&estate, &id).exits(0).json();
        let data = &run["data"];
        assert_eq!((&data["outcome"], &data["schema_version"]), (&"migrated".into(), &2.into()), "{run}");
        assert_eq!((&data["store_id"], &data["mutation_status"]), (&id.clone().into(), &"catalog_ready".into()));
        assert_eq!(data["ordinary_state_authority"], "supported_for_v2_writer");
        assert_eq!(carried(&estate), before);
        assert_eq!(migrate(&estate, &id).exits(0).json()["data"]["outcome"], "already_migrated");

        workspace.run("apply").exits(0);
        estate.settled("");
        let old = workspace.run(&estate.init_line("--schema-version 1")).exits(1);
        refused(&estate, &old, "E411_STATE_INVALID", "another version");
        let back = format!("UPDATE {}.store_metadata SET schema_version = 1", estate.schema);
        assert!(estate.try_sql(&back).is_err(), "the table itself refuses the older version");
    }
}

/// PGS-012: ownership, history and controls of several environments are the same rows before and after.
#[test]
fn what_operations_wrote_is_carried_over_row_by_row() {
    for major in &majors() {
        let estate = Estate::new(major, 3);
        estate.init();
        let workspace = &estate.workspace;
        workspace.run("apply").exits(0);
        estate.settled("");
        let yaml = std::fs::read_to_string(workspace.path("stream_project.yml")).unwrap();
        workspace.write("stream_project.yml", &yaml.replace("partitions: 1, repl", "partitions: 2, repl"));
        workspace.run("apply").exits(0);
        let id = workspace.run("state status -o json").json()["data"]["store_id"].as_str().unwrap().to_owned();
        back_to_version_1(&estate);
        let before = carried(&estate);
        assert!(before.iter().filter(|row| row.starts_with("state_history ")).count() == 2, "{before:#?}");
        assert!(before.len() > 15);
        migrate(&estate, &id).exits(0);
        assert_eq!(carried(&estate), before);
        estate.settled("");
        let status = workspace.run("state status -o json").exits(0).json();
        assert_eq!((&status["data"]["state_serial"], &status["data"]["schema_version"]), (&2.into(), &2.into()));
    }
}

/// PGS-008 PGS-009 PGS-011: one thing is wrong at a time, and nothing is written.
#[test]
fn a_migration_that_is_not_exactly_expected_changes_nothing() {
    for major in &majors() {
        let (estate, id) = store_of_version_1(major);
        let (schema, writer) = (&estate.schema, &estate.writer);
        let before = estate.rows();
        let other = format!("o_{}", &schema[2..]);
        estate.sql(&format!("CREATE ROLE {other} LOGIN NOINHERIT"));
        let name = |text: &str| text.replace("{S}", schema).replace("{W}", writer).replace("{O}", &other);
        let absent = uuid::Uuid::new_v4().to_string();
        for (line, code, told) in [
            (line(&absent, writer), "E411_STATE_INVALID", "not the one of --confirm-store-id"),
            (line(&id, "nobody_has_this_name"), "E420_STATE_BACKEND_UNAVAILABLE", "does not exist"),
            (line(&id, "postgres"), "E420_STATE_BACKEND_UNAVAILABLE", "writer role"),
        ] {
            let run = estate.workspace.run(&line).exits(1);
            refused(&estate, &run, code, told);
            assert_eq!(estate.rows(), before, "{line}");
        }
        for (alter, restore, code, told) in [
            ("GRANT {O} TO {W}", "REVOKE {O} FROM {W}", "E420_STATE_BACKEND_UNAVAILABLE", "member"),
            ("GRANT {W} TO {O}", "REVOKE {W} FROM {O}", "E420_STATE_BACKEND_UNAVAILABLE", "member"),
            ("ALTER ROLE {W} CREATEDB", "ALTER ROLE {W} NOCREATEDB", "E420_STATE_BACKEND_UNAVAILABLE", "must be"),
            ("ALTER ROLE {W} NOLOGIN", "ALTER ROLE {W} LOGIN", "E420_STATE_BACKEND_UNAVAILABLE", "must be"),
            (
                "ALTER DEFAULT PRIVILEGES FOR ROLE {W} GRANT SELECT ON TABLES TO {O}",
                "ALTER DEFAULT PRIVILEGES FOR ROLE {W} REVOKE SELECT ON TABLES FROM {O}",
                "E420_STATE_BACKEND_UNAVAILABLE",
                "default privileges",
            ),
            ("CREATE TABLE {S}.extra (a int)", "DROP TABLE {S}.extra", "E411_STATE_INVALID", "another object"),
            (
                "ALTER TABLE {S}.current_state ALTER COLUMN updated_at SET DEFAULT now()",
                "ALTER TABLE {S}.current_state ALTER COLUMN updated_at DROP DEFAULT",
                "E411_STATE_INVALID",
                "'current_state' differs",
            ),
            (
                "GRANT INSERT ON {S}.current_state TO {O}",
                "REVOKE INSERT ON {S}.current_state FROM {O}",
                "E420_STATE_BACKEND_UNAVAILABLE",
                "more rights",
            ),
        ] {
            estate.sql(&name(alter));
            refused(&estate, &migrate(&estate, &id).exits(1), code, told);
            estate.sql(&name(restore));
            assert_eq!(estate.rows(), before, "{alter}");
        }
        estate.sql(&format!("DROP OWNED BY {other}; DROP ROLE {other}"));
        // Neither the writer nor its variable helps, and a role that may only read is not the owner.
        let as_writer = estate.dsn(writer, "w-s3ntinel");
        let run = estate.run_with(&[("OWNER_DSN", &as_writer)], &line(&id, writer)).exits(1);
        refused(&estate, &run, "E420_STATE_BACKEND_UNAVAILABLE", "");
        assert_eq!(estate.rows(), before);
        migrate(&estate, &id).exits(0);
        let run = estate.workspace.run(&line(&id, "postgres")).exits(1);
        refused(&estate, &run, "E411_STATE_INVALID", "another writer role");
    }
}

/// SAF-030: an unfinished operation is ended by its own streamt, not by a migration.
#[test]
fn an_unfinished_operation_stops_a_migration_and_is_named() {
    for major in &majors() {
        let estate = Estate::new(major, 2);
        estate.init();
        let killed = estate.run_with(&[("STREAMT_FAILPOINT", "step.committed:2")], "apply");
        assert_eq!(killed.exit, -1, "{}", killed.stdout);
        let status = estate.workspace.run("state status -o json").exits(0).json();
        assert_eq!(status["data"]["operation_status"]["status"], "in_progress");
        let id = status["data"]["store_id"].as_str().unwrap().to_owned();
        back_to_version_1(&estate);
        let before = estate.rows();
        let run = migrate(&estate, &id).exits(1);
        refused(&estate, &run, "E419_STATE_RECOVERY_REQUIRED", "");
        let blocked = format!("streamt-state://tests/{}/default", estate.project);
        assert_eq!(run.json()["data"]["blocked_addresses"], serde_json::json!([blocked]), "{}", run.stdout);
        assert_eq!(estate.rows(), before);
    }
}

/// PGS-008: a row that does not follow from the others is found, wherever it lies.
#[test]
fn a_migration_proves_every_stored_row_first() {
    for major in &majors() {
        let estate = Estate::new(major, 2);
        estate.init();
        estate.workspace.run("apply").exits(0);
        estate.settled("");
        let yaml = std::fs::read_to_string(estate.workspace.path("stream_project.yml")).unwrap();
        estate.workspace.write("stream_project.yml", &yaml.replace("partitions: 1, repl", "partitions: 2, repl"));
        estate.workspace.run("apply").exits(0);
        let id = estate.workspace.run("state status -o json").json()["data"]["store_id"].as_str().unwrap().to_owned();
        back_to_version_1(&estate);
        let before = estate.rows();
        for table in ["operation_history", "state_history", "current_state", "operation_control", "state_addresses"] {
            estate.sql(&format!("CREATE TABLE {0}_{table} AS TABLE {0}.{table}", estate.schema));
        }
        let first = "(SELECT operation_id FROM {S}.state_history WHERE state_serial = 1)";
        for alter in [
            &format!(
                "UPDATE {{S}}.operation_history SET recorded_at = recorded_at + interval '1 second' WHERE operation_id = {first} AND event_index = 1"
            ),
            &format!(
                "UPDATE {{S}}.operation_history SET event_json = event_json || ' ' WHERE operation_id = {first} AND event_index = 1"
            ),
            &format!(
                "UPDATE {{S}}.operation_history SET event_json = replace(event_json, '\"succeeded\":true', '\"succeeded\":false') WHERE operation_id = {first}"
            ),
            &format!(
                "UPDATE {{S}}.operation_history SET event_json = replace(event_json, '{{\"action', '{{\"aa\":1,\"action') WHERE operation_id = {first} AND event_index = 1"
            ),
            &format!(
                "UPDATE {{S}}.operation_history SET control_checksum = 'sha256:' || repeat('0', 64) WHERE operation_id = {first} AND event_index = 0"
            ),
            &format!("DELETE FROM {{S}}.operation_history WHERE operation_id = {first} AND event_index = 1"),
            "UPDATE {S}.state_history SET recorded_at = recorded_at + interval '1 second' WHERE state_serial = 1",
            "UPDATE {S}.state_history SET state_checksum = 'sha256:' || repeat('0', 64) WHERE state_serial = 1",
            "UPDATE {S}.state_history SET change_json = '{\"removed\":[],\"set\":{}}' WHERE state_serial = 1",
            "DELETE FROM {S}.state_history WHERE state_serial = 1",
            "UPDATE {S}.current_state SET updated_at = updated_at + interval '1 second'",
            "UPDATE {S}.operation_control SET revision = 0",
        ] {
            estate.sql(&alter.replace("{S}", &estate.schema));
            let altered = estate.rows();
            assert_ne!(altered, before, "{alter}");
            refused(&estate, &migrate(&estate, &id).exits(1), "E411_STATE_INVALID", "");
            assert_eq!(estate.rows(), altered, "{alter}");
            let restore =
                ["current_state", "operation_control", "state_history", "operation_history", "state_addresses"]
                    .map(|table| format!("DELETE FROM {}.{table};", estate.schema))
                    .concat();
            let fill = ["state_addresses", "operation_history", "operation_control", "state_history", "current_state"]
                .map(|table| format!("INSERT INTO {0}.{table} TABLE {0}_{table};", estate.schema))
                .concat();
            estate.sql(&format!("{restore}{fill}"));
            assert_eq!(estate.rows(), before, "{alter}");
        }
        migrate(&estate, &id).exits(0);
        for table in ["operation_history", "state_history", "current_state", "operation_control", "state_addresses"] {
            estate.sql(&format!("DROP TABLE {}_{table}", estate.schema));
        }
    }
}

/// SAF-027: an environment whose lock is held keeps the store as it is.
#[test]
fn a_migration_waits_for_every_address_and_then_gives_up() {
    for major in &majors() {
        let (estate, id) = store_of_version_1(major);
        let before = estate.rows();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let holder = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&estate.admin, NoTls).await.unwrap();
            tokio::spawn(connection);
            let lock = format!("SELECT pg_advisory_lock(advisory_lock_key) FROM {}.state_addresses", estate.schema);
            client.batch_execute(&lock).await.unwrap();
            client
        });
        refused(&estate, &migrate(&estate, &id).exits(1), "E422_STATE_LOCK_TIMEOUT", "");
        assert_eq!(estate.rows(), before);
        drop((holder, runtime));
        migrate(&estate, &id).exits(0);
        let locks = format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) IN \
             (SELECT advisory_lock_key FROM {}.state_addresses)",
            estate.schema
        );
        assert_eq!(estate.ask(&locks), ["0"]);
    }
}

/// SAF-027: killed before or after its COMMIT, a migration is finished by running it again.
#[test]
fn a_killed_migration_left_all_of_it_or_nothing() {
    for major in &majors() {
        for (point, outcome) in [("migrate.written", "migrated"), ("migrate.committed", "already_migrated")] {
            let (estate, id) = store_of_version_1(major);
            let before = estate.rows();
            let killed = estate.run_with(&[("STREAMT_FAILPOINT", point)], &line(&id, &estate.writer));
            assert_eq!(killed.exit, -1, "{}", killed.stdout);
            assert_eq!(estate.rows() == before, outcome == "migrated", "{point}");
            // The server lets go of the dead client's locks by itself.
            let run = migrate(&estate, &id).exits(0);
            assert_eq!(run.json()["data"]["outcome"], outcome, "{point}");
            estate.workspace.run("apply").exits(0);
        }
    }
}

#[test]
fn two_migrations_at_once_are_one_migration() {
    for major in &majors() {
        let (estate, id) = store_of_version_1(major);
        let start = || {
            let mut command = estate.workspace.command(&line(&id, &estate.writer));
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut outcomes: Vec<String> = [start(), start()]
            .map(|child| Run::of("migrate", child.wait_with_output().unwrap()).exits(0).json())
            .iter()
            .map(|run| run["data"]["outcome"].as_str().unwrap().to_owned())
            .collect();
        outcomes.sort();
        assert_eq!(outcomes, ["already_migrated", "migrated"]);
    }
}
