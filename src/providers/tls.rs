//! TLS material from the files of a runtime block, and the one builder of every rustls configuration of this program.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pkcs8::EncryptedPrivateKeyInfo;
use pkcs8::der::pem::PemLabel;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use super::ProviderFailure;
use crate::project::fs::read_regular;
use crate::project::model::Tls;
use crate::project::secret::Secret;

/// Far above any bundle of certificates.
const MAX_PEM: usize = 16 << 20;

/// The bytes of the configured files, read once and proved usable.
pub struct Material {
    pub ca_pem: Option<Vec<u8>>,
    /// Certificate chain and private key.
    pub client: Option<(Vec<u8>, Zeroizing<Vec<u8>>)>,
    key_password: Option<Secret>,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Material").finish_non_exhaustive()
    }
}

impl Material {
    /// Reads the files, relative ones below `project_root`. E405 when one cannot be read, E208 when one of a pair is missing.
    pub fn load(tls: &Tls, project_root: &Path) -> Result<Self, ProviderFailure> {
        let read = |path: &Path, what| match read_regular(&project_root.join(path), MAX_PEM) {
            Ok(bytes) if bytes.len() <= MAX_PEM => Ok(bytes),
            Ok(_) | Err(_) => Err(ProviderFailure::Tls { what }),
        };
        let ca_pem = tls
            .ca_location
            .as_deref()
            .map(|path| read(path, "the file of ssl_ca_location cannot be read"))
            .transpose()?;
        let client = match (&tls.certificate_location, &tls.key_location) {
            (None, None) => None,
            (Some(_), None) => return Err(ProviderFailure::Config { field: "ssl_key_location" }),
            (None, Some(_)) => return Err(ProviderFailure::Config { field: "ssl_certificate_location" }),
            (Some(certificate), Some(key)) => Some((
                read(certificate, "the file of ssl_certificate_location cannot be read")?,
                Zeroizing::new(read(key, "the file of ssl_key_location cannot be read")?),
            )),
        };
        Ok(Self { ca_pem, client, key_password: tls.key_password.clone() })
    }

    pub fn key_password(&self) -> Option<&Secret> {
        self.key_password.as_ref()
    }

    /// The configured CA as the only root, else the platform's roots; the client certificate when there is one.
    pub fn client_config(&self) -> Result<ClientConfig, ProviderFailure> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| ProviderFailure::Tls { what: "no protocol version is usable" })?
            .with_root_certificates(self.roots()?);
        let Some((certificate, key)) = &self.client else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates(certificate, "the file of ssl_certificate_location holds no PEM certificate")?;
        builder
            .with_client_auth_cert(chain, private_key(key, self.key_password.as_ref())?)
            .map_err(|_| ProviderFailure::Tls { what: "the client certificate and its key do not fit together" })
    }

    fn roots(&self) -> Result<RootCertStore, ProviderFailure> {
        let mut roots = RootCertStore::empty();
        match &self.ca_pem {
            Some(pem) => {
                const WHAT: &str = "the file of ssl_ca_location holds no usable PEM certificate";
                for certificate in certificates(pem, WHAT)? {
                    roots.add(certificate).map_err(|_| ProviderFailure::Tls { what: WHAT })?;
                }
            }
            None => {
                let platform = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(platform.certs);
            }
        }
        Ok(roots)
    }
}

/// Whether a failure of TLS stands anywhere in the chain of causes, however it was wrapped.
pub fn is_tls_error(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        cause = match error.downcast_ref::<std::io::Error>() {
            Some(wrapper) => wrapper.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    false
}

/// Whether a TLS server turns this client down, or this client the server. A server that speaks TLS 1.3 refuses a client's
/// certificate only after the handshake: the first bytes that it sends tell. Nothing is written but the handshake.
pub async fn is_refused(address: &str, config: ClientConfig, bound: Duration) -> bool {
    let attempt = async {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        let stream = TcpStream::connect(address).await?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        stream.read_u8().await
    };
    match tokio::time::timeout(bound, attempt).await {
        Ok(Err(error)) => is_tls_error(&error),
        Ok(Ok(_)) | Err(_) => false,
    }
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, ProviderFailure> {
    let list = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| ProviderFailure::Tls { what })?;
    if list.is_empty() { Err(ProviderFailure::Tls { what }) } else { Ok(list) }
}

/// PKCS#8, PKCS#1 or SEC1; encrypted PKCS#8 with its password.
fn private_key(pem: &[u8], password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, ProviderFailure> {
    let encrypted = std::str::from_utf8(pem)
        .ok()
        .and_then(|text| text.find("-----BEGIN ENCRYPTED PRIVATE KEY-----").map(|start| &text[start..]));
    let Some(encrypted) = encrypted else {
        return PrivateKeyDer::from_pem_slice(pem).map_err(|_| ProviderFailure::Tls {
            what: "the file of ssl_key_location holds no usable PEM private key",
        });
    };
    let password = password.ok_or(ProviderFailure::Config { field: "ssl_key_password" })?;
    let undecryptable =
        || ProviderFailure::Tls { what: "the key of ssl_key_location cannot be decrypted with ssl_key_password" };
    let (label, document) = pkcs8::SecretDocument::from_pem(encrypted.trim_end()).map_err(|_| undecryptable())?;
    if label != EncryptedPrivateKeyInfo::PEM_LABEL {
        return Err(undecryptable());
    }
    let key = EncryptedPrivateKeyInfo::try_from(document.as_bytes())
        .and_then(|info| info.decrypt(password.expose()))
        .map_err(|_| undecryptable())?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec())))
}

#[cfg(test)]
mod tests;
