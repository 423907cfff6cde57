//! SASL OAUTHBEARER against a real broker, which checks the tokens' signatures. The identity provider is a stand-in: it knows one
//! client and signs with the key whose public half the broker has.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::cli::service;
use crate::front::{Answer, Authority, Front, Request, Validity};
use crate::harness::Workspace;
use crate::support::unique;

/// A signed token (RFC 7519) of the issuer that the broker knows.
fn token(subject: &str, audience: &str, lifetime: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs() as i64;
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(serde_json::json!({"alg": "RS256", "typ": "JWT", "kid": "token"}));
    let issued = now + lifetime.min(0) - 60;
    let claims = serde_json::json!({
        "iss": "https://issuer.test", "sub": subject, "aud": audience, "iat": issued, "exp": now + lifetime, "scope": "streamt",
    });
    let signed = format!("{header}.{}", part(claims));
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-sha256", "-binary", "-sign", &service("STREAMT_TEST_KAFKA_TOKEN_KEY")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl");
    openssl.stdin.take().expect("a pipe").write_all(signed.as_bytes()).expect("written");
    let signature = openssl.wait_with_output().expect("a signature");
    assert!(signature.status.success());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.stdout))
}

/// RFC 6749, 4.4: client credentials in the header, the grant and the scope in the form.
fn issues(request: &Request, token: &str) -> Answer {
    let form = String::from_utf8_lossy(&request.body).into_owned();
    let login = format!("Basic {}", STANDARD.encode("streamt:sentinel-secret"));
    if !form.contains("grant_type=client_credentials") || !form.contains("scope=streamt") {
        return Answer::Say("400 Bad Request", "{\"error\": \"invalid_request\"}".to_owned());
    }
    if request.header("authorization") != Some(login.as_str()) {
        let said = "{\"error\": \"invalid_client\", \"error_description\": \"client sentinel-wrong is not known\"}";
        return Answer::Say("401 Unauthorized", said.to_owned());
    }
    Answer::Say("200 OK", format!("{{\"access_token\": \"{token}\", \"token_type\": \"Bearer\", \"expires_in\": 300}}"))
}

struct Provider {
    front: Front,
    ca: String,
    _directory: tempfile::TempDir,
}

/// An identity provider over TLS whose authority the project names beside the broker's.
fn provider(authority: &Authority, trusted: &Authority, issued: String) -> Provider {
    let front = Front::start(Some(authority.server("localhost", Validity::Current)), "127.0.0.1:1", move |request| {
        issues(request, &issued)
    });
    let directory = tempfile::tempdir().expect("a directory");
    let broker = std::path::PathBuf::from(service("STREAMT_TEST_KAFKA_CA"));
    let ca = trusted.file(directory.path(), &[&broker]).display().to_string();
    Provider { front, ca, _directory: directory }
}

fn project(name: &str, provider: &Provider, secret: &str) -> Workspace {
    Workspace::project(&format!(
        "apiVersion: streamt.dev/v1alpha1
project: {{name: {name}}}
runtime:
  kafka:
    bootstrap_servers: \"{}\"
    security_protocol: SASL_SSL
    ssl_ca_location: \"{}\"
    sasl_mechanism: OAUTHBEARER
    sasl_oauth_token_url: \"https://localhost:{}/token\"
    sasl_oauth_client_id: streamt
    sasl_oauth_client_secret: \"${{SECRET}}\"
    sasl_oauth_scope: streamt
models:
  - {{name: orders, description: d, topic: {{name: {name}.orders, partitions: 1, replication_factor: 1}}}}
",
        service("STREAMT_TEST_KAFKA_SASL_TLS"),
        provider.ca,
        provider.front.port
    ))
    .variable("SECRET", secret)
}

#[track_caller]
fn refused(case: &str, workspace: &Workspace, code: &str, told: &str) {
    for command in ["plan --out plan.json", "apply", "status"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, code, "{case}, {command}: {}", run.stdout);
        assert!(run.stdout.contains(told), "{case}, {command}: {}", run.stdout);
        for secret in ["sentinel", "eyJ"] {
            assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{case}, {command}: {}", run.stdout);
        }
    }
    assert!(!workspace.path("plan.json").exists(), "{case}");
    let state = workspace.run("state status -o json").exits(0).json();
    assert_eq!(state["data"]["state_status"], "absent", "{case}");
}

/// SEC-003
#[test]
fn a_project_is_applied_with_tokens_of_an_identity_provider() {
    let authority = Authority::new("identity");
    let name = unique("oauth");
    let provider = provider(&authority, &authority, token("admin", "kafka", 300));
    let workspace = project(&name, &provider, "sentinel-secret");
    let applied = workspace.run("apply -vvv -o json").exits(0);
    assert_eq!(applied.json()["data"]["created"], serde_json::json!([format!("topic:{name}.orders")]));
    assert!(!applied.stderr.contains("sentinel") && !applied.stderr.contains("eyJ"), "{}", applied.stderr);
    assert!(provider.front.requests() > 0);
    assert_eq!(workspace.run("plan --detailed-exitcode").exits(0).exit, 0);
    crate::estate::blocking(crate::support::clean_up([format!("{name}.orders")]));
}

/// SEC-003 SEC-004: each in the words of whoever refused, without an address, a token or a secret.
#[test]
fn what_an_identity_provider_or_the_broker_refuses_is_told() {
    let (authority, other) = (Authority::new("identity"), Authority::new("other"));
    let good = || provider(&authority, &authority, token("admin", "kafka", 300));
    let known = good();
    let unknown = project(&unique("oauth"), &known, "sentinel-wrong");
    refused("wrong secret", &unknown, "E404_AUTH_FAILED", "invalid_client: client <redacted> is not known");
    for (case, token) in [
        ("another audience", token("admin", "elsewhere", 300)),
        ("expired", token("admin", "kafka", -300)),
        (
            "not signed",
            token("admin", "kafka", 300).rsplit_once('.').map(|(text, _)| format!("{text}.AAAA")).expect("parts"),
        ),
    ] {
        let provider = provider(&authority, &authority, token);
        refused(case, &project(&unique("oauth"), &provider, "sentinel-secret"), "E404_AUTH_FAILED", "not authorized");
        assert!(provider.front.requests() > 0, "{case}");
    }
    let nobody = provider(&authority, &authority, token("bob", "kafka", 300));
    refused("no rights", &project(&unique("oauth"), &nobody, "sentinel-secret"), "E404_AUTH_FAILED", "not authorized");

    let impostor = provider(&authority, &other, token("admin", "kafka", 300));
    let untrusted = project(&unique("oauth"), &impostor, "sentinel-secret");
    refused("identity provider not trusted", &untrusted, "E405_SSL_ERROR", "identity provider");
    let mut gone = good();
    gone.front.port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one").port();
    let alone = project(&unique("oauth"), &gone, "sentinel-secret");
    refused("identity provider away", &alone, "E406_CONNECTION_REFUSED", "identity provider");
}
