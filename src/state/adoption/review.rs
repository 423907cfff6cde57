//! What is shown of a claim before anybody confirms it: the attributes that streamt will manage, live beside declared, what
//! would change, and a digest of exactly what was seen. Schema bodies and sensitive values are not shown.

use serde_json::{Map, Value, json};

use super::{Claim, Form, Live, Target};
use crate::codes::redact::{REDACTED, is_sensitive_key};
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::{ConnectorArtifact, Kind, SchemaArtifact, SchemaType, TopicArtifact};
use crate::compiler::canonical::{CanonicalError, Checksum};
use crate::planner::connector::{ConnectClusterBinding, ConnectorDiff, ManagedConnectorObservation};
use crate::planner::observation::{SchemaObservation, TopicObservation};
use crate::planner::topic::TopicDiff;
use crate::project::model::SchemaReference;
use crate::state::model::ResourceId;

/// One claim as it is reviewed.
#[derive(Clone, PartialEq, Debug)]
pub struct Review {
    pub resource_id: ResourceId,
    pub logical_name: String,
    pub physical_name: String,
    pub claim: Claim,
    /// `observed`, `desired_managed_attributes`, `pending_diffs` and what the kind adds to them.
    pub attributes: Map<String, Value>,
    /// Digest of what was seen; equal only for an equal observation.
    pub fingerprint: Checksum,
}

impl Review {
    /// E413 for what is not there, E416 for an observation that lacks a part.
    pub fn of(target: &Target, claim: Claim, live: Option<&Live>) -> Result<Self, Diagnostic> {
        let shown = match (&target.form, live) {
            (Form::Topic(desired), Some(Live::Topic(live))) if live.exists => topic(desired, live),
            (Form::Schema(desired), Some(Live::Schema(live))) if live.exists => schema(desired, live, target),
            (Form::Connector(desired, binding), Some(Live::Connector(live))) if live.exists() => {
                connector(desired, binding, live, target)
            }
            (Form::Topic(_), Some(Live::Topic(_)))
            | (Form::Schema(_), Some(Live::Schema(_)))
            | (Form::Connector(..), Some(Live::Connector(_))) => {
                return Err(absent(target));
            }
            (Form::Topic(_) | Form::Schema(_) | Form::Connector(..), _) => {
                return Err(unreadable(target, "it was not read"));
            }
        };
        let (attributes, fingerprint) = shown.map_err(|what| unreadable(target, what))?;
        Ok(Self {
            resource_id: target.resource_id.clone(),
            logical_name: target.logical_name.clone(),
            physical_name: target.physical_name.clone(),
            claim,
            attributes,
            fingerprint,
        })
    }

    pub fn kind(&self) -> Kind {
        self.resource_id.kind()
    }

    /// Field → `{from, to}` of what a later plan would change.
    pub fn pending(&self) -> Option<&Map<String, Value>> {
        self.attributes.get("pending_diffs").and_then(Value::as_object)
    }

    /// The review as results print it.
    pub fn data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        data.insert("resource_id".to_owned(), json!(self.resource_id));
        data.insert("kind".to_owned(), json!(self.kind()));
        if self.kind() != Kind::Connector {
            data.insert("logical_name".to_owned(), json!(self.logical_name));
        }
        data.insert("physical_name".to_owned(), json!(self.physical_name));
        data.extend(self.attributes.clone());
        data.insert("observation_fingerprint".to_owned(), json!(self.fingerprint));
        data
    }
}

/// E413.
fn absent(target: &Target) -> Diagnostic {
    let (kind, name) = (target.kind(), &target.physical_name);
    Diagnostic::new(Code::E413AdoptionLiveNotFound, format!("the {kind} '{name}' does not exist"))
        .suggest("check its physical name and the environment; to create it, declare it `managed`")
}

fn unreadable(target: &Target, what: &str) -> Diagnostic {
    let (kind, name) = (target.kind(), &target.physical_name);
    Diagnostic::new(Code::E416AdoptionFailed, format!("the {kind} '{name}' cannot be adopted as it was read: {what}"))
        .suggest("nothing was written; find out why the service answers so, then run the command again")
}

type Shown = Result<(Map<String, Value>, Checksum), &'static str>;

const NO_FORM: &str = "its answer has no canonical form";

fn digest(preimage: &Value) -> Result<Checksum, &'static str> {
    Checksum::of(preimage).map_err(|CanonicalError| NO_FORM)
}

fn attributes(observed: Value, desired: Value, pending: Map<String, Value>) -> Map<String, Value> {
    let fields =
        [("observed", observed), ("desired_managed_attributes", desired), ("pending_diffs", Value::Object(pending))];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn topic(desired: &TopicArtifact, live: &TopicObservation) -> Shown {
    let partitions = live.partitions.filter(|count| *count > 0).ok_or("it has no partitions")?;
    let factor = live.replication_factor.filter(|count| *count > 0).ok_or("it has no replicas")?;
    let shown = |config: &std::collections::BTreeMap<String, String>| -> Map<String, Value> {
        let entry = |(key, value): (&String, &String)| {
            (key.clone(), json!(if is_sensitive_key(key) { REDACTED } else { value.as_str() }))
        };
        config.iter().map(entry).collect()
    };
    let mut pending = TopicDiff::of(desired, live).changes();
    if let Some(Value::Object(error)) = pending.get_mut("partitions_error") {
        error.insert("current".to_owned(), json!(partitions));
        error.insert("desired".to_owned(), json!(desired.partitions));
    }
    let mut attributes = attributes(
        json!({"partitions": partitions, "replication_factor": factor, "config": shown(&live.config)}),
        json!({"partitions": desired.partitions, "config": shown(&desired.config)}),
        pending,
    );
    attributes.insert("desired_replication_factor".to_owned(), json!(desired.replication_factor));
    let fingerprint = digest(&json!({
        "name": live.name, "exists": true, "partitions": partitions, "replication_factor": factor,
        "config": live.config,
    }))?;
    Ok((attributes, fingerprint))
}

fn schema(desired: &SchemaArtifact, live: &SchemaObservation, target: &Target) -> Shown {
    let version = live.version.filter(|version| *version > 0).ok_or("its version is not a positive number")?;
    let id = live.schema_id.filter(|id| *id > 0).ok_or("its schema id is not a positive number")?;
    let body = live.schema.as_ref().ok_or("it has no schema")?;
    let schema_type = live.schema_type.ok_or("its type is not known")?;
    if live.references.iter().any(|one| one.version == 0 || one.name.is_empty() || one.subject.is_empty()) {
        return Err("one of its references names no version");
    }
    let live_content = content(body, schema_type, &live.references)?;
    let desired_content = content(&desired.schema, desired.schema_type, &desired.references)?;
    let mut pending = Map::new();
    let mut differs = |field: &str, from: Value, to: Value| {
        if from != to {
            pending.insert(field.to_owned(), json!({"from": from, "to": to}));
        }
    };
    differs("schema_type", json!(schema_type), json!(desired.schema_type));
    differs("schema_checksum", json!(live_content), json!(desired_content));
    if desired.compatibility.is_some() {
        differs("compatibility", json!(live.compatibility), json!(desired.compatibility));
    }
    let attributes = attributes(
        json!({
            "subject": live.subject, "schema_type": schema_type, "version": version, "schema_id": id,
            "compatibility": live.compatibility, "schema_checksum": live_content,
        }),
        json!({
            "subject": desired.subject, "schema_type": desired.schema_type, "compatibility": desired.compatibility,
            "schema_checksum": desired_content, "artifact_checksum": target.artifact_checksum,
        }),
        pending,
    );
    let mut references = live.references.clone();
    references.sort();
    let fingerprint = digest(&json!({
        "subject": live.subject, "exists": true, "version": version, "schema_id": id, "schema": body,
        "schema_type": schema_type, "compatibility": live.compatibility, "references": references,
    }))?;
    Ok((attributes, fingerprint))
}

/// Names of keys and directions only: a value may be a secret, and so may a digest of one (ADO-025).
fn connector(
    desired: &ConnectorArtifact,
    binding: &ConnectClusterBinding,
    live: &ManagedConnectorObservation,
    target: &Target,
) -> Shown {
    if live.binding() != binding {
        return Err("it was read from another cluster");
    }
    let config = live.config().ok_or("it has no configuration")?;
    let alias = binding.alias().as_str();
    let pending = ConnectorDiff::of(desired, live).changes();
    let changed: Vec<Value> =
        pending.iter().map(|(name, category)| json!({"name": name, "change": category["change"]})).collect();
    let mut attributes = attributes(
        json!({"name": live.name(), "config_checksum": digest(&json!(config))?}),
        json!({
            "name": desired.name, "cluster_alias": alias, "config_checksum": digest(&json!(desired.config))?,
            "artifact_checksum": target.artifact_checksum,
        }),
        pending,
    );
    attributes.insert("cluster_alias".to_owned(), json!(alias));
    attributes.insert("endpoint_fingerprint".to_owned(), json!(format!("sha256:{}", binding.endpoint().as_str())));
    attributes.insert("has_pending_changes".to_owned(), json!(!changed.is_empty()));
    attributes.insert("changed_keys".to_owned(), Value::Array(changed));
    Ok((attributes, live.fingerprint().clone()))
}

/// The digest of a schema's content: its text, its type and, where there are any, what it refers to.
fn content(schema: &Value, schema_type: SchemaType, references: &[SchemaReference]) -> Result<Checksum, &'static str> {
    let mut preimage = json!({"schema": schema, "schema_type": schema_type});
    if !references.is_empty() {
        let mut sorted = references.to_vec();
        sorted.sort();
        preimage["references"] = json!(sorted);
    }
    digest(&preimage)
}
