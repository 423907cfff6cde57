//! Strict readings of what workers answer.

use serde_json::{Map, Value, json};

use super::{ConfigVerdict, ConnectorStatus, Direction, RunState};
use crate::compiler::artifact::ConnectorArtifact;
use crate::planner::connector::{ConnectClusterBinding, ConnectorName, ManagedConnectorObservation, is_plain};
use crate::providers::http::Answer;
use crate::providers::{Identity, ProviderFailure, Reply};

/// What a worker says while a rebalance is expected: 409 when it knows, 500 when it gave up waiting.
pub fn is_rebalance(failure: &ProviderFailure) -> bool {
    matches!(
        failure,
        ProviderFailure::Busy { .. } | ProviderFailure::Rejected { reply: Reply::Http { status: 500, .. }, .. }
    )
}

/// What a worker says of a path that it does not have.
const NO_SUCH_PATH: &str = "HTTP 404 Not Found";

/// Exact absence, in the words of a worker: `{"error_code": 404, "message": "… NAME …"}`. The same status comes from any other
/// service, and from a worker that is asked below a wrong base path.
pub fn says_absent(answer: &Answer, name: &ConnectorName) -> bool {
    let own_words = |body: &Value| {
        let message = body.get("message").and_then(Value::as_str);
        body.get("error_code").and_then(Value::as_u64) == Some(404)
            && message.is_some_and(|message| {
                message != NO_SUCH_PATH && format!(" {message} ").contains(&format!(" {} ", name.as_str()))
            })
    };
    answer.status.as_u16() == 404 && answer.json().is_ok_and(|body| own_words(&body))
}

/// An answer that is not the one that was asked for, before anything was changed.
pub fn refusal(answer: &Answer) -> ProviderFailure {
    match answer.status.as_u16() {
        401 | 403 => ProviderFailure::Auth { text: None },
        404 => ProviderFailure::Protocol { what: "a 404 that is no Kafka Connect worker's" },
        409 => ProviderFailure::Busy { what: "the workers are rebalancing" },
        status @ 400.. => ProviderFailure::Rejected { reply: Reply::Http { status, error_code: None }, text: None },
        _other => ProviderFailure::Protocol { what: "HTTP status" },
    }
}

/// The one connector that was asked for: `{name, config, …}`.
pub fn connector(
    binding: &ConnectClusterBinding,
    name: &ConnectorName,
    answer: &Answer,
) -> Result<ManagedConnectorObservation, ProviderFailure> {
    let unreadable =
        |what| ProviderFailure::Unreadable { identity: Identity::Connector(name.as_str().to_owned()), what };
    let Ok(Value::Object(mut body)) = answer.json() else { return Err(unreadable("the answer is no JSON object")) };
    if body.get("name").and_then(Value::as_str) != Some(name.as_str()) {
        return Err(unreadable("the answer is about another connector"));
    }
    let Some(Value::Object(config)) = body.remove("config") else {
        return Err(unreadable("the answer has no configuration"));
    };
    ManagedConnectorObservation::present(binding.clone(), name.clone(), config).map_err(unreadable)
}

pub fn create_body(artifact: &ConnectorArtifact) -> Vec<u8> {
    json!({"name": artifact.name, "config": artifact.config}).to_string().into_bytes()
}

pub fn config_body(artifact: &ConnectorArtifact) -> Vec<u8> {
    json!(artifact.config).to_string().into_bytes()
}

/// What a worker shows once it has taken the artifact.
pub fn expected(
    binding: &ConnectClusterBinding,
    name: &ConnectorName,
    artifact: &ConnectorArtifact,
) -> Option<ManagedConnectorObservation> {
    let config: Map<String, Value> = artifact.config.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    ManagedConnectorObservation::present(binding.clone(), name.clone(), config).ok()
}

pub fn status(name: &ConnectorName, answer: &Answer) -> Result<ConnectorStatus, ProviderFailure> {
    let unreadable =
        |what| ProviderFailure::Unreadable { identity: Identity::Connector(name.as_str().to_owned()), what };
    let body = answer.json().map_err(|_| unreadable("the answer is no JSON"))?;
    let state = |value: &Value| value.get("state").and_then(Value::as_str).and_then(RunState::parse);
    let connector = body.get("connector").and_then(state).ok_or_else(|| unreadable("its state"))?;
    let tasks = match body.get("tasks") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tasks)) => {
            tasks.iter().map(state).collect::<Option<_>>().ok_or_else(|| unreadable("the state of a task"))?
        }
        Some(_) => return Err(unreadable("its tasks")),
    };
    Ok(ConnectorStatus { state: connector, tasks })
}

/// The judgement of `{error_count, configs: [{value: {name, errors}}]}`. Values and texts in it may hold resolved secrets:
/// only names and counts are read.
pub fn verdict(answer: &Answer) -> ConfigVerdict {
    let Ok(body) = answer.json() else { return ConfigVerdict::Unknown };
    let Some(count) = body.get("error_count").and_then(Value::as_u64) else { return ConfigVerdict::Unknown };
    if count == 0 {
        return ConfigVerdict::Sound;
    }
    let entries = body.get("configs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let values = entries.iter().filter_map(|entry| entry.get("value"));
    let refused = values.filter(|value| value["errors"].as_array().is_some_and(|errors| !errors.is_empty()));
    let mut keys: Vec<String> =
        refused.filter_map(|value| value["name"].as_str()).filter(|key| is_plain(key)).map(str::to_owned).collect();
    keys.sort();
    keys.dedup();
    ConfigVerdict::Refused { keys, errors: usize::try_from(count).unwrap_or(usize::MAX) }
}

/// A class of connectors that the workers have.
pub struct Plugin {
    class: String,
    pub direction: Direction,
}

impl Plugin {
    /// By its full name, or by one of the short names that workers accept.
    pub fn answers_to(&self, wanted: &str) -> bool {
        let simple = self.class.rsplit(['.', '$']).next().unwrap_or(&self.class);
        wanted == self.class || wanted == simple || simple.strip_suffix("Connector") == Some(wanted)
    }
}

/// `[{class, type, …}]`; None for anything else.
pub fn plugins(answer: &Answer) -> Option<Vec<Plugin>> {
    let Ok(Value::Array(plugins)) = answer.json() else { return None };
    let plugin = |plugin: &Value| {
        Some(Plugin {
            class: plugin.get("class")?.as_str()?.to_owned(),
            direction: Direction::parse(plugin.get("type").and_then(Value::as_str)),
        })
    };
    plugins.iter().map(plugin).collect()
}
