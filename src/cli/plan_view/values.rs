//! The fields of one change as `field: from -> to`.

use serde_json::{Map, Value};

/// Characters of one value that are shown; JSON output has all.
const LIMIT: usize = 60;

fn cut(text: String) -> String {
    match text.char_indices().nth(LIMIT) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn value(value: &Value) -> String {
    cut(match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    })
}

fn side(side: Option<&Value>, absent: &str) -> String {
    match side {
        None | Some(Value::Null) => absent.to_owned(),
        Some(given) => value(given),
    }
}

/// One row per changed field.
pub fn change_lines(changes: &Map<String, Value>) -> Vec<(String, String)> {
    changes.iter().map(|(field, change)| (field.clone(), change_text(change))).collect()
}

/// What becomes of one field: `1 -> 3`, or the category of a key whose values are not shown.
pub fn change_text(change: &Value) -> String {
    let Value::Object(parts) = change else { return value(change) };
    if parts.contains_key("from") || parts.contains_key("to") {
        return format!("{} -> {}", side(parts.get("from"), "(new)"), side(parts.get("to"), "(removed)"));
    }
    // Of a connector's configuration key only the category is known.
    if let Some(category) = parts.get("change") {
        return value(category);
    }
    if let Some(message) = parts.get("message") {
        return value(message);
    }
    let rest: Vec<String> = parts.iter().map(|(key, part)| format!("{key}={}", value(part))).collect();
    cut(rest.join(", "))
}
