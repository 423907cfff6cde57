//! Sinks of a real worker become declarations: exactly as they run, none of their secrets, nothing asked for but by GET.

use serde_json::{Value, json};

use crate::connectors::yard::{SENTINEL, State, Yard};
use crate::losses::site::code;
use crate::support::variable;

/// A yard whose topic exists and which declares no sink.
fn yard(state: State) -> Yard {
    let yard = Yard::new("STREAMT_TEST_CONNECT", state, &["archive", "other", "feed"]);
    yard.declare(&[], &[]);
    yard.run("apply -o json").exits(0);
    yard
}

fn config(yard: &Yard, sink: &str, more: &Value) -> Value {
    let mut config = json!({
        "name": yard.name(sink), "connector.class": "FileStreamSink", "topics": yard.topic(), "file": "/dev/null",
        "tasks.max": "1", "read": yard.secret(), "table.name.format": "${topic}", "note": "no: # \"yes\"\n\té",
    });
    for (key, value) in more.as_object().expect("a map") {
        config[key] = value.clone();
    }
    config
}

fn line(yard: &Yard, options: &str) -> String {
    format!("import --kind connector --include {}-* {options} -o json", yard.project)
}

fn file(yard: &Yard) -> Option<String> {
    std::fs::read_to_string(yard.workspace.path("models/imported.connect.yml")).ok()
}

/// Beyond ADO-042: a sink is imported, adopted by a selection, and a plan of it has nothing to do.
#[test]
fn a_sink_that_was_imported_and_adopted_has_an_empty_plan() {
    for state in [State::Local, State::Postgres(variable("STREAMT_TEST_POSTGRES_18"))] {
        let yard = yard(state);
        let live = config(&yard, "archive", &json!({}));
        yard.worker.put(&yard.name("archive"), &live);
        yard.worker.placed(&yard.name("archive"));
        let before = yard.resources();

        let mark = yard.order.mark("import");
        let preview = yard.run(&line(&yard, "--adoptable --dry-run")).exits(0).json()["data"].clone();
        assert_eq!((&preview["written"], &preview["imported_count"]), (&json!(false), &json!(1)), "{preview:#}");
        assert_eq!(file(&yard), None);
        let printed = yard.run(&line(&yard, "--adoptable --print")).exits(0).json()["data"]["document"].clone();
        let data = yard.run(&line(&yard, "--adoptable")).exits(0).json()["data"].clone();
        assert_eq!(json!(file(&yard)), printed, "what is printed is what is written");
        assert_eq!(data["created_files"], json!(["models/imported.connect.yml"]));
        assert_eq!(data["models"][0]["from"], json!([{"ref": "orders"}]));
        assert_eq!(data["resources"][0]["disposition"], "imported");
        assert!(!data.to_string().contains("/dev/null"), "results name settings: {data:#}");
        let mut asked = yard.since(mark);
        asked.dedup();
        assert_eq!(asked.len(), 6, "{asked:?}");
        for pair in asked.chunks(2) {
            assert!(pair[0].starts_with("GET /connectors"), "{asked:?}");
            assert!(pair[1].starts_with("GET /connector-plugins/FileStreamSink/config"), "{asked:?}");
        }
        assert_eq!(yard.resources(), before, "nothing is claimed");

        yard.run("validate").exits(0);
        assert_eq!(yard.run("plan -o json").exits(0).json()["data"]["is_apply_blocked"], true);
        let saved = yard.run("adopt --save-selection s.json -o json").exits(0).json()["data"].clone();
        assert_eq!(saved["resources"][0]["changed_keys"], json!([]), "{saved:#}");
        let token = saved["confirm_token"].as_str().expect("a token");
        yard.run(&format!("adopt --selection s.json --confirm-token {token} -o json")).exits(0);
        yard.run("plan --detailed-exitcode -o json").exits(0);
        yard.run("apply -o json").exits(0);
        assert_eq!(yard.worker.config(&yard.name("archive")), Some(live));

        // Nothing is new any more; what is new later finds the file in its way.
        let again = yard.run(&line(&yard, "--adoptable")).exits(0).json()["data"].clone();
        assert_eq!((&again["imported_count"], &again["skipped_count"]), (&json!(0), &json!(1)), "{again:#}");
        assert_eq!(again["resources"][0]["disposition"], "already_declared");
        yard.worker.put(&yard.name("other"), &config(&yard, "other", &json!({})));
        let first = file(&yard);
        assert_eq!(code(&yard.run(&line(&yard, "--adoptable")).exits(1)), "E702_IMPORT_TARGET_EXISTS");
        let told = yard.run(&line(&yard, "--dry-run")).exits(0);
        assert!(told.warning_codes().contains(&"W108_IMPORT_TARGET_EXISTS".to_owned()), "{}", told.stdout);
        assert_eq!(file(&yard), first);
        yard.run(&line(&yard, "--output-file models/more.yml")).exits(0);
        yard.run("validate").exits(0);
    }
}

/// LIM-021: an external sink is declared, is in nobody's way, and is never asked for by a plan.
#[test]
fn an_external_sink_is_declared_and_left_alone() {
    let yard = yard(State::Local);
    let live = config(&yard, "archive", &json!({}));
    yard.worker.put(&yard.name("archive"), &live);
    yard.run(&line(&yard, "")).exits(0);
    assert!(file(&yard).expect("a file").contains("mode: external"));
    let mark = yard.order.mark("plan");
    let plan = yard.run("plan --detailed-exitcode -o json").exits(0).json()["data"].clone();
    assert_eq!((&plan["has_changes"], &plan["is_apply_blocked"]), (&json!(false), &json!(false)), "{plan:#}");
    yard.run("apply -o json").exits(0);
    assert_eq!(yard.since(mark), Vec::<String>::new());
    assert_eq!(yard.worker.config(&yard.name("archive")), Some(live));
}

/// SEC-002, SEC-003: one secret in plain text, and nothing is written of any sink; no value is told.
#[test]
fn a_secret_in_plain_text_keeps_everything_from_being_written() {
    let yard = yard(State::Local);
    yard.worker.put(&yard.name("archive"), &config(&yard, "archive", &json!({})));
    let credential = format!("https://app:{SENTINEL}@db.example/x");
    for (key, value) in [
        ("connection.password", SENTINEL),
        ("consumer.override.sasl.jaas.config", &format!("x required username=\"a\" password=\"{SENTINEL}\";")),
        ("connection.url", &credential),
        ("note", "************"),
    ] {
        yard.worker.put(&yard.name("other"), &config(&yard, "other", &json!({key: value})));
        for options in ["", "--adoptable", "--dry-run", "--print", "-vvv"] {
            let run = yard.run(&line(&yard, options)).exits(1);
            assert_eq!(code(&run), "E708_IMPORT_SECRET_FOUND", "{key}: {}", run.stdout);
            let told = run.stdout + &run.stderr;
            assert!(told.contains(&yard.name("other")) && told.contains(key), "{told}");
            assert!(
                !told.contains(SENTINEL) && !told.contains("****") && !told.contains(&yard.name("archive")),
                "{told}"
            );
        }
        assert_eq!(file(&yard), None, "{key}");
    }
    yard.run(&line(&yard, &format!("--exclude {}", yard.name("other")))).exits(0);
    assert!(!file(&yard).expect("a file").contains(SENTINEL));
}

/// What the project language cannot say is refused whole, or is no sink and is left out.
#[test]
fn what_cannot_be_declared_as_it_runs_is_not_declared() {
    let yard = yard(State::Local);
    let refused = |config: &Value, expected: &str, told: &str| {
        yard.worker.put(&yard.name("other"), config);
        let run = yard.run(&line(&yard, "")).exits(1);
        assert_eq!(code(&run), expected, "{}", run.stdout);
        assert!(run.stdout.contains(told), "{told}: {}", run.stdout);
        assert_eq!(file(&yard), None);
        yard.worker.delete(&yard.name("other"));
    };
    refused(
        &config(&yard, "other", &json!({"topics": "elsewhere"})),
        "E705_IMPORT_VALIDATION_FAILED",
        "does not declare",
    );
    let mut pattern = config(&yard, "other", &json!({"topics.regex": "x.*"}));
    pattern.as_object_mut().expect("a map").shift_remove("topics");
    refused(&pattern, "E705_IMPORT_VALIDATION_FAILED", "by a pattern");
    // A model of another kind has its name.
    let text = yard.yaml(&[], &[]);
    yard.write(&format!(
        "{text}  - {{name: {}, description: d, topic: {{name: {}.x}}}}\n",
        yard.name("other"),
        yard.project
    ));
    refused(&config(&yard, "other", &json!({})), "E703_IMPORT_NAME_COLLISION", "would be named");
    yard.write(&text);

    yard.worker.put(
        &yard.name("feed"),
        &json!({"connector.class": "FileStreamSource", "topic": yard.topic(), "file": "/dev/null", "db.password": SENTINEL, "name": yard.name("feed")}),
    );
    let data = yard.run(&line(&yard, "")).exits(0).json()["data"].clone();
    assert_eq!((&data["imported_count"], &data["written"]), (&json!(0), &json!(false)), "{data:#}");
    assert_eq!(data["resources"][0]["disposition"], "not_a_sink", "{data:#}");
    assert!(!data.to_string().contains(SENTINEL));

    // A worker that is not there, or refuses the login.
    yard.write(&text.replace("username: admin", "username: nobody"));
    assert_eq!(code(&yard.run(&line(&yard, "")).exits(1)), "E404_AUTH_FAILED");
    yard.write(&text);
    yard.workers.refuse();
    assert_eq!(code(&yard.run(&line(&yard, "")).exits(1)), "E406_CONNECTION_REFUSED");
    assert_eq!(file(&yard), None);
}
