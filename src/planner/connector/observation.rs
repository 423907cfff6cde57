//! One connector as one strict answer showed it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::identity::{ConnectClusterBinding, ConnectorName};
use crate::compiler::artifact::{self, ConnectorArtifact, OwnerType, Ownership};
use crate::compiler::canonical::{Checksum, number_in_range};
use crate::project::model::OwnershipMode;

/// A connector of one bound cluster, present with its whole configuration or exactly absent. Only the constructors make one,
/// so that a name alone never passes for it; `Debug` shows the fingerprint.
#[derive(Clone, PartialEq)]
pub struct ManagedConnectorObservation {
    binding: ConnectClusterBinding,
    name: ConnectorName,
    config: Option<BTreeMap<String, Value>>,
    fingerprint: Checksum,
}

/// Why no artifact can be formed of what is live. It holds no value of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotRebuilt {
    Absent,
    /// A reserved key is missing or no string.
    ReservedKey(&'static str),
    /// The compiled reader refuses it.
    Form,
}

#[derive(Serialize)]
struct Preimage<'a> {
    binding: &'a ConnectClusterBinding,
    config: Vec<(&'a str, &'a Value)>,
    exists: bool,
    name: &'a str,
}

impl ManagedConnectorObservation {
    pub fn absent(binding: ConnectClusterBinding, name: ConnectorName) -> Self {
        let fingerprint = Self::absence(&binding, &name);
        Self { binding, name, config: None, fingerprint }
    }

    /// Strict: the configuration repeats the connector's name, its keys are not empty, its values are strings, booleans and
    /// finite numbers. The error completes "the answer has …".
    pub fn present(
        binding: ConnectClusterBinding,
        name: ConnectorName,
        config: Map<String, Value>,
    ) -> Result<Self, &'static str> {
        if config.get("name").and_then(Value::as_str) != Some(name.as_str()) {
            return Err("a configuration of another name");
        }
        if config.keys().any(String::is_empty) {
            return Err("an empty configuration key");
        }
        let scalar = |value: &Value| match value {
            Value::String(_) | Value::Bool(_) => true,
            Value::Number(number) => number_in_range(number),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        if !config.values().all(scalar) {
            return Err("a configuration value that is no scalar");
        }
        let config: BTreeMap<String, Value> = config.into_iter().collect();
        let fingerprint =
            fingerprint(&binding, &name, Some(&config)).ok_or("a configuration without a canonical form")?;
        Ok(Self { binding, name, config: Some(config), fingerprint })
    }

    pub fn binding(&self) -> &ConnectClusterBinding {
        &self.binding
    }

    pub fn name(&self) -> &ConnectorName {
        &self.name
    }

    pub fn exists(&self) -> bool {
        self.config.is_some()
    }

    /// The configuration as answered; none when absent. Its values may be secrets.
    pub fn config(&self) -> Option<&BTreeMap<String, Value>> {
        self.config.as_ref()
    }

    /// Digest of binding, name, presence and exact configuration.
    pub fn fingerprint(&self) -> &Checksum {
        &self.fingerprint
    }

    /// The fingerprint of exact absence.
    pub fn absence(binding: &ConnectClusterBinding, name: &ConnectorName) -> Checksum {
        // Strings and an empty list always have a canonical form.
        fingerprint(binding, name, None).unwrap_or_else(|| Checksum::of_bytes(&[]))
    }

    /// The compiled artifact that would be live like this: nothing trimmed, coerced, added or left out.
    pub fn rebuild(&self, project: &str, logical_owner: &str) -> Result<ConnectorArtifact, NotRebuilt> {
        let config = self.config.as_ref().ok_or(NotRebuilt::Absent)?;
        let reserved = |key: &'static str| config.get(key).and_then(Value::as_str).ok_or(NotRebuilt::ReservedKey(key));
        reserved("name")?;
        let (class, topics) = (reserved("connector.class")?, reserved("topics")?);
        let config: Option<BTreeMap<String, String>> =
            config.iter().map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        let rebuilt = ConnectorArtifact {
            name: self.name.as_str().to_owned(),
            connector_class: class.to_owned(),
            topics: topics.split(',').map(str::to_owned).collect(),
            cluster: Some(self.binding.alias().as_str().to_owned()),
            config: config.ok_or(NotRebuilt::Form)?,
            ownership: Ownership {
                mode: OwnershipMode::Managed,
                project: project.to_owned(),
                owner_type: OwnerType::Model,
                name: logical_owner.to_owned(),
            },
        };
        let written = serde_json::to_value(&rebuilt).map_err(|_| NotRebuilt::Form)?;
        artifact::read(written, project).map_err(|_| NotRebuilt::Form)
    }

    /// The checksum of that artifact under an ownership.
    pub fn checksum_as(&self, owner: &Ownership) -> Option<Checksum> {
        let artifact = self.rebuild(&owner.project, &owner.name).ok()?;
        Checksum::of(&ConnectorArtifact { ownership: owner.clone(), ..artifact }).ok()
    }
}

fn fingerprint(
    binding: &ConnectClusterBinding,
    name: &ConnectorName,
    config: Option<&BTreeMap<String, Value>>,
) -> Option<Checksum> {
    let preimage = Preimage {
        binding,
        config: config.into_iter().flatten().map(|(key, value)| (key.as_str(), value)).collect(),
        exists: config.is_some(),
        name: name.as_str(),
    };
    Checksum::of(&preimage).ok()
}

impl fmt::Debug for ManagedConnectorObservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedConnectorObservation")
            .field("name", &self.name)
            .field("exists", &self.exists())
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{binding, name, present};
    use super::*;
    use crate::compiler::canonical::to_canonical;

    const CONFIG: &[(&str, &str)] = &[
        ("connection.password", "s3cret"),
        ("connector.class", "io.example.SinkConnector"),
        ("name", "orders-sink"),
        ("tasks.max", "2"),
        ("topics", "orders.v1,refunds.v1"),
    ];

    /// CRM-067, CRM-068: the preimages and digests are frozen.
    #[test]
    fn the_fingerprints_are_those_of_their_frozen_preimages() {
        let identity =
            "kafka-connect:v1:primary:sha256:e9b1bf835a819a4cbbedc6712019be3e74daec37fd3709464eaf327b095e162e";
        let live = present("orders-sink", CONFIG);
        let preimage = format!(
            r#"{{"binding":"{identity}","config":[["connection.password","s3cret"],["connector.class","io.example.SinkConnector"],["name","orders-sink"],["tasks.max","2"],["topics","orders.v1,refunds.v1"]],"exists":true,"name":"orders-sink"}}"#
        );
        assert_eq!(*live.fingerprint(), Checksum::of_bytes(preimage.as_bytes()));
        assert_eq!(
            live.fingerprint().as_str(),
            "sha256:31444e49d68ce303510f3898676fe3ff4c69771d4ba08a5a1a67c118907da2b8"
        );
        let gone = ManagedConnectorObservation::absent(binding(), name("orders-sink"));
        let preimage = format!(r#"{{"binding":"{identity}","config":[],"exists":false,"name":"orders-sink"}}"#);
        assert_eq!(*gone.fingerprint(), Checksum::of_bytes(preimage.as_bytes()));
        assert_eq!(
            gone.fingerprint().as_str(),
            "sha256:1dcf83c2e00f98125b15ebffcddd9edaa55212ad01aa5862d12392a3676f140c"
        );
    }

    /// CRM-050, CRM-052
    #[test]
    fn the_artifact_is_rebuilt_from_what_is_live_and_from_the_tombstone() {
        let artifact = present("orders-sink", CONFIG).rebuild("shop", "orders_sink").unwrap();
        assert_eq!(artifact.topics, ["orders.v1", "refunds.v1"]);
        assert_eq!(artifact.cluster.as_deref(), Some("primary"));
        assert_eq!(
            Checksum::of(&artifact).unwrap().as_str(),
            "sha256:d9a0a47c68185fc46e98fbdf830464f03adb80eebf26f08c5c66dd6fa20193dc"
        );
        let canonical = String::from_utf8(to_canonical(&artifact).unwrap()).unwrap();
        assert!(
            canonical
                .contains(r#""ownership":{"mode":"managed","name":"orders_sink","project":"shop","type":"model"}"#)
        );
    }

    /// CRM-051
    #[test]
    fn rebuilding_neither_trims_nor_folds_nor_adds_nor_leaves_out() {
        let with = |key: &str, value: &str| {
            let mut config: BTreeMap<&str, &str> = CONFIG.iter().copied().collect();
            config.insert(key, value);
            let config: Vec<(&str, &str)> = config.into_iter().collect();
            present("orders-sink", &config).rebuild("shop", "orders_sink")
        };
        let checksum = |key: &str, value: &str| Checksum::of(&with(key, value).unwrap()).unwrap();
        let base = checksum("tasks.max", "2");
        for (key, value) in [
            ("tasks.max", " 2"),
            ("connector.class", "io.example.sinkconnector"),
            ("topics", "orders.v1, refunds.v1"),
            ("topics", "refunds.v1,orders.v1"),
            ("extra", ""),
        ] {
            assert_ne!(checksum(key, value), base, "{key}={value}");
        }
        assert_eq!(with("topics", "orders.v1,"), Err(NotRebuilt::Form), "a blank topic is none");
        assert_eq!(with("topics", ""), Err(NotRebuilt::Form));
        assert_eq!(with("connector.class", " "), Err(NotRebuilt::Form));
    }

    /// CRM-049, CRM-053
    #[test]
    fn an_observation_without_the_reserved_strings_forms_no_artifact() {
        let live = |config: Value| {
            let Value::Object(config) = config else { panic!("an object") };
            ManagedConnectorObservation::present(binding(), name("s"), config)
        };
        for (config, why) in [
            (json!({"name": "s", "topics": "t"}), NotRebuilt::ReservedKey("connector.class")),
            (json!({"name": "s", "connector.class": "C"}), NotRebuilt::ReservedKey("topics")),
            (json!({"name": "s", "connector.class": "C", "topics": 1}), NotRebuilt::ReservedKey("topics")),
            (json!({"name": "s", "connector.class": "C", "topics": "t", "tasks.max": 2}), NotRebuilt::Form),
        ] {
            assert_eq!(live(config.clone()).unwrap().rebuild("shop", "s"), Err(why), "{config}");
        }
        for config in [
            json!({"name": "other", "connector.class": "C"}),
            json!({"connector.class": "C"}),
            json!({"name": 1}),
            json!({"name": "s", "": "x"}),
            json!({"name": "s", "x": null}),
            json!({"name": "s", "x": ["a"]}),
            json!({"name": "s", "x": {"a": 1}}),
        ] {
            assert!(live(config.clone()).is_err(), "{config}");
        }
    }

    /// SEC-003
    #[test]
    fn debug_shows_no_value() {
        let text = format!("{:?}", present("orders-sink", CONFIG));
        assert!(text.contains("sha256:3144") && !text.contains("s3cret") && !text.contains("tasks.max"), "{text}");
    }
}
