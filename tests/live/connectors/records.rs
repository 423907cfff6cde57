//! The recorded state of one apply, put in another form by an administrator.

use serde_json::{Value, json};
use streamt::compiler::canonical::{Checksum, to_canonical};

use super::yard::Yard;

pub fn read(yard: &Yard) -> Value {
    serde_json::from_str(&yard.sql("SELECT state_json FROM {schema}.current_state")[0][0]).expect("a state")
}

/// Past every rule of the writer, with sums that agree. The one apply so far led from nothing to all of it.
pub fn replace(yard: &Yard, state: &Value) {
    let canonical = |value: &Value| String::from_utf8(to_canonical(value).expect("canonical")).expect("text");
    let change = canonical(&json!({"removed": [], "set": state["resources"]}));
    let row = yard.sql("SELECT state_serial, state_checksum FROM {schema}.current_state").remove(0);
    yard.sql(&format!(
        "ALTER TABLE {{schema}}.current_state DISABLE TRIGGER ALL; ALTER TABLE {{schema}}.state_history DISABLE TRIGGER ALL; \
         UPDATE {{schema}}.current_state SET state_json = '{text}', state_checksum = '{sum}'; \
         UPDATE {{schema}}.state_history SET state_checksum = '{sum}', change_json = '{change}' WHERE state_serial = {serial}; \
         UPDATE {{schema}}.operation_history SET event_json = replace(event_json, '{before}', '{sum}') \
         WHERE event_kind = 'succeeded'; \
         ALTER TABLE {{schema}}.current_state ENABLE TRIGGER ALL; ALTER TABLE {{schema}}.state_history ENABLE TRIGGER ALL",
        text = canonical(state),
        sum = Checksum::of(state).expect("a sum").as_str(),
        serial = row[0],
        before = row[1],
    ));
}
