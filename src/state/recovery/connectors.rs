//! How the connectors of a blocked operation stand. A deletion is judged by its durable evidence alone: the tombstone and the
//! model may be gone meanwhile.

use serde_json::{Map, json};

use super::{AcceptedAs, Compared, Judged, Left, Presence, Reason, Seen};
use crate::compiler::artifact::{ConnectorArtifact, Kind};
use crate::compiler::canonical::Checksum;
use crate::planner::Desired;
use crate::planner::connector::{
    ConnectClusterBinding, ConnectorActionEvidence, ConnectorDiff, ManagedConnectorObservation, default_binding,
};
use crate::planner::model::{Action, Verb};
use crate::project::model::OwnershipMode;
use crate::state::model::{OwnershipRecord, OwnershipState};

/// The cluster that the project's connectors run on today.
pub(super) fn binding(desired: &Desired<'_>) -> Option<ConnectClusterBinding> {
    default_binding(desired.connect).ok()
}

/// The evidence of a connector deletion.
pub(super) fn deletion(action: &Action) -> Option<&ConnectorActionEvidence> {
    action.connector_evidence.as_ref().filter(|_| action.action == Verb::Delete)
}

/// The record that a deletion is about, proved by everything that needs no worker: one managed record equal in all facts, no
/// other claim of that connector, and the cluster that the project names today.
pub(super) fn proved_record<'a>(
    action: &Action,
    evidence: &ConnectorActionEvidence,
    prior: &'a OwnershipState,
    desired: &Desired<'_>,
) -> Option<&'a OwnershipRecord> {
    let (name, endpoint) = (evidence.connector_name().as_str(), evidence.binding().endpoint());
    let record = prior.resources.get(&action.resource_id)?;
    let exact = record.ownership == OwnershipMode::Managed
        && record.physical_name == name
        && record.backend == evidence.binding().identity().as_str()
        && record.artifact_checksum == *evidence.prior_artifact_checksum();
    let claimed = prior.resources.iter().any(|(id, other)| {
        let bound = ConnectClusterBinding::parse(&other.backend);
        *id != action.resource_id
            && id.kind() == Kind::Connector
            && other.physical_name == name
            && bound.is_none_or(|bound| bound.endpoint() == endpoint)
    });
    let wanted = desired
        .artifacts
        .connectors
        .iter()
        .any(|connector| connector.name == name || connector.ownership.name == action.resource_id.logical_name());
    let bound = binding(desired).as_ref() == Some(evidence.binding());
    (exact && !claimed && !wanted && bound).then_some(record)
}

/// A deletion is done when its connector is absent and its start is durable, undone when it stands exactly as reviewed.
pub(super) fn judge_deletion(
    evidence: &ConnectorActionEvidence,
    proved: Option<&OwnershipRecord>,
    started: bool,
    project: &str,
    logical_owner: &str,
    live: Option<&ManagedConnectorObservation>,
) -> Judged {
    let Some(record) = proved else { return Judged::refused(Seen::Unreadable, Reason::WrongBinding) };
    let Some(live) = live.filter(|live| live.binding() == evidence.binding()) else {
        return Judged::refused(Seen::Unreadable, Reason::Unreadable);
    };
    let rebuilt = live.rebuild(project, logical_owner).ok().and_then(|artifact| Checksum::of(&artifact).ok());
    let verdict = match live.exists() {
        false if started => Ok(AcceptedAs::Candidate),
        true if evidence.is_of(live) && rebuilt.as_ref() == Some(&record.artifact_checksum) => Ok(AcceptedAs::Prior),
        true | false => Err(Reason::ThirdState),
    };
    Judged {
        presence: if live.exists() { Seen::Present } else { Seen::Absent },
        verdict,
        differences: Map::new(),
        fingerprint: Some(live.fingerprint().clone()),
        left: Left::Removed,
    }
}

/// The live connector beside the declared one.
pub(super) fn compare(desired: &ConnectorArtifact, live: &ManagedConnectorObservation) -> Compared {
    let (identity, cluster) = (live.binding().identity(), live.binding().alias());
    let mut form = json!({
        "kind": Kind::Connector, "backend_identity": identity.as_str(), "cluster": cluster.as_str(),
        "name": live.name(), "presence": if live.exists() { Presence::Present } else { Presence::Absent },
    });
    if let Some(config) = live.config() {
        form["config"] = json!(config);
    }
    let diff = ConnectorDiff::of(desired, live);
    Compared {
        exists: live.exists(),
        fingerprint: Checksum::of(&form).ok(),
        is_candidate: live.exists() && diff.keys.is_empty(),
        rebuilt: live.checksum_as(&desired.ownership).into_iter().collect(),
        differences: diff.changes(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{intent, intent_of};
    use super::super::{Resolution, classify, prove, questions};
    use super::*;
    use crate::planner::connector::testing::{absent, connector, live, present, tombstone};
    use crate::planner::fixtures::{World, id};
    use crate::state::control::ProgressEntry;
    use crate::state::testing::at;

    const CONFIG: &[(&str, &str)] = &[("connection.password", "s3cret"), ("tasks.max", "2")];

    /// CRM-110: a world that no longer declares the removal, with its durable action.
    fn blocked() -> (World, Action) {
        let gone = connector("gone", CONFIG);
        let mut world = World::new().with_connector(gone.clone(), Some(live(&gone))).owned();
        world.state.serial = 3;
        world.artifacts.connectors.clear();
        world.artifacts.connector_removals.push(tombstone(&gone));
        let action = world.plan().actions.remove(0);
        world.artifacts.connector_removals.clear();
        (world, action)
    }

    fn stands(world: &World, action: &Action, started: bool) -> Result<AcceptedAs, Reason> {
        let intent = intent_of(vec![action.clone()]);
        let progress: Vec<ProgressEntry> =
            started.then(|| ProgressEntry::started(&intent, 0, at(1))).flatten().into_iter().collect();
        let [one] = classify(&intent, &world.state, &world.desired(), &world.observations, &progress)
            .try_into()
            .expect("one target");
        one.accepted_as.ok_or_else(|| one.reason.expect("a reason"))
    }

    /// CRM-112, CRM-113, CRM-114, REC-049
    #[test]
    fn a_deletion_is_done_when_absent_undone_when_as_reviewed_and_nothing_else() {
        let (mut world, action) = blocked();
        assert_eq!(stands(&world, &action, true), Ok(AcceptedAs::Prior));
        world.observations.connectors.insert("gone".into(), absent("gone"));
        assert_eq!(stands(&world, &action, true), Ok(AcceptedAs::Candidate));
        assert_eq!(stands(&world, &action, false), Err(Reason::ThirdState), "nothing was started");
        let other = connector("gone", &[("tasks.max", "3")]);
        world.observations.connectors.insert("gone".into(), live(&other));
        assert_eq!(stands(&world, &action, true), Err(Reason::ThirdState));
        let formless = present("gone", &[("name", "gone")]);
        world.observations.connectors.insert("gone".into(), formless);
        assert_eq!(stands(&world, &action, true), Err(Reason::ThirdState));
        world.observations.connectors.clear();
        assert_eq!(stands(&world, &action, true), Err(Reason::Unreadable));
    }

    /// REC-060: the evidence, the record and what is live must be of one artifact.
    #[test]
    fn a_deletion_is_not_undone_by_a_form_that_was_never_recorded() {
        let (mut world, action) = blocked();
        let other = live(&connector("gone", &[("tasks.max", "3")]));
        let recorded = world.state.resources[&id(Kind::Connector, "gone")].artifact_checksum.clone();
        world.observations.connectors.insert("gone".into(), other.clone());
        let evidence = ConnectorActionEvidence::of_deletion(&other, recorded);
        let forged = Action { connector_evidence: evidence, ..action };
        assert_eq!(stands(&world, &forged, true), Err(Reason::ThirdState));
    }

    /// CRM-112, CRM-113, REC-030
    #[test]
    fn observed_removes_exactly_the_record_and_rolled_back_keeps_it() {
        let (mut world, action) = blocked();
        let kept = connector("kept", &[]);
        let both = World::new().with_connector(kept.clone(), Some(live(&kept))).owned();
        world.state.resources.extend(both.state.resources);
        let intent = intent_of(vec![action.clone()]);
        let progress = [ProgressEntry::started(&intent, 0, at(1)).unwrap()];
        let assess = |world: &World| classify(&intent, &world.state, &world.desired(), &world.observations, &progress);
        assert_eq!(prove(Resolution::RolledBack, &world.state, assess(&world)).unwrap().candidate, None);
        assert_eq!(
            prove(Resolution::Observed, &world.state, assess(&world)).unwrap().candidate.as_ref(),
            Some(&world.state),
            "nothing happened, so nothing is recorded"
        );
        world.observations.connectors.insert("gone".into(), absent("gone"));
        assert!(prove(Resolution::RolledBack, &world.state, assess(&world)).is_err(), "absence is no prior form");
        let next = prove(Resolution::Observed, &world.state, assess(&world)).unwrap().candidate.unwrap();
        assert_eq!(next.serial, world.state.serial + 1);
        let mut expected = world.state.resources.clone();
        expected.remove(&id(Kind::Connector, "gone")).unwrap();
        assert_eq!(next.resources, expected);
    }

    /// REC-049, REC-065: an operation of control version 1 or 2. Neither the record nor what is live stands in for evidence.
    #[test]
    fn a_deletion_without_evidence_asks_nobody_and_is_in_no_form() {
        let (mut world, action) = blocked();
        let bare = Action { connector_evidence: None, ..action };
        for live in [absent("gone"), live(&connector("gone", CONFIG))] {
            world.observations.connectors.insert("gone".into(), live);
            for declared in [false, true] {
                world.artifacts.connectors = declared.then(|| connector("gone", CONFIG)).into_iter().collect();
                assert_eq!(questions(&intent_of(vec![bare.clone()]), &world.state, &world.desired()), None);
                for started in [false, true] {
                    assert_eq!(stands(&world, &bare, started), Err(Reason::ContentNotProvable));
                }
            }
        }
    }

    /// CRM-111, REC-049
    #[test]
    fn a_deletion_that_its_record_or_the_project_contradicts_asks_nobody() {
        let refused = |change: &dyn Fn(&mut World)| {
            let (mut world, action) = blocked();
            change(&mut world);
            assert_eq!(questions(&intent_of(vec![action.clone()]), &world.state, &world.desired()), None);
            assert_eq!(stands(&world, &action, true), Err(Reason::WrongBinding));
        };
        let gone = id(Kind::Connector, "gone");
        refused(&|world| {
            world.state.resources.remove(&gone).unwrap();
        });
        refused(&|world| world.state.resources.get_mut(&gone).unwrap().ownership = OwnershipMode::Adopted);
        refused(&|world| world.state.resources.get_mut(&gone).unwrap().backend = "kafka-connect".into());
        refused(&|world| world.state.resources.get_mut(&gone).unwrap().artifact_checksum = Checksum::of_bytes(b"x"));
        refused(&|world| {
            let second = world.state.resources[&gone].clone();
            world.state.resources.insert(id(Kind::Connector, "again"), second);
        });
        refused(&|world| world.artifacts.connectors.push(connector("gone", &[])));
        refused(&|world| world.connect = None);
        refused(&|world| {
            let clusters = &mut world.connect.as_mut().unwrap().clusters;
            clusters.get_mut("primary").unwrap().rest_url = "https://elsewhere.test".into();
        });
        let (world, action) = blocked();
        let asked = questions(&intent_of(vec![action]), &world.state, &world.desired()).unwrap();
        assert_eq!(asked.connectors, ["gone"]);
    }

    /// REC-025: the frozen normal forms.
    #[test]
    fn golden_fingerprints_of_connectors() {
        let config = [
            ("connection.password", "s3cret"),
            ("connector.class", "io.example.SinkConnector"),
            ("name", "orders-sink"),
            ("tasks.max", "2"),
            ("topics", "orders.v1,refunds.v1"),
        ];
        let sum = |live: &ManagedConnectorObservation| {
            compare(&connector("orders-sink", &[]), live).fingerprint.unwrap().to_string()
        };
        assert_eq!(
            sum(&present("orders-sink", &config)),
            "sha256:dc206bee140efa829679417cb1240a020bec8ede5b87926f4de51fbf8e7ea1e9"
        );
        assert_eq!(
            sum(&absent("orders-sink")),
            "sha256:7a4f17b7ee63ccbc006aadc2371ae06b074dddb76fea918c27326f2a2cdc583d"
        );
    }

    #[test]
    fn a_create_and_an_update_stand_as_before_as_intended_or_neither() {
        let wanted = connector("sink", CONFIG);
        let mut world = World::new().with_connector(wanted.clone(), None);
        let create = intent(&[(Verb::Create, Kind::Connector, "sink")]).actions.remove(0);
        assert_eq!(stands(&world, &create, true), Ok(AcceptedAs::Prior));
        world.observations.connectors.insert("sink".into(), live(&wanted));
        assert_eq!(stands(&world, &create, true), Ok(AcceptedAs::Candidate));
        let before = connector("sink", &[("tasks.max", "1")]);
        world.observations.connectors.insert("sink".into(), live(&before));
        assert_eq!(stands(&world, &create, true), Err(Reason::ThirdState));

        let update = intent(&[(Verb::Update, Kind::Connector, "sink")]).actions.remove(0);
        world.state = World::new().with_connector(before.clone(), None).owned().state;
        assert_eq!(stands(&world, &update, true), Ok(AcceptedAs::Prior));
        world.observations.connectors.insert("sink".into(), live(&wanted));
        assert_eq!(stands(&world, &update, true), Ok(AcceptedAs::Candidate));
        let record = world.state.resources.values_mut().next().unwrap();
        record.backend = "kafka-connect".into();
        assert_eq!(stands(&world, &update, true), Err(Reason::WrongBinding));
    }
}
