//! The one HTTP policy of all providers: no redirects, no cookies, no decompression, bounded bodies, strict JSON, reads
//! retried and mutations sent once on a connection of their own.
#![expect(clippy::disallowed_methods, reason = "measures how long a request took")]

use std::error::Error;
use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use reqwest::{Client, Method, Response, StatusCode, Url, redirect, retry};
use serde_json::Value;
use tokio::time::Instant;

use super::guard::guarded;
use super::tls::{self, Material};
use super::{Ctx, Identity, MutationGuard, ProviderFailure};
use crate::compiler::strict_json;
use crate::project::endpoint::{Endpoint, EndpointError};
use crate::project::model::BasicAuth;
use crate::project::secret::Secret;

const CONNECT: Duration = Duration::from_secs(10);
const TOTAL: Duration = Duration::from_secs(30);
const READ_ATTEMPTS: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Bytes of an answer that names one thing, and of every answer to a mutation.
pub const STRICT_LIMIT: usize = 1024 * 1024;
/// Bytes of an answer that lists things.
pub const LIST_LIMIT: usize = 8 * 1024 * 1024;

/// Unreserved characters of RFC 3986 stay; everything else of a name is encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The names of a service's settings, for errors.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    pub url: &'static str,
    pub username: &'static str,
    pub password: &'static str,
}

/// How a service is logged in to.
pub enum Login<'a> {
    Basic(&'a BasicAuth),
    Bearer(&'a Secret),
}

/// One request: `path` are segments below the base, encoded here; `query` is fixed text.
pub struct Request<'a> {
    pub method: Method,
    pub path: &'a [&'a str],
    pub query: &'static str,
    pub body: Option<Vec<u8>>,
    pub limit: usize,
}

impl<'a> Request<'a> {
    pub fn get(path: &'a [&'a str]) -> Self {
        Self { method: Method::GET, path, query: "", body: None, limit: STRICT_LIMIT }
    }
}

/// A whole answer within its bound.
pub struct Answer {
    pub status: StatusCode,
    body: Vec<u8>,
    announces_body: bool,
}

impl Answer {
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Its head says that a body follows, whether or not the status allows one.
    pub fn announces_body(&self) -> bool {
        self.announces_body
    }

    /// The body by the strict reader: one value, no duplicate keys, no number out of range.
    pub fn json(&self) -> Result<Value, ProviderFailure> {
        strict_json::value(&self.body, self.body.len()).map_err(|_| ProviderFailure::Protocol { what: "JSON body" })
    }
}

/// Two connection pools to one service: reads keep theirs alive, every mutation opens its own.
#[derive(Clone)]
pub struct ProviderHttp {
    base: String,
    /// Its block of the runtime, for log records.
    service: &'static str,
    media_type: &'static str,
    reads: Client,
    mutations: Client,
    /// Bound of one read with all its attempts, and of one mutation.
    total: Duration,
}

impl fmt::Debug for ProviderHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderHttp").finish_non_exhaustive()
    }
}

/// A request that did not bring an answer. `sent`: bytes may have reached the server.
struct Lost {
    failure: ProviderFailure,
    sent: bool,
    /// Whether the same read may succeed when asked again.
    passing: bool,
}

impl ProviderHttp {
    pub fn new(
        url: &str,
        login: Login<'_>,
        material: &Material,
        media_type: &'static str,
        fields: Fields,
    ) -> Result<Self, ProviderFailure> {
        let base = Endpoint::normalize(url).map_err(|error: EndpointError| ProviderFailure::ConfigInvalid {
            field: fields.url,
            problem: error.problem(),
        })?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(media_type));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(value) = authorization(login, fields)? {
            headers.insert(AUTHORIZATION, value);
        }
        let build = |keep_alive: bool| {
            let client = Client::builder()
                .user_agent(concat!("streamt/", env!("CARGO_PKG_VERSION")))
                .default_headers(headers.clone())
                .tls_backend_preconfigured(material.client_config()?)
                .redirect(redirect::Policy::none())
                .retry(retry::never())
                .referer(false)
                .http1_only()
                .connect_timeout(CONNECT);
            let client = if keep_alive { client } else { client.pool_max_idle_per_host(0) };
            client.build().map_err(|_| ProviderFailure::Tls { what: "the HTTP client cannot be built" })
        };
        Ok(Self {
            base: base.as_str().to_owned(),
            service: fields.url.strip_suffix(".url").unwrap_or(fields.url),
            media_type,
            reads: build(true)?,
            mutations: build(false)?,
            total: TOTAL,
        })
    }

    /// Asks up to three times while no connection or a 5xx comes back. Any other status is an answer. All attempts share one
    /// deadline: a server that sends byte by byte holds its caller no longer than one that is silent.
    pub async fn read(&self, ctx: &Ctx, request: &Request<'_>) -> Result<Answer, ProviderFailure> {
        let url = self.url(request)?;
        let ctx = &ctx.within(self.total);
        ctx.read(async {
            let mut attempt = 1;
            loop {
                let outcome = self.once(&self.reads, ctx, request, url.clone(), attempt).await;
                let passing = match &outcome {
                    Ok(answer) => answer.status.is_server_error(),
                    Err(lost) => lost.passing,
                };
                if !passing || attempt == READ_ATTEMPTS {
                    return outcome.map_err(|lost| lost.failure);
                }
                tracing::info!(service = self.service, attempt, "asks again");
                tokio::time::sleep(RETRY_PAUSE * attempt).await;
                attempt += 1;
            }
        })
        .await
    }

    /// Asks exactly once, within the same deadline.
    pub async fn read_once(&self, ctx: &Ctx, request: &Request<'_>) -> Result<Answer, ProviderFailure> {
        let url = self.url(request)?;
        let ctx = &ctx.within(self.total);
        ctx.read(async { self.once(&self.reads, ctx, request, url, 1).await.map_err(|lost| lost.failure) }).await
    }

    /// Sends once, under the guard. An answer is returned whatever its status; an unanswered request is uncertain.
    pub async fn mutate<G: MutationGuard>(
        &self,
        ctx: &Ctx,
        guard: &G,
        request: &Request<'_>,
        stage: &'static str,
        subject: &Identity,
    ) -> Result<Answer, ProviderFailure> {
        let url = self.url(request)?;
        if ctx.cancel.is_cancelled() {
            return Err(ProviderFailure::Aborted { uncertain: false });
        }
        let answer = guarded(guard, self.once(&self.mutations, ctx, request, url, 1)).await?;
        answer.map_err(|lost| match lost.sent {
            true => lost.failure.after_commit(stage, vec![subject.clone()]),
            false => lost.failure,
        })
    }

    async fn once(
        &self,
        client: &Client,
        ctx: &Ctx,
        request: &Request<'_>,
        url: Url,
        attempt: u32,
    ) -> Result<Answer, Lost> {
        // The path below the base holds names only; address, headers and bodies are never logged.
        let (service, method, path) = (self.service, &request.method, request.path.join("/"));
        tracing::trace!(service, %method, path, query = request.query, attempt, "request");
        let begun = Instant::now();
        let outcome = self.exchange(client, ctx, request, url).await;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &outcome {
            Ok(answer) => {
                let (status, bytes) = (answer.status.as_u16(), answer.body.len());
                tracing::debug!(service, %method, path, attempt, status, bytes, ms, "answered");
            }
            Err(Lost { failure, sent, .. }) => {
                tracing::warn!(service, %method, path, attempt, sent, ms, "request {failure}");
            }
        }
        outcome
    }

    async fn exchange(&self, client: &Client, ctx: &Ctx, request: &Request<'_>, url: Url) -> Result<Answer, Lost> {
        let mut builder = client.request(request.method.clone(), url).timeout(ctx.at_most(self.total));
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, self.media_type).body(body.clone());
        }
        let response = builder.send().await.map_err(|error| lost(&error))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(Lost { failure: ProviderFailure::Protocol { what: "redirect" }, sent: true, passing: false });
        }
        let announces = announces_body(response.headers());
        let body = bounded(response, request.limit).await?;
        Ok(Answer { status, body, announces_body: announces })
    }

    /// Parsers rewrite `.` and `..`: such a name would address something else.
    fn url(&self, request: &Request<'_>) -> Result<Url, ProviderFailure> {
        let mut path = String::new();
        for segment in request.path {
            path.push('/');
            path.extend(utf8_percent_encode(segment, SEGMENT));
        }
        let unaddressable = || ProviderFailure::Unsupported { what: "a name that no URL can hold" };
        let url = Url::parse(&format!("{}{path}{}", self.base, request.query)).map_err(|_| unaddressable())?;
        let expected = request.path.iter().all(|segment| !matches!(*segment, "" | "." | ".."));
        if expected && url.path().ends_with(&path) { Ok(url) } else { Err(unaddressable()) }
    }
}

fn announces_body(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0");
    length || headers.contains_key(TRANSFER_ENCODING)
}

async fn bounded(mut response: Response, limit: usize) -> Result<Vec<u8>, Lost> {
    let refused = |failure| Lost { failure, sent: true, passing: false };
    if let Some(length) = response.headers().get(CONTENT_LENGTH) {
        let digits = length.to_str().ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let length = digits.and_then(|text| text.parse::<usize>().ok());
        if length.is_none_or(|length| length > limit) {
            return Err(refused(ProviderFailure::TooLarge));
        }
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(refused(ProviderFailure::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn lost(error: &reqwest::Error) -> Lost {
    let sent = !(error.is_connect() || error.is_builder());
    let source = error.source();
    if source.is_some_and(tls::is_tls_error) {
        return Lost { failure: ProviderFailure::Tls { what: "the handshake with the server" }, sent, passing: false };
    }
    let failure = match error.is_timeout() && sent {
        true => ProviderFailure::Timeout,
        false => ProviderFailure::Unreachable,
    };
    Lost { failure, sent, passing: true }
}

fn authorization(login: Login<'_>, fields: Fields) -> Result<Option<HeaderValue>, ProviderFailure> {
    let (text, field) = match login {
        Login::Bearer(token) => (format!("Bearer {}", token.expose()), "token"),
        Login::Basic(auth) => match (&auth.username, &auth.password) {
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(ProviderFailure::Config { field: fields.password }),
            (None, Some(_)) => return Err(ProviderFailure::Config { field: fields.username }),
            (Some(name), Some(password)) => {
                let pair = zeroize::Zeroizing::new(format!("{name}:{}", password.expose()));
                (format!("Basic {}", STANDARD.encode(pair.as_bytes())), fields.password)
            }
        },
    };
    let text = zeroize::Zeroizing::new(text);
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| ProviderFailure::ConfigInvalid { field, problem: "holds characters that no header can carry" })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::project::model::Tls;
    use crate::providers::Purpose;

    /// SEC-004: what prints requests leaves such a header out.
    #[test]
    fn the_header_of_a_login_is_marked_as_sensitive() {
        let fields = Fields { url: "url", username: "username", password: "password" };
        let auth = BasicAuth { username: Some("u".into()), password: Some(Secret::new("p")) };
        for login in [Login::Basic(&auth), Login::Bearer(&Secret::new("t"))] {
            let header = authorization(login, fields).unwrap().unwrap();
            assert!(header.is_sensitive());
            assert_eq!(format!("{header:?}"), "Sensitive");
        }
    }

    /// A stand-in that sends its answer byte by byte, and for ever.
    #[tokio::test]
    async fn a_server_that_drips_is_asked_once_and_given_up_at_the_deadline_of_the_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                seen.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").await;
                    while stream.write_all(b" ").await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                });
            }
        });
        let fields = Fields { url: "url", username: "username", password: "password" };
        let material = Material::load(&Tls::default(), std::path::Path::new("/")).unwrap();
        let login = BasicAuth::default();
        let http = ProviderHttp::new(&url, Login::Basic(&login), &material, "application/json", fields).unwrap();
        let http = ProviderHttp { total: Duration::from_millis(500), ..http };
        let ctx = Ctx::new(Purpose::Plan, Duration::from_secs(60), CancellationToken::new());
        let outcome = http.read(&ctx, &Request::get(&["subjects"])).await;
        assert_eq!(outcome.map(|answer| answer.status), Err(ProviderFailure::Timeout));
        assert_eq!(connections.load(Ordering::SeqCst), 1);
    }
}
