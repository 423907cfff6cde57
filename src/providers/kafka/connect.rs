//! From a runtime block to an authenticated connection.
#![expect(clippy::disallowed_methods, reason = "measures how long a connection took")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use krafka::Kafka;
use krafka::auth::{AuthConfig, AwsMskIamCredentials, TlsConfig};
use krafka::error::KrafkaError;
use rustls::ClientConfig;
use tokio::time::Instant;

use super::identity::{Refusal, Tokens};
use super::{KafkaClient, SERVICE, errors};
use crate::project::model::{KafkaRuntime, SaslMechanism, SecurityProtocol};
use crate::project::secret::Secret;
use crate::providers::tls::{self, Material};
use crate::providers::{Ctx, ProviderFailure};

const DEFAULT_PORT: &str = "9092";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const EXPLAIN_TIMEOUT: Duration = Duration::from_secs(2);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

impl KafkaClient {
    /// Connects, authenticates and reads the cluster's metadata. `project_root` resolves relative TLS files.
    pub async fn connect(runtime: &KafkaRuntime, project_root: &Path, ctx: &Ctx) -> Result<Self, ProviderFailure> {
        let protocol = runtime.security_protocol.unwrap_or(SecurityProtocol::Plaintext);
        tracing::debug!(service = SERVICE, ?protocol, mechanism = ?runtime.sasl_mechanism, "connects");
        let begun = Instant::now();
        let outcome = Self::open_connection(runtime, project_root, ctx).await;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &outcome {
            Ok(_) => tracing::debug!(service = SERVICE, ms, "connected"),
            Err(failure) => tracing::warn!(service = SERVICE, ms, "connection {failure}"),
        }
        outcome
    }

    async fn open_connection(runtime: &KafkaRuntime, project_root: &Path, ctx: &Ctx) -> Result<Self, ProviderFailure> {
        let servers = bootstrap(&runtime.bootstrap_servers)?;
        let refusal = Refusal::default();
        let (security, tls) = security(runtime, project_root, &refusal)?;
        let mut builder = Kafka::builder(&servers)
            .client_id(concat!("streamt/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .request_timeout(REQUEST_TIMEOUT);
        if let Some(security) = security {
            builder = builder.security(security);
        }
        let secrets: Arc<[Secret]> = secrets(runtime).into();
        let connected = ctx.read(async { builder.connect().await.map_err(|error| connecting(&error, &secrets)) }).await;
        let connected = match connected {
            Err(failure) => Err(refusal.take().unwrap_or(failure)),
            Ok(kafka) => Ok(kafka),
        };
        let kafka = match (connected, tls) {
            (Err(ProviderFailure::Unreachable), Some(config)) => {
                return Err(ctx.read(async { Ok(explain(&servers, &config).await) }).await?);
            }
            (connected, _) => connected?,
        };
        Ok(Self { admin: Arc::new(kafka.admin()), kafka, secrets })
    }
}

/// The Kafka client tells a connection that was closed under it, and not why: asks whether TLS was the reason.
async fn explain(servers: &str, config: &ClientConfig) -> ProviderFailure {
    for server in servers.split(',') {
        if tls::is_refused(server, config.clone(), EXPLAIN_TIMEOUT).await {
            return ProviderFailure::Tls { what: "the broker refuses the connection or the client's certificate" };
        }
    }
    ProviderFailure::Unreachable
}

/// Before the first answer a silent broker is one that cannot be reached.
fn connecting(error: &KrafkaError, secrets: &[Secret]) -> ProviderFailure {
    match errors::classify(error, secrets) {
        ProviderFailure::Timeout => ProviderFailure::Unreachable,
        other => other,
    }
}

fn secrets(runtime: &KafkaRuntime) -> Vec<Secret> {
    [&runtime.sasl_password, &runtime.sasl_oauth_client_secret, &runtime.tls.key_password]
        .into_iter()
        .flatten()
        .cloned()
        .collect()
}

/// `host:port` list with the default port where none is given.
fn bootstrap(list: &str) -> Result<String, ProviderFailure> {
    let servers: Vec<String> = list
        .split(',')
        .map(str::trim)
        .filter(|server| !server.is_empty())
        .map(|server| {
            let after_host = server.rfind(']').map_or(server, |end| &server[end..]);
            if after_host.contains(':') { server.to_owned() } else { format!("{server}:{DEFAULT_PORT}") }
        })
        .collect();
    if servers.is_empty() {
        return Err(ProviderFailure::Config { field: "runtime.kafka.bootstrap_servers" });
    }
    Ok(servers.join(","))
}

/// None for a plaintext connection without login; the TLS configuration of an encrypted one.
fn security(
    runtime: &KafkaRuntime,
    project_root: &Path,
    refusal: &Refusal,
) -> Result<(Option<AuthConfig>, Option<ClientConfig>), ProviderFailure> {
    if runtime.security_protocol.is_none() && runtime.sasl_mechanism.is_some() {
        // A login that would never be sent is a mistake, not a plaintext connection.
        return Err(ProviderFailure::Config { field: "runtime.kafka.security_protocol" });
    }
    let protocol = runtime.security_protocol.unwrap_or(SecurityProtocol::Plaintext);
    let (sasl, encrypted) = match protocol {
        SecurityProtocol::Plaintext => (false, false),
        SecurityProtocol::Ssl => (false, true),
        SecurityProtocol::SaslPlaintext => (true, false),
        SecurityProtocol::SaslSsl => (true, true),
    };
    let material = match encrypted {
        true => Some(Material::load(&runtime.tls, project_root)?),
        false => None,
    };
    // Building our own configuration first tells which file is at fault.
    let config = material.as_ref().map(Material::client_config).transpose()?;
    let tls = material.as_ref().map(tls_of);
    let login = match sasl {
        true => Some(login(runtime, material.as_ref(), refusal)?),
        false => None,
    };
    let security = match (login, tls) {
        (Some(login), Some(tls)) => Some(login.with_tls(tls)),
        (Some(login), None) => Some(login),
        (None, Some(tls)) => Some(AuthConfig::ssl(tls)),
        (None, None) => None,
    };
    Ok((security, config))
}

fn login(
    runtime: &KafkaRuntime,
    material: Option<&Material>,
    refusal: &Refusal,
) -> Result<AuthConfig, ProviderFailure> {
    let user = || {
        let name = required(runtime.sasl_username.as_deref(), "runtime.kafka.sasl_username")?;
        let password = runtime.sasl_password.as_ref().map(Secret::expose);
        Ok::<_, ProviderFailure>((name, required(password, "runtime.kafka.sasl_password")?))
    };
    let mechanism = runtime.sasl_mechanism.ok_or(ProviderFailure::Config { field: "runtime.kafka.sasl_mechanism" })?;
    match mechanism {
        SaslMechanism::Plain => user().map(|(name, password)| AuthConfig::sasl_plain(name, password)),
        SaslMechanism::ScramSha256 => user().map(|(name, password)| AuthConfig::sasl_scram_sha256(name, password)),
        SaslMechanism::ScramSha512 => user().map(|(name, password)| AuthConfig::sasl_scram_sha512(name, password)),
        SaslMechanism::OAuthBearer => {
            let ca = material.and_then(|material| material.ca_pem.as_deref());
            Ok(AuthConfig::sasl_oauthbearer_provider(Tokens::of(runtime, ca, refusal.clone())?))
        }
        SaslMechanism::AwsMskIam if material.is_none() => Err(ProviderFailure::ConfigInvalid {
            field: "runtime.kafka.security_protocol",
            problem: "must be SASL_SSL for AWS_MSK_IAM",
        }),
        SaslMechanism::AwsMskIam => {
            let region = required(runtime.aws_region.as_deref(), "runtime.kafka.aws_region")?.to_owned();
            Ok(AuthConfig::aws_msk_iam_provider(move || aws_credentials(region.clone())))
        }
    }
}

#[cfg(feature = "aws")]
async fn aws_credentials(region: String) -> krafka::Result<AwsMskIamCredentials> {
    AwsMskIamCredentials::from_default_chain(region).await
}

#[cfg(not(feature = "aws"))]
async fn aws_credentials(region: String) -> krafka::Result<AwsMskIamCredentials> {
    AwsMskIamCredentials::from_env_with_region(region)
}

fn tls_of(material: &Material) -> TlsConfig {
    let mut tls = match &material.ca_pem {
        Some(pem) => TlsConfig::new().with_ca_cert_pem(pem.clone()),
        None => TlsConfig::new().with_native_roots(),
    };
    if let Some((certificate, key)) = &material.client {
        tls = tls.with_client_cert_pem(certificate.clone(), key.clone());
    }
    if let Some(password) = material.key_password() {
        tls = tls.with_client_key_password(password.expose());
    }
    tls
}

fn required<'a>(value: Option<&'a str>, field: &'static str) -> Result<&'a str, ProviderFailure> {
    value.filter(|text| !text.is_empty()).ok_or(ProviderFailure::Config { field })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::Code;
    use crate::project::model::Tls;

    fn plain() -> KafkaRuntime {
        KafkaRuntime::plain("localhost")
    }

    fn sasl(mechanism: SaslMechanism) -> KafkaRuntime {
        KafkaRuntime {
            security_protocol: Some(SecurityProtocol::SaslSsl),
            sasl_mechanism: Some(mechanism),
            sasl_username: Some("alice".into()),
            sasl_password: Some(Secret::new("sentinel-pw")),
            sasl_oauth_token_url: Some("https://idp.test/token".into()),
            sasl_oauth_client_id: Some("id".into()),
            sasl_oauth_client_secret: Some(Secret::new("sentinel-secret")),
            aws_region: Some("eu-west-1".into()),
            ..plain()
        }
    }

    fn built(runtime: &KafkaRuntime) -> Result<Option<AuthConfig>, ProviderFailure> {
        security(runtime, Path::new("/nonexistent"), &Refusal::default()).map(|(security, _)| security)
    }

    #[test]
    fn a_server_without_a_port_gets_the_default_one() {
        assert_eq!(bootstrap(" a , b:1,[::1],[::1]:7,").as_deref(), Ok("a:9092,b:1,[::1]:9092,[::1]:7"));
        assert_eq!(bootstrap(" , "), Err(ProviderFailure::Config { field: "runtime.kafka.bootstrap_servers" }));
    }

    #[test]
    fn every_mechanism_of_the_language_is_built() {
        use krafka::auth::SaslMechanism as Krafka;
        for (mechanism, expected) in [
            (SaslMechanism::Plain, Krafka::Plain),
            (SaslMechanism::ScramSha256, Krafka::ScramSha256),
            (SaslMechanism::ScramSha512, Krafka::ScramSha512),
            (SaslMechanism::OAuthBearer, Krafka::OAuthBearer),
            (SaslMechanism::AwsMskIam, Krafka::AwsMskIam),
        ] {
            let auth = built(&sasl(mechanism)).expect("a configuration").expect("a login");
            assert_eq!(auth.sasl_mechanism(), Some(&expected));
            assert!(auth.requires_tls());
            assert!(!format!("{auth:?}").contains("sentinel"));
        }
        assert!(built(&plain()).expect("a configuration").is_none());
    }

    #[test]
    fn a_missing_part_of_a_login_is_named() {
        let scram = sasl(SaslMechanism::ScramSha512);
        let oauth = sasl(SaslMechanism::OAuthBearer);
        for (runtime, field) in [
            (KafkaRuntime { security_protocol: None, ..scram.clone() }, "runtime.kafka.security_protocol"),
            (KafkaRuntime { sasl_mechanism: None, ..scram.clone() }, "runtime.kafka.sasl_mechanism"),
            (KafkaRuntime { sasl_username: None, ..scram.clone() }, "runtime.kafka.sasl_username"),
            (KafkaRuntime { sasl_password: None, ..scram }, "runtime.kafka.sasl_password"),
            (KafkaRuntime { sasl_oauth_token_url: None, ..oauth.clone() }, "runtime.kafka.sasl_oauth_token_url"),
            (KafkaRuntime { sasl_oauth_client_id: None, ..oauth.clone() }, "runtime.kafka.sasl_oauth_client_id"),
            (KafkaRuntime { sasl_oauth_client_secret: None, ..oauth }, "runtime.kafka.sasl_oauth_client_secret"),
            (KafkaRuntime { aws_region: None, ..sasl(SaslMechanism::AwsMskIam) }, "runtime.kafka.aws_region"),
        ] {
            let failure = built(&runtime).expect_err(field);
            assert_eq!(failure, ProviderFailure::Config { field });
            assert_eq!(failure.code(), Code::E208MissingConfig);
        }
    }

    /// SEC-003: whatever a broker repeats of them is removed.
    #[test]
    fn every_secret_of_the_block_is_known_where_a_broker_speaks() {
        let mut runtime = sasl(SaslMechanism::Plain);
        runtime.tls.key_password = Some(Secret::new("sentinel-key"));
        let known = secrets(&runtime);
        let known: Vec<&str> = known.iter().map(Secret::expose).collect();
        assert_eq!(known, ["sentinel-pw", "sentinel-secret", "sentinel-key"]);
    }

    #[test]
    fn a_missing_ca_file_is_a_tls_failure() {
        let tls = Tls { ca_location: Some("no.pem".into()), ..Tls::default() };
        let runtime = KafkaRuntime { security_protocol: Some(SecurityProtocol::Ssl), tls, ..plain() };
        assert_eq!(built(&runtime).expect_err("no file").code(), Code::E405SslError);
    }

    #[test]
    fn iam_without_tls_is_refused() {
        let mut runtime = sasl(SaslMechanism::AwsMskIam);
        runtime.security_protocol = Some(SecurityProtocol::SaslPlaintext);
        assert_eq!(built(&runtime).expect_err("no TLS").code(), Code::E208MissingConfig);
    }
}
