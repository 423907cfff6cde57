//! A TLS-terminating front, as a company's load balancer is one, and the certificates for it. It stands in for a registry's own TLS
//! and login, which the registry of these tests does not have; what is asked and answered behind it is real.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

/// An authority of a test's own.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

pub enum Validity {
    Current,
    Expired,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Writes the authority's certificate, behind those of `others`, and names the file.
    pub fn file(&self, directory: &Path, others: &[&Path]) -> PathBuf {
        let more = others.iter().map(|other| std::fs::read_to_string(other).expect("a certificate"));
        let path = directory.join("ca.pem");
        std::fs::write(&path, more.chain([self.pem.clone()]).collect::<String>()).expect("written");
        path
    }

    /// What a server with this name shows.
    pub fn server(&self, name: &str, validity: Validity) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        if let Validity::Expired = validity {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        }
        let certificate: CertificateDer<'static> = params.signed_by(&key, &self.issuer).expect("signed").der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth().with_single_cert(vec![certificate], key);
        Arc::new(config.expect("a configuration"))
    }
}

/// One request: its head as it was sent, and its body.
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// What the front does with a request.
pub enum Answer {
    /// Ask the service behind it.
    Pass,
    /// Say this: status line and body.
    Say(&'static str, String),
}

/// A front that listens until the process ends; `decide` sees every request. `upstream`: `host:port` of the service behind it.
pub struct Front {
    pub port: u16,
    seen: Arc<Mutex<usize>>,
}

impl Front {
    pub fn start(
        tls: Option<Arc<ServerConfig>>,
        upstream: &str,
        decide: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a mode");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Mutex::new(0));
        let (count, upstream, decide) = (Arc::clone(&seen), upstream.to_owned(), Arc::new(decide));
        let accept = async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((client, _)) = listener.accept().await {
                let (tls, upstream) = (tls.clone().map(TlsAcceptor::from), upstream.clone());
                let (decide, count) = (Arc::clone(&decide), Arc::clone(&count));
                tokio::spawn(async move {
                    let answer = |request: &Request| {
                        *count.lock().expect("whole") += 1;
                        decide(request)
                    };
                    let _ = match tls {
                        Some(tls) => match tls.accept(client).await {
                            Ok(client) => serve(client, &upstream, answer).await,
                            Err(error) => Err(error),
                        },
                        None => serve(client, &upstream, answer).await,
                    };
                });
            }
        };
        std::thread::spawn(|| {
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(accept)
        });
        Self { port, seen }
    }

    /// How many requests came in.
    pub fn requests(&self) -> usize {
        *self.seen.lock().expect("whole")
    }
}

/// One request of a connection, which is closed behind the answer.
async fn serve(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    upstream: &str,
    decide: impl Fn(&Request) -> Answer,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if client.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut request = Request { head, body: bytes.split_off(end) };
    let length = request.header("content-length").map_or(0, |length| length.parse().expect("a number"));
    while request.body.len() < length {
        if client.read_buf(&mut request.body).await? == 0 {
            return Ok(());
        }
    }
    match decide(&request) {
        Answer::Say(status, body) => {
            let text = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            client.write_all(text.as_bytes()).await?;
        }
        Answer::Pass => {
            let mut server = tokio::net::TcpStream::connect(upstream).await?;
            let lines = request.head.trim_end().lines();
            let kept: String = lines
                .filter(|line| !line.to_ascii_lowercase().starts_with("connection:"))
                .map(|line| format!("{line}\r\n"))
                .collect();
            server.write_all(format!("{kept}Connection: close\r\n\r\n").as_bytes()).await?;
            server.write_all(&request.body).await?;
            tokio::io::copy(&mut server, &mut client).await?;
        }
    }
    client.shutdown().await
}
