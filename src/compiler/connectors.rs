//! Connector artifacts of sinks, their masks, and the removals of connectors that the project declares.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::codes::{Code, Diagnostic, suggest};
use crate::project::model::{Connection, Materialized, Model, SinkBlock, connector_class};

use super::artifact::{ConnectorArtifact, ConnectorRemovalArtifact, OwnerType, RESERVED_CONFIG};
use super::canonical::canonical_value;
use super::context::Context;
use super::resolve::ResolvedModel;
use super::topics::topic_of;

const MASK: &str = "org.apache.kafka.connect.transforms.MaskField$Value";

/// One for each sink, in topological order.
pub(super) fn compile(context: &mut Context<'_>, order: &[&str]) -> Vec<ConnectorArtifact> {
    let mut connectors = Vec::new();
    for name in order {
        let (Some(resolved), Some(model)) = (context.resolved(name), context.names.model(name)) else { continue };
        if resolved.materialized == Materialized::Sink {
            connectors.extend(connector(context, model, resolved));
        }
    }
    connectors
}

fn connector<'a>(context: &mut Context<'a>, model: &'a Model, resolved: &ResolvedModel) -> Option<ConnectorArtifact> {
    let name = &model.name;
    let Some(sink) = &model.sink else {
        let finding =
            Diagnostic::new(Code::E204MissingSinkConfig, format!("model '{name}' is a sink without a sink block"));
        context.findings.push(model.origin.mark("sink", finding));
        return None;
    };
    let topics = inputs(context, model, resolved)?;
    let (mut config, places) = config(context, model, sink)?;
    masks(context, model, &mut config)?;
    let class = connector_class(&sink.connector).to_owned();
    let mut sound = true;
    for (key, canonical) in RESERVED_CONFIG.iter().zip([name.clone(), class.clone(), topics.join(",")]) {
        let written = config.insert((*key).to_owned(), canonical.clone());
        if written.is_some_and(|written| written != canonical) {
            let message = format!("config key '{key}' of sink '{name}' is set by the compiler to another value");
            let place = places.get(*key).copied().unwrap_or(Place::Sink);
            let finding = Diagnostic::new(Code::E501ParseError, message).suggest(place.removal(sink, key));
            context.findings.push(place.mark(model, key, finding));
            sound = false;
        }
    }
    if !sound {
        return None;
    }
    Some(ConnectorArtifact {
        name: name.clone(),
        connector_class: class,
        topics,
        cluster: model.connect_cluster.clone(),
        config,
        ownership: context.ownership(OwnerType::Model, name, model.ownership.mode),
    })
}

fn inputs(context: &mut Context<'_>, model: &Model, resolved: &ResolvedModel) -> Option<Vec<String>> {
    let refuse = |message: String| model.origin.mark("from", Diagnostic::new(Code::E119CompileFailed, message));
    for dependency in &resolved.dependencies {
        if topic_of(context, dependency).is_none() {
            let message = format!("sink '{}' reads '{}', which has no topic", model.name, dependency.name());
            context.findings.push(refuse(message));
            return None;
        }
    }
    if resolved.connector_inputs.is_empty() {
        context.findings.push(refuse(format!("sink '{}' reads no topic", model.name)));
        return None;
    }
    Some(resolved.connector_inputs.clone())
}

/// Where a config key is written.
#[derive(Clone, Copy)]
enum Place<'a> {
    Sink,
    Connection(&'a Connection),
}

impl Place<'_> {
    fn mark(self, model: &Model, key: &str, finding: Diagnostic) -> Diagnostic {
        match self {
            Self::Sink => model.origin.mark(&format!("sink.config.{key}"), finding),
            Self::Connection(connection) => connection.origin.mark(&format!("config.{key}"), finding),
        }
    }

    fn removal(self, sink: &SinkBlock, key: &str) -> String {
        match (self, &sink.connection) {
            (Self::Connection(_), Some(name)) => format!("Remove '{key}' from connections.{name}.config."),
            (Self::Sink | Self::Connection(_), _) => format!("Remove '{key}' from sink.config."),
        }
    }
}

type Config<'a> = (BTreeMap<String, String>, HashMap<&'a str, Place<'a>>);

/// The connection's config under the sink's own, every value as the string that Connect returns.
fn config<'a>(context: &mut Context<'a>, model: &Model, sink: &'a SinkBlock) -> Option<Config<'a>> {
    let project = context.project;
    let mut merged: BTreeMap<&'a str, (&'a Value, Place<'a>)> = BTreeMap::new();
    if let Some(name) = &sink.connection {
        let Some(connection) = project.connections.get(name) else {
            let known = project.connections.keys().map(String::as_str);
            let finding = Diagnostic::new(Code::E210InvalidConnectionRef, format!("Connection '{name}' not found"))
                .suggest_opt(suggest::hint(name, "connection", known));
            context.findings.push(model.origin.mark("sink.connection", finding));
            return None;
        };
        merged.extend(
            connection.config.iter().map(|(key, value)| (key.as_str(), (value, Place::Connection(connection)))),
        );
    }
    merged.extend(sink.config.iter().map(|(key, value)| (key.as_str(), (value, Place::Sink))));
    let (mut config, mut places) = (BTreeMap::new(), HashMap::new());
    for (key, (value, place)) in merged {
        let text = match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(_) => canonical_value(value).ok().and_then(|bytes| String::from_utf8(bytes).ok()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let Some(text) = text.filter(|_| !key.trim().is_empty()) else {
            let message =
                format!("config key '{key}' of sink '{}' must hold a string, a number or a boolean", model.name);
            context.findings.push(place.mark(model, key, Diagnostic::new(Code::E501ParseError, message)));
            return None;
        };
        config.insert(key.to_owned(), text);
        places.insert(key, place);
    }
    Some((config, places))
}

/// Mask policies as single message transforms, behind those that the author wrote.
fn masks(context: &mut Context<'_>, model: &Model, config: &mut BTreeMap<String, String>) -> Option<()> {
    let Some(security) = &model.security else { return Some(()) };
    let written = config.get("transforms").map(String::as_str).unwrap_or_default();
    let mut names: Vec<String> =
        written.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let mut masked = false;
    for (index, column, method) in security.masks() {
        let name = format!("mask{index}");
        let field = format!("security.policies.{index}");
        let prefix = format!("transforms.{name}.");
        if names.contains(&name) || config.keys().any(|key| key.starts_with(&prefix)) {
            let message = format!("sink '{}' already has a transform named '{name}'", model.name);
            let finding =
                Diagnostic::new(Code::E501ParseError, message).suggest("Rename it: masks use mask0, mask1, ….");
            context.findings.push(model.origin.mark(&field, finding));
            return None;
        }
        if matches!(method, "hash" | "partial" | "tokenize") {
            let message =
                format!("sink '{}' masks column '{column}' with an empty value: Connect has no '{method}'", model.name);
            let finding = Diagnostic::new(Code::W227MaskMethodApproximated, message);
            context.findings.push(model.origin.mark(&field, finding));
        }
        config.insert(format!("{prefix}type"), MASK.to_owned());
        config.insert(format!("{prefix}fields"), column.to_owned());
        names.push(name);
        masked = true;
    }
    if masked {
        config.insert("transforms".to_owned(), names.join(","));
    }
    Some(())
}

/// The declared removals in declaration order. E427 when one meets a connector that the project still wants, or another removal.
pub(super) fn removals(context: &mut Context<'_>, desired: &[ConnectorArtifact]) -> Vec<ConnectorRemovalArtifact> {
    let project = context.project;
    let default = project.runtime.connect.as_ref().and_then(|connect| connect.default.as_deref());
    let mut owners = BTreeSet::new();
    let mut targets = BTreeSet::new();
    let mut removals = Vec::new();
    for removal in &project.connector_removals {
        let target = (removal.cluster.as_str(), removal.name.as_str());
        let wanted = desired.iter().any(|connector| {
            let cluster = connector.cluster.as_deref().or(default);
            connector.ownership.name == removal.logical_owner
                || (cluster == Some(target.0) && connector.name == target.1)
        });
        let why = if wanted {
            Some("the project still declares this connector")
        } else if !owners.insert(removal.logical_owner.as_str()) || !targets.insert(target) {
            Some("another removal names the same connector")
        } else {
            None
        };
        if let Some(why) = why {
            let message = format!("removal of connector '{}' (owner '{}'): {why}", removal.name, removal.logical_owner);
            context.findings.push(removal.origin.mark("", Diagnostic::new(Code::E427ConnectorRemovalInvalid, message)));
            continue;
        }
        removals.push(ConnectorRemovalArtifact {
            logical_owner: removal.logical_owner.clone(),
            name: removal.name.clone(),
            cluster: removal.cluster.clone(),
        });
    }
    removals
}
