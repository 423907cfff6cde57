//! Which configuration values of a connector must not be written into a project: what its class calls a password, what sits
//! under the name of one, and what carries a credential in its text. A reference that the workers resolve is none.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::codes::redact::{carries_credential, is_sensitive_key};

/// `${provider:path}` or `${provider:path:key}`: a config provider of the workers.
static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\{[A-Za-z0-9_.-]+:[^}]*\}").expect("a constant pattern"));
/// What is left of `password="${file:…}"`.
static EMPTY_PAIR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?i)(password|passwd|secret|token|api[_-]?key)\s*[=:]\s*(""|''|;|,|$)"#).expect("a constant pattern")
});
/// Words that name a secret wherever they stand in a key.
const WORDS: [&str; 17] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "private.key",
    "private_key",
    "privatekey",
    "apikey",
    "api.key",
    "api_key",
    "access.key",
    "access_key",
    "user.info",
    "authorization",
    "connection.string",
];
/// Types whose values are no texts of anybody's own.
const PLAIN_TYPES: [&str; 6] = ["BOOLEAN", "INT", "SHORT", "LONG", "DOUBLE", "CLASS"];

/// The keys whose values are secrets, sorted. `types`: of the settings of the class; a key that it does not have belongs to a
/// transform, a converter or a client.
pub fn secret_keys<'a>(config: &'a BTreeMap<String, String>, types: &BTreeMap<String, String>) -> Vec<&'a str> {
    let secret = |(key, value): &(&'a String, &'a String)| is_secret(key, value, types.get(*key).map(String::as_str));
    config.iter().filter(secret).map(|(key, _)| key.as_str()).collect()
}

fn is_secret(key: &str, value: &str, value_type: Option<&str>) -> bool {
    let rest = REFERENCE.replace_all(value, "");
    if value_type == Some("PASSWORD") {
        return !rest.trim().is_empty();
    }
    let lower = key.to_ascii_lowercase();
    let login = lower.contains("jaas");
    let named = !login && (is_sensitive_key(key) || WORDS.iter().any(|word| lower.contains(word)));
    if named && !value_type.is_some_and(|word| PLAIN_TYPES.contains(&word)) {
        return !rest.trim().is_empty();
    }
    // A value that a worker masks says nothing, and would be taken for the value.
    is_mask(value) || carries_credential(&EMPTY_PAIR.replace_all(&rest, ""))
}

fn is_mask(value: &str) -> bool {
    let value = value.trim();
    let stars = value.len() > 2 && value.chars().all(|c| matches!(c, '*' | '•'));
    stars || ["[hidden]", "<redacted>", "<hidden>", "[redacted]"].iter().any(|mask| value.eq_ignore_ascii_case(mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-003
    #[test]
    fn secrets_are_known_by_their_type_their_name_or_their_text() {
        for (key, value, value_type) in [
            ("connection.password", "hunter2", Some("PASSWORD")),
            ("odd", "hunter2", Some("PASSWORD")),
            ("odd", "x${file:/s:p}", Some("PASSWORD")),
            ("connection.password", "hunter2", None),
            ("aws.secret.access.key", "AKIA", None),
            ("snowflake.private.key", "MIIE", Some("STRING")),
            ("consumer.override.sasl.jaas.config", "x required username=\"a\" password=\"hunter2\";", None),
            ("connection.url", "jdbc:postgresql://db/x?user=a&password=hunter2", Some("STRING")),
            ("connection.url", "https://a:hunter2@es:9200", None),
            ("url", "postgresql://a:hunter2@db/x", None),
            ("azure.connection.string", "DefaultEndpointsProtocol=https;AccountKey=x", None),
            ("ssl.keystore.certificate", "-----BEGIN PRIVATE KEY-----\nMIIE", None),
            ("note", "********", None),
            ("note", "[hidden]", None),
            ("header.Authorization", "Bearer abc", None),
            ("extra", "Authorization: Basic YTpi", None),
        ] {
            assert!(is_secret(key, value, value_type), "{key}={value}");
        }
        for (key, value, value_type) in [
            ("connection.password", "${file:/etc/s.properties:p}", Some("PASSWORD")),
            ("connection.password", "${secrets:db}", None),
            ("connection.password", "", Some("PASSWORD")),
            ("consumer.override.sasl.jaas.config", "x required username=\"a\" password=\"${file:/s:p}\";", None),
            ("connection.url", "jdbc:postgresql://db:5432/x", Some("STRING")),
            ("connection.url", "jdbc:postgresql://db/x?user=a&password=${file:/s:p}", None),
            ("connection.user", "app", Some("STRING")),
            ("token.refresh.ms", "1000", Some("LONG")),
            ("table.name.format", "${topic}", Some("STRING")),
            ("key.converter", "org.apache.kafka.connect.storage.StringConverter", None),
            ("file", "/dev/null", Some("STRING")),
            ("tasks.max", "1", Some("INT")),
            ("topics", "a,b", None),
        ] {
            assert!(!is_secret(key, value, value_type), "{key}={value}");
        }
    }

    #[test]
    fn only_keys_are_told() {
        let config = [("a.password", "hunter2"), ("b", "1")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(secret_keys(&config.into(), &BTreeMap::new()), ["a.password"]);
    }
}
