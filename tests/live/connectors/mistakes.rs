//! What a project with a mistake about its workers is told, and what to do about it.

use serde_json::Value;

use super::yard::{State, Yard};
use crate::faults::{Fault, answer, every};
use crate::losses::site::text;
use crate::support::variable;

/// Code, message and advice of the first error. Every error says what to do.
#[track_caller]
fn told(yard: &Yard, line: &str) -> (String, String, String) {
    let run = yard.run(&format!("{line} -o json")).exits(1);
    let errors = run.json()["errors"].as_array().expect("errors").clone();
    for error in &errors {
        assert!(!text(&error["suggestion"]).is_empty(), "{line}: {error}");
    }
    let first = |key: &str| text(errors.first().map_or(&Value::Null, |error| &error[key]));
    (first("code"), first("message"), first("suggestion"))
}

/// One mistake, as `plan` and `import` tell it: a code, and a part of each advice.
struct Mistake {
    what: &'static str,
    from: String,
    to: String,
    plan: (&'static str, &'static str),
    import: (&'static str, &'static str),
}

#[test]
fn a_wrong_address_or_login_or_class_is_told_with_what_to_do() {
    let yard = Yard::new("STREAMT_TEST_CONNECT", State::Local, &["archive"]);
    let yaml = yard.yaml(&["archive"], &[]);
    let url = yard.workers.url();
    let kafka = variable("STREAMT_TEST_KAFKA");
    let registry = variable("STREAMT_TEST_REGISTRY");
    let mistakes = [
        Mistake {
            what: "nobody there",
            from: url.clone(),
            to: "http://127.0.0.1:1".to_owned(),
            plan: ("E406", "address and protocol"),
            import: ("E406", "address and protocol"),
        },
        Mistake {
            what: "https where http is spoken",
            from: url.clone(),
            to: yard.worker.url().replace("http:", "https:"),
            plan: ("E405", "ssl_"),
            import: ("E405", "ssl_"),
        },
        Mistake {
            what: "a path",
            from: url.clone(),
            to: format!("{url}/connectors"),
            plan: ("E407", "the service's own"),
            import: ("E701", "the service's own"),
        },
        Mistake {
            what: "the registry",
            from: url.clone(),
            to: registry,
            plan: ("E407", "the service's own"),
            import: ("E701", "the service's own"),
        },
        Mistake {
            what: "the broker",
            from: url,
            to: format!("http://{kafka}"),
            plan: ("E406", "address and protocol"),
            import: ("E406", "address and protocol"),
        },
        Mistake {
            what: "a login that is refused",
            from: "username: admin".to_owned(),
            to: "username: nobody".to_owned(),
            plan: ("E404", "credentials"),
            import: ("E404", "credentials"),
        },
    ];
    for Mistake { what, from, to, plan, import } in mistakes {
        assert!(yaml.contains(&from), "{what}");
        yard.write(&yaml.replace(&from, &to));
        for (line, (code, advice)) in [("plan", plan), ("apply", plan), ("import --kind connector", import)] {
            let (told, message, next) = told(&yard, line);
            assert!(told.starts_with(code) && next.contains(advice), "{what}: {line}: {told} {message} {next}");
        }
        assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear", "{what}: nothing was begun");
    }
    for (from, to, advice) in [
        ("connector: FileStreamSink", "connector: io.example.Nowhere", "install the plugin"),
        ("tasks.max: 1", "tasks.max: many", "correct these keys"),
    ] {
        yard.write(&yaml.replace(from, to));
        let (code, message, next) = told(&yard, "plan");
        assert!(code.starts_with("E407") && next.contains(advice), "{code} {message} {next}");
    }
}

/// A stand-in for each answer: a worker that never ends its rebalance, one that fails, and a page of somebody else.
#[test]
fn an_answer_that_is_no_answer_is_told_with_what_to_do() {
    let yard = Yard::new("STREAMT_TEST_CONNECT", State::Local, &["archive"]);
    let read = format!("/connectors/{}", yard.name("archive"));
    for (what, status, body, advice, lines) in [
        ("rebalancing", "409 Conflict", "{}", "has settled", &["plan"][..]),
        ("failing", "500 Internal Server Error", "{}", "log of the service", &["plan"]),
        ("a page", "200 OK", "<html>Sign in</html>", "service's own", &["plan", "status --health", "diff"]),
    ] {
        let read = read.clone();
        let reply = Fault::Answer(answer(status, &[], body));
        let hit = yard.workers.rule(every(move |request| request.what.ends_with(&read)), reply);
        for line in lines {
            let (code, message, next) = told(&yard, line);
            assert!(next.contains(advice), "{what}: {line}: {code} {message} {next}");
        }
        yard.workers.disarm();
        assert!(hit.count() > 0, "{what}");
    }
}
