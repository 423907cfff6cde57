//! What a recovery leaves and says holds no secret.

use super::resolve::{plan_line, recover_line};
use super::world::{Moment, STORES, WRITER_PASSWORD, World};
use crate::estate::service;

/// Secrets of the project below: of its registry, of its `.env`, of the two connections.
const REGISTRY_USER: &str = "r3gistry-s3ntinel-user";
const REGISTRY_PASSWORD: &str = "r3gistry-s3ntinel-password";
const UNUSED: &str = "unus3d-s3ntinel";
const OWNER_PASSWORD: &str = "admin-secret";

/// A text, and the forms in which it travels.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD_NO_PAD;
    let encoded = engine.encode(secret);
    // The last characters depend on what follows.
    let encoded = encoded[..encoded.len() - 2].to_owned();
    let reversed: String = secret.chars().rev().collect();
    [secret.to_owned(), encoded, reversed].map(String::into_bytes).to_vec()
}

/// Names of the places in which a secret is found.
fn found(secrets: &[String], places: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut found = Vec::new();
    for secret in secrets {
        for form in forms(secret) {
            for (place, bytes) in places {
                if bytes.windows(form.len()).any(|window| window == form) {
                    found.push(format!("{secret} in {place}"));
                }
            }
        }
    }
    found
}

/// REC-068, SEC-001, SEC-003, SEC-005, SEC-010, SEC-013, SEC-014: files, history, rows and every output, at the highest verbosity;
/// a secret that is planted in each of these places is found.
#[test]
fn a_recovery_leaves_and_says_no_secret() {
    for store in STORES {
        let world = World::new("secret", store);
        world.declare(
            "  - {name: a, description: d, topic: {name: PREFIX.a, partitions: 1, replication_factor: 1}, schema: {subject: PREFIX.a-value, format: avro, definition: '\"string\"'}}\n",
        );
        let registry = service("STREAMT_TEST_REGISTRY");
        let text = std::fs::read_to_string(world.workspace.path("stream_project.yml")).expect("a project");
        let login =
            format!("{{url: \"{registry}\", username: \"${{REGISTRY_USER}}\", password: \"${{REGISTRY_PASSWORD}}\"}}");
        let project = text.replace(&format!("{{url: \"{registry}\"}}"), &login);
        assert_ne!(project, text);
        world.workspace.write("stream_project.yml", &project);
        let variables =
            format!("REGISTRY_USER={REGISTRY_USER}\nREGISTRY_PASSWORD={REGISTRY_PASSWORD}\nUNUSED={UNUSED}\n");
        world.workspace.write(".env", &variables);
        let mut secrets: Vec<String> =
            [REGISTRY_PASSWORD, REGISTRY_USER, UNUSED, WRITER_PASSWORD, OWNER_PASSWORD].map(str::to_owned).to_vec();
        if let Some(database) = &world.database {
            secrets.extend([database.schema.clone(), database.writer.clone()]);
        }

        let mut said: Vec<(String, Vec<u8>)> = Vec::new();
        let mut say = |line: &str, exit: i32| {
            let output = world.workspace.command(line).output().expect("runs");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(exit), "{line}: {text}");
            said.push((format!("stdout of {line}"), output.stdout.clone()));
            said.push((format!("stderr of {line}"), output.stderr));
            output.stdout
        };
        assert!(world.killed_at("apply", &Moment::new("request.answered", 1)));
        world.settle();
        for output in ["-o json", "-vvv"] {
            say(&format!("state status {output}"), 0);
            say(&format!("plan {output}"), 1);
            say(&format!("apply {output}"), 1);
            say(&format!("{} {output}", plan_line("abandoned_before_mutation", "no.json")), 1);
            say(&format!("{} {output}", plan_line("rolled_back", "no.json")), 1);
        }
        say(&format!("{} -vvv", plan_line("observed", "first.json")), 0);
        let planned = say(&format!("{} -o json", plan_line("observed", "r.json")), 0);
        let planned: serde_json::Value = serde_json::from_slice(&planned).expect("JSON");
        let line = recover_line("r.json", &planned["data"]);
        let edited = std::fs::read_to_string(world.workspace.path("r.json")).expect("a file");
        world.workspace.write("edited.json", &edited.replace("candidate", "prior"));
        for output in ["-o json", "-vvv"] {
            say(&format!("review r.json {output}"), 0);
            say(&format!("{} {output}", line.replace("r.json", "edited.json")), 1);
            // The registry is away: what its client says of it must not carry its login.
            world.workspace.write("stream_project.yml", &project.replace(&registry, "http://127.0.0.1:1"));
            say(&format!("{} {output}", plan_line("observed", "away.json")), 1);
            say(&format!("{line} {output}"), 1);
            world.workspace.write("stream_project.yml", &project);
        }
        say(&format!("{line} -vvv"), 0);
        say(&format!("{line} -o json"), 0);
        say("state status -vvv", 0);
        say("plan -vvv", 0);

        let mut places = said;
        for file in ["first.json", "r.json"] {
            places.push((file.to_owned(), std::fs::read(world.workspace.path(file)).expect("a file")));
        }
        match &world.database {
            None => {
                for entry in std::fs::read_dir(world.workspace.path(".streamt/state")).expect("a directory") {
                    let path = entry.expect("an entry").path();
                    places.push((path.display().to_string(), std::fs::read(&path).expect("bytes")));
                }
            }
            Some(database) => {
                // The store's own table names its writer; what a recovery writes does not.
                for table in ["operation_control", "operation_history", "state_history", "current_state"] {
                    let rows = database.texts(&format!("SELECT t::text FROM SCHEMA.{table} t"));
                    assert!(!rows.is_empty(), "{table}");
                    places.push((table.to_owned(), rows.join("\n").into_bytes()));
                }
            }
        }
        assert_eq!(found(&secrets, &places), Vec::<String>::new(), "{store:?}");

        for secret in &secrets {
            for form in forms(secret) {
                let mut planted = places.clone();
                for (_, bytes) in &mut planted {
                    let middle = bytes.len() / 2;
                    bytes.splice(middle..middle, form.iter().copied());
                }
                let seen = found(std::slice::from_ref(secret), &planted).len();
                assert!(seen >= planted.len(), "{secret}: found in {seen} of {} places", planted.len());
            }
        }
    }
}
