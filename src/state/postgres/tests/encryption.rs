//! The modes of `sslmode` against a server that speaks TLS.

use super::support::{Server, each, variable};
use crate::codes::Code;
use crate::state::postgres::PostgresStore;
use crate::state::store::StateBackend;

fn read(server: &Server, parameters: &str) -> Result<(), crate::state::error::StateError> {
    let dsn = format!("{}?{parameters}", server.writer_dsn());
    let store = PostgresStore::new(super::support::target(&dsn, &server.schema)?);
    store.read_snapshot(&Server::site("first")).map(|_| ())
}

#[test]
fn a_server_is_believed_as_far_as_its_certificate_is_verified() {
    each(|server| {
        let ours = variable(&format!("STREAMT_TEST_POSTGRES_{}_CA", server.major));
        // An authority that is as good as ours and signed nothing of this server.
        let other = variable("STREAMT_TEST_KAFKA_CA");
        for parameters in [
            "sslmode=disable".to_owned(),
            "sslmode=prefer".to_owned(),
            "sslmode=require".to_owned(),
            format!("sslmode=require&sslrootcert={ours}"),
            format!("sslmode=verify-ca&sslrootcert={ours}"),
            format!("sslmode=verify-full&sslrootcert={ours}"),
            format!("sslmode=verify-full&sslrootcert={ours}&channel_binding=require"),
        ] {
            read(&server, &parameters).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        }
        let encrypted = |parameters: &str| {
            let dsn = format!("{}?{parameters}", server.admin);
            server.number_as(&dsn, "SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()")
        };
        assert_eq!(
            (encrypted("sslmode=require"), encrypted("sslmode=prefer"), encrypted("sslmode=disable")),
            (1, 1, 0)
        );
        for parameters in [
            format!("sslmode=require&sslrootcert={other}"),
            format!("sslmode=verify-ca&sslrootcert={other}"),
            format!("sslmode=verify-full&sslrootcert={other}"),
            "sslmode=verify-full".to_owned(),
            "sslmode=verify-full&sslrootcert=system".to_owned(),
        ] {
            let error = read(&server, &parameters).expect_err(&parameters);
            assert_eq!(error.code(), Code::E420StateBackendUnavailable);
            assert!(error.to_string().contains("TLS with its server failed"), "{parameters}: {error}");
        }
        // The certificate names localhost and 127.0.0.1 alone.
        let elsewhere = |mode: &str| {
            let dsn = format!("{}?sslmode={mode}&sslrootcert={ours}&hostaddr=127.0.0.1", server.writer_dsn());
            let dsn = dsn.replace("@127.0.0.1", "@db.example.test");
            let store = PostgresStore::new(super::support::target(&dsn, &server.schema).unwrap());
            store.read_snapshot(&Server::site("first")).map(|_| ())
        };
        elsewhere("verify-ca").unwrap();
        assert!(elsewhere("verify-full").unwrap_err().to_string().contains("TLS with its server failed"));
    });
}
