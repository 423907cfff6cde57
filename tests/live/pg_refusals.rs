//! What is refused before any authority, by the built program: one thing is wrong at a time, every command says so with its
//! code, and nothing is written anywhere.

use crate::postgres::Estate;
use crate::support::{majors, on_each_major};

const CATALOG: &str = "E411_STATE_INVALID";
const UNAVAILABLE: &str = "E420_STATE_BACKEND_UNAVAILABLE";

/// Every command in its turn: ordinary ones say E420, and administrative ones `administrative`.
fn every_command_refuses(case: &str, estate: &Estate, administrative: &str, variables: &[(&str, &str)]) {
    let store = "2b1e8a5e-9e1a-4e49-9b39-3b9b0f0b7c11";
    let writer = &estate.writer;
    let lines = [
        ("plan --out p.json -o json".to_owned(), UNAVAILABLE),
        ("apply -o json".to_owned(), UNAVAILABLE),
        ("state recovery-plan --resolution observed --out r.json -o json".to_owned(), UNAVAILABLE),
        ("state status -o json".to_owned(), administrative),
        ("state lock-status -o json".to_owned(), administrative),
        (estate.init_line(""), administrative),
        (
            format!("state migrate-postgres-v2 --confirm-store-id {store} --confirm-writer-role {writer} -o json"),
            administrative,
        ),
    ];
    let (rows, files) = (estate.rows(), estate.workspace.snapshot());
    std::thread::scope(|scope| {
        for (line, code) in &lines {
            scope.spawn(move || {
                let run = estate.run_with(variables, line);
                assert_eq!((run.exit, run.errors()[0].0.as_str()), (1, *code), "{case}: {line}: {}", run.stdout);
                for secret in [estate.schema.as_str(), writer, "w-s3ntinel", "admin-secret"] {
                    assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{case}: {}", run.stdout);
                }
            });
        }
    });
    assert!(estate.rows() == rows && estate.workspace.snapshot() == files, "{case}: something was written");
}

/// PGS-008 PGS-011 REC-071
#[test]
fn one_altered_object_is_refused_by_every_command() {
    on_each_major(|major| {
        let estate = Estate::new(major, 1);
        estate.init();
        estate.workspace.run("apply").exits(0);
        let newest = major.parse::<u32>().unwrap() >= 18;
        for (kind, alter, restore) in [
            ("table", "CREATE TABLE {S}.extra (a int)", "DROP TABLE {S}.extra"),
            (
                "function",
                "CREATE FUNCTION {S}.extra() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                "DROP FUNCTION {S}.extra()",
            ),
            ("type", "CREATE TYPE {S}.extra AS ENUM ('a')", "DROP TYPE {S}.extra"),
            ("index", "CREATE INDEX extra ON {S}.operation_history (event_kind)", "DROP INDEX {S}.extra"),
            ("column", "ALTER TABLE {S}.current_state ADD extra text", "ALTER TABLE {S}.current_state DROP extra"),
            (
                "type of a column",
                "ALTER TABLE {S}.operation_control ALTER status TYPE varchar(99)",
                "ALTER TABLE {S}.operation_control ALTER status TYPE text",
            ),
            (
                "default",
                "ALTER TABLE {S}.current_state ALTER updated_at SET DEFAULT now()",
                "ALTER TABLE {S}.current_state ALTER updated_at DROP DEFAULT",
            ),
            (
                "nullability",
                "ALTER TABLE {S}.operation_control ALTER status DROP NOT NULL",
                "ALTER TABLE {S}.operation_control ALTER status SET NOT NULL",
            ),
            (
                "collation",
                "ALTER TABLE {S}.state_history ALTER change_json TYPE text COLLATE \"C\"",
                "ALTER TABLE {S}.state_history ALTER change_json TYPE text",
            ),
            (
                "check",
                "ALTER TABLE {S}.state_history DROP CONSTRAINT state_history_serial_check, \
                 ADD CONSTRAINT state_history_serial_check CHECK (state_serial >= 0)",
                "ALTER TABLE {S}.state_history DROP CONSTRAINT state_history_serial_check, \
                 ADD CONSTRAINT state_history_serial_check CHECK (state_serial >= 1)",
            ),
            (
                "missing check",
                "ALTER TABLE {S}.operation_history DROP CONSTRAINT operation_history_size_check",
                "ALTER TABLE {S}.operation_history ADD CONSTRAINT operation_history_size_check CHECK (octet_length(event_json) <= 10485760)",
            ),
            (
                "check that is not validated",
                "ALTER TABLE {S}.state_history DROP CONSTRAINT state_history_serial_check, \
                 ADD CONSTRAINT state_history_serial_check CHECK (state_serial >= 1) NOT VALID",
                "ALTER TABLE {S}.state_history VALIDATE CONSTRAINT state_history_serial_check",
            ),
            (
                "foreign key",
                "ALTER TABLE {S}.operation_control DROP CONSTRAINT operation_control_address_fkey, ADD CONSTRAINT \
                 operation_control_address_fkey FOREIGN KEY (namespace, project, environment) REFERENCES {S}.state_addresses \
                 (namespace, project, environment) ON DELETE CASCADE",
                "ALTER TABLE {S}.operation_control DROP CONSTRAINT operation_control_address_fkey, ADD CONSTRAINT \
                 operation_control_address_fkey FOREIGN KEY (namespace, project, environment) REFERENCES {S}.state_addresses \
                 (namespace, project, environment) ON DELETE RESTRICT",
            ),
            (
                "unique",
                "ALTER TABLE {S}.state_history DROP CONSTRAINT state_history_operation_id_key",
                "ALTER TABLE {S}.state_history ADD CONSTRAINT state_history_operation_id_key UNIQUE (namespace, project, environment, operation_id)",
            ),
            (
                "trigger",
                "CREATE TRIGGER extra BEFORE UPDATE ON {S}.current_state FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
                "DROP TRIGGER extra ON {S}.current_state",
            ),
            (
                "disabled foreign key",
                "ALTER TABLE {S}.operation_control DISABLE TRIGGER ALL",
                "ALTER TABLE {S}.operation_control ENABLE TRIGGER ALL",
            ),
            (
                "rule",
                "CREATE RULE extra AS ON DELETE TO {S}.current_state DO INSTEAD NOTHING",
                "DROP RULE extra ON {S}.current_state",
            ),
            (
                "row security",
                "ALTER TABLE {S}.current_state ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE {S}.current_state DISABLE ROW LEVEL SECURITY",
            ),
            ("unlogged", "ALTER TABLE {S}.current_state SET UNLOGGED", "ALTER TABLE {S}.current_state SET LOGGED"),
            ("owner", "ALTER TABLE {S}.current_state OWNER TO {W}", "ALTER TABLE {S}.current_state OWNER TO postgres"),
            (
                "ledger",
                "UPDATE {S}.schema_migrations SET migration_checksum = 'sha256:' || repeat('0', 64) WHERE schema_version = 2",
                "UPDATE {S}.schema_migrations SET migration_checksum = \
                 'sha256:2d1598933e7a12c26a6ee57eec2dd0dabcca9e14a50493e5c257a28204cb0c51' WHERE schema_version = 2",
            ),
            (
                "a later version",
                "INSERT INTO {S}.schema_migrations VALUES (3, 'later', 'sha256:' || repeat('0', 64), now())",
                "DELETE FROM {S}.schema_migrations WHERE schema_version = 3",
            ),
            (
                "a check that is not enforced",
                "ALTER TABLE {S}.state_history DROP CONSTRAINT state_history_serial_check, \
                 ADD CONSTRAINT state_history_serial_check CHECK (state_serial >= 1) NOT ENFORCED",
                "ALTER TABLE {S}.state_history DROP CONSTRAINT state_history_serial_check, \
                 ADD CONSTRAINT state_history_serial_check CHECK (state_serial >= 1)",
            ),
        ] {
            if kind == "a check that is not enforced" && !newest {
                continue;
            }
            let name = |text: &str| text.replace("{S}", &estate.schema).replace("{W}", &estate.writer);
            estate.sql(&name(alter));
            every_command_refuses(kind, &estate, CATALOG, &[]);
            estate.sql(&name(restore));
            if kind == "owner" {
                // A table that changed hands twice has the rights of both.
                estate.sql(&name("GRANT SELECT, INSERT (namespace, project, environment, state_serial, state_checksum, state_json, updated_at), \
                    UPDATE (state_serial, state_checksum, state_json, updated_at) ON {S}.current_state TO {W}"));
            }
            estate.workspace.run("plan").exits(0);
        }
    });
}

/// PGS-007 PGS-009 PGS-011 PGS-012
#[test]
fn a_right_or_a_role_that_is_not_the_contracts_is_refused_by_every_command() {
    on_each_major(|major| {
        let estate = Estate::new(major, 1);
        estate.init();
        let other = format!("o_{}", &estate.schema[2..]);
        estate.sql(&format!("CREATE ROLE {other} LOGIN NOINHERIT PASSWORD 'w-s3ntinel'"));
        let name =
            |text: &str| text.replace("{S}", &estate.schema).replace("{W}", &estate.writer).replace("{O}", &other);
        for (alter, restore) in [
            ("GRANT DELETE ON {S}.operation_history TO {W}", "REVOKE DELETE ON {S}.operation_history FROM {W}"),
            (
                "GRANT UPDATE (namespace) ON {S}.current_state TO {W}",
                "REVOKE UPDATE (namespace) ON {S}.current_state FROM {W}",
            ),
            ("GRANT CREATE ON SCHEMA {S} TO {W}", "REVOKE CREATE ON SCHEMA {S} FROM {W}"),
            (
                "GRANT SELECT ON {S}.current_state TO {W} WITH GRANT OPTION",
                "REVOKE GRANT OPTION FOR SELECT ON {S}.current_state FROM {W}",
            ),
            (
                "REVOKE INSERT (event_kind) ON {S}.operation_history FROM {W}",
                "GRANT INSERT (event_kind) ON {S}.operation_history TO {W}",
            ),
            ("GRANT SELECT ON {S}.current_state TO PUBLIC", "REVOKE SELECT ON {S}.current_state FROM PUBLIC"),
            ("GRANT INSERT ON {S}.current_state TO {O}", "REVOKE INSERT ON {S}.current_state FROM {O}"),
            ("ALTER ROLE {W} SUPERUSER", "ALTER ROLE {W} NOSUPERUSER"),
            ("ALTER ROLE {W} CREATEROLE", "ALTER ROLE {W} NOCREATEROLE"),
            ("ALTER ROLE {W} REPLICATION", "ALTER ROLE {W} NOREPLICATION"),
            ("ALTER ROLE {W} INHERIT", "ALTER ROLE {W} NOINHERIT"),
            ("GRANT {O} TO {W}", "REVOKE {O} FROM {W}"),
            ("GRANT {W} TO {O}", "REVOKE {W} FROM {O}"),
            (
                "ALTER DEFAULT PRIVILEGES FOR ROLE {W} GRANT SELECT ON TABLES TO {O}",
                "ALTER DEFAULT PRIVILEGES FOR ROLE {W} REVOKE SELECT ON TABLES FROM {O}",
            ),
        ] {
            estate.sql(&name(alter));
            every_command_refuses(alter, &estate, UNAVAILABLE, &[]);
            estate.sql(&name(restore));
            estate.workspace.run("plan").exits(0);
        }
        // A reader has the same rows before its eyes and is not the writer; neither is the owner.
        estate.sql(&name("GRANT USAGE ON SCHEMA {S} TO {O}; GRANT SELECT ON ALL TABLES IN SCHEMA {S} TO {O}"));
        let (reader, owner) = (estate.dsn(&other, "w-s3ntinel"), estate.admin.clone());
        for (dsn, told) in [
            (reader.as_str(), "not the store's writer role"),
            (owner.as_str(), "not the store's writer role"),
            (&estate.dsn(&estate.writer, "wrong-s3ntinel"), "refused the login"),
        ] {
            for line in ["plan -o json", "apply -o json"] {
                let run = estate.run_with(&[("WRITER_DSN", dsn)], line).exits(1);
                assert_eq!(run.errors()[0].0, UNAVAILABLE, "{}", run.stdout);
                assert!(run.stdout.contains(told) && !run.stdout.contains("s3ntinel"), "{told}: {}", run.stdout);
            }
        }
        // A status reader is enough for what only reads.
        let as_reader = [("OWNER_DSN", reader.as_str())];
        estate.run_with(&as_reader, "state status").exits(0);
        estate.run_with(&as_reader, "state lock-status").exits(0);
        estate.sql(&name("DROP OWNED BY {O}; DROP ROLE {O}"));
    });
}

/// PGS-004 PGS-005 PGS-006: each command reads its own variable and is content when the other one is poison.
#[test]
fn neither_credential_ever_stands_in_for_the_other() {
    const POISON: &str = "postgresql://p:poison-s3ntinel@127.0.0.1:1/nowhere?options=poison";
    for major in &majors() {
        let estate = Estate::new(major, 1);
        let run =
            estate.run_with(&[("WRITER_DSN", POISON)], &estate.init_line(&format!("--writer-role {}", estate.writer)));
        run.exits(0);
        for line in ["state status", "state lock-status", estate.init_line("").as_str()] {
            estate.run_with(&[("WRITER_DSN", POISON)], line).exits(0);
        }
        for line in ["plan", "apply", "plan --out p.json", "apply --plan p.json"] {
            estate.run_with(&[("OWNER_DSN", POISON)], line).exits(0);
        }
        for (variable, line) in
            [("WRITER_DSN", "plan -o json"), ("WRITER_DSN", "apply -o json"), ("OWNER_DSN", "state status -o json")]
        {
            for value in [POISON, " "] {
                let run = estate.run_with(&[(variable, value)], line).exits(1);
                assert_eq!(run.errors()[0].0, UNAVAILABLE, "{line}: {}", run.stdout);
                assert!(!run.stdout.contains("poison"), "{}", run.stdout);
                let blank = format!("the variable '{variable}' is not set");
                assert_eq!(run.stdout.contains(&blank), value == " ", "{line}: {}", run.stdout);
            }
        }
        // Without a writer's connection nobody looks at the owner's: what is missing is said, and nothing is contacted.
        let path = estate.workspace.path("stream_project.yml");
        let yaml = std::fs::read_to_string(&path).unwrap();
        for (writer, why) in [
            ("writer_dsn_env: NOBODYS_DSN, ", "the variable 'NOBODYS_DSN' is not set"),
            ("", "'postgres.writer_dsn_env' is not configured"),
        ] {
            std::fs::write(&path, yaml.replace("writer_dsn_env: WRITER_DSN, ", writer)).unwrap();
            for line in ["plan -o json", "apply -o json"] {
                let run = estate.workspace.run(line).exits(1);
                assert_eq!(run.errors()[0].0, UNAVAILABLE, "{line}: {}", run.stdout);
                assert!(run.stdout.contains(why), "{line}: {}", run.stdout);
            }
        }
    }
}

/// PGS-010: read-only by setting is refused where writing begins, and an administrator may still look.
#[test]
fn a_role_that_is_set_to_read_only_transactions_is_refused() {
    for major in &majors() {
        let estate = Estate::new(major, 1);
        estate.init();
        let rows = estate.rows();
        estate.sql(&format!("ALTER ROLE {} SET default_transaction_read_only = on", estate.writer));
        for line in ["plan -o json", "apply -o json"] {
            let run = estate.workspace.run(line).exits(1);
            assert_eq!(run.errors()[0].0, UNAVAILABLE, "{}", run.stdout);
            assert!(run.stdout.contains("read-only transactions"), "{}", run.stdout);
        }
        estate.workspace.run("state status").exits(0);
        assert_eq!(estate.rows(), rows);
        estate.sql(&format!("ALTER ROLE {} RESET default_transaction_read_only", estate.writer));
        estate.workspace.run("apply").exits(0);
    }
}

/// REC-071: whoever reads a row that does not follow from the others says so, and takes it for nothing else.
#[test]
fn a_row_that_was_altered_by_hand_is_refused_by_every_command_that_reads_it() {
    on_each_major(|major| {
        let estate = Estate::new(major, 2);
        estate.init();
        estate.workspace.run("apply").exits(0);
        let zero = format!("'sha256:' || repeat('0', {})", 64);
        for (alter, restore) in [
            ("current_state", "updated_at = updated_at + interval '1 second'", "updated_at = updated_at - interval '1 second'"),
            ("current_state", "state_json = state_json || ' '", "state_json = rtrim(state_json)"),
            (
                "current_state",
                "state_json = replace(state_json, '\"serial\":1', '\"serial\":1,\"note\":\"x\"')",
                "state_json = replace(state_json, ',\"note\":\"x\"', '')",
            ),
            ("state_history", "recorded_at = recorded_at + interval '1 second'", "recorded_at = recorded_at - interval '1 second'"),
            ("state_history", "change_json = change_json || ' '", "change_json = rtrim(change_json)"),
            (
                "state_history",
                "change_json = replace(change_json, '\"removed\":[]', '\"moved\":[],\"removed\":[]')",
                "change_json = replace(change_json, '\"moved\":[],', '')",
            ),
            ("operation_control", "control_version = 6 - 1", "control_version = 3"),
            ("state_addresses", "advisory_lock_key = advisory_lock_key + 1", "advisory_lock_key = advisory_lock_key - 1"),
        ]
        .map(|(table, alter, restore)| {
            let update = |set: &str| format!("UPDATE {}.{table} SET {set}", estate.schema);
            (update(alter), update(restore))
        })
        .into_iter()
        .chain([(
            format!("UPDATE {}.operation_control SET control_checksum = {zero}", estate.schema),
            format!(
                "UPDATE {0}.operation_control SET control_checksum = (SELECT control_checksum FROM {0}.operation_history \
                 WHERE event_kind = 'succeeded')",
                estate.schema
            ),
        )]) {
            let before = estate.rows();
            estate.sql(&alter);
            let altered = estate.rows();
            assert_ne!(altered, before, "{alter}");
            for line in ["plan -o json", "apply -o json", "state status -o json"] {
                let run = estate.workspace.run(line).exits(1);
                assert_eq!(run.errors()[0].0, CATALOG, "{alter}: {line}: {}", run.stdout);
            }
            assert_eq!(estate.rows(), altered, "{alter}");
            estate.sql(&restore);
            assert_eq!(estate.rows(), before, "{restore}");
            estate.settled("");
        }
    });
}

/// CRM-075: a control that an older streamt left clear is clear, reading keeps it, and the next operation writes the present version.
#[test]
fn a_clear_control_of_an_older_version_is_accepted_and_moves_on() {
    use streamt::state::control::Control;
    use streamt::state::model::StateAddress;
    for major in &majors() {
        let estate = Estate::new(major, 1);
        estate.init();
        let address = StateAddress::parse(&format!("streamt-state://tests/{}/default", estate.project)).unwrap();
        for version in [1, 2] {
            let old = Control::clear_in_version(&address, version).unwrap();
            estate.sql(&format!(
                "UPDATE {}.operation_control SET control_version = {version}, control_checksum = '{}'",
                estate.schema,
                old.checksum()
            ));
            let left = estate.rows();
            estate.workspace.run("state status").exits(0);
            estate.workspace.run("plan").exits(0);
            assert_eq!(estate.rows(), left, "reading upgrades nothing");
            estate.workspace.run("apply").exits(0);
            estate.settled("");
            let versions = format!("SELECT control_version FROM {}.operation_control", estate.schema);
            assert_eq!(estate.ask(&versions), ["3"]);
        }
    }
}

/// PGS-007: as the guide says, a role has its maker as a member on PostgreSQL 16 and newer, unless a superuser made it.
#[test]
fn a_writer_whose_maker_is_its_member_is_refused_until_a_superuser_takes_that_away() {
    for major in &majors() {
        let estate = Estate::new(major, 1);
        let (maker, made) = (format!("m_{}", &estate.schema[2..]), format!("v_{}", &estate.schema[2..]));
        estate.sql(&format!(
            "CREATE ROLE {maker} CREATEROLE; SET ROLE {maker}; CREATE ROLE {made} LOGIN NOINHERIT; RESET ROLE"
        ));
        let init = estate.init_line(&format!("--writer-role {made}"));
        if major.parse::<u32>().unwrap() >= 16 {
            let run = estate.workspace.run(&init).exits(1);
            assert_eq!(run.errors()[0].0, UNAVAILABLE, "{}", run.stdout);
            assert!(run.stdout.contains("unless a superuser creates it"), "{}", run.stdout);
            let schemas = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'", estate.schema);
            assert_eq!(estate.ask(&schemas), ["0"], "a refused init leaves nothing");
            estate.sql(&format!("REVOKE {made} FROM {maker} GRANTED BY postgres"));
        }
        estate.workspace.run(&init).exits(0);
        estate.sql(&format!(
            "DROP SCHEMA {} CASCADE; DROP OWNED BY {made}; DROP ROLE {made}; DROP ROLE {maker}",
            estate.schema
        ));
    }
}
