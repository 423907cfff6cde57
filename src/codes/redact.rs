//! What must never be shown: keys that hold secrets, and the texts in which secrets travel.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// What stands where a secret stood.
pub const REDACTED: &str = "<redacted>";

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

static SENSITIVE_KEY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(^|[._-])(password|passwd|secret|token|api[_-]?key|authorization|credentials?",
        r"|basic[._-]auth[._-]user[._-]info|sasl[._-]jaas[._-]config)($|[._-])"
    ))
});
static INLINE_PAIR: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(password|passwd|secret|token|api[_-]?key|apikey)\s*[=:]\s*\S+"));
static INLINE_AUTH: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(authorization|bearer)\s*[=:]\s*\S+(\s+\S+)?"));
static URL_USER: LazyLock<Regex> = LazyLock::new(|| pattern(r"://([^:@/\s]+):([^@/\s]+)@"));

static DATABASE_URL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?i)\bpostgres(?:ql)?://[^\s"'<>]+"#));
static USER_URL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)\b([a-z][a-z0-9+.-]*://)[^:@/\s]+:[^@/\s]+@[^\s"'<>]+"#));
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)["']?(?:password|passwd|secret|token|api[._-]?key|authorization|credentials?"#,
        r#"|basic[._-]auth[._-]user[._-]info|sasl[._-]jaas[._-]config|ssl[._-]key[._-]password)["']?"#,
        r#"\s*[:=]\s*(?:"[^"]*"|'[^']*'|[^\r\n,;]+)"#
    ))
});
static SCHEME: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]+"));

/// Whether the value under this key is a secret, by the name of the key alone.
pub fn is_sensitive_key(key: &str) -> bool {
    may_be_sensitive(key) && SENSITIVE_KEY.is_match(key)
}

/// False when no word of an ASCII key begins as the words of the pattern do, which is so of nearly every key.
fn may_be_sensitive(key: &str) -> bool {
    const BEGINNINGS: [&[u8]; 8] = [b"pass", b"secret", b"token", b"api", b"auth", b"cred", b"basic", b"sasl"];
    let begins = |word: &[u8]| {
        BEGINNINGS
            .iter()
            .any(|beginning| word.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning)))
    };
    let bytes = key.as_bytes();
    let separated = |at: usize| at == 0 || matches!(bytes[at - 1], b'.' | b'_' | b'-');
    !key.is_ascii() || (0..bytes.len()).any(|at| separated(at) && begins(&bytes[at..]))
}

static REFUSED_PAIR: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(password|passwd|secret|token|api[_-]?key|authorization|bearer)\s*[=:]\s*\S+"));

/// Whether a text carries a credential: in a URL, as a pair, or as a private key.
pub fn carries_credential(text: &str) -> bool {
    URL_USER.is_match(text)
        || REFUSED_PAIR.is_match(text)
        || SCHEME.is_match(text)
        || text.contains("-----BEGIN") && text.contains("PRIVATE KEY")
}

/// Whether a text that is stored as it is must not be: it carries a credential or looks as if it did.
pub fn is_credential_like(text: &str) -> bool {
    URL_USER.is_match(text)
        || DATABASE_URL.is_match(text)
        || REFUSED_PAIR.is_match(text)
        || text.chars().any(|c| c < '\u{20}')
}

/// Replaces the value of every sensitive key, at any depth. Idempotent.
pub fn redact_keys(value: &mut Value) {
    walk(value, &|_| None);
}

/// [`redact_keys`], and inside every other string the pairs, headers and URLs that carry credentials. Idempotent.
pub fn redact_value(value: &mut Value) {
    walk(value, &|text| {
        let pairs = INLINE_PAIR.replace_all(text, |found: &Captures<'_>| format!("{}={REDACTED}", &found[1]));
        let auth = INLINE_AUTH.replace_all(&pairs, |found: &Captures<'_>| format!("{}={REDACTED}", &found[1]));
        let urls = URL_USER.replace_all(&auth, "://<redacted>:<redacted>@");
        (urls != text).then(|| urls.into_owned())
    });
}

fn walk(value: &mut Value, text: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if is_sensitive_key(key) {
                    *value = Value::String(REDACTED.to_owned());
                } else {
                    walk(value, text);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, text)),
        Value::String(content) => {
            if let Some(changed) = text(content) {
                *content = changed;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Free text made fit to be shown: errors, warnings, log records, what a provider said.
pub fn redact_text(text: &str) -> String {
    let text = DATABASE_URL.replace_all(text, "postgresql://<redacted>");
    let text = USER_URL.replace_all(&text, "${1}<redacted>");
    let text = PAIR.replace_all(&text, REDACTED);
    SCHEME.replace_all(&text, "<redacted authorization>").into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn free_text_loses_its_secrets_and_nothing_else() {
        let table = [
            ("connect postgres://u:p@db:5432/x failed", "connect postgresql://<redacted> failed"),
            ("GET https://bob:pw@sr.example/subjects 401", "GET https://<redacted> 401"),
            (r#"body {"password": "hunter2", "a": 1}"#, r#"body {<redacted>, "a": 1}"#),
            ("Authorization: Bearer abc.def", "<redacted>"),
            ("sent bearer abc.def to host", "sent <redacted authorization> to host"),
            ("sasl.jaas.config=Plain required username=a password=b; retry", "<redacted>; retry"),
            ("topic orders.v1 not found", "topic orders.v1 not found"),
        ];
        for (given, shown) in table {
            assert_eq!(redact_text(given), shown);
        }
    }

    #[test]
    fn keys_are_sensitive_by_their_words() {
        for key in [
            "password",
            "sasl_password",
            "ssl.key.password",
            "apiKey",
            "x-api-key",
            "token",
            "credentials",
            "connection.password.file",
            "basic.auth.user.info",
        ] {
            assert!(is_sensitive_key(key), "{key}");
        }
        for key in ["passwords", "tokens", "tokenizer", "key", "secretary", "retention.ms"] {
            assert!(!is_sensitive_key(key), "{key}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_skipped_is_never_sensitive(
            key in "([A-Za-z._\u{17f}\u{212a}-]|(?i)(password|secret|token|api[_-]?key|authorization|credentials|basic\\.auth\\.user\\.info)|[._-]){0,6}"
        ) {
            proptest::prop_assert_eq!(is_sensitive_key(&key), SENSITIVE_KEY.is_match(&key));
        }
    }

    #[test]
    fn structured_values_lose_keys_pairs_and_user_info() {
        let mut value = json!({"a": {"token": {"x": 1}}, "list": ["password = hunter2", "http://u:p@h/x"],
            "auth": "Authorization: Bearer abc", "plain": "retention"});
        redact_value(&mut value);
        let once = value.clone();
        assert_eq!(
            value,
            json!({"a": {"token": "<redacted>"}, "list": ["password=<redacted>",
            "http://<redacted>:<redacted>@h/x"], "auth": "Authorization=<redacted>", "plain": "retention"})
        );
        redact_value(&mut value);
        assert_eq!(value, once);
    }
}
