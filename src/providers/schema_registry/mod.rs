//! A Confluent-compatible Schema Registry over HTTP. Promises: an observation is strict or fails, a register whose reply is
//! lost is looked up once and otherwise uncertain, and no schema body appears in any failure. Deciding what to register
//! stays the planner's business.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{Ctx, MutationGuard, ProviderFailure, VendorText};
use crate::compiler::artifact::{SchemaArtifact, SchemaType};
use crate::planner::observation::SchemaObservation;
use crate::project::model::{Compatibility, SchemaReference, SchemaRegistryRuntime};

/// One registered version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegisteredSchema {
    pub subject: String,
    pub id: u32,
    pub version: u32,
    pub schema: Value,
    pub schema_type: SchemaType,
    /// Sorted by (name, subject, version).
    pub references: Vec<SchemaReference>,
}

/// The registry's verdict against a subject's latest version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Compatible,
    Incompatible { reasons: usize, text: Option<VendorText> },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registered {
    pub id: u32,
    pub version: u32,
    /// The level set after the register, when one was.
    pub level: Option<Compatibility>,
}

/// One registry. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RegistryClient {}

const UNBUILT: ProviderFailure = ProviderFailure::Unsupported { what: "not built yet" };

impl RegistryClient {
    /// Builds the client without asking the registry anything. `project_root` resolves relative TLS files.
    pub fn new(_runtime: &SchemaRegistryRuntime, _project_root: &Path) -> Result<Self, ProviderFailure> {
        Err(UNBUILT)
    }

    /// One bounded request that proves the registry answers.
    pub async fn probe(&self, _ctx: &Ctx) -> Result<(), ProviderFailure> {
        Err(UNBUILT)
    }

    /// Sorted.
    pub async fn list_subjects(&self, _ctx: &Ctx) -> Result<Vec<String>, ProviderFailure> {
        Err(UNBUILT)
    }

    /// The latest version and the level of every named subject, absent ones as absent.
    pub async fn observe_subjects(
        &self,
        _ctx: &Ctx,
        _subjects: &[String],
    ) -> Result<BTreeMap<String, SchemaObservation>, ProviderFailure> {
        Err(UNBUILT)
    }

    /// One version; none when it or its subject does not exist.
    pub async fn version(
        &self,
        _ctx: &Ctx,
        _subject: &str,
        _version: u32,
    ) -> Result<Option<RegisteredSchema>, ProviderFailure> {
        Err(UNBUILT)
    }

    /// A version and everything it references, each once, depth at most 20.
    pub async fn references_of(
        &self,
        _ctx: &Ctx,
        _subject: &str,
        _version: u32,
    ) -> Result<Vec<RegisteredSchema>, ProviderFailure> {
        Err(UNBUILT)
    }

    /// The version that the next register creates: the highest ever used, deleted ones included, plus one.
    pub async fn next_version(&self, _ctx: &Ctx, _subject: &str) -> Result<u32, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Whether the artifact may follow the subject's latest version under its current level.
    pub async fn check_compatibility(
        &self,
        _ctx: &Ctx,
        _artifact: &SchemaArtifact,
    ) -> Result<Verdict, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Registers the artifact's content if the live subject still is `current`, then sets its level if it declares another.
    /// `planned_version`: the number the register must get. `check_first`: the plan could not prove compatibility.
    pub async fn register<G: MutationGuard>(
        &self,
        _ctx: &Ctx,
        _guard: &G,
        _current: &SchemaObservation,
        _artifact: &SchemaArtifact,
        _planned_version: Option<u32>,
        _check_first: bool,
    ) -> Result<Registered, ProviderFailure> {
        Err(UNBUILT)
    }

    /// Sets a subject's own level; a lost reply is decided by one read.
    pub async fn set_compatibility<G: MutationGuard>(
        &self,
        _ctx: &Ctx,
        _guard: &G,
        _subject: &str,
        _level: Compatibility,
    ) -> Result<(), ProviderFailure> {
        Err(UNBUILT)
    }
}
