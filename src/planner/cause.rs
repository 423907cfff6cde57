//! Why a resource is not as it is declared: the declaration changed, somebody else changed the resource, or it is not ours to
//! change.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compiler::DesiredResource;
use crate::compiler::artifact::{Kind, Ownership};
use crate::compiler::canonical::Checksum;
use crate::ownership::model::{OwnershipRecord, OwnershipState, ResourceId};
use crate::project::model::OwnershipMode;

use super::Desired;
use super::connector::{ConnectorClaims, ManagedConnectorObservation, default_binding};
use super::flink::{JobDiff, JobObservation};
use super::ownership::{Claim, backend, decide};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The declaration asks for something else than what is recorded.
    Intended,
    /// The live resource is not what is recorded, through no change of the declaration.
    Drift,
    /// Both: the declaration changed, and the live resource is not what is recorded either.
    IntendedAndDrift,
    /// It was adopted as it was found, and whether the declaration was ever applied to it is not recorded.
    Adopted,
    /// Ownership, or a rule of safety, does not let it be changed.
    Blocked,
}

impl Cause {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Drift => "drift",
            Self::IntendedAndDrift => "intended_and_drift",
            Self::Adopted => "adopted",
            Self::Blocked => "blocked",
        }
    }
}

/// A live resource that can be compared with its record whatever is declared now.
#[derive(Clone, Copy, Debug)]
pub enum Live<'a> {
    /// The artifact that it would be is the recorded one, or not.
    Connector(&'a ManagedConnectorObservation),
    /// It runs, or not: what was recorded was a job that runs.
    Job(&'a JobObservation),
}

/// What a resource that differs from its declaration says beside its record.
pub(super) fn of(
    record: Option<&OwnershipRecord>,
    wanted: &Checksum,
    owner: Option<&Ownership>,
    exists: bool,
    live: Option<Live<'_>>,
) -> Cause {
    let Some(record) = record else { return Cause::Intended };
    let intended = record.artifact_checksum != *wanted;
    let touched = match live {
        None => false,
        Some(Live::Connector(live)) => {
            let rebuilt = owner.and_then(|owner| live.checksum_as(owner));
            live.exists() && rebuilt.as_ref() != Some(&record.artifact_checksum)
        }
        Some(Live::Job(live)) => live.job.as_ref().is_some_and(|job| !job.state.runs()),
    };
    if exists && record.ownership == OwnershipMode::Adopted {
        return if intended { Cause::Intended } else { Cause::Adopted };
    }
    let drift = !exists || !intended || touched;
    match (intended, drift) {
        (true, true) => Cause::IntendedAndDrift,
        (true, false) => Cause::Intended,
        (false, _) => Cause::Drift,
    }
}

/// Answers for single resources, without a plan.
pub struct Causes<'a> {
    desired: &'a Desired<'a>,
    state: &'a OwnershipState,
    owners: BTreeMap<(Kind, &'a str), &'a Ownership>,
    claims: ConnectorClaims<'a>,
}

impl<'a> Causes<'a> {
    pub fn of(desired: &'a Desired<'a>, state: &'a OwnershipState) -> Self {
        Self { desired, state, owners: desired.owners(), claims: ConnectorClaims::of(state) }
    }

    /// Why the resource of this physical name differs from its declaration; None for what is external or not declared, and for a
    /// job that runs what is recorded, which nobody can see before.
    pub fn why(&self, kind: Kind, name: &str, exists: bool, live: Option<Live<'_>>) -> Option<Cause> {
        let own = |resource: &&DesiredResource| resource.kind == kind && resource.physical_name == name;
        let resource = self.desired.resources.iter().find(own)?;
        let id = ResourceId::new(self.desired.project, self.desired.environment, kind, &resource.logical_name)?;
        let owner = self.owners.get(&(kind, name)).copied();
        let bound = default_binding(self.desired.connect).ok().map(|binding| binding.identity());
        let backend = backend(kind, bound.as_ref());
        let record = self.state.resources.get(&id);
        let claim = Claim {
            mode: resource.mode,
            owner_is_ours: owner.is_some_and(|o| o.project == self.desired.project && o.mode == resource.mode),
            physical_name: name,
            backend: &backend,
            exists,
            record,
            other: match kind {
                Kind::Connector => self.claims.other(&backend, name, &id),
                Kind::Schema | Kind::Topic | Kind::FlinkJob | Kind::KafkaStreamsJob | Kind::GatewayRule => None,
            },
        };
        let wanted = &resource.artifact_checksum;
        let as_declared = match live {
            Some(Live::Job(live)) => {
                JobDiff::of(wanted, record.map(|own| &own.artifact_checksum), live).verb().is_none()
            }
            Some(Live::Connector(_)) | None => false,
        };
        match decide(claim) {
            Some(reason) => reason.blocks().then_some(Cause::Blocked),
            None => (!as_declared).then(|| of(record, wanted, owner, exists, live)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::connector::testing::{connector, live, present};
    use super::*;
    use crate::planner::fixtures::{World, job};
    use crate::planner::flink::JobState;

    /// A recorded connector, then the world as `change` leaves it.
    fn why(change: impl FnOnce(&mut World)) -> Option<Cause> {
        let sink = connector("sink", &[("tasks.max", "1")]);
        let mut world = World::new().with_connector(sink.clone(), Some(live(&sink))).owned();
        change(&mut world);
        let observed = world.observations.connectors["sink"].clone();
        let desired = world.desired();
        let live = Some(Live::Connector(&observed));
        let cause = Causes::of(&desired, &world.state).why(Kind::Connector, "sink", observed.exists(), live);
        // Where a plan changes it, the plan says the same.
        if let Some(planned) = world.plan().changes[0].cause() {
            assert_eq!(Some(planned), cause);
        }
        cause
    }

    #[test]
    fn a_declaration_that_changed_a_hand_that_changed_and_both_are_told_apart() {
        let edited = |world: &mut World| {
            let sink = connector("sink", &[("tasks.max", "2")]);
            *world = World { state: world.state.clone(), ..World::new().with_connector(sink, None) };
            let recorded = connector("sink", &[("tasks.max", "1")]);
            world.observations.connectors.insert("sink".into(), live(&recorded));
        };
        let by_hand = |world: &mut World| {
            world.observations.connectors.insert("sink".into(), live(&connector("sink", &[("tasks.max", "3")])));
        };
        assert_eq!(why(edited), Some(Cause::Intended));
        assert_eq!(why(by_hand), Some(Cause::Drift));
        assert_eq!(
            why(|world| {
                edited(world);
                by_hand(world);
            }),
            Some(Cause::IntendedAndDrift)
        );
        // What forms no artifact was not deployed from here.
        assert_eq!(
            why(|world| {
                world.observations.connectors.insert("sink".into(), present("sink", &[("name", "sink")]));
            }),
            Some(Cause::Drift)
        );
    }

    /// Found as it is, then declared otherwise: nobody changed anything outside.
    #[test]
    fn what_was_adopted_is_no_drift_until_it_is_gone() {
        let record = |ownership| OwnershipRecord {
            physical_name: "orders".into(),
            ownership,
            artifact_checksum: Checksum::of_bytes(b"then"),
            backend: "kafka".into(),
        };
        let cause = |ownership, declared: &[u8], exists| {
            of(Some(&record(ownership)), &Checksum::of_bytes(declared), None, exists, None)
        };
        let (adopted, managed) = (OwnershipMode::Adopted, OwnershipMode::Managed);
        assert_eq!(cause(adopted, b"then", true), Cause::Adopted);
        assert_eq!(cause(adopted, b"now", true), Cause::Intended);
        assert_eq!(cause(adopted, b"then", false), Cause::Drift);
        assert_eq!(cause(managed, b"then", true), Cause::Drift);
    }

    #[test]
    fn what_is_gone_is_drift_and_what_is_not_ours_is_blocked() {
        use super::super::connector::testing::absent;
        assert_eq!(
            why(|world| {
                world.observations.connectors.insert("sink".into(), absent("sink"));
            }),
            Some(Cause::Drift)
        );
        // Gone, and wanted otherwise by now.
        assert_eq!(
            why(|world| {
                let sink = connector("sink", &[("tasks.max", "2")]);
                *world = World { state: world.state.clone(), ..World::new().with_connector(sink, None) };
            }),
            Some(Cause::IntendedAndDrift)
        );
        assert_eq!(why(|world| world.state.resources.clear()), Some(Cause::Blocked));
        assert_eq!(
            why(|world| {
                world.state.resources.clear();
                world.observations.connectors.insert("sink".into(), absent("sink"));
            }),
            Some(Cause::Intended)
        );
    }

    /// A recorded job, then the world as `change` leaves it.
    fn why_job(state: Option<JobState>, change: impl FnOnce(&mut World)) -> Option<Cause> {
        let mut world = World::new().with_job(job("j"), state).owned();
        change(&mut world);
        let observed = world.observations.jobs["j"].clone();
        let desired = world.desired();
        let live = Some(Live::Job(&observed));
        let cause = Causes::of(&desired, &world.state).why(Kind::FlinkJob, "j", observed.exists(), live);
        assert_eq!(world.plan().changes[0].cause(), cause, "the plan says the same");
        cause
    }

    /// SAF-043, SAF-044: by every state, whether the declaration is the recorded one, and whose job it is.
    #[test]
    fn a_job_differs_because_it_was_declared_anew_or_no_longer_runs_or_both_or_is_not_ours() {
        let edited = |world: &mut World| world.artifacts.flink_jobs[0].sql = "INSERT INTO x SELECT 2".to_owned();
        let unknown = |world: &mut World| world.state.resources.clear();
        for state in JobState::ALL {
            let (same, changed) = match state.runs() {
                true => (None, Some(Cause::Intended)),
                false => (Some(Cause::Drift), Some(Cause::IntendedAndDrift)),
            };
            assert_eq!(why_job(Some(state), |_| {}), same, "{state}");
            assert_eq!(why_job(Some(state), edited), changed, "{state}");
            assert_eq!(why_job(Some(state), unknown), Some(Cause::Blocked), "{state}");
        }
        assert_eq!(why_job(None, |_| {}), Some(Cause::Drift));
        assert_eq!(why_job(None, edited), Some(Cause::IntendedAndDrift));
        assert_eq!(why_job(None, unknown), Some(Cause::Intended));
    }
}
