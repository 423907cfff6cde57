//! The saved selection: which resources were reviewed together, as they were seen, for which project and state. It holds
//! digests and names, never what was read.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{KINDS, Review, Target};
use crate::codes::{Code, Diagnostic, Location};
use crate::compiler::artifact::Kind;
use crate::compiler::canonical::Checksum;
use crate::state::control::MAX_GROUP;
use crate::state::model::ResourceId;
use crate::state::plan_file::{self, StateReference};
use crate::state::sealed::{Seal, unread};

pub const KIND: &str = "streamt.adoption-selection";
pub const FORMAT: u64 = 1;
const SEAL: Seal = Seal {
    kind: KIND,
    what: "adoption selection",
    formats: &[FORMAT],
    key: "checksum",
    name: "checksum",
    other_format: unread,
};
/// Resources that one operation claims.
pub const MAX_RESOURCES: usize = MAX_GROUP;
const AGAIN: &str = "save the selection again at a new path and review that; never edit one";

/// One reviewed resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selected {
    pub resource_id: ResourceId,
    pub kind: Kind,
    pub physical_name: String,
    pub backend: String,
    pub artifact_checksum: Checksum,
    pub observation_fingerprint: Checksum,
}

/// A selection as it was saved or will be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    pub streamt_version: String,
    pub project: String,
    pub environment: String,
    pub environment_fingerprint: Checksum,
    pub manifest_checksum: Checksum,
    pub state: StateReference,
    /// In kind order, then physical name.
    pub resources: Vec<Selected>,
    pub checksum: Checksum,
}

/// The document without its checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    kind: String,
    format_version: u64,
    streamt_version: String,
    project: String,
    environment: String,
    environment_fingerprint: Checksum,
    manifest_checksum: Checksum,
    state: StateReference,
    resources: Vec<Selected>,
}

impl Selected {
    pub fn of(target: &Target, review: &Review) -> Self {
        Self {
            resource_id: target.resource_id.clone(),
            kind: target.kind(),
            physical_name: target.physical_name.clone(),
            backend: target.backend.clone(),
            artifact_checksum: target.artifact_checksum.clone(),
            observation_fingerprint: review.fingerprint.clone(),
        }
    }

    /// Whether the declaration of now is the reviewed one.
    pub fn is_of(&self, target: &Target) -> bool {
        (&self.resource_id, &self.physical_name, &self.backend, &self.artifact_checksum)
            == (&target.resource_id, &target.physical_name, &target.backend, &target.artifact_checksum)
    }
}

impl Selection {
    /// E408 when the resources make no selection.
    pub fn of(
        state: StateReference,
        environment_fingerprint: Checksum,
        manifest_checksum: Checksum,
        mut resources: Vec<Selected>,
    ) -> Result<Self, Diagnostic> {
        resources.sort_by(|a, b| order(a).cmp(&order(b)));
        let mut selection = Self {
            streamt_version: env!("CARGO_PKG_VERSION").to_owned(),
            project: state.address.project.clone(),
            environment: state.address.environment.clone(),
            environment_fingerprint,
            manifest_checksum,
            state,
            resources,
            checksum: Checksum::of_bytes(&[]),
        };
        selection.check().map_err(invalid)?;
        selection.checksum = Checksum::of(&selection.document()?).map_err(|_| invalid(NO_FORM))?;
        Ok(selection)
    }

    /// Names the environment and, by the checksum, every resource and everything that was reviewed of it.
    pub fn token(&self) -> String {
        format!("adopt:{}:{}", self.environment, self.checksum)
    }

    fn document(&self) -> Result<Value, Diagnostic> {
        let envelope = Envelope {
            kind: KIND.to_owned(),
            format_version: FORMAT,
            streamt_version: self.streamt_version.clone(),
            project: self.project.clone(),
            environment: self.environment.clone(),
            environment_fingerprint: self.environment_fingerprint.clone(),
            manifest_checksum: self.manifest_checksum.clone(),
            state: self.state.clone(),
            resources: self.resources.clone(),
        };
        serde_json::to_value(envelope).map_err(|_| invalid(NO_FORM))
    }

    /// The bytes of the file: two-space indent, sorted keys, final newline.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        SEAL.bytes(self.document()?, &self.checksum).ok_or_else(|| invalid(NO_FORM))
    }

    /// Strict: E408 for anything but a format 1 file whose checksum holds.
    pub fn parse(bytes: &[u8]) -> Result<Self, Diagnostic> {
        let (document, checksum) = SEAL.open(bytes).map_err(|why| invalid(&why))?;
        let malformed = || invalid("it is not of the form that streamt writes");
        let envelope: Envelope = serde_json::from_value(document.clone()).map_err(|_| malformed())?;
        let selection = Self {
            streamt_version: envelope.streamt_version,
            project: envelope.project,
            environment: envelope.environment,
            environment_fingerprint: envelope.environment_fingerprint,
            manifest_checksum: envelope.manifest_checksum,
            state: envelope.state,
            resources: envelope.resources,
            checksum,
        };
        selection.check().map_err(invalid)?;
        // What reads back differently was written by something else.
        if selection.document()? != document { Err(malformed()) } else { Ok(selection) }
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.streamt_version.is_empty() || self.project.is_empty() || self.environment.is_empty() {
            return Err("a name in it is empty");
        }
        let here = |project: &str, environment: &str| project == self.project && environment == self.environment;
        if !here(&self.state.address.project, &self.state.address.environment) {
            return Err("its state address is of another project or environment");
        }
        if self.resources.is_empty() || self.resources.len() > MAX_RESOURCES {
            return Err("it names no resource, or more than one operation claims");
        }
        let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
        for one in &self.resources {
            let id = &one.resource_id;
            if !here(id.project(), id.environment()) || id.kind() != one.kind || !KINDS.contains(&one.kind) {
                return Err("a resource in it is of another project, environment or kind");
            }
            if one.physical_name.is_empty() || one.backend.is_empty() {
                return Err("a name in it is empty");
            }
            if !ids.insert(id) || !names.insert((&one.backend, &one.physical_name)) {
                return Err("it names a resource twice");
            }
        }
        if self.resources.windows(2).any(|pair| order(&pair[0]) >= order(&pair[1])) {
            return Err("its resources are out of order");
        }
        Ok(())
    }
}

fn order(one: &Selected) -> (Kind, &str, &str) {
    (one.kind, &one.physical_name, one.resource_id.as_str())
}

/// Creates the file whole, mode 0600; E408 when anything stands at the path.
pub fn write(path: &Path, selection: &Selection) -> Result<(), Diagnostic> {
    plan_file::create_new(path, &selection.to_bytes()?)
}

/// E408 when anything stands at the path.
pub fn refuse_existing(path: &Path) -> Result<(), Diagnostic> {
    plan_file::refuse_existing(path)
}

/// E408 for anything but a selection at a path of its own.
pub fn read(path: &Path) -> Result<Selection, Diagnostic> {
    let bytes = plan_file::read_bytes(path)?;
    Selection::parse(&bytes).map_err(|error| error.at(Location::named(path.to_string_lossy())))
}

const NO_FORM: &str = "it holds a value that has no canonical form";

fn invalid(why: &str) -> Diagnostic {
    Diagnostic::new(Code::E408PlanFileInvalid, format!("the adoption selection is not accepted: {why}")).suggest(AGAIN)
}
