//! The conversation with a Schema Registry. Reads carry a [`Ctx`]; mutations consume an [`ActionLease`].

use std::collections::BTreeMap;

use actix::Message;

use crate::actors::lease::ActionLease;
use crate::compiler::artifact::SchemaArtifact;
use crate::planner::observation::SchemaObservation;
use crate::project::model::Compatibility;
use crate::providers::schema_registry::{NumberedSchema, Registered, RegisteredSchema, Verdict};
use crate::providers::{Ctx, ProviderFailure};

/// Asks whether the registry answers.
#[derive(Message)]
#[rtype(result = "Result<(), ProviderFailure>")]
pub struct Probe {
    pub ctx: Ctx,
}

/// Sorted.
#[derive(Message)]
#[rtype(result = "Result<Vec<String>, ProviderFailure>")]
pub struct ListSubjects {
    pub ctx: Ctx,
}

/// The latest version and the level of every named subject, absent ones as absent.
#[derive(Message)]
#[rtype(result = "Result<BTreeMap<String, SchemaObservation>, ProviderFailure>")]
pub struct ObserveSubjects {
    pub ctx: Ctx,
    pub subjects: Vec<String>,
}

/// The latest version without its level; none when the subject does not exist.
#[derive(Message)]
#[rtype(result = "Result<Option<RegisteredSchema>, ProviderFailure>")]
pub struct LatestOf {
    pub ctx: Ctx,
    pub subject: String,
}

/// One registered version; none when it or its subject does not exist.
#[derive(Message)]
#[rtype(result = "Result<Option<RegisteredSchema>, ProviderFailure>")]
pub struct VersionOf {
    pub ctx: Ctx,
    pub subject: String,
    pub version: u32,
}

/// The schema with a number, as records name it.
#[derive(Message)]
#[rtype(result = "Result<Option<NumberedSchema>, ProviderFailure>")]
pub struct SchemaById {
    pub ctx: Ctx,
    pub id: u32,
}

/// A version and everything it references, each once.
#[derive(Message)]
#[rtype(result = "Result<Vec<RegisteredSchema>, ProviderFailure>")]
pub struct ReferencesOf {
    pub ctx: Ctx,
    pub subject: String,
    pub version: u32,
}

/// The version that the next register creates.
#[derive(Message)]
#[rtype(result = "Result<u32, ProviderFailure>")]
pub struct NextVersion {
    pub ctx: Ctx,
    pub subject: String,
}

/// The version of the subject that holds exactly the artifact's content.
#[derive(Message)]
#[rtype(result = "Result<Option<u32>, ProviderFailure>")]
pub struct VersionHolding {
    pub ctx: Ctx,
    pub artifact: SchemaArtifact,
}

/// Whether the artifact may follow the subject's latest version.
#[derive(Message)]
#[rtype(result = "Result<Verdict, ProviderFailure>")]
pub struct CheckCompatibility {
    pub ctx: Ctx,
    pub artifact: SchemaArtifact,
}

/// Registers the content if the live subject still is `current`, then sets the declared level if it differs.
#[derive(Message)]
#[rtype(result = "Result<Registered, ProviderFailure>")]
pub struct Register {
    pub lease: ActionLease,
    pub ctx: Ctx,
    pub current: SchemaObservation,
    pub artifact: SchemaArtifact,
    /// The number that the register must get.
    pub planned_version: Option<u32>,
    /// The plan could not prove compatibility.
    pub check_first: bool,
}

/// An update of the level alone.
#[derive(Message)]
#[rtype(result = "Result<(), ProviderFailure>")]
pub struct SetCompatibility {
    pub lease: ActionLease,
    pub ctx: Ctx,
    pub subject: String,
    pub level: Compatibility,
}
