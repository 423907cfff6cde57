//! Tokens of an identity provider (OIDC client credentials), and why there was none: the Kafka client passes on only that a
//! connection failed.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use krafka::auth::oidc::{ClientCredentials, OidcTokenProvider};
use krafka::auth::{CredentialProvider, OAuthBearerToken};
use krafka::error::KrafkaError;

use crate::project::model::KafkaRuntime;
use crate::project::secret::Secret;
use crate::providers::tls::is_tls_error;
use crate::providers::{ProviderFailure, VendorText};

/// The last failed request of a connection, kept until it is asked for.
#[derive(Clone, Default)]
pub struct Refusal(Arc<Mutex<Option<ProviderFailure>>>);

impl Refusal {
    fn set(&self, failure: Option<ProviderFailure>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    pub fn take(&self) -> Option<ProviderFailure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Fetches a token for every connection that needs one.
pub struct Tokens {
    provider: OidcTokenProvider,
    url: String,
    secret: Secret,
    refusal: Refusal,
}

impl Tokens {
    /// `ca_pem`: the project's own authority, believed beside those of the platform, for the token endpoint belongs to another
    /// service than the broker. E208 when a part is missing.
    pub fn of(runtime: &KafkaRuntime, ca_pem: Option<&[u8]>, refusal: Refusal) -> Result<Self, ProviderFailure> {
        let required = |value: Option<&str>, field| match value.filter(|text| !text.is_empty()) {
            Some(text) => Ok(text.to_owned()),
            None => Err(ProviderFailure::Config { field }),
        };
        let url = required(runtime.sasl_oauth_token_url.as_deref(), "runtime.kafka.sasl_oauth_token_url")?;
        let id = required(runtime.sasl_oauth_client_id.as_deref(), "runtime.kafka.sasl_oauth_client_id")?;
        let secret = runtime.sasl_oauth_client_secret.clone().filter(|secret| !secret.expose().is_empty());
        let secret = secret.ok_or(ProviderFailure::Config { field: "runtime.kafka.sasl_oauth_client_secret" })?;
        let mut builder =
            OidcTokenProvider::builder(&url).credentials(ClientCredentials::secret(id, secret.expose())).native_roots();
        if let Some(pem) = ca_pem {
            builder = builder.ca_cert_pem(pem);
        }
        if let Some(scope) = &runtime.sasl_oauth_scope {
            builder = builder.scope(scope);
        }
        let provider = builder.build().map_err(|_| ProviderFailure::ConfigInvalid {
            field: "runtime.kafka.sasl_oauth_token_url",
            problem: "is not an absolute https URL",
        })?;
        Ok(Self { provider, url, secret, refusal })
    }

    fn classify(&self, error: &KrafkaError) -> ProviderFailure {
        match error {
            KrafkaError::Auth { source: Some(source), .. } if source.source().is_some_and(is_tls_error) => {
                ProviderFailure::Tls { what: "the handshake with the identity provider" }
            }
            KrafkaError::Network(cause) if is_tls_error(cause.as_ref()) => {
                ProviderFailure::Tls { what: "the handshake with the identity provider" }
            }
            KrafkaError::Auth { source: Some(_), .. } | KrafkaError::Network(_) | KrafkaError::Timeout { .. } => {
                ProviderFailure::IdentityProviderUnreachable
            }
            KrafkaError::Auth { source: None, message } => ProviderFailure::Auth { text: self.told(message) },
            _ => ProviderFailure::Protocol { what: "reply of the identity provider" },
        }
    }

    /// Status and error of the answer (RFC 6749, 5.2), without the address that stands before them.
    fn told(&self, message: &str) -> Option<VendorText> {
        let answer = message.split_once(&self.url).map(|(_, rest)| rest.trim_start());
        let text = match answer.filter(|rest| rest.starts_with("returned HTTP ")) {
            Some(rest) => format!("the identity provider {rest}"),
            None => "the answer of the identity provider holds no token".to_owned(),
        };
        VendorText::at_border(&text, &[&self.secret])
    }
}

impl CredentialProvider<OAuthBearerToken> for Tokens {
    async fn credentials(&self) -> krafka::error::Result<OAuthBearerToken> {
        let answered = self.provider.credentials().await;
        self.refusal.set(answered.as_ref().err().map(|error| self.classify(error)));
        answered
    }
}
