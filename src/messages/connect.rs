//! The conversation with a Kafka Connect worker cluster. Reads carry a [`Ctx`]; mutations consume an [`ActionLease`].

use std::collections::BTreeMap;

use actix::Message;

use crate::actors::lease::ActionLease;
use crate::compiler::artifact::ConnectorArtifact;
use crate::planner::connector::{ConnectorName, ManagedConnectorObservation};
use crate::providers::connect::{ConfigVerdict, ConnectorStatus, Deleted, ListedConnector};
use crate::providers::{Ctx, ProviderFailure};

/// Asks whether a worker answers.
#[derive(Message)]
#[rtype(result = "Result<(), ProviderFailure>")]
pub struct Probe {
    pub ctx: Ctx,
}

/// One strict observation of every named connector, absent ones as absent; a rebalance is waited for.
#[derive(Message)]
#[rtype(result = "Result<BTreeMap<String, ManagedConnectorObservation>, ProviderFailure>")]
pub struct ObserveManaged {
    pub ctx: Ctx,
    pub names: Vec<ConnectorName>,
}

/// How a connector and its tasks run; none when it does not exist.
#[derive(Message)]
#[rtype(result = "Result<Option<ConnectorStatus>, ProviderFailure>")]
pub struct StatusOf {
    pub ctx: Ctx,
    pub name: ConnectorName,
}

/// What the worker thinks of each configuration.
#[derive(Message)]
#[rtype(result = "Result<Vec<ConfigVerdict>, ProviderFailure>")]
pub struct ValidateConfigs {
    pub ctx: Ctx,
    pub artifacts: Vec<ConnectorArtifact>,
}

/// Every connector of the worker cluster with its configuration.
#[derive(Message)]
#[rtype(result = "Result<Vec<ListedConnector>, ProviderFailure>")]
pub struct ListConnectors {
    pub ctx: Ctx,
}

/// The types of the settings of a class; none when no worker has it.
#[derive(Message)]
#[rtype(result = "Result<Option<BTreeMap<String, String>>, ProviderFailure>")]
pub struct ValueTypes {
    pub ctx: Ctx,
    pub class: String,
}

#[derive(Message)]
#[rtype(result = "Result<ManagedConnectorObservation, ProviderFailure>")]
pub struct CreateConnector {
    pub lease: ActionLease,
    pub ctx: Ctx,
    pub artifact: ConnectorArtifact,
}

/// Replaces the configuration if the live connector still is `current`.
#[derive(Message)]
#[rtype(result = "Result<ManagedConnectorObservation, ProviderFailure>")]
pub struct UpdateConnector {
    pub lease: ActionLease,
    pub ctx: Ctx,
    pub current: ManagedConnectorObservation,
    pub artifact: ConnectorArtifact,
}

/// Deletes exactly what `current` shows. There is no message that deletes a name.
#[derive(Message)]
#[rtype(result = "Result<Deleted, ProviderFailure>")]
pub struct DeleteManaged {
    pub lease: ActionLease,
    pub ctx: Ctx,
    pub current: ManagedConnectorObservation,
}
