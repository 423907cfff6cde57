//! What a connector deletion carries through plan file, intent, dispatch, projection and recovery: names and digests only.

use serde::{Deserialize, Deserializer, Serialize, de};

use super::identity::{ConnectClusterBinding, ConnectorName};
use super::observation::ManagedConnectorObservation;
use crate::compiler::canonical::Checksum;

/// Stands outside both fingerprints.
pub const EVIDENCE_VERSION: u32 = 1;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Surface {
    exists: bool,
    fingerprint: Checksum,
}

/// The evidence of one deletion. Reading one proves its form: present with another fingerprint than absence, then absent
/// with exactly the fingerprint of absence at this binding and name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ConnectorActionEvidence {
    version: u32,
    backend_identity: ConnectClusterBinding,
    connector_name: ConnectorName,
    prior_artifact_checksum: Checksum,
    current: Surface,
    desired: Surface,
}

impl ConnectorActionEvidence {
    /// None for an absent connector: there is nothing to delete.
    pub fn of_deletion(current: &ManagedConnectorObservation, prior_artifact_checksum: Checksum) -> Option<Self> {
        let absence = ManagedConnectorObservation::absence(current.binding(), current.name());
        current.exists().then(|| Self {
            version: EVIDENCE_VERSION,
            backend_identity: current.binding().clone(),
            connector_name: current.name().clone(),
            prior_artifact_checksum,
            current: Surface { exists: true, fingerprint: current.fingerprint().clone() },
            desired: Surface { exists: false, fingerprint: absence },
        })
    }

    pub fn binding(&self) -> &ConnectClusterBinding {
        &self.backend_identity
    }

    pub fn connector_name(&self) -> &ConnectorName {
        &self.connector_name
    }

    pub fn prior_artifact_checksum(&self) -> &Checksum {
        &self.prior_artifact_checksum
    }

    /// What was reviewed as live.
    pub fn current_fingerprint(&self) -> &Checksum {
        &self.current.fingerprint
    }

    /// What is to be live: exact absence.
    pub fn desired_fingerprint(&self) -> &Checksum {
        &self.desired.fingerprint
    }

    /// Whether this observation is what was reviewed.
    pub fn is_of(&self, live: &ManagedConnectorObservation) -> bool {
        live.exists()
            && live.binding() == &self.backend_identity
            && live.name() == &self.connector_name
            && live.fingerprint() == &self.current.fingerprint
    }

    fn is_sound(&self) -> bool {
        let absence = ManagedConnectorObservation::absence(&self.backend_identity, &self.connector_name);
        self.version == EVIDENCE_VERSION
            && self.current.exists
            && !self.desired.exists
            && self.desired.fingerprint == absence
            && self.current.fingerprint != absence
    }
}

impl<'de> Deserialize<'de> for ConnectorActionEvidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            version: u32,
            backend_identity: ConnectClusterBinding,
            connector_name: ConnectorName,
            prior_artifact_checksum: Checksum,
            current: Surface,
            desired: Surface,
        }
        let Written { version, backend_identity, connector_name, prior_artifact_checksum, current, desired } =
            Written::deserialize(deserializer)?;
        let evidence = Self { version, backend_identity, connector_name, prior_artifact_checksum, current, desired };
        match evidence.is_sound() {
            true => Ok(evidence),
            false => Err(de::Error::custom("no evidence of a connector deletion")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{absent, present};
    use super::*;

    fn golden() -> Value {
        json!({
            "version": 1,
            "backend_identity": "kafka-connect:v1:primary:sha256:e9b1bf835a819a4cbbedc6712019be3e74daec37fd3709464eaf327b095e162e",
            "connector_name": "orders-sink",
            "prior_artifact_checksum": "sha256:d9a0a47c68185fc46e98fbdf830464f03adb80eebf26f08c5c66dd6fa20193dc",
            "current": {
                "exists": true,
                "fingerprint": "sha256:31444e49d68ce303510f3898676fe3ff4c69771d4ba08a5a1a67c118907da2b8",
            },
            "desired": {
                "exists": false,
                "fingerprint": "sha256:1dcf83c2e00f98125b15ebffcddd9edaa55212ad01aa5862d12392a3676f140c",
            },
        })
    }

    /// CRM-066, CRM-067, CRM-068, CRM-069
    #[test]
    fn the_evidence_of_a_deletion_is_exactly_this_and_holds_no_configuration() {
        let live = present(
            "orders-sink",
            &[
                ("connection.password", "s3cret"),
                ("connector.class", "io.example.SinkConnector"),
                ("name", "orders-sink"),
                ("tasks.max", "2"),
                ("topics", "orders.v1,refunds.v1"),
            ],
        );
        let checksum = Checksum::of(&live.rebuild("shop", "orders_sink").unwrap()).unwrap();
        let evidence = ConnectorActionEvidence::of_deletion(&live, checksum.clone()).unwrap();
        assert_eq!(serde_json::to_value(&evidence).unwrap(), golden());
        assert_eq!(serde_json::from_value::<ConnectorActionEvidence>(golden()).unwrap(), evidence);
        assert_eq!(ConnectorActionEvidence::of_deletion(&absent("orders-sink"), checksum), None);
    }

    /// CRM-064, CRM-066
    #[test]
    fn evidence_that_was_not_made_here_is_refused() {
        let refused = |change: &dyn Fn(&mut Value)| {
            let mut value = golden();
            change(&mut value);
            assert!(serde_json::from_value::<ConnectorActionEvidence>(value.clone()).is_err(), "{value}");
        };
        refused(&|value| value["version"] = json!(2));
        refused(&|value| value["backend_identity"] = json!("kafka-connect"));
        refused(&|value| value["connector_name"] = json!("other-sink"));
        refused(&|value| value["connector_name"] = json!(""));
        refused(&|value| value["prior_artifact_checksum"] = json!("sha256:x"));
        refused(&|value| value["current"]["exists"] = json!(false));
        refused(&|value| value["desired"]["exists"] = json!(true));
        refused(&|value| value["current"]["fingerprint"] = value["desired"]["fingerprint"].clone());
        refused(&|value| value["desired"]["fingerprint"] = value["current"]["fingerprint"].clone());
        refused(&|value| value["current"]["config"] = json!({}));
        refused(&|value| value["config"] = json!({}));
        for key in ["version", "backend_identity", "connector_name", "prior_artifact_checksum", "current", "desired"] {
            refused(&|value| {
                value.as_object_mut().unwrap().shift_remove(key);
            });
        }
    }
}
