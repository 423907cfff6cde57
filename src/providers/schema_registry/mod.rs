//! A Confluent-compatible Schema Registry over HTTP. Promises: an observation is strict or fails, a register whose reply is
//! lost is looked up once and otherwise uncertain, and no schema body appears in any failure. Deciding what to register
//! stays the planner's business.

mod mutate;
mod read;
mod wire;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::http::{Fields, Login, ProviderHttp};
use super::tls::Material;
use super::{ProviderFailure, VendorText};
use crate::compiler::artifact::SchemaType;
use crate::project::model::{Compatibility, SchemaReference, SchemaRegistryRuntime};
use crate::project::secret::Secret;

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

/// A schema as records name it: by its number, without a subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberedSchema {
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

/// A schema that the registry has taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registered {
    pub id: u32,
    pub version: u32,
    /// The level set after the register, when one was.
    pub level: Option<Compatibility>,
}

/// One registry. Cheap to clone.
#[derive(Clone)]
pub struct RegistryClient {
    http: ProviderHttp,
    secrets: Arc<[Secret]>,
}

impl fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryClient").finish_non_exhaustive()
    }
}

const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";

const FIELDS: Fields = Fields {
    url: "runtime.schema_registry.url",
    username: "runtime.schema_registry.username",
    password: "runtime.schema_registry.password",
};

impl RegistryClient {
    /// Builds the client without asking the registry anything. `project_root` resolves relative TLS files.
    pub fn new(runtime: &SchemaRegistryRuntime, project_root: &Path) -> Result<Self, ProviderFailure> {
        let material = Material::load(&runtime.tls, project_root)?;
        let login = match &runtime.token {
            Some(token) => Login::Bearer(token),
            None => Login::Basic(&runtime.auth),
        };
        let http = ProviderHttp::new(&runtime.url, login, &material, MEDIA_TYPE, FIELDS)?;
        let secrets = [&runtime.auth.password, &runtime.token, &runtime.tls.key_password];
        Ok(Self { http, secrets: secrets.into_iter().flatten().cloned().collect() })
    }
}

#[cfg(test)]
mod tests;
