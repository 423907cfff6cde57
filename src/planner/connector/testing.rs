//! Builders for the tests of connectors. Everything is bound to `https://connect.example.test` under the alias `primary`.

use std::collections::BTreeMap;

use serde_json::json;

use super::{ConnectClusterBinding, ConnectorName, ManagedConnectorObservation};
use crate::compiler::artifact::{ConnectorArtifact, ConnectorRemovalArtifact};
use crate::planner::fixtures::owner;
use crate::project::model::{BasicAuth, ConnectCluster, ConnectRuntime, Tls};

pub const ALIAS: &str = "primary";
pub const URL: &str = "https://connect.example.test";

pub fn runtime() -> ConnectRuntime {
    let cluster = ConnectCluster { rest_url: URL.to_owned(), auth: BasicAuth::default(), tls: Tls::default() };
    ConnectRuntime { default: Some(ALIAS.to_owned()), clusters: BTreeMap::from([(ALIAS.to_owned(), cluster)]) }
}

pub fn binding() -> ConnectClusterBinding {
    ConnectClusterBinding::of_default(Some(&runtime())).unwrap()
}

pub fn name(name: &str) -> ConnectorName {
    ConnectorName::new(name).unwrap()
}

pub fn absent(connector: &str) -> ManagedConnectorObservation {
    ManagedConnectorObservation::absent(binding(), name(connector))
}

pub fn present(connector: &str, config: &[(&str, &str)]) -> ManagedConnectorObservation {
    let config = config.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    ManagedConnectorObservation::present(binding(), name(connector), config).unwrap()
}

/// A sink of the topic `orders.v1`, owned by the model of the same name.
pub fn connector(name: &str, config: &[(&str, &str)]) -> ConnectorArtifact {
    let class = "io.example.SinkConnector";
    let reserved = [("name", name), ("connector.class", class), ("topics", "orders.v1")];
    let all = reserved.iter().chain(config).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ConnectorArtifact {
        name: name.to_owned(),
        connector_class: class.to_owned(),
        topics: vec!["orders.v1".to_owned()],
        cluster: Some(ALIAS.to_owned()),
        config: all.collect(),
        ownership: owner(name),
    }
}

/// The connector as a worker would show it.
pub fn live(connector: &ConnectorArtifact) -> ManagedConnectorObservation {
    let config = connector.config.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    ManagedConnectorObservation::present(binding(), name(&connector.name), config).unwrap()
}

/// The tombstone of that connector.
pub fn tombstone(connector: &ConnectorArtifact) -> ConnectorRemovalArtifact {
    ConnectorRemovalArtifact {
        logical_owner: connector.ownership.name.clone(),
        name: connector.name.clone(),
        cluster: ALIAS.to_owned(),
    }
}
