//! TLS of a state connection, in the modes of `sslmode`. The crypto is the one of every other client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::state::error::StateError;

pub type Connector = MakeRustlsConnect;

pub enum Roots {
    Platform,
    File(PathBuf),
}

/// Which server certificate is accepted.
pub enum Trust {
    /// Encryption alone.
    Any,
    /// Any name, signed by one of these.
    Chain(Roots),
    /// The name of the host, signed by one of these.
    Full(Roots),
}

fn unusable(what: &'static str) -> StateError {
    StateError::unavailable(what).suggest("check the files that the connection string names")
}

/// `client` = PEM files of a certificate chain and its key.
pub fn connector(trust: &Trust, client: Option<&(PathBuf, PathBuf)>) -> Result<Connector, StateError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|_| unusable("no TLS version is usable"))?;
    let builder = match trust {
        Trust::Full(from) => builder.with_root_certificates(roots(from)?),
        Trust::Chain(from) => {
            let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(from)?), Arc::clone(&provider))
                .build()
                .map_err(|_| unusable("the file of 'sslrootcert' holds no usable PEM certificate"))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName { chain: Some(chain), provider }))
        }
        Trust::Any => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName { chain: None, provider })),
    };
    let config = match client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate, "the file of 'sslcert' holds no usable PEM certificate")?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|_| unusable("the file of 'sslkey' holds no usable PEM private key"))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|_| unusable("'sslcert' and 'sslkey' do not fit together"))?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, StateError> {
    let list: Vec<_> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(|_| unusable(what))?;
    if list.is_empty() { Err(unusable(what)) } else { Ok(list) }
}

fn roots(from: &Roots) -> Result<RootCertStore, StateError> {
    let mut roots = RootCertStore::empty();
    match from {
        Roots::Platform => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::File(path) => {
            const WHAT: &str = "the file of 'sslrootcert' holds no usable PEM certificate";
            for certificate in certificates(path, WHAT)? {
                roots.add(certificate).map_err(|_| unusable(WHAT))?;
            }
        }
    }
    Ok(roots)
}

/// Verifies the chain when there is one, and never the name. Signatures of the handshake are always verified.
#[derive(Debug)]
struct AnyName {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is compared after the chain was verified.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
