//! Connection strings: what they may say, and how their TLS is meant. An error names a parameter or a variable, never a value.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode};

use super::tls;
use crate::project::secret::Secret;
use crate::state::error::StateError;

/// Bound of one connection attempt.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const REFUSED: [&str; 8] = [
    "service",
    "servicefile",
    "passfile",
    "options",
    "target_session_attrs",
    "load_balance_hosts",
    "replication",
    "requiressl",
];

/// One direct endpoint, ready to connect to.
#[derive(Clone)]
pub struct Endpoint {
    pub config: Config,
    pub tls: tls::Connector,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Endpoint(**********)")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The parameters of a DSN as written.
#[derive(Default)]
struct Parameters {
    list: Vec<(String, String)>,
}

impl Parameters {
    fn push(&mut self, key: &str, value: String) -> Result<(), StateError> {
        const KNOWN: [&str; 12] = [
            "host",
            "hostaddr",
            "port",
            "dbname",
            "user",
            "password",
            "sslmode",
            "sslrootcert",
            "sslcert",
            "sslkey",
            "connect_timeout",
            "channel_binding",
        ];
        if let Some(name) = REFUSED.iter().find(|name| **name == key) {
            return Err(refused(format!("its connection string uses '{name}', which is not supported")));
        }
        let Some(name) = KNOWN.iter().find(|name| **name == key) else {
            return Err(refused("its connection string has a parameter that is not supported"));
        };
        if self.list.iter().any(|(known, _)| known == key) {
            return Err(refused(format!("its connection string has more than one '{name}'")));
        }
        if value.is_empty() {
            return Err(refused(format!("'{name}' of its connection string is empty")));
        }
        if matches!(key, "host" | "hostaddr" | "port") && value.contains(',') {
            return Err(one_endpoint());
        }
        self.list.push((key.to_owned(), value));
        Ok(())
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.list.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

impl Drop for Parameters {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.list.iter_mut().for_each(|(_, value)| value.zeroize());
    }
}

/// Reads a URL or `key=value` text. Files of TLS are relative to `root`. E420.
pub fn read(dsn: &Secret, root: &Path) -> Result<Endpoint, StateError> {
    let text = dsn.expose().trim();
    let parameters = match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
        Some(rest) => url(rest)?,
        None => pairs(text)?,
    };
    endpoint(&parameters, root)
}

fn refused(detail: impl Into<String>) -> StateError {
    StateError::unavailable(detail)
        .suggest("give one direct endpoint as a postgresql URL: user, password, host, port and database, with sslmode=verify-full")
}

fn malformed() -> StateError {
    refused("its connection string cannot be read")
}

fn one_endpoint() -> StateError {
    refused("its connection string names more than one endpoint")
}

fn decoded(text: &str) -> Result<String, StateError> {
    let bytes = text.as_bytes();
    let broken = bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'%' && !bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if broken {
        return Err(malformed());
    }
    let text = percent_decode_str(text).decode_utf8().map_err(|_| malformed())?.into_owned();
    if text.contains('\0') { Err(malformed()) } else { Ok(text) }
}

/// `[user[:password]@][host][:port][/dbname][?key=value&...]`
fn url(rest: &str) -> Result<Parameters, StateError> {
    let mut parameters = Parameters::default();
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let (authority, database) = rest.split_once('/').map_or((rest, None), |(host, name)| (host, Some(name)));
    let (user_info, host) = authority.rsplit_once('@').map_or((None, authority), |(info, host)| (Some(info), host));
    if let Some(info) = user_info {
        let (user, password) = info.split_once(':').map_or((info, None), |(user, password)| (user, Some(password)));
        parameters.push("user", decoded(user)?)?;
        if let Some(password) = password.filter(|password| !password.is_empty()) {
            parameters.push("password", decoded(password)?)?;
        }
    }
    if host.contains(',') {
        return Err(one_endpoint());
    }
    let (host, port) = match host.strip_prefix('[') {
        Some(bracketed) => {
            let (address, port) = bracketed.split_once(']').ok_or_else(malformed)?;
            match port.strip_prefix(':') {
                Some(port) => (address, Some(port)),
                None if port.is_empty() => (address, None),
                None => return Err(malformed()),
            }
        }
        None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    if !host.is_empty() {
        parameters.push("host", decoded(host)?)?;
    }
    if let Some(port) = port {
        parameters.push("port", decoded(port)?)?;
    }
    if let Some(name) = database.filter(|name| !name.is_empty()) {
        parameters.push("dbname", decoded(name)?)?;
    }
    for pair in query.into_iter().flat_map(|query| query.split('&')) {
        let (key, value) = pair.split_once('=').ok_or_else(malformed)?;
        parameters.push(&decoded(key)?, decoded(value)?)?;
    }
    Ok(parameters)
}

/// `key = value` pairs as libpq writes them: blanks between, single quotes around, backslash before a literal character.
fn pairs(text: &str) -> Result<Parameters, StateError> {
    let mut parameters = Parameters::default();
    let mut rest = text.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        if rest.peek().is_none() {
            break;
        }
        let mut key = String::new();
        while let Some(c) = rest.next_if(|c| *c != '=' && !c.is_whitespace()) {
            key.push(c);
        }
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        if rest.next() != Some('=') {
            return Err(malformed());
        }
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        let quoted = rest.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match rest.next() {
                Some('\'') if quoted => break,
                Some('\\') => value.push(rest.next().ok_or_else(malformed)?),
                Some(c) if !quoted && c.is_whitespace() => break,
                Some('\0') => return Err(malformed()),
                Some(c) => value.push(c),
                None if quoted => return Err(malformed()),
                None => break,
            }
        }
        parameters.push(&key, value)?;
    }
    if parameters.list.is_empty() { Err(malformed()) } else { Ok(parameters) }
}

/// An endpoint on this machine: a socket directory, `localhost`, a loopback address.
fn is_loopback(host: Option<&str>) -> bool {
    host.is_none_or(|host| {
        host.starts_with('/')
            || host.eq_ignore_ascii_case("localhost")
            || IpAddr::from_str(host).is_ok_and(|address| address.is_loopback())
    })
}

fn endpoint(parameters: &Parameters, root: &Path) -> Result<Endpoint, StateError> {
    let address = match parameters.get("hostaddr") {
        Some(text) => Some(
            IpAddr::from_str(text).map_err(|_| refused("'hostaddr' of its connection string is not an IP address"))?,
        ),
        None => None,
    };
    let host = parameters.get("host");
    let loopback = is_loopback(parameters.get("hostaddr").or(host));
    let mode = match parameters.get("sslmode") {
        None if loopback => Mode::Prefer,
        None => Mode::Require,
        Some("disable") => Mode::Disable,
        Some("allow" | "prefer") => Mode::Prefer,
        Some("require") => Mode::Require,
        Some("verify-ca") => Mode::VerifyCa,
        Some("verify-full") => Mode::VerifyFull,
        Some(_) => return Err(refused("'sslmode' of its connection string is not one of its modes")),
    };
    if !loopback && matches!(mode, Mode::Disable | Mode::Prefer) {
        return Err(StateError::unavailable(
            "its connection string allows an unencrypted connection to another machine",
        )
        .suggest("use sslmode=verify-full, or at least sslmode=require"));
    }
    let root_certificate = parameters.get("sslrootcert");
    let mode = match (mode, root_certificate) {
        (Mode::Require | Mode::VerifyCa, Some("system")) => Mode::VerifyFull,
        (mode, _) => mode,
    };
    let file = |text: &str| -> PathBuf { root.join(text) };
    let roots = match root_certificate {
        Some("system") | None => tls::Roots::Platform,
        Some(path) => tls::Roots::File(file(path)),
    };
    let trust = match (mode, root_certificate) {
        (Mode::VerifyFull, _) => tls::Trust::Full(roots),
        (Mode::VerifyCa, None) => {
            return Err(refused("sslmode=verify-ca of its connection string needs 'sslrootcert'"));
        }
        (Mode::VerifyCa, Some(_)) | (Mode::Require, Some(_)) => tls::Trust::Chain(roots),
        (Mode::Disable | Mode::Prefer | Mode::Require, _) => tls::Trust::Any,
    };
    let client = match (parameters.get("sslcert"), parameters.get("sslkey")) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((file(certificate), file(key))),
        (Some(_), None) | (None, Some(_)) => {
            return Err(refused("'sslcert' and 'sslkey' of its connection string belong together"));
        }
    };

    let mut config = Config::new();
    let user = parameters.get("user").ok_or_else(|| refused("its connection string names no user"))?;
    config.user(user).dbname(parameters.get("dbname").unwrap_or(user));
    if let Some(password) = parameters.get("password") {
        config.password(password);
    }
    match (host, address) {
        (Some(host), Some(address)) => config.host(host).hostaddr(address),
        (Some(host), None) => config.host(host),
        (None, Some(address)) => config.host(address.to_string()).hostaddr(address),
        (None, None) => config.host("localhost"),
    };
    if let Some(port) = parameters.get("port") {
        let port = port.parse().ok().filter(|port| *port != 0);
        config.port(port.ok_or_else(|| refused("'port' of its connection string is not a port"))?);
    }
    let timeout = match parameters.get("connect_timeout") {
        None => CONNECT_TIMEOUT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|seconds| *seconds > 0)
            .map(|seconds| Duration::from_secs(seconds).min(CONNECT_TIMEOUT))
            .ok_or_else(|| refused("'connect_timeout' of its connection string is not a number of seconds"))?,
    };
    config.channel_binding(match parameters.get("channel_binding") {
        None | Some("prefer") => ChannelBinding::Prefer,
        Some("disable") => ChannelBinding::Disable,
        Some("require") => ChannelBinding::Require,
        Some(_) => return Err(refused("'channel_binding' of its connection string is not one of its modes")),
    });
    config
        .connect_timeout(timeout)
        .application_name("streamt")
        .tcp_user_timeout(Duration::from_secs(5))
        .keepalives(true)
        .keepalives_idle(Duration::from_secs(5))
        .keepalives_interval(Duration::from_secs(2))
        .keepalives_retries(3)
        .ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
    Ok(Endpoint { config, tls: tls::connector(&trust, client.as_ref())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Endpoint, StateError> {
        read(&Secret::new(text), Path::new("/"))
    }

    fn refusal(text: &str) -> String {
        let error = parsed(text).expect_err(text);
        assert_eq!(error.code(), crate::codes::Code::E420StateBackendUnavailable);
        error.to_string()
    }

    #[test]
    fn a_url_and_its_pairs_say_the_same() {
        for text in [
            "postgresql://w%40r:p%2Fw%3A@127.0.0.1:5433/state?connect_timeout=3",
            "postgres://w%40r:p%2Fw%3A@127.0.0.1:5433/state?connect_timeout=3",
            "host=127.0.0.1 port=5433 user=w@r password='p/w:' dbname = state connect_timeout=3",
            r"host=127.0.0.1 port=5433 user=w@r password=p\/w: dbname=state connect_timeout=3",
        ] {
            let config = parsed(text).unwrap().config;
            assert_eq!(config.get_user(), Some("w@r"));
            assert_eq!(config.get_password(), Some(b"p/w:".as_slice()));
            assert_eq!((config.get_ports(), config.get_dbname()), ([5433].as_slice(), Some("state")));
            assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        }
        let ipv6 = parsed("postgresql://u@[::1]:5433").unwrap().config;
        assert_eq!((ipv6.get_hosts().len(), ipv6.get_dbname()), (1, Some("u")));
    }

    /// SEC: no value of a connection string is printed.
    #[test]
    fn what_is_not_supported_is_refused_without_its_value() {
        const SENTINEL: &str = "s3ntinel";
        for (text, why) in [
            ("", "cannot be read"),
            ("s3ntinel", "cannot be read"),
            ("mysql://u:s3ntinel@h/d", "cannot be read"),
            ("postgresql://u:s3ntinel@h1,h2/d", "more than one endpoint"),
            ("host=s3ntinel,b user=u", "more than one endpoint"),
            ("postgresql://u@localhost?host=s3ntinel", "more than one 'host'"),
            ("postgresql://u@localhost?options=-c%20s3ntinel", "'options'"),
            ("service=s3ntinel", "'service'"),
            ("user=u passfile=s3ntinel", "'passfile'"),
            ("postgresql://u@localhost?target_session_attrs=s3ntinel", "'target_session_attrs'"),
            ("postgresql://u@localhost?load_balance_hosts=s3ntinel", "'load_balance_hosts'"),
            ("postgresql://u@localhost?replication=s3ntinel", "'replication'"),
            ("postgresql://u@localhost?s3ntinel=1", "not supported"),
            ("postgresql://u@localhost?sslmode=s3ntinel", "'sslmode'"),
            ("postgresql://u@localhost?sslmode=require&sslmode=disable", "more than one 'sslmode'"),
            ("postgresql://u@localhost:s3ntinel/d", "'port'"),
            ("postgresql://localhost/s3ntinel", "no user"),
            ("postgresql://u:%zzs3ntinel@localhost/d", "cannot be read"),
            ("postgresql://u@localhost?sslcert=s3ntinel", "belong together"),
            ("postgresql://u@localhost?sslmode=verify-ca", "'sslrootcert'"),
            ("postgresql://u@localhost?sslmode=verify-full&sslrootcert=s3ntinel", "'sslrootcert'"),
            ("user=u password='s3ntinel", "cannot be read"),
            ("user=u hostaddr=s3ntinel", "'hostaddr'"),
            ("user=u host=''", "is empty"),
        ] {
            let text_of_error = refusal(text);
            assert!(text_of_error.contains(why), "{text}: {text_of_error}");
            assert!(!text_of_error.contains(SENTINEL), "{text_of_error}");
        }
        let endpoint = parsed("postgresql://u:s3ntinel@localhost/d").unwrap();
        assert!(!format!("{endpoint:?}").contains(SENTINEL));
    }

    #[test]
    fn another_machine_is_reached_encrypted_or_not_at_all() {
        for mode in ["disable", "allow", "prefer"] {
            assert!(refusal(&format!("postgresql://u@db.example.test/d?sslmode={mode}")).contains("unencrypted"));
            assert!(
                refusal(&format!("host=localhost hostaddr=192.0.2.1 user=u sslmode={mode}")).contains("unencrypted")
            );
            assert!(parsed(&format!("postgresql://u@localhost/d?sslmode={mode}")).is_ok());
        }
        let mode = |text: &str| parsed(text).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgresql://u@db.example.test/d"), SslMode::Require);
        assert_eq!(mode("postgresql://u@127.0.0.9/d"), SslMode::Prefer);
        assert_eq!(mode("host=/run/postgresql user=u"), SslMode::Prefer);
        assert_eq!(mode("postgresql://u@localhost/d?sslmode=disable"), SslMode::Disable);
    }
}
