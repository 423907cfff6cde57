//! Broker and client errors, classified by type and code.

use std::error::Error;

use krafka::ProtocolErrorKind;
use krafka::error::{ErrorCode, KrafkaError};

use crate::project::secret::Secret;
use crate::providers::tls::is_tls_error;
use crate::providers::{ProviderFailure, Reply, VendorText};

/// What a failed call means. `secrets`: removed from the broker's message before it is kept.
pub fn classify(error: &KrafkaError, secrets: &[Secret]) -> ProviderFailure {
    match error {
        KrafkaError::Broker { code, message } => of_code(*code, message, secrets),
        KrafkaError::Network(cause) => match is_tls_error(cause.as_ref()) {
            true => ProviderFailure::Tls { what: HANDSHAKE },
            false => ProviderFailure::Unreachable,
        },
        KrafkaError::Auth { source: None, message } => {
            ProviderFailure::Auth { text: said_by_the_broker(message).and_then(|said| at_border(said, secrets)) }
        }
        KrafkaError::Auth { source: Some(source), .. } => match source.source().is_some_and(is_tls_error) {
            true => ProviderFailure::Tls { what: HANDSHAKE },
            false => ProviderFailure::Auth { text: None },
        },
        KrafkaError::Timeout { .. } => ProviderFailure::Timeout,
        KrafkaError::Protocol { kind: ProtocolErrorKind::UnknownApiVersion, .. } => {
            ProviderFailure::Unsupported { what: "a Kafka API that this needs" }
        }
        KrafkaError::Protocol { kind: ProtocolErrorKind::FrameTooLarge, .. } => ProviderFailure::TooLarge,
        KrafkaError::UnknownTopic { .. } => ProviderFailure::NotFound,
        KrafkaError::Config { .. } => {
            ProviderFailure::ConfigInvalid { field: "runtime.kafka", problem: "is refused by the Kafka client" }
        }
        _ => ProviderFailure::Protocol { what: "Kafka reply" },
    }
}

const HANDSHAKE: &str = "the handshake with the broker";

fn of_code(code: ErrorCode, message: &str, secrets: &[Secret]) -> ProviderFailure {
    let text = || {
        // Without a message of the broker's the client repeats the code's name, which the reply already shows.
        let said = (message != format!("{code:?}")).then_some(message);
        said.and_then(|said| at_border(said, secrets))
    };
    match code {
        ErrorCode::TopicAuthorizationFailed
        | ErrorCode::GroupAuthorizationFailed
        | ErrorCode::ClusterAuthorizationFailed
        | ErrorCode::TransactionalIdAuthorizationFailed
        | ErrorCode::DelegationTokenAuthorizationFailed
        | ErrorCode::SaslAuthenticationFailed
        | ErrorCode::UnsupportedSaslMechanism
        | ErrorCode::IllegalSaslState => ProviderFailure::Auth { text: text() },
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::UnknownTopicId
        | ErrorCode::GroupIdNotFound
        | ErrorCode::ResourceNotFound => ProviderFailure::NotFound,
        ErrorCode::UnsupportedVersion => ProviderFailure::Unsupported { what: "a Kafka API that this needs" },
        // The broker may still finish what it gave up waiting for.
        ErrorCode::RequestTimedOut => ProviderFailure::Timeout,
        // None of these proves that nothing was applied.
        ErrorCode::UnknownServerError
        | ErrorCode::NetworkException
        | ErrorCode::BrokerNotAvailable
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::KafkaStorageException => ProviderFailure::Protocol { what: "the broker met an error of its own" },
        refused => ProviderFailure::Rejected {
            reply: Reply::Kafka { code: refused.to_i16(), name: name(refused) },
            text: text(),
        },
    }
}

/// The broker's words in a client's account of a failed login, whose own part names endpoints.
fn said_by_the_broker(message: &str) -> Option<&str> {
    message.rsplit_once("SaslAuthenticationFailed - ").map(|(_, said)| said)
}

fn at_border(said: &str, secrets: &[Secret]) -> Option<VendorText> {
    VendorText::at_border(said, &secrets.iter().collect::<Vec<_>>())
}

/// The protocol's name of a code, for example `INVALID_CONFIG`.
fn name(code: ErrorCode) -> String {
    if let ErrorCode::Unknown(number) = code {
        return format!("error {number}");
    }
    let mut name = String::new();
    for c in format!("{code:?}").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::codes::Code;

    fn of(code: ErrorCode, message: &str) -> ProviderFailure {
        classify(&KrafkaError::broker(code, message), &[])
    }

    #[test]
    fn a_refusal_carries_the_brokers_own_message() {
        let failure = of(ErrorCode::InvalidConfig, "Unknown topic config name: retention.msx");
        let shown = failure.diagnostic("topic:orders.v1: create");
        assert_eq!(shown.code, Code::E407DeployError);
        assert_eq!(
            shown.message,
            "topic:orders.v1: create refused (INVALID_CONFIG): Unknown topic config name: retention.msx"
        );
    }

    #[test]
    fn a_refusal_without_a_message_shows_its_name_once() {
        let shown = of(ErrorCode::PolicyViolation, "PolicyViolation").diagnostic("topic:t: create");
        assert_eq!(shown.message, "topic:t: create refused (POLICY_VIOLATION)");
        let unknown = of(ErrorCode::Unknown(999), "").diagnostic("topic:t: create");
        assert_eq!(unknown.message, "topic:t: create refused (error 999)");
    }

    /// SEC-003
    #[test]
    fn a_message_that_repeats_a_secret_loses_it() {
        let error = KrafkaError::broker(ErrorCode::InvalidConfig, "bad value hunter2-9");
        let failure = classify(&error, &[Secret::new("hunter2-9")]);
        assert!(failure.diagnostic("x").message.ends_with("bad value <redacted>"));
    }

    /// SEC-004: the client's part of the message names the endpoint.
    #[test]
    fn a_refused_login_is_told_in_the_brokers_words_alone() {
        let client =
            "could not connect to any of [broker.test:9092]: SASL authentication failed: SaslAuthenticationFailed - ";
        let error = KrafkaError::auth(format!("{client}Invalid username or password"));
        let shown = classify(&error, &[]).diagnostic("Kafka: reading topics");
        assert_eq!(shown.message, "Kafka: reading topics was not authorized: Invalid username or password");
        let silent = KrafkaError::auth("could not connect to any of [broker.test:9092]");
        assert_eq!(classify(&silent, &[]).diagnostic("x").message, "x was not authorized");
    }

    #[test]
    fn codes_map_to_what_the_user_can_do() {
        for (code, expected) in [
            (ErrorCode::TopicAuthorizationFailed, Code::E404AuthFailed),
            (ErrorCode::ClusterAuthorizationFailed, Code::E404AuthFailed),
            (ErrorCode::SaslAuthenticationFailed, Code::E404AuthFailed),
            (ErrorCode::InvalidReplicationFactor, Code::E407DeployError),
            (ErrorCode::TopicAlreadyExists, Code::E407DeployError),
        ] {
            assert_eq!(of(code, "said").code(), expected, "{code:?}");
        }
        assert_eq!(classify(&KrafkaError::auth("no"), &[]).code(), Code::E404AuthFailed);
        let refused = KrafkaError::network(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(classify(&refused, &[]).code(), Code::E406ConnectionRefused);
    }

    #[test]
    fn tls_is_recognised_by_type_wherever_it_was_wrapped() {
        let alert = rustls::Error::AlertReceived(rustls::AlertDescription::CertificateRequired);
        let direct = io::Error::new(io::ErrorKind::InvalidData, alert.clone());
        assert_eq!(classify(&KrafkaError::network(direct), &[]).code(), Code::E405SslError);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, alert.clone()));
        assert_eq!(classify(&KrafkaError::network(wrapped), &[]).code(), Code::E405SslError);
        let handshake = io::Error::new(io::ErrorKind::InvalidData, alert);
        assert_eq!(classify(&KrafkaError::auth_with_source("tls", handshake), &[]).code(), Code::E405SslError);
        // A host that is called ssl is no TLS failure.
        let named = KrafkaError::network(io::Error::other("ssl-broker.test: connection refused"));
        assert_eq!(classify(&named, &[]).code(), Code::E406ConnectionRefused);
    }

    #[test]
    fn only_a_definite_refusal_stays_one_after_the_request_was_sent() {
        for code in [ErrorCode::RequestTimedOut, ErrorCode::UnknownServerError, ErrorCode::NetworkException] {
            assert!(of(code, "said").after_commit("create", vec![]).may_have_effect(), "{code:?}");
        }
        for code in [
            ErrorCode::InvalidConfig,
            ErrorCode::TopicAlreadyExists,
            ErrorCode::NotController,
            ErrorCode::ThrottlingQuotaExceeded,
            ErrorCode::TopicAuthorizationFailed,
            ErrorCode::UnsupportedVersion,
        ] {
            assert!(!of(code, "said").after_commit("create", vec![]).may_have_effect(), "{code:?}");
        }
        for error in [KrafkaError::timeout("x"), KrafkaError::network(io::Error::other("reset"))] {
            assert!(classify(&error, &[]).after_commit("create", vec![]).may_have_effect());
        }
    }
}
