//! From a `Project` to its artifacts and manifest. Pure: no network, no state, no clock but the timestamp handed in. It
//! promises equal bytes for equal input in any file order, artifacts free of secrets, and nothing at all on failure.

pub mod artifact;
pub mod canonical;
pub mod strict_json;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::codes::{Diagnostic, Diagnostics, Location};
use crate::project::model::{Materialized, OwnershipMode, Project, Reference};

use artifact::{Artifacts, Kind};
use canonical::Checksum;

/// One model with everything the compiler decided about it, frozen once.
#[derive(Clone, Debug)]
pub struct ResolvedModel {
    pub name: String,
    /// SQL after macro rendering; templates still in place.
    pub sql: Option<String>,
    pub dependencies: Vec<Reference>,
    pub materialized: Materialized,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeType {
    Source,
    Model,
    Exposure,
}

#[derive(Clone, Debug, Serialize)]
pub struct DagNode {
    pub name: String,
    #[serde(rename = "type")]
    pub node_type: NodeType,
    pub materialized: Option<Materialized>,
    pub upstream: Vec<String>,
    pub downstream: Vec<String>,
}

/// The project graph: nodes sorted by name, edges implied by `upstream`.
#[derive(Clone, Debug, Default)]
pub struct Dag {
    pub nodes: BTreeMap<String, DagNode>,
}

/// A compiled project: immutable and shared by plan, exports and coordinator.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub project: Arc<Project>,
    pub artifacts: Artifacts,
    pub dag: Dag,
    /// Sorted by name.
    pub models: Vec<ResolvedModel>,
    pub manifest_checksum: Checksum,
    /// W231 and the compile-time warnings.
    pub warnings: Diagnostics,
    /// Models and tests whose process this version does not compile, for E221 at plan: (kind, declaring name).
    pub not_compiled: Vec<(Kind, String)>,
}

/// One desired resource in the form that planning needs, whatever its kind.
#[derive(Clone, Debug)]
pub struct DesiredResource {
    pub kind: Kind,
    /// Last segment of the resource id.
    pub logical_name: String,
    pub physical_name: String,
    pub mode: OwnershipMode,
    /// `sha256:` over the artifact object, ownership included.
    pub artifact_checksum: Checksum,
    /// The file and place of the declaration that made it.
    pub location: Option<Location>,
    pub path: Option<String>,
}

impl Compiled {
    /// The manifest as JSON, key order of its specification; `compiled_at` is RFC 3339 with six fraction digits.
    pub fn manifest(&self, _compiled_at: &str) -> Value {
        Value::Null
    }

    /// Every desired resource in kind order, then physical name.
    pub fn resources(&self) -> Vec<DesiredResource> {
        Vec::new()
    }
}

/// Compiles the whole project. Errors carry E1xx, E2xx or E427 and the place of the declaration.
pub fn compile(_project: Arc<Project>) -> Result<Compiled, Diagnostics> {
    Err(Diagnostic::new(crate::codes::Code::E119CompileFailed, "not built").into())
}
