//! Whether this project may write to a resource: by declaration and by its own record, never by what is live alone.

use crate::compiler::artifact::Kind;
use crate::ownership::model::{
    FLINK_BACKEND, KAFKA_BACKEND, OwnershipRecord, OwnershipState, ResourceId, SCHEMA_REGISTRY_BACKEND,
};
use crate::project::model::OwnershipMode;

use super::connector::BackendIdentity;
use super::model::RequirementReason;

/// What the decision rests on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub mode: OwnershipMode,
    /// The artifact's owner names this project.
    pub owner_is_ours: bool,
    pub physical_name: &'a str,
    pub backend: &'a str,
    pub exists: bool,
    pub record: Option<&'a OwnershipRecord>,
    /// A resource of another identity that is recorded as the same object at the provider.
    pub other: Option<&'a ResourceId>,
}

/// None when the verb of the comparison may stand; otherwise the reason why it may not.
pub(super) fn decide(claim: Claim<'_>) -> Option<RequirementReason> {
    if !claim.owner_is_ours {
        return Some(RequirementReason::InvalidOwnership);
    }
    let claimed_twice = claim.other.is_some() && (claim.record.is_some() || !claim.exists);
    if claimed_twice && claim.mode != OwnershipMode::External {
        return Some(RequirementReason::StateMismatch);
    }
    match (claim.mode, claim.record) {
        (OwnershipMode::External, _) => Some(RequirementReason::External),
        (OwnershipMode::Managed, None) => claim.exists.then_some(RequirementReason::RequiresAdoption),
        (OwnershipMode::Adopted, None) => Some(RequirementReason::RequiresAdoption),
        (OwnershipMode::Managed | OwnershipMode::Adopted, Some(record)) => {
            if record.physical_name != claim.physical_name || record.backend != claim.backend {
                Some(RequirementReason::StateMismatch)
            } else {
                (record.ownership != claim.mode).then_some(RequirementReason::OwnershipMismatch)
            }
        }
    }
}

/// The backend text of a record of this kind. Kinds that this version cannot deploy have none, and an external resource needs
/// none.
pub(super) fn backend(kind: Kind, connect: Option<&BackendIdentity>) -> String {
    match kind {
        Kind::Topic => KAFKA_BACKEND.to_owned(),
        Kind::Schema => SCHEMA_REGISTRY_BACKEND.to_owned(),
        Kind::Connector => connect.map(|bound| bound.as_str().to_owned()).unwrap_or_default(),
        Kind::FlinkJob => FLINK_BACKEND.to_owned(),
        Kind::KafkaStreamsJob | Kind::GatewayRule => String::new(),
    }
}

/// One sentence for the reviewer. `resource` is `topic 'orders.v1'`.
pub(super) fn explain(
    reason: RequirementReason,
    resource: &str,
    claim: Claim<'_>,
    state: Option<&OwnershipState>,
    id: &ResourceId,
) -> String {
    let (mode, record) = (claim.mode.as_str(), claim.record);
    if let (RequirementReason::StateMismatch, Some(other)) = (reason, claim.other) {
        return format!("{resource} is recorded as {other} too, and two records cannot own one object");
    }
    match (reason, record) {
        (RequirementReason::External, _) => format!("{resource} is external: it is observed and never changed"),
        (RequirementReason::InvalidOwnership, _) => format!("{resource} is owned by another project"),
        (RequirementReason::RequiresAdoption, _) if state.is_none() => {
            format!("{resource} is declared {mode}; offline, its adoption cannot be verified")
        }
        (RequirementReason::RequiresAdoption, _) if !claim.exists => {
            format!("{resource} is declared {mode} but does not exist; adoption never creates")
        }
        (RequirementReason::RequiresAdoption, _) => match claim.other.or_else(|| other_owner(state?, claim, id)) {
            Some(other) => {
                format!("{resource} exists, but is recorded as {other}; give the declaration its recorded name again")
            }
            None if claim.mode == OwnershipMode::Adopted => {
                let (kind, name) = (id.kind(), id.logical_name());
                format!(
                    "{resource} is declared adopted and not recorded yet: run `streamt adopt --kind {kind} --name {name}`"
                )
            }
            None => format!(
                "{resource} exists without a record of this project; declare it adopted and run `streamt adopt`, or declare it external"
            ),
        },
        (RequirementReason::StateMismatch, Some(record)) if record.physical_name == claim.physical_name => {
            format!(
                "{resource} is recorded at another worker cluster than runtime.connect.default names now ({}, not {}): its alias \
                 or rest_url is another than when it was recorded, and no record moves; put them back",
                record.backend, claim.backend
            )
        }
        (RequirementReason::StateMismatch, Some(record)) => {
            format!(
                "the state records '{}' on {}, not {resource} on {}",
                record.physical_name, record.backend, claim.backend
            )
        }
        (RequirementReason::OwnershipMismatch, Some(record)) => {
            format!("{resource} is recorded as {}, but declared {mode}", record.ownership.as_str())
        }
        (RequirementReason::StateMismatch | RequirementReason::OwnershipMismatch, None) => {
            format!("{resource} does not match its record")
        }
    }
}

fn other_owner<'a>(state: &'a OwnershipState, claim: Claim<'_>, id: &ResourceId) -> Option<&'a ResourceId> {
    let same =
        |record: &OwnershipRecord| record.physical_name == claim.physical_name && record.backend == claim.backend;
    state.resources.iter().find(|(other, record)| *other != id && same(record)).map(|(other, _)| other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::canonical::Checksum;

    const NAME: &str = "orders.v1";
    const BACKEND: &str = "direct-kafka";

    fn record(physical_name: &str, backend: &str, ownership: OwnershipMode) -> OwnershipRecord {
        OwnershipRecord {
            physical_name: physical_name.to_owned(),
            ownership,
            artifact_checksum: Checksum::of_bytes(b"artifact"),
            backend: backend.to_owned(),
        }
    }

    fn decision(mode: OwnershipMode, exists: bool, record: Option<&OwnershipRecord>) -> Option<RequirementReason> {
        decide(Claim { mode, owner_is_ours: true, physical_name: NAME, backend: BACKEND, exists, record, other: None })
    }

    /// SAF-009, SAF-010, SAF-011, SAF-014, SAF-033, SAF-034, SAF-035
    #[test]
    fn every_row_of_the_ownership_table_is_decided() {
        use OwnershipMode::{Adopted, External, Managed};
        use RequirementReason as Reason;
        let same_managed = record(NAME, BACKEND, Managed);
        let same_adopted = record(NAME, BACKEND, Adopted);
        let other_name = record("orders.v0", BACKEND, Managed);
        let other_backend = record(NAME, "legacy", Managed);
        let other_name_adopted = record("orders.v0", BACKEND, Adopted);
        let table = [
            (Managed, false, None, None),
            (Managed, true, None, Some(Reason::RequiresAdoption)),
            (Managed, false, Some(&same_managed), None),
            (Managed, true, Some(&same_managed), None),
            (Adopted, false, None, Some(Reason::RequiresAdoption)),
            (Adopted, true, None, Some(Reason::RequiresAdoption)),
            (Adopted, false, Some(&same_adopted), None),
            (Adopted, true, Some(&same_adopted), None),
            (Managed, true, Some(&same_adopted), Some(Reason::OwnershipMismatch)),
            (Managed, false, Some(&same_adopted), Some(Reason::OwnershipMismatch)),
            (Adopted, true, Some(&same_managed), Some(Reason::OwnershipMismatch)),
            (Managed, true, Some(&other_name), Some(Reason::StateMismatch)),
            (Managed, false, Some(&other_name), Some(Reason::StateMismatch)),
            (Managed, true, Some(&other_backend), Some(Reason::StateMismatch)),
            (Adopted, true, Some(&other_name_adopted), Some(Reason::StateMismatch)),
            (External, false, None, Some(Reason::External)),
            (External, true, None, Some(Reason::External)),
            (External, true, Some(&same_managed), Some(Reason::External)),
            (External, false, Some(&other_name), Some(Reason::External)),
        ];
        for (mode, exists, record, expected) in table {
            assert_eq!(decision(mode, exists, record), expected, "{mode:?} {exists} {record:?}");
        }
    }

    /// SAF-003
    #[test]
    fn an_artifact_of_another_project_is_never_written_to() {
        for mode in [OwnershipMode::External, OwnershipMode::Managed, OwnershipMode::Adopted] {
            for exists in [false, true] {
                let claim = Claim {
                    mode,
                    owner_is_ours: false,
                    physical_name: NAME,
                    backend: BACKEND,
                    exists,
                    record: None,
                    other: None,
                };
                assert_eq!(decide(claim), Some(RequirementReason::InvalidOwnership));
            }
        }
    }
}
