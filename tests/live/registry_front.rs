//! A registry behind TLS and a login: whom streamt believes, and what it shows. The front before the real registry is a stand-in.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::cli::{ORDERS, edit, service, workspace};
use crate::front::{Answer, Authority, Front, Validity};
use crate::harness::Workspace;

fn upstream() -> String {
    let address = service("STREAMT_TEST_REGISTRY");
    address.strip_prefix("http://").expect("plain http").split('/').next().expect("a host").to_owned()
}

/// Puts another registry into the project: `more` are fields behind the url.
fn behind(workspace: &Workspace, host: &str, more: &str) {
    let real = service("STREAMT_TEST_REGISTRY");
    let path = real.splitn(4, '/').nth(3).expect("a path").to_owned();
    edit(workspace, &format!("{{url: \"{real}\"}}"), &format!("{{url: \"{host}/{path}\"{more}}}"));
}

#[track_caller]
fn refused(case: &str, workspace: &Workspace, code: &str, told: &str) {
    for command in ["plan --out plan.json", "apply", "apply --dry-run", "status"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, code, "{case}, {command}: {}", run.stdout);
        assert!(run.stdout.contains("Schema Registry: "), "{case}, {command}: {}", run.stdout);
        assert!(run.stdout.contains(told), "{case}, {command}: {}", run.stdout);
        assert!(!run.stdout.contains("sentinel") && !run.stderr.contains("sentinel"), "{case}, {command}");
    }
    assert!(!workspace.path("plan.json").exists(), "{case}");
    let state = workspace.run("state status -o json").exits(0).json();
    assert_eq!(state["data"]["state_status"], "absent", "{case}");
    assert_eq!(state["data"]["operation_status"]["status"], "clear", "{case}");
}

/// SEC-004
#[test]
fn a_registry_over_tls_is_believed_by_its_own_authority_only() {
    let (own, other) = (Authority::new("own"), Authority::new("other"));
    let pass = |config| Front::start(Some(config), &upstream(), |_| Answer::Pass);
    let directory = tempfile::tempdir().expect("a directory");
    let ca = format!(", ssl_ca_location: \"{}\"", own.file(directory.path(), &[]).display());
    for (case, config, more) in [
        ("no authority of its own", own.server("localhost", Validity::Current), ""),
        ("another authority", other.server("localhost", Validity::Current), ca.as_str()),
        ("expired", own.server("localhost", Validity::Expired), ca.as_str()),
        ("another name", own.server("registry.test", Validity::Current), ca.as_str()),
    ] {
        let front = pass(config);
        let (workspace, _) = workspace("regtls", ORDERS);
        behind(&workspace, &format!("https://localhost:{}", front.port), more);
        refused(case, &workspace, "E405_SSL_ERROR", "failed in TLS");
        assert_eq!(front.requests(), 0, "{case}: nothing was asked");
    }
    let front = pass(own.server("localhost", Validity::Current));
    let (workspace, prefix) = workspace("regtls", ORDERS);
    behind(&workspace, &format!("https://localhost:{}", front.port), &ca);
    let applied = workspace.run("apply -o json").exits(0).json();
    let subject = format!("schema:{prefix}.orders-value");
    assert!(applied["data"]["created"].as_array().expect("a list").contains(&subject.into()), "{applied}");
    assert_eq!(workspace.run("plan --detailed-exitcode").exits(0).exit, 0);
    assert!(front.requests() > 3);
}

/// A front that asks for this `Authorization` and refuses as a registry does.
fn guarded(expected: String) -> Front {
    Front::start(None, &upstream(), move |request| match request.header("authorization") {
        Some(shown) if shown == expected => Answer::Pass,
        Some(_) => Answer::Say(
            "401 Unauthorized",
            "{\"error_code\": 40101, \"message\": \"Login of sentinel-password failed\"}".to_owned(),
        ),
        None => Answer::Say("403 Forbidden", "{\"error_code\": 40301, \"message\": \"Nobody may ask\"}".to_owned()),
    })
}

/// SEC-003 SEC-004
#[test]
fn a_registry_is_logged_in_to_by_name_or_by_token() {
    let basic = |user: &str| format!("Basic {}", STANDARD.encode(format!("{user}:sentinel-password")));
    for (case, expected, right, wrong) in [
        (
            "basic",
            basic("app"),
            "username: app, password: \"${PASSWORD}\"",
            "username: nobody, password: \"${PASSWORD}\"",
        ),
        (
            "bearer",
            "Bearer sentinel-password".to_owned(),
            "token: \"${PASSWORD}\"",
            "username: app, password: \"${PASSWORD}\"",
        ),
    ] {
        let front = guarded(expected);
        let host = format!("http://127.0.0.1:{}", front.port);
        let project = |more: &str| {
            let (workspace, prefix) = workspace("reglogin", ORDERS);
            behind(&workspace, &host, more);
            (workspace.variable("PASSWORD", "sentinel-password"), prefix)
        };
        refused(case, &project(&format!(", {wrong}")).0, "E404_AUTH_FAILED", "Login of <redacted> failed");
        refused(case, &project("").0, "E404_AUTH_FAILED", "Nobody may ask");
        let (workspace, prefix) = project(&format!(", {right}"));
        let applied = workspace.run("apply -vvv -o json").exits(0);
        assert!(!applied.stdout.contains("sentinel") && !applied.stderr.contains("sentinel"), "{case}");
        let created = applied.json()["data"]["created"].clone();
        assert!(
            created.as_array().expect("a list").contains(&format!("schema:{prefix}.orders-value").into()),
            "{created}"
        );
        workspace.run("validate --check-schemas").exits(0);
    }
}

/// SEC-008: what is asked of another host than the configured one would carry the login there.
#[test]
fn a_login_is_not_carried_along_by_a_redirect() {
    let elsewhere = Front::start(None, &upstream(), |_| Answer::Pass);
    let target: &'static str =
        format!("302 Found\r\nLocation: http://127.0.0.1:{}/apis/ccompat/v7/subjects", elsewhere.port).leak();
    let front = Front::start(None, &upstream(), move |_| Answer::Say(target, String::new()));
    let (workspace, _) = workspace("regredirect", ORDERS);
    behind(&workspace, &format!("http://127.0.0.1:{}", front.port), ", username: app, password: \"${PASSWORD}\"");
    let workspace = Arc::new(workspace.variable("PASSWORD", "sentinel-password"));
    refused("redirect", &workspace, "E407_DEPLOY_ERROR", "redirect");
    assert_eq!(elsewhere.requests(), 0);
    assert!(front.requests() > 0);
}
