//! `state recovery-plan` and `state recover` on PostgreSQL, as they are typed.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::resolve::{new_file, plan_line, recover_line, resolve};
use super::world::{MODELS, Moment, REMOTE, STORES, World};
use crate::estate::service;
use crate::faults::{Order, Proxy};
use crate::harness::Run;
use crate::support::{clean_up, eventually};

/// What every table of a store holds, as text.
fn rows(world: &World) -> Vec<String> {
    let database = world.database.as_ref().expect("a database");
    ["operation_control", "operation_history", "state_history", "current_state"]
        .iter()
        .flat_map(|table| database.texts(&format!("SELECT t::text FROM SCHEMA.{table} t ORDER BY 1")))
        .collect()
}

/// What a user edits in a file, without the checksum that guards it.
fn edit(world: &World, from: &str, to: &str, change: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(world.workspace.path(from)).expect("a file");
    let edited = change(text.clone());
    assert_ne!(edited, text);
    world.workspace.write(to, &edited);
}

/// PGS-001, REC-001, REC-002, REC-010, REC-016, REC-022, REC-027, REC-028, REC-034, REC-037, REC-038
#[test]
fn what_a_killed_apply_left_is_recorded_as_observed() {
    for store in REMOTE {
        // The schema is registered and recorded; both topics were asked for, and nobody wrote down the answer.
        let world = World::blocked("observed", store, "request.answered", 2);
        let before = rows(&world);
        let status = world.data("state status");
        let operation = &status["operation_status"];
        let mut keys: Vec<&String> = operation.as_object().expect("an operation").keys().collect();
        keys.sort_unstable();
        assert_eq!(keys, ["failure_code", "kind", "last_completed_action_index", "operation_id", "status"]);
        assert_eq!(
            (&operation["status"], &operation["last_completed_action_index"]),
            (&json!("in_progress"), &json!(0))
        );
        let planned = world.data(&plan_line("observed", "r.json"));
        assert_eq!(planned["blocked_operation_id"], operation["operation_id"]);
        let forms: Vec<&Value> =
            planned["targets"].as_array().expect("targets").iter().map(|target| &target["accepted_as"]).collect();
        assert_eq!(forms, ["candidate"; 3]);
        let mode = std::fs::metadata(world.workspace.path("r.json")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(rows(&world), before, "evidence changes nothing");
        let file: Value =
            serde_json::from_slice(&std::fs::read(world.workspace.path("r.json")).expect("a file")).expect("JSON");
        assert_eq!(file["snapshot"]["store"]["backend"], "postgres");
        for target in file["targets"].as_array().expect("targets") {
            assert!(target["fingerprint"].as_str().expect("a fingerprint").starts_with("sha256:"));
        }
        let review = world.data("review r.json");
        assert_eq!((&review["checksum"], &review["resolution"]), (&planned["evidence_checksum"], &json!("observed")));

        let line = recover_line("r.json", &planned);
        let done = world.data(&line);
        assert_eq!((&done["state_serial"], &done["state_changed"]), (&json!(1), &json!(true)));
        assert_eq!(done["store"]["store_id"], status["store_id"]);
        let recovered = rows(&world);
        assert_eq!(recovered.len(), before.len() + 4, "two events, one row of history, the current state");
        assert_eq!(world.data(&line), done, "the exact retry is told the same");
        assert_eq!(rows(&world), recovered, "and writes nothing");
        let after = world.data("state status");
        assert_eq!(after["operation_status"]["status"], "clear");
        for key in ["state_serial", "state_checksum"] {
            assert_eq!(after[key], done[key]);
        }
        for key in ["store_id", "address"] {
            assert_eq!(after[key], status[key]);
        }
        world.run("plan --detailed-exitcode").exits(0);
        // The next operation starts from a state that a recovery wrote, and so does its own recovery.
        world.declare(&MODELS.replace("partitions: 1", "partitions: 2"));
        assert!(world.killed_at("apply", &Moment::new("request.answered", 1)));
        world.settle();
        assert_eq!(resolve(&world, "observed").done["state_serial"], 2);
        world.run("apply").exits(0);
        assert_eq!(world.data("state status")["state_serial"], 3);
        assert_eq!(world.refused(&line), "E409_PLAN_STALE", "ownership went on since that recovery");
    }
}

/// REC-003, REC-011, REC-012, REC-013, REC-056, REC-072: nothing came of it; nothing is asked of services that are not there.
#[test]
fn what_came_to_nothing_is_rolled_back_or_abandoned() {
    for store in REMOTE {
        let world = World::blocked("back", store, "request.admitted", 1);
        assert_eq!(world.refused(&plan_line("abandoned_before_mutation", "no.json")), "E419_STATE_RECOVERY_REQUIRED");
        let back = resolve(&world, "rolled_back");
        assert_eq!(back.count("prior"), 3);
        assert_eq!((&back.done["state_serial"], &back.done["state_changed"]), (&json!(0), &json!(false)));
        assert_eq!(world.refused(&plan_line("observed", "late.json")), "E419_STATE_RECOVERY_REQUIRED");

        assert!(world.killed_at("apply", &Moment::new("step.verified", 1)));
        let text = std::fs::read_to_string(world.workspace.path("stream_project.yml")).expect("a project");
        let unreachable = text
            .replace(&service("STREAMT_TEST_KAFKA"), "127.0.0.1:1")
            .replace(&service("STREAMT_TEST_REGISTRY"), "http://127.0.0.1:1");
        world.workspace.write("stream_project.yml", &unreachable);
        assert_eq!(world.run(&plan_line("observed", "x.json")).exit, 1, "its targets cannot be read");
        world.workspace.write("stream_project.yml", &unreachable.replace("partitions: 1", "partitions: none"));
        assert_eq!(world.refused(&plan_line("observed", "x.json")), "E501_PARSE_ERROR", "its project cannot be read");
        world.workspace.write("stream_project.yml", &unreachable);
        let abandoned = resolve(&world, "abandoned_before_mutation");
        assert_eq!(abandoned.planned["targets"], json!([]));
        assert_eq!(abandoned.done["state_changed"], false);
        world.workspace.write("stream_project.yml", &text);
        world.run("apply").exits(0);
        assert_eq!(world.data("state status")["state_serial"], 1);
    }
}

/// REC-023, REC-026, REC-031, REC-032, REC-033, REC-069, REC-070, REC-080: what is not exactly the reviewed file, with exactly its
/// three values, on exactly the reviewed world, is refused, and the marker stands.
#[test]
fn a_recovery_that_is_not_the_reviewed_one_is_refused() {
    for store in REMOTE {
        let world = World::blocked("refused", store, "request.answered", 2);
        let before = rows(&world);
        let planned = world.data(&plan_line("observed", "r.json"));
        let good = recover_line("r.json", &planned);
        let refused = |line: &str, code: &str, what: &str| {
            let run = world.run(line).exits(1);
            assert_eq!(run.errors()[0].0, code, "{what}: {}", run.stdout);
            assert_eq!(rows(&world), before, "{what}");
        };
        const INVALID: &str = "E408_PLAN_FILE_INVALID";
        const STALE: &str = "E409_PLAN_STALE";

        refused(&plan_line("observed", "r.json"), INVALID, "something stands there");
        symlink(world.workspace.path("nowhere"), world.workspace.path("link.json")).expect("linked");
        refused(&plan_line("observed", "link.json"), INVALID, "a link stands there");
        assert!(!world.workspace.path("nowhere").exists());

        let text = |key: &str| planned[key].as_str().expect("a text").to_owned();
        for (from, to) in [
            (text("blocked_operation_id"), uuid::Uuid::new_v4().to_string()),
            (" observed".to_owned(), " rolled_back".to_owned()),
            (text("evidence_checksum"), format!("sha256:{}", "0".repeat(64))),
        ] {
            refused(&good.replace(&from, &to), INVALID, &format!("confirmed with {to}"));
            refused(&good.replace(from.trim(), "nonsense"), INVALID, "confirmed with nonsense");
        }
        for option in ["--confirm-operation-id", "--confirm-resolution", "--confirm-evidence-checksum"] {
            let words: Vec<&str> = good.split(' ').collect();
            let at = words.iter().position(|word| *word == option).expect("an option");
            let without = [&words[..at], &words[at + 2..]].concat().join(" ");
            refused(&without, INVALID, &format!("without {option}"));
        }

        edit(&world, "r.json", "edited.json", |text| text.replace("\"candidate\"", "\"prior\""));
        edit(&world, "r.json", "cut.json", |text| text[..text.len() / 2].to_owned());
        edit(&world, "r.json", "longer.json", |text| text.replacen('{', "{\"note\": 1,", 1));
        edit(&world, "r.json", "twice.json", |text| text.replacen('{', "{\"kind\": \"streamt.recovery-plan\",", 1));
        edit(&world, "r.json", "later.json", |text| text.replace("\"format_version\": 3", "\"format_version\": 4"));
        symlink(world.workspace.path("r.json"), world.workspace.path("linked.json")).expect("linked");
        for file in ["edited.json", "cut.json", "longer.json", "twice.json", "later.json", "linked.json", "absent.json"]
        {
            refused(&good.replace("r.json", file), INVALID, file);
        }

        let project = std::fs::read_to_string(world.workspace.path("stream_project.yml")).expect("a project");
        world.workspace.write("stream_project.yml", &project.replace("partitions: 1", "partitions: 2"));
        refused(&good, STALE, "another project");
        world.workspace.write("stream_project.yml", &project);
        let gone = format!("{}.a", world.prefix);
        crate::estate::blocking(clean_up([gone.clone()]));
        assert!(!eventually(|| world.topics().contains(&gone), |there| !there), "{gone} is still there");
        refused(&good, STALE, "a target is gone");

        // The evidence of now; the old one is refused for good once that was carried out.
        let other = World::new("other", store);
        other.declare(MODELS);
        assert!(other.killed_at("apply", &Moment::new("request.admitted", 1)));
        std::fs::copy(world.workspace.path("r.json"), other.workspace.path("r.json")).expect("copied");
        assert_eq!(other.refused(&good), STALE, "made for another store");
        let done = resolve(&world, "observed");
        assert_eq!((done.count("candidate"), done.count("prior")), (2, 1));
        assert_eq!(world.refused(&good), "E419_STATE_RECOVERY_REQUIRED", "that evidence was never carried out");
        assert_eq!(world.data("plan")["summary"]["creates"], 1);
    }
}

/// REC-001, REC-007, REC-066: planned, refused, stale, carried out and told again, a recovery asks the services and changes nothing.
#[test]
fn a_recovery_sends_no_change_to_any_service() {
    for store in STORES {
        let order = Order::default();
        let kafka = Proxy::kafka(&order, &service("STREAMT_TEST_KAFKA"));
        let registry = Proxy::http(&order, &service("STREAMT_TEST_REGISTRY"));
        let mut world = World::new("reads", store);
        world.kafka = kafka.address().to_owned();
        world.registry = registry.url();
        world.declare(MODELS);
        assert!(world.killed_at("apply", &Moment::new("request.answered", 2)));
        world.settle();
        let changes: Vec<String> = order.mutations().into_iter().map(|record| record.what).collect();
        assert!(changes.len() >= 2, "the proxies see changes: {changes:?}");
        let before = order.records().len();

        assert_eq!(world.refused(&plan_line("rolled_back", "back.json")), "E409_PLAN_STALE");
        let planned = world.data(&plan_line("observed", "r.json"));
        let gone = format!("{}.a", world.prefix);
        crate::estate::blocking(clean_up([gone.clone()]));
        assert!(!eventually(|| world.topics().contains(&gone), |there| !there), "{gone} is still there");
        assert_eq!(world.refused(&recover_line("r.json", &planned)), "E409_PLAN_STALE");
        let resolved = resolve(&world, "observed");
        world.data(&resolved.line);
        let after: Vec<String> = order.mutations().into_iter().map(|record| record.what).collect();
        assert_eq!(after, changes, "{store:?}");
        assert!(order.records().len() > before, "the services were asked");
    }
}

/// PGS-004, PGS-005, REC-073: the writer's credential alone, and no fallback in its absence.
#[test]
fn recovery_uses_the_writer_and_nobody_else() {
    for store in REMOTE {
        let world = World::blocked("writer", store, "request.admitted", 1);
        let without = |variable: &str, line: &str| {
            let output = world.command(line).env_remove(variable).output().expect("runs");
            Run::of(line, output)
        };
        let file = new_file();
        for (variable, poisoned) in
            [("WRITER_DSN", None), ("WRITER_DSN", Some(world.database.as_ref().expect("one").admin.clone()))]
        {
            let run = match &poisoned {
                None => without(variable, &plan_line("observed", &file)),
                Some(dsn) => {
                    let output = world.command(&plan_line("observed", &file)).env(variable, dsn).output();
                    Run::of("state recovery-plan", output.expect("runs"))
                }
            };
            assert_eq!(run.exits(1).errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE");
            assert!(!world.workspace.path(&file).exists());
            assert!(!world.workspace.path(".streamt").exists(), "no local state instead");
        }
        let planned = without("OWNER_DSN", &plan_line("observed", &file)).exits(0).json()["data"].clone();
        let line = recover_line(&file, &planned);
        assert_eq!(without("WRITER_DSN", &line).exits(1).errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE");
        assert_eq!(world.operation()["status"], "in_progress");
        without("OWNER_DSN", &line).exits(0);
    }
}
