//! Identities and the ownership state document, version 1.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::compiler::artifact::Kind;
use crate::compiler::canonical::{CanonicalError, Checksum, to_canonical};
use crate::compiler::strict_json;
use crate::project::model::OwnershipMode;

use super::Invalid;
use super::scalar::uuid_text;

/// `streamt://<project>/<environment>/<kind>/<logical-name>`, at most 512 characters, four non-empty segments without `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceId {
    text: String,
    kind: Kind,
}

impl ResourceId {
    pub fn new(project: &str, environment: &str, kind: Kind, logical_name: &str) -> Option<Self> {
        Self::parse(&format!("streamt://{project}/{environment}/{kind}/{logical_name}"))
    }

    /// None unless the text re-renders to itself.
    pub fn parse(text: &str) -> Option<Self> {
        let mut segments = text.strip_prefix("streamt://")?.split('/');
        let (project, environment, kind, name) =
            (segments.next()?, segments.next()?, segments.next()?, segments.next()?);
        let whole = segments.next().is_none() && [project, environment, name].iter().all(|s| !s.is_empty());
        (whole && text.chars().count() <= 512 && !text.chars().any(char::is_control))
            .then_some(())
            .and_then(|()| Some(Self { kind: Kind::parse(kind)?, text: text.to_owned() }))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    fn segment(&self, index: usize) -> &str {
        self.text["streamt://".len()..].split('/').nth(index).unwrap_or_default()
    }

    pub fn project(&self) -> &str {
        self.segment(0)
    }

    pub fn environment(&self) -> &str {
        self.segment(1)
    }

    pub fn logical_name(&self) -> &str {
        self.segment(3)
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ResourceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ResourceId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a resource id"))
    }
}

/// `streamt-state://<namespace>/<project>/<environment>`; the local backend uses the namespace `local`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateAddress {
    pub namespace: String,
    pub project: String,
    pub environment: String,
}

impl StateAddress {
    /// None unless the text has three non-empty segments.
    pub fn parse(text: &str) -> Option<Self> {
        let segments: Vec<&str> = text.strip_prefix("streamt-state://")?.split('/').collect();
        let [namespace, project, environment] = segments.as_slice() else { return None };
        let whole = segments.iter().all(|segment| !segment.is_empty());
        whole.then(|| Self {
            namespace: (*namespace).to_owned(),
            project: (*project).to_owned(),
            environment: (*environment).to_owned(),
        })
    }
}

impl fmt::Display for StateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "streamt-state://{}/{}/{}", self.namespace, self.project, self.environment)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    Local,
    Postgres,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreIdentity {
    pub backend: BackendKind,
    #[serde(with = "uuid_text")]
    pub store_id: Uuid,
}

/// What streamt remembers of a resource it created or adopted. Its mode is never `external`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnershipRecord {
    pub physical_name: String,
    pub ownership: OwnershipMode,
    pub artifact_checksum: Checksum,
    pub backend: String,
}

/// Ownership of one environment. `serial` steps by one exactly when `resources` change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnershipState {
    pub state_version: u32,
    pub project: String,
    pub environment: String,
    pub serial: u64,
    pub resources: BTreeMap<ResourceId, OwnershipRecord>,
}

impl OwnershipState {
    /// A state never written: serial 0, nothing owned.
    pub fn empty(project: impl Into<String>, environment: impl Into<String>) -> Self {
        Self {
            state_version: 1,
            project: project.into(),
            environment: environment.into(),
            serial: 0,
            resources: BTreeMap::new(),
        }
    }

    pub fn checksum(&self) -> Result<Checksum, CanonicalError> {
        Checksum::of(self)
    }

    /// Reads the document of one address. `what` names it in the error.
    pub fn read(bytes: &[u8], address: &StateAddress, what: &str) -> Result<Self, Invalid> {
        let invalid = |why: &dyn fmt::Display| Invalid(format!("{what} is {why}"));
        let state: Self = strict_json::read(bytes, MAX_STATE).map_err(|error| invalid(&error))?;
        state.check(address).map_err(|rule| Invalid(format!("{what}: {rule}")))?;
        Ok(state)
    }

    /// The digest of a document that keeps the rules of its address.
    pub fn checked(&self, address: &StateAddress) -> Result<Checksum, Invalid> {
        self.check(address).map_err(|rule| Invalid(format!("the next ownership state: {rule}")))?;
        let canonical = to_canonical(self).map_err(|error| Invalid(error.to_string()))?;
        if canonical.len() > MAX_STATE {
            return Err(Invalid("the next ownership state is larger than its bound".to_owned()));
        }
        Ok(Checksum::of_bytes(&canonical))
    }

    fn check(&self, address: &StateAddress) -> Result<(), &'static str> {
        if self.state_version != 1 {
            return Err("its version is not 1");
        }
        if self.project != address.project || self.environment != address.environment {
            return Err("it belongs to another project or environment");
        }
        if self.serial > MAX_SERIAL {
            return Err("its serial is out of range");
        }
        if self.serial == 0 && !self.resources.is_empty() {
            return Err("a state never written owns nothing");
        }
        for (id, record) in &self.resources {
            if id.project() != address.project || id.environment() != address.environment {
                return Err("a resource belongs to another project or environment");
            }
            if record.ownership == OwnershipMode::External {
                return Err("an external resource is recorded");
            }
            if record.physical_name.is_empty() || record.backend.is_empty() {
                return Err("a record lacks its name or backend");
            }
        }
        Ok(())
    }
}

/// Bound of the stored document: bytes.
pub const MAX_STATE: usize = 10 * 1024 * 1024;
const MAX_SERIAL: u64 = (1 << 53) - 1;

/// The `backend` text of a record, by kind; connectors and Gateway rules bind an endpoint and are not here.
pub const KAFKA_BACKEND: &str = "direct-kafka";
pub const SCHEMA_REGISTRY_BACKEND: &str = "schema-registry";
pub const FLINK_BACKEND: &str = "flink";

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
