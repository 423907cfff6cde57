//! One spelling for one HTTP endpoint. Only the host passes through a URL parser: parsers rewrite paths, and two spellings of
//! one endpoint must not become two identities, nor two endpoints one.

use std::fmt;

use url::{Host, Url};

/// `scheme://host[:port][path]` in its one spelling, without user, query, fragment or final slash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint(String);

/// Why a text is no endpoint. It never holds the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointError {
    Empty,
    Blank,
    Query,
    Scheme,
    UserInfo,
    Host,
    Port,
    Path,
}

impl EndpointError {
    /// Completes the sentence "the URL …".
    pub const fn problem(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::Blank => "contains white space or control characters",
            Self::Query => "has a query or a fragment",
            Self::Scheme => "is not an http or https URL",
            Self::UserInfo => "contains a user or a password",
            Self::Host => "has no valid host",
            Self::Port => "has no valid port",
            Self::Path => "has an empty or a dot segment in its path",
        }
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.problem())
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint {
    pub fn normalize(text: &str) -> Result<Self, EndpointError> {
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(EndpointError::Blank);
        }
        if text.contains(['?', '#']) {
            return Err(EndpointError::Query);
        }
        let (scheme, rest) = text.split_once("://").ok_or(EndpointError::Scheme)?;
        let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => ("http", 80),
            "https" => ("https", 443),
            _ => return Err(EndpointError::Scheme),
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(EndpointError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        let host = normal_host(host)?;
        let path = normal_path(path)?;
        Ok(Self(match port {
            Some(port) if port != default_port => format!("{scheme}://{host}:{port}{path}"),
            Some(_) | None => format!("{scheme}://{host}{path}"),
        }))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An endpoint may name what must not be shown.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endpoint(..)")
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), EndpointError> {
    let after_host = match authority.strip_prefix('[') {
        Some(inner) => inner.find(']').ok_or(EndpointError::Host)? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(after_host);
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok((host, None)),
        None => Err(EndpointError::Host),
        Some(digits) if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) => Err(EndpointError::Port),
        Some(digits) => match digits.parse::<u16>() {
            Ok(port) if port > 0 => Ok((host, Some(port))),
            Ok(_) | Err(_) => Err(EndpointError::Port),
        },
    }
}

fn normal_host(host: &str) -> Result<String, EndpointError> {
    if host.is_empty() || host.contains(['%', '\\']) {
        return Err(EndpointError::Host);
    }
    let url = Url::parse(&format!("http://{host}/")).map_err(|_| EndpointError::Host)?;
    if url.path() != "/" || url.port().is_some() {
        return Err(EndpointError::Host);
    }
    let normal = match url.host() {
        Some(Host::Ipv6(address)) => format!("[{address}]"),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Domain(domain)) => domain.to_owned(),
        None => return Err(EndpointError::Host),
    };
    let numeric = host.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b'x' | b'X'));
    let is_ipv4 = matches!(url.host(), Some(Host::Ipv4(_)));
    if (numeric || is_ipv4) && !normal.eq_ignore_ascii_case(host) {
        return Err(EndpointError::Host);
    }
    Ok(normal)
}

fn normal_path(path: &str) -> Result<&str, EndpointError> {
    let path = path.trim_end_matches('/');
    match path.split('/').skip(1).any(|segment| matches!(segment, "" | "." | "..")) {
        true => Err(EndpointError::Path),
        false => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::canonical::Checksum;

    fn normal(text: &str) -> Result<String, EndpointError> {
        Endpoint::normalize(text).map(|endpoint| endpoint.as_str().to_owned())
    }

    #[test]
    fn spellings_of_one_endpoint_have_one_digest() {
        for (given, normalised, digest) in [
            (
                "HTTPS://Connect.Example.TEST:443/",
                "https://connect.example.test",
                "e9b1bf835a819a4cbbedc6712019be3e74daec37fd3709464eaf327b095e162e",
            ),
            (
                "http://[2001:DB8::1]:8083/base/",
                "http://[2001:db8::1]:8083/base",
                "a6714bc041f88004508ce50b048f2634038cf10bfc1cb786dbd6a43a536c0fc0",
            ),
            (
                "http://bücher.example:8083",
                "http://xn--bcher-kva.example:8083",
                "9aa1a9daf2cfd3299e5b3a894b1bc9c6f8c2d7cf00757d3d49c6191c925fd8e3",
            ),
        ] {
            assert_eq!(normal(given).as_deref(), Ok(normalised));
            assert_eq!(Checksum::of_bytes(normalised.as_bytes()).hex(), digest);
        }
    }

    #[test]
    fn only_what_names_the_same_endpoint_is_rewritten() {
        for (given, normalised) in [
            ("http://h.test:80", "http://h.test"),
            ("https://h.test:80", "https://h.test:80"),
            ("http://h.test./a%2Fb%7e", "http://h.test./a%2Fb%7e"),
            ("http://h.test/a///", "http://h.test/a"),
            ("http://[2001:0db8:0:0::1]", "http://[2001:db8::1]"),
            ("http://127.0.0.1:8081", "http://127.0.0.1:8081"),
            ("http://beef:1", "http://beef:1"),
            ("http://h.test:65535/apis/ccompat/v7", "http://h.test:65535/apis/ccompat/v7"),
        ] {
            assert_eq!(normal(given).as_deref(), Ok(normalised), "{given}");
        }
    }

    #[test]
    fn what_could_name_two_endpoints_is_rejected() {
        use EndpointError as E;
        for (given, error) in [
            ("", E::Empty),
            (" http://h", E::Blank),
            ("http://h/a\u{85}b", E::Blank),
            ("http://h/a\u{7}", E::Blank),
            ("http://host/a?b", E::Query),
            ("http://host/a#b", E::Query),
            ("ftp://host", E::Scheme),
            ("host:8083", E::Scheme),
            ("https://user:pw@host", E::UserInfo),
            ("https://user@host", E::UserInfo),
            ("http://", E::Host),
            ("http:///path", E::Host),
            ("http://ho%41st", E::Host),
            ("http://[fe80::1%25eth0]:80", E::Host),
            ("http://[::1", E::Host),
            ("http://[::1]x", E::Host),
            ("http://0x7f.1", E::Host),
            ("http://0177.0.0.1", E::Host),
            ("http://2130706433", E::Host),
            ("http://１２７.0.0.1", E::Host),
            ("http://a\\b", E::Host),
            ("http://h:0", E::Port),
            ("http://h:65536", E::Port),
            ("http://h:", E::Port),
            ("http://h:8a", E::Port),
            ("http://h.test:8083//a/", E::Path),
            ("http://h/a/../b", E::Path),
            ("http://h/./b", E::Path),
        ] {
            assert_eq!(normal(given), Err(error), "{given}");
        }
    }

    /// SEC-004
    #[test]
    fn neither_errors_nor_debug_output_show_the_endpoint() {
        let endpoint = Endpoint::normalize("http://sentinel.test").expect("an endpoint");
        assert!(!format!("{endpoint:?}").contains("sentinel"));
        assert!(!EndpointError::UserInfo.to_string().contains("sentinel"));
    }
}
