//! What exists on the workers, for declarations that are made from it: every connector in one answer, and which of its values a
//! connector's class calls passwords.

use std::collections::BTreeMap;
use std::fmt;

use reqwest::StatusCode;
use serde_json::{Map, Value};

use super::read::until_settled;
use super::{ConnectClient, wire};
use crate::providers::http::{LIST_LIMIT, Request};
use crate::providers::{Ctx, Identity, ProviderFailure};

/// Which way a connector moves records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Sink,
    Source,
    /// The class is not there, so the workers do not know.
    Unknown,
}

impl Direction {
    /// A `type` of a worker's answer.
    pub(super) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("sink") => Self::Sink,
            Some("source") => Self::Source,
            Some(_) | None => Self::Unknown,
        }
    }
}

/// One connector with its configuration, whose values may be secrets: `Debug` shows none.
#[derive(Clone, PartialEq, Eq)]
pub struct ListedConnector {
    pub name: String,
    pub direction: Direction,
    pub config: BTreeMap<String, String>,
}

impl fmt::Debug for ListedConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedConnector")
            .field("name", &self.name)
            .field("direction", &self.direction)
            .field("keys", &self.config.len())
            .finish()
    }
}

impl ConnectClient {
    /// Every connector, sorted by name.
    pub async fn list(&self, ctx: &Ctx) -> Result<Vec<ListedConnector>, ProviderFailure> {
        let request = Request { query: "?expand=info", limit: LIST_LIMIT, ..Request::get(&["connectors"]) };
        until_settled(ctx, async || {
            let answer = self.http.read(ctx, &request).await?;
            match answer.status {
                StatusCode::OK => listed(answer.json()?),
                _other => Err(wire::refusal(&answer)),
            }
        })
        .await
    }

    /// The type of each setting that a class has of its own, as its workers spell them. None when they do not know the class.
    pub async fn value_types(
        &self,
        ctx: &Ctx,
        class: &str,
    ) -> Result<Option<BTreeMap<String, String>>, ProviderFailure> {
        let path = ["connector-plugins", class, "config"];
        let request = Request { limit: LIST_LIMIT, ..Request::get(&path) };
        let answer = self.http.read(ctx, &request).await?;
        match answer.status {
            StatusCode::OK => types(&answer.json()?).map(Some),
            StatusCode::NOT_FOUND => Ok(None),
            _other => Err(wire::refusal(&answer)),
        }
    }
}

/// `{NAME: {info: {name, config, tasks, type}}}`.
fn listed(body: Value) -> Result<Vec<ListedConnector>, ProviderFailure> {
    let Value::Object(all) = body else { return Err(ProviderFailure::Protocol { what: "list of connectors" }) };
    let mut found: Vec<ListedConnector> = all.into_iter().map(one).collect::<Result<_, _>>()?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn one((name, mut entry): (String, Value)) -> Result<ListedConnector, ProviderFailure> {
    let unreadable = |what| ProviderFailure::Unreadable { identity: Identity::Connector(name.clone()), what };
    let info = entry.get_mut("info").map(Value::take).unwrap_or_default();
    let Value::Object(mut info) = info else { return Err(unreadable("the answer has no information")) };
    if info.get("name").and_then(Value::as_str) != Some(name.as_str()) {
        return Err(unreadable("the answer is about another connector"));
    }
    let direction = Direction::parse(info.get("type").and_then(Value::as_str));
    let Some(Value::Object(config)) = info.remove("config") else {
        return Err(unreadable("the answer has no configuration"));
    };
    let config = texts(config).ok_or_else(|| unreadable("a configuration value is no text"))?;
    Ok(ListedConnector { name, direction, config })
}

fn texts(config: Map<String, Value>) -> Option<BTreeMap<String, String>> {
    let text = |(key, value): (String, Value)| match value {
        Value::String(text) if !key.is_empty() => Some((key, text)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    };
    config.into_iter().map(text).collect()
}

/// `[{name, type, …}]`.
fn types(body: &Value) -> Result<BTreeMap<String, String>, ProviderFailure> {
    let malformed = ProviderFailure::Protocol { what: "settings of a connector class" };
    let setting =
        |setting: &Value| Some((setting.get("name")?.as_str()?.to_owned(), setting.get("type")?.as_str()?.to_owned()));
    let settings = body.as_array().and_then(|all| all.iter().map(setting).collect::<Option<BTreeMap<_, _>>>());
    settings.ok_or(malformed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_read_whole_or_not_at_all() {
        let entry = |name: &str, kind: &str| json!({"info": {"name": name, "config": {"name": name, "a": "1"}, "tasks": [], "type": kind}});
        let found =
            listed(json!({"b": entry("b", "sink"), "a": entry("a", "source"), "c": entry("c", "unknown")})).unwrap();
        let seen: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.direction)).collect();
        assert_eq!(seen, [("a", Direction::Source), ("b", Direction::Sink), ("c", Direction::Unknown)]);
        assert!(!format!("{found:?}").contains("\"1\""), "no value");
        for body in [
            json!([]),
            json!({"a": {}}),
            json!({"a": {"info": {}}}),
            json!({"a": entry("b", "sink")}),
            json!({"a": {"info": {"name": "a", "type": "sink"}}}),
            json!({"a": {"info": {"name": "a", "type": "sink", "config": {"x": 1}}}}),
            json!({"a": {"info": {"name": "a", "type": "sink", "config": {"x": null}}}}),
            json!({"a": {"info": {"name": "a", "type": "sink", "config": {"": "x"}}}}),
        ] {
            assert!(listed(body.clone()).is_err(), "{body}");
        }
    }

    #[test]
    fn types_of_settings_are_read_whole_or_not_at_all() {
        let all = json!([{"name": "file", "type": "STRING", "required": false}, {"name": "pw", "type": "PASSWORD"}]);
        assert_eq!(types(&all).unwrap().get("pw").map(String::as_str), Some("PASSWORD"));
        for body in [json!({}), json!([{"name": "a"}]), json!([{"type": "STRING"}]), json!(["a"])] {
            assert!(types(&body).is_err(), "{body}");
        }
    }
}
