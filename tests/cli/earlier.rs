//! Operations as earlier versions of streamt left them, event by event: control versions 1 and 2 beside the current one.

use serde_json::{Value, json};
use streamt::compiler::canonical::{Checksum, to_canonical};

pub const OPERATION: &str = "6f1c1d0e-3b1a-4c52-9d59-0d9f7a1c2b30";

pub fn canonical(value: &Value) -> String {
    String::from_utf8(to_canonical(value).unwrap()).unwrap()
}

/// The one action of an operation, with the keys of a version.
pub fn action(version: u8, verb: &str, resource: &str, evidence: Option<Value>) -> Value {
    let mut action = json!({"index": 0, "resource_id": resource, "action": verb});
    if version >= 2 {
        action["gateway_evidence"] = Value::Null;
    }
    if version >= 3 {
        action["connector_evidence"] = evidence.unwrap_or(Value::Null);
    }
    action
}

/// The events of an operation that was begun, and started if asked, as they are stored.
pub fn events(address: &str, version: u8, action: &Value, prior: &Value, started: bool) -> Vec<Value> {
    let intent = json!({
        "operation_id": OPERATION, "kind": "apply", "started_at": "2026-09-06T10:00:00.000000Z", "actor": "local-cli",
        "prior_state_serial": prior["serial"], "prior_state_checksum": Checksum::of(prior).unwrap(),
        "reviewed_plan_checksum": null, "actions": [action],
    });
    let entry = json!({
        "operation_id": OPERATION, "action_index": 0, "resource_id": action["resource_id"],
        "action": action["action"], "status": "started", "succeeded": null,
        "recorded_at": "2026-09-06T10:00:01.000000Z",
    });
    let control = |progress: Value| {
        let document = json!({
            "address": address, "control_version": version, "intent": intent, "progress": progress, "recovery": null,
            "status": "in_progress",
        });
        Checksum::of(&document).unwrap()
    };
    let mut all = vec![
        json!({"control_checksum": control(json!([])), "event": intent, "event_index": 0, "event_kind": "intent"}),
    ];
    if started {
        all.push(json!({
            "control_checksum": control(json!([entry])), "event": entry, "event_index": 1,
            "event_kind": "progress_started",
        }));
    }
    all
}
