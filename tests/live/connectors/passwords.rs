//! Settings that the workers themselves call passwords: their values go to the worker as declared, and nowhere else. Every sink has
//! those of its consumer; `VaultSink` has one whose name does not tell, and repeats it in its errors.

use serde_json::{Value, json};

use super::found::Found;
use super::older::workers;
use super::yard::{PASSWORD, SENTINEL, State, Yard};
use crate::faults::{Fault, first};
use crate::harness::Run;
use crate::load::Load;
use crate::losses::site::{code, text};
use crate::support::{eventually, variable};

const DECLARED: &str = "s3ntinel-declared";
const BY_HAND: &str = "s3ntinel-by-hand";

struct Class {
    name: &'static str,
    /// Those that are declared in plain text, and one that is a reference.
    plain: &'static [&'static str],
    reference: &'static str,
    more: &'static str,
}

const FILE: Class = Class {
    name: "FileStreamSink",
    plain: &[
        "consumer.override.sasl.jaas.config",
        "consumer.override.ssl.key.password",
        "consumer.override.ssl.keystore.key",
    ],
    reference: "consumer.override.ssl.truststore.password",
    more: ", file: /dev/null",
};
const VAULT: Class = Class { name: "streamt.test.VaultSink", plain: &["vault.pin"], reference: "vault.note", more: "" };

impl Class {
    fn yaml(&self, yard: &Yard, sinks: &[&str], removals: &[&str]) -> String {
        let yaml = yard.yaml(sinks, removals);
        let plain: String = self.plain.iter().map(|key| format!(", {key}: {DECLARED}")).collect();
        let read = format!(", {}: \"{}\"", self.reference, yard.secret());
        let yaml = yaml.replace("connector: FileStreamSink", &format!("connector: {}", self.name));
        yaml.replace("file: /dev/null, ", "")
            .replace(&format!(", note: {SENTINEL}"), &format!("{plain}{read}{}", self.more))
    }

    /// The live configuration with other values of what is declared in plain text.
    fn by_hand(&self, live: &Value) -> Value {
        let mut live = live.clone();
        for key in self.plain {
            live[key] = json!(BY_HAND);
        }
        live
    }

    /// What the worker says of the type of each setting, and that it keeps the declared values in plain text.
    fn is_judged_as_said(&self, yard: &Yard, live: &Value) {
        let path = format!("/connector-plugins/{}/config/validate", self.name);
        let (status, judged) = yard.worker.settled("PUT", &path, Some(live));
        assert_eq!(status, 200, "the worker has no {}: it was started by another version of tests/services", self.name);
        let settings = judged["configs"].as_array().expect("settings");
        for key in self.plain {
            let one = settings.iter().find(|one| one["definition"]["name"] == json!(key)).expect("a setting");
            assert_eq!((&one["definition"]["type"], &live[key]), (&json!("PASSWORD"), &json!(DECLARED)), "{key}");
        }
        assert_eq!(live[self.reference], json!(yard.secret()), "a reference reaches the worker as written");
    }

    /// Name → category of every declared password.
    fn changed(&self, category: &Value) -> Value {
        self.plain.iter().map(|key| ((*key).to_owned(), category.clone())).collect::<serde_json::Map<_, _>>().into()
    }
}

/// The row of a connector in the list of a result.
fn row(run: &Run, list: &str, name: &str) -> Value {
    let rows = run.json()["data"][list].as_array().expect("rows").clone();
    rows.into_iter().find(|row| row["name"] == json!(name)).unwrap_or_else(|| panic!("{name}: {}", run.stdout))
}

/// A connector that somebody else made, claimed by this project, is declared so.
fn adopted(yaml: &str, name: &str) -> String {
    let head = format!("  - name: {name}\n    description: d\n");
    assert!(yaml.contains(&head), "{yaml}");
    yaml.replace(&head, &format!("{head}    ownership: {{mode: adopted}}\n"))
}

fn course(worker: &str, admin: &str, class: &Class) {
    let yard = Yard::under(worker, State::Postgres(admin.to_owned()), &["gone", "claim"], Load::Alone);
    let mut found = Found::default();
    let (name, claim) = (yard.name("gone"), yard.name("claim"));
    yard.write(&class.yaml(&yard, &["gone"], &[]));

    for line in ["plan -vvv", "plan -o json -vvv --log-format json", "plan --out plan.json", "review plan.json -o json"]
    {
        found.run(&yard, line).exits(0);
    }
    found.run(&yard, "apply --plan plan.json -o json -vvv --log-format json").exits(0);
    let live = yard.worker.config(&name).expect("a connector");
    class.is_judged_as_said(&yard, &live);
    found.run(&yard, "plan --detailed-exitcode -vvv").exits(0);

    // Somebody else changes the values: told as drift, by key.
    yard.worker.put(&name, &class.by_hand(&live));
    let drift = found.run(&yard, "plan --detailed-exitcode -o json -vvv").exits(4);
    let change = row(&drift, "changes", &name);
    let category = json!({"change": "changed", "from_present": true, "to_present": true});
    assert_eq!((&change["changes"], &change["cause"]), (&class.changed(&category), &json!("drift")));
    let status = row(&found.run(&yard, "status -o json -vvv").exits(0), "connectors", &name);
    assert_eq!(status["cause"], "drift", "{status}");
    let differs = row(&found.run(&yard, "diff -o json -vvv").exits(0), "resources", &name);
    let fields: Vec<&Value> = differs["diffs"].as_array().expect("fields").iter().map(|diff| &diff["field"]).collect();
    assert_eq!((json!(fields), &differs["cause"]), (json!(class.plain), &json!("drift")), "{differs}");
    for line in ["plan", "status -vvv", "diff", "list connectors -o json", "list connectors", "state status -o json"] {
        found.run(&yard, line).exits(0);
    }
    found.run(&yard, &format!("show model {name} --diff")).exits(0);
    found.run(&yard, &format!("show model {name} --diff -o json -vvv")).exits(0);
    found.run(&yard, "apply -vvv").exits(0);
    assert_eq!(yard.worker.config(&name), Some(live.clone()), "put back as declared");

    // One that somebody else made is claimed as it is, with what differs named, and then changed to what is declared.
    let mut foreign = class.by_hand(&live);
    foreign["name"] = json!(claim);
    yard.worker.put(&claim, &foreign);
    yard.write(&adopted(&class.yaml(&yard, &["gone", "claim"], &[]), &claim));
    let review = format!("adopt --kind connector --name {claim}");
    found.run(&yard, &review).exits(1);
    let refused = found.run(&yard, &format!("{review} -vvv -o json")).exits(1);
    assert_eq!(code(&refused), "E414_ADOPTION_CONFIRMATION_REQUIRED", "{}", refused.stdout);
    found.run(&yard, "adopt --save-selection selection.json -o json -vvv").exits(0);
    let adopt = crate::adoption::connectors::line(&yard, &claim);
    let claimed = found.run(&yard, &format!("{adopt} -vvv")).exits(0).json()["data"].clone();
    let named: Vec<Value> = class.plain.iter().map(|key| json!({"name": key, "change": "changed"})).collect();
    assert_eq!(claimed["changed_keys"], json!(named));
    assert_eq!(yard.worker.config(&claim), Some(foreign), "a claim changes nothing");
    found.run(&yard, "apply -o json -vvv").exits(0);
    assert_eq!(yard.worker.config(&claim).expect("a connector")[class.plain[0]], DECLARED);

    // A removal whose answer is lost, and the recovery that ends it.
    yard.write(&adopted(&class.yaml(&yard, &["claim"], &["gone"]), &claim));
    found.run(&yard, "plan --out removal.json -vvv -o json").exits(0);
    found.run(&yard, "review removal.json").exits(0);
    let hit = yard.workers.rule(first(|request| request.what.starts_with("DELETE")), Fault::LoseAnswer);
    let run = found.run(&yard, "apply --plan removal.json --confirm-env default --force -vvv -o json").exits(1);
    assert_eq!((hit.count(), code(&run).as_str()), (1, "E428_CONNECTOR_REMOVAL_DRIFT"), "{}", run.stdout);
    yard.write(&adopted(&class.yaml(&yard, &["claim"], &[]), &claim));
    let id = text(&yard.status()["operation_status"]["operation_id"]);
    found.run(&yard, "state recovery-plan --resolution observed --out recovery.json -vvv -o json").exits(0);
    found.run(&yard, "review recovery.json").exits(0);
    super::recovery::recover(&yard, &id, "observed");
    found.run(&yard, "plan --detailed-exitcode -vvv --log-format json").exits(0);

    found.kept(&yard);
    for place in ["plan.json", "selection.json", "removal.json", "recovery.json", "current_state", "operation_history"]
    {
        assert!(found.places("connector").iter().any(|seen| seen.ends_with(place)), "{place}");
    }
    for place in ["diff", &review] {
        assert!(found.places(class.plain[0]).contains(&place), "{place} names the setting");
    }
    found.hold_none_of(&[
        DECLARED,
        BY_HAND,
        "s3ntinel",
        PASSWORD,
        "file-secret",
        "secrets.properties",
        yard.workers.address(),
    ]);
}

/// SEC-001, SEC-002, SEC-003, SEC-010, SEC-013, SEC-014, CRM-116, ADO-025, REC-004
#[test]
fn what_a_worker_calls_a_password_is_told_by_its_name_alone() {
    for worker in workers() {
        course(&worker, &variable("STREAMT_TEST_POSTGRES_14"), &FILE);
        course(&worker, &variable("STREAMT_TEST_POSTGRES_18"), &VAULT);
    }
}

/// SEC-003, SEC-006, SEC-008: what a worker and a plugin say of a value they refuse repeats it.
#[test]
fn the_words_in_which_a_password_is_refused_are_not_repeated() {
    for worker in workers() {
        let yard = Yard::under(&worker, State::Local, &["vault"], Load::Light);
        let (name, mut found) = (yard.name("vault"), Found::default());
        let pin = |pin: &str| yard.write(&VAULT.yaml(&yard, &["vault"], &[]).replace(DECLARED, pin));
        let refused = |found: &mut Found, line: &str| {
            let run = found.run(&yard, &format!("{line} -o json -vvv --log-format json")).exits(1);
            assert_eq!(code(&run), "E407_DEPLOY_ERROR", "{}", run.stdout);
            found.run(&yard, line).exits(1);
            run.stdout
        };
        // The control: the worker repeats it.
        let config = json!({"connector.class": VAULT.name, "topics": "x", "name": name, "vault.pin": format!("false-{BY_HAND}")});
        let (status, said) = yard.worker.settled("PUT", &format!("/connectors/{name}/config"), Some(&config));
        assert!(status == 400 && said.to_string().contains(BY_HAND), "{status} {said}");

        pin(&format!("false-{DECLARED}"));
        for line in ["plan", "apply"] {
            assert!(refused(&mut found, line).contains("vault.pin"), "the key is named");
        }
        // No judgement is to be had, so the creation itself is refused.
        let judged =
            yard.workers.rule(crate::faults::every(|request| request.what.contains("/validate")), Fault::CutBefore);
        refused(&mut found, "apply");
        assert!(judged.count() > 0);
        yard.workers.disarm();
        assert_eq!(yard.worker.config(&name), None);
        let id = text(&yard.status()["operation_status"]["operation_id"]);
        found.run(&yard, "state recovery-plan --resolution observed --out recovery.json -o json -vvv").exits(0);
        super::recovery::recover(&yard, &id, "observed");

        // Taken by the worker, and refused by what it feeds.
        pin(&format!("worn-{DECLARED}"));
        found.run(&yard, "apply -vvv -o json").exits(0);
        let trace =
            || yard.worker.ask("GET", &format!("/connectors/{name}/status"), None).1["tasks"][0]["trace"].clone();
        let trace = eventually(trace, |trace| trace.to_string().contains(DECLARED));
        assert!(trace.to_string().contains(DECLARED), "the worker keeps the value in its trace: {trace}");
        let status = row(&found.run(&yard, "status -o json -vvv").exits(0), "connectors", &name);
        assert_eq!(status["status"], "DEGRADED", "{status}");
        found.run(&yard, "status");
        found.files(&yard);
        assert!(!found.places(&name).is_empty());
        found.hold_none_of(&[DECLARED, BY_HAND, "s3ntinel"]);
    }
}

/// SEC-002, SEC-003, ADO-033: the type decides, and where it is a password the import writes a reference or nothing at all.
#[test]
fn a_password_is_imported_as_a_reference_or_not_at_all() {
    for worker in workers() {
        let yard = Yard::under(&worker, State::Local, &["vault", "file"], Load::Light);
        yard.declare(&[], &[]);
        yard.run("apply -o json").exits(0);
        let mut found = Found::default();
        let path = "models/imported.connect.yml";
        let line = format!("import --kind connector --adoptable --include {}-* -vvv -o json", yard.project);
        let config = |sink: &str, class: &str, more: Value| {
            let mut config = json!({"name": yard.name(sink), "connector.class": class, "topics": yard.topic()});
            config.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            yard.worker.put(&yard.name(sink), &config);
        };
        config("vault", VAULT.name, json!({"vault.pin": DECLARED}));
        for options in ["", "--dry-run", "--print"] {
            let run = found.run(&yard, &format!("{line} {options}")).exits(1);
            assert_eq!(code(&run), "E708_IMPORT_SECRET_FOUND", "{}", run.stdout);
            assert!(run.stdout.contains(&format!("{} (vault.pin)", yard.name("vault"))), "{}", run.stdout);
            assert!(!yard.workspace.path(path).exists());
        }
        // A class that does not call it so, and a reference in its place.
        config("file", "FileStreamSink", json!({"file": "/dev/null", "vault.pin": "1234"}));
        config("vault", VAULT.name, json!({"vault.pin": yard.secret()}));
        let data = found.run(&yard, &line).exits(0).json()["data"].clone();
        assert_eq!(data["imported_count"], 2, "{data:#}");
        let file = std::fs::read_to_string(yard.workspace.path(path)).expect("a file");
        assert!(file.contains(&yard.secret()) && file.contains("\"1234\""), "{file}");
        let before = yard.worker.config(&yard.name("vault"));
        let saved = found.run(&yard, "adopt --save-selection s.json -o json").exits(0).json()["data"].clone();
        let token = text(&saved["confirm_token"]);
        found.run(&yard, &format!("adopt --selection s.json --confirm-token {token} -o json")).exits(0);
        found.run(&yard, "plan --detailed-exitcode -vvv").exits(0);
        assert_eq!(yard.worker.config(&yard.name("vault")), before);
        found.files(&yard);
        found.hold_none_of(&[DECLARED, BY_HAND, "s3ntinel", "file-secret"]);
    }
}
