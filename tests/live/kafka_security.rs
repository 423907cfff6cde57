//! Logins, certificates and rights on a real, secured Apache Kafka broker.

use std::path::{Path, PathBuf};

use streamt::codes::Code;
use streamt::project::model::{KafkaRuntime, SaslMechanism, SecurityProtocol, Tls};
use streamt::project::secret::Secret;
use streamt::providers::kafka::ConfigRead;
use streamt::providers::{KafkaClient, ProviderFailure};

use crate::support::{Open, ctx, kafka_runtime, topic, unique, variable};

async fn connect(runtime: &KafkaRuntime) -> Result<KafkaClient, ProviderFailure> {
    KafkaClient::connect(runtime, Path::new("/"), &ctx()).await
}

fn login(address: &str, mechanism: SaslMechanism, user: &str, password: &str) -> KafkaRuntime {
    KafkaRuntime {
        security_protocol: Some(SecurityProtocol::SaslPlaintext),
        sasl_mechanism: Some(mechanism),
        sasl_username: Some(user.to_owned()),
        sasl_password: Some(Secret::new(password)),
        ..kafka_runtime(variable(address))
    }
}

fn file(name: &str) -> Option<PathBuf> {
    Some(variable(name).into())
}

fn encrypted(address: &str, tls: Tls) -> KafkaRuntime {
    KafkaRuntime { security_protocol: Some(SecurityProtocol::Ssl), tls, ..kafka_runtime(variable(address)) }
}

fn own_ca() -> Tls {
    Tls { ca_location: file("STREAMT_TEST_KAFKA_CA"), ..Tls::default() }
}

#[tokio::test]
async fn every_login_mechanism_of_the_broker_works_and_a_wrong_password_is_an_auth_failure() {
    for mechanism in [SaslMechanism::Plain, SaslMechanism::ScramSha256, SaslMechanism::ScramSha512] {
        let right = login("STREAMT_TEST_KAFKA_SASL", mechanism, "admin", "admin-secret");
        let client = connect(&right).await.unwrap_or_else(|failure| panic!("{mechanism:?} {failure}"));
        let facts = client.cluster_facts(&ctx()).await.expect("facts");
        assert!(!facts.cluster_id.is_empty() && !facts.brokers.is_empty());
        let wrong = login("STREAMT_TEST_KAFKA_SASL", mechanism, "admin", "sentinel-wrong");
        let failure = connect(&wrong).await.expect_err("a wrong password");
        assert_eq!(failure.code(), Code::E404AuthFailed, "{mechanism:?} {failure:?}");
        assert!(!failure.diagnostic("Kafka: connect").message.contains("sentinel"));
    }
}

#[tokio::test]
async fn a_login_over_tls_needs_the_brokers_ca() {
    let over = |tls| KafkaRuntime {
        security_protocol: Some(SecurityProtocol::SaslSsl),
        tls,
        ..login("STREAMT_TEST_KAFKA_SASL_TLS", SaslMechanism::ScramSha512, "admin", "admin-secret")
    };
    connect(&over(own_ca())).await.expect("a login over TLS");
    let failure = connect(&over(Tls::default())).await.expect_err("an unknown CA");
    assert_eq!(failure.code(), Code::E405SslError, "{failure:?}");
}

#[tokio::test]
async fn only_the_configured_ca_is_trusted() {
    let client = connect(&encrypted("STREAMT_TEST_KAFKA_TLS", own_ca())).await.expect("TLS");
    client.cluster_facts(&ctx()).await.expect("facts");
    let failure = connect(&encrypted("STREAMT_TEST_KAFKA_TLS", Tls::default())).await.expect_err("an unknown CA");
    assert_eq!(failure.code(), Code::E405SslError, "{failure:?}");
    let other = Tls { ca_location: file("STREAMT_TEST_KAFKA_CERT"), ..Tls::default() };
    let failure = connect(&encrypted("STREAMT_TEST_KAFKA_TLS", other)).await.expect_err("another CA");
    assert_eq!(failure.code(), Code::E405SslError, "{failure:?}");
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_it_is_asked_for() {
    let with = |key: &str, password: Option<&str>| Tls {
        certificate_location: file("STREAMT_TEST_KAFKA_CERT"),
        key_location: file(key),
        key_password: password.map(Secret::new),
        ..own_ca()
    };
    for tls in
        [with("STREAMT_TEST_KAFKA_KEY", None), with("STREAMT_TEST_KAFKA_ENCRYPTED_KEY", Some("client-key-password"))]
    {
        let client = connect(&encrypted("STREAMT_TEST_KAFKA_MTLS", tls)).await.expect("mutual TLS");
        client.cluster_facts(&ctx()).await.expect("facts");
    }
    let failure = connect(&encrypted("STREAMT_TEST_KAFKA_MTLS", own_ca())).await.expect_err("no certificate");
    assert_eq!(failure.code(), Code::E405SslError, "{failure:?}");
    let locked = with("STREAMT_TEST_KAFKA_ENCRYPTED_KEY", Some("sentinel-wrong"));
    let failure = connect(&encrypted("STREAMT_TEST_KAFKA_MTLS", locked)).await.expect_err("a wrong password");
    assert_eq!(failure.code(), Code::E405SslError, "{failure:?}");
}

#[tokio::test]
async fn a_user_without_rights_is_told_so_and_never_that_a_topic_is_absent() {
    let root = connect(&login("STREAMT_TEST_KAFKA_SASL", SaslMechanism::Plain, "admin", "admin-secret")).await;
    let (root, name) = (root.expect("a login"), unique("rights"));
    let created = root.create_topics(&ctx(), &Open, &[topic(&name, 1, &[])]).await;
    created[0].1.as_ref().expect("created");

    let bob = login("STREAMT_TEST_KAFKA_SASL", SaslMechanism::ScramSha512, "bob", "bob-secret");
    let bob = connect(&bob).await.expect("a login");
    let observed = bob.observe_topics(&ctx(), std::slice::from_ref(&name), ConfigRead::Strict).await;
    assert_eq!(observed.expect_err("no right").code(), Code::E404AuthFailed);
    let other = topic(&unique("rights"), 1, &[]);
    let refusals = bob.validate_topics(&ctx(), std::slice::from_ref(&other), &[]).await.expect("asked");
    assert_eq!(refusals[0].1.code(), Code::E404AuthFailed);
    let outcome = bob.create_topics(&ctx(), &Open, std::slice::from_ref(&other)).await.remove(0).1;
    let failure = outcome.expect_err("no right");
    assert_eq!((failure.code(), failure.may_have_effect()), (Code::E404AuthFailed, false));
    crate::support::clean_up([name]).await;
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let failure = connect(&kafka_runtime(address)).await.expect_err("nobody listens");
    assert_eq!(failure.code(), Code::E406ConnectionRefused);
}
