//! What is refused before any authority: catalog, rights, roles, servers. One thing is altered at a time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::support::{Server, each, each_bare, target};
use crate::codes::Code;
use crate::state::error::StateError;
use crate::state::postgres::PostgresStore;
use crate::state::postgres::admin::{self, InitOutcome, NewStore, Version};
use crate::state::store::StateBackend;

fn acquire(server: &Server, dsn: &str) -> Result<(), StateError> {
    let store = PostgresStore::new(target(dsn, &server.schema)?);
    let site = Server::site("first");
    store.acquire(&site, Duration::from_secs(2), &CancellationToken::new()).map(|_| ())?;
    store.read_snapshot(&site).map(|_| ())
}

/// Refused by both ways in, with the same code, without a name of the installation.
fn refused(server: &Server, dsn: &str) -> String {
    let error = acquire(server, dsn).expect_err("it must be refused");
    assert_eq!(error.code(), Code::E420StateBackendUnavailable, "{error}");
    let store = PostgresStore::new(target(dsn, &server.schema).unwrap());
    assert_eq!(store.describe().expect_err("it must be refused").code(), Code::E420StateBackendUnavailable);
    let text = format!("{error} {:?}", error.diagnostic());
    for secret in [&server.schema, &server.writer, super::support::PASSWORD, "127.0.0.1", "admin-secret"] {
        assert!(!text.contains(secret), "{text}");
    }
    text
}

/// PGS-008, PGS-011: each alteration alone is found by ordinary commands (E420) and by administrative ones (E411).
#[test]
fn one_altered_object_is_one_refusal() {
    each(|server| {
        acquire(&server, &server.writer_dsn()).unwrap();
        let schema = server.schema.clone();
        for (alter, restore) in [
            ("CREATE TABLE S.extra (a int)", "DROP TABLE S.extra"),
            ("CREATE VIEW S.extra AS SELECT 1 AS a", "DROP VIEW S.extra"),
            ("CREATE SEQUENCE S.extra", "DROP SEQUENCE S.extra"),
            ("CREATE FUNCTION S.extra() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION S.extra()"),
            ("CREATE TYPE S.extra AS ENUM ('a')", "DROP TYPE S.extra"),
            ("CREATE DOMAIN S.extra AS text", "DROP DOMAIN S.extra"),
            ("CREATE INDEX extra ON S.operation_history (event_kind)", "DROP INDEX S.extra"),
            (
                "ALTER TABLE S.current_state ALTER COLUMN updated_at SET DEFAULT now()",
                "ALTER TABLE S.current_state ALTER COLUMN updated_at DROP DEFAULT",
            ),
            ("ALTER TABLE S.current_state ADD COLUMN extra text", "ALTER TABLE S.current_state DROP COLUMN extra"),
            (
                "ALTER TABLE S.operation_control ALTER COLUMN status DROP NOT NULL",
                "ALTER TABLE S.operation_control ALTER COLUMN status SET NOT NULL",
            ),
            (
                "ALTER TABLE S.operation_control ADD CONSTRAINT extra CHECK (revision > -5)",
                "ALTER TABLE S.operation_control DROP CONSTRAINT extra",
            ),
            (
                "ALTER TABLE S.operation_history DROP CONSTRAINT operation_history_size_check",
                "ALTER TABLE S.operation_history ADD CONSTRAINT operation_history_size_check CHECK (octet_length(event_json) <= 10485760)",
            ),
            (
                "ALTER TABLE S.state_history DROP CONSTRAINT state_history_serial_check, ADD CONSTRAINT state_history_serial_check CHECK (state_serial >= 0)",
                "ALTER TABLE S.state_history DROP CONSTRAINT state_history_serial_check, ADD CONSTRAINT state_history_serial_check CHECK (state_serial >= 1)",
            ),
            (
                "ALTER TABLE S.current_state ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE S.current_state DISABLE ROW LEVEL SECURITY",
            ),
            (
                "ALTER TABLE S.current_state FORCE ROW LEVEL SECURITY",
                "ALTER TABLE S.current_state NO FORCE ROW LEVEL SECURITY",
            ),
            (
                "CREATE RULE extra AS ON DELETE TO S.current_state DO INSTEAD NOTHING",
                "DROP RULE extra ON S.current_state",
            ),
            ("ALTER TABLE S.current_state SET UNLOGGED", "ALTER TABLE S.current_state SET LOGGED"),
            (
                "UPDATE S.schema_migrations SET migration_name = 'other' WHERE schema_version = 2",
                "UPDATE S.schema_migrations SET migration_name = 'schema-v2-writer-role' WHERE schema_version = 2",
            ),
            (
                "INSERT INTO S.schema_migrations VALUES (3, 'later', 'sha256:0000000000000000000000000000000000000000000000000000000000000000', now())",
                "DELETE FROM S.schema_migrations WHERE schema_version = 3",
            ),
        ] {
            server.sql(&alter.replace("S.", &format!("{schema}.")));
            let text = refused(&server, &server.writer_dsn());
            assert!(text.contains("its catalog is not the store's"), "{alter}: {text}");
            let error = admin::status(&server.owner(), &Server::site("first")).expect_err(alter);
            assert_eq!(error.code(), Code::E411StateInvalid, "{alter}");
            server.sql(&restore.replace("S.", &format!("{schema}.")));
            acquire(&server, &server.writer_dsn()).unwrap_or_else(|error| panic!("{restore}: {error}"));
        }
    });
}

/// PGS-009
#[test]
fn one_grant_more_or_less_is_one_refusal() {
    each(|server| {
        let (schema, writer) = (server.schema.clone(), server.writer.clone());
        let reader = format!("r_{}", &schema[2..]);
        server.sql(&format!("CREATE ROLE {reader} LOGIN NOINHERIT"));
        let named = |text: &str| text.replace("{S}", &schema).replace("{W}", &writer).replace("{R}", &reader);
        for (alter, restore) in [
            ("GRANT DELETE ON {S}.operation_history TO {W}", "REVOKE DELETE ON {S}.operation_history FROM {W}"),
            (
                "GRANT UPDATE ON {S}.operation_control TO {W}",
                "REVOKE UPDATE ON {S}.operation_control FROM {W}; GRANT UPDATE (revision, status, control_version, operation_id, event_index, control_checksum, updated_at) ON {S}.operation_control TO {W}",
            ),
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
            ("GRANT USAGE ON SCHEMA {S} TO PUBLIC", "REVOKE USAGE ON SCHEMA {S} FROM PUBLIC"),
            ("GRANT INSERT ON {S}.current_state TO {R}", "REVOKE INSERT ON {S}.current_state FROM {R}"),
            ("ALTER ROLE {W} CREATEDB", "ALTER ROLE {W} NOCREATEDB"),
            ("ALTER ROLE {W} INHERIT", "ALTER ROLE {W} NOINHERIT"),
            ("ALTER ROLE {W} SUPERUSER", "ALTER ROLE {W} NOSUPERUSER"),
            ("ALTER ROLE {W} BYPASSRLS", "ALTER ROLE {W} NOBYPASSRLS"),
            ("GRANT {R} TO {W}", "REVOKE {R} FROM {W}"),
            ("GRANT {W} TO {R}", "REVOKE {W} FROM {R}"),
            (
                "ALTER DEFAULT PRIVILEGES FOR ROLE {W} GRANT SELECT ON TABLES TO {R}",
                "ALTER DEFAULT PRIVILEGES FOR ROLE {W} REVOKE SELECT ON TABLES FROM {R}",
            ),
        ] {
            server.sql(&named(alter));
            refused(&server, &server.writer_dsn());
            let error = admin::status(&server.owner(), &Server::site("first")).expect_err(alter);
            assert_eq!(error.code(), Code::E420StateBackendUnavailable, "{alter}");
            server.sql(&named(restore));
            acquire(&server, &server.writer_dsn()).unwrap_or_else(|error| panic!("{restore}: {error}"));
        }
        // A role that may only read is allowed.
        server.sql(&named("GRANT USAGE ON SCHEMA {S} TO {R}; GRANT SELECT ON {S}.current_state TO {R}"));
        acquire(&server, &server.writer_dsn()).unwrap();
        server.sql(&format!("DROP OWNED BY {reader}; DROP ROLE {reader}"));
    });
}

/// PGS-007: neither the owner nor a superuser nor a stranger is the writer.
#[test]
fn another_role_than_the_writer_is_refused() {
    each(|server| {
        assert!(refused(&server, &server.admin.clone()).contains("not the store's writer role"));
        let other = format!("o_{}", &server.schema[2..]);
        server.sql(&format!("CREATE ROLE {other} LOGIN NOINHERIT PASSWORD 'x'; GRANT USAGE ON SCHEMA {0} TO {other}; GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {other}", server.schema));
        let dsn = server.writer_dsn().replace(&server.writer, &other).replace(super::support::PASSWORD, "x");
        assert!(refused(&server, &dsn).contains("not the store's writer role"));
        server.sql(&format!("DROP OWNED BY {other}; DROP ROLE {other}"));
        let wrong = server.writer_dsn().replace(super::support::PASSWORD, "wrong-s3ntinel");
        let text = refused(&server, &wrong);
        assert!(text.contains("refused the login") && !text.contains("s3ntinel"), "{text}");
    });
}

/// PGS-014: whatever a server, a database or a role is set to, a session commits durably before it is answered.
#[test]
fn a_session_commits_durably_whatever_its_role_is_set_to() {
    each(|server| {
        server.sql(&format!("ALTER ROLE {} SET synchronous_commit = off", server.writer));
        let durable = "SELECT count(*) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'on'";
        assert_eq!(server.number_as(&server.writer_dsn(), durable), 1);
        acquire(&server, &server.writer_dsn()).unwrap();
    });
}

#[test]
fn an_address_that_is_not_registered_is_refused_and_none_is_taken_for_empty() {
    each(|server| {
        let site = Server::site("unknown");
        let error = server.store().read_snapshot(&site).unwrap_err();
        assert_eq!(error.code(), Code::E420StateBackendUnavailable);
        let taken = server.store().acquire(&site, Duration::from_secs(1), &CancellationToken::new());
        assert_eq!(taken.err().map(|error| error.code()), Some(Code::E420StateBackendUnavailable));
        server.sql(&format!("UPDATE {}.state_addresses SET advisory_lock_key = 7", server.schema));
        let error = acquire(&server, &server.writer_dsn()).unwrap_err();
        assert_eq!(error.code(), Code::E411StateInvalid, "{error}");
    });
}

/// PGS-012
#[test]
fn init_is_one_step_and_can_be_repeated() {
    each_bare(|server| {
        let site = Server::site("first");
        let status = admin::status(&server.owner(), &site).unwrap();
        assert!(status.store.is_none());
        let refusal = acquire(&server, &server.writer_dsn()).unwrap_err();
        assert_eq!(refusal.code(), Code::E420StateBackendUnavailable);
        let now = jiff::Timestamp::now();
        let without = admin::init(server.owner(), &site, None, now).unwrap_err();
        assert_eq!(without.code(), Code::E411StateInvalid);
        let absent = NewStore::Two { writer: "nobody_has_this_name".into() };
        let absent = admin::init(server.owner(), &site, Some(&absent), now).unwrap_err();
        assert_eq!(absent.code(), Code::E420StateBackendUnavailable);
        let superuser = NewStore::Two { writer: "postgres".into() };
        assert!(admin::init(server.owner(), &site, Some(&superuser), now).is_err());
        assert!(admin::status(&server.owner(), &site).unwrap().store.is_none(), "a refused init leaves nothing");

        let first = server.init("first").unwrap();
        assert_eq!((first.outcome, first.version), (InitOutcome::Initialized, Version::Two));
        let again = admin::init(server.owner(), &site, None, now).unwrap();
        assert_eq!((again.outcome, again.store_id), (InitOutcome::AlreadyInitialized, first.store_id));
        let second = server.init("second").unwrap();
        assert_eq!((second.outcome, second.store_id), (InitOutcome::AddressRegistered, first.store_id));
        let other = NewStore::Two { writer: "postgres".into() };
        let other = admin::init(server.owner(), &Server::site("third"), Some(&other), now).unwrap_err();
        assert_eq!(other.code(), Code::E411StateInvalid);
        let by_writer =
            admin::init(target(&server.writer_dsn(), &server.schema).unwrap(), &Server::site("third"), None, now);
        assert_eq!(by_writer.unwrap_err().code(), Code::E420StateBackendUnavailable);
        acquire(&server, &server.writer_dsn()).unwrap();
    });
}

/// PGS-012
#[test]
fn a_store_of_version_1_serves_administration_only() {
    each_bare(|server| {
        let site = Server::site("first");
        let made = admin::init(server.owner(), &site, Some(&NewStore::One), jiff::Timestamp::now()).unwrap();
        assert_eq!(made.version, Version::One);
        let status = admin::status(&server.owner(), &site).unwrap();
        assert_eq!(status.store.map(|(proved, _)| proved.version), Some(Version::One));
        refused(&server, &server.writer_dsn());
        server.sql(&format!(
            "GRANT USAGE ON SCHEMA {0} TO {1}; GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {1}",
            server.schema, server.writer
        ));
        assert!(refused(&server, &server.writer_dsn()).contains("version 1"));
    });
}
