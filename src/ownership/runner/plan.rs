//! The plan that a runner executes: the part of its artifact that a replacement may change one list of.

use serde_json::{Map, Value};

use crate::compiler::canonical::{Checksum, to_canonical};

const KEYS: [&str; 6] = ["input_topic", "output_topic", "predicates", "projection", "schema", "version"];
const MAX_PLAN: usize = 1_048_576;

/// The digest of the file that a runner is given: the canonical plan and a line feed.
pub fn plan_hash(plan: &Value) -> Option<Checksum> {
    let mut bytes = to_canonical(plan).ok()?;
    bytes.push(b'\n');
    (bytes.len() <= MAX_PLAN).then(|| Checksum::of_bytes(&bytes))
}

/// The members of a plan of version 1.
pub(super) fn members(plan: &Value) -> Result<&Map<String, Value>, &'static str> {
    let malformed = "the plan of a runner is malformed";
    let Value::Object(members) = plan else { return Err(malformed) };
    let mut keys: Vec<&str> = members.keys().map(String::as_str).collect();
    keys.sort_unstable();
    let text = |key: &str| members.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let filled = |key: &str| match members.get(key) {
        Some(Value::Object(entries)) => !entries.is_empty(),
        Some(Value::Array(items)) => !items.is_empty() && items.iter().all(Value::is_object),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => false,
    };
    let predicates = members.get("predicates").and_then(Value::as_array);
    let whole = keys == KEYS
        && members.get("version").and_then(Value::as_u64) == Some(1)
        && text("input_topic")
        && text("output_topic")
        && filled("schema")
        && filled("projection")
        && predicates.is_some_and(|predicates| predicates.iter().all(Value::is_object));
    if whole { Ok(members) } else { Err(malformed) }
}

/// Whether two plans differ in their predicates and in nothing else.
pub(super) fn differ_in_predicates_only(prior: &Value, desired: &Value) -> Result<bool, &'static str> {
    let (prior, desired) = (members(prior)?, members(desired)?);
    let same = |key: &&str| prior.get(*key) == desired.get(*key);
    Ok(KEYS.iter().all(|key| same(key) == (*key != "predicates")))
}
