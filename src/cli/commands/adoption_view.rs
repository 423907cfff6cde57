//! How a claim is shown: what is live, what is declared, what would change.

use serde_json::{Map, Value};

use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::plan_view::change_text;
use crate::state::adoption::{Claim, Review, Selection};

/// How far a claim has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Reviewed,
    Adopted,
    /// Nobody says so, or nobody knows.
    NotAdopted,
}

/// A claim as text, whole.
pub fn review(review: &Review, stage: Stage) -> Doc {
    let mut doc = Doc::new();
    let note = match (review.claim, stage) {
        (Claim::Owned, _) => "owned already",
        (Claim::New, Stage::Reviewed) => "to be adopted",
        (Claim::New, Stage::Adopted) => "adopted",
        (Claim::New, Stage::NotAdopted) => "not adopted",
    };
    doc.line(
        Line::new()
            .tone(Tone::Heading, format!("{} {}", review.kind(), review.physical_name))
            .plain(format!("  [{note}]")),
    );
    doc.pairs(2, [("resource", review.resource_id.to_string()), ("observation", review.fingerprint.to_string())]);
    for (name, title) in [("observed", "live:"), ("desired_managed_attributes", "declared, and managed from now on:")] {
        if let Some(fields) = review.attributes.get(name).and_then(Value::as_object) {
            doc.line(format!("  {title}"));
            doc.pairs(4, flat(fields));
        }
    }
    if let Some(pending) = review.pending() {
        doc.line(match pending.is_empty() {
            true => "  A plan would change nothing.",
            false => "  A plan would change:",
        });
        doc.pairs(4, pending.iter().map(|(field, change)| (field.clone(), change_text(change))));
    }
    doc
}

/// What a saved selection claims, one line a resource.
pub fn selection(selection: &Selection) -> Doc {
    let mut doc = Doc::new();
    doc.pairs(
        2,
        [
            ("project", selection.project.clone()),
            ("environment", selection.environment.clone()),
            ("state", format!("{} serial {}", selection.state.address, selection.state.serial)),
            ("manifest", selection.manifest_checksum.to_string()),
            ("checksum", selection.checksum.to_string()),
        ],
    );
    doc.blank().heading("Resources, in order:");
    for one in &selection.resources {
        doc.line(Line::from(format!("  {} {} {}", one.resource_id, one.physical_name, one.observation_fingerprint)));
    }
    doc
}

fn flat(fields: &Map<String, Value>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(inner) if inner.is_empty() => rows.push((name.clone(), "-".to_owned())),
            Value::Object(inner) => {
                rows.extend(inner.iter().map(|(key, value)| (format!("{name}.{key}"), text(value))));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                rows.push((name.clone(), text(value)));
            }
        }
    }
    rows
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
