//! Connectors as planning sees them: which worker cluster they are bound to, what was observed, how a declaration differs,
//! and what an explicit removal may do. It promises that nothing but a tombstone, a managed record and a matching complete
//! observation together make a deletion, and that no configuration value leaves these types: `Debug`, plans and evidence
//! hold names, categories and digests.

mod diff;
mod evidence;
mod identity;
mod observation;
mod removal;

pub use diff::{ConnectorDiff, KeyChange};
pub use evidence::{ConnectorActionEvidence, EVIDENCE_VERSION};
pub(crate) use identity::is_plain;
pub use identity::{BackendIdentity, BindingError, ClusterAlias, ConnectClusterBinding, ConnectorName, EndpointDigest};
pub use observation::{ManagedConnectorObservation, NotRebuilt};
pub(super) use removal::{ConnectorClaims, Outcome, judge};
pub use removal::{
    ConnectorRemovalAssessment, RemovalStatus, ResolvedConnectorRemoval, default_binding, resolve as resolve_removals,
};

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
