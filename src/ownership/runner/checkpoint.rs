//! What a boundary between `started` and `completed` proves.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::evidence::Evidence;
use super::progress::GroupProgress;
use super::scalar::DockerId;
use crate::compiler::canonical::Checksum;
use crate::ownership::scalar::uuid_text;

/// In the order in which they are reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The prior runner has ended cleanly.
    OldClosed,
    /// Its container is gone.
    OldRemoved,
    /// The new container exists.
    ReplacementCreated,
}

impl Phase {
    pub const ALL: [Self; 3] = [Self::OldClosed, Self::OldRemoved, Self::ReplacementCreated];
}

/// Ends of a runner that lost nothing: by itself, and by SIGTERM.
const CLEAN_EXITS: [i64; 2] = [0, 143];

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    pub version: u8,
    pub phase: Phase,
    #[serde(with = "uuid_text")]
    pub operation_id: Uuid,
    pub action_index: u32,
    pub prior_container_id: DockerId,
    /// Only of a created replacement.
    pub replacement_container_id: Option<DockerId>,
    /// These three only of a closed runner.
    pub closed_plan_hash: Option<Checksum>,
    pub exit_code: Option<i64>,
    pub progress: Option<GroupProgress>,
}

impl Checkpoint {
    pub fn old_closed(
        evidence: &Evidence,
        operation_id: Uuid,
        action_index: u32,
        exit_code: i64,
        progress: GroupProgress,
    ) -> Self {
        Self {
            closed_plan_hash: evidence.prior_plan_hash(),
            exit_code: Some(exit_code),
            progress: Some(progress),
            ..Self::of(Phase::OldClosed, evidence, operation_id, action_index)
        }
    }

    pub fn old_removed(evidence: &Evidence, operation_id: Uuid, action_index: u32) -> Self {
        Self::of(Phase::OldRemoved, evidence, operation_id, action_index)
    }

    pub fn replacement_created(
        evidence: &Evidence,
        operation_id: Uuid,
        action_index: u32,
        container: DockerId,
    ) -> Self {
        Self {
            replacement_container_id: Some(container),
            ..Self::of(Phase::ReplacementCreated, evidence, operation_id, action_index)
        }
    }

    fn of(phase: Phase, evidence: &Evidence, operation_id: Uuid, action_index: u32) -> Self {
        Self {
            version: 1,
            phase,
            operation_id,
            action_index,
            prior_container_id: evidence.prior_container_id.clone(),
            replacement_container_id: None,
            closed_plan_hash: None,
            exit_code: None,
            progress: None,
        }
    }

    /// Whether it is a boundary of the replacement that this evidence began.
    pub fn check(&self, evidence: &Evidence, operation_id: Uuid, action_index: u32) -> Result<(), &'static str> {
        let own = self.version == 1
            && self.operation_id == operation_id
            && self.action_index == action_index
            && self.prior_container_id == evidence.prior_container_id;
        if !own {
            return Err("a checkpoint belongs to another replacement");
        }
        let (closed, created) = match self.phase {
            Phase::OldClosed => (true, false),
            Phase::OldRemoved => (false, false),
            Phase::ReplacementCreated => (false, true),
        };
        let shaped = [self.closed_plan_hash.is_some(), self.exit_code.is_some(), self.progress.is_some()]
            == [closed; 3]
            && self.replacement_container_id.is_some() == created;
        if !shaped {
            return Err("a checkpoint says what its phase does not prove");
        }
        if self.replacement_container_id.as_ref() == Some(&self.prior_container_id) {
            return Err("a replacement has the container of the runner that it replaces");
        }
        if let Some(progress) = &self.progress {
            progress.check()?;
            let clean = self.exit_code.is_some_and(|code| CLEAN_EXITS.contains(&code))
                && self.closed_plan_hash == evidence.prior_plan_hash()
                && progress.active_members == 0
                && progress.is_at_least(&evidence.progress);
            if !clean {
                return Err("a checkpoint does not prove that the prior runner ended cleanly");
            }
        }
        Ok(())
    }
}
