//! A declared schema against the latest version of its subject, and the versions that it references.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::SchemaArtifact;
use crate::compiler::canonical::to_canonical;
use crate::project::model::{Compatibility, SchemaReference};

use super::model::Verb;
use super::observation::{CompatibilityVerdict, Observations, SchemaObservation, SubjectVersion};
use super::topic::FromTo;

/// The new version that differing content asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContentChange {
    pub from_version: u32,
    pub to_version: u32,
    pub verdict: CompatibilityVerdict,
}

/// A subject as it is against what is declared.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct SchemaDiff {
    pub exists: bool,
    /// What a register makes, field by field, without the schema's body; empty for a subject that exists.
    pub attributes: Map<String, Value>,
    /// None also for an absent subject.
    pub content: Option<ContentChange>,
    pub references: Option<FromTo<Vec<SchemaReference>>>,
    pub compatibility: Option<FromTo<Option<Compatibility>>>,
    /// The level under which the registry judged the content.
    pub effective_compatibility: Option<Compatibility>,
    /// The number that the new version must get, because another schema of this plan counts on it.
    pub planned_version: Option<u32>,
}

impl SchemaDiff {
    pub(super) fn of(desired: &SchemaArtifact, live: &SchemaObservation, observations: &Observations) -> Self {
        let next = observations.next_versions.get(&desired.subject).copied();
        if !live.exists {
            return Self { planned_version: next, attributes: attributes(desired), ..Self::default() };
        }
        let mut diff = Self { exists: true, effective_compatibility: live.compatibility, ..Self::default() };
        if creates_version(desired, live) {
            let from_version = live.version.unwrap_or_default();
            let verdict = match references_are_live(desired, observations) {
                true => observations.verdicts.get(&desired.subject).copied(),
                false => None,
            };
            diff.content = Some(ContentChange {
                from_version,
                to_version: next.unwrap_or(from_version + 1),
                verdict: verdict.unwrap_or(CompatibilityVerdict::Unproven),
            });
            diff.planned_version = next;
        }
        if desired.references != live.references {
            diff.references = Some(FromTo { from: live.references.clone(), to: desired.references.clone() });
        }
        if desired.compatibility.is_some() && desired.compatibility != live.compatibility {
            diff.compatibility = Some(FromTo { from: live.compatibility, to: desired.compatibility });
        }
        diff
    }

    pub(super) fn verb(&self) -> Option<Verb> {
        match self.exists {
            false => Some(Verb::Register),
            true => (self.content.is_some() || self.compatibility.is_some()).then_some(Verb::Update),
        }
    }

    pub(super) fn is_incompatible(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.verdict == CompatibilityVerdict::Incompatible)
    }

    /// Whether the registry must be asked before the content is registered, because it could not be asked for the plan.
    pub fn check_first(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.verdict == CompatibilityVerdict::Unproven)
    }

    pub(super) fn changes(&self) -> Map<String, Value> {
        let mut changes = self.attributes.clone();
        if let Some(ContentChange { from_version, to_version, verdict }) = &self.content {
            let (field, shown) = match verdict {
                CompatibilityVerdict::Incompatible => (
                    "schema_incompatible",
                    json!({"message": self.incompatible_message(), "current_version": from_version}),
                ),
                CompatibilityVerdict::Compatible => {
                    ("schema", json!({"from_version": from_version, "to_version": to_version, "compatible": true}))
                }
                CompatibilityVerdict::Unproven => {
                    ("schema", json!({"from_version": from_version, "to_version": to_version, "compatible": null}))
                }
            };
            changes.insert(field.to_owned(), shown);
        }
        if let Some(FromTo { from, to }) = &self.references {
            changes.insert("references".to_owned(), json!({"from": from, "to": to}));
        }
        if let Some(FromTo { from, to }) = &self.compatibility {
            changes.insert("compatibility".to_owned(), json!({"from": from, "to": to}));
        }
        changes
    }

    pub(super) fn incompatible_message(&self) -> String {
        let version = self.content.as_ref().map_or(0, |content| content.from_version);
        match self.effective_compatibility {
            Some(level) => format!(
                "the schema is not {} compatible with version {version} (E402_SCHEMA_INCOMPATIBLE)",
                level.as_str()
            ),
            None => format!("the schema is not compatible with version {version} (E402_SCHEMA_INCOMPATIBLE)"),
        }
    }
}

fn attributes(desired: &SchemaArtifact) -> Map<String, Value> {
    let mut attributes = Map::new();
    attributes.insert("schema_type".to_owned(), json!(desired.schema_type));
    if let Some(level) = desired.compatibility {
        attributes.insert("compatibility".to_owned(), json!(level));
    }
    if !desired.references.is_empty() {
        let names = desired.references.iter().map(|one| format!("{} {}", one.subject, one.version));
        attributes.insert("references".to_owned(), names.collect());
    }
    attributes
}

/// Whether registering the artifact would make a new version of a subject, existing or not.
pub fn creates_version(desired: &SchemaArtifact, live: &SchemaObservation) -> bool {
    let same_text = || match &live.schema {
        Some(schema) => same_canonical(&desired.schema, schema),
        None => false,
    };
    !live.exists
        || live.schema_type != Some(desired.schema_type)
        || live.references != desired.references
        || !same_text()
}

/// Equal as canonical JSON: `1.0` and `1` are the same number.
fn same_canonical(a: &Value, b: &Value) -> bool {
    a == b || matches!((to_canonical(a), to_canonical(b)), (Ok(a), Ok(b)) if a == b)
}

pub(super) fn references_are_live(desired: &SchemaArtifact, observations: &Observations) -> bool {
    desired.references.iter().all(|reference| observations.live_versions.contains(&version_of(reference)))
}

pub(super) fn version_of(reference: &SchemaReference) -> SubjectVersion {
    SubjectVersion { subject: reference.subject.clone(), version: reference.version }
}

/// Versions that the given schemas would create, for those that count on them.
pub(super) fn pending_versions<'a>(
    desired: impl Iterator<Item = &'a SchemaArtifact>,
    observations: &Observations,
) -> BTreeSet<SubjectVersion> {
    let creating = desired.filter(|artifact| {
        observations.subjects.get(&artifact.subject).is_some_and(|live| creates_version(artifact, live))
    });
    creating
        .filter_map(|artifact| {
            let version = *observations.next_versions.get(&artifact.subject)?;
            Some(SubjectVersion { subject: artifact.subject.clone(), version })
        })
        .collect()
}

/// E213 for each reference of a schema to register that is neither live nor created by this plan. `left_out` names who
/// declares a subject that the selection leaves out.
pub(super) fn unresolved_references<'a>(
    desired: &SchemaArtifact,
    observations: &Observations,
    pending: &BTreeSet<SubjectVersion>,
    left_out: impl Fn(&str) -> Option<&'a str>,
) -> Vec<Diagnostic> {
    let missing = desired.references.iter().filter(|reference| {
        let version = version_of(reference);
        !observations.live_versions.contains(&version) && !pending.contains(&version)
    });
    let report = |reference: &SchemaReference| {
        let subject = &reference.subject;
        let advice = match (left_out(subject), observations.next_versions.get(subject)) {
            (Some(owner), _) => {
                format!("'{subject}' is declared by '{owner}', outside the selection: apply that first, or everything")
            }
            (None, Some(next)) => format!("this plan would create version {next} of '{subject}': reference that one"),
            (None, None) => {
                "reference a version that the registry has, or declare its subject in this project".to_owned()
            }
        };
        Diagnostic::new(
            Code::E213SchemaRegistryResolutionFailed,
            format!(
                "subject '{}' references version {} of '{}', which neither exists nor is created by this plan",
                desired.subject, reference.version, reference.subject
            ),
        )
        .suggest(advice)
    };
    missing.map(report).collect()
}

/// A referenced subject before its users, otherwise by subject. A cycle, which validation refuses, keeps subject order.
pub(super) fn in_dependency_order<'a>(schemas: &[&'a SchemaArtifact]) -> Vec<&'a str> {
    let subjects: BTreeSet<&str> = schemas.iter().map(|schema| schema.subject.as_str()).collect();
    let mut waiting: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for schema in schemas {
        let needed = waiting.entry(&schema.subject).or_default();
        for reference in &schema.references {
            let Some(subject) = subjects.get(reference.subject.as_str()).filter(|s| **s != schema.subject) else {
                continue;
            };
            needed.insert(subject);
            users.entry(subject).or_default().insert(&schema.subject);
        }
    }
    let mut ready: BTreeSet<&str> = waiting.iter().filter(|(_, n)| n.is_empty()).map(|(subject, _)| *subject).collect();
    let mut order = Vec::with_capacity(subjects.len());
    while let Some(subject) = ready.pop_first() {
        order.push(subject);
        waiting.remove(subject);
        for user in users.get(subject).into_iter().flatten() {
            if let Some(needed) = waiting.get_mut(user) {
                needed.remove(subject);
                if needed.is_empty() {
                    ready.insert(user);
                }
            }
        }
    }
    order.extend(waiting.into_keys());
    order
}
