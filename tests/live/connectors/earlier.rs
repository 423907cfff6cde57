//! PostgreSQL state that an earlier streamt wrote: controls of versions 1 and 2, clear or pending, and recovery plans of formats
//! 1 and 2.

use serde_json::{Value, json};
use streamt::compiler::canonical::Checksum;

use super::yard::{State, Yard};
use crate::earlier::{OPERATION, action, canonical, events};
use crate::losses::site::{code, on_each_major, text};

impl Yard {
    fn address(&self) -> String {
        format!("streamt-state://connectors/{}/default", self.project)
    }

    fn control_version(&self) -> String {
        self.sql("SELECT control_version FROM {schema}.operation_control").remove(0).remove(0)
    }

    /// Nothing pending, as a version wrote it.
    fn clear_in(&self, version: u8) {
        let document = json!({
            "address": self.address(), "control_version": version, "intent": null, "progress": [], "recovery": null,
            "status": "clear",
        });
        let checksum = Checksum::of(&document).expect("a digest");
        self.sql(&format!(
            "UPDATE {{schema}}.operation_control SET control_version = {version}, control_checksum = '{checksum}'"
        ));
    }

    /// The first operation of the address, pending in a version.
    fn pending_in(&self, version: u8, verb: &str, resource: &str, started: bool) {
        let prior = json!({
            "state_version": 1, "project": self.project, "environment": "default", "serial": 0, "resources": {},
        });
        let action = action(version, verb, resource, None);
        let all = events(&self.address(), version, &action, &prior, started);
        for event in &all {
            let recorded = event["event"].get("started_at").unwrap_or(&event["event"]["recorded_at"]);
            self.sql(&format!(
                "INSERT INTO {{schema}}.operation_history VALUES ('connectors', '{}', 'default', '{OPERATION}', {}, {}, '{}', {}, {})",
                self.project,
                event["event_index"],
                quoted(&event["event_kind"]),
                canonical(&event["event"]),
                quoted(&event["control_checksum"]),
                quoted(recorded),
            ));
            self.sql(&format!(
                "UPDATE {{schema}}.operation_control SET revision = revision + 1, status = 'in_progress', \
                 control_version = {version}, operation_id = '{OPERATION}', event_index = {}, control_checksum = {}, \
                 updated_at = {}",
                event["event_index"],
                quoted(&event["control_checksum"]),
                quoted(recorded),
            ));
        }
    }
}

fn quoted(value: &Value) -> String {
    format!("'{}'", text(value))
}

/// CRM-075, CRM-079: looking leaves it alone; an apply and an adoption end in the current version.
#[test]
fn a_clear_control_of_an_earlier_version_is_served_and_upgraded_by_the_next_write() {
    on_each_major(|admin| {
        let yard = Yard::new("STREAMT_TEST_CONNECT", State::Postgres(admin.to_owned()), &["first", "second"]);
        for (version, sink) in [(1, "first"), (2, "second")] {
            yard.clear_in(version);
            let name = yard.name(sink);
            yard.worker.put(&name, &json!({"connector.class": "FileStreamSink", "topics": "x", "name": name}));
            let head = format!("  - name: {name}\n    description: d\n");
            let claimed = format!("{head}    ownership: {{mode: adopted}}\n");
            yard.write(&yard.yaml(&[sink], &[]).replace(&head, &claimed));
            for line in ["state status", "plan", "plan --out plan.json", "diff", "status"] {
                yard.run(&format!("{line} -o json")).exits(0);
                assert_eq!(yard.control_version(), version.to_string(), "{line}");
            }
            let id = format!("streamt://{}/default/connector/{name}", yard.project);
            let adopt = format!("adopt --kind connector --name {name} --confirm-resource {id} --confirm-env default");
            yard.run(&format!("{adopt} -o json")).exits(0);
            assert_eq!(yard.control_version(), "3", "after an adoption");
            yard.clear_in(version);
            yard.run("apply -o json").exits(0);
            assert_eq!(yard.control_version(), "3", "after an apply");
        }
    });
}

/// The saved evidence in another format.
fn in_format(yard: &Yard, format: u8) {
    let path = yard.workspace.path("recovery.json");
    let mut plan: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("a plan")).expect("JSON");
    assert_eq!(plan["format_version"], 3, "what is written");
    plan["format_version"] = format.into();
    let target = plan["targets"][0]["action"].as_object_mut().expect("an action");
    for key in ["connector_evidence", "gateway_evidence"].into_iter().take(3_usize.saturating_sub(format.into())) {
        target.shift_remove(key).expect("a key");
    }
    plan.as_object_mut().expect("a plan").shift_remove("evidence_checksum");
    plan["evidence_checksum"] = json!(Checksum::of(&plan).expect("a digest"));
    std::fs::write(path, plan.to_string()).expect("written");
}

/// CRM-074, CRM-076, REC-009: it is proved and ended as one of today is, by a plan of its own format or of a later one.
#[test]
fn a_pending_operation_of_an_earlier_version_is_recovered_by_evidence() {
    on_each_major(|admin| {
        for (version, format) in [(1, 1), (1, 2), (2, 2), (2, 3)] {
            let context = format!("version {version}, format {format}");
            let yard = Yard::new("STREAMT_TEST_CONNECT", State::Postgres(admin.to_owned()), &[]);
            let topic = format!("streamt://{}/default/topic/orders", yard.project);
            yard.pending_in(version, "create", &topic, true);
            for line in ["plan", "apply", "plan --out plan.json"] {
                let run = yard.run(&format!("{line} -o json")).exits(1);
                assert_eq!(code(&run), "E419_STATE_RECOVERY_REQUIRED", "{context}: {}", run.stdout);
            }
            let line = "state recovery-plan --resolution observed --out recovery.json -o json";
            let planned = yard.run(line).exits(0).json();
            assert_eq!(planned["data"]["targets"][0]["accepted_as"], "prior", "{context}");
            in_format(&yard, format);
            let reviewed = yard.run("review recovery.json -o json").exits(0).json();
            assert_eq!(reviewed["data"]["format_version"], format, "{context}");
            assert_eq!(yard.control_version(), version.to_string(), "{context}");
            super::recovery::recover(&yard, OPERATION, "observed");
            assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear", "{context}");
            assert_eq!(yard.control_version(), "3", "{context}");
            yard.run("apply -o json").exits(0);
        }
    });
}

/// REC-049, REC-065: without evidence nothing is inferred from the worker, which is not even asked.
#[test]
fn a_deletion_of_an_earlier_version_is_given_up_or_stays() {
    on_each_major(|admin| {
        for (version, started) in [(1, false), (2, false), (2, true)] {
            let context = format!("version {version}, started {started}");
            let yard = Yard::new("STREAMT_TEST_CONNECT", State::Postgres(admin.to_owned()), &[]);
            let gone = format!("streamt://{}/default/connector/gone", yard.project);
            yard.pending_in(version, "delete", &gone, started);
            for resolution in ["observed", "rolled_back"] {
                let line = format!("state recovery-plan --resolution {resolution} --out recovery.json -o json");
                let run = yard.run(&line).exits(1);
                assert_eq!(code(&run), "E409_PLAN_STALE", "{context}: {}", run.stdout);
                assert_eq!(run.json()["data"]["targets"][0]["reason"], "content_not_provable", "{context}");
            }
            let line = "state recovery-plan --resolution abandoned_before_mutation --out recovery.json -o json";
            let run = yard.run(line);
            if started {
                assert_eq!(code(&run.exits(1)), "E419_STATE_RECOVERY_REQUIRED", "{context}");
                assert_eq!(yard.control_version(), version.to_string(), "{context}");
            } else {
                super::recovery::recover(&yard, OPERATION, "abandoned_before_mutation");
                assert_eq!(text(&yard.status()["operation_status"]["status"]), "clear", "{context}");
            }
            assert_eq!(yard.since(0), Vec::<String>::new(), "{context}");
        }
    });
}
